"""The table of segments of one row (``moves.py``): where each column is cut, and what is allowed.

A number without limits has the same points for every row, its own cell apart: those are made once
per model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.explain.pair_grids import Cells
from geomix.explain.shapes import NumberShape
from geomix.geometry.constraints import Constraints
from geomix.geometry.moves import FAR, Moves, PairMoves
from geomix.geometry.options import REACH, on_grid

# A step of this many units is not rounded: its values are segments of their own. Smaller steps
# change a distance little.
COARSE = 0.2
MOST_STEPS = 250


def moves_of(
    form: Additive,
    row: FloatArray,
    free: Constraints,
    norm: float = 2.0,
    Z: FloatArray | None = None,
) -> Moves:
    """The table of all changes of a row; Z : its plane scores, if they are known."""
    Z = form.scores(row[None, :])[0] if Z is None else Z
    made = [_any_column(form, shape, row, free, norm) for shape in form.shapes]
    starts = np.concatenate([[0], np.cumsum([len(one["values"]) for one in made])])
    column_start = np.concatenate([[0], np.cumsum([len(one["at_a"]) for one in made])])

    def joined(name: str) -> Any:
        return np.concatenate([one[name] for one in made])

    # A group is the segments of one cell; columns without pairs have one.
    cell = joined("cell")
    is_first = np.diff(cell, prepend=-1) != 0
    is_first[column_start[:-1]] = True
    first = np.flatnonzero(is_first)
    group_start = np.searchsorted(first, column_start)
    offset = np.repeat(starts[:-1], np.diff(column_start))
    return Moves(
        form,
        row,
        Z,
        joined("F"),
        joined("values"),
        joined("at_a") + offset,
        joined("at_b") + offset,
        joined("t_a"),
        joined("t_b"),
        joined("c0"),
        column_start,
        joined("cell_low"),
        joined("cell_high"),
        np.cumsum(is_first) - 1,
        group_start,
        _pair_moves(form, row, np.split(cell[first], group_start[1:-1])),
        free.scale,
    )


def _pair_moves(form: Additive, row: FloatArray, present: list[IntArray]) -> tuple[PairMoves, ...]:
    """Pairs of which a column may leave its cell; present : the cells of each column's groups."""
    made = []
    for grid in form.grids.grids:
        j, k = grid.columns
        if len(present[j]) == len(present[k]) == 1 and _is_there(form, row, present, (j, k)):
            continue
        now = tuple(int(form.grids.cells[i].of(row[i : i + 1])[0]) for i in (j, k))
        F = grid.values[np.ix_(present[j], present[k])] - grid.values[now]
        made.append(PairMoves((j, k), F))
    return tuple(made)


def _is_there(
    form: Additive, row: FloatArray, present: list[IntArray], columns: tuple[int, int]
) -> bool:
    """Whether the only cells that two columns may have are those of the row."""
    cells = form.grids.cells
    return all(cells[j].of(row[j : j + 1])[0] == present[j][0] for j in columns)


def _any_column(
    form: Additive, shape: Any, row: FloatArray, free: Constraints, norm: float
) -> dict[str, Any]:
    j = shape.column
    cells = form.grids.cells.get(j)
    if not isinstance(shape, NumberShape) or np.isnan(row[j]) or free.low[j] == free.high[j]:
        return _column(shape, row, free, norm, cells)
    if cells is None and free.steps[j] is not None and free.steps[j] >= COARSE * free.scale[j]:
        made = _stepped_column(shape, row[j], free)
        if made is not None:
            return made
    if np.isneginf(free.low[j]) and np.isposinf(free.high[j]):
        return _free_column(_free_points(form)[j], row[j], free.scale[j])
    return _column(shape, row, free, norm, cells)


