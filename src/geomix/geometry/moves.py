"""All changes of one row as a table of segments.

A column's domain is cut into segments on which every plane's shape is linear: between knots, or a
single level. With t the change in units of ``Constraints.scale``, a segment costs c0 + t^2 (or c0
+ |t|) and adds F_a + (F_b - F_a) (t - t_a) / (t_b - t_a) to the planes' scores. Given a gain h at
every point and a multiplier l, the cheapest change of every column by itself,

    min over t of  cost(t) - l h(t),

has a closed form on every segment, so one l costs one pass over the table.

Columns in pairs are cut at the pairs' thresholds too. The segments of one cell are a group, a pair
adds a constant for each two groups, and the cheapest groups of all columns together are found by
elimination (``elimination.py``). A column without pairs is one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.geometry.elimination import Table, smallest

ROUNDING = 1e-9  # relative error of a distance, which is a root of a sum
FAR = 1e4  # a straight line is searched up to this many standard deviations


@dataclass(frozen=True, eq=False)
class PairMoves:
    """columns : two;  F : (n_first, n_second, P) what two groups, counted within their columns,
    add to the planes' scores against the row as it is."""

    columns: tuple[int, int]
    F: FloatArray


@dataclass(frozen=True, eq=False)
class Gains:
    """B gains of changes. points : (B, n_points);  pairs : (B, n_first, n_second) for each pair."""

    points: FloatArray
    pairs: tuple[FloatArray, ...]

    def take(self, some: Any) -> Gains:
        return Gains(self.points[some], tuple(one[some] for one in self.pairs))


