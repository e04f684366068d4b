"""The spline lift: a plane is a sum of lookup tables, one for each column.

    z(x) = b + sum_j table_j(x_j)

A number has a curve, piecewise linear between knots and constant beyond them. A category has a
value for each level, missing cells have one value, and a pair of columns has a grid of cells.
The weights are the *steps* between neighbouring values,

    phi_k(x) = clip((x - t_{k-1}) / (t_k - t_{k-1}), 0, 1) - mean_k      curve, k = 1 .. K
    phi_l(x) = 1{x = l} - mean_l                                        levels
    phi_kl(x, y) = 1{x >= s_k} 1{y >= t_l} - mean_kl                     pair

so that an L2 penalty makes curves smooth. ``mean`` is over the training rows where the cell is
not missing. Every table is then zero on average, and zero for a level that was never seen.

Training needs no such matrix: ``binned`` turns a column into at most 256 codes, and scores are
sums of looked-up values (``Binned``). The codes stand for representative values, which are the
values themselves where a column has no more than 255 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray, fields_alone
from geomix.core.curve_sums import CurveSums
from geomix.core.spline_parts import CurvePart, LevelPart, PairPart, SplinePart
from geomix.table.row_views import DenseRows, blocks, numbers

MOST_BINS = 255  # and one for missing cells: a code fits in a byte
MOST_KNOTS = 248  # a column needs some bins between its knots
# Bins of each side of a pair: about four rows for each cell.
ROWS_PER_PAIR_CELL, PAIR_BINS_RANGE = 4, (8, 32)
CELLS_AT_ONCE = 2**16  # sums over fewer cells take less time for all curves at once
MOST_ROWS = 50_000  # knots and means come from at most this many rows
NO_KNOTS = np.empty(0)


@dataclass(frozen=True, eq=False)
class SplineLift:
    """phi of every part side by side. A cell is a number, a level's code, or NaN (missing)."""

    parts: tuple[SplinePart, ...]
    n_columns: int
    kind = "spline"
    reads_cells = True
    is_additive = True

    def __getstate__(self) -> dict[str, Any]:
        return fields_alone(self)

    @cached_property
    def n_outputs(self) -> int:
        return sum(part.n_steps for part in self.parts)

    @property
    def n_pairs(self) -> int:
        return sum(isinstance(part, PairPart) for part in self.parts)

    @cached_property
    def step_start(self) -> IntArray:
        """First step of each part, with the total at the end."""
        return np.concatenate([[0], np.cumsum([part.n_steps for part in self.parts])]).astype(
            np.intp
        )

    @cached_property
    def column_of(self) -> IntArray:
        """(n_parts,) the column of each part; of a pair, its first."""
        return np.array([part.columns[0] for part in self.parts], dtype=np.intp)

    @cached_property
    def neighbours(self) -> tuple[IntArray, IntArray]:
        """(n_outputs,) the step below and the step above each step along a number. The first and
        the last step of a curve, and steps without an order, have themselves."""
        low, high = np.arange(self.n_outputs), np.arange(self.n_outputs)
        for part, steps in self.by_part():
            end = steps.start + part.n_ordered
            low[steps.start + 1 : end] -= 1
            high[steps.start : max(end - 1, steps.start)] += 1
        return low, high

    @cached_property
    def curves(self) -> IntArray:
        """Which of the parts are curves."""
        return np.flatnonzero([isinstance(part, CurvePart) for part in self.parts])

    @cached_property
    def curve_sums(self) -> CurveSums:
        return CurveSums([self.parts[j] for j in self.curves])

    @cached_property
    def steps_of_curves(self) -> IntArray:
        """Which of the steps are those of curves, part by part."""
        found = [self._steps_of_parts[j] for j in self.curves]
        return np.concatenate([np.arange(steps.start, steps.stop) for steps in found])

    def by_part(self) -> Iterator[tuple[SplinePart, slice]]:
        """Each part, and where its steps are among all of them."""
        return zip(self.parts, self._steps_of_parts, strict=True)

    def of_column(self, column: int) -> list[tuple[SplinePart, slice]]:
        """The parts that read a column, and where their steps are."""
        return self._by_column.get(column, [])

    @cached_property
    def _by_column(self) -> dict[int, list[tuple[SplinePart, slice]]]:
        found: dict[int, list[tuple[SplinePart, slice]]] = {}
        for part, steps in self.by_part():
            for column in part.columns:
                found.setdefault(column, []).append((part, steps))
        return found

    @cached_property
    def _steps_of_parts(self) -> list[slice]:
        return [slice(*ends) for ends in pairwise(self.step_start.tolist())]

    def __call__(self, X: Any) -> FloatArray:
        """The features themselves, (n_rows, n_outputs): for reference, and for few rows."""
        if getattr(X, "format", None) is not None:
            raise TypeError("Sparse rows cannot have a spline lift; pass dense rows.")
        if not self.parts:
            return np.zeros((len(X), 0))
        return np.hstack([part.phi(X) for part in self.parts])

    def contributions(self, row: FloatArray, weights: FloatArray) -> FloatArray:
        """What each column of a row adds to the score of a plane, (n_columns,). Half of a pair's
        value goes to each of its two columns."""
        by_column = np.zeros(self.n_columns)
        for part, steps in self.by_part():
            value = part.phi(row[None, :])[0] @ weights[steps]
            for column in part.columns:
                by_column[column] += value / len(part.columns)
        return by_column

    def slopes_along(self, column: int) -> IntArray:
        """Steps of the curve of a column of numbers; none where it has no curve."""
        for part, steps in self.of_column(column):
            if part.n_ordered and len(part.columns) == 1:
                return steps.start + np.arange(part.n_ordered)
        return np.empty(0, dtype=np.intp)

    def binned(self, X: DenseRows) -> Binned:
        codes = np.empty((len(X), len(self.parts)), dtype=self.code_type)
        for rows, block in blocks(X):
            for j, part in enumerate(self.parts):
                codes[rows, j] = part.codes(block)
        return Binned(codes, self)

    @cached_property
    def code_type(self) -> Any:
        most = max((part.n_bins for part in self.parts), default=0)
        if most > 2**16:
            raise ValueError(
                f"A part of the spline lift has {most} bins; expected at most {2**16}. Merge rare "
                "levels, or leave that column or pair out."
            )
        return np.uint8 if most <= 256 else np.uint16


