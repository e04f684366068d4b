"""Proved lower bounds of the distance from a row to the nearest row of another class.

By columns, for every additive model. With dF_p = z_p(x') - z_p(x), a soft-OR changes by at most
its largest and at least its smallest dF_p, and an ensemble's mean by the mean of those. Hence

    margin(x') <= margin(x) + sum_j v_j(x'_j),
    v_j = mean over members of max_{p of the target} dF_pj
          - mean over members of min_{q of a rival} dF_qj

so every row of the target class has sum_j v_j >= - margin(x). v_j is convex on each segment and
lies below its chord. The least cost with sum_j v_j >= need is bounded by Lagrange duality: for
every l >= 0 it is at least  l need + sum_j min_t (cost_j(t) - l v_j(t)). With one plane per class
v_j is exact, and so is the bound of a linear model.

By planes, for linear models without an ensemble: 0 <= s_c - max_m z_cm <= log(M_c) / k. Where the
soft model predicts class c, some plane m of c therefore has z_cm + log(M_c) / k >= z_q for every
plane q of the other classes. That is one polyhedron per plane m, and its distance is a small
convex program.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.explain.additive_form import Additive
from geomix.explain.shapes import NumberShape
from geomix.geometry.moves import FAR, Moves
from geomix.geometry.projection import Nearest, nearest_point
from geomix.geometry.search import Aim

STEPS = 40  # bisections of the multiplier; 40 halve it to 1e-12
ROUNDING = 1e-9  # relative rounding error of a margin, which is a difference of sums


def member_extreme(planes: Planes, F: FloatArray, code: int, *, largest: bool) -> FloatArray:
    """Mean over members of the largest (smallest) of a class's planes; F : (n, P) -> (n,)."""
    first, end = planes.class_start[code : code + 2]
    own = F[:, first:end].reshape(len(F), planes.n_members, -1)
    extreme: FloatArray = (own.max(axis=2) if largest else own.min(axis=2)).mean(axis=1)
    return extreme


def bound_by_columns(moves: Moves, aim: Aim, norm: float) -> float:
    """A lower bound of the distance; infinite where the target is proved unreachable."""
    margins = aim.margins(moves.form, moves.Z)
    rivals = [k for k in np.argsort(margins)[:2] if margins[k] < aim.lead]
    bounds = (bound_against(moves, aim.target, int(k), norm, aim.lead) for k in rivals)
    return max(bounds, default=0.0)


def bound_against(moves: Moves, target: int, rival: int, norm: float, lead: float = 0.0) -> float:
    """Bound of the distance to rows where the target's score leads one rival's by ``lead``."""
    planes = moves.form.planes
    need = lead - float(Aim(target, 0.0).margins(moves.form, moves.Z)[rival])
    need -= ROUNDING * (1.0 + abs(need))
    if need <= 0.0:
        return 0.0
    v = member_extreme(planes, moves.F, target, largest=True)
    v = v - member_extreme(planes, moves.F, rival, largest=False)
    starts = moves.column_start[:-1]
    most = np.maximum.reduceat(np.maximum(v[moves.at_a], v[moves.at_b]), starts).sum()
    reaches_far = bool((np.abs(moves.t_b) >= FAR).any() or (np.abs(moves.t_a) >= FAR).any())
    if most < need:
        return FAR if reaches_far else np.inf

    def dual(multiplier: float) -> tuple[float, float]:
        """Value of the bound, and the gain that is still missing."""
        change = moves.cheapest(v, multiplier, norm)
        a, b = moves.at_a[change.segments], moves.at_b[change.segments]
        part = (change.t - moves.t_a[change.segments]) / moves.safe_width[change.segments]
        gained = float(((1.0 - part) * v[a] + part * v[b]).sum())
        cost = float(moves.c0[change.segments].sum())
        cost += float(change.t @ change.t) if norm == 2.0 else float(np.abs(change.t).sum())
        return cost + multiplier * (need - gained), need - gained

    low, high = 0.0, 1e-3
    best, missing = dual(high)
    while missing > 0.0 and high < 1e12:
        low, high = high, 4.0 * high
        value, missing = dual(high)
        best = max(best, value)
    for _ in range(STEPS):
        if high - low <= 1e-6 * high:
            break
        middle = (low + high) / 2.0
        value, missing = dual(middle)
        best = max(best, value)
        low, high = (middle, high) if missing > 0.0 else (low, middle)
    bound = max(best, 0.0) * (1.0 - 1e-9)
    return min(float(np.sqrt(bound)) if norm == 2.0 else bound, FAR)


def straight_slopes(form: Additive) -> FloatArray | None:
    """(P, n_columns) slopes in the columns' own units where all numbers are lines; else None.
    Zero for categories."""
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
