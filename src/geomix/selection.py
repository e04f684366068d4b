"""Which lift and which penalty: candidates compete on held-out likelihood after calibration.

First every lift is tried at its middle penalty, then the best of each kind looks for a better
penalty by steps of ten. A Fourier lift has to beat the linear one by more than the noise of
the comparison, because a linear model can be read and folded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import FloatArray
from geomix.calibration import PRIOR_SCALE, fit_temperature
from geomix.folds import Candidate, Fold, Watch, held_out_scores, pooled, train_on_fold
from geomix.history import Trial
from geomix.pooling import log_softmax
from geomix.recipe import Recipe

GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)
# Middle penalty and the range that the search may walk through, per lift. Fourier features
# are bounded by one, standardised columns are not: their weights live on other scales.
DEFAULT_L2 = {"linear": 1e-4, "fourier": 1e-5}
L2_RANGE = {"linear": (1e-6, 1e-1), "fourier": (1e-7, 1e-2)}
ITERATIONS_PER_TRIAL = 100


@dataclass(frozen=True, eq=False)
class Measured:
    """A candidate with its held-out result: one loss per held-out row, after calibration."""

    candidate: Candidate
    row_losses: FloatArray
    row_weights: FloatArray
    temperature: float
    n_iter: int | None

    @property
    def loss(self) -> float:
        return float(np.average(self.row_losses, weights=self.row_weights))

    def as_trial(self, chosen: bool = False) -> Trial:
        made = self.candidate
        gamma = made.gamma_factor
        return Trial(made.lift, gamma, made.l2, self.loss, self.temperature, self.n_iter, chosen)


def default_candidate(recipe: Recipe, *, lift: str) -> Candidate:
    """The candidate of a given lift when nothing can be measured."""
    l2 = DEFAULT_L2[lift] if recipe.l2 == "auto" else float(recipe.l2)
    return Candidate(lift, l2, 1.0 if lift == "fourier" else None)


def choose_candidate(
    folds: list[Fold], recipe: Recipe, seed: int, watch: Watch, *, lifts: tuple[str, ...]
) -> tuple[Measured, list[Measured]]:
    """The winner and everything that was measured on the way, in order."""
    measured: dict[Candidate, Measured] = {}

    def measure(candidate: Candidate) -> Measured:
        if candidate not in measured:
            measured[candidate] = _measure(candidate, folds, recipe, seed, watch)
        return measured[candidate]

    finalists = []
    for lift in lifts:
        best = min((measure(c) for c in _first_round(lift, recipe)), key=lambda m: m.loss)
        if recipe.l2 == "auto":
            best = _walk_l2(best, measure)
        finalists.append(best)
    return _prefer_linear(finalists), list(measured.values())


def _first_round(lift: str, recipe: Recipe) -> list[Candidate]:
    candidate = default_candidate(recipe, lift=lift)
    if lift == "linear" or recipe.gamma != "auto":
        return [candidate]
    return [replace(candidate, gamma_factor=factor) for factor in GAMMA_FACTORS]


def _walk_l2(best: Measured, measure: Callable[[Candidate], Measured]) -> Measured:
    """Step the penalty by factors of ten, one way then the other, while the loss falls."""
    low, high = L2_RANGE[best.candidate.lift]
    for factor in (10.0, 0.1):
        while True:
            l2 = best.candidate.l2 * factor
            if not low * 0.99 <= l2 <= high * 1.01:
                break
            stepped = measure(replace(best.candidate, l2=l2))
            if stepped.loss >= best.loss:
                break
            best = stepped
    return best


def _prefer_linear(finalists: list[Measured]) -> Measured:
    best = min(finalists, key=lambda m: m.loss)
    for other in finalists:
        if other.candidate.lift == "linear" and other is not best:
            gain = other.row_losses - best.row_losses
            share = best.row_weights / best.row_weights.sum()
            mean = float(share @ gain)
            standard_error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
            if mean <= standard_error:
                return other
    return best


def _measure(
    candidate: Candidate, folds: list[Fold], recipe: Recipe, seed: int, watch: Watch
) -> Measured:
    limit = min(recipe.max_iter, ITERATIONS_PER_TRIAL)
    fits = [train_on_fold(candidate, f, recipe, seed, watch, "choose", limit) for f in folds]
    S = np.vstack([held_out_scores(fit, f, recipe) for fit, f in zip(fits, folds, strict=True)])
    y, weight = pooled(folds)
    temperature = fit_temperature(S, y, weight, PRIOR_SCALE) if recipe.calibrate else 1.0
    row_losses = -log_softmax(S / temperature)[np.arange(len(y)), y]
    n_best = [fit.trained.n_best for fit in fits if fit.trained.n_best is not None]
    n_iter = int(np.median(n_best)) if n_best else None
    return Measured(candidate, row_losses, weight, temperature, n_iter)