@dataclass(frozen=True, eq=False)
class Binned:
    """Rows of a spline lift as codes, (n_rows, n_parts), which stand for rows of phi.

    It behaves like the matrix phi in the products that training needs. units : (n_outputs,) a
    factor on each column of phi, or None. A larger unit weakens the penalty on that step.
    """

    codes: IntArray
    lift: SplineLift
    units: FloatArray | None = None

    __array_ufunc__ = None
    dtype = np.dtype(np.float64)  # of the matrix that it stands for

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.lift.n_outputs

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Binned:
        return Binned(self.codes[rows], self.lift, self.units)

    def __matmul__(self, right: FloatArray) -> FloatArray:
        """(n_rows, n_outputs) @ (n_outputs, n) by looking up."""
        columns = right if right.ndim > 1 else right[:, None]
        if self.units is not None:
            columns = self.units[:, None] * columns
        out = np.zeros((len(self), columns.shape[1]))
        for part, steps, codes in self.by_part():
            out += part.values_of_bins(columns[steps])[codes]
        return out.reshape(len(self), *right.shape[1:])

    def __rmatmul__(self, left: FloatArray) -> FloatArray:
        """(n, n_rows) @ (n_rows, n_outputs) by counting."""
        rows = np.atleast_2d(left)
        out = np.zeros((len(rows), self.lift.n_outputs))
        for part, steps, codes in self.by_part():
            at = codes.astype(np.intp)
            sums = np.stack([np.bincount(at, row, part.n_bins) for row in rows]) * 1.0
            out[:, steps] = part.sums_of_bins(sums)
        return self._in_units(out).reshape(*left.shape[:-1], self.lift.n_outputs)

    def group_sums(self, group: IntArray, weight: FloatArray, n_groups: int) -> FloatArray:
        """Weighted sum of the rows of each group, (n_groups, n_outputs), in one pass.

        ``G @ self`` with G[g, i] = weight[i] where row i is of group g.
        """
        out = np.zeros((n_groups, self.lift.n_outputs))
        at_once = self.codes.size <= CELLS_AT_ONCE and len(self.lift.curves) > 0
        if at_once:
            out[:, self.lift.steps_of_curves] = self._sums_of_curves(group, weight, n_groups)
        for part, steps, codes in self.by_part():
            if at_once and isinstance(part, CurvePart):
                continue
            mass = np.bincount(group * part.n_bins + codes, weight, n_groups * part.n_bins)
            out[:, steps] = part.sums_of_bins(mass.reshape(n_groups, part.n_bins) * 1.0)
        return self._in_units(out)

    def _sums_of_curves(self, group: IntArray, weight: FloatArray, n_groups: int) -> FloatArray:
        sums, curves = self.lift.curve_sums, self.lift.curves
        bins = sums.bins(self.codes[:, curves], group).ravel()
        size = n_groups * len(curves) * sums.room
        mass = np.bincount(bins, np.repeat(weight, len(curves)), size) * 1.0
        return sums(mass.reshape(n_groups, -1))

    def _in_units(self, of_steps: FloatArray) -> FloatArray:
        return of_steps if self.units is None else of_steps * self.units

    def by_part(self) -> Iterator[tuple[SplinePart, slice, IntArray]]:
        for (part, steps), codes in zip(self.lift.by_part(), self.codes.T, strict=True):
            yield part, steps, codes


