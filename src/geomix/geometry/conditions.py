"""Conditions of rules: intervals of a number, or sets of a category's levels.

A condition is what is printed: rounded ends and listed levels. ``holds`` evaluates exactly that on
encoded cells, and ``to_sql`` and ``to_python`` write the same test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.table.schema import Column
from geomix.table.sql_text import literal, quoted


@dataclass(frozen=True)
class Interval:
    """low <= x <= high, or x < high if ``is_open``; an end that is None has no limit.

    A missing cell is in no interval.
    """

    column: str
    low: float | None
    high: float | None
    is_open: bool = False

    def holds(self, x: FloatArray, column: Column) -> BoolArray:
        """(n,) encoded cells -> (n,)."""
        inside = ~np.isnan(x)
        if self.low is not None:
            inside &= x >= self.low
        if self.high is not None:
            inside &= x < self.high if self.is_open else x <= self.high
        return inside

    def __str__(self) -> str:
        return self._written(self.column, _number, " = ")

    def to_sql(self) -> str:
        name = quoted(self.column)
        if self.low is not None and self.low == self.high:
            return f"{name} = {literal(self.low)}"
        parts = [f"{name} >= {literal(self.low)}"] if self.low is not None else []
        if self.high is not None:
            parts.append(f"{name} {'<' if self.is_open else '<='} {literal(self.high)}")
        return " AND ".join(parts) or f"{name} IS NOT NULL"

    def to_python(self) -> str:
        cell = f"row[{self.column!r}]"
        return f"{cell} is not None and {self._written(cell, repr, ' == ')}"

    def _written(self, name: str, text: Any, equals: str) -> str:
        sign = "<" if self.is_open else "<="
        if self.low is not None and self.low == self.high:
            return f"{name}{equals}{text(self.low)}"
        if self.low is None and self.high is None:
            return f"{name}{equals}{name}" if equals == " == " else f"{name} is not missing"
        if self.low is None:
            return f"{name} {sign} {text(self.high)}"
        if self.high is None:
            return f"{name} >= {text(self.low)}"
        return f"{text(self.low)} <= {name} {sign} {text(self.high)}"


@dataclass(frozen=True)
class OneOf:
    """A category is one of ``levels``, or none of them if ``is_negated``.

    A missing cell satisfies the condition only with ``or_missing``. A level never seen in training
    satisfies a negated condition only.
    """

    column: str
    levels: tuple[Any, ...]
    is_negated: bool = False
    or_missing: bool = False

    def holds(self, x: FloatArray, column: Column) -> BoolArray:
        """(n,) encoded cells -> (n,)."""
        listed = np.isin(x, [column.levels.index(level) for level in self.levels])
        missing = np.isnan(x)
        inside = ~listed & ~missing if self.is_negated else listed
        return inside | missing if self.or_missing else inside

    def __str__(self) -> str:
        names = ", ".join(map(str, self.levels))
        if len(self.levels) == 1:
            text = f"{self.column} {'is not' if self.is_negated else '='} {names}"
        elif self.levels:
            text = f"{self.column} {'is none of' if self.is_negated else 'is one of'} ({names})"
        else:
            return (
                f"{self.column} is not missing" if self.is_negated else f"{self.column} is missing"
            )
        return f"({text} or missing)" if self.or_missing else text

    def to_sql(self) -> str:
        name = quoted(self.column)
        missing = f"{name} IS NULL"
        if not self.levels:
            return f"{name} IS NOT NULL" if self.is_negated else missing
        sign = "NOT IN" if self.is_negated else "IN"
        text = f"{name} {sign} ({', '.join(map(literal, self.levels))})"
        return f"({text} OR {missing})" if self.or_missing else text

    def to_python(self) -> str:
        cell, levels = f"row[{self.column!r}]", repr(tuple(self.levels))
        missing = f"{cell} is None"
        if not self.levels:
            return f"{cell} is not None" if self.is_negated else missing
        text = f"{cell} not in {levels}" if self.is_negated else f"{cell} in {levels}"
        if self.or_missing:
            return f"({text} or {missing})"
        return f"{cell} is not None and {text}" if self.is_negated else text


Condition = Interval | OneOf


def _number(value: float) -> str:
    return f"{value:.15g}"
