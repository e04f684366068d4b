"""Curves without noise: small changes of direction are removed, large ones are kept.

A curve f has values v_k at its knots. A *turning point* is a knot from which the curve retreats by
more than a tolerance in both directions. Between turning points the curve is replaced by its
isotonic regression (weighted by the training rows near each knot), so that

    every change of direction that is left is larger than the tolerance,
    the weighted mean of every piece is kept, and a monotone curve stays as it is.

A curve whose whole range is within the tolerance becomes flat, and its column drops out of what is
shown. The tolerance is chosen on validation rows (``search/finish.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.isotonic import isotonic_regression

from geomix.arrays import FloatArray, IntArray
from geomix.core.planes import Planes
from geomix.core.spline import Binned
from geomix.core.spline_parts import CurvePart
from geomix.training.rows import Rows


def calmed(planes: Planes, rows: Rows, tolerance: float) -> Planes:
    """Planes over a spline lift's own features, their curves without small changes of direction.

    rows : binned training rows;  tolerance : in units of plane scores.
    """
    X = rows.X
    assert isinstance(X, Binned)
    weights = planes.weights.copy()
    for part, steps, codes in X.by_part():
        if isinstance(part, CurvePart):
            along = slice(steps.start, steps.start + len(part.knots) - 1)
            mass = knot_mass(part, codes, rows.weight)
            for plane in range(len(weights)):
                values = np.concatenate([[0.0], np.cumsum(weights[plane, along])])
                weights[plane, along] = np.diff(calm(values, mass, tolerance))
    return replace(planes, weights=weights)


def knot_mass(part: CurvePart, codes: IntArray, weight: FloatArray) -> FloatArray:
    """(n_knots,) weight of the rows near each knot; a row between two knots counts for both."""
    mass = np.bincount(codes, weight, part.n_bins)[:-1]
    inner, share = part.place(part.values)
    at: FloatArray = np.bincount(inner, mass * (1.0 - share), len(part.knots)) * 1.0
    at += np.bincount(inner + 1, mass * share, len(part.knots))
    return at


def calm(values: FloatArray, mass: FloatArray, tolerance: float) -> FloatArray:
    """The values of a curve without changes of direction of at most ``tolerance``.

    Examples
    --------
    >>> calm(np.array([0.0, 1.0, 0.9, 2.0]), np.ones(4), 0.5)
    array([0.  , 0.95, 0.95, 2.  ])
    """
    # A knot without rows must not decide where its neighbours go.
    mass = mass + 1e-9 * max(mass.sum(), 1.0)
    if np.ptp(values) <= tolerance:
        return np.full(len(values), np.average(values, weights=mass))
    turns = turning_points(values, tolerance)
    out = np.empty(len(values))
    begin = 0
    for end, rising in _pieces(values, turns):
        piece = slice(begin, end + 1)
        out[piece] = isotonic_regression(
            values[piece], sample_weight=mass[piece], increasing=rising
        )
        begin = end + 1
    return out


def _pieces(values: FloatArray, turns: list[int]) -> list[tuple[int, bool]]:
    """(last knot, whether it rises) of each monotone piece."""
    ends = [*turns, len(values) - 1]
    starts = [0, *turns]
    return [
        (end, bool(values[end] >= values[start])) for start, end in zip(starts, ends, strict=True)
    ]


def turning_points(values: FloatArray, tolerance: float) -> list[int]:
    """Knots where the curve turns and then retreats by more than the tolerance."""
    turns: list[int] = []
    high = low = 0
    direction = 0
    for k, value in enumerate(values.tolist()):
        if value > values[high]:
            high = k
        if value < values[low]:
            low = k
        if direction >= 0 and values[high] - value > tolerance:
            if direction > 0 or high > 0:
                turns.append(high)
            direction, high, low = -1, k, k
        elif direction <= 0 and value - values[low] > tolerance:
            if direction < 0 or low > 0:
                turns.append(low)
            direction, high, low = 1, k, k
    return turns


def direction_changes(values: FloatArray) -> int:
    """How often a curve changes from rising to falling or back."""
    signs = np.sign(np.diff(values))
    signs = signs[signs != 0]
    return int((signs[1:] != signs[:-1]).sum())
