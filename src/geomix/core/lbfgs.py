"""L-BFGS on one flat array (Nocedal and Wright, algorithms 7.4, 3.5 and 3.6).

Directions come from the last ten steps; the line search ends on the strong Wolfe conditions, so
the value never rises. ``native/solvers/lbfgs.h`` takes the same steps with the same constants. The
trials of a search end before they converge, so with another solver it would choose another model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.step_memory import StepMemory

DECREASE, CURVATURE = 1e-3, 0.9  # of the Wolfe conditions
MOST_TRIALS = 20  # of one line search
WIDER = 4.0  # the next trial, as long as the minimum is not bracketed
EDGE = 0.1  # share of the bracket at each end that a trial keeps away from
# The first steps have no curvature yet, and may gain little far from the minimum.
FEW_STEPS = 4

Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]


class Enough(Exception):
    """Raised by ``on_iterate`` to end the minimisation at the current point."""


class Point(NamedTuple):
    """A point x + t d of a line search, with value and gradient there, and the slope along d."""

    x: FloatArray
    value: float
    gradient: FloatArray
    t: float = 0.0
    slope: float = 0.0


def default_value_tol(tol: float) -> float:
    """Relative decrease of one iteration below which a gradient tolerance counts as reached."""
    return min(1e-4 * tol, 1e-9)


def minimize(
    objective: Objective,
    start: FloatArray,
    *,
    max_iter: int,
    tol: float,
    on_iterate: Callable[[FloatArray, float], None],
    value_tol: float | None = None,
) -> tuple[FloatArray, bool]:
    """Minimise ``objective`` (value and gradient); the last point, and whether it converged.

    ``tol`` bounds the largest gradient entry, ``value_tol`` the relative decrease of one iteration.
    ``on_iterate`` sees every accepted point with its value and may raise ``Enough``.
    """
    value_tol = default_value_tol(tol) if value_tol is None else value_tol
    steps = StepMemory()
    at = Point(start, *objective(start))
    for n_steps in range(1, max_iter + 1):
        if _largest(at.gradient) <= tol:
            return at.x, True
        found = _next_point(objective, at, steps)
        if found is None:
            return at.x, False
        steps.add(found.x - at.x, found.gradient - at.gradient)
        gain, size = at.value - found.value, max(abs(at.value), abs(found.value), 1.0)
        at = found
        try:
            on_iterate(at.x, at.value)
        except Enough:
            return at.x, False
        has_settled = n_steps > FEW_STEPS and gain <= value_tol * size
        if has_settled or _largest(at.gradient) <= tol:
            return at.x, True
    return at.x, False


def _next_point(objective: Objective, at: Point, steps: StepMemory) -> Point | None:
    direction = steps.direction(at.gradient)
    found = _line_search(objective, at, direction, is_first=not len(steps))
    if found is None and len(steps):  # the curvature is out of date: follow the gradient
        steps.forget()
        found = _line_search(objective, at, steps.direction(at.gradient), is_first=True)
    return found


def _line_search(
    objective: Objective, at: Point, direction: FloatArray, *, is_first: bool
) -> Point | None:
    """A point that meets the strong Wolfe conditions, or at least a lower one; None without.

    Trials grow until they bracket such a point, then safeguarded cubic steps close in on it.
    """
    slope = float(at.gradient @ direction)
    if not slope < 0.0:
        return None
    low, high = at._replace(t=0.0, slope=slope), None
    t = min(1.0, 1.0 / math.sqrt(direction @ direction)) if is_first else 1.0
    for _ in range(MOST_TRIALS):
        x = at.x + t * direction
        value, gradient = objective(x)
        now = Point(x, value, gradient, t, float(gradient @ direction))
        is_higher = low.t > 0.0 and now.value >= low.value
        if not now.value <= at.value + DECREASE * t * slope or is_higher:
            high = now
        elif abs(now.slope) <= -CURVATURE * slope:
            return now
        else:
            ahead = now.t + 1.0 if high is None else high.t
            if now.slope * (ahead - low.t) >= 0.0:
                high = low
            low = now
        t = WIDER * t if high is None else _between(low, high)
    return low if low.t > 0.0 else None


def _between(a: Point, b: Point) -> float:
    """Minimiser of the cubic through two points and slopes, kept off the ends."""
    width = b.t - a.t
    t = a.t + 0.5 * width
    if math.isfinite(b.value) and math.isfinite(b.slope):
        d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t)
        under = d1 * d1 - a.slope * b.slope
        if under >= 0.0:
            d2 = math.copysign(math.sqrt(under), width)
            divisor = b.slope - a.slope + 2.0 * d2
            cubic = b.t - width * (b.slope + d2 - d1) / divisor if divisor else math.nan
            t = cubic if math.isfinite(cubic) else t
    ends = sorted((a.t + EDGE * width, b.t - EDGE * width))
    return min(max(t, ends[0]), ends[1])


def _largest(gradient: FloatArray) -> float:
    return float(np.abs(gradient).max(initial=0.0))
