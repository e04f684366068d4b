"""Frames, arrays and sparse matrices as checked rows of floats.

scikit-learn's validation checks shapes, names and lengths. This module and ``columns`` check the
rest and name the column: infinite values, masks, numbers that no float can hold, and missing
values under ``missing="error"``.
"""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import validate_data

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.errors import InvalidParameterError, SchemaError
from geomix.table.columns import (
    Labels,
    check_integers,
    infinity_error,
    is_category,
    label_column,
    missing_error,
    number_column,
)
from geomix.table.frames import (
    as_table,
    check_names_unique,
    is_frame,
    is_plain,
    names_and_types,
    names_differ,
)
from geomix.table.row_views import blocks
from geomix.table.schema import Fill, Schema, numeric_schema
from geomix.table.sparse_rows import is_sparse

# float32, as the types of NumPy, pandas and polars call it, and as Arrow's does.
SINGLES = {"float32", "Float32", "float"}
SKLEARN_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def read_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    name: str = "X",
    as_it_lies: bool = False,
    schema: Schema | None = None,
    fill: Fill | None = None,
) -> Any:
    """X as float64 C-ordered array or CSR matrix, checked against the estimator's columns.

    ``reset=True`` (fit) makes the estimator take the columns on; False (predict) holds X
    against them. ``name`` is what messages call the table. ``as_it_lies=True`` leaves a dense
    float32 table float32, and any order of its cells in memory, which saves a copy.

    At fit a table that is not numbers by type comes as a list of its columns (numbers or
    ``Labels``), from which ``levels.learn_table`` learns; later such a table is encoded by the
    ``schema`` that was learnt, with the help of ``fill`` (see ``Schema.encode``).
    """
    X = as_table(X, name)
    found = [] if is_sparse(X) else names_and_types(X)
    names = None if is_sparse(X) else [column for column, _ in found]
    check_names_unique(names or [])
    if found and all(hasattr(dtype, "fill_value") for _, dtype in found):
        X = _of_sparse_columns(estimator, X, [dtype for _, dtype in found], reset=reset)
    if not reset and schema is not None and is_frame(X):
        _check_order(estimator, names, schema)
    by_column = not is_sparse(X) and _is_mixed(estimator, X, schema)
    if not by_column:
        check_integers(X)
        if reset and is_sparse(X):
            refuse_dense_only(estimator, name)
    if not (by_column and not reset and names == _names_at_fit(estimator)):
        rows = _validated(estimator, X, reset, as_it_lies, skip_check_array=by_column)
    if by_column:
        wanted = getattr(estimator, "categorical_features", None)
        rows = (
            _read_columns(X, declared_categories(wanted, X)) if reset else _encoded(schema, X, fill)
        )
    elif is_sparse(rows):
        rows = _plain_csr(rows)
    return _checked(estimator, rows, name)


def _of_sparse_columns(estimator: Any, X: Any, dtypes: list[Any], *, reset: bool) -> Any:
    """A frame of pandas with sparse columns: as it is where the sparse matrix that scikit-learn
    makes of it will do, else dense."""
    is_plain_sparse = all(one.fill_value == 0 and one.subtype.kind in "iuf" for one in dtypes)
    model = getattr(estimator, "model_", None)
    if reset:
        takes_sparse = needs_dense(estimator) is None
    else:
        takes_sparse = model is not None and model.feature_map.takes_sparse
    return X if is_plain_sparse and takes_sparse else X.sparse.to_dense()


def _check_order(estimator: Any, given: list[Any] | None, schema: Schema) -> None:
    """Raise for a frame with names like x0 in another order, where training had no names:
    scikit-learn would read it by position."""
    if hasattr(estimator, "feature_names_in_") or given is None:
        return
    if set(map(str, given)) & set(schema.names):
        schema.check_order(given)


