"""Search for a cheap change of a row that changes the prediction.

With weights D of the planes (responsibilities of the target's planes less those of a rival's), the
gain of a change is D . F. ``search`` raises the multiplier of that gain until the *soft* model
predicts the target, narrows it down, and repeats with the responsibilities at the row found. The
soft-OR is the maximum of sum_m a_m z_m + H(a) / k over all a, so such a step never makes the result
worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive
from geomix.geometry.moves import Change, Gains, Moves

ROUNDS = 6  # updates of the responsibilities; more gain nothing
MOST_FAILURES = 8  # rivals that may win in turn before the search gives up
# Multipliers are tried in batches, since one pass over the table takes many at once: first these
# multiples of a start, then smaller ones if the smallest is large enough, then twice those in
# between. The last ones are 0.8 % apart; refinement.py does the rest.
FIRST = 4.0 ** np.arange(-4, 20)
SMALLER = 4.0 ** np.arange(-28, -4)
BETWEEN = np.arange(1, 13) / 13.0
CLOSE = 1e-2  # a relative gain that is not worth another round


def class_scores(form: Additive, Z: FloatArray) -> FloatArray:
    """s_c from plane scores: (..., P) -> (..., C)."""
    planes = form.planes
    if planes.n_planes == planes.n_classes:
        return Z
    S: FloatArray = np.logaddexp.reduceat(form.sharpness * Z, planes.pool_starts[:-1], axis=-1)
    S = S / form.sharpness
    if planes.n_members == 1:
        return S
    members: FloatArray = S.reshape(*Z.shape[:-1], planes.n_classes, -1)
    return members.mean(axis=-1)


@dataclass(frozen=True, eq=False)
class Aim:
    """The class to reach, and the least lead of its score over every other class."""

    target: int
    lead: float

    def margins(self, form: Additive, Z: FloatArray) -> FloatArray:
        """(..., C) s_target - s_k; infinite for the target itself."""
        S = class_scores(form, Z)
        margins: FloatArray = S[..., self.target, None] - S
        margins[..., self.target] = np.inf
        return margins

    def is_met(self, form: Additive, Z: FloatArray) -> bool:
        return bool(self.margins(form, Z).min() >= self.lead)


def rival_gains(moves: Moves, aim: Aim, A: FloatArray) -> tuple[Gains, float]:
    """One gain, of the target over its strongest rival, and how much of it is needed."""
    margins = aim.margins(moves.form, moves.Z)
    rival = int(margins.argmin())
    class_of = moves.form.planes.class_of
    D = A * (class_of == aim.target) - A * (class_of == rival)
    return moves.gains(D[None, :]), aim.lead - float(margins[rival])


def search(moves: Moves, aim: Aim, norm: float, A: FloatArray) -> Change | None:
    """A cheap change after which the soft model predicts the target; A : (P,) responsibilities.

    The gain is measured against the strongest rival. If another class wins instead, it is
    measured against a mixture of rivals, which each such failure shifts towards the winner.
    """
    form = moves.form
    best, best_cost, multiplier = None, np.inf, 1e-3
    class_of = form.planes.class_of
    mixture = np.zeros(form.planes.n_classes)
    mixture[aim.margins(form, moves.Z).argmin()] = 1.0
    n_failed = 0
    for _ in range(ROUNDS + MOST_FAILURES):
        D = A * (class_of == aim.target) - A * mixture[class_of]
        found = _least_multiplier(moves, aim, norm, moves.gains(D[None, :]), multiplier)
        change = found.change
        if not found.is_reached:
            n_failed += 1
            if n_failed > MOST_FAILURES or best is not None:
                break
            mixture *= n_failed / (n_failed + 1.0)
            mixture[found.rival] += 1.0 / (n_failed + 1.0)
            A = form.planes.pooled(moves.scores(change)[None, :], form.sharpness)[1][0]
            continue
        multiplier = found.multiplier
        cost = moves.cost(change, norm)
        if cost >= best_cost * (1.0 - CLOSE):
            break
        best, best_cost = change, cost
        before, A = A, form.planes.pooled(moves.scores(change)[None, :], form.sharpness)[1][0]
        if np.array_equal(A, before):  # as with one plane per class
            break
    return best


class _Reached(NamedTuple):
    """The cheapest change found that reaches the target, or else the one that came nearest, with
    the rival that wins there."""

    is_reached: bool
    change: Change
    multiplier: float
    rival: int


def _least_multiplier(moves: Moves, aim: Aim, norm: float, gains: Gains, start: float) -> _Reached:
    """The smallest multiplier, to a hundredth, whose changes reach the target."""
    tried = start * FIRST
    changes, margins = _tried(moves, aim, norm, gains, tried)
    reached = np.flatnonzero(margins.min(axis=1) >= aim.lead)
    if not len(reached):
        nearest = int(margins.min(axis=1).argmax())
        return _Reached(False, changes[nearest], start, int(margins[nearest].argmin()))
    if reached[0] == 0:
        tried = np.append(start * SMALLER, tried[0])
        changes, margins = _tried(moves, aim, norm, gains, tried)
        reached = np.flatnonzero(margins.min(axis=1) >= aim.lead)
    at = int(reached[0])
    below, above = changes[max(at - 1, 0)], changes[at]
    low, high = tried[max(at - 1, 0)], tried[at]
    for _ in range(2 if at > 0 else 0):
        tried = low * (high / low) ** BETWEEN
        changes, margins = _tried(moves, aim, norm, gains, tried)
        is_reached = margins.min(axis=1) >= aim.lead
        at = int(is_reached.argmax()) if is_reached.any() else len(tried)
        if at < len(tried):
            above, high = changes[at], tried[at]
        if at > 0:
            below, low = changes[at - 1], tried[at - 1]
    return _Reached(True, _between(moves, aim, norm, gains, below, above), float(high), 0)


def _between(
    moves: Moves, aim: Aim, norm: float, gains: Gains, below: Change, above: Change
) -> Change:
    """The cheapest change on the way from one that misses the target to one that reaches it.

    Levels and distant values change all at once at a multiplier, and a few of them may do: columns
    take their new value one after another, those that gain most for their cost first.
    """
    differ = np.flatnonzero((below.segments != above.segments) | (below.t != above.t))
    if len(differ) < 2:
        return above
    rise = moves.cost_by_column(above, norm) - moves.cost_by_column(below, norm)
    gain = moves.gain_by_column(above, gains) - moves.gain_by_column(below, gains)
    order = differ[np.argsort(-gain[differ] / np.maximum(rise[differ], 1e-12), kind="stable")]
    taken = np.tril(np.ones((len(order), len(order)), dtype=bool))
    is_new = np.zeros((len(order), len(below.t)), dtype=bool)
    is_new[:, order] = taken
    steps = Change(
        np.where(is_new, above.segments, below.segments), np.where(is_new, above.t, below.t)
    )
    reached = aim.margins(moves.form, moves.scores(steps)).min(axis=1) >= aim.lead
    cost = moves.cost_by_column(steps, norm).sum(axis=1)
    cost = np.where(reached, cost, np.inf)
    return steps[int(cost.argmin())] if reached.any() else above


def _tried(
    moves: Moves, aim: Aim, norm: float, gains: Gains, multipliers: FloatArray
) -> tuple[Change, FloatArray]:
    """The cheapest change at each multiplier, and (B, C) its margins."""
    changes = moves.cheapest(gains, multipliers, norm)
    return changes, aim.margins(moves.form, moves.scores(changes))
