"""The parts of a spline lift: what one column, or a pair of them, gives to phi.

    phi_k(x) = clip((x - t_{k-1}) / (t_k - t_{k-1}), 0, 1) - mean_k      Curve, k = 1 .. K
    phi_l(x) = 1{x = l} - mean_l                                        Levels
    phi_kl(x, y) = 1{x >= s_k} 1{y >= t_l} - mean_kl                     Pair

A part knows its steps exactly (``phi``), and its cells as bins: the bin of each (``codes``) and
the phi of each bin (``bin_phi``, (n_bins, n_steps)), so that ``bin_phi()[codes(X)]`` is phi of the
bins' representative values. ``X`` are encoded rows, NaN where a cell is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray


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
class Curve:
    """A number: knots (K + 1,) ascending, at least two; a step between neighbours each.

    values : representatives of the bins, ascending;  has_missing : a step of its own for
    missing cells, the last;  mean : (n_steps,) of phi over the training rows.
    """

    column: int
    knots: FloatArray
    values: FloatArray
    has_missing: bool
    mean: FloatArray

    @property
    def n_steps(self) -> int:
        return len(self.knots) - 1 + self.has_missing

    @property
    def n_bins(self) -> int:
        return len(self.values) + 1

    @cached_property
    def edges(self) -> FloatArray:
        """Half-way between representatives: bin b holds edges[b - 1] <= x < edges[b]."""
        left, right = self.values[:-1], self.values[1:]
        middle = left / 2.0 + right / 2.0
        # Between neighbouring floats there is no middle, and the left one must stay below.
        return np.where(middle > left, middle, right)

    def codes(self, X: FloatArray) -> IntArray:
        x = X[:, self.column]
        return np.where(np.isnan(x), len(self.values), np.searchsorted(self.edges, x, "right"))

    def place(self, x: FloatArray) -> tuple[IntArray, FloatArray]:
        """Interval of each value, 0 .. K - 1, and the position in it, 0 to 1."""
        return interval_position(self.knots, x)

    def phi(self, X: FloatArray) -> FloatArray:
        x = X[:, self.column]
        missing = np.isnan(x)
        inner, part = self.place(np.where(missing, self.knots[0], x))
        steps = np.arange(len(self.knots) - 1)
        out = (steps < inner[:, None]) + (steps == inner[:, None]) * part[:, None]
        if self.has_missing:
            out = np.column_stack([out, np.zeros(len(x))])
        out -= self.mean
        out[missing] = 0.0
        if self.has_missing:
            out[missing, -1] = 1.0
        return out

    def bin_phi(self) -> FloatArray:
        table = np.append(self.values, np.nan)
        X = np.zeros((len(table), self.column + 1))
        X[:, self.column] = table
        return self.phi(X)


@dataclass(frozen=True, eq=False)
class Levels:
    """A category, as codes 0 .. n_levels - 1; the last step is for missing cells, if there were
    any. A code that is not among them (-1: never seen) adds nothing."""

    column: int
    n_levels: int
    has_missing: bool
    mean: FloatArray

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

    def bin_phi(self) -> FloatArray:
        out = np.eye(self.n_bins, self.n_steps)
        out -= self.mean
        first_without = self.n_levels + self.has_missing
        out[first_without:] = 0.0
        return out


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns at once: a grid of cells between the thresholds of each.

    first, second : ascending thresholds of a number, or None for a category, whose levels
    are the cells;  n_first, n_second : cells along each side, the last of either for missing
    (and never seen) ones, which add nothing.
    """

    columns: tuple[int, int]
    first: FloatArray | None
    second: FloatArray | None
    n_first: int
    n_second: int
    mean: FloatArray

    @property
    def n_steps(self) -> int:
        return (self.n_first - 1) * (self.n_second - 1)

    @property
    def n_bins(self) -> int:
        return self.n_first * self.n_second

    def codes(self, X: FloatArray) -> IntArray:
        a = _cell(X[:, self.columns[0]], self.first, self.n_first)
        return a * self.n_second + _cell(X[:, self.columns[1]], self.second, self.n_second)

    def phi(self, X: FloatArray) -> FloatArray:
        return self.bin_phi()[self.codes(X)]

    def bin_phi(self) -> FloatArray:
        a = _cell_phi(self.n_first, self.first is not None)
        b = _cell_phi(self.n_second, self.second is not None)
        out = (a[:, None, :, None] * b[None, :, None, :]).reshape(self.n_bins, self.n_steps)
        out -= self.mean
        known = np.add.outer(
            np.arange(self.n_first) == self.n_first - 1,
            np.arange(self.n_second) == self.n_second - 1,
        )
        out[known.ravel()] = 0.0
        return out


def _cell(x: FloatArray, thresholds: FloatArray | None, n_cells: int) -> IntArray:
    if thresholds is not None:
        return np.where(np.isnan(x), n_cells - 1, np.searchsorted(thresholds, x, "right"))
    return np.where((x >= 0) & (x < n_cells - 1), x, n_cells - 1).astype(np.intp)


def _cell_phi(n_cells: int, ordered: bool) -> FloatArray:
    """(n_cells, n_cells - 1): steps up to a cell, or the cell itself; missing is all zero."""
    square = np.tri(n_cells - 1) if ordered else np.eye(n_cells - 1)
    return np.vstack([square, np.zeros(n_cells - 1)])


Part: TypeAlias = "Curve | Levels | Pair"
