"""Which levels of a category are learnt one by one.

A level found in one distinct row only teaches nothing about the next row that has it: such
levels are pooled into one, ``other``, where there are at least two of them. Of the rest at most
254 are kept with ``other`` counted, those of the largest weight (of equals, the first by its
text), and ``other`` takes in what is left. Rows are counted as distinct ones, so that giving a
table twice changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.columns import Labels
from geomix.picked import all_rows
from geomix.rows import Rows, column_range, distinct_rows
from geomix.schema import Column, Table

MOST_LEVELS = 254
FEWEST_ROWS = 2


def learn_table(
    names: tuple[str, ...], columns: list[FloatArray | Labels], y: IntArray, weight: FloatArray
) -> tuple[Table, FloatArray]:
    """The table's description and its rows encoded, (n_rows, n_columns).

    columns : the numbers or labels of each column;  rows of zero weight count for nothing.
    """
    sorted_levels = [_by_text(column) if isinstance(column, Labels) else [] for column in columns]
    rows = np.empty((len(y), len(columns)))
    for j, column in enumerate(columns):
        rows[:, j] = _codes(column, sorted_levels[j]) if isinstance(column, Labels) else column
    used = np.flatnonzero(weight > 0.0)
    counted = Rows(all_rows(rows)[used], y[used], weight[used])
    distinct = distinct_rows(counted, column_range(counted.X))
    learnt = []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if not isinstance(column, Labels):
            learnt.append(Column(name, "number"))
            continue
        kept, has_other = _kept(rows[used, j], rows[distinct.X.index, j], weight[used])
        levels = tuple(sorted_levels[j][code] for code in kept)
        learnt.append(Column(name, "category", levels, has_other))
        rows[:, j] = _recoded(rows[:, j], kept, has_other, len(sorted_levels[j]))
    return Table(tuple(learnt)), rows


def _by_text(labels: Labels) -> list[Any]:
    return sorted(labels.levels, key=lambda level: (str(level), type(level).__name__))


def _codes(labels: Labels, levels: list[Any]) -> FloatArray:
    place = {level: float(code) for code, level in enumerate(levels)}
    lookup = np.array([*(place[level] for level in labels.levels), np.nan])
    return lookup[labels.codes]


def _kept(
    codes: FloatArray, distinct_codes: FloatArray, weight: FloatArray
) -> tuple[list[int], bool]:
    """Codes of the levels to keep, ascending, and whether others are pooled."""
    present = ~np.isnan(codes)
    found, n_rows = np.unique(distinct_codes[~np.isnan(distinct_codes)], return_counts=True)
    rare = n_rows < FEWEST_ROWS
    kept = found if rare.sum() < 2 else found[~rare]
    has_other = len(kept) < len(found)
    if len(kept) + has_other > MOST_LEVELS:
        # An exact sum does not depend on the order of the rows.
        order = np.argsort(codes[present], kind="stable")
        starts = np.searchsorted(codes[present][order], kept)
        ends = np.searchsorted(codes[present][order], kept, "right")
        sums = weight[present][order]
        total = [math.fsum(sums[i:j]) for i, j in zip(starts, ends, strict=True)]
        heaviest = np.lexsort((kept, -np.array(total)))[: MOST_LEVELS - 1]
        kept, has_other = np.sort(kept[heaviest]), True
    return kept.astype(int).tolist(), has_other


def _recoded(codes: FloatArray, kept: list[int], has_other: bool, n_levels: int) -> FloatArray:
    # A level of rows without weight alone was never seen.
    lookup = np.full(n_levels + 1, float(len(kept)) if has_other else -1.0)
    lookup[kept] = np.arange(len(kept))
    lookup[-1] = np.nan
    return lookup[np.where(np.isnan(codes), n_levels, codes).astype(np.intp)]
