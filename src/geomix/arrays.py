"""Array types, plain arrays, and a matrix that is not an array: centred sparse rows.

``CenteredSparse`` behaves like the dense matrix ``csr - shift`` in the two products that
training needs, so that standardised sparse data never becomes dense. Binned rows of a spline
lift are another such matrix (``spline.Binned``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geomix.core.spline import Binned

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CenteredSparse:
    """The matrix ``csr - shift`` (shift subtracted from every row), never made dense.

    csr : SciPy CSR matrix, (n_rows, n_columns);  shift : (n_columns,).
    """

    csr: Any
    shift: FloatArray

    # Makes NumPy hand ``array @ self`` over to ``__rmatmul__`` instead of looping over objects.
    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.csr.shape
        return int(n_rows), int(n_columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, right: FloatArray) -> FloatArray:
        product: FloatArray = np.asarray(self.csr @ right) - self.shift @ right
        return product

    def __rmatmul__(self, left: FloatArray) -> FloatArray:
        product: FloatArray = np.asarray(self.csr.T @ left.T).T - np.multiply.outer(
            left.sum(axis=-1), self.shift
        )
        return product

    def __getitem__(self, rows: Any) -> CenteredSparse:
        return CenteredSparse(self.csr[rows], self.shift)


Matrix: TypeAlias = "FloatArray | CenteredSparse | Binned"


def contiguous(X: Any, dtype: Any) -> Any:
    """X in C order, of one type and aligned; a copy only where it is not.

    NumPy calls an array contiguous wherever it starts, and native code must not read a number
    from an address that is no multiple of its size.
    """
    made = np.ascontiguousarray(X, dtype=dtype)
    return made if made.flags.aligned else made.copy()


def plain(X: Any) -> Any:
    """X aligned, with whole-number strides, as native code reads it; a copy only if it is not."""
    odd = not X.flags.aligned or any(step % X.itemsize for step in X.strides)
    return X.copy() if odd else X


def freeze(value: Any) -> None:
    """Make every array in tuples and dataclasses read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple):
        for one in value:
            freeze(one)
    elif is_dataclass(value):
        freeze(tuple(getattr(value, field.name) for field in fields(value)))


def fields_alone(value: Any) -> dict[str, Any]:
    """The state of a dataclass for pickle: its fields, without what is computed when needed."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def rounded(numbers: FloatArray) -> FloatArray:
    """Numbers rounded to 24 significant bits, as float32 has them, in the range of float64.

    Training works on such numbers. The same column in another unit differs in its last bits, which
    training would amplify; rounded, both are the same numbers.
    """
    return round_in_place(np.array(numbers, dtype=np.float64))


def round_in_place(numbers: FloatArray) -> FloatArray:
    """``rounded`` without a copy, for a C-ordered float64 array that nobody else holds."""
    bits = numbers.view(np.uint64)
    bits += np.uint64(1 << 28)  # a carry raises the exponent, as rounding up should
    bits &= np.uint64(2**64 - 2**29)
    return numbers
