"""Tables of any library: names and types of the columns, and their cells.

NumPy arrays and frames of pandas, polars and Arrow are read in place, subclasses included; tables
of other libraries are converted. No library is imported that is not loaded already, except pyarrow
for an Arrow stream. A kind is "numbers", "integers", "categories", "text", "dates", "bytes",
"records", "objects" (whose cells are inspected) or "unknown" (which is refused).
"""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from geomix.arrays import IntArray
from geomix.errors import SchemaError
from geomix.table.sparse_rows import checked_csr, is_sparse

# What a column holds, by the first letters of its type's name in pandas, polars or Arrow.
# The first match counts: "struct" comes before "str", "interval" and "int128" before "int".
KINDS_BY_TYPE_NAME = {
    "records": ("list", "large_list", "fixed_size_list", "struct", "array", "map", "interval"),
    "dates": ("date", "time", "duration", "period"),
    "categories": ("categor", "enum", "dictionary"),
    "text": ("str", "large_str", "utf8"),
    "bytes": ("binary", "large_binary", "fixed_size_binary"),
    "objects": ("object", "null"),
    "unknown": ("int128", "uint128"),
    "integers": ("int", "uint"),
    "numbers": ("float", "double", "half", "bool", "decimal", "sparse", "complex"),
}
KINDS_BY_NUMPY_CODE = {
    "M": "dates", "m": "dates", "U": "text", "S": "bytes", "O": "objects",
    "i": "integers", "u": "integers", "V": "records",
}  # fmt: skip


def names_and_types(X: Any) -> list[tuple[Any, Any]]:
    """(name, type) of every column of an array, a frame or an Arrow table."""
    if isinstance(X, np.ndarray):
        return [(f"x{j}", X.dtype) for j in range(X.shape[1])] if X.ndim == 2 else []
    schema: Any = None if hasattr(X, "iloc") else getattr(X, "schema", None)
    if hasattr(schema, "types"):
        return list(zip(schema.names, schema.types, strict=True))
    columns, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)  # made at every call
    if columns is not None and dtypes is not None:
        return list(zip(list(columns), list(dtypes), strict=True))
    return []


def refuse_masked(values: Any, name: str, remedy: str) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be ignored; {remedy}.")


def as_table(X: Any, name: str) -> Any:
    """X with lists as arrays and sparse matrices checked; raises for masked arrays and lazy frames.

    name : what messages call the table
    """
    refuse_masked(X, name, f"use {name}.filled(np.nan)")
    if is_sparse(X):
        return checked_csr(X, name)
    _refuse_without_rows(X, name)
    if isinstance(X, Mapping):
        raise TypeError(
            f"{name} is a {type(X).__name__}; pass a table, such as pandas.DataFrame([{name}]) for "
            "one row."
        )
    if isinstance(X, (list, tuple)):
        return _as_array(X, name)
    return X if _is_read_in_place(X) else _converted(X, name)


def _as_array(X: Any, name: str) -> Any:
    try:
        array = np.asarray(X)
    except ValueError:
        return X  # ragged
    if array.dtype.kind not in "US":
        return array
    if array.ndim == 1:  # scikit-learn would look for a number first
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} holds text. Reshape your data: pass "
            f"[{name}] if it is one row."
        )
    # NumPy converts a list with some text to text; objects keep the type of each cell.
    return np.asarray(X, dtype=object)


def _refuse_without_rows(X: Any, name: str) -> None:
    """Raise for tables whose rows are elsewhere, or not computed yet."""
    kind, library = type(X).__name__, type(X).__module__.partition(".")[0]
    if library in ("dask", "dask_expr"):
        raise TypeError(
            f"{name} is a Dask {kind}; fit it with geomix.dask.DaskGeometricMixtureClassifier, or "
            f"pass {name}.compute()."
        )
    if library == "pyspark":
        raise TypeError(f"{name} is a Spark {kind}; pass {name}.toPandas().")
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(f"{name} is a {kind}, which has no rows yet; collect it first.")


def _is_read_in_place(X: Any) -> bool:
    return (
        isinstance(X, np.ndarray)
        or _is_a(X, "pandas", "DataFrame")
        or _is_a(X, "polars", "DataFrame")
        or _is_a(X, "pyarrow", "Table")
    )


