"""The rows that a report carries, and what its controls need to know of the columns.

A bounded number of rows, chosen to be worth looking at:

    Typical      correct, with about the median confidence and the usual cells of their class, in
                 turn of every class
    Surprising   wrong although the model was most confident
    Wrong        wrong with about the median confidence of all wrong predictions
    Unsure       the smallest lead of the first class over the second
    Any          drawn at random
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture

EACH_KIND = 8


@dataclass(frozen=True)
class SampledRow:
    """place : of the row in the table given;  kind : why it was chosen"""

    place: int
    kind: str


def sampled_rows(
    P: FloatArray,
    predicted: IntArray,
    y: IntArray,
    n_rows: int,
    oddness: FloatArray | None = None,
    seed: int = 0,
) -> tuple[SampledRow, ...]:
    """At most ``n_rows`` rows, no row twice, in the order of showing.

    oddness : (n,) how far a row's cells are from those of its class (``cell_oddness``)
    """
    top = P.max(axis=1)
    wrong = np.flatnonzero(predicted != y)
    ranked = np.sort(P, axis=1)
    kinds = {
        "Typical": _typical(top, predicted, y, np.zeros(len(y)) if oddness is None else oddness),
        "Surprising": wrong[np.argsort(-top[wrong], kind="stable")],
        "Wrong": wrong[_by_distance_to_median(top[wrong])],
        "Unsure": np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable"),
    }
    each = min(EACH_KIND, n_rows // 4)
    chosen: dict[int, str] = {}
    for kind, places in kinds.items():
        fresh = [int(place) for place in places if int(place) not in chosen]
        chosen |= dict.fromkeys(fresh[:each], kind)
    at_random = np.random.default_rng(seed).permutation(len(P))
    rest = [int(place) for place in at_random[:n_rows] if int(place) not in chosen]
    chosen |= dict.fromkeys(sorted(rest[: max(n_rows - len(chosen), 0)]), "Any")
    return tuple(SampledRow(place, kind) for place, kind in chosen.items())


def _typical(top: FloatArray, predicted: IntArray, y: IntArray, oddness: FloatArray) -> IntArray:
    """Of each class's correct predictions the one nearest to their median confidence and to their
    usual cells, then of each class the next, and so on; the most frequent class first."""
    right = np.flatnonzero(predicted == y)
    turns = np.zeros(len(right))
    n_rows = np.bincount(y[right])
    for code in np.unique(y[right]):
        own = np.flatnonzero(y[right] == code)
        rank = _ranks(np.abs(top[right[own]] - np.median(top[right[own]])))
        rank += _ranks(oddness[right[own]])
        turns[own[np.argsort(rank, kind="stable")]] = np.arange(len(own))
    return right[np.lexsort((-n_rows[y[right]], turns))]


def _ranks(values: FloatArray) -> FloatArray:
    """Equal values have one rank."""
    return np.searchsorted(np.sort(values), values).astype(np.float64)


def cell_oddness(encoded: FloatArray, is_category: Any, y: IntArray) -> FloatArray:
    """(n,) mean over the columns of how far a cell is from the usual one of its class.

    A number counts by its distance from the class's median in deviations, at most 3; a category
    by 1 unless it is the class's most frequent level; a missing cell by 1.
    """
    total = np.zeros(len(y))
    for j, of_levels in enumerate(is_category):
        x = encoded[:, j]
        spread = float(np.nanstd(x)) if not np.isnan(x).all() else 0.0
        for code in np.unique(y):
            own = np.flatnonzero((y == code) & ~np.isnan(x))
            if not len(own):
                continue
            if of_levels:
                levels, counts = np.unique(x[own], return_counts=True)
                away = (x[own] != levels[counts.argmax()]).astype(np.float64)
            else:
                away = np.minimum(np.abs(x[own] - np.median(x[own])) / (spread or 1.0), 3.0)
            total[own] += away
        total[np.isnan(x)] += 1.0
    return total / max(len(list(is_category)), 1)


def _by_distance_to_median(values: FloatArray) -> IntArray:
    if not len(values):
        return np.empty(0, dtype=np.intp)
    return np.argsort(np.abs(values - np.median(values)), kind="stable")


def control_facts(model: GeometricMixture, encoded: FloatArray) -> list[dict[str, Any]]:
    """For each number its range over the rows and a step for its slider; nothing for categories."""
    made: list[dict[str, Any]] = []
    for j, column in enumerate(model_schema(model).columns):
        if column.kind == "category":
            made.append({})
            continue
        there = encoded[~np.isnan(encoded[:, j]), j]
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
        if low == high:
            low, high = low - 1.0, high + 1.0
        whole = bool(len(there) and np.all(there == np.round(there)))
        made.append({"low": low, "high": high, "step": 1.0 if whole else _step(low, high)})
    return made


def _step(low: float, high: float) -> float:
    """A power of ten, about a thousandth of the range."""
    width = high / 1000.0 - low / 1000.0
    return float(10.0 ** np.floor(np.log10(width))) if width > 0.0 else 1.0


def missing_shares(model: GeometricMixture) -> list[float]:
    """For each column the share of training rows where a standardised number was missing.

    A number that is sometimes missing has a 0/1 column beside it, whose mean this is; see
    ``contributions.js`` for what it is needed for.
    """
    shares = np.zeros(model.n_features)
    expand, standardize = model.expand, model.standardize
    if expand is None or model.lift.reads_cells:
        return shares.tolist()
    numbers = ~model_schema(model).is_category
    for place, output in enumerate(standardize.kept.tolist()):
        j = int(expand.column_of[output])
        if expand.is_indicator[output] and numbers[j]:
            shares[j] = standardize.mean[place]
    return shares.tolist()
