"""Which lift, how many planes, which penalty: candidates compete on held-out likelihood.

From simple to rich: linear with one plane per class, linear with the budget's planes, Fourier
with one, Fourier with the budget's. Each looks for its penalty by steps of ten. On few rows a
richer one has to beat a simpler one by more than the noise of the comparison: there the best of
twenty candidates is mostly the luckiest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
# How many standard errors worse a ten times stronger penalty may be and still be preferred.
STRONGER_PENALTY_ERRORS = 0.5


@dataclass(frozen=True, eq=False)
class Measured:
    """A candidate with its held-out result: one loss per held-out row, after calibration."""

    candidate: Candidate
    n_planes: int
    row_losses: FloatArray
    row_weights: FloatArray
    temperature: float
    n_iter: int

    @property
    def loss(self) -> float:
        return float(np.average(self.row_losses, weights=self.row_weights))

    def as_trial(self, *, chosen: bool) -> Trial:
        made = self.candidate
        return Trial(
            made.lift,
            self.n_planes,
            made.gamma_factor,
            made.l2,
            self.loss,
            self.temperature,
            self.n_iter,
            chosen,
        )


def default_candidate(recipe: Recipe, *, lift: str, one_plane: bool = False) -> Candidate:
    """The candidate of a lift before anything has been measured."""
    l2 = DEFAULT_L2[lift] if recipe.l2 == "auto" else float(recipe.l2)
    return Candidate(lift, l2, 1.0 if lift == "fourier" else None, one_plane)


def choose_candidate(
    folds: list[Fold],
    recipe: Recipe,
    seed: int,
    watch: Watch,
    *,
    lifts: tuple[str, ...],
    handicap: float,
) -> tuple[Measured, list[Measured]]:
    """The winner and everything that was measured on the way, in order.

    ``handicap`` is how many standard errors worse a simpler model may be and still win.
    """
    measured: dict[Candidate, Measured] = {}

    def measure(candidate: Candidate) -> Measured:
        if candidate not in measured:
            measured[candidate] = _measure(candidate, folds, recipe, seed, watch)
        return measured[candidate]

    finalists = list(_finalists(folds, recipe, lifts, measure))
    return _simplest_of_the_best(finalists, handicap), list(measured.values())


def _finalists(
    folds: list[Fold],
    recipe: Recipe,
    lifts: tuple[str, ...],
    measure: Callable[[Candidate], Measured],
) -> Iterator[Measured]:
    """The best of every kind of model, simple kinds first."""
    several = any(fold.clusters.planes_per_class.max() > 1 for fold in folds)
    for lift in lifts:
        best = None
        if recipe.n_planes == "auto" or not several:
            first = default_candidate(recipe, lift=lift, one_plane=True)
            best = _tuned(_widths(first, recipe), recipe, measure)
            yield best
        if several:
            first = default_candidate(recipe, lift=lift)
            # One plane has found the width and penalty already: start from those.
            if best and lift == "fourier":
                starts = [replace(best.candidate, one_plane=False)]
            else:
                starts = _widths(first, recipe)
            yield _tuned(starts, recipe, measure)


def _widths(candidate: Candidate, recipe: Recipe) -> list[Candidate]:
    if candidate.lift == "linear" or recipe.gamma != "auto":
        return [candidate]
    return [replace(candidate, gamma_factor=factor) for factor in GAMMA_FACTORS]


def _tuned(
    starts: list[Candidate], recipe: Recipe, measure: Callable[[Candidate], Measured]
) -> Measured:
    """The best start, its penalty stepped by ten, one way then the other, while that helps."""
    best = min((measure(start) for start in starts), key=lambda m: m.loss)
    if recipe.l2 != "auto":
        return best
    for factor in (10.0, 0.1):
        while stepped := _step(best.candidate, factor):
            other = measure(stepped)
            if other.loss >= best.loss:
                break
            best = other
    chosen = best
    while stepped := _step(chosen.candidate, 10.0):
        stronger = measure(stepped)
        if not _is_level(stronger, best, STRONGER_PENALTY_ERRORS):
            break
        chosen = stronger
    return chosen


def _step(candidate: Candidate, factor: float) -> Candidate | None:
    """The candidate with its penalty multiplied, or None at the end of the range."""
    low, high = L2_RANGE[candidate.lift]
    l2 = float(f"{candidate.l2 * factor:.6g}")  # 1e-6 * 10 is 1e-5, not a neighbour of it
    return replace(candidate, l2=l2) if low <= l2 <= high else None


def _simplest_of_the_best(finalists: list[Measured], handicap: float) -> Measured:
    """The first finalist that is not worse than the best by more than the handicap."""
    best = min(finalists, key=lambda m: m.loss)
    return next(one for one in finalists if _is_level(one, best, handicap))


def _is_level(other: Measured, best: Measured, n_errors: float) -> bool:
    """Whether ``other`` is worse by at most so many standard errors of the paired difference."""
    share = best.row_weights / best.row_weights.sum()
    excess = other.row_losses - best.row_losses
    mean = float(share @ excess)
    return mean <= n_errors * float(np.sqrt(share**2 @ (excess - mean) ** 2))


def _measure(
    candidate: Candidate, folds: list[Fold], recipe: Recipe, seed: int, watch: Watch
) -> Measured:
    limit = min(recipe.max_iter, ITERATIONS_PER_TRIAL)
    fits = [train_on_fold(candidate, f, recipe, seed, watch, "choose", limit) for f in folds]
    S = np.vstack([held_out_scores(fit, f, recipe) for fit, f in zip(fits, folds, strict=True)])
    y, weight = pooled(folds)
    temperature = fit_temperature(S, y, weight, PRIOR_SCALE) if recipe.calibrate else 1.0
    row_losses = -log_softmax(S / temperature)[np.arange(len(y)), y]
    n_iter = int(np.median([fit.trained.n_iter for fit in fits]))
    n_planes = fits[0].trained.planes.n_planes
    return Measured(candidate, n_planes, row_losses, weight, temperature, n_iter)
