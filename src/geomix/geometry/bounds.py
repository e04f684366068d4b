"""Proved lower bounds of the distance from a row to the nearest row of another class.

By columns, for every additive model. With dz = z(x') - z(x), a soft-OR rises by at most its largest
dz_m. It is convex, so it rises by at least its tangent a . dz, where a are the responsibilities at
x. Hence a row x' has the target t instead of the rival c only if, for some plane m of t,

    sum_j v_j(x'_j) + sum_{j,k} v_jk(x'_j, x'_k) >= - margin(x),      v = dF_m - a . dF_c

with one term v_j per column and one v_jk per pair of columns. The terms are exact, and linear on
each segment of a column. (Of an ensemble's target, the mean over members of max_m dF_m takes the
place of dF_m, column by column; it is convex on each segment and lies below its chord.) The least
cost with a gain of at least need is bounded by Lagrange duality: for every l >= 0 it is at least
l need + min over x' of (cost - l gain), which is a sum over columns, or a small elimination where
columns are linked by pairs (``moves.py``). With one plane per class v is exact, and so is the bound
of a linear model.

By planes, for linear models without an ensemble: 0 <= s_c - max_m z_cm <= log(M_c) / k. Where the
soft model predicts class c, some plane m of c therefore has z_cm + log(M_c) / k >= z_q for every
plane q of the other classes. That is one polyhedron per plane m, and its distance is a small
convex program.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.planes import Planes
from geomix.explain.additive_form import Additive
from geomix.explain.shapes import NumberShape
from geomix.geometry.moves import FAR, Gains, Moves
from geomix.geometry.projection import Nearest, nearest_point
from geomix.geometry.search import Aim

# Multipliers tried first; then, six times, those that cut the interval (of a factor of ten) that
# holds the best one into six parts. The bound is flat there: a relative error of 1e-9 is left.
MULTIPLIERS = np.geomspace(1e-3, 1e6, 10)
CUTS = np.arange(1, 6) / 6.0
ROUNDS = 6
# With pairs every round is an elimination, and the gap to the true distance exceeds 1e-4 anyway.
ROUNDS_WITH_PAIRS = 3
REACHES = (1.5, 3.0, 1e9)  # R, as multiples of the largest r within which nothing changes
COARSE, COARSEST = 0.02, 0.3  # relative errors of that r
MOST_HALVINGS = 50
ROUNDING = 1e-9  # relative rounding error of a margin, which is a difference of sums


def member_extreme(planes: Planes, F: FloatArray, code: int, *, largest: bool) -> FloatArray:
    """Mean over members of the largest (smallest) of a class's planes; F : (n, P) -> (n,)."""
    first, end = planes.class_start[code : code + 2]
    own = F[:, first:end].reshape(len(F), planes.n_members, -1)
    extreme: FloatArray = (own.max(axis=2) if largest else own.min(axis=2)).mean(axis=1)
    return extreme


def bound_by_columns(moves: Moves, aim: Aim, norm: float) -> float:
    """A lower bound of the distance; infinite where the target is proved unreachable."""
    bounds = (dual_bound(moves, aim.target, k, norm, aim.lead) for k in _leading(moves, aim))
    return max(bounds, default=0.0)


def reach_by_columns(moves: Moves, aim: Aim, norm: float) -> float:
    """As ``bound_by_columns``, without duality: a coarse bound, where pairs link columns."""
    bounds = (
        proved_reach(moves, aim.target, k, aim.lead, norm, COARSEST) for k in _leading(moves, aim)
    )
    return max(bounds, default=0.0)


def is_out_of_reach(moves: Moves, aim: Aim) -> bool:
    """Whether it is proved that no change reaches the target."""
    return not moves.reaches_far and any(
        _most(moves, aim.target, k) < _need(moves, aim.target, k, aim.lead)
        for k in _leading(moves, aim)
    )


def _leading(moves: Moves, aim: Aim) -> list[int]:
    """The two strongest rivals that the target does not lead by enough."""
    margins = aim.margins(moves.form, moves.Z)
    return [int(k) for k in np.argsort(margins)[:2] if margins[k] < aim.lead]


def bound_by_reach(moves: Moves, target: int, rival: int, norm: float, lead: float = 0.0) -> float:
    """The best bound by duality among the changes of at most R in every column, for a few R.

    A change is either among them or longer than R. Fewer changes have a tighter bound, above all
    where pairs link columns.
    """
    found = proved_reach(moves, target, rival, lead, norm, COARSE)
    if not 0.0 < found < FAR:
        return found
    for R in (found * times for times in REACHES):
        some = moves.within(R, norm)
        found = max(found, min(R, dual_bound(some, target, rival, norm, lead)))
    return found


def proved_reach(
    moves: Moves, target: int, rival: int, lead: float, norm: float, close: float
) -> float:
    """The largest r, up to a relative error ``close``, such that no change of at most r in every
    column reaches the target; infinite where none does at all."""
    need = _need(moves, target, rival, lead)
    if need <= 0.0:
        return 0.0
    if _most(moves, target, rival) < need:
        return FAR if moves.reaches_far else np.inf
    low, high = moves.least_reach(norm), FAR
    for _ in range(MOST_HALVINGS):
        # Geometric means first: radii lie many powers of ten below the largest.
        middle = np.sqrt(low * high) if low > 0.0 else high / 16.0
        is_proved = _most(moves.within(middle, norm), target, rival) < need
        low, high = (middle, high) if is_proved else (low, middle)
        if high - low <= close * high:
            break
    return low


