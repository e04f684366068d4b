"""The one door to fast code: the same functions as the reference, native or NumPy.

Prediction walks the rows in blocks of one fixed size, the last one padded with zeros. Every
row then meets the same operations in the same order whatever the size of the batch it came
in, so its answer depends on that row alone, to the last bit, and memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.objective import batch_terms, cross_entropy
from geomix.pooling import pool, softmax

__all__ = ["batch_terms", "cross_entropy", "in_blocks", "is_native", "pool", "softmax"]

is_native = False

ROWS_PER_BLOCK = 128


def in_blocks(answer: Callable[[Any], FloatArray], X: Any, n_outputs: int) -> FloatArray:
    """``answer`` (rows, columns) -> (rows, n_outputs) applied to ``X`` block by block."""
    n_rows, n_columns = X.shape
    out = np.empty((n_rows, n_outputs))
    dense = isinstance(X, np.ndarray)
    for start in range(0, n_rows, ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        n_in_block = block.shape[0]
        if dense and (n_in_block < ROWS_PER_BLOCK or not block.flags.c_contiguous):
            padded = np.zeros((ROWS_PER_BLOCK, n_columns))
            padded[:n_in_block] = block
            block = padded
        out[start : start + n_in_block] = answer(block)[:n_in_block]
    return out