# --- fitting ---


def fit_spline(
    X: DenseRows,
    weight: FloatArray,
    n_levels: IntArray,
    n_knots: int,
    pairs: tuple[tuple[int, int], ...] = (),
    has_missing: BoolArray | None = None,
    binned: Callable[[SplineLift, Any], Binned] = SplineLift.binned,
    more_knots: Mapping[int, FloatArray] = MappingProxyType({}),
) -> SplineLift:
    """Knots and bins from the rows ``X``, whose category j has ``n_levels[j]`` levels (0: a
    number). Constant columns get no part; means are weighted. Above ``MOST_ROWS`` rows, that many
    are used, evenly spread. ``has_missing`` (n_columns,) marks columns that have missing cells in
    rows other than ``X``. ``binned`` codes rows, as ``SplineLift.binned`` does. ``more_knots`` are
    values of a column that are knots beside the ``n_knots`` quantiles."""
    table, weight = sampled(X, weight)
    missing: BoolArray = np.asarray(np.isnan(table).any(axis=0))
    missing = missing if has_missing is None else missing | has_missing
    parts: list[SplinePart] = []
    for column in range(table.shape[1]):
        part = (
            _fit_levels(table, column, int(n_levels[column]), bool(missing[column]))
            if n_levels[column]
            else _fit_curve(
                table, column, n_knots, bool(missing[column]), more_knots.get(column, NO_KNOTS)
            )
        )
        if part is not None:
            parts.append(part)
    parts.extend(_fit_pair(table, pair, n_levels) for pair in pairs)
    return _centred_lift(parts, table, weight, binned)


def fit_pairs(
    X: DenseRows,
    weight: FloatArray,
    n_levels: IntArray,
    pairs: tuple[tuple[int, int], ...],
    binned: Callable[[SplineLift, Any], Binned] = SplineLift.binned,
) -> SplineLift:
    """The tables over pairs of columns alone, as ``fit_spline`` would make them."""
    table, weight = sampled(X, weight)
    parts = [_fit_pair(table, pair, n_levels) for pair in pairs]
    return _centred_lift(parts, table, weight, binned)


def _centred_lift(
    parts: Sequence[SplinePart],
    X: FloatArray,
    weight: FloatArray,
    binned: Callable[[SplineLift, Any], Binned],
) -> SplineLift:
    codes = binned(SplineLift(tuple(parts), X.shape[1]), X).codes
    made = (_centred(part, codes[:, j], weight) for j, part in enumerate(parts))
    return SplineLift(tuple(made), X.shape[1])