@dataclass(frozen=True, eq=False)
class Moves:
    """Segments of all columns side by side.

    F : (n_points, P) what a point adds to the planes' scores against the row as it is
    values : (n_points,) the cell at a point
    at_a, at_b : (n_segments,) points at the ends;  t_a, t_b : their changes
    c0 : (n_segments,) fixed cost of a segment (of another level)
    column_start : (n_columns + 1,) first segment of each column
    cell_low, cell_high : (n_segments,) ends of the linear piece that contains the segment
    group_of : (n_segments,) group of each segment, ascending
    group_start : (n_columns + 1,) first group of each column
    pairs : what two groups add together
    Z : (P,) scores of the row as it is;  row : (n_columns,) encoded
    """

    form: Additive
    row: FloatArray
    Z: FloatArray
    F: FloatArray
    values: FloatArray
    at_a: IntArray
    at_b: IntArray
    t_a: FloatArray
    t_b: FloatArray
    c0: FloatArray
    column_start: IntArray
    cell_low: FloatArray
    cell_high: FloatArray
    group_of: IntArray
    group_start: IntArray
    pairs: tuple[PairMoves, ...]
    scale: FloatArray

    @cached_property
    def width(self) -> FloatArray:
        return self.t_b - self.t_a

    @cached_property
    def safe_width(self) -> FloatArray:
        return np.where(self.width > 0.0, self.width, 1.0)

    @cached_property
    def columns(self) -> IntArray:
        return np.arange(len(self.column_start) - 1)

    @cached_property
    def column_of(self) -> IntArray:
        return np.repeat(np.arange(len(self.column_start) - 1), np.diff(self.column_start))

    @property
    def reaches_far(self) -> bool:
        """Whether a straight line is cut off at ``FAR``."""
        return bool((np.abs(self.t_b) >= FAR).any() or (np.abs(self.t_a) >= FAR).any())

    def least_reach(self, norm: float) -> float:
        """The largest change of a column that the constraints require."""
        near = np.maximum(np.maximum(self.t_a, -self.t_b), 0.0) + self.c0 ** (1.0 / norm)
        return float(np.minimum.reduceat(near, self.column_start[:-1]).max(initial=0.0))

    def slopes(self, segments: IntArray) -> FloatArray:
        """(n, P) rise of the planes' scores per unit of t."""
        rise = self.F[self.at_b[segments]] - self.F[self.at_a[segments]]
        slopes: FloatArray = rise / self.safe_width[segments, None]
        return slopes

    @cached_property
    def _first_in_group(self) -> IntArray:
        return np.searchsorted(self.group_of, np.arange(self.group_start[-1]))

    def gains(self, D: FloatArray) -> Gains:
        """The gains of weights D of the planes, (B, P)."""
        pairs = tuple(np.moveaxis(one.F @ D.T, -1, 0) for one in self.pairs)
        return Gains(D @ self.F.T, pairs)

    @cached_property
    def unchanged(self) -> Change:
        """The cheapest change of all: none, where the constraints allow that."""
        return self.cheapest(self.gains(np.zeros((1, len(self.Z)))), np.zeros(1), 2.0)[0]

    def cheapest(self, gains: Gains, multipliers: FloatArray, norm: float) -> Change:
        """The cheapest changes of all columns, one for each multiplier, for one gain."""
        found = self._relaxed(gains, multipliers, norm)
        return Change(found.segments, found.t)

    def relaxed(
        self, gains: Gains, multipliers: FloatArray, norm: float
    ) -> tuple[FloatArray, FloatArray]:
        """(B,) min of cost - l gain (or a lower bound), and (B,) the gain there."""
        found = self._relaxed(gains, multipliers, norm)
        return found.value, self._gained(gains, found)

    def most(self, gains: Gains) -> FloatArray:
        """(B,) the largest gain of any change, or an upper bound of it."""
        largest = np.maximum(gains.points[:, self.at_a], gains.points[:, self.at_b])
        by_group = np.maximum.reduceat(largest, self._first_in_group, axis=1)
        value, _ = self._best_groups(-by_group, [-one for one in gains.pairs])
        return -value

    def within(self, r: float, norm: float = 2.0) -> Moves:
        """Only the changes of at most r in every column, of which each must have one."""
        r = r * (1.0 + ROUNDING)  # a column that has to change may account for all of r
        t_a, t_b = np.maximum(self.t_a, -r), np.minimum(self.t_b, r)
        kept = np.flatnonzero((t_a <= t_b) & (self.c0 <= r**norm))
        cell_low, cell_high = np.maximum(self.cell_low, -r), np.minimum(self.cell_high, r)
        return self._restricted(kept, t_a[kept], t_b[kept], cell_low[kept], cell_high[kept])

    def only(self, columns: IntArray) -> Moves:
        """Only the changes of some columns; the others stay, or change as little as they must."""
        stay = self.unchanged
        is_free = np.isin(self.columns, columns)[self.column_of]
        kept = np.union1d(np.flatnonzero(is_free), stay.segments)
        free, t = is_free[kept], stay.t[self.column_of[kept]]
        ends = (self.t_a, self.t_b, self.cell_low, self.cell_high)
        return self._restricted(kept, *(np.where(free, end[kept], t) for end in ends))

    def in_groups(self, groups: IntArray) -> tuple[Moves, IntArray]:
        """Only the changes within one group of each column, (n_columns,), so that no pairs are
        left; and the places of their segments here."""
        kept = np.flatnonzero(np.isin(self.group_of, groups))
        ends = (self.t_a, self.t_b, self.cell_low, self.cell_high)
        return self._restricted(kept, *(end[kept] for end in ends)), kept

    def groups(self, change: Change) -> IntArray:
        """(..., n_columns) groups of the segments of a change."""
        groups: IntArray = self.group_of[change.segments]
        return groups

    def _restricted(
        self,
        kept: IntArray,
        t_a: FloatArray,
        t_b: FloatArray,
        cell_low: FloatArray,
        cell_high: FloatArray,
    ) -> Moves:
        """Some of the segments, with new ends."""
        column = self.column_of[kept]
        F_a, value_a = self._at(kept, t_a)
        F_b, value_b = self._at(kept, t_b)
        groups, group_of = np.unique(self.group_of[kept], return_inverse=True)
        group_start = np.searchsorted(groups, self.group_start)
        places = [
            groups[first:end] - start
            for first, end, start in zip(
                group_start[:-1], group_start[1:], self.group_start[:-1], strict=True
            )
        ]
        at = np.arange(len(kept))
        F = np.concatenate([F_a, F_b])
        pairs = []
        for one in self.pairs:
            both = one.F[np.ix_(*(places[j] for j in one.columns))]
            if min(both.shape[:2]) > 1:
                pairs.append(PairMoves(one.columns, both))
                continue
            # One of the columns has one group left: the pair is part of the other column.
            j = one.columns[int(both.shape[0] == 1)]
            own = np.flatnonzero(column == j)
            adds = both.reshape(-1, both.shape[2])[group_of[own] - group_start[j]]
            F[own] += adds
            F[own + len(kept)] += adds
        column_start = np.searchsorted(column, np.arange(len(self.row) + 1))
        # A column without pairs is one group.
        linked = np.isin(column, [j for one in pairs for j in one.columns])
        is_first = linked & (np.diff(group_of, prepend=-1) != 0)
        is_first[column_start[:-1]] = True
        return replace(
            self,
            F=F,
            values=np.concatenate([value_a, value_b]),
            at_a=at,
            at_b=at + len(kept),
            t_a=t_a,
            t_b=t_b,
            c0=self.c0[kept],
            column_start=column_start,
            cell_low=cell_low,
            cell_high=cell_high,
            group_of=np.cumsum(is_first) - 1,
            group_start=np.searchsorted(np.flatnonzero(is_first), column_start),
            pairs=tuple(pairs),
        )

    def _at(self, segments: IntArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a change t in each of some segments adds, (n, P), and the cell, (n,)."""
        a, b = self.at_a[segments], self.at_b[segments]
        part = (t - self.t_a[segments]) / self.safe_width[segments]
        F = self.F[a] + part[:, None] * (self.F[b] - self.F[a])
        column = self.column_of[segments]
        value = self.row[column] + t * self.scale[column]
        value = np.where(t == self.t_b[segments], self.values[b], value)
        return F, np.where(t == self.t_a[segments], self.values[a], value)

    def by_segment(
        self, gains: Gains, multipliers: FloatArray, norm: float
    ) -> tuple[FloatArray, FloatArray]:
        """(B, n_segments) the least cost - l gain on every segment, and the t where it is."""
        h_a, h_b = gains.points[:, self.at_a], gains.points[:, self.at_b]
        l_ = multipliers[:, None]
        t: FloatArray
        value: FloatArray
        if norm == 2.0:
            slope = (h_b - h_a) / self.safe_width
            t = np.clip(0.5 * l_ * slope, self.t_a, self.t_b)
            value = self.c0 + t * t - l_ * (h_a + slope * (t - self.t_a))
        else:
            value_a, value_b = np.abs(self.t_a) - l_ * h_a, np.abs(self.t_b) - l_ * h_b
            t = np.where(value_a <= value_b, self.t_a, self.t_b)
            value = self.c0 + np.minimum(value_a, value_b)
        return value, t

    def _relaxed(self, gains: Gains, multipliers: FloatArray, norm: float) -> _Relaxed:
        value, t = self.by_segment(gains, multipliers, norm)
        by_group = np.minimum.reduceat(value, self._first_in_group, axis=1)
        scaled = [-multipliers[:, None, None] * one for one in gains.pairs]
        total, groups = self._best_groups(by_group, scaled)
        segments = self._segments(value, by_group, groups)
        rows = np.arange(len(value))[:, None]
        return _Relaxed(total, groups, segments, t[rows, segments])

    def _best_groups(
        self, by_group: FloatArray, pairs: Sequence[FloatArray]
    ) -> tuple[FloatArray, IntArray]:
        """The least sum over one group per column and pairs, (B,), and the groups, (B, n)."""
        n = len(self.group_start) - 1
        groups = np.repeat(self.group_start[None, :-1], len(by_group), axis=0)
        if not pairs:
            return by_group.sum(axis=1), groups
        linked = sorted({j for one in self.pairs for j in one.columns})
        alone = np.delete(np.arange(n), linked)
        tables = [
            Table((j,), by_group[:, self.group_start[j] : self.group_start[j + 1]]) for j in linked
        ]
        tables += [
            Table(one.columns, values) for one, values in zip(self.pairs, pairs, strict=True)
        ]
        found = smallest(tables)
        for j in linked:
            groups[:, j] += found.cells[j]
        return found.value + by_group[:, self.group_start[alone]].sum(axis=1), groups

    def _segments(self, value: FloatArray, by_group: FloatArray, groups: IntArray) -> IntArray:
        """(B, n_columns) the first segment with the least value of each chosen group."""
        n_rows, n_segments = value.shape
        hits = np.flatnonzero(value == by_group[:, self.group_of])
        row, segment = np.divmod(hits, n_segments)
        n_groups = by_group.shape[1]
        wanted = groups + n_groups * np.arange(n_rows)[:, None]
        found: IntArray = segment[np.searchsorted(row * n_groups + self.group_of[segment], wanted)]
        return found

    def _gained(self, gains: Gains, found: _Relaxed) -> FloatArray:
        segments, rows = found.segments, np.arange(len(found.t))
        h_a = gains.points[rows[:, None], self.at_a[segments]]
        h_b = gains.points[rows[:, None], self.at_b[segments]]
        part = (found.t - self.t_a[segments]) / self.safe_width[segments]
        gained: FloatArray = ((1.0 - part) * h_a + part * h_b).sum(axis=1)
        places = found.groups - self.group_start[:-1]
        for one, values in zip(self.pairs, gains.pairs, strict=True):
            j, k = one.columns
            gained = gained + values[rows, places[:, j], places[:, k]]
        return gained

    def scores(self, change: Change) -> FloatArray:
        """(..., P) plane scores after a change."""
        a, b = self.at_a[change.segments], self.at_b[change.segments]
        part = (change.t - self.t_a[change.segments]) / self.safe_width[change.segments]
        adds = (1.0 - part)[..., None, :] @ self.F[a] + part[..., None, :] @ self.F[b]
        scores: FloatArray = self.Z + adds[..., 0, :]
        places = self.group_of[change.segments] - self.group_start[:-1]
        for one in self.pairs:
            j, k = one.columns
            scores = scores + one.F[places[..., j], places[..., k]]
        return scores

    def cost_by_column(self, change: Change, norm: float) -> FloatArray:
        """(..., n_columns) in powers of the norm."""
        costs: FloatArray = self.c0[change.segments] + np.abs(change.t) ** norm
        return costs

    def gain_by_column(self, change: Change, gains: Gains) -> FloatArray:
        """(n_columns,) of one gain and one change, without pairs."""
        h_a, h_b = (gains.points[0, at[change.segments]] for at in (self.at_a, self.at_b))
        part = (change.t - self.t_a[change.segments]) / self.safe_width[change.segments]
        gained: FloatArray = (1.0 - part) * h_a + part * h_b
        return gained

    def cost(self, change: Change, norm: float) -> float:
        """Distance of the changed row: numbers in units of scale, a level one."""
        fixed = float(self.c0[change.segments].sum())
        if norm == 2.0:
            return float(np.sqrt(fixed + change.t @ change.t))
        return fixed + float(np.abs(change.t).sum())

    def changed_row(self, change: Change) -> FloatArray:
        """The row after a change, encoded."""
        a, b = self.at_a[change.segments], self.at_b[change.segments]
        t_a, t_b = self.t_a[change.segments], self.t_b[change.segments]
        with np.errstate(invalid="ignore"):
            moved = self.row + change.t * self.scale
        moved = np.where(change.t == 0.0, self.row, moved)
        # The ends of a segment are exact cells: a knot, a limit or a level.
        moved = np.where((change.t == t_a) & (t_a != 0.0), self.values[a], moved)
        moved = np.where((change.t == t_b) & (t_b != 0.0), self.values[b], moved)
        # Rounding may not leave the segment, beyond whose end a pair may have another value.
        moved = np.clip(moved, self.values[a], self.values[b])
        return np.where(self.c0[change.segments] > 0.0, self.values[a], moved)


@dataclass(frozen=True, eq=False)
class _Relaxed:
    """value : (B,);  groups, segments, t : (B, n_columns)."""

    value: FloatArray
    groups: IntArray
    segments: IntArray
    t: FloatArray


@dataclass(frozen=True, eq=False)
class Change:
    """A segment and a t for every column, (n_columns,); or several changes, (B, n_columns)."""

    segments: IntArray
    t: FloatArray

    def __getitem__(self, i: int) -> Change:
        return Change(self.segments[i], self.t[i])


def least_of(
    value: FloatArray, cost: FloatArray, starts: IntArray, owner: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(B, n_owners) the least value among the segments of each owner (a column or a group), and
    the cost there. starts : first segment of each owner;  owner : (n_segments,)."""
    least = np.minimum.reduceat(value, starts, axis=1)
    at_least = np.where(value == least[:, owner], cost, np.inf)
    return least, np.minimum.reduceat(at_least, starts, axis=1)
