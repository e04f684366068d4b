"""Knots beside the values of a column at which its classes change at once.

Knots at quantiles of n rows are n / 64 rows apart. Where a class begins at a threshold, a curve
between two of them would be a ramp over all these rows. So a cut between neighbouring values
a < b makes both of them knots, if a window of two such intervals P shows it. Cut into L and R, the
window gains

    n_P H(P) - n_L H(L) - n_R H(R)  =  sum_k f(L_k) + f(R_k) - f(P_k)  -  f(n_L) - f(n_R) + f(n_P)

nats: H is the entropy of the classes, L_k the weight of class k in L, and f(m) = m log m. A trend
that is smooth changes little within a window, however strong it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomix.arrays import FloatArray, IntArray, rounded

# Intervals of equal numbers of rows, two of which are a window: as many as a curve starts with.
N_INTERVALS = 64
# Blocks of an interval. A window is first cut between blocks, and between rows where that gains at
# least this share of what a cut has to gain.
N_BLOCKS, ENOUGH = 8, 0.5
# A cut has to gain this many times what BIC asks for its numbers: the shares of the classes of the
# window but one, and its place.
TIMES_BIC = 2.0
# Least weight of the rows on either side of a cut, the mean of all weights being one.
LEAST_WEIGHT = 3.0
# Most cuts of a column, those that gain most.
MOST_CUTS = 16
# With fewer values than the fewest knots of a curve, every value is a knot.
FEWEST_VALUES = 16


class Cut(NamedTuple):
    """A cut before row ``at``."""

    gain: float
    at: int


def step_knots(x: FloatArray, y: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """The values on both sides of each cut of a column, sorted; missing cells are left out."""
    order = np.argsort(x, kind="stable")
    order = order[: len(x) - np.count_nonzero(np.isnan(x))]
    # Knots are a few rows apart, or a window of few rows has too many classes to show a cut.
    if len(order) < N_INTERVALS * max(N_BLOCKS, n_classes):
        return np.empty(0)
    x, weight = x[order], weight[order]
    if np.count_nonzero(x[1:] > x[:-1]) < FEWEST_VALUES:
        return np.empty(0)
    rows = SortedRows(x, y[order], weight * (len(order) / weight.sum()), n_classes)
    found = sorted(rows.cuts(), reverse=True)[:MOST_CUTS]
    at = np.array([one.at for one in found], dtype=np.intp)
    return x[np.union1d(at - 1, at)]


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows in the order of their value, whose weights are one on average."""

    x: FloatArray
    y: IntArray
    weight: FloatArray
    n_classes: int

    def cuts(self) -> list[Cut]:
        """The best cut of each window, where it gains enough."""
        n_blocks = N_INTERVALS * N_BLOCKS
        edges = np.arange(n_blocks + 1) * len(self.y) // n_blocks
        first = np.arange(0, n_blocks - N_BLOCKS, N_BLOCKS)
        least, coarse = self._gains_of_blocks(edges, first)
        found = []
        for window in np.flatnonzero(coarse >= ENOUGH * least):
            start, end = edges[first[window]], edges[first[window] + 2 * N_BLOCKS]
            cut = self._best_cut(int(start), int(end))
            if cut is not None and cut.gain >= least[window]:
                found.append(cut)
        return found

    def _gains_of_blocks(self, edges: IntArray, first: IntArray) -> tuple[FloatArray, FloatArray]:
        """What a cut of each window has to gain, and the most that one between blocks gains.
        edges : first row of each block, and the end;  first : first block of each window."""
        block = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        size = (len(edges) - 1) * self.n_classes
        mass = np.bincount(block * self.n_classes + self.y, self.weight, size)
        below = np.zeros((len(edges), self.n_classes))
        np.cumsum(mass.reshape(-1, self.n_classes), axis=0, out=below[1:])
        whole = below[first + 2 * N_BLOCKS] - below[first]
        least = TIMES_BIC * 0.5 * np.count_nonzero(whole, axis=1) * np.log(len(self.y))
        coarse = np.zeros(len(first))
        # Two parts differ by at most log 2 nats a row.
        possible = np.flatnonzero(least <= np.log(2.0) * whole.sum(axis=1))
        inner = first[possible, None] + np.arange(1, 2 * N_BLOCKS)
        left = below[inner] - below[first[possible], None]
        coarse[possible] = gains(left, whole[possible, None]).max(axis=1, initial=0.0)
        return least, coarse

    def _best_cut(self, start: int, end: int) -> Cut | None:
        """The cut of the rows from ``start`` to ``end`` that gains most."""
        x, y, weight = self.x[start:end], self.y[start:end], self.weight[start:end]
        mass = np.zeros((len(y), self.n_classes))
        mass[np.arange(len(y)), y] = weight
        below = np.cumsum(mass, axis=0)
        left, whole = below[:-1], below[-1]
        n_left = left.sum(axis=1)
        is_cut = (x[1:] > x[:-1]) & (np.minimum(n_left, whole.sum() - n_left) >= LEAST_WEIGHT)
        if not is_cut.any():
            return None
        # Rounded: logarithms of another CPU may differ in their last bit.
        gain = np.where(is_cut, rounded(gains(left, whole)), 0.0)
        best = int(gain.argmax())
        return Cut(float(gain[best]), start + 1 + best)


def gains(left: FloatArray, whole: FloatArray) -> FloatArray:
    """What cutting the weights ``whole`` of each class into ``left`` and the rest gains, nats."""
    return np.asarray(_order(left) + _order(whole - left) - _order(whole))


def _order(mass: FloatArray) -> FloatArray:
    """-n H of weights by class, which are on the last axis: sum_k f(m_k) - f(n)."""
    return np.asarray(_f(mass).sum(axis=-1) - _f(mass.sum(axis=-1)))


def _f(m: FloatArray) -> FloatArray:
    """m log m, 0 for 0, and for what rounding leaves of it."""
    m = np.maximum(m, np.finfo(float).tiny)
    return np.asarray(m * np.log(m))
