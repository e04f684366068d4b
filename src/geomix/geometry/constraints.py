"""Constraints: which cells of a row may change, in which steps, and what a change costs.

Numbers move within limits, categories to other levels, missing cells stay missing. A number's
change is measured in units of ``scale`` (default: the standard deviation of its column in
training), a change of level as one unit. ``costs`` multiply the units of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.explain.additive_form import Additive
from geomix.explain.cells import column_place, column_places, model_schema
from geomix.model import GeometricMixture
from geomix.table.columns import plain_label


@dataclass(frozen=True, eq=False)
class Constraints:
    """low, high : (n_columns,) limits of the numbers, in their own units; equal where fixed
    levels : codes that a category may take, by column, including its present one
    scale : (n_columns,) the change of a number that costs one unit
    level_cost : (n_columns,) cost of another level;  steps : by column, None if continuous
    """

    low: FloatArray
    high: FloatArray
    levels: dict[int, list[float]]
    scale: FloatArray
    level_cost: FloatArray
    steps: tuple[float | None, ...]

    def change_cost(self, j: int, values: FloatArray, x: float) -> FloatArray:
        """Cost of changing column j from x to each of some values."""
        if j in self.levels:
            return np.where(values == x, 0.0, self.level_cost[j])
        return np.abs(values - x) / self.scale[j]

    def change_costs(self, rows: FloatArray, row: FloatArray) -> FloatArray:
        """(n, n_columns) ``change_cost`` of all columns; 0 where a cell of ``row`` is missing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            costs: FloatArray = np.abs(rows - row) / self.scale
        levels = list(self.levels)
        costs[:, levels] = (rows[:, levels] != row[levels]) * self.level_cost[levels]
        costs[:, np.isnan(row)] = 0.0
        return costs

    def is_fixed(self, j: int, x: float) -> bool:
        """Whether column j cannot change from x."""
        if j in self.levels:
            return self.levels[j] == [x] or bool(np.isnan(x))
        return bool(np.isnan(x) or self.low[j] == self.high[j])

    def allows(self, row: FloatArray) -> BoolArray:
        """(n_columns,) whether each cell of a row may be as it is. A missing one may."""
        allowed: BoolArray = ~((row < self.low) | (row > self.high))
        for j, codes in self.levels.items():
            allowed[j] = row[j] in codes or np.isnan(row[j])
        return allowed

    def only(self, row: FloatArray, columns: Iterable[int]) -> Constraints:
        """The same constraints with every other column fixed."""
        free = set(columns)
        fixed = np.array([j not in free for j in range(len(row))])
        low, high = np.where(fixed, row, self.low), np.where(fixed, row, self.high)
        levels = {j: codes if j in free else [row[j]] for j, codes in self.levels.items()}
        return replace(self, low=low, high=high, levels=levels)

    def within(self, row: FloatArray, r: float) -> Constraints:
        """The same constraints, for changes that cost at most r in every column. Where a column
        has to change by more, it has no value left."""
        near = r * self.scale * (1.0 + 1e-9)
        low, high = np.fmax(self.low, row - near), np.fmin(self.high, row + near)
        levels = {
            j: codes if self.level_cost[j] <= r else [code for code in codes if code == row[j]]
            for j, codes in self.levels.items()
            if not np.isnan(row[j])
        }
        held = {j: codes for j, codes in self.levels.items() if np.isnan(row[j])}
        return replace(self, low=low, high=high, levels=levels | held)

    @property
    def moves_levels(self) -> bool:
        return any(len(codes) > 1 for codes in self.levels.values())


def unit_sizes(model: GeometricMixture, form: Additive | None, scale: Any) -> FloatArray:
    """One unit of each number: its training deviation, or ``scale[column]`` where given."""
    sizes = np.ones(len(model.columns))
    if form is not None:
        sizes = np.array([shape.scale for shape in form.shapes])
    for column, size in (scale or {}).items():
        j = column_place(model, column)
        if not 0.0 < float(size) < np.inf:
            raise ValueError(f"Got scale {size!r} of {column!r}; expected a positive number.")
        sizes[j] = float(size)
    return sizes


