"""The cost of a trial, counted and not timed, so that the choice is the same on every machine.

    operations = training rows x (features + 16) x planes x iterations x folds

where 16 stands for the exponentials of pooling each plane.

A budget is proportional to the table: ``OPERATIONS_PER_CELL`` for each cell and class of the
largest rung, and never more than ``MOST_OPERATIONS``.
"""

from __future__ import annotations

from dataclasses import dataclass

from geomix.search.candidates import Candidate
from geomix.search.constants import (
    ITERATIONS_PER_TRIAL,
    MOST_OPERATIONS,
    OPERATIONS_PER_CELL,
    ROWS_PER_RUNG,
)
from geomix.search.folds import Fold
from geomix.search.splits import Folds
from geomix.training.settings import Settings

POOLING = 16  # what pooling a plane costs, in multiplications


@dataclass
class Budget:
    """What is left of the operations that a race may count."""

    left: float

    def allows(self, operations: float) -> bool:
        return operations <= self.left

    def spend(self, operations: float) -> None:
        self.left -= operations


def budget_for(settings: Settings, folds: Folds) -> Budget:
    cells = min(folds.n_train, ROWS_PER_RUNG[-1]) * folds.task.rows.X.shape[1]
    wanted = OPERATIONS_PER_CELL * cells * folds.task.n_classes
    return Budget(min(wanted, MOST_OPERATIONS[settings.preset]))


def operations(
    candidate: Candidate, folds: list[Fold], n_iter: int = ITERATIONS_PER_TRIAL
) -> float:
    """What a trial costs: a spline looks up a number for each column and pair, the other lifts
    multiply each of their features."""
    fold = folds[0]
    preparation = fold.preparation
    n_features = {
        "spline": preparation.encoded.X.shape[1] + candidate.n_pairs,
        "linear": preparation.linear.n_outputs,
        "fourier": 2 * preparation.n_frequencies,
    }[candidate.lift]
    n_planes = preparation.n_planes_of(candidate.n_planes)
    per_plane = n_features + POOLING
    return float(fold.n_train) * per_plane * n_planes * n_iter * len(folds)
