"""A curve without small changes of direction.

A curve has values v_k at its knots. A *turning point* is a knot from which the curve retreats by
more than a tolerance in both directions. Between turning points the curve is replaced by its
isotonic regression, weighted by the mass of each knot.

This is the reference in Python; ``native/solvers/calm.h`` is the same, number for number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class KnotMasses:
    """The curves of a lift, and the positive weight of each of their knots.

    first : (n_curves,) where the steps of a curve begin among those of a plane;  start :
    (n_curves + 1,) its knots are ``mass[start[j]:start[j + 1]]``, one more than its steps.
    """

    first: IntArray
    start: IntArray
    mass: FloatArray


def calm(values: FloatArray, mass: FloatArray, tolerance: float) -> FloatArray:
    """The values of a curve without changes of direction of at most ``tolerance``.

    mass : (n_knots,) positive weight of each knot.

    Examples
    --------
    >>> calm(np.array([0.0, 1.0, 0.9, 2.0]), np.ones(4), 0.5)
    array([0.  , 0.95, 0.95, 2.  ])
    """
    v, m = values.tolist(), mass.tolist()
    if max(v) - min(v) <= tolerance:
        return np.full(len(v), _mean(v, m))
    ends = [*turning_points(values, tolerance), len(v) - 1]
    out: list[float] = []
    start = 0
    for end in ends:
        piece = slice(len(out), end + 1)
        out += isotonic(v[piece], m[piece], rising=v[end] >= v[start])
        start = end
    return np.array(out)


def calm_steps(weights: FloatArray, masses: KnotMasses, tolerance: float) -> FloatArray:
    """(n_planes, n_steps) weights whose curves are calm: the steps between the values of ``calm``
    for curves that begin at zero."""
    out = weights.copy()
    for first, begin, end in zip(masses.first, masses.start, masses.start[1:], strict=False):
        steps = slice(first, first + end - begin - 1)
        for row in out:
            values = np.concatenate([[0.0], np.cumsum(row[steps])])
            row[steps] = np.diff(calm(values, masses.mass[begin:end], tolerance))
    return out


def _mean(values: list[float], mass: list[float]) -> float:
    # In order, as the native code adds: np.sum adds in pairs.
    total = weight = 0.0
    for value, m in zip(values, mass, strict=True):
        total += m * value
        weight += m
    return total / weight


def isotonic(values: list[float], mass: list[float], *, rising: bool) -> list[float]:
    """The monotone sequence that is nearest to ``values`` in weighted squares.

    Pools adjacent violators: a block (sum, mass, level, length) joins the one before it while
    that one is not below it.
    """
    sign = 1.0 if rising else -1.0
    blocks: list[tuple[float, float, float, int]] = []
    for value, m in zip(values, mass, strict=True):
        level = sign * value
        total, n = m * level, 1
        while blocks and blocks[-1][2] >= level:
            before = blocks.pop()
            total, m, n = before[0] + total, before[1] + m, before[3] + n
            level = total / m
        blocks.append((total, m, level, n))
    return [sign * level for _, _, level, n in blocks for _ in range(n)]


def turning_points(values: FloatArray, tolerance: float) -> list[int]:
    """Knots where the curve turns and then retreats by more than the tolerance."""
    v = values.tolist()
    turns: list[int] = []
    high = low = direction = 0
    for k, value in enumerate(v):
        if value > v[high]:
            high = k
        if value < v[low]:
            low = k
        if direction >= 0 and v[high] - value > tolerance:
            if direction > 0 or high > 0:
                turns.append(high)
            direction, high, low = -1, k, k
        elif direction <= 0 and value - v[low] > tolerance:
            if direction < 0 or low > 0:
                turns.append(low)
            direction, high, low = 1, k, k
    return turns


def direction_changes(values: FloatArray) -> int:
    """How often a curve changes from rising to falling or back."""
    signs = np.sign(np.diff(values))
    signs = signs[signs != 0]
    return int((signs[1:] != signs[:-1]).sum())
