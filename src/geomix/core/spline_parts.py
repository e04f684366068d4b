"""The parts of a spline lift: the features phi of one column, or of a pair of columns.

    phi_k(x) = clip((x - t_{k-1}) / (t_k - t_{k-1}), 0, 1) - mean_k      CurvePart, k = 1 .. K
    phi_l(x) = 1{x = l} - mean_l                                        LevelPart
    phi_kl(x, y) = 1{x >= s_k} 1{y >= t_l} - mean_kl                     PairPart

Every part has the same methods. ``phi`` is exact. Training works on bins instead: ``codes`` gives
the bin of each cell and ``bin_phi`` (n_bins, n_steps) the phi of each bin, so that
``bin_phi()[codes(X)]`` is phi of the bins' representative values, to 24 bits. Two products need no
such matrix: ``sums_of_bins(mass)`` is mass @ bin_phi(), ``values_of_bins(weights)`` is
bin_phi() @ weights. ``columns`` are the columns that the part reads, ``n_ordered`` counts the
leading steps that are neighbours along a number, and ``counts_in_mean`` (n_bins,) marks the bins
that the mean of phi is over. ``X`` are encoded rows, NaN where a cell is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray, fields_alone, rounded

# Share of the distance between two representatives by which an edge lies below their middle.
ROOM_FOR_ROUNDING = 2.0**-20


def interval_position(knots: FloatArray, x: FloatArray) -> tuple[IntArray, FloatArray]:
    """The interval between knots that holds each value, and the position in it, 0 to 1.

    knots : (K + 1,) ascending, at least two. Values beyond the outer knots count as those knots.
    """
    interval = np.searchsorted(knots[1:-1], x, "right")
    left, right = knots[interval], knots[interval + 1]
    x = np.clip(x, knots[0], knots[-1])
    with np.errstate(over="ignore"):  # right - left may exceed the largest float
        unit = np.where(np.isinf(right - left), 0.25, 1.0)
    return interval, (x * unit - left * unit) / (right * unit - left * unit)


@dataclass(frozen=True, eq=False)
class CurvePart:
    """A number: ascending knots (K + 1,), at least two, with a step between each two neighbours.

    values : representatives of the bins, ascending;  has_missing : whether missing cells have a
    step, the last;  mean : (n_steps,) of phi over the training rows.
    """

    column: int
    knots: FloatArray
    values: FloatArray
    has_missing: bool
    mean: FloatArray

    def __getstate__(self) -> dict[str, Any]:
        return fields_alone(self)

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)

    @cached_property
    def n_ordered(self) -> int:
        return len(self.knots) - 1

    @cached_property
    def n_steps(self) -> int:
        return self.n_ordered + self.has_missing

    @property
    def n_bins(self) -> int:
        return len(self.values) + 1

    @cached_property
    def edges(self) -> FloatArray:
        """Just below the middle between representatives: bin b holds edges[b - 1] <= x < edges[b].

        Decimal numbers often lie in the middle, which rounds up or down with the unit of the
        column. Below the middle there is room for rounding, so the bins do not depend on the unit.
        """
        left, right = self.values[:-1], self.values[1:]
        below = left * (0.5 + ROOM_FOR_ROUNDING) + right * (0.5 - ROOM_FOR_ROUNDING)
        # Between neighbouring floats it rounds to one of them; it must exceed the left.
        return np.where((below > left) & (below <= right), below, right)

    def codes(self, X: FloatArray) -> IntArray:
        x = X[:, self.column]
        return np.where(np.isnan(x), len(self.values), np.searchsorted(self.edges, x, "right"))

    def place(self, x: FloatArray) -> tuple[IntArray, FloatArray]:
        """Interval of each value, 0 .. K - 1, and the position in it, 0 to 1."""
        return interval_position(self.knots, x)

    def phi(self, X: FloatArray) -> FloatArray:
        x = X[:, self.column]
        missing = np.isnan(x)
        out = self._steps(*self.place(np.where(missing, self.knots[0], x)))
        out -= self.mean
        out[missing] = 0.0
        if self.has_missing:
            out[missing, -1] = 1.0
        return out

    def steps_at(self, x: FloatArray) -> FloatArray:
        """phi of the curve before centring, (n, n_ordered), at numbers."""
        return self._steps(*self.place(x))[:, : self.n_ordered]

    def counts_in_mean(self) -> BoolArray:
        return np.arange(self.n_bins) < len(self.values)  # not the bin of missing cells

    @cached_property
    def exact_bin_places(self) -> tuple[IntArray, FloatArray]:
        """``place`` of the representatives."""
        return self.place(self.values)

    @cached_property
    def bin_places(self) -> tuple[IntArray, FloatArray]:
        """``place`` of the representatives, rounded to 24 bits."""
        interval, position = self.exact_bin_places
        return interval, rounded(position)

    def bin_phi(self) -> FloatArray:
        out = np.zeros((self.n_bins, self.n_steps))
        out[:-1] = self._steps(*self.bin_places)
        out[:-1] -= self.mean
        out[-1, self.n_ordered :] = 1.0
        return out

    @cached_property
    def bins_of_steps(self) -> tuple[IntArray, IntArray, FloatArray]:
        """(n_ordered,) the first bin in the interval of each step and the first one above it;
        (n_bins,) positions of the bins in their intervals, 0 for that of missing cells."""
        interval, position = self.bin_places
        steps = np.arange(self.n_ordered)
        first, above = (np.searchsorted(interval, steps, side) for side in ("left", "right"))
        return first, above, np.append(position, 0.0)

    def sums_of_bins(self, mass: FloatArray) -> FloatArray:
        first, above, position = self.bins_of_steps
        beyond = np.zeros_like(mass)
        beyond[:, :-1] = np.cumsum(mass[:, -2::-1], axis=1)[:, ::-1]
        out = np.zeros((len(mass), self.n_steps))
        within = np.add.reduceat(mass * position, first, axis=1)
        out[:, : self.n_ordered] = beyond[:, above] + np.where(first < above, within, 0.0)
        out[:, self.n_ordered :] = mass[:, -1:]
        return out - self.mean * beyond[:, :1]

    def values_of_bins(self, weights: FloatArray) -> FloatArray:
        interval, position = self.bin_places
        before = np.zeros_like(weights[: self.n_ordered])
        np.cumsum(weights[: self.n_ordered - 1], axis=0, out=before[1:])
        out = np.zeros((self.n_bins, weights.shape[1]))
        out[:-1] = before[interval] + position[:, None] * weights[interval]
        out[:-1] -= self.mean @ weights
        if self.has_missing:
            out[-1] = weights[-1]
        return out

    def _steps(self, interval: IntArray, position: FloatArray) -> FloatArray:
        """phi before centring, (n, n_steps), of cells that are not missing."""
        out = np.zeros((len(interval), self.n_steps))
        out[:, : self.n_ordered] = np.arange(self.n_ordered) < interval[:, None]
        out[np.arange(len(interval)), interval] = position
        return out


@dataclass(frozen=True, eq=False)
class LevelPart:
    """A category, as codes 0 .. n_levels - 1; the last step is for missing cells, if there were
    any in training. Any other code (-1: a level that was never seen) has phi = 0."""

    column: int
    n_levels: int
    has_missing: bool
    mean: FloatArray
    n_ordered = 0

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)

    @property
    def n_steps(self) -> int:
        return self.n_levels + self.has_missing

    @property
    def n_bins(self) -> int:
        return self.n_levels + 2  # missing, never seen

    def codes(self, X: FloatArray) -> IntArray:
        x = X[:, self.column]
        known = np.where((x >= 0) & (x < self.n_levels), x, self.n_levels + 1)
        return np.where(np.isnan(x), self.n_levels, known).astype(np.intp)

    def phi(self, X: FloatArray) -> FloatArray:
        return self.bin_phi()[self.codes(X)]

    def counts_in_mean(self) -> BoolArray:
        return np.arange(self.n_bins) < self.n_steps

    def bin_phi(self) -> FloatArray:
        out = np.eye(self.n_bins, self.n_steps)
        out -= self.mean
        out[self.n_steps :] = 0.0
        return out

    def sums_of_bins(self, mass: FloatArray) -> FloatArray:
        of_levels = mass[:, : self.n_steps]
        return of_levels - self.mean * of_levels.sum(axis=1, keepdims=True)

    def values_of_bins(self, weights: FloatArray) -> FloatArray:
        out = np.zeros((self.n_bins, weights.shape[1]))
        out[: self.n_steps] = weights - self.mean @ weights
        return out


@dataclass(frozen=True, eq=False)
class PairPart:
    """Two columns at once: a grid of cells between the thresholds of each.

    first, second : ascending thresholds of a number, or None for a category, whose levels
    are the cells;  n_first, n_second : cells along each side. The last cell of each side is for
    missing values and levels that were never seen, where phi = 0.
    """

    columns: tuple[int, int]
    first: FloatArray | None
    second: FloatArray | None
    n_first: int
    n_second: int
    mean: FloatArray
    n_ordered = 0

    @property
    def n_steps(self) -> int:
        return (self.n_first - 1) * (self.n_second - 1)

    @property
    def n_bins(self) -> int:
        return self.n_first * self.n_second

    def codes(self, X: FloatArray) -> IntArray:
        a = cell_of(X[:, self.columns[0]], self.first, self.n_first)
        return a * self.n_second + cell_of(X[:, self.columns[1]], self.second, self.n_second)

    def phi(self, X: FloatArray) -> FloatArray:
        return self.bin_phi()[self.codes(X)]

    def bin_phi(self) -> FloatArray:
        a = _cell_phi(self.n_first, self.first is not None)
        b = _cell_phi(self.n_second, self.second is not None)
        out = (a[:, None, :, None] * b[None, :, None, :]).reshape(self.n_bins, self.n_steps)
        out -= self.mean
        out[~self.counts_in_mean()] = 0.0
        return out

    def sums_of_bins(self, mass: FloatArray) -> FloatArray:
        cells = mass.reshape(len(mass), self.n_first, self.n_second)[:, :-1, :-1]
        total = cells.sum(axis=(1, 2))
        for axis, thresholds in ((1, self.first), (2, self.second)):
            if thresholds is not None:
                cells = np.flip(np.cumsum(np.flip(cells, axis), axis=axis), axis)
        return cells.reshape(len(mass), self.n_steps) - self.mean * total[:, None]

    def values_of_bins(self, weights: FloatArray) -> FloatArray:
        cells = weights.reshape(self.n_first - 1, self.n_second - 1, -1)
        for axis, thresholds in enumerate((self.first, self.second)):
            if thresholds is not None:
                cells = np.cumsum(cells, axis=axis)
        out = np.zeros((self.n_first, self.n_second, weights.shape[1]))
        out[:-1, :-1] = cells - self.mean @ weights
        return out.reshape(self.n_bins, -1)

    def counts_in_mean(self) -> BoolArray:
        first = np.arange(self.n_first) < self.n_first - 1
        return np.logical_and.outer(first, np.arange(self.n_second) < self.n_second - 1).ravel()


def cell_of(x: FloatArray, thresholds: FloatArray | None, n_cells: int) -> IntArray:
    """The cell of each value along one side of a pair; the last for missing and unseen ones."""
    if thresholds is not None:
        return np.where(np.isnan(x), n_cells - 1, np.searchsorted(thresholds, x, "right"))
    return np.where((x >= 0) & (x < n_cells - 1), x, n_cells - 1).astype(np.intp)


def _cell_phi(n_cells: int, ordered: bool) -> FloatArray:
    """(n_cells, n_cells - 1): 1{step <= cell} if ordered, else 1{step = cell}; missing: 0."""
    square = np.tri(n_cells - 1) if ordered else np.eye(n_cells - 1)
    return np.vstack([square, np.zeros(n_cells - 1)])


SplinePart: TypeAlias = "CurvePart | LevelPart | PairPart"