def _need(moves: Moves, target: int, rival: int, lead: float) -> float:
    """The gain that the target needs to lead the rival by ``lead``, less its rounding error."""
    need = lead - float(Aim(target, 0.0).margins(moves.form, moves.Z)[rival])
    return need - ROUNDING * (1.0 + abs(need))


def _most(moves: Moves, target: int, rival: int) -> float:
    """The largest gain of the target over the rival."""
    return float(moves.most(target_gains(moves, target, rival)).max())


def dual_bound(moves: Moves, target: int, rival: int, norm: float, lead: float = 0.0) -> float:
    """The bound by Lagrange duality, in one step; infinite where the target is out of reach."""
    need = _need(moves, target, rival, lead)
    if need <= 0.0:
        return 0.0
    gains = target_gains(moves, target, rival)
    can_reach = moves.most(gains) >= need
    if not can_reach.any():
        return FAR if moves.reaches_far else np.inf
    bound = float(_dual_bounds(moves, gains.take(can_reach), need, norm).min())
    bound = max(bound, 0.0) * (1.0 - 1e-9)
    return min(float(np.sqrt(bound)) if norm == 2.0 else bound, FAR)


def target_gains(moves: Moves, target: int, rival: int) -> Gains:
    """v of the formula at the top: one gain per plane of the target; of an ensemble, one."""
    gains, class_of = gains_over(moves, rival)
    return gains.take(class_of == target)


def gains_over(moves: Moves, rival: int) -> tuple[Gains, IntArray]:
    """The gains of all classes over one of them, and the class of each gain."""
    form = moves.form
    planes = form.planes
    A = planes.pooled(moves.Z[None, :], form.sharpness)[1][0]
    tangent = moves.gains((A * (planes.class_of == rival))[None, :])
    if planes.n_members == 1:
        own, class_of = moves.gains(np.eye(planes.n_planes)), planes.class_of
    else:
        every = tuple(_member_largest(planes, one.F) for one in moves.pairs)
        own, class_of = Gains(_member_largest(planes, moves.F), every), np.arange(planes.n_classes)
    pairs = tuple(mine - theirs for mine, theirs in zip(own.pairs, tangent.pairs, strict=True))
    return Gains(own.points - tangent.points, pairs), class_of


def _member_largest(planes: Planes, F: FloatArray) -> FloatArray:
    """Of every class: (..., P) -> (C, ...)."""
    flat = F.reshape(-1, F.shape[-1])
    every = [member_extreme(planes, flat, c, largest=True) for c in range(planes.n_classes)]
    return np.stack(every).reshape(-1, *F.shape[:-1])


def _dual_bounds(moves: Moves, gains: Gains, need: float, norm: float) -> FloatArray:
    """(B,) lower bounds of the cost, in powers of the norm, of a gain of ``need``."""
    n, m = len(gains.points), len(MULTIPLIERS)
    repeated = gains.take(np.repeat(np.arange(n), m))
    tried = np.tile(MULTIPLIERS, n)
    value, gained = moves.relaxed(repeated, tried, norm)
    value, gained = (value + tried * need).reshape(n, m), gained.reshape(n, m)
    best = value.max(axis=1)
    # The bound is concave in l. It rises while the gain is too small.
    n_small = (gained < need).sum(axis=1)
    low = np.where(n_small > 0, MULTIPLIERS[np.maximum(n_small - 1, 0)], 0.0)
    high = MULTIPLIERS[np.minimum(n_small, m - 1)]
    repeated = gains.take(np.repeat(np.arange(n), len(CUTS)))
    for _ in range(ROUNDS_WITH_PAIRS if gains.pairs else ROUNDS):
        from_low = low[:, None] * (high / np.where(low > 0.0, low, 1.0))[:, None] ** CUTS
        tried = np.where(low[:, None] > 0.0, from_low, high[:, None] * CUTS)
        value, gained = moves.relaxed(repeated, tried.ravel(), norm)
        best = np.maximum(best, (value.reshape(tried.shape) + tried * need).max(axis=1))
        n_small = (gained.reshape(tried.shape) < need).sum(axis=1)
        every = np.column_stack([low, tried, high])
        rows = np.arange(n)
        low, high = every[rows, n_small], every[rows, n_small + 1]
    return best


def straight_slopes(form: Additive) -> FloatArray | None:
    """(P, n_columns) slopes in the columns' own units where all numbers are lines and there are no
    pairs; else None. Zero for categories."""
    if form.pairs:
        return None
    slopes = np.zeros((form.planes.n_planes, len(form.shapes)))
    for j, shape in enumerate(form.shapes):
        if not isinstance(shape, NumberShape):
            continue
        if len(shape.knots) > 1:
            return None
        slopes[:, j] = shape.outer[:, 1]
    return slopes


def plane_programs(
    form: Additive,
    Z: FloatArray,
    slopes: FloatArray,
    target: int,
    norm: float,
    low: FloatArray,
    high: FloatArray,
    slack: float,
) -> list[Nearest]:
    """For each plane of the target the nearest change t with z_m + slack >= z_q for every plane q
    of other classes. slopes : (P, n) per unit of t;  low, high : (n,) limits of t."""
    class_of = form.planes.class_of
    own, others = np.flatnonzero(class_of == target), np.flatnonzero(class_of != target)
    found = []
    for m in own:
        G = slopes[m] - slopes[others]
        found.append(nearest_point(G, Z[others] - Z[m] - slack, norm, low, high))
    return found


def soft_slack(form: Additive, code: int) -> float:
    """log(M_c) / k: the most by which a soft-OR exceeds its largest plane."""
    return float(np.log(form.planes.per_class[code]) / form.sharpness)
