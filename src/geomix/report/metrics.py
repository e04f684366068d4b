"""How good the answers are, in figures with intervals, and the pictures' numbers behind them.

The accuracy has Wilson's interval of 95 %; the others the percentiles 2.5 and 97.5 over
``RESAMPLES`` resamples of the rows (the bootstrap), drawn from one fixed stream: same rows, same
figures. An interval covers the choice of rows. Figures of rows that trained the model
are too good, and no interval shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.calibration import ReliabilityCurve, reliability_curve

LEVEL = 0.95
RESAMPLES = 200
# Of more rows this many are resampled, and the interval is scaled to all rows.
MOST_ROWS_TO_RESAMPLE = 5_000


@dataclass(frozen=True)
class Metric:
    """name, meaning : in words;  low, high : ends of the interval of 95 %"""

    name: str
    meaning: str
    value: float
    low: float
    high: float
    is_share: bool


@dataclass(frozen=True, eq=False)
class Evaluation:
    """metrics : in the order of showing;  confusion : (C, C) counts, true class by predicted class
    reliability : of the predictions;  n_rows, n_right : rows, and correct predictions
    base_rate : accuracy of always giving the most frequent class, ``base_code``
    sure_share, sure_right : share of predictions of at least 90 %, and how many are correct
    """

    metrics: tuple[Metric, ...]
    confusion: IntArray
    reliability: ReliabilityCurve
    n_rows: int
    n_right: int
    base_code: int
    base_rate: float
    sure_share: float
    sure_right: float | None

    @property
    def accuracy(self) -> Metric:
        return self.metrics[0]

    def metric(self, name: str) -> Metric:
        """One of ``metrics`` by its name."""
        return next(one for one in self.metrics if one.name == name)


def evaluate(P: FloatArray, predicted: IntArray, y: IntArray, seed: int = 0) -> Evaluation:
    """Measure probabilities P (n, C) and answers against the true codes y."""
    n_rows, n_classes = P.shape
    confusion = np.zeros((n_classes, n_classes), dtype=np.intp)
    np.add.at(confusion, (y, predicted), 1)
    right = predicted == y
    counts = confusion.sum(axis=1)
    top = P.max(axis=1)
    sure = top >= 0.9
    return Evaluation(
        metrics=_metrics(P, predicted, y, np.random.default_rng(seed)),
        confusion=confusion,
        reliability=reliability_curve(P, y, 10),
        n_rows=n_rows,
        n_right=int(right.sum()),
        base_code=int(counts.argmax()),
        base_rate=float(counts.max() / n_rows),
        sure_share=float(sure.mean()),
        sure_right=float(right[sure].mean()) if sure.any() else None,
    )


def wilson(n_right: int, n_rows: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a share.

    Examples
    --------
    >>> low, high = wilson(95, 100)
    >>> round(low, 3), round(high, 3)
    (0.888, 0.978)
    """
    z = float(ndtri((1.0 + level) / 2.0))
    share = n_right / n_rows
    middle = (share + z**2 / (2 * n_rows)) / (1 + z**2 / n_rows)
    half = z * np.sqrt(share * (1 - share) / n_rows + z**2 / (4 * n_rows**2)) / (1 + z**2 / n_rows)
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)