def sampled(X: DenseRows, *of_rows: Any) -> tuple[Any, ...]:
    """The rows that knots and means come from, at most ``MOST_ROWS``, evenly spread, and what
    belongs to each of them."""
    if len(X) <= MOST_ROWS:
        return numbers(X), *of_rows
    chosen = np.linspace(0, len(X) - 1, MOST_ROWS).astype(np.intp)
    return numbers(X[chosen]), *(each[chosen] for each in of_rows)


def centred(part: Any, X: FloatArray, weight: FloatArray) -> Any:
    """The part with the weighted mean of its phi over the rows that are not missing."""
    return _centred(part, part.codes(X), weight)


def _centred(part: Any, codes: IntArray, weight: FloatArray) -> Any:
    mass = np.bincount(codes, weight, part.n_bins)
    mass[~part.counts_in_mean()] = 0.0
    total = mass.sum()
    mean = part.sums_of_bins(mass[None] / total)[0] if total > 0.0 else part.mean
    made = replace(part, mean=mean)
    vars(made).update(vars(part) | {"mean": mean})  # bins and edges, which need no mean
    return made


def _fit_curve(
    X: FloatArray, column: int, n_knots: int, has_missing: bool, more: FloatArray
) -> CurvePart | None:
    x = X[:, column]
    present = np.sort(x[~np.isnan(x)])
    distinct = present[np.concatenate([[True], present[1:] > present[:-1]])] if len(present) else x
    if len(present) == 0 or (len(distinct) < 2 and not has_missing):
        return None
    if len(distinct) < 2:  # one value, or missing
        distinct = np.array([distinct[0], np.nextafter(distinct[0], np.inf)])
    knots = _spread(present, distinct, min(n_knots, MOST_KNOTS - len(more)))
    knots = np.union1d(knots, more) if len(more) else knots
    values = distinct
    if len(distinct) > MOST_BINS:
        values = np.union1d(knots, _spread(present, distinct, MOST_BINS - len(knots)))
    return CurvePart(column, knots, values, has_missing, np.zeros(len(knots) - 1 + has_missing))


def _spread(present: FloatArray, distinct: FloatArray, most: int) -> FloatArray:
    """At most ``most`` of the distinct values: half of them quantiles of the rows, half quantiles
    of the distinct values.

    Quantiles of the rows alone would nearly all be equal in a column that is mostly one value.
    """
    if len(distinct) <= most:
        return distinct
    half = most // 2
    by_row = np.linspace(0.0, 1.0, half) * (len(present) - 1)
    # Shifted by half a step: where no value repeats, the two sets of quantiles interleave.
    by_value = (np.arange(half) + 0.5) / half * (len(distinct) - 1)
    return np.union1d(
        present[np.round(by_row).astype(np.intp)], distinct[np.round(by_value).astype(np.intp)]
    )


def _fit_levels(X: FloatArray, column: int, n_levels: int, has_missing: bool) -> LevelPart | None:
    x = X[:, column]
    if len(np.unique(x[~np.isnan(x)])) + has_missing < 2:
        return None
    return LevelPart(column, n_levels, has_missing, np.zeros(n_levels + has_missing))


def _fit_pair(X: FloatArray, pair: tuple[int, int], n_levels: IntArray) -> PairPart:
    n_bins = bins_per_side(len(X))
    sides = [_thresholds(X[:, column], int(n_levels[column]), n_bins) for column in pair]
    counts = [
        (int(n_levels[column]) if cut is None else len(cut) + 1) + 1
        for column, cut in zip(pair, sides, strict=True)
    ]
    n_steps = (counts[0] - 1) * (counts[1] - 1)
    return PairPart(pair, sides[0], sides[1], counts[0], counts[1], np.zeros(n_steps))


def bins_per_side(n_rows: int) -> int:
    """Bins of each side of a pair, for a table of ``n_rows`` rows."""
    return int(np.clip(np.sqrt(n_rows / ROWS_PER_PAIR_CELL), *PAIR_BINS_RANGE))


def _thresholds(x: FloatArray, n_levels: int, n_bins: int) -> FloatArray | None:
    if n_levels:
        return None
    present = np.sort(x[~np.isnan(x)])
    distinct = np.unique(present)
    if len(distinct) <= n_bins:
        return distinct[1:]
    at = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    return np.unique(present[np.round(at * (len(present) - 1)).astype(np.intp)])
