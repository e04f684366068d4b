"""Branch and bound: the cheapest choice of one option per column that reaches a class.

Columns are decided one after another. A partial choice with plane scores Z, cost g and gains V
(upper bounds of what its changes add to the margin over each rival, as in ``bounds.py``) is
dropped if

    V + (largest gains of the undecided columns) < need               the rival cannot be beaten
    g + l (need - V) + sum_j min_o (cost_o - l gain_o) >= best        no cheaper choice is left

for a rival and its multiplier l >= 0 (Lagrange duality; the sum is over undecided columns). All
partial choices of one depth are handled together, as arrays. If there are too many, the most
promising are kept, and the result is no longer proved to be the cheapest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.geometry.bounds import ROUNDING, member_extreme
from geomix.geometry.options import Options
from geomix.geometry.search import Aim

MOST_RIVALS = 4  # rivals whose bounds prune: the strongest ones
MULTIPLIERS = np.geomspace(1e-4, 1e6, 41)  # l that are tried for the bound


@dataclass(frozen=True, eq=False)
class Selection:
    """picked : option of each column, by position in ``options``, or None if none was found
    cost : in powers of the norm;  is_exact : whether no cheaper choice exists, or none at all."""

    picked: IntArray | None
    cost: float
    is_exact: bool


def cheapest_choice(
    options: list[Options],
    form: Additive,
    Z: FloatArray,
    aim: Aim,
    *,
    most_cost: float = np.inf,
    most_changes: int | None = None,
    log_odds: float | None = None,
    most_states: int = 1_500,
) -> Selection:
    """The cheapest choice that reaches the aim and costs less than ``most_cost``.

    most_changes : of columns;  log_odds : least log(p / (1 - p)) of the target, or None
    most_states : partial choices kept
    """
    if not options:
        return Selection(None, np.inf, True)
    bounds = _Bounds(options, form, Z, aim)
    order = bounds.order
    options = [options[i] for i in order]
    best, best_cost, is_exact = None, most_cost, True
    limit = len(options) if most_changes is None else most_changes
    count = np.zeros(1, dtype=np.intp)
    scores, cost, V = Z[None, :], np.zeros(1), np.zeros((1, len(bounds.need)))
    picked = np.zeros((1, 0), dtype=np.int32)
    for depth, column in enumerate(options):
        n_states, n_options = len(scores), len(column)
        new_cost = (cost[:, None] + column.cost).ravel()
        new_V = (V[:, None] + bounds.gains[depth]).reshape(-1, len(bounds.need))
        new_count = (count[:, None] + (column.cost > 0.0)).ravel()
        alive = bounds.may_improve(depth + 1, new_cost, new_V, best_cost)
        at = np.flatnonzero(alive & (new_count <= limit))
        if len(at) > most_states:
            promise = bounds.least_cost(depth + 1, new_cost[at], new_V[at])
            at = at[np.argsort(promise, kind="stable")[: 4 * most_states]]
            after = scores[at // n_options] + column.F[at % n_options]
            promise = bounds.expected_cost(depth + 1, new_cost[at], after)
            at = at[np.argsort(promise, kind="stable")[:most_states]]
            is_exact = False
        state, choice = at // n_options, at % n_options
        scores = scores[state] + column.F[choice]
        cost, V, count = new_cost[at], new_V[at], new_count[at]
        picked = np.column_stack([picked[state], choice.astype(np.int32)])
        if bounds.can_stop[depth + 1]:
            reached = np.flatnonzero(_is_reached(form, scores, aim, log_odds))
            if len(reached):
                first = reached[cost[reached].argmin()]
                if cost[first] < best_cost:
                    best_cost = float(cost[first])
                    best = np.zeros(len(options), dtype=np.intp)
                    best[: depth + 1] = picked[first]
        if not len(scores) or not n_states:
            break
    if best is None:
        return Selection(None, np.inf, is_exact)
    unordered = np.empty(len(options), dtype=np.intp)
    unordered[order] = best
    return Selection(unordered, best_cost, is_exact)


def pooled_scores(form: Additive, Z: FloatArray) -> FloatArray:
    """s_c of rows from their plane scores, (n, P) -> (n, C)."""
    planes = form.planes
    return Z if planes.n_planes == planes.n_classes else planes.pooled(Z, form.sharpness)[0]


def margins_over(form: Additive, Z: FloatArray, target: int) -> FloatArray:
    """(n, C) margins of the target over every class."""
    S = pooled_scores(form, Z)
    margins: FloatArray = S[:, target, None] - S
    return margins


def _is_reached(form: Additive, Z: FloatArray, aim: Aim, log_odds: float | None) -> BoolArray:
    """(n,) whether the target leads by enough, and is probable enough."""
    S = pooled_scores(form, Z)
    others = np.delete(S, aim.target, axis=1)
    is_reached: BoolArray = S[:, aim.target] - others.max(axis=1) >= aim.lead
    if log_odds is not None:
        total = np.logaddexp.reduce(others / form.temperature, axis=1)
        is_reached &= S[:, aim.target] / form.temperature - total >= log_odds
    return is_reached


class _Bounds:
    """order : columns by their largest gain;  need : (K,) gain needed over each rival;
    gains : by depth, (n_options, K);  can_stop : whether the columns from a depth on may stay."""

    def __init__(self, options: list[Options], form: Additive, Z: FloatArray, aim: Aim) -> None:
        margins = Aim(aim.target, 0.0).margins(form, Z)
        rivals = np.argsort(margins, kind="stable")[:MOST_RIVALS]
        rivals = rivals[np.isfinite(margins[rivals])]
        self.form, self.target, self.lead, self.rivals = form, aim.target, aim.lead, rivals
        need = aim.lead - margins[rivals]
        self.need = need - ROUNDING * (1.0 + np.abs(need))
        planes = form.planes
        gains = []
        for one in options:
            own = member_extreme(planes, one.F, aim.target, largest=True)
            lost = [member_extreme(planes, one.F, int(k), largest=False) for k in rivals]
            gains.append(own[:, None] - np.stack(lost, axis=1))
        self.order = np.argsort([-float(one[:, 0].max()) for one in gains], kind="stable")
        self.gains = [gains[i] for i in self.order]
        costs = [options[i].cost for i in self.order]
        n = len(options)
        self.most = np.zeros((n + 1, len(self.need)))
        self.least = np.zeros((n + 1, len(self.need)))
        self.can_stop = [True] * (n + 1)
        self.multiplier = self._multipliers(costs)
        for depth in range(n - 1, -1, -1):
            gain, cost = self.gains[depth], costs[depth]
            self.most[depth] = self.most[depth + 1] + gain.max(axis=0)
            relaxed = cost[:, None] - self.multiplier * gain
            self.least[depth] = self.least[depth + 1] + relaxed.min(axis=0)
            self.can_stop[depth] = self.can_stop[depth + 1] and bool(
                cost[0] == 0.0 and not options[self.order[depth]].F[0].any()
            )

    def _multipliers(self, costs: list[FloatArray]) -> FloatArray:
        """(K,) the l with the largest bound for each rival."""
        bound = MULTIPLIERS[:, None] * self.need
        for gain, cost in zip(self.gains, costs, strict=True):
            relaxed = cost[:, None, None] - MULTIPLIERS[None, :, None] * gain[:, None, :]
            bound = bound + relaxed.min(axis=0)
        best = bound.argmax(axis=0)
        return np.where(bound.max(axis=0) > 0.0, MULTIPLIERS[best], 0.0)

    def least_cost(self, depth: int, cost: FloatArray, V: FloatArray) -> FloatArray:
        bounds = self.multiplier * (self.need - V) + self.least[depth]
        least: FloatArray = cost + np.maximum(bounds.max(axis=1, initial=0.0), 0.0)
        return least

    def expected_cost(self, depth: int, cost: FloatArray, Z: FloatArray) -> FloatArray:
        """As ``least_cost``, with the margins that are reached instead of their bounds."""
        gap = self.lead - margins_over(self.form, Z, self.target)[:, self.rivals]
        expected: FloatArray = cost + (self.multiplier * gap + self.least[depth]).max(axis=1)
        return expected

    def may_improve(
        self, depth: int, cost: FloatArray, V: FloatArray, best_cost: float
    ) -> BoolArray:
        can_reach = (V + self.most[depth] >= self.need).all(axis=1)
        alive: BoolArray = can_reach & (self.least_cost(depth, cost, V) < best_cost)
        return alive