def _names_at_fit(estimator: Any) -> list[Any] | None:
    """Names that scikit-learn's check would find equal: it takes a fifth of a small prediction."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else names.tolist()


def _is_mixed(estimator: Any, X: Any, schema: Schema | None) -> bool:
    """Whether the table is read column by column instead of as one array."""
    if len(getattr(X, "shape", ())) != 2 or 0 in X.shape:
        return False  # scikit-learn raises the error
    if schema is not None and schema.has_categories:
        return True
    wanted = getattr(estimator, "categorical_features", None)
    return not is_plain(X) or (schema is None and bool(declared_categories(wanted, X).any()))


def _validated(
    estimator: Any, X: Any, reset: bool, as_it_lies: bool, *, skip_check_array: bool
) -> Any:
    settings: dict[str, Any] = {"skip_check_array": True}
    if not skip_check_array:
        settings = {
            "accept_sparse": "csr",
            "dtype": np.float32 if as_it_lies and is_single(X) else np.float64,
            "order": None if as_it_lies else "C",
            "ensure_all_finite": False,
        }
    try:
        # A longdouble may overflow on its way to float64; the check for infinity reports it.
        with np.errstate(over="ignore"):
            return validate_data(estimator, _with_readable_names(X), reset=reset, **settings)
    except ValueError as error:
        if "feature names should match" in str(error):
            given = [name for name, _ in names_and_types(X)]
            raise SchemaError(names_differ(estimator.feature_names_in_, given)) from error
        raise


def read_columns(X: Any, categorical_features: Any = None) -> FloatArray | list[Any]:
    """A table to be learnt from, with nothing remembered: one array where it is numbers by type,
    else a list of its columns (numbers or ``Labels``)."""
    declared = declared_categories(categorical_features, X)
    if isinstance(X, np.ndarray) and is_plain(X) and not declared.any():
        return X.astype(np.float64)
    return _read_columns(X, declared)


def _read_columns(X: Any, declared: BoolArray) -> list[FloatArray | Labels]:
    """The columns of a table at fit: numbers, or labels where they are categories."""
    columns: list[FloatArray | Labels] = []
    for j, (name, dtype) in enumerate(names_and_types(X)):
        if declared[j] or is_category(X, j, name, dtype):
            columns.append(label_column(X, j, name, dtype, declared=bool(declared[j])))
        else:
            columns.append(number_column(X, j, name, dtype))
    return columns


def _encoded(schema: Schema | None, X: Any, fill: Fill | None) -> FloatArray:
    if schema is None:
        schema = numeric_schema(tuple(str(name) for name, _ in names_and_types(X)))
    return schema.encode(X, fill)


def declared_categories(wanted: Any, X: Any) -> BoolArray:
    """Which columns ``categorical_features`` names, (n_columns,)."""
    names = [name for name, _ in names_and_types(X)]
    declared = np.zeros(len(names), dtype=bool)
    if wanted is None:
        return declared
    expected = "expected None, or a list of column names or positions, or a mask of booleans"
    given = list(wanted) if np.ndim(wanted) == 1 else [wanted]
    kinds = {_kind_of_mark(mark) for mark in given}
    if np.ndim(wanted) != 1 or len(kinds) > 1 or "" in kinds:
        raise InvalidParameterError(f"Got categorical_features={reprlib.repr(wanted)}; {expected}.")
    if kinds == {"mask"}:
        if len(given) != len(names):
            raise InvalidParameterError(
                f"Got a mask of {len(given)} categorical_features for {len(names)} columns."
            )
        return np.array(given, dtype=bool)
    if kinds == {"name"} and not is_frame(X):
        raise InvalidParameterError(
            f"Got categorical_features={reprlib.repr(wanted)}, but X is an array, whose columns "
            "have no names; give their positions."
        )
    place = {str(name): j for j, name in enumerate(names)}
    for mark in given:
        known = str(mark) in place if kinds == {"name"} else -len(names) <= mark < len(names)
        if not known:
            raise InvalidParameterError(
                f"categorical_features names the column {mark!r}, which X does not have."
            )
        declared[place[str(mark)] if kinds == {"name"} else mark] = True
    return declared


def _kind_of_mark(mark: Any) -> str:
    if isinstance(mark, (bool, np.bool_)):
        return "mask"
    if isinstance(mark, str):
        return "name"
    return "position" if isinstance(mark, numbers.Integral) else ""


def _checked(estimator: Any, rows: Any, name: str) -> Any:
    """The rows; raises for infinite cells, and for missing cells unless ``missing="learn"``."""
    if isinstance(rows, list):
        names = column_names(estimator, len(rows))
        missing, infinite = np.transpose([_count_odd(column) for column in rows])
        n_rows = len(rows[0])
    else:
        values = rows if isinstance(rows, np.ndarray) else rows.data
        # The sum is finite only if all cells are: one pass without copies.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return rows
        names = column_names(estimator, rows.shape[1])
        n_rows = rows.shape[0]
        missing = _counts_by_column(rows, np.isnan)
        infinite = _counts_by_column(rows, np.isinf)
    learns = getattr(estimator, "missing", "learn") == "learn"
    if missing.any() and not (learns and not is_sparse(rows)):
        found = {names[j]: (int(missing[j]), n_rows) for j in np.flatnonzero(missing)}
        raise missing_error(found, name)
    if infinite.any():
        where = [f"{names[j]}: {infinite[j]} of {n_rows}" for j in np.flatnonzero(infinite)]
        raise infinity_error(where, name)
    if missing.any() and isinstance(rows, np.ndarray) and rows.dtype == np.float32:
        return rows.astype(np.float64)  # only complete tables are worth training in float32
    return rows


def _count_odd(column: FloatArray | Labels) -> tuple[int, int]:
    """Missing and infinite cells of a column."""
    if isinstance(column, Labels):
        return int((column.codes < 0).sum()), 0
    return int(np.isnan(column).sum()), int(np.isinf(column).sum())


def is_single(X: Any) -> bool:
    """Whether every column is float32, in any byte order."""
    dtypes = [] if is_sparse(X) else [dtype for _, dtype in names_and_types(X)]
    kinds = {str(getattr(dtype, "name", dtype)) for dtype in dtypes}
    return kinds <= SINGLES and len(kinds) == 1


class _NamedFrame:
    """A frame that gives its names through the interchange protocol."""

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

    Before 1.9 it reads names of frames other than pandas' by a protocol that polars 2 has dropped.
    Their names would be lost without a warning, and with them the check of their order.
    """
    is_frame = hasattr(X, "columns") and not hasattr(X, "iloc") and not hasattr(X, "__dataframe__")
    return _NamedFrame(X) if is_frame and SKLEARN_VERSION < (1, 9) else X


