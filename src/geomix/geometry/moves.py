"""All changes of one row as a table of segments.

A column's domain is cut into segments on which every plane's shape is linear: between knots, or a
single level. With t the change in units of ``Constraints.scale``, a segment costs c0 + t^2 (or c0
+ |t|) and adds F_a + (F_b - F_a) (t - t_a) / (t_b - t_a) to the planes' scores. Given a gain h at
every point and a multiplier l, the cheapest change of every column by itself,

    min over t of  cost(t) - l h(t),

has a closed form on every segment, so one l costs one pass over the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.explain.shapes import NumberShape
from geomix.geometry.constraints import Constraints

FAR = 1e4  # a straight line is searched up to this many standard deviations


@dataclass(frozen=True, eq=False)
class Moves:
    """Segments of all columns side by side.

    F : (n_points, P) what a point adds to the planes' scores against the row as it is
    values : (n_points,) the cell at a point
    at_a, at_b : (n_segments,) points at the ends;  t_a, t_b : their changes
    c0 : (n_segments,) fixed cost of a segment (of another level)
    column_start : (n_columns + 1,) first segment of each column
    cell_low, cell_high : (n_segments,) ends of the linear piece that contains the segment
    Z : (P,) scores of the row as it is;  row : (n_columns,) encoded
    """

    form: Additive
    row: FloatArray
    Z: FloatArray
    F: FloatArray
    values: FloatArray
    at_a: IntArray
    at_b: IntArray
    t_a: FloatArray
    t_b: FloatArray
    c0: FloatArray
    column_start: IntArray
    cell_low: FloatArray
    cell_high: FloatArray
    scale: FloatArray

    @cached_property
    def width(self) -> FloatArray:
        return self.t_b - self.t_a

    @cached_property
    def safe_width(self) -> FloatArray:
        return np.where(self.width > 0.0, self.width, 1.0)

    @cached_property
    def columns(self) -> IntArray:
        return np.arange(len(self.column_start) - 1)

    @cached_property
    def column_of(self) -> IntArray:
        return np.repeat(np.arange(len(self.column_start) - 1), np.diff(self.column_start))

    def slopes(self, segments: IntArray) -> FloatArray:
        """(n, P) rise of the planes' scores per unit of t."""
        rise = self.F[self.at_b[segments]] - self.F[self.at_a[segments]]
        slopes: FloatArray = rise / self.safe_width[segments, None]
        return slopes

    def cheapest(self, h: FloatArray, multiplier: float, norm: float) -> Change:
        """Every column's cheapest change at one multiplier; h : (n_points,) gain of a point."""
        h_a, h_b = h[self.at_a], h[self.at_b]
        slope = (h_b - h_a) / self.safe_width
        if norm == 2.0:
            t = np.clip(0.5 * multiplier * slope, self.t_a, self.t_b)
            value = self.c0 + t * t - multiplier * (h_a + slope * (t - self.t_a))
        else:
            value_a = np.abs(self.t_a) - multiplier * h_a
            value_b = np.abs(self.t_b) - multiplier * h_b
            t = np.where(value_a <= value_b, self.t_a, self.t_b)
            value = self.c0 + np.minimum(value_a, value_b)
        best = np.minimum.reduceat(value, self.column_start[:-1])
        hits = np.flatnonzero(value == best[self.column_of])
        segments = hits[np.searchsorted(self.column_of[hits], self.columns)]
        return Change(segments, t[segments])

    def scores(self, change: Change) -> FloatArray:
        """(P,) plane scores after a change."""
        a, b = self.at_a[change.segments], self.at_b[change.segments]
        part = (change.t - self.t_a[change.segments]) / self.safe_width[change.segments]
        scores: FloatArray = self.Z + (1.0 - part) @ self.F[a] + part @ self.F[b]
        return scores

    def cost(self, change: Change, norm: float) -> float:
        """Distance of the changed row: numbers in units of scale, a level one."""
        fixed = float(self.c0[change.segments].sum())
        if norm == 2.0:
            return float(np.sqrt(fixed + change.t @ change.t))
        return fixed + float(np.abs(change.t).sum())

    def changed_row(self, change: Change) -> FloatArray:
        """The row after a change, encoded."""
        a, b = self.at_a[change.segments], self.at_b[change.segments]
        t_a, t_b = self.t_a[change.segments], self.t_b[change.segments]
        with np.errstate(invalid="ignore"):
            moved = self.row + change.t * self.scale
        moved = np.where(change.t == 0.0, self.row, moved)
        # The ends of a segment are exact cells: a knot, a limit or a level.
        moved = np.where((change.t == t_a) & (t_a != 0.0), self.values[a], moved)
        moved = np.where((change.t == t_b) & (t_b != 0.0), self.values[b], moved)
        return np.where(self.c0[change.segments] > 0.0, self.values[a], moved)


@dataclass(frozen=True, eq=False)
class Change:
    """A segment and a t for every column, (n_columns,)."""

    segments: IntArray
    t: FloatArray


def moves_of(form: Additive, row: FloatArray, free: Constraints, norm: float = 2.0) -> Moves:
    """The table of all changes of a row."""
    Z = form.scores(row[None, :])[0]
    made = [_column(form, shape, row, free, norm) for shape in form.shapes]
    starts = np.concatenate([[0], np.cumsum([len(one["values"]) for one in made])])
    column_start = np.concatenate([[0], np.cumsum([len(one["at_a"]) for one in made])])

    def joined(name: str) -> Any:
        return np.concatenate([one[name] for one in made])

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
        free.scale,
    )


def _column(
    form: Additive, shape: Any, row: FloatArray, free: Constraints, norm: float
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
        }
    low, high, scale = free.low[j], free.high[j], free.scale[j]
    values = _points(shape, row[j], low, high, scale)
    adds = shape(np.append(values, row[j]))
    t = (values - row[j]) / scale
    a = np.arange(max(len(values) - 1, 1))
    b = np.minimum(a + 1, len(values) - 1)
    piece = np.searchsorted(shape.knots, values[a] / 2.0 + values[b] / 2.0, "right")
    if len(shape.knots) == 1 and (shape.outer[:, 0] == shape.outer[:, 1]).all():
        piece[:] = 0
    first = np.searchsorted(piece, piece, "left")
    last = np.searchsorted(piece, piece, "right") - 1
    return {
        "values": values,
        "F": adds[:-1] - adds[-1],
        "at_a": a,
        "at_b": b,
        "t_a": t[a],
        "t_b": t[b],
        "c0": np.zeros(len(a)),
        "cell_low": t[a][first],
        "cell_high": t[b][last],
    }


def _points(shape: NumberShape, x: float, low: float, high: float, scale: float) -> FloatArray:
    """Knots within the limits, the limits, the cell itself, and far ends of straight lines."""
    ends = [x, shape.knots[0], shape.knots[-1]]
    if shape.outer[:, 0].any() or np.isfinite(low):
        ends.append(low if np.isfinite(low) else min(x, shape.knots[0]) - FAR * scale)
    if shape.outer[:, 1].any() or np.isfinite(high):
        ends.append(high if np.isfinite(high) else max(x, shape.knots[-1]) + FAR * scale)
    points = np.concatenate([shape.knots, ends])
    return np.unique(np.clip(points, low, high))
