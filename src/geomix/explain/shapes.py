"""Shapes: what one column adds to the score of every plane.

A number is piecewise linear, with its own slopes beyond the outer knots: a straight line or a
curve. A category has one value per level. A missing cell has a value of its own.

Shapes of arrays: P planes, K knots, L levels; cells are encoded (``table/schema.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csc_array

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline_parts import interval_position


def sums_by_place(
    places: IntArray, factors: FloatArray, weights: FloatArray, n_places: int
) -> FloatArray:
    """(n_places, P): sums of factors * weights, (n, P), over the rows at each place."""
    one_a_row = np.arange(len(places) + 1)
    sums: FloatArray = csc_array((factors, places, one_a_row), (n_places, len(places))) @ weights
    return sums


def _half_range(values: FloatArray, missing: FloatArray) -> FloatArray:
    """(P,) half the range of values (P, K) and missing cells (P,)."""
    return np.asarray(np.ptp(np.column_stack([values, missing]), axis=1) / 2.0)


@dataclass(frozen=True, eq=False)
class NumberShape:
    """A number: piecewise linear through (knots, values), with its own slopes outside.

    knots : (K,) ascending;  values : (P, K);  outer : (P, 2) slopes before and after;
    missing : (P,);  scale : standard deviation over the training rows (1 if unknown).
    """

    column: int
    name: str
    knots: FloatArray
    values: FloatArray
    outer: FloatArray
    missing: FloatArray
    scale: float
    kind = "number"

    def __call__(self, x: FloatArray) -> FloatArray:
        """(n,) cells -> (n, P)."""
        absent = np.isnan(x)
        at = np.where(absent, self.knots[0], x)
        inside = np.clip(at, self.knots[0], self.knots[-1])
        out = self._inner(inside)
        beyond = at - inside
        out += np.minimum(beyond, 0.0)[:, None] * self.outer[:, 0]
        out += np.maximum(beyond, 0.0)[:, None] * self.outer[:, 1]
        out[absent] = self.missing
        return out

    def weighted_sums(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """(P,) sums over cells of weights * self(x), for weights (n, P)."""
        absent = np.isnan(x)
        at = np.where(absent, self.knots[0], x)
        beyond = at - np.clip(at, self.knots[0], self.knots[-1])
        total = weights[absent].sum(axis=0) * self.missing
        total += np.minimum(beyond, 0.0) @ weights * self.outer[:, 0]
        total += np.maximum(beyond, 0.0) @ weights * self.outer[:, 1]
        there = (~absent).astype(np.float64)
        if len(self.knots) == 1:
            return np.asarray(total + there @ weights * self.values[:, 0])
        left, part = interval_position(self.knots, at)
        n_knots = len(self.knots)
        by_knot = sums_by_place(left, there * (1.0 - part), weights, n_knots)
        by_knot += sums_by_place(left + 1, there * part, weights, n_knots)
        return np.asarray(total + np.einsum("kp,pk->p", by_knot, self.values))

    def _inner(self, x: FloatArray) -> FloatArray:
        if len(self.knots) == 1:
            return np.repeat(self.values.T, len(x), axis=0)
        left, part = interval_position(self.knots, x)
        return self.values.T[left] * (1.0 - part[:, None]) + self.values.T[left + 1] * part[:, None]

    @cached_property
    def slopes(self) -> FloatArray:
        """(P, K + 1): before the first knot, between knots, after the last."""
        with np.errstate(over="ignore"):
            inner = np.diff(self.values, axis=1) / np.diff(self.knots)
        return np.column_stack([self.outer[:, 0], inner, self.outer[:, 1]])

    @property
    def spread(self) -> FloatArray:
        """(P,) half the range of a curve and the missing cell, or the rise of a straight line
        over one deviation."""
        half = _half_range(self.values, self.missing)
        return np.maximum(half, np.abs(self.outer).max(axis=1) * self.scale)

    @property
    def direction(self) -> IntArray:
        """(P,) 1 where a plane's score rises with the column, -1 where it falls, 0 neither."""
        rises, falls = (self.slopes >= 0.0).all(axis=1), (self.slopes <= 0.0).all(axis=1)
        return np.where(rises == falls, 0, np.where(rises, 1, -1))

    def plus(self, other: Any) -> NumberShape:
        """The sum of two shapes of the same column."""
        knots = np.union1d(self.knots, other.knots)
        return replace(
            self,
            knots=knots,
            values=(self(knots) + other(knots)).T,
            outer=self.outer + other.outer,
            missing=self.missing + other.missing,
        )

    def minus(self, mean: FloatArray) -> NumberShape:
        """The shapes less their weighted mean over the planes; ``mean`` : (P,) weights."""
        return replace(
            self,
            values=self.values - mean @ self.values,
            outer=self.outer - mean @ self.outer,
            missing=self.missing - mean @ self.missing,
        )


@dataclass(frozen=True, eq=False)
class LevelShape:
    """A category: a value for each level, (P, L), and for missing, (P,); unknown adds nothing.

    A column without any cell in training has no levels.
    """

    column: int
    name: str
    levels: tuple[str, ...]
    values: FloatArray
    missing: FloatArray
    kind = "category"
    scale = 1.0

    def __call__(self, x: FloatArray) -> FloatArray:
        """(n,) codes -> (n, P)."""
        known = (x >= 0.0) & (x < len(self.levels))
        out = np.zeros((len(x), len(self.values)))
        out[known] = self.values.T[x[known].astype(np.intp)]
        out[np.isnan(x)] = self.missing
        return out

    def weighted_sums(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """(P,) sums over cells of weights * self(x), for weights (n, P)."""
        known = (x >= 0.0) & (x < len(self.levels))
        codes = x[known].astype(np.intp)
        by_level = sums_by_place(codes, np.ones(len(codes)), weights[known], len(self.levels))
        total = np.einsum("lp,pl->p", by_level, self.values)
        return np.asarray(total + weights[np.isnan(x)].sum(axis=0) * self.missing)

    @property
    def spread(self) -> FloatArray:
        """(P,) half the range of the levels and the missing cell."""
        return _half_range(self.values, self.missing)

    @property
    def direction(self) -> IntArray:
        return np.zeros(len(self.values), dtype=np.intp)

    def plus(self, other: Any) -> LevelShape:
        values, missing = self.values + other.values, self.missing + other.missing
        return replace(self, values=values, missing=missing)

    def minus(self, mean: FloatArray) -> LevelShape:
        return replace(
            self,
            values=self.values - mean @ self.values,
            missing=self.missing - mean @ self.missing,
        )


Shape: TypeAlias = "NumberShape | LevelShape"
