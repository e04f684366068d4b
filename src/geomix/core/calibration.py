"""Probabilities one can trust: one temperature by likelihood, and measures of calibration.

    p_c = softmax_c(s_c / T),   T = argmin over T > 0 of the held-out negative log-likelihood

One temperature never changes the most probable class. T = 1 is always a candidate, so the
held-out likelihood is never worse than without scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray

TEMPERATURE_RANGE = (0.05, 20.0)
# The same range for t = -log T.
LOG_RANGE = (-float(np.log(TEMPERATURE_RANGE[1])), -float(np.log(TEMPERATURE_RANGE[0])))
MOST_NEWTON_STEPS = 50
# Steps to and fro that shrink by less than this do not end within the most steps.
SLOWEST_TURN = 0.75
# Width of the prior on log T in a fit: few rows give T within 0.4 and 2.7.
PRIOR_SCALE = 0.5


def _weights(n_rows: int, sample_weight: FloatArray | None) -> FloatArray:
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},)!")
    if n_rows and not ((weight >= 0.0).all() and 0.0 < weight.sum() < np.inf):
        raise ValueError(
            "sample_weight must hold finite numbers of at least 0, with at least one above 0."
        )
    return weight / weight.sum() if n_rows else weight


def _probabilities_and_codes(P: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
    """Both as arrays; raises where y does not hold columns of P."""
    P, codes = np.asarray(P, dtype=np.float64), np.asarray(y)
    if P.ndim != 2 or codes.shape != (len(P),):
        raise ValueError(
            f"Got P of shape {P.shape} and y of shape {codes.shape}; expected (n_rows, n_classes) "
            "and (n_rows,)."
        )
    known = np.arange(P.shape[1])
    if codes.dtype.kind not in "iu" or not np.isin(codes, known).all():
        raise ValueError(
            f"y must hold codes from 0 to {len(known) - 1}, the columns of P; turn labels into "
            "codes with np.searchsorted(clf.classes_, y)."
        )
    return P, codes


def prior_pull(weight: FloatArray, prior_scale: float | None) -> float:
    """Curvature of the prior on log T per row, for weights that sum to one; None: no prior."""
    n_effective = 1.0 / float(weight @ weight)
    return 0.0 if prior_scale is None else 1.0 / (n_effective * prior_scale**2)


def fit_temperature(
    S: FloatArray,
    y: IntArray,
    sample_weight: FloatArray | None = None,
    prior_scale: float | None = None,
) -> float:
    """The temperature in [0.05, 20] that makes class scores ``S`` most likely given codes ``y``.

    ``prior_scale`` puts a normal prior of that width on log T around T = 1, which matters when
    there are few rows (all of them right, plain likelihood runs off to T = 0). None: no prior.

    Examples
    --------
    >>> S = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> round(fit_temperature(S, np.array([0, 0, 1, 1])), 2)  # right 3 times of 4, not 98 %
    3.64
    """
    return calibrate(S, y, sample_weight, prior_scale)[0]


def calibrate(
    S: FloatArray,
    y: IntArray,
    sample_weight: FloatArray | None = None,
    prior_scale: float | None = None,
) -> tuple[float, float]:
    """Temperature, as ``fit_temperature`` finds it, and the negative log-likelihood with it.

    Newton's method on t = -log T. With b = e^t the likelihood has, per row, derivative
    E_p[s] - s_y and curvature Var_p[s] in b, so dropping b times the first from the curvature
    in t keeps it positive and every step downhill. Steps may be too long for scores of a large
    scale, and go to and fro: one that turns round and is hardly shorter than the one before, or
    that leaves the range in which the slope changes its sign, ends in the middle of that range.
    """
    if len(y) == 0:
        return 1.0, 0.0
    weight = _weights(len(y), sample_weight)
    pull = prior_pull(weight, prior_scale)
    S = S - S.max(axis=1, keepdims=True)
    S_true = S[np.arange(len(y)), y]

    def at(t: float) -> tuple[float, float, float]:
        b = np.exp(t)
        E = np.exp(b * S)
        total = E.sum(axis=1)
        mean = (E * S).sum(axis=1) / total
        variance = (E * S**2).sum(axis=1) / total - mean**2
        nll = float(weight @ (np.log(total) - b * S_true))
        slope = b * float(weight @ (mean - S_true)) + pull * t
        return nll, slope, b**2 * float(weight @ variance) + pull

    t, (nll, slope, curvature) = 0.0, at(0.0)
    best_t, best_nll, best = 0.0, nll, nll
    below, above = LOG_RANGE  # the minimum lies between them
    last = 0.0
    for _ in range(MOST_NEWTON_STEPS):
        below, above = (t, above) if slope < 0.0 else (below, t)
        step = np.clip(-slope / max(curvature, 1e-12), -1.0, 1.0)
        moved = float(np.clip(t + step, *LOG_RANGE))
        turns_slowly = step * last < 0.0 and abs(moved - t) > SLOWEST_TURN * abs(last)
        if turns_slowly or not below <= moved <= above:
            moved = (below + above) / 2.0
        if abs(moved - t) < 1e-10:
            break
        last, t = moved - t, moved
        nll, slope, curvature = at(t)
        # An equal value counts as better: near the minimum the slope is more exact.
        if nll + 0.5 * pull * t**2 <= best + 1e-12:
            best_t, best_nll, best = t, nll, nll + 0.5 * pull * t**2
    return float(np.exp(-best_t)), best_nll


def row_losses(S: FloatArray, y: IntArray) -> FloatArray:
    """(n,) -log p of each row's own class, from class scores (already divided by temperature)."""
    A = np.ascontiguousarray(S.T)  # sums over few classes are quick along whole columns of rows
    A = A - A.max(axis=0)
    losses: FloatArray = np.log(np.exp(A).sum(axis=0)) - A[y, np.arange(len(y))]
    return losses


