"""Which cells to move to, where pairs link columns.

Within fixed cells a pair is a constant, and what is left is the search without pairs
(``search.py``). Cells are proposed by elimination (``moves.py``), at multipliers from small to
large. Each multiplier has one best choice of cells, and from one to the next the gain may jump far
beyond what is needed. So the steps between them are proposed too, column by column, and the best
proposal is improved: one column after another takes a better cell.

For a choice of cells, the cost and the gain are sums over columns, plus the pairs' constants. So
one table of the best change within each cell, at each multiplier, compares all choices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.geometry.moves import Gains, Moves, least_of
from geomix.geometry.search import Aim, rival_gains

PROPOSED = np.geomspace(1e-3, 1e5, 25)  # multipliers at which cells are proposed
COARSE = np.geomspace(1e-3, 1e6, 46)  # multipliers at which proposals are compared
FINE = np.geomspace(0.25, 4.0, 30)  # multiples of the best of those, for improvements
MOST_SWAPS = 8


def best_cells(moves: Moves, aim: Aim, norm: float, A: FloatArray) -> IntArray | None:
    """(n_columns,) the group of each column with the least cost of a large enough gain.

    A : (P,) responsibilities
    """
    gains, need = rival_gains(moves, aim, A)
    proposed = _proposed(moves, gains, norm)
    coarse = _table(moves, gains, COARSE, norm)
    cost = coarse.costs(proposed, need)
    at, best = np.unravel_index(int(cost.argmin()), cost.shape)
    if np.isinf(cost[at, best]):
        return None
    return _improved(_table(moves, gains, COARSE[at] * FINE, norm), proposed[best], need)


def _proposed(moves: Moves, gains: Gains, norm: float) -> IntArray:
    """(n, n_columns) choices of groups: those of elimination, and the steps between them."""
    chain = [moves.groups(moves.unchanged)]
    for groups in moves.groups(moves.cheapest(gains, PROPOSED, norm)):
        for j in np.flatnonzero(groups != chain[-1]):
            step = chain[-1].copy()
            step[j] = groups[j]
            chain.append(step)
    return np.array(chain)


@dataclass(frozen=True, eq=False)
class _Table:
    """The best change within each group, at each multiplier. cost, gain : (B, n_groups)."""

    moves: Moves
    cost: FloatArray
    gain: FloatArray
    pairs: tuple[FloatArray, ...]

    def costs(self, groups: IntArray, need: float) -> FloatArray:
        """(B, n) costs of choices of groups, (n, n_columns); infinite where they gain less."""
        gained = self.gain[:, groups].sum(axis=2) + self.paired(groups)
        costs: FloatArray = np.where(gained >= need, self.cost[:, groups].sum(axis=2), np.inf)
        return costs

    def swaps(self, groups: IntArray, need: float) -> FloatArray:
        """(B, n_groups) costs after one column takes another group."""
        column_of = np.repeat(self.moves.columns, np.diff(self.moves.group_start))
        now = groups[column_of]
        along = self._along(groups)
        gained = self.gain[:, groups].sum(axis=1) + self.paired(groups[None, :])
        gained = gained[:, None] + self.gain - self.gain[:, now] + along - along[now]
        cost = self.cost[:, groups].sum(axis=1)[:, None] + self.cost - self.cost[:, now]
        return np.where(gained >= need, cost, np.inf)

    def paired(self, groups: IntArray) -> FloatArray:
        """(n,) gains of the pairs."""
        places = groups - self.moves.group_start[:-1]
        total = np.zeros(len(groups))
        for one, values in zip(self.moves.pairs, self.pairs, strict=True):
            j, k = one.columns
            total += values[places[:, j], places[:, k]]
        return total

    def _along(self, groups: IntArray) -> FloatArray:
        """(n_groups,) gains of the pairs of each group, the other columns in ``groups``."""
        start = self.moves.group_start
        places = groups - start[:-1]
        along = np.zeros(int(start[-1]))
        for one, values in zip(self.moves.pairs, self.pairs, strict=True):
            j, k = one.columns
            along[start[j] : start[j + 1]] += values[:, places[k]]
            along[start[k] : start[k + 1]] += values[places[j]]
        return along


def _table(moves: Moves, gains: Gains, multipliers: FloatArray, norm: float) -> _Table:
    value, t = moves.by_segment(gains, multipliers, norm)
    starts = np.searchsorted(moves.group_of, np.arange(moves.group_start[-1]))
    least, cost = least_of(value, moves.c0 + np.abs(t) ** norm, starts, moves.group_of)
    gain = (cost - least) / multipliers[:, None]
    return _Table(moves, cost, gain, tuple(one[0] for one in gains.pairs))


def _improved(table: _Table, groups: IntArray, need: float) -> IntArray:
    """The choice after swaps of single columns that save most, until none saves anything."""
    column_of = np.repeat(table.moves.columns, np.diff(table.moves.group_start))
    best = float(table.costs(groups[None, :], need).min())
    for _ in range(MOST_SWAPS):
        cost = table.swaps(groups, need).min(axis=0)
        to = int(cost.argmin())
        if cost[to] >= best * (1.0 - 1e-6):
            break
        best, groups = float(cost[to]), groups.copy()
        groups[column_of[to]] = to
    return groups
