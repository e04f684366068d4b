"""One trial: a candidate trained and validated on every fold, and how two of them compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core import kernel
from geomix.core.calibration import PRIOR_SCALE, row_losses
from geomix.search.candidates import Candidate
from geomix.search.constants import (
    ERRORS_TO_DROP,
    FEWEST_ROWS,
    ITERATIONS_PER_TRIAL,
    MARGIN_TO_DROP,
)
from geomix.search.fitted import Fitted, Watch
from geomix.search.folds import Fold, pooled
from geomix.search.several_fits import train_on_folds
from geomix.training.history import Trial
from geomix.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Measured:
    """A candidate with its losses on the validation rows, after calibration.

    n_rows : that it was trained on;  n_numbers : weights and biases of its planes;  is_cut_short :
    whether training ended at the limit of a trial;  n_measured : leading rows that were measured,
    None for all (``measure`` fills in the others);  n_pairs : that were found, at most those of
    the candidate.
    """

    candidate: Candidate
    n_planes: int
    n_numbers: int
    row_losses: FloatArray
    row_weights: FloatArray
    accuracy: float
    temperature: float
    n_rows: int
    n_iter: int
    is_cut_short: bool = False
    n_measured: int | None = None
    n_pairs: int = 0

    @cached_property
    def loss(self) -> float:
        return weighted_mean(self.row_losses, self.row_weights)

    @property
    def name(self) -> str:
        return f"{self.candidate.name}, {self.n_planes} planes"

    def as_trial(self, family: str, rung: int, verdict: str, *, chosen: bool) -> Trial:
        made = self.candidate
        return Trial(
            family,
            rung,
            made.lift,
            self.n_planes,
            self.n_pairs,
            made.pair_penalty,
            made.gamma_factor,
            made.l2,
            made.shrink_to_mean,
            made.adaptive,
            made.learn_lift,
            made.n_knots,
            self.loss,
            self.accuracy,
            self.temperature,
            self.n_numbers,
            self.n_rows,
            self.n_iter,
            verdict,
            chosen,
        )


class KeptFits(NamedTuple):
    """The fits of a trial, one for each fold, and the class scores of all validation rows."""

    folds: list[Fold]
    fits: list[Fitted]
    scores: FloatArray


def measure(
    candidate: Candidate,
    folds: list[Fold],
    settings: Settings,
    watch: Watch | None,
    rivals: Sequence[Measured] = (),
    *,
    is_last_rung: bool,
    threads: int = 1,
) -> tuple[Measured, KeptFits]:
    """Train on every fold and validate; stop after some folds where a rival is clearly better.

    The rows of the folds that were not trained then count as the rival's, plus the mean excess.
    The fits that were made come along. rivals : the best of all, and the candidate that this one
    is a step from;  threads : folds that are trained side by side.
    """
    limit = most_iterations(candidate, settings, is_last_rung=is_last_rung)
    y, weight = pooled(folds)
    fits: list[Fitted] = []
    S = np.empty((0, folds[0].preparation.n_classes))
    trained = train_on_folds(candidate, folds, settings, watch, limit, threads)
    for fold, fitted in zip(folds, trained, strict=False):
        S = np.vstack([S, fitted.held_out_scores(settings.sharpness)])
        n = len(S)
        fits.append(fitted.to_keep(is_quick=fold.is_quick_to_make))
        fold.unpack()
        if len(folds) > 1 and fold.is_alone and not fitted.features.is_tiny:
            fold.forget()  # all folds together have five times as many rows as a rung
        if n < len(y) and (n < FEWEST_ROWS.to_hold_out or not rivals):
            continue
        temperature, losses = losses_of(S, y[:n], weight[:n], settings)
        if n < len(y):
            rival = next((one for one in rivals if _is_behind(losses, one, weight[:n])), None)
            if rival is not None:
                excess = excess_of(losses, rival.row_losses[:n], weight[:n])
                losses = np.concatenate([losses, rival.row_losses[n:] + excess.mean])
                break
    trained.close()
    accuracy = weighted_mean(S.argmax(axis=1) == y[:n], weight[:n])
    found = _measured(candidate, fits, losses, weight, accuracy, temperature, folds[0], limit)
    return replace(found, n_measured=n), KeptFits(folds, fits, S)


def _is_behind(losses: FloatArray, rival: Measured, weight: FloatArray) -> bool:
    """Whether the losses of the first rows are clearly larger than the rival's."""
    excess = excess_of(losses, rival.row_losses[: len(losses)], weight)
    return not excess.is_within(ERRORS_TO_DROP, MARGIN_TO_DROP.of_best * rival.loss)


def _measured(
    candidate: Candidate,
    fits: list[Fitted],
    losses: FloatArray,
    weight: FloatArray,
    accuracy: float,
    temperature: float,
    fold: Fold,
    limit: int,
) -> Measured:
    n_iter = int(np.median([fit.trained.n_iter for fit in fits]))
    planes = fits[0].features.expanded(fits[0].trained.planes)
    return Measured(
        candidate,
        planes.n_planes,
        planes.weights.size + planes.biases.size,
        losses,
        weight,
        accuracy,
        temperature,
        fold.n_train,
        n_iter,
        n_iter >= limit and not candidate.has_adaptive_steps,
        n_pairs=fits[0].features.feature_map.lift.n_pairs,
    )


def most_iterations(candidate: Candidate, settings: Settings, *, is_last_rung: bool) -> int:
    """Planes with an adaptive penalty keep gaining after the iterations of a trial. The schedules
    of Adam span its epochs: a trial with fewer of them would measure another training."""
    if settings.solver == "adam" or (candidate.has_adaptive_steps and is_last_rung):
        return settings.max_iter
    return min(settings.max_iter, ITERATIONS_PER_TRIAL)


def losses_of(
    S: FloatArray, y: IntArray, weight: FloatArray, settings: Settings
) -> tuple[float, FloatArray]:
    """Temperature of the validation rows' class scores, and each row's loss with it."""
    temperature = kernel.calibrate(S, y, weight, PRIOR_SCALE)[0] if settings.calibrate else 1.0
    return temperature, row_losses(S / temperature, y)


class Excess(NamedTuple):
    """Mean paired difference of two candidates' losses, and its standard error."""

    mean: float
    error: float

    def is_within(self, n_errors: float, margin: float) -> bool:
        """Whether the difference is at most ``n_errors`` standard errors plus a margin."""
        return self.mean <= n_errors * self.error + margin

    def is_clear(self, margin: float) -> bool:
        """Whether the difference is both more than noise and more than a margin."""
        return self.mean > max(ERRORS_TO_DROP * self.error, margin)


def weighted_mean(values: FloatArray | BoolArray, weight: FloatArray) -> float:
    return float((values * weight).sum() / weight.sum())


def paired(one: Measured, other: Measured) -> Excess:
    """How much worse ``one`` is than ``other``, on the validation rows that both were measured
    on: rows that were filled in have no noise of their own."""
    n = min(len(m.row_losses) if m.n_measured is None else m.n_measured for m in (one, other))
    return excess_of(one.row_losses[:n], other.row_losses[:n], one.row_weights[:n])


def excess_of(losses: FloatArray, others: FloatArray, weight: FloatArray) -> Excess:
    share, excess = weight / weight.sum(), losses - others
    mean = float(share @ excess)
    return Excess(mean, float(np.sqrt(share**2 @ (excess - mean) ** 2)))