def _stepped_column(shape: NumberShape, x: float, free: Constraints) -> dict[str, Any] | None:
    """As ``_column``, for a number with large steps: one segment without length for each value,
    and straight lines beyond the values that are counted. None if there are too many values."""
    j = shape.column
    step, scale = free.steps[j], free.scale[j]
    assert step is not None
    ends = [max(free.low[j], min(x, shape.knots[0])), min(free.high[j], max(x, shape.knots[-1]))]
    is_curve = not shape.outer.any()  # whose values beyond the last knot are those of one step
    reach = step if is_curve else REACH * scale
    ends = [max(free.low[j], ends[0] - reach), min(free.high[j], ends[1] + reach)]
    first, last = np.ceil((ends[0] - x) / step - 1e-9), np.floor((ends[1] - x) / step + 1e-9)
    if not 0 <= last - first < MOST_STEPS:
        return None
    values = on_grid(x, np.arange(first, last + 1), step)
    n = len(values)
    a = b = np.arange(n)
    if free.low[j] < ends[0] and not is_curve:
        values = np.append(values, max(free.low[j], values[0] - FAR * scale))
        a, b = np.append(n, a), np.append(0, b)
    if free.high[j] > ends[1] and not is_curve:
        values = np.append(values, min(free.high[j], values[n - 1] + FAR * scale))
        a, b = np.append(a, n - 1), np.append(b, len(values) - 1)
    adds = shape(np.append(values, x))
    t = (values - x) / scale
    one_cell = np.zeros(len(values), dtype=np.intp)
    return _of_number(values, adds[:-1] - adds[-1], t, (a, b), (t[a], t[b]), one_cell)


def _of_number(
    values: FloatArray,
    F: FloatArray,
    t: FloatArray,
    ends: tuple[IntArray, IntArray],
    piece: tuple[FloatArray, FloatArray],
    cell: IntArray,
) -> dict[str, Any]:
    """The segments of a number. values, F, t, cell : of its points;  ends : points at both ends of
    each segment;  piece : t at both ends of the linear piece that contains it."""
    a, b = ends
    return {
        "values": values,
        "F": F,
        "at_a": a,
        "at_b": b,
        "t_a": t[a],
        "t_b": t[b],
        "c0": np.zeros(len(a)),
        "cell_low": piece[0],
        "cell_high": piece[1],
        "cell": cell[a],
    }


@dataclass(frozen=True, eq=False)
class _Points:
    """What ``_column`` needs of a number without limits, which does not depend on the row.

    values : (n,) knots and both sides of the pairs' thresholds;  F : (n, P);  cell : (n,)
    slopes : (P,) of a straight line, or None for a curve.
    """

    values: FloatArray
    F: FloatArray
    cell: IntArray
    slopes: FloatArray | None

    def with_cell(self, x: float) -> tuple[FloatArray, FloatArray, IntArray, int]:
        """Values, F against x, cells, and the place of x, which is added."""
        at = int(self.values.searchsorted(x))
        if at < len(self.values) and self.values[at] == x:
            return self.values, self.F - self.F[at], self.cell, at
        left, right = max(at - 1, 0), min(at, len(self.values) - 1)
        width = self.values[right] - self.values[left]
        part = (x - self.values[left]) / width if width > 0.0 else 0.0
        now = (1.0 - part) * self.F[left] + part * self.F[right]
        values = np.concatenate([self.values[:at], [x], self.values[at:]])
        F = np.concatenate([self.F[:at], now[None, :], self.F[at:]]) - now
        # Both sides of a threshold are points, so that the neighbours are of one cell.
        cell = np.concatenate([self.cell[:at], self.cell[right : right + 1], self.cell[at:]])
        return values, F, cell, at


@lru_cache(maxsize=4)
def _free_points(form: Additive) -> dict[int, _Points]:
    return {
        shape.column: _points_of(shape, form.grids.cells.get(shape.column))
        for shape in form.shapes
        if isinstance(shape, NumberShape)
    }


def _points_of(shape: NumberShape, cells: Cells | None) -> _Points:
    values = shape.knots
    if cells is not None and cells.cuts is not None:
        values = np.concatenate([values, cells.cuts, np.nextafter(cells.cuts, -np.inf)])
    values = np.unique(values)
    cell = np.zeros(len(values), dtype=np.intp) if cells is None else cells.of(values)
    is_line = len(shape.knots) == 1 and cells is None
    return _Points(values, shape(values), cell, shape.outer[:, 0] if is_line else None)