def _is_a(X: Any, library: str, kind: str) -> bool:
    """Whether X is an instance of a class of a library that is loaded; never loads one."""
    return isinstance(X, getattr(sys.modules.get(library), kind, ()))


def _converted(X: Any, name: str) -> Any:
    """A table of another library as one that is read in place; all other objects unchanged.

    narwhals frames are unwrapped. Frames in the form of pandas (modin, cuDF) become pandas frames,
    and whatever has an Arrow stream (DuckDB, ibis, a stream of batches) an Arrow table.
    """
    if hasattr(X, "to_native"):
        return as_table(X.to_native(), name)
    if len(getattr(X, "shape", (0, 0))) != 2:  # one column: the caller refuses it
        return X
    if hasattr(X, "iloc"):
        return X.to_pandas() if hasattr(X, "to_pandas") else X
    is_arrow = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return _arrow_table(X, name) if is_arrow else X


def _arrow_table(X: Any, name: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"{name} is a {type(X).__name__}, which is read through Arrow; install pyarrow, or "
            f"pass {name} as a pandas or polars frame."
        ) from error
    try:
        return pyarrow.table(X)
    except (ValueError, TypeError, pyarrow.ArrowException) as error:
        raise TypeError(
            f"{name} is a {type(X).__name__}, which Arrow cannot read as a table of rows and "
            f"columns ({error}); pass a pandas or polars frame."
        ) from error


def as_column(values: Any, name: str) -> Any:
    """Labels or weights of a library that only has tables as one Arrow column; others unchanged."""
    if hasattr(values, "__array__") or not hasattr(values, "__arrow_c_stream__"):
        return values
    table = _arrow_table(values, name)
    if table.num_columns != 1:
        raise ValueError(f"{name} has {table.num_columns} columns; expected 1.")
    return table.column(0).to_numpy()


def is_frame(X: Any) -> bool:
    """Whether X has named columns with a type each."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return len(X.columns) > 0  # pandas makes a new list of the types at every call
    return not isinstance(X, np.ndarray) and bool(names_and_types(X))


def kind_of(dtype: Any) -> str:
    if isinstance(dtype, np.dtype):
        return KINDS_BY_NUMPY_CODE.get(dtype.kind, "numbers")
    return _kind_by_name(str(dtype))


@functools.lru_cache(maxsize=1000)
def _kind_by_name(type_name: str) -> str:
    for kind, beginnings in KINDS_BY_TYPE_NAME.items():
        if type_name.lower().startswith(beginnings):
            return kind
    return "unknown"


def is_plain(X: Any) -> bool:
    """Whether all columns have numeric types."""
    if isinstance(X, np.ndarray):
        return X.ndim != 2 or kind_of(X.dtype) in ("numbers", "integers")
    return all(kind_of(dtype) in ("numbers", "integers") for _, dtype in names_and_types(X))


def column_at(X: Any, position: int) -> Any:
    """A column in the type of its library."""
    if isinstance(X, np.ndarray):
        return X[:, position]
    if hasattr(X, "iloc"):
        return X.iloc[:, position]
    return X.to_series(position) if hasattr(X, "to_series") else X.column(position)


def cells_of(column: Any) -> list[Any]:
    """The cells of a column as Python objects."""
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def taken(X: Any, rows: IntArray) -> Any:
    """Some rows of an array, a frame, an Arrow table, a sparse matrix or a list of rows."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, (list, tuple)):
        return np.array(X, dtype=object)[rows]
    if hasattr(X, "schema") and hasattr(X.schema, "types"):
        return X.take(rows)
    return (checked_csr(X) if is_sparse(X) else X)[rows]


def check_names_unique(names: Sequence[Any]) -> None:
    repeated = [name for name, count in collections.Counter(names).items() if count > 1]
    if repeated:
        raise SchemaError(f"Column names must be unique; repeated ones are {repeated!r}.")


def names_differ(expected: Sequence[Any], given: Sequence[Any]) -> str:
    """scikit-learn's message, with all names instead of the first five."""
    known, found = set(expected), set(given)
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in {
        "Feature names unseen at fit time": found - known,
        "Feature names seen at fit time, yet now missing": known - found,
    }.items():
        if names:
            message += f"{title}:\n" + "".join(f"- {name}\n" for name in sorted(names, key=str))
    if found == known:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message
