"""Curves without noise: small changes of direction are removed, large ones are kept.

Every curve of every plane is calmed (``core/calm.py``), weighted by the training rows near each
knot, so that

    every change of direction that is left is larger than the tolerance,
    the weighted mean of every piece is kept, and a monotone curve stays as it is.

A curve whose whole range is within the tolerance becomes flat, and its column drops out of what is
shown. The tolerance is chosen on validation rows (``search/finish.py``).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.calm import KnotMasses
from geomix.core.planes import Planes
from geomix.core.spline import Binned
from geomix.core.spline_parts import CurvePart
from geomix.training.rows import Rows

# Share of all rows that every knot has at least: a knot without rows must not decide where its
# neighbours go.
LEAST_MASS = 1e-9


def calmed(planes: Planes, rows: Rows, tolerance: float, left_out: Container[int] = ()) -> Planes:
    """Planes over a spline lift's own features, their curves without small changes of direction.

    rows : binned training rows;  tolerance : in units of plane scores;  left_out : columns whose
    curves stay as they are, such as monotone ones, whose planes keep an order among themselves.
    """
    return calmed_at(planes, knot_masses(rows, left_out), tolerance)


def calmed_at(planes: Planes, masses: KnotMasses, tolerance: float) -> Planes:
    """``calmed`` with the ``knot_masses`` of the rows, which are the same for every tolerance."""
    return replace(planes, weights=kernel.calm_steps(planes.weights, masses, tolerance))


def knot_masses(rows: Rows, left_out: Container[int] = ()) -> KnotMasses:
    """The curves of binned rows, and the weight near their knots."""
    X = rows.X
    assert isinstance(X, Binned)
    first, masses = [], []
    for part, steps, codes in X.by_part():
        if isinstance(part, CurvePart) and part.column not in left_out:
            mass = knot_mass(part, codes, rows.weight)
            first.append(steps.start)
            masses.append(mass + LEAST_MASS * max(mass.sum(), 1.0))
    start = np.cumsum([0, *map(len, masses)])
    return KnotMasses(np.array(first, dtype=np.intp), start, np.concatenate([[], *masses]))


def knot_mass(part: CurvePart, codes: IntArray, weight: FloatArray) -> FloatArray:
    """(n_knots,) weight of the rows near each knot; a row between two knots counts for both."""
    mass = np.bincount(codes, weight, part.n_bins)[:-1]
    inner, share = part.exact_bin_places
    at: FloatArray = np.bincount(inner, mass * (1.0 - share), len(part.knots)) * 1.0
    at += np.bincount(inner + 1, mass * share, len(part.knots))
    return at
