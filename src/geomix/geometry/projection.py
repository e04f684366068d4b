"""The nearest point of a polyhedron, with a bound that does not depend on the solver.

    minimise ||d||   subject to   G d >= h,   low <= d <= high

Norm 2 by least-distance programming (Lawson and Hanson, Solving Least Squares Problems, 1974,
chapter 23), which is one non-negative least-squares problem and goes to SciPy's ``nnls``: with
u >= 0 minimising ||[G'; h'] u - e_last|| and r its residual, d = -r[:-1] / r[-1]; r = 0 means that
no point satisfies the constraints. Norms 1 and inf are linear programs for HiGHS.

Any multipliers u >= 0 prove a bound: G d >= h gives u'G d >= u'h, hence
||d|| >= u'h / ||G'u||_*, where * is the dual norm. That is what ``lower_bound`` holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, nnls

from geomix.arrays import FloatArray

DUAL = {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}
TINY = 1e-150  # a distance this small counts as zero: dividing by it overflows
INFEASIBLE = 2  # status of SciPy's linprog


@dataclass(frozen=True, eq=False)
class Nearest:
    """point : (n,) or None where there is none (proved by HiGHS);  lower_bound : of the distance,
    proved; infinite where there is no point."""

    point: FloatArray | None
    lower_bound: float


def nearest_point(
    G: FloatArray,
    h: FloatArray,
    norm: float = 2.0,
    low: FloatArray | None = None,
    high: FloatArray | None = None,
) -> Nearest:
    """The point of {G d >= h, low <= d <= high} nearest to zero.

    G : (m, n);  h : (m,);  low, high : (n,) with infinities, low <= 0 <= high not required.

    Examples
    --------
    >>> nearest_point(np.array([[1.0, 1.0]]), np.array([2.0])).point
    array([1., 1.])
    """
    n = G.shape[1]
    low = np.full(n, -np.inf) if low is None else low
    high = np.full(n, np.inf) if high is None else high
    if (h <= 0.0).all() and (low <= 0.0).all() and (high >= 0.0).all():
        return Nearest(np.zeros(n), 0.0)
    if n == 0:
        return Nearest(None, np.inf)
    return _by_nnls(G, h, low, high) if norm == 2.0 else _by_highs(G, h, norm, low, high)


def _with_bounds(
    G: FloatArray, h: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds as rows of G."""
    eye = np.eye(G.shape[1])
    below, above = np.isfinite(low), np.isfinite(high)
    return np.vstack([G, eye[below], -eye[above]]), np.concatenate([h, low[below], -high[above]])


def _by_nnls(G: FloatArray, h: FloatArray, low: FloatArray, high: FloatArray) -> Nearest:
    rows, ends = _with_bounds(G, h, low, high)
    length = np.linalg.norm(rows, axis=1)
    moved = length > 0.0
    if (ends[~moved] > 0.0).any():  # 0 >= something positive
        return Nearest(None, np.inf)
    rows, ends = rows[moved] / length[moved, None], ends[moved] / length[moved]
    unit = float(ends.max())  # no point is nearer than the furthest half-space
    if unit <= TINY:
        return Nearest(np.zeros(G.shape[1]), 0.0)
    E = np.vstack([rows.T, ends / unit])
    f = np.zeros(len(E))
    f[-1] = 1.0
    try:
        u, _ = nnls(E, f)
    except RuntimeError:  # too many iterations
        return Nearest(*_certified_by_highs(G, h, low, high))
    r = E @ u - f
    bound = _dual_bound(u, rows, ends, 2.0)
    if -r[-1] <= 1e-13:
        return Nearest(*_certified_by_highs(G, h, low, high))
    return Nearest(-unit * r[:-1] / r[-1], max(bound, unit))


def _certified_by_highs(
    G: FloatArray, h: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray | None, float]:
    """Any point at all; infeasible only if HiGHS has proved it."""
    found = linprog(np.zeros(G.shape[1]), -G, -h, bounds=np.column_stack([low, high]))
    if found.status == INFEASIBLE:
        return None, np.inf
    point = found.x
    return (point, 0.0) if point is not None else (np.zeros(G.shape[1]), 0.0)


def _dual_bound(u: FloatArray, rows: FloatArray, ends: FloatArray, norm: float) -> float:
    """u'h / ||G'u||_*; zero where that proves nothing."""
    gain = float(u @ ends)
    reach = float(np.linalg.norm(rows.T @ u, DUAL[norm]))
    if gain <= 0.0:
        return 0.0
    # Subtract the rounding error of the sums; below it, the bound is zero.
    reach = max(reach, 1e-14 * float(np.abs(u).sum()) * float(np.abs(rows).max(initial=1.0)))
    return (1.0 - 1e-12) * gain / reach


def _by_highs(
    G: FloatArray, h: FloatArray, norm: float, low: FloatArray, high: FloatArray
) -> Nearest:
    """d = a - b with a, b >= 0 and their sum minimal (1), or |d| <= t with t minimal (inf)."""
    n = G.shape[1]
    eye = np.eye(n)
    if norm == 1.0:
        cost = np.ones(2 * n)
        A, ends = np.hstack([-G, G]), -h
        limits = np.hstack([eye, -eye])
        bounds = np.column_stack([np.zeros(2 * n), np.full(2 * n, np.inf)])
    else:
        cost = np.concatenate([np.zeros(n), [1.0]])
        column = np.ones((n, 1))
        A = np.vstack(
            [
                np.hstack([-G, np.zeros((len(G), 1))]),
                np.hstack([eye, -column]),
                np.hstack([-eye, -column]),
            ]
        )
        ends = np.concatenate([-h, np.zeros(2 * n)])
        limits = np.hstack([eye, np.zeros((n, 1))])
        bounds = np.full((n + 1, 2), [-np.inf, np.inf])
    above, below = np.isfinite(high), np.isfinite(low)
    A = np.vstack([A, limits[above], -limits[below]])
    ends = np.concatenate([ends, high[above], -low[below]])
    found = linprog(cost, A, ends, bounds=bounds)
    if found.status == INFEASIBLE:
        return Nearest(None, np.inf)
    if found.x is None:
        return Nearest(np.zeros(n), 0.0)
    point = found.x[:n] - found.x[n:] if norm == 1.0 else found.x[:n]
    rows, ends_of_rows = _with_bounds(G, h, low, high)
    u = np.maximum(-found.ineqlin.marginals, 0.0)
    if norm == np.inf:
        u = np.concatenate([u[: len(G)], u[len(G) + 2 * n :]])
    # HiGHS gives rows of G, then upper limits, then lower ones; ``rows`` has the lower ones first.
    n_above, n_below, m = int(above.sum()), int(below.sum()), len(G)
    order = np.concatenate(
        [np.arange(m), np.arange(m + n_above, m + n_above + n_below), np.arange(m, m + n_above)]
    )
    return Nearest(point, _dual_bound(u[order], rows, ends_of_rows, norm))
