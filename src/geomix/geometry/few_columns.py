"""Which columns to change, if only a few may change.

For a multiplier l every column by itself has a best change, and saves

    s_j(l) = max over t of  l gain_j(t) - cost_j(t)

against no change. Of all sets of n columns, the n that save most have the least cost - l gain
together, so

    l need - (sum of the n largest s_j(l))

is a lower bound of the cost of a change of n columns (Lagrange duality), for every l. One pass
over the table of segments gives the bounds and the sets of all n. Where pairs link columns, the
others count as unchanged, and a class with several planes is approximated by the responsibilities
at the row: sets are then good guesses, and the bounds estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.geometry.moves import Gains, Moves, least_of
from geomix.geometry.search import Aim, rival_gains

MULTIPLIERS = np.geomspace(1e-3, 1e6, 46)  # l that are tried; the next is 1.6 times as large


@dataclass(frozen=True, eq=False)
class Ranking:
    """order : (B, n_columns) columns by what they save at B multipliers, the largest first
    distance : (n_columns,) bound (or estimate) with 1, 2, ... columns, infinite if out of reach
    is_reached : (B, n_columns) whether the best 1, 2, ... columns gain enough."""

    order: IntArray
    distance: FloatArray
    is_reached: BoolArray

    def sets(self, n: int) -> list[IntArray]:
        """Sets of n columns that are worth a search: the best ones on both sides of the least
        multiplier that gains enough."""
        reached = np.flatnonzero(self.is_reached[:, n - 1])
        at = int(reached[0]) if len(reached) else len(self.order) - 1
        first, second = (np.sort(self.order[i, :n]) for i in (at, max(at - 1, 0)))
        return [first] if np.array_equal(first, second) else [first, second]


def ranking(moves: Moves, aim: Aim, norm: float) -> Ranking:
    """Columns by what they save."""
    form, stay, l_ = moves.form, moves.unchanged, MULTIPLIERS[:, None]
    gains, need = rival_gains(
        moves, aim, form.planes.pooled(moves.Z[None, :], form.sharpness)[1][0]
    )
    value, t = moves.by_segment(gains, MULTIPLIERS, norm)
    value = value - l_ * _paired(moves, gains)
    costs = moves.c0 + np.abs(t) ** norm
    least, cost = least_of(value, costs, moves.column_start[:-1], moves.column_of)
    gain = (cost - least) / l_
    # A column that has to change comes first.
    is_forced = (moves.c0[stay.segments] > 0.0) | (stay.t != 0.0)
    order = np.argsort(np.where(is_forced, -np.inf, least), axis=1, kind="stable")
    total, gained = (np.cumsum(np.take_along_axis(one, order, 1), axis=1) for one in (least, gain))
    dual = np.maximum((l_ * need + total).max(axis=0), 0.0)
    is_reached = gained >= need
    distance = np.where(is_reached.any(axis=0), dual ** (1.0 / norm), np.inf)
    return Ranking(order, distance, is_reached)


def _paired(moves: Moves, gains: Gains) -> FloatArray:
    """(n_segments,) gain of the pairs of each segment, the other column unchanged."""
    groups = moves.group_of[moves.unchanged.segments] - moves.group_start[:-1]
    adds = np.zeros(int(moves.group_start[-1]))
    for one, values in zip(moves.pairs, gains.pairs, strict=True):
        j, k = one.columns
        for column, along in ((j, values[0][:, groups[k]]), (k, values[0][groups[j], :])):
            first, end = moves.group_start[column : column + 2]
            adds[first:end] += along
    return adds[moves.group_of]