def read_constraints(
    model: GeometricMixture,
    unit: FloatArray,
    row: FloatArray,
    *,
    immutable: Any = (),
    increase_only: Any = (),
    decrease_only: Any = (),
    ranges: Mapping[Any, Any] | None = None,
    costs: Mapping[Any, float] | None = None,
    steps: Sequence[float | None] = (),
    given: Mapping[str, Any] | None = None,
) -> Constraints:
    """The user's constraints for one encoded row.

    unit : (n_columns,) as in ``unit_sizes``;  given : the row's own cells, by column name
    """
    schema = model_schema(model)
    low, high = np.full(len(row), -np.inf), np.full(len(row), np.inf)
    levels: dict[int, list[float]] = {}
    for j, column in enumerate(schema.columns):
        if column.kind == "category":
            # "(other)" is not a value that a row can take.
            levels[j] = sorted({*map(float, range(len(column.levels))), float(row[j])})
    _limit(model, row, ranges or {}, given or {}, low, high, levels)
    held = column_places(model, immutable)
    for j in (*_numbers(model, increase_only, "increase_only"), *held):
        low[j] = max(low[j], row[j])
    for j in (*_numbers(model, decrease_only, "decrease_only"), *held):
        high[j] = min(high[j], row[j])
    for j in levels.keys() & set(held):
        levels[j] = [code for code in levels[j] if code == row[j]]
    for j in np.flatnonzero(np.isnan(row)).tolist():
        low[j] = high[j] = row[j]
        if j in levels:
            levels[j] = [float(row[j])]
    _refuse_empty(model, low, high, levels)
    cost = column_costs(model, costs)
    return Constraints(low, high, levels, unit / cost, cost, tuple(steps) or (None,) * len(row))


def _refuse_empty(
    model: GeometricMixture, low: FloatArray, high: FloatArray, levels: dict[int, list[float]]
) -> None:
    for j in np.flatnonzero(low > high).tolist():
        raise ValueError(
            f"Column {model.columns[j]!r} may lie between {low[j]:g} and {high[j]:g} only, which "
            "leaves it no value; widen ranges, or take it out of immutable, increase_only or "
            "decrease_only."
        )
    for j in (j for j, codes in levels.items() if not codes):
        raise ValueError(
            f"Column {model.columns[j]!r} is immutable, but its level is not among its ranges; add "
            "it to ranges, or take the column out of immutable."
        )


def column_costs(model: GeometricMixture, costs: Mapping[Any, float] | None) -> FloatArray:
    """(n_columns,) factors of the cost of a change; 1 where not given."""
    factors = np.ones(len(model.columns))
    for column, cost in (costs or {}).items():
        if not 0.0 < float(cost) < np.inf:
            raise ValueError(f"Got cost {cost!r} of {column!r}; expected a positive number.")
        factors[column_place(model, column)] = float(cost)
    return factors


def _limit(
    model: GeometricMixture,
    row: FloatArray,
    ranges: Mapping[Any, Any],
    given: Mapping[str, Any],
    low: FloatArray,
    high: FloatArray,
    levels: dict[int, list[float]],
) -> None:
    for column, allowed in ranges.items():
        j = column_place(model, column)
        if j in levels:
            known = model_schema(model).columns[j]
            named = [plain_label(level) for level in allowed]
            # Unknown levels share one code, so that only the row's own one can be told apart.
            codes = {known.code(level) for level in named} - {known.unseen}
            if row[j] == known.unseen and given.get(known.name) in named:
                codes.add(known.unseen)
            levels[j] = sorted(codes)
            if not levels[j]:
                raise ValueError(f"Got no known level in ranges of {column!r}: {allowed!r}.")
            continue
        try:
            low[j], high[j] = (float(end) for end in allowed)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Got {allowed!r} as the range of {column!r}; expected two numbers, lowest and "
                "highest (or infinite)."
            ) from error


def _numbers(model: GeometricMixture, columns: Any, parameter: str) -> list[int]:
    places = column_places(model, columns)
    for j in places:
        if model_schema(model).is_category[j]:
            raise ValueError(
                f"Column {model.columns[j]!r} is a category, which has no order; {parameter} takes "
                "numbers. To restrict its levels use ranges."
            )
    return places
