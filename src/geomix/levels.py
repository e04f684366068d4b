"""Which levels of a category are learnt one by one.

A level that was seen once teaches nothing about the next row that has it: such levels are pooled
into one, ``other``, where there are at least two of them. Of the rest at most 254 are kept with
``other`` counted, those of the largest weight (of equals, the first by its text), and ``other``
takes in what is left. Seen once means a weight below twice the smallest of any row, so a row of
weight two has been seen twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.columns import Labels
from geomix.schema import Column, Table

MOST_LEVELS = 254
FEWEST_SIGHTS = 2.0


def learn_table(
    names: tuple[str, ...], columns: list[FloatArray | Labels], weight: FloatArray
) -> tuple[Table, FloatArray]:
    """The table's description and its rows encoded, (n_rows, n_columns).

    columns : the numbers or labels of each column;  rows of zero weight count for nothing.
    """
    learnt = []
    rows = np.empty((len(weight), len(columns)))
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if isinstance(column, Labels):
            learnt.append(_learnt(name, column, weight))
            rows[:, j] = learnt[j].codes(column)
        else:
            learnt.append(Column(name, "number"))
            rows[:, j] = column
    return Table(tuple(learnt)), rows


def _learnt(name: str, labels: Labels, weight: FloatArray) -> Column:
    used = (weight > 0.0) & (labels.codes >= 0)
    mass = np.bincount(labels.codes[used], weight[used], minlength=len(labels.levels))
    seen = [code for code in _by_text(labels.levels) if mass[code] > 0.0]
    least = FEWEST_SIGHTS * weight.min(where=weight > 0.0, initial=np.inf)
    rare = [code for code in seen if mass[code] < least]
    kept = seen if len(rare) < 2 else [code for code in seen if mass[code] >= least]
    if len(kept) + (len(kept) < len(seen)) > MOST_LEVELS:
        heaviest = set(_by_weight(kept, labels, np.where(used, weight, 0.0))[: MOST_LEVELS - 1])
        kept = [code for code in kept if code in heaviest]
    levels = tuple(labels.levels[code] for code in kept)
    return Column(name, "category", levels, len(kept) < len(seen))


def _by_text(levels: list[Any]) -> list[int]:
    """Codes in the order of the levels' texts."""
    return sorted(range(len(levels)), key=lambda code: _text(levels[code]))


def _text(level: Any) -> tuple[str, str]:
    return str(level), type(level).__name__


def _by_weight(codes: list[int], labels: Labels, weight: FloatArray) -> list[int]:
    """Codes from heavy to light, equals as they came."""
    order = np.argsort(labels.codes, kind="stable")
    at = np.searchsorted(labels.codes[order], np.arange(len(labels.levels) + 1))
    sorted_weight = weight[order]
    # An exact sum does not depend on the order of the rows.
    mass = {code: math.fsum(sorted_weight[at[code] : at[code + 1]]) for code in codes}
    return sorted(codes, key=lambda code: -mass[code])
