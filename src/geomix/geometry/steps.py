"""Steps of numbers: 1 for integers, 0.01 for two decimals, None for continuous columns.

A model stores no training rows. A spline lift stores training values of each number (its knots and
bins), from which steps are learnt; other lifts need rows. A step is a power of ten, at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart
from geomix.explain.cells import column_place, encoded_rows, model_schema
from geomix.model import GeometricMixture

MOST_DECIMALS = 4  # more decimals count as continuous


def column_steps(
    model: GeometricMixture, row: FloatArray, X: Any, steps: Mapping[Any, float | None] | None
) -> list[float | None]:
    """The step of every column for changes of ``row``: from ``steps``, rows ``X`` or the lift."""
    values = _known_values(model, X)
    found: list[float | None] = [None] * len(row)
    for j, column in enumerate(model_schema(model).columns):
        if column.kind == "number" and j in values and not np.isnan(row[j]):
            found[j] = learnt_step(np.append(values[j], row[j]))
    for name, step in (steps or {}).items():
        j = column_place(model, name)
        if step is not None and not 0.0 <= float(step) < np.inf:
            raise ValueError(
                f"Got step {step!r} of {name!r}; expected a positive number, or None for a "
                "continuous column."
            )
        found[j] = float(step) if step else None
    return found


def learnt_step(values: FloatArray) -> float | None:
    """The largest power of ten, at most 1, that all values are multiples of; None if there is none.

    >>> learnt_step(np.array([1.0, 3.0])), learnt_step(np.array([0.5, 0.25]))
    (1.0, 0.01)
    """
    values = values[np.isfinite(values)]
    for decimals in range(MOST_DECIMALS + 1):
        if np.array_equal(np.round(values, decimals), values):
            return float(10.0**-decimals)
    return None


def _known_values(model: GeometricMixture, X: Any) -> dict[int, FloatArray]:
    if X is not None:
        encoded = encoded_rows(model, X)
        return {j: np.unique(encoded[:, j]) for j in range(encoded.shape[1])}
    if not isinstance(model.lift, SplineLift):
        return {}
    return {part.column: part.values for part in model.lift.parts if isinstance(part, CurvePart)}
