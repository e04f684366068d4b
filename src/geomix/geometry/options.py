"""The values that each column of a row may take, with their costs: a discrete set of changes.

    categories        the allowed levels
    stepped numbers   row value + k * step within the limits (or within the knots, beyond which a
                      curve is constant), thinned if there are too many
    other numbers     knots, limits and points between them, as starting values for refinement

Option 0 of every column is the present cell. An option is dropped if a cheaper one is at least as
good for every plane of the target and no better for every other plane; of a column in pairs, only
options of the same cell are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.planes import Planes
from geomix.explain.additive_form import Additive
from geomix.explain.pair_grids import Cells
from geomix.explain.shapes import NumberShape, Shape
from geomix.geometry.constraints import Constraints

POINTS = 4  # values between two knots of a continuous curve
MOST_DECIMALS = 10  # a number with more is not a decimal one
REACH = 20.0  # standard deviations along a straight line


@dataclass(frozen=True, eq=False)
class Options:
    """values : (k,) encoded cells;  F : (k, P) change of the planes' scores;  cost : (k,) in
    powers of the norm;  cells : (k,) cells of the pairs' grids, zero for a column without pairs
    is_complete : whether these are all the values the column may take."""

    column: int
    values: FloatArray
    F: FloatArray
    cost: FloatArray
    cells: IntArray
    is_complete: bool

    def __len__(self) -> int:
        return len(self.values)

    def take(self, some: IntArray) -> Options:
        return replace(
            self,
            values=self.values[some],
            F=self.F[some],
            cost=self.cost[some],
            cells=self.cells[some],
        )


def column_options(
    form: Additive, row: FloatArray, free: Constraints, norm: float, most: int
) -> list[Options]:
    """One entry per column that may change; most : values of a number, more are thinned."""
    made = []
    for j, shape in enumerate(form.shapes):
        cells = form.grids.cells.get(j)
        values, is_complete = column_values(shape, row, free, most, cells)
        if len(values) == 1 and (values[0] == row[j] or np.isnan(row[j])):
            continue
        F = shape(np.append(values, row[j]))
        cost = free.change_cost(j, values, row[j]) ** norm
        at = np.zeros(len(values), dtype=np.intp) if cells is None else cells.of(values)
        made.append(Options(j, values, F[:-1] - F[-1], cost, at, is_complete))
    return made


def column_values(
    shape: Shape, row: FloatArray, free: Constraints, most: int, cells: Cells | None = None
) -> tuple[FloatArray, bool]:
    """The present cell, then the others, and whether they are all that are allowed."""
    j = shape.column
    x = row[j]
    if np.isnan(x):  # a missing cell stays missing
        return np.array([x]), True
    if j in free.levels:
        others = [code for code in free.levels[j] if code != x]
        if x not in free.levels[j]:
            return np.array(others, dtype=float), True  # the present level is not allowed
        return np.array([x, *others]), True
    if free.low[j] == free.high[j] == x:
        return np.array([x]), True
    assert isinstance(shape, NumberShape)
    if free.low[j] > free.high[j]:
        return np.empty(0), True
    step = free.steps[j]
    low, high = _range(shape, x, free.low[j], free.high[j], free.scale[j], step)
    cuts = np.empty(0) if cells is None or cells.cuts is None else cells.cuts
    if step is None:
        points = _points(shape, x, low, high, most)
        if len(cuts):
            sides = np.concatenate([cuts, np.nextafter(cuts, -np.inf)])
            points = np.unique(np.append(points, sides[(sides >= low) & (sides <= high)]))
        return _first(x, points), False
    first, last = int(np.ceil((low - x) / step - 1e-9)), int(np.floor((high - x) / step + 1e-9))
    is_bounded = not shape.outer.any() or (low == free.low[j] and high == free.high[j])
    if last - first < most:
        grid = np.arange(first, last + 1, dtype=float)
        return _first(x, np.unique(on_grid(x, grid, step))), bool(is_bounded)
    near = np.arange(max(first, -most // 4), min(last, most // 4) + 1)
    far = np.linspace(first, last, most // 4).round()
    knots = _thinned(np.round((np.clip(shape.knots, low, high) - x) / step), most // 4)
    # The first and the last value of each cell of the pairs.
    ends = np.ceil((cuts - x) / step)
    chosen = np.concatenate([near, far, knots, ends, ends - 1.0])
    chosen = np.unique(np.clip(chosen, first, last))
    return _first(x, np.unique(on_grid(x, chosen, step))), False


def on_grid(x: float, k: FloatArray, step: float) -> FloatArray:
    """x + k step, without the rounding errors of decimal steps."""
    of_x, of_step = _decimals(x), _decimals(step)
    values = x + k * step
    return values if of_x is None or of_step is None else np.round(values, max(of_x, of_step))


def _decimals(x: float) -> int | None:
    """Decimals of a short decimal number; None where it has many."""
    return next((n for n in range(MOST_DECIMALS) if round(x, n) == x), None)


def _first(x: float, values: FloatArray) -> FloatArray:
    """Distinct values with the present cell first, if the limits allow it."""
    others = values[values != x]
    return np.concatenate([[x], others]) if len(others) < len(values) else others


def _range(
    shape: NumberShape, x: float, low: float, high: float, scale: float, step: float | None
) -> tuple[float, float]:
    """Limits, or the ends of the curve, or REACH units along a straight line. Of limits beyond
    those the nearest value remains, or the nearest step."""
    more = step or 0.0  # at least one value of the grid, also beyond the last knot
    reach = REACH * scale if shape.outer.any() else more
    first, last = min(x, shape.knots[0]) - reach, max(x, shape.knots[-1]) + reach
    return max(low, min(first, high - more)), min(high, max(last, low + more))


def _thinned(values: FloatArray, most: int) -> FloatArray:
    """At most ``most`` of ascending values, evenly spaced by position."""
    return values[:: len(values) // most + 1]


def _points(shape: NumberShape, x: float, low: float, high: float, most: int) -> FloatArray:
    ends = np.unique(np.clip(np.concatenate([shape.knots, [x, low, high]]), low, high))
    ends = np.unique(np.append(_thinned(ends, most // POINTS), [x, low, high]))
    parts = np.linspace(ends[:-1], ends[1:], POINTS, endpoint=False)
    points = np.concatenate([parts.ravel(), ends, [x]])
    return np.unique(np.clip(points, low, high))


def affordable(options: list[Options], most_cost: float) -> list[Options]:
    """Without options that cost more, and without columns that then stay as they are."""
    made = [
        one if not (one.cost > most_cost).any() else one.take(np.flatnonzero(one.cost <= most_cost))
        for one in options
    ]
    return [one for one in made if len(one) != 1 or one.cost[0] > 0.0]


def promising(
    options: list[Options], planes: Planes, target: int, norm: float, most: int
) -> list[Options]:
    """At most ``most`` columns: those with the largest gain for their cost, in order."""
    if len(options) <= most:
        return options
    own = planes.class_of == target
    ratios = [_gain_for_cost(one, own, norm) for one in options]
    best = np.argsort(ratios, kind="stable")[::-1][:most]
    return [options[i] for i in np.sort(best)]


def _gain_for_cost(options: Options, own: BoolArray, norm: float) -> float:
    """The largest gain of the target per unit of distance; infinite where a change is required."""
    if options.cost[0] > 0.0:
        return float("inf")
    gain = options.F[1:, own].max(axis=1) - options.F[1:, ~own].min(axis=1)
    ratios = gain / np.maximum(options.cost[1:] ** (1.0 / norm), np.finfo(float).tiny)
    return float(ratios.max(initial=0.0))


def undominated(options: Options, planes: Planes, target: int) -> Options:
    """Without options that a cheaper one of the same cell dominates."""
    own = planes.class_of == target
    cells = np.unique(options.cells) if options.cells.any() else [0]
    by_cell = [np.flatnonzero(options.cells == cell) for cell in cells]
    kept = np.sort(np.concatenate([_best_of(options, some, own) for some in by_cell]))
    if options.cost[0] == 0.0 and kept[0] != 0:
        kept = np.append(0, kept)
    return options.take(kept)


def _best_of(options: Options, some: IntArray, own: BoolArray) -> IntArray:
    """Of some options, those that no other one dominates."""
    F, cost = options.F[some], options.cost[some]
    if own.sum() == 1 and (~own).sum() == 1:
        gain = (F[:, own] - F[:, ~own])[:, 0]
        order = np.lexsort((-gain, cost))
        best = np.maximum.accumulate(np.concatenate([[-np.inf], gain[order][:-1]]))
        return some[order[gain[order] > best + 1e-12]]
    return some[_pareto(F, cost, own)]


def _pareto(F: FloatArray, cost: FloatArray, own: BoolArray) -> IntArray:
    # b dominates a if cost_b <= cost_a and, with d = F_b - F_a, min of own d >= max of other d.
    gap = F[:, None, :] - F[None, :, :]  # [b, a]
    worst, most = gap[..., own].min(axis=2), gap[..., ~own].max(axis=2)
    cheaper = cost[:, None] <= cost[None, :]
    is_better = cheaper & (worst >= most)
    np.fill_diagonal(is_better, False)
    # Of equal options the first is kept.
    equal = is_better & is_better.T
    is_better &= ~(equal & (np.arange(len(F))[:, None] > np.arange(len(F))[None, :]))
    return np.flatnonzero(~is_better.any(axis=0))
