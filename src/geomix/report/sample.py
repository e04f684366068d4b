"""The rows that a report carries, and what its controls need to know of the columns.

A bounded number of rows, chosen to be worth looking at: those where the model is most torn, those
answered wrongly with the greatest confidence, the surest of each class, and some at random.
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
    P: FloatArray, predicted: IntArray, y: IntArray, n_rows: int, seed: int = 0
) -> tuple[SampledRow, ...]:
    """At most ``n_rows`` rows, no row twice, in the order of showing."""
    top = P.max(axis=1)
    wrong = np.flatnonzero(predicted != y)
    ranked = np.sort(P, axis=1)
    torn = np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")
    kinds = {
        "Least certain": torn,
        "Surest of the wrong answers": wrong[np.argsort(-top[wrong], kind="stable")],
        "Surest of each class": _surest(P, predicted),
    }
    each = min(EACH_KIND, n_rows // 4)
    chosen: dict[int, str] = {}
    for kind, places in kinds.items():
        fresh = [int(place) for place in places if int(place) not in chosen]
        chosen |= dict.fromkeys(fresh[:each], kind)
    at_random = np.random.default_rng(seed).permutation(len(P))
    rest = [int(place) for place in at_random[:n_rows] if int(place) not in chosen]
    chosen |= dict.fromkeys(sorted(rest[: max(n_rows - len(chosen), 0)]), "Drawn at random")
    return tuple(SampledRow(place, kind) for place, kind in chosen.items())


def _surest(P: FloatArray, predicted: IntArray) -> IntArray:
    """Of each class's answers the surest, then of each the next, and so on."""
    order = np.argsort(-P.max(axis=1), kind="stable")
    turn = np.empty(len(P), dtype=np.intp)
    for code in range(P.shape[1]):
        own = order[predicted[order] == code]
        turn[own] = np.arange(len(own))
    return order[np.argsort(turn[order], kind="stable")]


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
