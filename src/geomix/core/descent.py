"""One minimisation of the penalised objective by L-BFGS: its settings and its result.

    v  ->  planes(v)  ->  value and gradient (``objective.penalised``)  ->  gradient over v

The solver, and native code as its second writing (``kernel.minimize``), minimises over the numbers
of the planes, or over other numbers that planes are made of, with bounds: ``Coordinates``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from geomix.arrays import FloatArray
from geomix.core import bounded_lbfgs, lbfgs
from geomix.core.objective import penalised
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums


@dataclass(frozen=True, eq=False)
class Descent:
    """The settings of one minimisation of the penalised objective by L-BFGS.

    It ends when no entry of the gradient is above ``tol``, an iteration gains less than
    ``value_tol`` relatively, or after ``max_iter``. ``on_iterate`` sees the planes and the
    objective of every iteration, and may raise ``lbfgs.Enough`` to end there; without it the
    native solver runs to the end in one call.
    """

    planes: Planes
    sharpness: float
    label_smoothing: float
    coefficients: FloatArray
    max_iter: int
    tol: float
    value_tol: float
    on_iterate: Callable[[Planes, float], None] | None = None
    shrink_to_mean: float = 0.0


class Descended(NamedTuple):
    """The last planes of a descent, whether it converged, the objective at every iteration."""

    planes: Planes
    converged: bool
    values: list[float]


@dataclass(frozen=True, eq=False)
class StagePlan:
    """A descent in stages of growing sharpness, each with the penalty that the usage of the planes
    at its start gives (``objective.usage_penalty``).

    sharpness : of each stage;  early_limit, early_value_tol : of all stages but the last;
    rounds : at the final sharpness, as long as they converge in more than one iteration;
    max_iter : of all stages together.
    """

    sharpness: FloatArray
    label_smoothing: float
    shrink_to_mean: float
    l2: float
    usage_beta: float
    usage_delta: float
    early_limit: int
    max_iter: int
    rounds: int
    tol: float
    early_value_tol: float
    value_tol: float


class Stage(NamedTuple):
    """What one stage did: the usage in its penalty, and the objective at every iteration."""

    sharpness: float
    usage: FloatArray
    values: list[float]


class Coordinates(Protocol):
    """The numbers that the solver works on, and their relation to planes.

    start : where it begins;  bounds : lowest and highest value of every number, or None.
    """

    @property
    def start(self) -> FloatArray: ...

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray] | None: ...

    def planes_at(self, vector: FloatArray) -> Planes:
        """The planes that the numbers stand for."""

    def gradient(self, vector: FloatArray, of_planes: FloatArray) -> FloatArray:
        """The gradient over the numbers, from that over the flat planes (``as_vector``)."""


@dataclass(frozen=True, eq=False)
class FlatPlanes:
    """The planes' own numbers, side by side and without bounds."""

    planes: Planes
    bounds = None

    @property
    def start(self) -> FloatArray:
        return self.planes.as_vector()

    def planes_at(self, vector: FloatArray) -> Planes:
        return self.planes.with_vector(vector)

    def gradient(self, vector: FloatArray, of_planes: FloatArray) -> FloatArray:
        return of_planes


def descend(rows: Sums, descent: Descent, coordinates: Coordinates | None = None) -> Descended:
    """Go down by L-BFGS over ``coordinates``, or over the planes' own numbers."""
    by = FlatPlanes(descent.planes) if coordinates is None else coordinates
    values: list[float] = []

    def objective(vector: FloatArray) -> tuple[float, FloatArray]:
        at = by.planes_at(vector)
        terms = rows.terms(at, descent.sharpness, descent.label_smoothing)
        value, gradient = penalised(terms, at, descent.coefficients, descent.shrink_to_mean)
        return value, by.gradient(vector, gradient)

    def on_iterate(vector: FloatArray, value: float) -> None:
        values.append(value)
        if descent.on_iterate is not None:
            descent.on_iterate(by.planes_at(vector), value)

    within = () if by.bounds is None else (by.bounds,)
    solver = lbfgs.minimize if by.bounds is None else bounded_lbfgs.minimize
    vector, converged = solver(
        objective,
        by.start,
        *within,
        max_iter=descent.max_iter,
        tol=descent.tol,
        value_tol=descent.value_tol,
        on_iterate=on_iterate,
    )
    return Descended(by.planes_at(vector), converged, values)
