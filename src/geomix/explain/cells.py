"""Raw cells to encoded rows and back.

An encoded row holds numbers, codes of levels and NaN for missing (``table/schema.py``). Functions
that explain a model take raw rows and return raw cells. Names of columns and classes are looked up
here too; an unknown one raises an error that lists the known ones.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.table.columns import plain_label
from geomix.table.frames import as_table, cells_of, column_at, is_frame, refuse_masked, taken
from geomix.table.labels import codes_by_text, label_codes
from geomix.table.schema import Schema, numeric_schema
from geomix.table.sparse_rows import checked_csr, is_sparse


def model_schema(model: GeometricMixture) -> Schema:
    """What the model's columns are."""
    return numeric_schema(model.columns) if model.schema is None else model.schema


def encoded_rows(model: GeometricMixture, X: Any) -> FloatArray:
    """A frame, an array, a sparse matrix or one dict as (n_rows, n_columns) encoded rows."""
    if is_sparse(X):
        X = checked_csr(X).toarray()
    return np.asarray(model.encoded(X), dtype=np.float64)


def encoded_row(model: GeometricMixture, x: Any) -> FloatArray:
    """One raw row as (n_columns,): a list, a tuple, an array, a dict, a Series, a frame of one."""
    if _is_table(x):
        rows = encoded_rows(model, x)
        if len(rows) != 1:
            raise ValueError(f"Got {len(rows)} rows; expected one.")
        return rows[0]
    return model_schema(model).encode_row(_by_name(x))


def readable_twice(x: Any) -> Any:
    """A row or rows; a stream as a table, since it can be read only once."""
    is_table = not isinstance(x, (Mapping, list, tuple)) and getattr(x, "ndim", 2) == 2
    return as_table(x, "X") if is_table else x


def raw_row(model: GeometricMixture, x: Any) -> dict[str, Any]:
    """One row as its own cells by column name; ``x`` as for ``encoded_row``."""
    cells = _first_cells(x, len(model.columns)) if _is_table(x) else _by_name(x)
    if isinstance(cells, Mapping):
        return dict(cells)
    return dict(zip(model.columns, cells, strict=True))


def _first_cells(x: Any, n_columns: int) -> list[Any]:
    """The cells of a table's first row."""
    x = x.toarray() if is_sparse(x) else x
    if hasattr(x, "iloc"):  # as objects, since pandas gives a row a type that all cells fit in
        return cells_of(x.astype(object).iloc[0])
    return [cells_of(column_at(x, j))[0] for j in range(n_columns)]


def _is_table(x: Any) -> bool:
    return is_frame(x) or getattr(x, "ndim", 1) == 2


def _by_name(x: Any) -> Any:
    """A Series as a dict; other rows as they are."""
    if hasattr(x, "to_dict") and hasattr(x, "index"):
        return {str(name): cell for name, cell in x.to_dict().items()}
    return x


def given_rows(model: GeometricMixture, X: Any, encoded: FloatArray) -> tuple[dict[str, Any], ...]:
    """Rows as raw cells by column name. A level that the model does not know has no code of its
    own, so it comes from ``X``: a dict or rows that can be read twice."""
    rows = tuple(decoded_row(model, row) for row in encoded)
    for j, column in enumerate(model_schema(model).columns):
        if column.kind == "number" or is_sparse(X):
            continue
        unknown = np.flatnonzero(encoded[:, j] == column.unseen)
        if len(unknown):
            is_dict = isinstance(X, Mapping)
            cells = [X[column.name]] if is_dict else cells_of(column_at(taken(X, unknown), j))
            for i, cell in zip(unknown, cells, strict=True):
                rows[i][column.name] = plain_label(cell)
    return rows


def decoded_row(model: GeometricMixture, encoded: FloatArray) -> dict[str, Any]:
    """An encoded row as raw cells by column name; None where missing or of no known level."""
    pairs = zip(model_schema(model).columns, encoded.tolist(), strict=True)
    return {column.name: _cell(column, value) for column, value in pairs}


def _cell(column: Any, value: float) -> Any:
    if np.isnan(value):
        return None
    if column.kind == "number":
        return value
    if 0 <= value < len(column.levels):
        return column.levels[int(value)]
    return "(other)" if column.has_other else None


def class_code(model: GeometricMixture, label: Any) -> int:
    """The place of a label among the model's classes."""
    known = model.classes.tolist()
    if label in known:
        return known.index(label)
    by_text = codes_by_text(model.classes)
    for text in (label, label.casefold()) if isinstance(label, str) else ():
        if text in by_text and not isinstance(known[0], str):
            return by_text[text]
    raise ValueError(f"Got the class {label!r}; expected one of {reprlib.repr(known)}.")


def class_codes(model: GeometricMixture, y: Any, n_rows: int) -> IntArray:
    """Codes of one label for each row."""
    refuse_masked(y, "y", "drop the masked rows")
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"Got y of shape {y.shape}; expected ({n_rows},), one label per row.")
    codes = label_codes(y, model.classes)
    if not len(y) or (codes < 0).any():
        known = model.classes.tolist()
        raise ValueError(f"y must hold at least one label, all of them among {known!r}.")
    return codes


def column_place(model: GeometricMixture, column: Any) -> int:
    """The place of a column, given by its name or by that place."""
    names = model.columns
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
        return int(column) % len(names)
    raise ValueError(
        f"Got the column {column!r}; expected one of {reprlib.repr(list(names))}, or a position."
    )


def column_places(model: GeometricMixture, columns: Iterable[Any]) -> list[int]:
    """The places of several columns."""
    if isinstance(columns, str):
        columns = [columns]
    return [column_place(model, one) for one in columns]
