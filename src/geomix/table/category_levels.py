"""Which levels of a category get a weight of their own.

Two or more levels that occur once are pooled into one level, ``other``. A row of the smallest
weight in its class is one occurrence, a row of twice that weight two: weights that even out the
classes do not make the levels of one class frequent and those of another rare. At most 254 levels
are kept, ``other`` included: those of the largest weight (ties by text). ``other`` takes the rest.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.table.columns import Labels
from geomix.table.schema import Column, Schema

MOST_LEVELS = 254
FEWEST_TIMES = 2.0


def learn_schema(
    names: tuple[str, ...],
    columns: list[FloatArray | Labels],
    weight: FloatArray,
    classes: IntArray | None = None,
) -> tuple[Schema, FloatArray]:
    """The schema of a table and its encoded rows, (n_rows, n_columns).

    columns : the numbers or labels of each column;  rows of zero weight are ignored;  classes :
    (n_rows,) codes of the labels, None: one class
    """
    times = _occurrences(weight, np.zeros(len(weight), dtype=int) if classes is None else classes)
    learnt = []
    rows = np.empty((len(weight), len(columns)))
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if isinstance(column, Labels):
            learnt.append(_learnt(name, column, weight, times))
            rows[:, j] = learnt[j].codes(column)
        else:
            learnt.append(Column(name, "number"))
            rows[:, j] = column
    return Schema(tuple(learnt)), rows


def _occurrences(weight: FloatArray, classes: IntArray) -> FloatArray:
    """(n_rows,) how often each row counts as seen: its weight over the smallest of its class."""
    used = weight > 0.0
    least = np.full(classes.max(initial=0) + 1, np.inf)
    np.minimum.at(least, classes[used], weight[used])
    with np.errstate(over="ignore"):
        return np.where(used, weight / least[classes], 0.0)


def _learnt(name: str, labels: Labels, weight: FloatArray, times: FloatArray) -> Column:
    used = (weight > 0.0) & (labels.codes >= 0)

    def sums(of_row: FloatArray) -> FloatArray:
        counted = np.bincount(labels.codes[used], of_row[used], minlength=len(labels.levels))
        return counted.astype(np.float64)

    mass = sums(weight)
    if (mass > 0.0).sum() > MOST_LEVELS:
        mass = _exact_mass(labels, np.where(used, weight, 0.0))
    return learn_levels(name, labels.levels, mass, sums(times), labels.is_ordered)


def learn_levels(
    name: str, levels: list[Any], mass: FloatArray, times: FloatArray, is_ordered: bool = False
) -> Column:
    """A categorical column, from the weight of each level and how often it was seen.

    Levels are ordered by their texts, or as they come where ``is_ordered``.
    """
    in_order = range(len(levels)) if is_ordered else _by_text(levels)
    seen = [code for code in in_order if mass[code] > 0.0]
    often = [code for code in seen if times[code] >= FEWEST_TIMES]
    kept = often if len(seen) - len(often) >= 2 else seen
    if len(kept) + (len(kept) < len(seen)) > MOST_LEVELS:
        # By decreasing weight; the sort is stable, so ties stay in the order of their texts.
        heaviest = set(sorted(kept, key=lambda code: -mass[code])[: MOST_LEVELS - 1])
        kept = [code for code in kept if code in heaviest]
    return Column(name, "category", tuple(levels[code] for code in kept), len(kept) < len(seen))


def _by_text(levels: list[Any]) -> list[int]:
    """Codes sorted by the texts of the levels."""
    return sorted(range(len(levels)), key=lambda code: _text(levels[code]))


def _text(level: Any) -> tuple[str, str]:
    return str(level), type(level).__name__


def _exact_mass(labels: Labels, weight: FloatArray) -> FloatArray:
    """(n_levels,) weights by exact summation, which does not depend on the order of the rows."""
    order = np.argsort(labels.codes, kind="stable")
    at = np.searchsorted(labels.codes[order], np.arange(len(labels.levels) + 1))
    sorted_weight = weight[order]
    return np.array([math.fsum(sorted_weight[a:b]) for a, b in itertools.pairwise(at)])
