"""Exact refinement of a change: the nearest one within the linear pieces that it lies in.

Starting points: for numbers of a linear model, one convex program per plane of the target;
otherwise the search over segments (``geometry/search.py``). Then repeat: replace the margins by
their tangents, take the nearest point that satisfies those, and move back towards the last valid
point until the soft model agrees. Stop when that gains nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.geometry.bounds import plane_programs, soft_slack, straight_slopes
from geomix.geometry.cell_search import best_cells
from geomix.geometry.moves import Change, Moves
from geomix.geometry.projection import nearest_point
from geomix.geometry.search import Aim, search

REFINE_STEPS = 8
MOST_STARTS = 6
MOST_REFINED = 3


def best_change(moves: Moves, aim: Aim, norm: float) -> Change | None:
    """The cheapest change from several starting points, each refined within its segments."""
    stay = moves.unchanged
    if aim.is_met(moves.form, moves.scores(stay)):
        return stay
    best: Change | None = None
    cost = np.inf
    for start in _from_planes(moves, aim, norm):
        change = refined(moves, aim, norm, start)
        if moves.cost(change, norm) < cost:
            best, cost = change, moves.cost(change, norm)
    if best is not None:
        return best
    if moves.pairs:
        best = _within_cells(moves, aim, norm)
        if best is not None:
            return best
    found = [
        search(moves, aim, metric, A) for A in _starts(moves, aim) for metric in sorted({2.0, norm})
    ]
    reached = sorted((one for one in found if one), key=lambda one: moves.cost(one, norm))
    for start in reached[:MOST_REFINED]:
        change = refined(moves, aim, norm, start)
        if moves.cost(change, norm) < cost:
            best, cost = change, moves.cost(change, norm)
    return best


def _within_cells(moves: Moves, aim: Aim, norm: float) -> Change | None:
    """The cheapest change within the best cells of linked columns, of several starting points."""
    best: Change | None = None
    for A in _starts(moves, aim):
        groups = best_cells(moves, aim, norm, A)
        if groups is None:
            continue
        inside, places = moves.in_groups(groups)
        found = best_change(inside, aim, norm)
        if found is not None and (
            best is None or inside.cost(found, norm) < moves.cost(best, norm)
        ):
            best = Change(places[found.segments], found.t)
    return best


def _from_planes(moves: Moves, aim: Aim, norm: float) -> list[Change]:
    """Valid changes of a linear model's numbers: one convex program for each plane of the target.

    Where z_m leads every plane of the other classes by log(M) / k, the soft model agrees.
    """
    form = moves.form
    straight = straight_slopes(form)
    if straight is None or (moves.c0 > 0.0).any() or form.planes.n_members > 1:
        return []
    stay = moves.unchanged
    slopes = moves.slopes(stay.segments)
    low, high = moves.cell_low[stay.segments], moves.cell_high[stay.segments]
    Z = moves.scores(stay) - stay.t @ slopes
    # A slightly larger lead, so that the start stays valid despite the solver's rounding.
    lead = aim.lead + 1e-7 * (1.0 + float(np.abs(Z).max()))
    lead += max(soft_slack(form, k) for k in range(form.planes.n_classes))
    found = plane_programs(form, Z, slopes.T, aim.target, norm, low, high, -lead)
    points = sorted(
        (one.point for one in found if one.point is not None),
        key=lambda t: float(np.linalg.norm(t, norm)),
    )
    changes = [
        _in_segments(moves, stay.segments, moves.columns, np.clip(t, low, high), stay)
        for t in points[:MOST_STARTS]
    ]
    return [one for one in changes if aim.is_met(form, moves.scores(one))]


def _starts(moves: Moves, aim: Aim) -> list[FloatArray]:
    """Responsibilities to start from: those of the row, and each plane of the target alone."""
    form = moves.form
    planes = form.planes
    A = planes.pooled(moves.Z[None, :], form.sharpness)[1][0]
    own = np.flatnonzero(planes.class_of == aim.target)
    starts = [A]
    if len(own) == 1 or planes.n_members > 1:
        return starts
    for m in own[np.argsort(-moves.Z[own])][:MOST_STARTS]:
        alone = np.where(planes.class_of == aim.target, 0.0, A)
        alone[m] = 1.0
        starts.append(alone)
    return starts[1:] if len(own) <= MOST_STARTS else starts


def refined(moves: Moves, aim: Aim, norm: float, change: Change) -> Change:
    """The nearest change within the linear pieces that ``change`` lies in.

    Levels stay fixed.
    """
    segments, form = change.segments, moves.form
    free = np.flatnonzero(moves.cell_high[segments] > moves.cell_low[segments])
    if not len(free):
        return change
    slopes = moves.slopes(segments)[free]
    low, high = moves.cell_low[segments][free], moves.cell_high[segments][free]
    base = moves.scores(change) - change.t[free] @ slopes
    t = change.t[free]
    for _ in range(REFINE_STEPS):
        target = _tangent_point(form, aim, base + t @ slopes, slopes, t, norm, low, high)
        if target is None:
            break
        moved = _valid_point(form, aim, base, slopes, t, target)
        gain = np.linalg.norm(t, norm) - np.linalg.norm(moved, norm)
        if gain <= 0.0:
            break
        t = moved
        if gain <= 1e-9 * np.linalg.norm(t, norm):
            break
    return _in_segments(moves, segments, free, t, change)


def _in_segments(
    moves: Moves, segments: IntArray, free: IntArray, t: FloatArray, before: Change
) -> Change:
    """The change with t in its free columns, each in the segment that holds it."""
    whole = before.t.copy()
    whole[free] = t
    found = segments.copy()
    for j in free[
        (whole[free] < moves.t_a[segments[free]]) | (whole[free] > moves.t_b[segments[free]])
    ]:
        first, end = moves.column_start[j : j + 2]
        same = moves.group_of[first:end] == moves.group_of[segments[j]]
        inside = np.flatnonzero(
            same & (moves.t_a[first:end] <= whole[j]) & (whole[j] <= moves.t_b[first:end])
        )
        found[j] = first + inside[0] if len(inside) else segments[j]
    return Change(found, whole)


def _tangent_point(
    form: Additive,
    aim: Aim,
    Z: FloatArray,
    slopes: FloatArray,
    t: FloatArray,
    norm: float,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray | None:
    """The nearest t whose margins, by their tangents at the present t, are large enough."""
    planes = form.planes
    margins = aim.margins(form, Z)
    A = planes.pooled(Z[None, :], form.sharpness)[1][0]
    rivals = [k for k in range(planes.n_classes) if k != aim.target]
    sign = (planes.class_of == aim.target) * 1.0
    D = np.stack([A * (sign - (planes.class_of == k)) for k in rivals])
    G = D @ slopes.T
    h = aim.lead - margins[rivals] + G @ t
    return _bounded_nearest(G, h, norm, low, high)


def _bounded_nearest(
    G: FloatArray, h: FloatArray, norm: float, low: FloatArray, high: FloatArray
) -> FloatArray | None:
    """The nearest point; a limit is added only once a point without it violates it."""
    if norm != 2.0:
        return nearest_point(G, h, norm, low, high).point
    held = (low > 0.0) | (high < 0.0)
    for _ in range(len(low) + 1):
        at_low, at_high = np.where(held, low, -np.inf), np.where(held, high, np.inf)
        point = nearest_point(G, h, norm, at_low, at_high).point
        if point is None:
            return None
        broken = (point < low - 1e-12) | (point > high + 1e-12)
        if not (broken & ~held).any():
            return np.clip(point, low, high)
        held = held | broken
    return None


def _valid_point(
    form: Additive,
    aim: Aim,
    base: FloatArray,
    slopes: FloatArray,
    valid: FloatArray,
    to: FloatArray,
) -> FloatArray:
    """The valid point nearest to ``to`` on the line from a valid point."""
    start, rise = base + valid @ slopes, (to - valid) @ slopes

    def excess(part: float) -> float:
        return float(aim.margins(form, start + part * rise).min()) - aim.lead

    if excess(1.0) >= 0.0:
        return to
    if excess(0.0) <= 0.0:
        return valid
    part = brentq(excess, 0.0, 1.0, xtol=1e-12)
    while excess(part) < 0.0:  # the root is rounded: move to its valid side
        part -= 1e-12 + 1e-9 * part
    return valid + max(part, 0.0) * (to - valid)
