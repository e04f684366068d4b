"""What the columns of a table hold, told before anything is converted.

Frames of pandas, polars and Arrow are told apart by what they can do, not by import. Text,
dates, categories, nested records and repeated names are refused by name; integers too large
for a float are warned about.
"""

from __future__ import annotations

import collections
import datetime
import itertools
import reprlib
import warnings
from typing import Any

import numpy as np
import scipy.sparse

from geomix.errors import DataQualityWarning, SchemaError

LARGEST_EXACT_INTEGER = 2**53
MOST_COLUMNS_NAMED = 5

# What a column holds, by the first letters of its type's name in pandas, polars or Arrow.
# The first match counts: "struct" comes before "str", "interval" before "int".
KINDS_BY_TYPE_NAME = {
    "records": ("list", "large_list", "fixed_size_list", "struct", "array", "map", "interval"),
    "dates": ("date", "time", "duration", "period"),
    "categories": ("categor", "enum", "dictionary"),
    "text": ("str", "large_str", "utf8", "binary", "large_binary"),
    "objects": ("object",),
    "integers": ("int", "uint"),
}
KINDS_BY_NUMPY_CODE = {
    "M": "dates", "m": "dates", "U": "text", "S": "text", "O": "objects",
    "i": "integers", "u": "integers", "V": "records",
}  # fmt: skip
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def schema_of(X: Any) -> list[tuple[Any, Any]]:
    """(name, type) of every column of an array, a frame or an Arrow table."""
    if isinstance(X, np.ndarray):
        return [(f"x{j}", X.dtype) for j in range(X.shape[1])] if X.ndim == 2 else []
    if hasattr(X, "schema") and hasattr(X.schema, "types"):
        return list(zip(X.schema.names, X.schema.types, strict=True))
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return list(zip(X.columns, X.dtypes, strict=True))
    return []


def column_at(X: Any, position: int) -> Any:
    if isinstance(X, np.ndarray):
        return X[:, position]
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, position])
    return np.asarray(X.to_series(position) if hasattr(X, "to_series") else X.column(position))


def kind_of(dtype: Any) -> str:
    if isinstance(dtype, np.dtype):
        return KINDS_BY_NUMPY_CODE.get(dtype.kind, "numbers")
    type_name = str(dtype).lower()
    for kind, beginnings in KINDS_BY_TYPE_NAME.items():
        if type_name.startswith(beginnings):
            return kind
    return "numbers"


def check_columns(X: Any, table: str) -> None:
    if scipy.sparse.issparse(X):
        _check_sparse_integers(X)
        return
    if (
        isinstance(X, np.ndarray)
        and kind_of(X.dtype) in ("numbers", "integers")
        and _largest_integer(X) <= LARGEST_EXACT_INTEGER
    ):
        return  # one type for all columns, and nothing to say about it
    schema = schema_of(X)
    _check_names_unique([name for name, _ in schema])
    missing = {}
    for position, (name, dtype) in enumerate(schema):
        kind = kind_of(dtype)
        if kind == "integers":
            _warn_inexact(name, _largest_integer(column_at(X, position)))
        elif kind == "objects":
            cells = column_at(X, position).tolist()
            _check_objects(name, cells)
            if any(map(_is_na, cells)):
                missing[name] = sum(map(is_missing, cells)), len(cells)
        elif kind == "dates":
            raise SchemaError(_holds_dates(name, dtype))
        elif kind == "text":
            raise SchemaError(_holds_text(name, column_at(X, position).tolist()))
        elif kind != "numbers":
            raise SchemaError(
                f"Column {name!r} holds {kind} ({reprlib.repr(str(dtype))}), expected numbers. "
                "Encode them first, for example with OneHotEncoder, or drop the column."
            )
    if missing:
        raise missing_error(missing, table)


def _check_names_unique(names: list[Any]) -> None:
    repeated = [name for name, count in collections.Counter(names).items() if count > 1]
    if repeated:
        raise SchemaError(f"Column names must be unique; repeated ones are {repeated!r}.")


def _check_sparse_integers(X: Any) -> None:
    if X.dtype.kind in "iu":
        by_column = X.tocsc()
        for j, (start, stop) in enumerate(itertools.pairwise(by_column.indptr)):
            _warn_inexact(f"x{j}", _largest_integer(by_column.data[start:stop]))


def _check_objects(name: Any, cells: list[Any]) -> None:
    for cell in cells:
        if isinstance(cell, (str, bytes)):
            raise SchemaError(_holds_text(name, cells))
        if isinstance(cell, DATES):
            raise SchemaError(_holds_dates(name, type(cell).__name__))
    sizes = (abs(cell) for cell in cells if isinstance(cell, int))
    # What does not fit into a float64 at all is refused, with its row, when it is converted.
    _warn_inexact(name, max((size for size in sizes if size < 2**1023), default=0))


def _holds_text(name: Any, cells: list[Any]) -> str:
    texts = ((row, cell) for row, cell in enumerate(cells) if isinstance(cell, (str, bytes)))
    row, cell = next(texts, (0, None))
    return (
        f"Column {name!r} holds text: row {row} is {reprlib.repr(cell)}, expected a number. "
        "Encode categories as numbers first, for example with OneHotEncoder."
    )


def _holds_dates(name: Any, type_name: Any) -> str:
    return (
        f"Column {name!r} holds dates or times ({type_name}); drop it, or convert it to numbers "
        "(a year, an age in days)."
    )


def _largest_integer(values: Any) -> int:
    """Largest absolute value of an integer array; 0 for others. (A nullable column of integers
    with holes becomes floats or objects: its holes are refused later.)"""
    if values.dtype.kind not in "iu" or values.size == 0:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _warn_inexact(name: Any, largest: int) -> None:
    if largest > LARGEST_EXACT_INTEGER:
        warnings.warn(
            f"Column {name!r} holds integers up to {largest}, beyond 2**53: as float64 they lose "
            "their last digits. If it is an identifier, drop it.",
            DataQualityWarning,
            stacklevel=5,
        )


def _is_na(value: Any) -> bool:
    """pandas' NA and NaT, which do not compare with anything; told by name, without pandas."""
    return type(value).__name__ in ("NAType", "NaTType")


def is_missing(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or _is_na(value)


def missing_error(found: dict[Any, tuple[int, int]], table: str) -> ValueError:
    """``found`` : name of a column -> (missing cells, rows)."""
    where = [
        f"{name}: {count} of {n_rows}" + (", 100 % missing" if count == n_rows else "")
        for name, (count, n_rows) in found.items()
    ]
    return ValueError(
        f"Input {table} contains NaN ({first_few(where)}). Impute or drop them, for example with "
        "SimpleImputer."
    )


def first_few(where: list[str]) -> str:
    more = len(where) - MOST_COLUMNS_NAMED
    listed = ", ".join(where[:MOST_COLUMNS_NAMED])
    return listed if more <= 0 else f"{listed}, and {more} more columns"
