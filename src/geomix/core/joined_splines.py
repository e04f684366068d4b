"""Planes over several spline lifts of the same rows, as planes over one lift.

The joined lift has the knots of all curves and the tables of all pairs. A curve of one of the
lifts is then a curve of the joined lift: its new steps are the differences of its values at the
knots,

    w'_k = f(t_k) - f(t_{k-1}),      f(x) = sum_j w_j clip((x - s_{j-1}) / (s_j - s_{j-1}), 0, 1)

which is exact where the joined lift has every knot of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.core.spline import MOST_BINS, MOST_KNOTS, SplineLift, centred, sampled
from geomix.core.spline_parts import CurvePart, SplinePart
from geomix.table.row_views import DenseRows


def joined(lifts: Sequence[SplineLift], X: DenseRows, weight: FloatArray) -> SplineLift:
    """A lift with the knots and the pairs of all ``lifts``, which were fitted on the rows ``X``.

    Where a curve would have more than ``MOST_KNOTS`` knots, it has those of the first lift and
    some of the others.
    """
    parts: dict[tuple[int, ...], SplinePart] = {}
    for lift in lifts:
        for part in lift.parts:
            known = parts.get(part.columns)
            parts[part.columns] = part if known is None else _joined_part(known, part)
    table, weight = sampled(X, weight)
    parts = {at: replace(part, mean=np.zeros(part.n_steps)) for at, part in parts.items()}
    in_order = sorted(parts.values(), key=lambda part: len(part.columns))  # pairs come last
    return SplineLift(tuple(centred(part, table, weight) for part in in_order), lifts[0].n_columns)


def _joined_part(one: SplinePart, other: SplinePart) -> SplinePart:
    if not isinstance(one, CurvePart) or not isinstance(other, CurvePart):
        return one
    knots = _with_some(one.knots, other.knots, MOST_KNOTS)
    values = _with_some(knots, np.union1d(one.values, other.values), MOST_BINS)
    return replace(one, knots=knots, values=values)


def _with_some(kept: FloatArray, others: FloatArray, most: int) -> FloatArray:
    """All numbers that are kept and of the others as many as there is room for, evenly spread."""
    others = np.setdiff1d(others, kept)
    room = max(most - len(kept), 0)
    if len(others) > room:
        others = others[np.linspace(0, len(others) - 1, room).astype(np.intp)]
    return np.union1d(kept, others)


def over(planes: Planes, lift: SplineLift, joint: SplineLift) -> Planes:
    """Planes over the features of ``lift`` as planes over those of the joined lift.

    Both lifts centre their features: what changes is in the biases, and in the step of missing
    cells, whose features are not centred.
    """
    weights, biases = np.zeros((planes.n_planes, joint.n_outputs)), planes.biases.copy()
    places = {part.columns: (part, steps) for part, steps in joint.by_part()}
    for part, steps in lift.by_part():
        target, place = places[part.columns]
        w = planes.weights[:, steps]
        if isinstance(part, CurvePart) and isinstance(target, CurvePart):
            curve, missing = np.split(w, [part.n_ordered], axis=1)
            on_knots = curve @ np.diff(part.steps_at(target.knots), axis=0).T
            shift = on_knots @ target.mean[: target.n_ordered] - curve @ part.mean[: part.n_ordered]
            biases += shift
            w = np.hstack([on_knots, missing - shift[:, None]])
        weights[:, place] = w
    return replace(planes, weights=weights, biases=biases)


def units_over(units: FloatArray | None, lift: SplineLift, joint: SplineLift) -> FloatArray | None:
    """The units of the steps of ``lift`` as units of the steps of the joined lift: a new step has
    the unit of the old one that it is a part of, and 1 where there was none."""
    if units is None:
        return None
    found = np.ones(joint.n_outputs)
    places = {part.columns: (part, steps) for part, steps in joint.by_part()}
    for part, steps in lift.by_part():
        target, place = places[part.columns]
        old = units[steps]
        if isinstance(part, CurvePart) and isinstance(target, CurvePart):
            inside = part.place(0.5 * target.knots[:-1] + 0.5 * target.knots[1:])[0]
            old = np.concatenate([old[inside], old[part.n_ordered :]])
        found[place] = old
    return found
