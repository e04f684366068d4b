"""The door: frames, arrays and sparse matrices become clean float64 rows with names.

What scikit-learn's own validation says well it says (shapes, names, lengths); what it lets
pass or says without naming the place is checked here: missing and infinite values by column,
text and dates in number columns, masks, integers too large for a float, weights by row.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from geomix.arrays import FloatArray, IntArray
from geomix.errors import DataQualityWarning, SchemaError

LARGEST_EXACT_INTEGER = 2**53
MOST_COLUMNS_NAMED = 5


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as float64 C-ordered array or CSR matrix, checked against the estimator's columns.

    ``reset=True`` (fit) makes the estimator take the columns on; False (predict) holds X
    against them.
    """
    _refuse_unusable(X)
    try:
        rows = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
        )
    except OverflowError as error:
        raise _overflow_error(X, error) from error
    _check_finite(rows, column_names(estimator, rows.shape[1]))
    return rows


def column_names(estimator: Any, n_columns: int) -> tuple[str, ...]:
    """The names that the estimator was fitted with, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == n_columns:
        return tuple(map(str, names))
    return tuple(f"x{j}" for j in range(n_columns))


def read_labels(y: Any) -> tuple[Any, IntArray]:
    """Distinct labels in sorted order, and each row's code among them."""
    _check_labels_known(y)
    check_classification_targets(y)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"Labels of mixed types cannot be told apart reliably: y holds {' and '.join(kinds)}. "
            "Convert them to one type, for example with y.astype(str)."
        ) from error
    return classes, codes.astype(np.intp)


def _check_labels_known(y: Any) -> None:
    if y.dtype.kind == "f":
        unknown = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        unknown = np.array([label is None or label != label for label in y], dtype=bool)
    else:
        return
    if unknown.any():
        first = int(unknown.argmax())
        raise ValueError(
            f"Input y contains NaN, None or infinity: {int(unknown.sum())} of {len(y)} labels, "
            f"the first at row {first}. Drop those rows."
        )


def codes_of(y: Any, classes: Any, name: str) -> IntArray:
    """Codes of labels among known ``classes``; an unknown label is an error."""
    y = np.asarray(y)
    unknown = [label for label in np.unique(y) if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"{name} holds the label {unknown[0]!r}, which is not among the labels of y: "
            f"{classes.tolist()[:10]!r}."
        )
    return np.searchsorted(classes, y).astype(np.intp)


def read_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> FloatArray:
    """Weights divided by the largest one, so that their unit does not matter; None is ones."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"{name} must be a 1D array; got shape {weight.shape}.")
    if len(weight) != n_rows:
        raise ValueError(f"{name}.shape == {weight.shape}, expected ({n_rows},)!")
    for problem, mask in {
        "NaN": np.isnan(weight),
        "infinity": np.isinf(weight),
        "a negative value": weight < 0,
    }.items():
        if mask.any():
            first = int(mask.argmax())
            raise ValueError(
                f"{name} contains {problem}: {name}[{first}] = {float(weight[first])!r}; "
                "expected finite numbers of at least 0."
            )
    largest = weight.max(initial=0.0)
    if largest == 0.0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight / largest


# --- what is refused or warned about before scikit-learn looks at the table ---


def _refuse_unusable(X: Any) -> None:
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not isinstance(X, np.ma.MaskedArray):
        return
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, whose mask would be ignored; use X.filled(np.nan).")
    if scipy.sparse.issparse(X):
        return
    for position, (name, column) in enumerate(_columns_of(X)):
        kind = column.dtype.kind
        if kind in "mM":
            raise SchemaError(
                f"Column {name!r} holds dates or durations ({column.dtype}); drop it, or convert "
                "it to numbers (a year, an age in days)."
            )
        if kind == "O":
            _check_objects(name, position, column)
        elif kind in "iu" and len(column):
            _warn_inexact(name, column)


def _columns_of(X: Any) -> list[tuple[Any, Any]]:
    """(name, array) of every column of a frame or a non-float array; [] for anything else."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "OiumM":
            return []
        return [(f"x{j}", X[:, j]) for j in range(X.shape[1])]
    names = getattr(X, "columns", None)
    if names is None or callable(names) or not hasattr(X, "shape"):
        return []
    if hasattr(X, "iloc"):
        return [(name, _column_array(X.iloc[:, j])) for j, name in enumerate(names)]
    return [(name, _column_array(X[name])) for name in names]


def _column_array(column: Any) -> Any:
    """The column as an array; only text, dates and integers are looked at, so only they copy."""
    dtype = str(column.dtype).lower()
    if "float" in dtype or "bool" in dtype:
        return np.empty(0)
    if hasattr(column, "isna") and "int" in dtype and bool(column.isna().any()):
        return np.empty(0)  # a nullable integer column with holes: the missing check speaks
    return np.asarray(column)


def _check_objects(name: Any, position: int, column: Any) -> None:
    for row, value in enumerate(column.tolist()):
        if isinstance(value, (str, bytes)):
            raise SchemaError(
                f"Column {name!r} holds text: row {row} is {_short(value)}, expected a number. "
                "Encode categories as numbers first, for example with OneHotEncoder."
            )


def _warn_inexact(name: Any, column: Any) -> None:
    largest = max(abs(int(column.max())), abs(int(column.min())))
    if largest > LARGEST_EXACT_INTEGER:
        warnings.warn(
            f"Column {name!r} holds integers up to {largest}, beyond 2**53: as float64 they lose "
            "their last digits. If it is an identifier, drop it.",
            DataQualityWarning,
            stacklevel=2,
        )


def _overflow_error(X: Any, error: OverflowError) -> Exception:
    for name, column in _columns_of(np.asarray(X, dtype=object)):
        for row, value in enumerate(column.tolist()):
            try:
                float(value)
            except OverflowError:
                return ValueError(
                    f"Column {name!r}, row {row} holds {_short(value)}, too large for a float64."
                )
    return ValueError(str(error))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- missing and infinite values, by column ---


def _check_finite(rows: Any, names: tuple[str, ...]) -> None:
    values = rows if isinstance(rows, np.ndarray) else rows.data
    # A sum is finite unless something in it is not (or it overflows): one pass, no copies.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    for problem, remedy, is_bad in (
        ("NaN", "Impute or drop them, for example with SimpleImputer.", np.isnan),
        (
            "infinity",
            "Replace or drop them; an infinite value is never taken as missing.",
            np.isinf,
        ),
    ):
        bad = is_bad(values)
        if bad.any():
            counts = _counts_by_column(rows, bad)
            where = [f"{names[j]}: {counts[j]} of {rows.shape[0]}" for j in np.flatnonzero(counts)]
            listed = ", ".join(where[:MOST_COLUMNS_NAMED])
            if len(where) > MOST_COLUMNS_NAMED:
                listed += f", and {len(where) - MOST_COLUMNS_NAMED} more columns"
            raise ValueError(f"Input X contains {problem} ({listed}). {remedy}")


def _counts_by_column(rows: Any, bad: Any) -> IntArray:
    if isinstance(rows, np.ndarray):
        return bad.sum(axis=0)
    return np.bincount(rows.indices[bad], minlength=rows.shape[1])