def _metrics(
    P: FloatArray, predicted: IntArray, y: IntArray, rng: np.random.Generator
) -> tuple[Metric, ...]:
    n_rows = len(y)
    right = predicted == y
    ends = wilson(int(right.sum()), n_rows)
    made = [Metric("accuracy", "share of correct predictions", float(right.mean()), *ends, True)]
    values = {name: one.prepare(P, predicted, y)(np.ones(n_rows)) for name, one in MEASURES.items()}
    swings = _swings(P, predicted, y, rng)
    for name, measure in MEASURES.items():
        value, swing = values[name], swings[name][np.isfinite(swings[name])]
        if not np.isfinite(value) or not len(swing):
            continue
        low, high = value + np.quantile(swing, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
        most = 1.0 if measure.is_share else np.inf
        # Resampled rows are never better calibrated than the rows they come from.
        low, high = min(float(low), value), max(float(high), value)
        ends = max(low, 0.0), min(high, most)
        made.append(Metric(name, measure.meaning, value, *ends, measure.is_share))
    return tuple(made)


def _swings(
    P: FloatArray, predicted: IntArray, y: IntArray, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """By how much each measure moves from resample to resample, (RESAMPLES,)."""
    n_rows = len(y)
    if n_rows > MOST_ROWS_TO_RESAMPLE:
        some = rng.choice(n_rows, MOST_ROWS_TO_RESAMPLE, replace=False)
        P, predicted, y = P[some], predicted[some], y[some]
    n_drawn = len(y)
    measures = {name: one.prepare(P, predicted, y) for name, one in MEASURES.items()}
    middle = {name: at(np.ones(n_drawn)) for name, at in measures.items()}
    swings = {name: np.empty(RESAMPLES) for name in measures}
    for i in range(RESAMPLES):
        drawn = np.bincount(rng.integers(n_drawn, size=n_drawn), minlength=n_drawn).astype(float)
        for name, at in measures.items():
            swings[name][i] = at(drawn) - middle[name]
    # Fewer rows swing wider by the root of how many fewer they are.
    shrink = np.sqrt(n_drawn / n_rows)
    return {name: swing * shrink for name, swing in swings.items()}


# --- each measure: prepare once, then a function of the rows' weights ---

Weighted = Callable[[Any], float]


def _balanced_accuracy(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    n_classes, right = P.shape[1], predicted == y

    def at(weight: FloatArray) -> float:
        rows = np.bincount(y, weight, n_classes)
        hits = np.bincount(y, weight * right, n_classes)
        there = rows > 0
        return float((hits[there] / rows[there]).mean())

    return at


def _macro_f1(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    n_classes, right = P.shape[1], predicted == y

    def at(weight: FloatArray) -> float:
        rows, answers = np.bincount(y, weight, n_classes), np.bincount(predicted, weight, n_classes)
        there = rows + answers > 0
        hits = np.bincount(y, weight * right, n_classes)
        return float((2.0 * hits[there] / (rows + answers)[there]).mean())

    return at


def _area(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    """Macro mean over classes of the area under the one-against-the-rest ROC curve."""
    places = [np.unique(P[:, c], return_inverse=True) for c in range(P.shape[1])]

    def at(weight: FloatArray) -> float:
        areas = [
            _area_of(place.ravel(), len(values), y == c, weight)
            for c, (values, place) in enumerate(places)
        ]
        there = [area for area in areas if area is not None]
        return float(np.mean(there)) if there else np.nan

    return at


def _area_of(place: IntArray, n_values: int, own: BoolArray, weight: FloatArray) -> float | None:
    positive = np.bincount(place, weight * own, n_values)
    negative = np.bincount(place, weight * ~own, n_values)
    total = positive.sum() * negative.sum()
    if total == 0.0:
        return None
    below = np.cumsum(negative) - negative
    return float(positive @ (below + negative / 2.0) / total)


def _log_loss(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    losses = -np.log(np.maximum(P[np.arange(len(y)), y], 1e-300))
    return lambda weight: float(weight @ losses / weight.sum())


def _brier(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    error = P.copy()
    error[np.arange(len(y)), y] -= 1.0
    squares = (error**2).sum(axis=1)
    return lambda weight: float(weight @ squares / weight.sum())


def _calibration(P: FloatArray, predicted: IntArray, y: IntArray) -> Weighted:
    n_bins = 15
    top, right = P.max(axis=1), predicted == y
    bins = np.clip(np.ceil(top * n_bins).astype(int) - 1, 0, n_bins - 1)
    gap = top - right
    return lambda weight: float(
        np.abs(np.bincount(bins, weight * gap, n_bins)).sum() / weight.sum()
    )


@dataclass(frozen=True)
class _Measure:
    prepare: Callable[[FloatArray, IntArray, IntArray], Weighted]
    meaning: str
    is_share: bool


MEASURES = {
    "balanced accuracy": _Measure(
        _balanced_accuracy, "mean over classes of the share predicted correctly", True
    ),
    "macro F1": _Measure(_macro_f1, "mean over classes of the F1 score", True),
    "ROC area": _Measure(_area, "mean over classes, each against the rest", True),
    "log-loss": _Measure(_log_loss, "mean of -log of the true class's probability", False),
    "Brier score": _Measure(_brier, "mean squared error of the probabilities, 0 to 2", False),
    "calibration error": _Measure(
        _calibration, "mean gap between confidence and accuracy, 15 bins", True
    ),
}
