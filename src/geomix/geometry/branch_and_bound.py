"""Branch and bound: the cheapest choice of one option per column that reaches a class.

Columns are decided one after another. A partial choice with plane scores Z, cost g and gains V
(upper bounds of what its changes add to the margin over each rival, as in ``bounds.py``) is
dropped if, for some rival and all planes of the target,

    V + (largest gains of the undecided columns) < need               the rival cannot be beaten
    g + l (need - V) + min over undecided (cost - l gain) >= best     no cheaper choice is left

with a multiplier l >= 0 (Lagrange duality). Without pairs, the minimum is a sum over the undecided
columns. With pairs, columns are eliminated from the last to the first (``elimination.py``), which
leaves tables over the cells of the decided ones. A pair's value with its second column unchanged
is part of the first column's options, so the scores of a partial choice are those of the row with
all undecided columns unchanged.

All partial choices of one depth are handled together, as arrays. If there are too many, the most
promising are kept, and the result is no longer proved to be the cheapest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.geometry.bounds import ROUNDING, member_extreme
from geomix.geometry.elimination import Table, eliminated
from geomix.geometry.options import Options
from geomix.geometry.search import Aim

MOST_RIVALS = 4  # rivals whose bounds prune: the strongest ones
MOST_VARIANTS = 4  # planes of the target with a bound each; of more, one bound for all
MULTIPLIERS = np.geomspace(1e-4, 1e6, 41)  # l that are tried for the bound


@dataclass(frozen=True, eq=False)
class Selection:
    """picked : option of each column, by position in ``options``, or None if none was found
    cost : in powers of the norm;  is_exact : whether no cheaper choice exists, or none at all."""

    picked: IntArray | None
    cost: float
    is_exact: bool


@dataclass(frozen=True, eq=False)
class _States:
    """Partial choices: scores (n, P) of the planes, S (n, C) of the classes, cost (n,),
    V (n, R, M), count (n,) of changed columns, and picked (n, depth) options."""

    scores: FloatArray
    S: FloatArray
    cost: FloatArray
    V: FloatArray
    count: IntArray
    picked: IntArray


def cheapest_choice(
    options: list[Options],
    form: Additive,
    row: FloatArray,
    aim: Aim,
    *,
    most_cost: float = np.inf,
    most_changes: int | None = None,
    log_odds: float | None = None,
    most_states: int = 1_500,
    Z: FloatArray | None = None,
) -> Selection:
    """The cheapest choice that reaches the aim and costs less than ``most_cost``.

    most_changes : of columns;  log_odds : least log(p / (1 - p)) of the target, or None
    most_states : partial choices kept;  Z : plane scores of the row, if they are known
    """
    if not options:
        return Selection(None, np.inf, True)
    Z = form.scores(row[None, :])[0] if Z is None else Z
    bounds = _Bounds(options, form, row, Z, aim)
    best, best_cost, is_exact = None, most_cost, True
    limit = len(options) if most_changes is None else most_changes
    empty = np.zeros((1, 0), dtype=np.int32)
    none = np.zeros(1, dtype=np.intp)
    nothing = np.zeros((1, *bounds.need.shape))
    S = form.planes.class_scores(Z[None, :], form.sharpness)
    states = _States(Z[None, :], S, np.zeros(1), nothing, none, empty)
    for depth, column in enumerate(bounds.options):
        n_options = len(column)
        V = states.V[:, None] + bounds.gained(depth, states)
        cost = states.cost[:, None] + column.cost
        count = states.count[:, None] + (column.cost > 0.0)
        if most_changes is not None and bounds.can_count:
            left = bounds.remaining_of(depth, limit - count)
        else:
            left = bounds.remaining(depth, states)
        least = bounds.least_cost(cost, V, left)
        at = np.flatnonzero((least < best_cost) & (count <= limit))
        is_thinned = len(at) > most_states
        if is_thinned:
            is_exact = False
            at = at[_smallest(least.ravel()[at], 4 * most_states)]
        scores, S = bounds.scores(depth, states, at // n_options, at % n_options)
        if is_thinned:
            every = np.broadcast_to(left[1], (*cost.shape, *bounds.need.shape))
            rest = every[at // n_options, at % n_options]
            promise = bounds.expected_cost(cost.ravel()[at], S, rest)
            best_ones = _smallest(promise, most_states)
            at, scores, S = at[best_ones], scores[best_ones], S[best_ones]
        state, option = at // n_options, at % n_options
        states = _States(
            scores,
            S,
            cost.ravel()[at],
            V.reshape(-1, *bounds.need.shape)[at],
            count.ravel()[at],
            np.column_stack([states.picked[state], option.astype(np.int32)]),
        )
        if not len(at):
            break
        if bounds.can_stop[depth + 1]:
            reached = np.flatnonzero(_is_reached(form, states.S, aim, log_odds))
            if len(reached):
                first = reached[states.cost[reached].argmin()]
                if states.cost[first] < best_cost:
                    best_cost = float(states.cost[first])
                    best = np.zeros(len(options), dtype=np.intp)
                    best[: depth + 1] = states.picked[first]
    if best is None:
        return Selection(None, np.inf, is_exact)
    unordered = np.empty(len(options), dtype=np.intp)
    unordered[bounds.order] = best
    return Selection(unordered, best_cost, is_exact)


def _smallest(values: FloatArray, n: int) -> IntArray:
    """The first n of ``np.argsort(values, kind="stable")``, without sorting all of them."""
    if len(values) <= n:
        return np.argsort(values, kind="stable")
    some = np.flatnonzero(values <= np.partition(values, n)[n])
    return some[np.argsort(values[some], kind="stable")[:n]]


def _is_reached(form: Additive, S: FloatArray, aim: Aim, log_odds: float | None) -> BoolArray:
    """(n,) whether the target leads by enough, and is probable enough; S : (n, C)."""
    others = np.delete(S, aim.target, axis=1)
    is_reached: BoolArray = S[:, aim.target] - others.max(axis=1) >= aim.lead
    if log_odds is not None:
        total = np.logaddexp.reduce(others / form.temperature, axis=1)
        is_reached &= S[:, aim.target] / form.temperature - total >= log_odds
    return is_reached


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two columns by depth, first < second, and their values (n_first, n_second, P) over the
    cells of the options, zero where the second is unchanged."""

    first: int
    second: int
    F: FloatArray


