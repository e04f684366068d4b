"""Means, variances and limits of columns, from parts that were looked at one by one.

    weight = sum_i w_i,   mean = sum_i w_i x_i / weight,   square = sum_i w_i (x_i - mean)^2

over the cells that are there. Two parts make one by Chan's formulas (1979), which lose nothing
to cancellation. Every column is held in units of a power of two near its largest value, so that
1e300 can be squared; going from one unit to another is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray


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
    n_columns = X.shape[1]
    low, high = np.full((2, n_columns), [[np.inf], [-np.inf]])
    there = ~np.isnan(X)
    complete = bool(there.all())
    if len(X):
        low = np.fmin.reduce(X, axis=0, initial=np.inf)
        high = np.fmax.reduce(X, axis=0, initial=-np.inf)
    # A column without cells takes the unit of whatever it is added to.
    size = np.where(low <= high, np.maximum(-low, high), 1e-308)
    exponent = np.clip(np.frexp(size)[1], -1022, 1022)
    present = np.full(n_columns, weight.sum()) if complete else weight @ there
    missing = np.zeros(n_columns) if complete else weight @ ~there
    U = X * np.ldexp(1.0, -exponent)
    if not complete:
        np.copyto(U, 0.0, where=~there)
    mean = (weight @ U) / np.where(present > 0.0, present, 1.0)
    U -= mean
    if not complete:
        np.copyto(U, 0.0, where=~there)
    np.square(U, out=U)
    n_missing = len(X) - there.sum(axis=0)
    return Moments(present, missing, n_missing, mean, weight @ U, exponent, low, high)
