"""Steps of numbers: 1 for integers, 0.01 for two decimals, None for continuous columns.

A model stores no training rows. A spline lift stores training values of each number (its knots and
bins), from which steps are learnt. For other lifts steps are learnt from rows, or else from the
type of the row's own cell: an integer stays one, and so does a boolean. A step is a power of ten,
at most 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart
from geomix.explain.cells import column_place, encoded_rows, model_schema
from geomix.model import GeometricMixture
from geomix.table.frames import is_frame, kind_of, names_and_types

MOST_DECIMALS = 4  # more decimals count as continuous


def column_steps(
    model: GeometricMixture,
    row: FloatArray,
    X: Any,
    steps: Mapping[Any, float | None] | None,
    whole: Collection[str] = (),
) -> list[float | None]:
    """The step of every column for changes of ``row``: from ``steps``, rows ``X`` or the lift.

    whole : names of columns of integers and booleans, which counts where nothing else is known
    """
    known = _steps_of_lift(model) if X is None else _steps_of_rows(encoded_rows(model, X))
    found: list[float | None] = [None] * len(row)
    for j, column in enumerate(model_schema(model).columns):
        if column.kind == "number" and known.get(j) is not None and not np.isnan(row[j]):
            found[j] = _finer(known[j], learnt_step(row[j : j + 1]))
        elif j not in known and column.kind == "number" and column.name in whole:
            found[j] = 1.0
    for name, step in (steps or {}).items():
        j = column_place(model, name)
        if step is not None and not 0.0 <= float(step) < np.inf:
            raise ValueError(
                f"Got step {step!r} of {name!r}; expected a positive number, or None for a "
                "continuous column."
            )
        found[j] = float(step) if step else None
    return found


def whole_columns(x: Any, unit: Mapping[str, float]) -> set[str]:
    """Names of the integers of a row; unit : by column, the change that counts as one unit.

    The type of a frame's column counts. Of cells by name, an integer may be a round value of a
    continuous column; it counts unless a step of 1 is more than a unit.
    """
    if is_frame(x):
        return {str(name) for name, dtype in names_and_types(x) if kind_of(dtype) == "integers"}
    if hasattr(x, "to_dict") and hasattr(x, "index"):
        x = x.to_dict()
    if not isinstance(x, Mapping):
        return set()
    integers = (str(name) for name, cell in x.items() if isinstance(cell, (int, np.integer)))
    return {name for name in integers if unit.get(name, 0.0) >= 1.0}


def boolean_columns(model: GeometricMixture, row: Mapping[str, Any]) -> set[str]:
    """Names of the numbers of a raw row whose cell is a boolean."""
    numbers = (column.name for column in model_schema(model).columns if column.kind == "number")
    return {name for name in numbers if isinstance(row[name], (bool, np.bool_))}


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


def _finer(a: float | None, b: float | None) -> float | None:
    """The step that two steps are multiples of."""
    return None if a is None or b is None else min(a, b)


def _steps_of_rows(encoded: FloatArray) -> dict[int, float | None]:
    return {j: learnt_step(encoded[:, j]) for j in range(encoded.shape[1])}


@lru_cache(maxsize=4)
def _steps_of_lift(model: GeometricMixture) -> dict[int, float | None]:
    """By column, from the training values that a spline lift keeps."""
    if not isinstance(model.lift, SplineLift):
        return {}
    parts = (part for part in model.lift.parts if isinstance(part, CurvePart))
    return {part.column: learnt_step(part.values) for part in parts}
