"""Weighted mean, variance and limits of columns, over the cells that are not missing.

    weight = sum_i w_i,   mean = sum_i w_i x_i / weight,   square = sum_i w_i (x_i - mean)^2

Rows in memory are read twice (``two_pass_moments``). Rows that come in parts are read once:
``Moments`` of two parts are combined by Chan's formulas (1979), which lose nothing to
cancellation. Columns are divided by a power of two near their largest value, so that 1e300 can
be squared; changing that power is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.row_sums import tree_sum
from geomix.table.row_views import all_rows, blocks

# Numbers below two to this power, and above one over it, can be squared and summed as they are.
MODERATE = 200


@dataclass(frozen=True, eq=False)
class Moments:
    """Of (n_columns,) columns; ``mean`` is in units of 2^exponent, ``square`` of 4^exponent.

    weight, missing : weight of the present and of the missing cells;
    n_missing : number of missing cells;  low, high : inf and -inf where all are missing.
    """

    weight: FloatArray
    missing: FloatArray
    n_missing: IntArray
    mean: FloatArray
    square: FloatArray
    exponent: IntArray
    low: FloatArray
    high: FloatArray

    def __add__(self, other: Moments) -> Moments:
        exponent = np.maximum(self.exponent, other.exponent)
        mean, square = self._in(exponent)
        its_mean, its_square = other._in(exponent)
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0.0, weight, 1.0)
        apart = its_mean - mean
        return Moments(
            weight,
            self.missing + other.missing,
            self.n_missing + other.n_missing,
            mean + share * apart,
            square + its_square + self.weight * share * apart**2,
            exponent,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def _in(self, exponent: IntArray) -> tuple[FloatArray, FloatArray]:
        step = self.exponent - exponent
        return np.ldexp(self.mean, step), np.ldexp(self.square, 2 * step)

    @property
    def has_missing(self) -> BoolArray:
        return self.n_missing > 0

    @property
    def location(self) -> FloatArray:
        """The mean in the columns' own units."""
        return np.ldexp(self.mean, self.exponent)

    @property
    def deviation(self) -> FloatArray:
        """The standard deviation in the columns' own units."""
        variance = self.square / np.where(self.weight > 0.0, self.weight, 1.0)
        return np.ldexp(np.sqrt(variance), self.exponent)


def moments_of(X: FloatArray, weight: FloatArray) -> Moments:
    """Moments of the columns of X, (n_rows, n_columns) float64, with NaN for missing cells."""
    parts = [_moments_of(block, weight[rows]) for rows, block in blocks(X)]
    return tree_sum(parts) if parts else _moments_of(X, weight)


def _moments_of(X: FloatArray, weight: FloatArray) -> Moments:
    n_columns = X.shape[1]
    there = None
    with np.errstate(over="ignore"):
        if np.isnan(X.sum()):  # one pass without a copy; an infinite sum hides no NaN
            there = ~np.isnan(X)
    low = np.fmin.reduce(X, axis=0, initial=np.inf)
    high = np.fmax.reduce(X, axis=0, initial=-np.inf)
    exponent = _unit(low, high)
    U = X if not exponent.any() else X * np.ldexp(1.0, -exponent)
    present: FloatArray = np.full(n_columns, weight.sum())
    missing: FloatArray = np.zeros(n_columns)
    n_missing: IntArray = np.zeros(n_columns, dtype=np.intp)
    if there is not None:
        present, missing = weight @ there, weight @ ~there
        n_missing = len(X) - there.sum(axis=0)
        U = np.where(there, U, 0.0)
    mean = (weight @ U) / np.where(present > 0.0, present, 1.0)
    U = U - mean
    if there is not None:
        np.copyto(U, 0.0, where=~there)
    np.square(U, out=U)
    return Moments(present, missing, n_missing, mean, weight @ U, exponent, low, high)


def _unit(low: FloatArray, high: FloatArray) -> IntArray:
    """The exponent of a column's unit 2^exponent: 0 for all but enormous and tiny numbers.

    A column without cells has the smallest, so that it takes on that of the part it is added to.
    """
    size = np.where(low <= high, np.maximum(-low, high), np.ldexp(1.0, -1000))
    exponent = np.clip(np.frexp(size)[1], -1022, 1022)
    moderate = (np.abs(exponent) < MODERATE) | (size == 0.0)
    return np.where(moderate, 0, exponent)


def column_scale(deviation: FloatArray, half_spread: FloatArray) -> FloatArray:
    """What a column is divided by: its standard deviation.

    Rows of tiny weight can leave a varying column without variance: then half its spread.
    """
    return np.where(deviation > 0.0, deviation, half_spread)


# --- rows in memory ---


def two_pass_moments(X: Any, share: FloatArray, kept: IntArray) -> tuple[Any, ...]:
    """Mean, variance and half the spread of the kept columns, and their exponents: (4, n_kept).

    share : (n_rows,) weights that sum to one. Everything is over the cells that are not missing.
    """
    X = all_rows(X)
    low, high = X.limits[:, kept]
    # At most 1022, as a normal number has: a column of 1e308 is then below 4, and can be squared.
    exponent = np.clip(np.frexp(np.maximum(-low, high))[1], -1022, 1022)
    factor = np.ldexp(1.0, -exponent)
    has_missing = X.has_missing[kept]
    present = np.ones(len(kept))  # the share of the weight in cells that are not missing
    mean = np.zeros(len(kept))
    for rows, block in blocks(X, kept):
        if has_missing.any():
            present -= share[rows] @ np.isnan(block)
        mean += share[rows] @ zero_if_missing(block * factor)
    mean /= present
    variance = np.zeros(len(kept))
    for rows, block in blocks(X, kept):
        variance += share[rows] @ zero_if_missing(block * factor - mean) ** 2
    return mean, variance / present, high * factor / 2.0 - low * factor / 2.0, exponent


def zero_if_missing(block: FloatArray) -> FloatArray:
    """NaN becomes zero, in place."""
    with np.errstate(over="ignore"):
        if np.isnan(block.sum()):  # one pass without a copy; an infinite sum hides no NaN
            np.copyto(block, 0.0, where=np.isnan(block))
    return block


def sparse_moments(X: Any, share: FloatArray, kept: IntArray) -> tuple[Any, ...]:
    """``two_pass_moments`` of a sparse matrix, which has no missing cells."""
    X = columns_of(X, kept)
    low, high = (limit.toarray().ravel() for limit in (X.min(axis=0), X.max(axis=0)))
    exponent = np.frexp(np.maximum(-low, high))[1]
    scaled = with_data(X, np.ldexp(X.data, -exponent[X.indices]))
    mean = np.asarray(scaled.T @ share).ravel()
    np.square(scaled.data, out=scaled.data)
    variance = np.asarray(scaled.T @ share).ravel() - mean**2
    half_spread = np.ldexp(high, -exponent) / 2.0 - np.ldexp(low, -exponent) / 2.0
    return mean, variance, half_spread, exponent


def columns_of(X: Any, kept: IntArray) -> Any:
    """The given columns of a sparse matrix as CSR; X itself where that is all of them."""
    return (X if len(kept) == X.shape[1] else X[:, kept]).tocsr()


def with_data(X: Any, data: FloatArray) -> Any:
    """A CSR matrix with the cells of X and other numbers in them."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)
