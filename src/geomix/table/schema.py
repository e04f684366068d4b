"""The columns of the training data; encodes later tables in the same way.

    number      the number itself, NaN where missing
    category    the code of its level, 0 .. n_levels - 1, in the order of the levels' texts
                or of an ordered category;
                NaN where missing; for an unseen level the code of ``other``, or -1

A level is matched by its value: text with text, a number with a number. The empty text is a
level like any other; missing are None, NaN, pandas' NA and the nulls of polars and Arrow.
"""

from __future__ import annotations

import contextlib
import reprlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.errors import SchemaError
from geomix.table.columns import Labels, is_missing, label_column, number_column, plain_label
from geomix.table.frames import check_names_unique, names_and_types, names_differ

NEVER_SEEN = -1.0

# (frame, names and types of its columns, rows to fill) -> positions of the columns left to read
Fill: TypeAlias = Callable[[Any, list[tuple[Any, Any]], FloatArray], Iterable[int]]


@dataclass(frozen=True)
class Column:
    """A column: its name, and for a category its levels in the order of their codes.

    has_other : whether there is a last level "other" for rare and unseen levels
    """

    name: str
    kind: str
    levels: tuple[Any, ...] = ()
    has_other: bool = False

    @property
    def n_levels(self) -> int:
        return len(self.levels) + self.has_other

    @property
    def level_names(self) -> list[str]:
        """The levels as texts; "(other)" in brackets for the pooled level."""
        return [*map(str, self.levels), *(["(other)"] if self.has_other else [])]

    @cached_property
    def code_of(self) -> dict[Any, float]:
        """The code of each level, without ``other``."""
        return {level: float(code) for code, level in enumerate(self.levels)}

    @property
    def unseen(self) -> float:
        """The code of a level that is not among ``levels``."""
        return float(len(self.levels)) if self.has_other else NEVER_SEEN

    @cached_property
    def _holds_text(self) -> bool | None:
        """Whether the levels are text (None: there are none, or some are and some are not)."""
        kinds = {isinstance(level, str) for level in self.levels}
        return kinds.pop() if len(kinds) == 1 else None

    def code(self, level: Any, place: str = "") -> float:
        """The code of one label that is not missing; ``place`` is its row for messages."""
        if level in self.code_of:
            return self.code_of[level]
        if self._is_of_another_kind(level):
            held = "text" if self._holds_text else "numbers"
            raise SchemaError(
                f"Column {self.name!r} holds {reprlib.repr(level)}{place}, but its levels were "
                f"{held} in training, such as {reprlib.repr(self.levels[0])}."
            )
        return self.unseen

    def codes(self, labels: Labels) -> FloatArray:
        """(n,) codes of a column of labels, NaN where missing."""
        codes = [
            np.nan if self._is_of_another_kind(level) else self.code(level)
            for level in labels.levels
        ]
        encoded = np.array([*codes, np.nan])[labels.codes]  # the last stands for -1, missing
        odd = np.isnan(encoded) & (labels.codes >= 0)
        if odd.any():
            row = int(odd.argmax())
            self.code(labels.levels[labels.codes[row]], f" in row {row}")
        return encoded

    def _is_of_another_kind(self, level: Any) -> bool:
        return self._holds_text is not None and self._holds_text != isinstance(level, str)


