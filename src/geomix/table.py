"""The door: frames, arrays and sparse matrices become clean rows of floats with names.

What scikit-learn's own validation says well it says (shapes, names, lengths); what it lets
pass or says without naming the place is checked here and in ``columns``: missing and infinite
values by column, masks, what no float can hold.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
from sklearn.utils.validation import validate_data

from geomix.arrays import IntArray
from geomix.columns import check_columns, column_at, first_few, kind_of, missing_error, schema_of
from geomix.errors import SchemaError
from geomix.picked import blocks

# float32, as the types of NumPy, pandas and polars call it, and as Arrow's does.
SINGLES = {"float32", "Float32", "float"}
SKLEARN_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def read_rows(
    estimator: Any, X: Any, *, reset: bool, name: str = "X", as_it_lies: bool = False
) -> Any:
    """X as float64 C-ordered array or CSR matrix, checked against the estimator's columns.

    ``reset=True`` (fit) makes the estimator take the columns on; False (predict) holds X
    against them. ``name`` is what messages call the table. ``as_it_lies=True`` leaves a dense
    float32 table float32, and any order of its cells in memory, which saves a copy.
    """
    X = _as_table(X, name)
    check_columns(X, name)
    if reset and scipy.sparse.issparse(X):
        _refuse_dense_only(estimator, name)
    try:
        # A longdouble may overflow on the way to float64: the check for infinity speaks of it.
        with np.errstate(over="ignore"):
            rows = validate_data(
                estimator,
                _with_readable_names(X),
                reset=reset,
                accept_sparse="csr",
                dtype=np.float32 if as_it_lies and _is_single(X) else np.float64,
                order=None if as_it_lies else "C",
                ensure_all_finite=False,
            )
    except (TypeError, OverflowError) as error:
        raise _odd_cell(X) or error from None
    except ValueError as error:
        if "feature names should match" in str(error):
            raise SchemaError(_names_differ(estimator.feature_names_in_, X)) from error
        raise
    if scipy.sparse.issparse(rows):
        rows = _plain_csr(rows)
    _check_finite(rows, column_names(estimator, rows.shape[1]), name)
    return rows


def _is_single(X: Any) -> bool:
    """Whether every column is float32, in any byte order."""
    schema = [] if scipy.sparse.issparse(X) else schema_of(X)
    kinds = {str(getattr(dtype, "name", dtype)) for _, dtype in schema}
    return kinds <= SINGLES and len(kinds) == 1


class _NamedFrame:
    """A frame that tells its names the old way, through the interchange protocol."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.shape = frame.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._frame, dtype=dtype)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> _NamedFrame:
        return self

    def column_names(self) -> list[Any]:
        return list(self._frame.columns)


def _with_readable_names(X: Any) -> Any:
    """X, in a form whose column names the installed scikit-learn sees.

    Before 1.9 it asks frames other than pandas' through a protocol that polars 2 gave up; their
    names would be lost in silence, and with them the check of their order.
    """
    is_frame = hasattr(X, "columns") and not hasattr(X, "iloc") and not hasattr(X, "__dataframe__")
    return _NamedFrame(X) if is_frame and SKLEARN_VERSION < (1, 9) else X


def _plain_csr(rows: Any) -> Any:
    """Every cell once, and the narrow indices that scikit-learn's k-means insists on."""
    narrow = np.int32 if max(rows.nnz, *rows.shape) <= np.iinfo(np.int32).max else np.int64
    if rows.has_canonical_format and rows.indices.dtype == rows.indptr.dtype == narrow:
        return rows
    rows = rows.copy()  # the given one stays as it is
    rows.sum_duplicates()
    rows.indices, rows.indptr = rows.indices.astype(narrow), rows.indptr.astype(narrow)
    return rows


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """The names that the estimator was fitted with, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == n_columns:
        return tuple(map(str, names))
    return tuple(f"x{j}" for j in range(n_columns))


def _check_finite(rows: Any, names: tuple[str, ...], table: str) -> None:
    values = rows if isinstance(rows, np.ndarray) else rows.data
    # A sum is finite unless something in it is not (or it overflows): one pass, no copies.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    n_rows = rows.shape[0]
    counts = _counts_by_column(rows, np.isnan)
    if counts.any():
        found = {names[j]: (int(counts[j]), n_rows) for j in np.flatnonzero(counts)}
        raise missing_error(found, table)
    counts = _counts_by_column(rows, np.isinf)
    where = [f"{names[j]}: {counts[j]} of {n_rows}" for j in np.flatnonzero(counts)]
    if where:
        raise ValueError(
            f"Input {table} contains infinity or a value too large for float64 "
            f"({first_few(where)}). Replace or drop them; an infinite value is never taken as "
            "missing."
        )


def _counts_by_column(rows: Any, is_bad: Callable[[Any], Any]) -> IntArray:
    if isinstance(rows, np.ndarray):
        counts = np.zeros(rows.shape[1], dtype=np.intp)
        for _, block in blocks(rows):
            counts += is_bad(block).sum(axis=0)
        return counts
    return np.bincount(rows.indices[is_bad(rows.data)], minlength=rows.shape[1])


def _as_table(X: Any, name: str) -> Any:
    """X as it came, but lists as arrays; refuses what only looks like a table."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose mask would be ignored; use {name}.filled(np.nan)."
        )
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(f"{name} is a {type(X).__name__}, which has no rows yet; collect it first.")
    if isinstance(X, (list, tuple)):
        try:
            array = np.asarray(X)
            # NumPy makes text of a whole list that holds some: back to what each cell was.
            return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array
        except ValueError:
            return X  # ragged: scikit-learn says so
    return X


def _refuse_dense_only(estimator: Any, name: str) -> None:
    for parameter, choices in {"lift": ("auto", "linear"), "pca": ("auto", None)}.items():
        value = getattr(estimator, parameter, "auto")
        if value not in choices and not (isinstance(value, tuple) and "linear" in value):
            raise TypeError(
                f"Sparse data was passed, but {parameter}={value!r} needs dense rows; use "
                f"lift='linear' without pca, or {name}.toarray() if that fits in memory."
            )


def _odd_cell(X: Any) -> Exception | None:
    """An error that names the first cell of an object column that no float can hold."""
    for position, (name, dtype) in enumerate(schema_of(X)):
        cells = column_at(X, position).tolist() if kind_of(dtype) == "objects" else []
        for row, cell in enumerate(cells):
            place = f"Column {name!r}, row {row} holds {reprlib.repr(cell)}"
            try:
                float(cell) if cell is not None else None
            except OverflowError:
                return ValueError(f"{place}, too large for a float64.")
            except TypeError as reason:
                return TypeError(f"{place}: {reason}.")
    return None


def _names_differ(expected: Any, X: Any) -> str:
    """In scikit-learn's words, but with every name and not only the first five."""
    known, given = set(expected), {name for name, _ in schema_of(X)}
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in {
        "Feature names unseen at fit time": given - known,
        "Feature names seen at fit time, yet now missing": known - given,
    }.items():
        if names:
            message += f"{title}:\n" + "".join(f"- {name}\n" for name in sorted(names))
    if given == known:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message
