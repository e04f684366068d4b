"""A training run of either solver: its records, its best planes, and when it stops.

After every iteration a solver calls ``step_done``. The run then computes the loss of the
validation rows, always at the final sharpness, which is that of the model. The planes with the
smallest loss are the result. The run stops after ``n_iter_no_change`` iterations without a gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from geomix.arrays import FloatArray
from geomix.core import kernel
from geomix.core.calibration import PRIOR_SCALE
from geomix.core.lbfgs import default_value_tol
from geomix.core.objective import usage_penalty
from geomix.core.ordered_weights import Order
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums
from geomix.training.history import Record
from geomix.training.rows import Rows
from geomix.training.settings import Settings

SMALLEST_GAIN = 1e-4
VALUE_TOL_PER_TOL = 0.1

# Called after every iteration with its record and planes; returns True to end the training.
OnIteration = Callable[[Record, Planes], "bool | None"]


@dataclass(frozen=True, eq=False)
class Trained:
    """Planes after training.

    ``n_iter`` is the iteration they come from: the one that did best on held-out rows, or the
    last one when none were held out or early stopping is off; counted from the first planes.
    ``n_done`` are the iterations of this run.
    """

    planes: Planes
    records: list[Record]
    n_iter: int
    stopped: str
    n_done: int


@dataclass(eq=False)
class Run:
    """One training: its rows, its records, and the best planes so far.

    ``n_before`` counts the iterations that the first planes have had already; a pass over rows
    ``out_of_core`` is expensive; ``usage`` of each plane is the one in the penalty.
    """

    sums: Callable[[], Sums]
    valid: Rows | None
    settings: Settings
    l2: float
    shrink_to_mean: float
    watch: OnIteration | None
    phase: str
    max_iter: int
    n_before: int
    order: Order | None = None
    out_of_core: bool = False
    records: list[Record] = field(default_factory=list)  # of the final training alone
    usage: tuple[float, ...] | None = None
    n_done: int = 0
    best_planes: Planes | None = None
    best_loss: float = np.inf
    n_best: int = 0
    n_since_best: int = 0
    stop_requested: bool = False

    @property
    def has_valid(self) -> bool:
        return self.valid is not None and len(self.valid) > 0

    @property
    def value_tol(self) -> float:
        """Smallest relative gain of an iteration; ``tol`` in trials: candidates differ by more."""
        tol = self.settings.tol
        if self.out_of_core:
            return VALUE_TOL_PER_TOL * tol
        return tol if self.phase == "choose" else default_value_tol(tol)

    @cached_property
    def has_valid_loss(self) -> bool:
        """Whether the validation loss is computed: for early stopping, or for the history."""
        return self.has_valid and (self.phase == "fit" or self.settings.early_stopping != "off")

    @property
    def is_followed(self) -> bool:
        """Whether something looks at every iteration."""
        return self.watch is not None or self.has_valid_loss

    def penalty(self, usage: FloatArray) -> FloatArray:
        """lambda of each plane at this usage."""
        return usage_penalty(usage, self.l2, self.settings.usage_beta, self.settings.usage_delta)

    def step_done(
        self,
        planes: Planes,
        sharpness: float,
        loss: float,
        *,
        learning_rate: float | None = None,
        validate: bool = True,
    ) -> None:
        """Record an iteration, call the watcher, and keep the planes if they are the best.

        ``validate=False`` skips the validation loss: planes of an early stage are not kept.
        """
        iteration = self.n_done = self.n_done + 1
        valid_loss = self.valid_loss(planes) if self.has_valid_loss and validate else None
        record = Record(
            self.phase, iteration, sharpness, loss, valid_loss, learning_rate, self.usage
        )
        if self.phase == "fit":
            self.records.append(record)
        if valid_loss is not None:
            # Only a gain that matters resets the count; the best planes are kept at any gain.
            gain = self.best_loss - valid_loss
            self.n_since_best = 0 if gain > SMALLEST_GAIN * valid_loss else self.n_since_best + 1
            if gain > 0:
                self.best_planes, self.best_loss, self.n_best = planes, valid_loss, iteration
        self.stop_requested = self.watch is not None and bool(self.watch(record, planes))

    def steps_done(self, sharpness: float, losses: list[float]) -> None:
        """Record iterations without validation loss and watcher."""
        if self.phase == "fit":
            for iteration, loss in enumerate(losses, self.n_done + 1):
                record = Record(self.phase, iteration, sharpness, loss, usage=self.usage)
                self.records.append(record)
        self.n_done += len(losses)

    def valid_loss(self, planes: Planes) -> float:
        """Held-out loss at the final sharpness: of the calibrated probabilities, or plain."""
        valid, sharpness = self.valid, self.settings.sharpness
        assert valid is not None
        if self.settings.early_stopping == "plain":
            return valid.prepared.cross_entropy(planes, sharpness)
        S = valid.prepared.class_scores(planes, sharpness)
        return kernel.calibrate(S, valid.y, valid.weight, PRIOR_SCALE)[1]

    @property
    def out_of_patience(self) -> bool:
        return (
            self.n_since_best >= self.settings.n_iter_no_change
            and self.settings.early_stopping != "off"
        )

    @property
    def must_stop(self) -> bool:
        return self.stop_requested or self.out_of_patience

    def why_stopped(self, otherwise: str) -> str:
        if self.stop_requested:
            return "request"
        return "n_iter_no_change" if self.out_of_patience else otherwise

    def finish(self, planes: Planes, stopped: str) -> Trained:
        if self.best_planes is None or self.settings.early_stopping == "off":
            n_iter = max(self.n_done, 1)
        else:
            n_iter, planes = self.n_best, self.best_planes
        return Trained(planes, self.records, self.n_before + n_iter, stopped, self.n_done)