def _free_column(points: _Points, x: float, scale: float) -> dict[str, Any]:
    """As ``_column``, for a number without limits."""
    if points.slopes is None:
        values, F, cell, at = points.with_cell(x)
    else:
        reach = FAR * scale if points.slopes.any() else 0.0
        ends = [x, points.values[0], min(x, points.values[0]) - reach]
        values = np.unique([*ends, max(x, points.values[0]) + reach])
        F = (values - x)[:, None] * points.slopes
        cell, at = np.zeros(len(values), dtype=np.intp), -1
    t = (values - x) / scale
    a, b = _segment_ends(cell)
    low, high = t[a], t[b]
    if points.slopes is not None:
        low, high = np.full(len(a), t[0]), np.full(len(a), t[-1])
    elif len(values) > len(points.values) and 0 < at < len(values) - 1:
        # x cuts one linear piece into two segments.
        left, right = int(np.flatnonzero(b == at)[0]), int(np.flatnonzero(a == at)[0])
        high[left], low[right] = t[b[right]], t[a[left]]
    return _of_number(values, F, t, (a, b), (low, high), cell)


def _column(
    shape: Any, row: FloatArray, free: Constraints, norm: float, cells: Cells | None
) -> dict[str, Any]:
    j = shape.column
    if not isinstance(shape, NumberShape) or np.isnan(row[j]):
        codes = np.array(free.levels.get(j, [row[j]]))
        adds = shape(np.append(codes, row[j]))
        nothing = np.zeros(len(codes))
        at = np.arange(len(codes))
        return {
            "values": codes,
            "F": adds[:-1] - adds[-1],
            "at_a": at,
            "at_b": at,
            "t_a": nothing,
            "t_b": nothing,
            "c0": np.where((codes == row[j]) | np.isnan(codes), 0.0, free.level_cost[j] ** norm),
            "cell_low": nothing,
            "cell_high": nothing,
            "cell": np.zeros(len(codes), dtype=np.intp) if cells is None else cells.of(codes),
        }
    low, high, scale = free.low[j], free.high[j], free.scale[j]
    if low == high:
        return _fixed_column(shape, row[j], low, scale, cells)
    values = _points(shape, row[j], low, high, scale, cells)
    adds = shape(np.append(values, row[j]))
    t = (values - row[j]) / scale
    cell = np.zeros(len(values), dtype=np.intp) if cells is None else cells.of(values)
    a, b = _segment_ends(cell)
    piece = np.searchsorted(shape.knots, values[a] / 2.0 + values[b] / 2.0, "right")
    if len(shape.knots) == 1 and (shape.outer[:, 0] == shape.outer[:, 1]).all():
        piece[:] = 0
    piece = piece + (len(shape.knots) + 1) * cell[a]
    first = np.searchsorted(piece, piece, "left")
    last = np.searchsorted(piece, piece, "right") - 1
    within = t[a][first], t[b][last]
    return _of_number(values, adds[:-1] - adds[-1], t, (a, b), within, cell)


def _fixed_column(
    shape: NumberShape, x: float, value: float, scale: float, cells: Cells | None
) -> dict[str, Any]:
    """As ``_column``, for a number that has one value only."""
    values, t = np.array([value]), np.array([(value - x) / scale])
    at = np.zeros(1, dtype=np.intp)
    adds = shape(np.array([value, x])) if value != x else np.zeros((2, len(shape.outer)))
    cell = at if cells is None else cells.of(values)
    return _of_number(values, adds[:1] - adds[1:], t, (at, at), (t, t), cell)


def _segment_ends(cell: IntArray) -> tuple[IntArray, IntArray]:
    """Neighbouring points of the same cell; a cell with one point is a segment of no length."""
    at = np.arange(len(cell))
    if not cell[-1]:  # one cell only, cells ascend
        return (at[:-1], at[1:]) if len(at) > 1 else (at, at)
    before = np.diff(cell, prepend=-1) != 0
    after = np.append(before[1:], True)
    a = at[~after | before]
    return a, np.where(after[a], a, a + 1)


def _points(
    shape: NumberShape, x: float, low: float, high: float, scale: float, cells: Cells | None
) -> FloatArray:
    """Knots within the limits, the limits, the cell itself, far ends of straight lines, and both
    sides of the pairs' thresholds."""
    ends = [x, shape.knots[0], shape.knots[-1]]
    if shape.outer[:, 0].any() or np.isfinite(low):
        ends.append(low if np.isfinite(low) else min(x, shape.knots[0]) - FAR * scale)
    if shape.outer[:, 1].any() or np.isfinite(high):
        ends.append(high if np.isfinite(high) else max(x, shape.knots[-1]) + FAR * scale)
    points = np.concatenate([shape.knots, ends])
    if cells is not None and cells.cuts is not None:
        points = np.concatenate([points, cells.cuts, np.nextafter(cells.cuts, -np.inf)])
    return np.unique(np.clip(points, low, high))
