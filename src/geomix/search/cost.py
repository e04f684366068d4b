"""The cost of a trial, counted and not timed, so that the choice is the same on every machine.

    operations = (rows x (features + 16) + 40 x weights) x planes x iterations x folds

with the weights of one plane; 16 stands for the exponentials of pooling a plane, 40 for what L-BFGS
does with each weight (ten remembered steps); 160 where the weights of all planes are so many that
those steps come from memory and not from the cache.

A budget is proportional to the table: ``OPERATIONS.per_cell`` for each cell and class of the
largest rung, and never more than ``OPERATIONS.most``. A pair of columns that may get a table counts
as a column. Where ``n_planes`` is given, every trial has that many planes, and so has the budget.
The final training has a limit of its own, which grows with the rows beyond the largest rung. An
ensemble has half of it for all its members: as many as can be trained like trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from geomix.core.spline import bins_per_side
from geomix.search.candidates import Candidate
from geomix.search.constants import (
    ITERATIONS_OF_FIRST_PLANES,
    ITERATIONS_PER_TRIAL,
    OPERATIONS,
    ROWS_PER_RUNG,
)
from geomix.search.folds import Fold
from geomix.search.splits import Folds, Task
from geomix.training.many_classes import PER_PLANE
from geomix.training.plane_counts import MOST_CLUSTERS
from geomix.training.settings import Settings

SOLVER = 40  # multiplications for each weight of a plane
SOLVER_FROM_MEMORY = 160  # the same time for weights that do not stay in the cache ...
MOST_CACHED_WEIGHTS = 2**17  # ... which are more than this: 20 MB of remembered steps


@dataclass
class Budget:
    """What is left of the operations that a race may count, and the part that is kept for every
    later rung and for the finals. What one leaves goes to the next."""

    left: float
    part: float = 0.0
    kept: float = 0.0

    def allows(self, operations: float) -> bool:
        return operations <= self.left - self.kept

    @contextmanager
    def shared(self) -> Iterator[None]:
        """For the start or the walk of one family: half of what is left is kept for those that come
        later."""
        self.kept = self.left / 2.0
        try:
            yield
        finally:
            self.kept = 0.0

    def spend(self, operations: float) -> None:
        self.left -= operations

    def open_part(self) -> None:
        self.left += self.part


def budget_for(settings: Settings, folds: Folds, n_rungs: int) -> Budget:
    cells = min(folds.n_train, ROWS_PER_RUNG[-1]) * _width(settings, folds.task)
    wanted = OPERATIONS.per_cell[settings.preset] * cells * _planes_given(settings, folds.task)
    total = min(wanted, OPERATIONS.most[settings.preset])
    n_later = n_rungs - 1 + folds.has_finals
    if not n_later:
        return Budget(total)
    return Budget(total / 2.0, total / 2.0 / n_later)  # most candidates are tried on the first rung


def most_final_iterations(settings: Settings, folds: Folds, operations: float) -> int:
    """Iterations that the final training may take, where those of a trial cost ``operations``."""
    most = OPERATIONS.most[settings.preset] * max(1.0, folds.n_train / ROWS_PER_RUNG[-1])
    affordable = int(ITERATIONS_PER_TRIAL * most / operations)
    return max(affordable, ITERATIONS_OF_FIRST_PLANES)


def most_members(settings: Settings, operations: float) -> int:
    """Members of an ensemble that the final training may have, where a trial of one costs
    ``operations``: all of them together half of what the race may count."""
    return max(int(OPERATIONS.most[settings.preset] / 2.0 / operations), 1)


def _width(settings: Settings, task: Task) -> int:
    """Columns, and pairs of them that may get a table: few columns may have many pairs."""
    n_columns: int = task.rows.X.shape[1]
    most_pairs = settings.most_pairs if "spline" in settings.lifts else 0
    return n_columns + min(most_pairs, n_columns * (n_columns - 1) // 2)


def _planes_given(settings: Settings, task: Task) -> int:
    """Planes of all classes together that every trial has: one per class where none are given."""
    if settings.n_planes == "auto":
        return task.n_classes
    return MOST_CLUSTERS * task.n_classes if task.wanted is None else int(task.wanted.sum())


def operations(
    candidate: Candidate, folds: list[Fold], n_iter: int = ITERATIONS_PER_TRIAL
) -> float:
    """What a trial costs: a spline looks up a number for each column and pair, the other lifts
    multiply each of their features."""
    fold = folds[0]
    preparation = fold.preparation
    n_columns = preparation.encoded.X.shape[1]
    n_pairs = min(candidate.n_pairs, n_columns * (n_columns - 1) // 2)
    if candidate.lift == "fourier":
        n_features = 2 * preparation.n_frequencies
    elif candidate.lift == "linear":
        n_features = preparation.linear.n_outputs
    else:
        n_features = n_columns + n_pairs
    n_weights = n_features
    if candidate.n_knots is not None:
        n_weights = n_columns * candidate.n_knots + bins_per_side(fold.n_train) ** 2 * n_pairs
    n_planes = preparation.n_planes_of(candidate.n_planes)
    solver = SOLVER if n_weights * n_planes <= MOST_CACHED_WEIGHTS else SOLVER_FROM_MEMORY
    per_plane = float(fold.n_train) * (n_features + PER_PLANE) + solver * n_weights
    return per_plane * n_planes * n_iter * len(folds)
