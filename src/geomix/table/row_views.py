"""Rows of a table by index, without a copy.

A fit sorts the rows and holds some out; both are indices into the original table. ``blocks`` gives
the numbers, as float64, C-ordered and aligned. The size of a block depends only on the number of
columns, so sums over blocks have the same bits for every dtype and memory layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray, contiguous

# One block in float64 takes a megabyte, half of a second-level cache.
CELLS_PER_BLOCK = 2**17
# Steps within a block take fewer at a time: what they need beside it then adds nothing to the peak
# memory, and is not given back to the system after every step.
CELLS_AT_ONCE = 2**15
# Of rows this many times wider than the columns wanted, only those columns are gathered.
WIDE = 4


@dataclass(frozen=True, eq=False)
class PickedRows:
    """The matrix ``table[index]``, never made whole. table : (n, d) array;  index : (m,).

    expand : makes other columns of the rows of each block, where there is one: an ``Expand``.
    """

    table: FloatArray
    index: IntArray
    expand: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        width = self.table.shape[1] if self.expand is None else self.expand.n_outputs
        return len(self.index), int(width)

    @property
    def dtype(self) -> Any:
        return self.table.dtype if self.expand is None else np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> PickedRows:
        return PickedRows(self.table, self.index[rows], self.expand)

    @property
    def limits(self) -> FloatArray:
        """Smallest and largest value of each column, (2, n_columns); inf and -inf where every
        cell is missing."""
        return self._summary[0]

    @property
    def has_missing(self) -> BoolArray:
        """Which columns have a cell that is NaN, (n_columns,)."""
        return self._summary[1]

    @cached_property
    def _summary(self) -> tuple[FloatArray, BoolArray]:
        low, high = np.full((2, self.shape[1]), [[np.inf], [-np.inf]])
        missing = np.zeros(self.shape[1], dtype=bool)
        for _, block in blocks(self):
            least, most = block.min(axis=0), block.max(axis=0)
            if np.isnan(least).any():
                missing |= np.isnan(least)
                least, most = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
            np.fmin(low, least, out=low)
            np.fmax(high, most, out=high)
        return np.stack([low, high]), missing


DenseRows: TypeAlias = "FloatArray | PickedRows"


def is_dense(X: Any) -> bool:
    return isinstance(X, (np.ndarray, PickedRows))


def all_rows(X: Any) -> Any:
    """All rows of an array as a view by index; other inputs unchanged."""
    return PickedRows(X, np.arange(len(X))) if isinstance(X, np.ndarray) else X


def pick(X: Any, index: IntArray) -> Any:
    """Rows ``index`` of an array without copying them; of a sparse matrix, a copy."""
    return PickedRows(X, index) if isinstance(X, np.ndarray) else X[index]


def numbers(X: Any) -> Any:
    """Picked rows as one float64 array; a sparse matrix unchanged."""
    if not is_dense(X):
        return X
    found = np.empty(X.shape)
    for rows, block in blocks(X):
        found[rows] = block
    return found


def few_at_once(shape: tuple[int, int], multiple: int = 1) -> Iterator[slice]:
    """Consecutive rows of a matrix of this shape, a multiple at a time: for steps whose results
    for a row depend on that row alone."""
    n_rows, n_columns = shape
    size = max(CELLS_AT_ONCE // max(n_columns, 1) // multiple, 1) * multiple
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def made_whole(X: Any) -> Any:
    """Picked rows as one float64 array; any other matrix unchanged."""
    return numbers(X) if isinstance(X, PickedRows) else X


def blocks(X: DenseRows, columns: IntArray | None = None) -> Iterator[tuple[slice, FloatArray]]:
    """Consecutive rows of X, all columns or those given, as (which rows, numbers).

    A block may be a view of X and must not be modified.
    """
    n_columns = X.shape[1]
    if columns is not None and len(columns) == n_columns:
        columns = None
    width = n_columns if columns is None else len(columns)
    size = max(CELLS_PER_BLOCK // max(width, 1), 1)
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        yield rows, contiguous(_part(X, rows, columns), np.float64)


def _part(X: DenseRows, rows: slice, columns: IntArray | None) -> FloatArray:
    if isinstance(X, PickedRows):
        table, index = X.table, X.index[rows]
        if X.expand is None and columns is not None and table.shape[1] > WIDE * len(columns):
            return table[np.ix_(index, columns)]
        # ``take`` is twice as fast, but of a table that is not C-ordered it copies the whole.
        part = table.take(index, axis=0) if table.flags.c_contiguous else table[index]
        part = part if X.expand is None else X.expand(part)
    else:
        part = X[rows]
    return part if columns is None else part.take(columns, axis=1)