def _plain_csr(rows: Any) -> Any:
    """CSR without duplicates, with the int32 indices that scikit-learn's k-means needs."""
    narrow = np.int32 if max(rows.nnz, *rows.shape) <= np.iinfo(np.int32).max else np.int64
    if rows.has_canonical_format and rows.indices.dtype == rows.indptr.dtype == narrow:
        return rows
    rows = rows.copy()  # the input is not modified
    rows.sum_duplicates()
    rows.indices, rows.indptr = rows.indices.astype(narrow), rows.indptr.astype(narrow)
    return rows


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """The names that the estimator was fitted with, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == n_columns:
        return tuple(map(str, names))
    return tuple(f"x{j}" for j in range(n_columns))


def _counts_by_column(rows: Any, is_bad: Callable[[Any], Any]) -> IntArray:
    if isinstance(rows, np.ndarray):
        counts = np.zeros(rows.shape[1], dtype=np.intp)
        for _, block in blocks(rows):
            counts += is_bad(block).sum(axis=0)
        return counts
    return np.bincount(rows.indices[is_bad(rows.data)], minlength=rows.shape[1])


def needs_dense(estimator: Any) -> tuple[str, Any] | None:
    """A parameter that sparse rows cannot have, and its value; None where all can."""
    wanted = getattr(estimator, "categorical_features", None)
    given = [] if wanted is None else np.ravel(np.asarray(wanted, dtype=object)).tolist()
    is_mask = all(isinstance(mark, (bool, np.bool_)) for mark in given)
    if any(given) if is_mask else given:
        return "categorical_features", wanted
    recipe = getattr(estimator, "advanced", None)
    for owner, parameter, choices in (
        (estimator, "lift", ("auto", "linear")),
        (recipe, "pca", ("auto", None)),
    ):
        value = getattr(owner, parameter, "auto")
        if value not in choices and not (isinstance(value, tuple) and "linear" in value):
            return parameter, value
    return None


def refuse_dense_only(estimator: Any, name: str) -> None:
    """Raise if a parameter of the estimator needs dense rows; ``name`` : the sparse ones."""
    if (found := needs_dense(estimator)) is not None:
        parameter, value = found
        instead = "" if parameter == "categorical_features" else "lift='linear' without pca, or "
        raise TypeError(
            f"Sparse data was passed, but {parameter}={value!r} needs dense rows; use {instead}"
            f"{name}.toarray() if that fits in memory."
        )