class _Bounds:
    """What the columns that are still undecided can gain, and cost, at best.

    order, options : columns by their largest gain, the largest first;  cells : by depth, the cell
    of each option among those of its column;  need : (R, M) gain needed over each rival by each
    plane of the target;  can_stop : whether the columns from a depth on may stay
    """

    def __init__(
        self, options: list[Options], form: Additive, row: FloatArray, Z: FloatArray, aim: Aim
    ) -> None:
        self.form, self.target, self.lead = form, aim.target, aim.lead
        margins = Aim(aim.target, 0.0).margins(form, Z)
        rivals = np.argsort(margins, kind="stable")[:MOST_RIVALS]
        self.rivals = rivals[np.isfinite(margins[rivals])]
        A = form.planes.pooled(Z[None, :], form.sharpness)[1][0]
        self.own = form.planes.class_of == aim.target
        self.tangents = A * (form.planes.class_of == self.rivals[:, None])
        need = aim.lead - margins[self.rivals]
        n_variants = self._gains(options[0].F[:1]).shape[2]
        self.need = np.repeat((need - ROUNDING * (1.0 + np.abs(need)))[:, None], n_variants, axis=1)
        alone = self._gains_of([_alone(form, row, one) for one in options])
        self.order = np.argsort([-float(gain[:, 0].max()) for gain in alone], kind="stable")
        self.options, self.cells, self.pairs = _linked([options[i] for i in self.order], form, row)
        self.gains = self._gains_of([one.F for one in self.options])
        self.pair_gains = [self._pair_gains(one) for one in self.pairs]
        self._eliminate()
        n = len(options)
        self.can_stop = [True] * (n + 1)
        for depth in range(n - 1, -1, -1):
            one = self.options[depth]
            stays = bool(one.cost[0] == 0.0 and not one.F[0].any())
            self.can_stop[depth] = self.can_stop[depth + 1] and stays
        self.can_count = self.can_stop[0] and not self.pairs

    def _gains(self, F: FloatArray) -> FloatArray:
        """(n, P) -> (n, R, M) upper bounds of the gain over each rival by each plane."""
        planes, own = self.form.planes, self.own
        lost = F @ self.tangents.T
        if planes.n_members == 1 and own.sum() <= MOST_VARIANTS:
            return F[:, None, own] - lost[:, :, None]
        return (member_extreme(planes, F, self.target, largest=True)[:, None] - lost)[:, :, None]

    def _gains_of(self, each: list[FloatArray]) -> list[FloatArray]:
        """The gains of each column's options, in one product."""
        ends = np.cumsum([len(F) for F in each])
        return np.split(self._gains(np.concatenate(each)), ends[:-1])

    def _pair_gains(self, pair: _Pair) -> FloatArray:
        n, m, n_planes = pair.F.shape
        gains = self._gains(pair.F.reshape(-1, n_planes))
        return gains.reshape(n, m, *gains.shape[1:])

    # --- the undecided columns ---

    def _eliminate(self) -> None:
        """Tables of the largest gain and of the least cost of the columns from each depth on."""
        self.multiplier = self._multipliers()
        self.unary = [self._unary(depth) for depth in range(len(self.options))]
        self.tables: list[list[Table]] = [[] for _ in range(len(self.options) + 1)]
        for depth in range(len(self.options) - 1, -1, -1):
            self.tables[depth] = self._without(depth, self.tables[depth + 1])

    def _without(self, depth: int, tables: list[Table]) -> list[Table]:
        """Tables over earlier columns, after one more column is eliminated."""
        bucket = [one for one in tables if depth in one.columns]
        bucket.append(Table((depth,), self.unary[depth]))
        for pair, gains in zip(self.pairs, self.pair_gains, strict=True):
            if pair.second == depth:
                bucket.append(Table((pair.first, depth), _stack(gains, self.multiplier)))
        made, _ = eliminated(bucket, depth)
        return [one for one in tables if depth not in one.columns] + made

    def _unary(self, depth: int) -> FloatArray:
        """(2 R M, n_cells): least of -gain, then of cost - l gain, in each cell."""
        gain, cost = self.gains[depth], self.options[depth].cost
        relaxed = cost[:, None, None] - self.multiplier * gain
        both = np.concatenate([-gain, relaxed], axis=1).reshape(len(cost), -1)
        return _least_by_cell(both, self.cells[depth]).T

    def _multipliers(self) -> FloatArray:
        """(R, M) the l with the largest bound, without regard to pairs."""
        bound = MULTIPLIERS[:, None, None] * self.need
        for depth, one in enumerate(self.options):
            gain = self.gains[depth]
            for pair, gains in zip(self.pairs, self.pair_gains, strict=True):
                if pair.second == depth:
                    gain = gain + gains.max(axis=0)[self.cells[depth]]
            relaxed = one.cost[:, None, None, None] - MULTIPLIERS[:, None, None] * gain[:, None]
            bound = bound + relaxed.min(axis=0)
        best = bound.argmax(axis=0)
        return np.where(bound.max(axis=0) > 0.0, MULTIPLIERS[best], 0.0)

    # --- states ---

    def gained(self, depth: int, states: _States) -> FloatArray:
        """(n_states or 1, n_options, R, M) gains of the options of one column."""
        total = self.gains[depth][None]
        for pair, gains in zip(self.pairs, self.pair_gains, strict=True):
            if pair.second == depth:
                at = self._cells_at(states, pair.first)
                total = total + gains[at][:, self.cells[depth]]
        return total

    def scores(
        self, depth: int, states: _States, state: IntArray, option: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """(n, P) and (n, C) scores after some states take some options of one column."""
        F = self.options[depth].F
        scores: FloatArray = states.scores[state] + F[option]
        linked = [pair for pair in self.pairs if pair.second == depth]
        for pair in linked:
            at = self._cells_at(states, pair.first)[state]
            scores = scores + pair.F[at, self.cells[depth][option]]
        S = states.S[state]
        # Pooling takes most of the time, and a column that stays leaves the class scores as are.
        changes = np.asarray(F.any(axis=1)) | bool(linked)
        moved = np.flatnonzero(changes[option])
        S[moved] = self.form.planes.class_scores(scores[moved], self.form.sharpness)
        return scores, S

    def _cells_at(self, states: _States, depth: int) -> IntArray:
        cells: IntArray = self.cells[depth][states.picked[:, depth]]
        return cells

    def remaining(self, depth: int, states: _States) -> tuple[FloatArray, FloatArray]:
        """(n_states or 1, n_options or 1, R, M): the largest gain of the columns after one, and
        their least cost - l gain."""
        shape = self.need.shape
        total = np.zeros((1, 1, 2 * self.need.size))
        n_cells = int(self.cells[depth].max()) + 1
        for table in self.tables[depth + 1]:
            if not table.columns:
                total = total + table.values
                continue
            cells = {
                j: np.repeat(self._cells_at(states, j), n_cells) for j in table.columns if j < depth
            }
            if depth in table.columns:
                cells[depth] = np.tile(np.arange(n_cells), len(states.cost))
                values = table.at(cells).reshape(len(states.cost), n_cells, -1)
                total = total + values[:, self.cells[depth]]
            else:
                values = table.at(cells).reshape(len(states.cost), n_cells, -1)
                total = total + values[:, :1]
        most, least = np.split(total.reshape(*total.shape[:2], 2, *shape), 2, axis=2)
        return -most[:, :, 0], least[:, :, 0]

    def remaining_of(self, depth: int, n_changes: IntArray) -> tuple[FloatArray, FloatArray]:
        """As ``remaining``, where only so many of the columns after one may change: the sum of the
        largest gains, and of the least cost - l gain, of that many columns."""
        rest = [one.min(axis=1) for one in self.unary[depth + 1 :]]
        each = np.sort(np.array(rest).reshape(len(rest), 2 * self.need.size), axis=0)
        sums = np.concatenate([np.zeros((1, each.shape[1])), np.cumsum(each, axis=0)])
        total = sums[np.clip(n_changes, 0, len(rest))]
        most, least = np.split(total.reshape(*n_changes.shape, 2, *self.need.shape), 2, axis=2)
        return -most[:, :, 0], least[:, :, 0]

    def least_cost(
        self, cost: FloatArray, V: FloatArray, left: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """(n_states, n_options) lower bounds of the cost; infinite where a rival stays ahead."""
        most, least = left
        bound = np.zeros(V.shape[:2])
        for rival in range(V.shape[2]):  # reducing short axes would take most of the time
            own = np.full(V.shape[:2], np.inf)
            for i in range(V.shape[3]):
                gained, need = V[:, :, rival, i], self.need[rival, i]
                cheapest = self.multiplier[rival, i] * (need - gained) + least[:, :, rival, i]
                can = gained + most[:, :, rival, i] >= need
                own = np.where(can, np.minimum(own, cheapest), own)
            bound = np.maximum(bound, own)
        return cost + bound

    def expected_cost(self, cost: FloatArray, S: FloatArray, least: FloatArray) -> FloatArray:
        """As ``least_cost``, with the margins that are reached instead of their bounds."""
        gap = self.lead - (S[:, self.target, None] - S[:, self.rivals])
        by_variant = self.multiplier * gap[:, :, None] + least
        expected: FloatArray = cost + by_variant.min(axis=2).max(axis=1)
        return expected


def _stack(gains: FloatArray, multiplier: FloatArray) -> FloatArray:
    """(n, m, R, M) gains of a pair as (2 R M, n, m): -gain, then -l gain."""
    both = np.concatenate([-gains, -multiplier * gains], axis=2)
    return np.moveaxis(both.reshape(*gains.shape[:2], -1), -1, 0)


def _least_by_cell(values: FloatArray, cells: IntArray) -> FloatArray:
    """(n, B) -> (n_cells, B)."""
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(int(cells.max()) + 1))
    least: FloatArray = np.minimum.reduceat(values[order], starts, axis=0)
    return least


def _alone(form: Additive, row: FloatArray, one: Options) -> FloatArray:
    """(n, P) changes of the scores by the options of one column, all others unchanged."""
    if one.column not in form.grids.cells:
        return one.F
    along = form.grids.along(one.column, row)
    now = form.grids.cells[one.column].of(row[one.column : one.column + 1])
    changes: FloatArray = one.F + (along - along[now])[one.cells]
    return changes


def _linked(
    options: Sequence[Options], form: Additive, row: FloatArray
) -> tuple[list[Options], list[IntArray], list[_Pair]]:
    """Options with what pairs add while later columns are unchanged, their cells among those that
    occur, and what two changed columns add beyond that."""
    grids = form.grids
    depth_of = {one.column: depth for depth, one in enumerate(options)}
    made = list(options)
    occurring, cells = zip(
        *(np.unique(one.cells, return_inverse=True) for one in options), strict=True
    )
    pairs = []
    for grid in grids.grids:
        now = {j: int(grids.cells[j].of(row[j : j + 1])[0]) for j in grid.columns}
        free = sorted((depth_of[j], j) for j in grid.columns if j in depth_of)
        if not free:
            continue
        first, j = free[0]
        other = grid.columns[0] if j == grid.columns[1] else grid.columns[1]
        values = grid.values if j == grid.columns[0] else grid.values.swapaxes(0, 1)
        values = values - values[now[j], now[other]]
        alone = values[:, now[other]]
        made[first] = replace(made[first], F=made[first].F + alone[made[first].cells])
        if len(free) == 2:
            second = free[1][0]
            both = values - alone[:, None]
            both = both[np.ix_(occurring[first], occurring[second])]
            pairs.append(_Pair(first, second, both))
    return made, list(cells), pairs
