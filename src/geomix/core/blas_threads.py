"""BLAS threads: a fit with the NumPy kernel makes many small products, slower on two than one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import threadpool_limits

from geomix.core import kernel

# Above this many cells the products are large enough to share.
CELLS_TO_SHARE = 10_000_000


def blas_threads(n_cells: int) -> AbstractContextManager[object]:
    """One BLAS thread while a small table is fitted; the native kernel needs no such care."""
    if kernel.is_native or n_cells > CELLS_TO_SHARE:
        return nullcontext()
    return threadpool_limits(1, user_api="blas")
