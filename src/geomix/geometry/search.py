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
STEP = 4.0  # factor between multipliers on the way up
STEPS_UP = 24
STEPS_DOWN = 18
CLOSE = 1e-2  # multipliers this close give the same segments; refinement.py does the rest


def class_scores(form: Additive, Z: FloatArray) -> FloatArray:
    """s_c of one row from its plane scores: (P,) -> (C,)."""
    planes = form.planes
    if planes.n_planes == planes.n_classes:
        return Z
    S: FloatArray = np.logaddexp.reduceat(form.sharpness * Z, planes.pool_starts[:-1])
    S = S / form.sharpness
    return S if planes.n_members == 1 else S.reshape(planes.n_classes, -1).mean(axis=1)


@dataclass(frozen=True, eq=False)
class Aim:
    """The class to reach, and the least lead of its score over every other class."""

    target: int
    lead: float

    def margins(self, form: Additive, Z: FloatArray) -> FloatArray:
        """(C,) s_target - s_k; infinite for the target itself."""
        S = class_scores(form, Z)
        margins: FloatArray = S[self.target] - S
        margins[self.target] = np.inf
        return margins

    def is_met(self, form: Additive, Z: FloatArray) -> bool:
        return bool(self.margins(form, Z).min() >= self.lead)


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
        A = form.planes.pooled(moves.scores(change)[None, :], form.sharpness)[1][0]
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

    def at(multiplier: float) -> tuple[Change, FloatArray]:
        change = moves.cheapest(gains, multiplier, norm)
        return change, aim.margins(moves.form, moves.scores(change))

    low, high, nearest, before = 0.0, start, -np.inf, np.nan
    reached: Change | None = None
    missed, rival = at(0.0)[0], 0
    for _ in range(STEPS_UP):
        change, margins = at(high)
        if margins.min() >= aim.lead:
            reached = change
            break
        if margins.min() > nearest:
            nearest, missed, rival = float(margins.min()), change, int(margins.argmin())
        elif margins.min() == before and change.t.any():
            break  # every column is at its best end already
        low, high, before = high, STEP * high, float(margins.min())
    if reached is None:
        return _Reached(False, missed, start, rival)
    if low == 0.0:  # reached at the first multiplier: go down until it is not
        for _ in range(STEPS_UP):
            change, margins = at(high / STEP)
            if margins.min() < aim.lead:
                low = high / STEP
                break
            reached, high = change, high / STEP
    for _ in range(STEPS_DOWN):
        if high - low <= CLOSE * high:
            break
        middle = float(np.sqrt(low * high)) if low > 0.0 else high / 2.0
        change, margins = at(middle)
        if margins.min() >= aim.lead:
            reached, high = change, middle
        else:
            low = middle
    return _Reached(True, reached, high, rival)