def negative_log_likelihood(
    P: FloatArray, y: IntArray, sample_weight: FloatArray | None = None
) -> float:
    """Weighted mean of -log p of the true class; a probability of zero counts as 1e-300."""
    P, y = _probabilities_and_codes(P, y)
    picked = np.maximum(P[np.arange(len(y)), y], 1e-300)
    return -float(_weights(len(y), sample_weight) @ np.log(picked))


def brier_score(P: FloatArray, y: IntArray, sample_weight: FloatArray | None = None) -> float:
    """Weighted mean of sum_c (p_c - 1{y = c})^2: between 0 and 2, lower is better."""
    P, y = _probabilities_and_codes(P, y)
    error = P.copy()
    error[np.arange(len(y)), y] -= 1.0
    return float(_weights(len(y), sample_weight) @ (error**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Confidence against accuracy in equal-width bins of the top probability.

    Empty bins hold NaN in ``confidence`` and ``accuracy`` and zero in ``share``.
    """

    edges: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    share: FloatArray

    @property
    def expected_error(self) -> float:
        """Expected calibration error: mean gap between confidence and accuracy."""
        filled = self.share > 0
        gap = np.abs(self.confidence[filled] - self.accuracy[filled])
        return float(self.share[filled] @ gap)


def reliability_curve(
    P: FloatArray, y: IntArray, n_bins: int = 15, sample_weight: FloatArray | None = None
) -> ReliabilityCurve:
    """Bin rows by the probability of their predicted class; bins are (a, b], the first [0, b]."""
    if not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"Got n_bins={n_bins!r}; expected an integer of at least 1.")
    P, y = _probabilities_and_codes(P, y)
    weight = _weights(len(y), sample_weight)
    top = P.max(axis=1)
    right = P.argmax(axis=1) == y
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.clip(np.searchsorted(edges, top) - 1, 0, n_bins - 1)
    share = np.bincount(bins, weight, n_bins).astype(float)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(bins, weight * top, n_bins) / share
        accuracy = np.bincount(bins, weight * right, n_bins) / share
    return ReliabilityCurve(edges, confidence, accuracy, share)


def expected_calibration_error(
    P: FloatArray, y: IntArray, n_bins: int = 15, sample_weight: FloatArray | None = None
) -> float:
    """ECE of the predicted class over ``n_bins`` equal-width bins (15, as in the paper).

    Examples
    --------
    >>> P = np.array([[0.8, 0.2], [0.8, 0.2], [0.8, 0.2], [0.8, 0.2]])
    >>> round(expected_calibration_error(P, np.array([0, 0, 1, 1])), 3)
    0.3
    """
    return reliability_curve(P, y, n_bins, sample_weight).expected_error
