"""Rows for a model whose columns are known: the one door into the model.

Columns are matched by name wherever the table has names. Numbers of an array are read as they
are; all other cells are read column by column, so that text, bytes, dates and complex numbers are
refused by the name of their column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from geomix.arrays import plain
from geomix.table.frames import as_table, is_frame, names_and_types
from geomix.table.schema import Fill, Schema

# NumPy's codes of real numbers: floats, integers and booleans.
REAL = "fiub"


def known_rows(schema: Schema, X: Any, fill: Fill | None = None) -> Any:
    """An array, a frame, a list of rows, a sparse matrix or one dict as encoded rows.

    (n_rows, n_columns) float64, or CSR for a sparse matrix. ``fill`` as for ``Schema.encode``.
    """
    if isinstance(X, Mapping):
        return schema.encode_row(X)[None, :]
    X = as_table(X, "X")
    is_csr = getattr(X, "format", None) is not None
    is_named = not is_csr and is_frame(X)
    if not is_csr and not is_named:
        X = np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] != len(schema):
        if is_named:
            schema.check_names([name for name, _ in names_and_types(X)])
        raise schema.wrong_shape(X)
    if is_csr:
        _refuse_complex(X.dtype)
        return X
    if schema.has_categories or not _is_real(X):
        return schema.encode(X, fill)
    if is_named:
        schema.check_names(list(X.columns))
    with np.errstate(over="ignore"):  # a longdouble beyond float64 becomes infinity
        return plain(np.asarray(X, dtype=np.float64))


def _is_real(X: Any) -> bool:
    """Whether NumPy reads X at once, as real numbers without a detour over objects."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in REAL
    dtypes = [dtype for _, dtype in names_and_types(X)]
    return hasattr(X, "iloc") and all(
        isinstance(dtype, np.dtype) and dtype.kind in REAL for dtype in dtypes
    )


def _refuse_complex(dtype: Any) -> None:
    if dtype.kind not in REAL:
        raise ValueError(f"X is a sparse matrix of {dtype}; expected real numbers.")
