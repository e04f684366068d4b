"""Certified radii of curves, pairs and ensembles, from the most that changes take off a margin.

Norm inf: the largest r such that no change of at most r in every number reaches a rival. Norms 1
and 2: the bound of the distance to each rival (``bounds.py``). Every number is free and everything
else fixed.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive
from geomix.geometry.bounds import bound_by_reach, proved_reach
from geomix.geometry.constraints import Constraints
from geomix.geometry.segments import moves_of

LARGEST_RADIUS = 1e6  # in units of scale; no larger finite radius is reported
CLOSE = 1e-6  # relative error of a radius in norm inf


def radius_by_columns(
    form: Additive, row: FloatArray, code: int, norm: float, unit: FloatArray
) -> float:
    """Radius within which no rival of class ``code`` can be predicted."""
    moves = moves_of(form, row, numbers_free(form, row, unit))
    rivals = [k for k in range(form.planes.n_classes) if k != code]
    if norm == np.inf:
        return min(proved_reach(moves, k, code, 0.0, 2.0, CLOSE) for k in rivals)
    return min(bound_by_reach(moves, k, code, norm) for k in rivals)


def numbers_free(form: Additive, row: FloatArray, unit: FloatArray) -> Constraints:
    """Every number may change, in ``unit``; categories stay."""
    limit = np.full(len(row), np.inf)
    held = {shape.column: [row[shape.column]] for shape in form.shapes if shape.kind == "category"}
    return Constraints(-limit, limit, held, unit, np.ones(len(row)), (None,) * len(row))
