"""Means, variances and limits of columns, from parts that were looked at one by one.

    weight = sum_i w_i,   mean = sum_i w_i x_i / weight,   square = sum_i w_i (x_i - mean)^2

over the cells that are there. Two parts make one by Chan's formulas (1979), which lose nothing
to cancellation. A column of enormous or tiny numbers is held in units of a power of two near its
largest, so that 1e300 can be squared; going from one unit to another is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.row_sums import tree_sum
from geomix.table.row_views import blocks

# Numbers below two to this power, and above one over it, can be squared and summed as they are.
MODERATE = 200


@dataclass(frozen=True, eq=False)
class Moments:
    """Of (n_columns,) columns; ``mean`` is in units of 2^exponent, ``square`` of 4^exponent.

    weight, missing : weight of the cells that are there, and of those that are not;
    n_missing : how many are not;  low, high : inf and -inf where no cell is there.
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
    """The power of two that a column is measured in: none for all but enormous and tiny numbers.

    A column without cells has the smallest, and takes that of whatever it is added to.
    """
    size = np.where(low <= high, np.maximum(-low, high), np.ldexp(1.0, -1000))
    exponent = np.clip(np.frexp(size)[1], -1022, 1022)
    moderate = (np.abs(exponent) < MODERATE) | (size == 0.0)
    return np.where(moderate, 0, exponent)