@dataclass(frozen=True)
class Schema:
    """The columns of the training data, in their order."""

    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def n_levels(self) -> IntArray:
        """(n_columns,) levels of each category with ``other``; 0 for numbers."""
        return np.array([column.n_levels for column in self.columns], dtype=np.intp)

    @cached_property
    def is_category(self) -> BoolArray:
        return np.array([column.kind == "category" for column in self.columns], dtype=bool)

    @property
    def has_categories(self) -> bool:
        return bool(self.is_category.any())

    def encode(self, X: Any, fill: Fill | None = None) -> FloatArray:
        """A frame or an array of raw cells as numbers and codes, (n_rows, n_columns) float64.

        fill : reads the columns that it can into the rows, and returns the positions of the others
        """
        X = np.array(X, dtype=object) if isinstance(X, (list, tuple)) else X
        found = self._matched(X)
        rows = np.empty((X.shape[0], len(self)))
        for j in range(len(self)) if fill is None else fill(X, found, rows):
            column, (_, dtype) = self.columns[j], found[j]
            if column.kind == "number":
                rows[:, j] = number_column(X, j, column.name, dtype)
            else:
                rows[:, j] = column.codes(label_column(X, j, column.name, dtype, declared=True))
        return rows

    def encode_row(self, row: Any) -> FloatArray:
        """One row of raw cells, in the order of the columns or by name, as (n_columns,)."""
        cells = self._in_order(row)
        return np.array([_encoded(*pair) for pair in zip(self.columns, cells, strict=True)])

    def check_names(self, given: Sequence[Any]) -> None:
        """Raise unless the columns of a frame have the names of the training data, in their order.

        x0, x1, ... stand for training rows without names. A frame with other names is then read
        by position, with scikit-learn's warning.
        """
        self.check_order(given)
        has_names = any(isinstance(name, str) for name in given)  # scikit-learn ignores others
        if tuple(map(str, given)) == self.names or not has_names:
            return
        warnings.warn(
            f"X has feature names ({reprlib.repr(list(given))}), but the model was fitted without "
            "feature names: its columns are read by position.",
            UserWarning,
            stacklevel=6,
        )

    def check_order(self, given: Sequence[Any]) -> None:
        """Raise if the columns of a frame have other names than the training data, or another
        order; not if either has no names."""
        if tuple(map(str, given)) == self.names:
            return
        check_names_unique(given)
        unnamed = self.names == tuple(f"x{j}" for j in range(len(self)))
        if not unnamed or set(map(str, given)) & set(self.names):
            raise SchemaError(names_differ(self.names, given))

    def _matched(self, X: Any) -> list[tuple[Any, Any]]:
        found = names_and_types(X)
        if found and not isinstance(X, np.ndarray):
            self.check_names([name for name, _ in found])
        if len(found) != len(self):
            raise self.wrong_shape(X)
        return found

    def wrong_shape(self, X: Any) -> ValueError:
        return ValueError(
            f"Got X of shape {getattr(X, 'shape', None)}; expected (n_rows, {len(self)}), "
            "one column for each column of the training data."
        )

    def _in_order(self, row: Any) -> list[Any]:
        if isinstance(row, Mapping):
            if row.keys() != set(self.names):
                raise SchemaError(names_differ(self.names, list(row)))
            return [row[name] for name in self.names]
        if not isinstance(row, (np.ndarray, list, tuple)) or hasattr(row, "mask"):
            raise TypeError(
                f"Got a row of type {type(row).__name__}; expected a 1-d array, a list, a tuple "
                "or a dict by column name."
            )
        cells = row.tolist() if isinstance(row, np.ndarray) else list(row)
        if isinstance(row, np.ndarray) and row.ndim != 1:
            raise ValueError(f"Got a row with {row.ndim} dimensions; expected 1.")
        if len(cells) != len(self):
            raise ValueError(
                f"Got a row of {len(cells)} cells; expected {len(self)}, one for each column."
            )
        return cells


def _encoded(column: Column, cell: Any) -> float:
    if is_missing(cell):
        return np.nan
    if column.kind == "category":
        return column.code(plain_label(cell))
    if not isinstance(cell, (str, bytes)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(cell)
    held = "text: " if isinstance(cell, str) else ""
    raise SchemaError(
        f"Column {column.name!r} holds {held}{reprlib.repr(cell)}, expected a number as in "
        "training."
    )


def numeric_schema(names: tuple[str, ...]) -> Schema:
    """A schema of numeric columns."""
    return Schema(tuple(Column(name, "number") for name in names))
