"""One trial: a candidate trained and judged on every fold, and how two of them compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.calibration import PRIOR_SCALE
from geomix.core.pooling import log_softmax
from geomix.search.folds import Candidate, Fitted, Fold, Watch, pooled, train_on_fold
from geomix.training.history import Trial
from geomix.training.settings import Settings

ITERATIONS_PER_TRIAL = 100
# With adaptive steps planes go on gaining for longer, which takes too long of many rows, or where a
# pass looks up more than this (some 0.1 s).
DEAR_LOOKUPS = 1e8
FEWEST_ROWS_TO_TELL = 50


@dataclass(frozen=True, eq=False)
class Measured:
    """A candidate with its held-out result: one loss per held-out row, after calibration.

    n_rows : that it was trained on.
    """

    candidate: Candidate
    n_planes: int
    row_losses: FloatArray
    row_weights: FloatArray
    temperature: float
    n_rows: int
    n_iter: int
    is_cut_short: bool = False

    @property
    def loss(self) -> float:
        return float(np.average(self.row_losses, weights=self.row_weights))

    @property
    def is_rich(self) -> bool:
        """Several spline planes per class, each with curves of its own."""
        return self.candidate.lift == "spline" and (self.candidate.n_planes or 1) > 1

    @property
    def name(self) -> str:
        adaptive = ", columns adaptive" if self.candidate.adaptive else ""
        made = f"{self.candidate.lift} with {self.n_planes} planes"
        return f"{made}, l2={self.candidate.l2:g}{adaptive}"

    def as_trial(self, *, chosen: bool) -> Trial:
        made = self.candidate
        return Trial(
            made.lift,
            self.n_planes,
            made.gamma_factor,
            made.l2,
            made.shrink_to_mean,
            self.loss,
            self.temperature,
            self.n_iter,
            chosen,
            made.adaptive,
        )


def measure(
    candidate: Candidate,
    folds: list[Fold],
    settings: Settings,
    watch: Watch | None,
    rival: Measured | None,
    beaten_errors: float,
) -> Measured:
    """Train and judge on every fold, or on the first few where the rival is clearly better."""
    limit = _most_iterations(candidate, folds[0], settings)
    y, weight = pooled(folds)
    fits: list[Fitted] = []
    S = np.empty((0, folds[0].preparation.n_classes))
    for fold in folds:
        fits.append(train_on_fold(candidate, fold, settings, watch, "choose", limit))
        S = np.vstack([S, fits[-1].held_out_scores(settings.sharpness)])
        temperature, row_losses = _row_losses(S, y[: len(S)], weight[: len(S)], settings)
        if rival is not None and FEWEST_ROWS_TO_TELL <= len(S) < len(y):
            excess = paired(row_losses, rival.row_losses[: len(S)], weight[: len(S)])
            if excess.mean > beaten_errors * excess.error:
                rest = rival.row_losses[len(S) :] + excess.mean
                row_losses = np.concatenate([row_losses, rest])
                break
    n_iter = int(np.median([fit.trained.n_iter for fit in fits]))
    n_planes = fits[0].trained.planes.n_planes
    cut = n_iter >= limit and not candidate.weighs_steps
    n_rows = folds[0].n_train
    return Measured(candidate, n_planes, row_losses, weight, temperature, n_rows, n_iter, cut)


def _most_iterations(candidate: Candidate, fold: Fold, settings: Settings) -> int:
    if candidate.weighs_steps and not fold.is_subsample and not exceeds_budget(candidate, fold):
        return settings.max_iter
    return min(settings.max_iter, ITERATIONS_PER_TRIAL)


def exceeds_budget(candidate: Candidate, fold: Fold) -> bool:
    """Whether a pass over the rows looks up so much that trials of such spline planes take long."""
    cells = np.prod(fold.preparation.encoded.X.shape, dtype=float)
    n_planes = (candidate.n_planes or 1) * fold.preparation.n_classes
    return bool(cells * n_planes > DEAR_LOOKUPS)


def _row_losses(
    S: FloatArray, y: IntArray, weight: FloatArray, settings: Settings
) -> tuple[float, FloatArray]:
    """Temperature of held-out class scores, and each row's loss with it."""
    temperature = kernel.calibrate(S, y, weight, PRIOR_SCALE)[0] if settings.calibrate else 1.0
    return temperature, -log_softmax(S / temperature)[np.arange(len(y)), y]


class Excess(NamedTuple):
    """Mean paired difference of two candidates' losses, and its standard error."""

    mean: float
    error: float


def paired(losses: FloatArray, others: FloatArray, weight: FloatArray) -> Excess:
    share, excess = weight / weight.sum(), losses - others
    mean = float(share @ excess)
    return Excess(mean, float(np.sqrt(share**2 @ (excess - mean) ** 2)))


def is_level(other: Measured, best: Measured, n_errors: float) -> bool:
    """Whether ``other`` is worse by at most so many standard errors of the paired difference."""
    excess = paired(other.row_losses, best.row_losses, best.row_weights)
    return excess.mean <= n_errors * excess.error
