"""Certified radii of curves and ensembles, from the most that each column can take off a margin.

Norms 1 and 2: the bound of the distance to each rival class (``bounds.py``), with every number free
and everything else fixed. Norm inf: for class c and rival k, moving column j within r takes at most

    max over |t| <= r of  mean over members of max_{q of k} dF_qj
                          - mean over members of min_{p of c} dF_pj

off s_c - s_k. That function is convex between knots, so its maximum is at a knot or an end. The sum
over columns grows with r, and bisection finds the largest r that leaves a margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive
from geomix.explain.shapes import NumberShape
from geomix.geometry.bounds import ROUNDING, bound_against, member_extreme
from geomix.geometry.constraints import Constraints
from geomix.geometry.moves import moves_of
from geomix.geometry.search import class_scores

LARGEST_RADIUS = 1e6  # in units of scale; the search for a radius ends here
HALVINGS = 50


def radius_by_columns(
    form: Additive, row: FloatArray, code: int, norm: float, unit: FloatArray
) -> float:
    """Radius within which no rival of class ``code`` can be predicted."""
    rivals = [k for k in range(form.planes.n_classes) if k != code]
    if norm == np.inf:
        return _radius_inf(form, row, code, rivals, unit)
    limit = np.full(len(row), np.inf)
    held = {shape.column: [row[shape.column]] for shape in form.shapes if shape.kind == "category"}
    steps = (None,) * len(row)
    free = Constraints(-limit, limit, held, unit, np.ones(len(row)), steps)
    moves = moves_of(form, row, free)
    return min(bound_against(moves, k, code, norm) for k in rivals)


def _radius_inf(
    form: Additive, row: FloatArray, code: int, rivals: list[int], unit: FloatArray
) -> float:
    S = class_scores(form, form.scores(row[None, :])[0])
    radius = np.inf
    for k in rivals:
        margin = float(S[code] - S[k])
        margin -= ROUNDING * (1.0 + abs(margin))
        radius = min(radius, _largest_radius(_falls(form, row, code, k, unit), margin))
    return radius


@dataclass(frozen=True, eq=False)
class _Falls:
    """The most that moving one column by t, to one side, takes off the margin: linear between the
    points t (ascending from 0), and with slope ``after`` beyond the last."""

    t: FloatArray
    fall: FloatArray
    after: float

    def at(self, r: float) -> float:
        """At the distance r itself."""
        if r > self.t[-1]:
            return float(self.fall[-1] + self.after * (r - self.t[-1]))
        return float(np.interp(r, self.t, self.fall))

    def largest(self, r: float) -> float:
        """Within the distance r."""
        inside = self.fall[self.t <= r]
        return max(float(inside.max()), self.at(r), 0.0)


def _falls(
    form: Additive, row: FloatArray, code: int, rival: int, unit: FloatArray
) -> list[list[_Falls]]:
    """Both sides of every number that is not missing."""
    made = []
    for j, shape in enumerate(form.shapes):
        if isinstance(shape, NumberShape) and not np.isnan(row[j]):
            sides = [_side(form, shape, row[j], code, rival, unit[j], s) for s in (-1, 1)]
            made.append(sides)
    return made


def _side(
    form: Additive, shape: NumberShape, x: float, code: int, rival: int, unit: float, sign: int
) -> _Falls:
    knots = shape.knots[sign * shape.knots > sign * x]
    points = np.concatenate([[x], knots[::sign]])
    F = shape(points)
    F -= F[0]
    slope = sign * shape.outer[:, (sign + 1) // 2] * unit
    both = np.vstack([F, slope])
    fall = member_extreme(form.planes, both, rival, largest=True)
    fall = fall - member_extreme(form.planes, both, code, largest=False)
    return _Falls(sign * (points - x) / unit, fall[:-1], float(fall[-1]))


def _largest_radius(falls: list[list[_Falls]], margin: float) -> float:
    """The largest r that leaves a margin; the fall grows with r."""
    if margin <= 0.0:
        return 0.0

    def fall(r: float) -> float:
        return sum(max(side.largest(r) for side in sides) for sides in falls)

    if fall(LARGEST_RADIUS) < margin:
        every = [side for sides in falls for side in sides]
        grows = any(side.after > 0.0 or side.t[-1] > LARGEST_RADIUS for side in every)
        return LARGEST_RADIUS if grows else np.inf
    low, high = 0.0, LARGEST_RADIUS
    for _ in range(HALVINGS):
        # Geometric means first: radii lie many powers of ten below the largest.
        middle = np.sqrt(low * high) if low > 0.0 else high / 16.0
        low, high = (middle, high) if fall(middle) < margin else (low, middle)
        if high - low <= 1e-6 * high:
            break
    return low
