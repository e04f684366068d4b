"""An orthonormal basis of (nearly) all that a set of rows spans, by pivoted Gram-Schmidt.

The squared length that is left of the sampled rows falls about geometrically with the rank. An
early rank therefore predicts whether ``most`` directions are enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomix.arrays import FloatArray

RANKS_BETWEEN_LOOKS = 16
WORTH_TRYING = 1.33  # the predicted rank, as a factor of ``most``
NEARLY_NOTHING = 0.01  # of ``tol``: a direction of less squared length is rounding


def row_basis(Phi: Any, n_sample: int, most: int, tol: float) -> FloatArray:
    """Rows of the basis, (rank, n_columns); none if ``most`` of them do not reach ``tol``.

    tol : squared length that may be left of any of ``n_sample`` evenly spaced rows.
    """
    n = min(len(Phi), n_sample)
    sample = np.asarray(Phi[np.arange(n) * len(Phi) // max(n, 1)], dtype=float)
    left = (sample**2).sum(axis=1)
    basis = np.empty((0, sample.shape[1]))
    while n and left.max() > tol:
        pivot, rank = int(left.argmax()), len(basis)
        if rank == most or (n > most and _is_hopeless(rank, most, left[pivot], tol)):
            return basis[:0]
        direction = sample[pivot].copy()
        for _ in range(2):
            direction -= (basis @ direction) @ basis
        length = math.sqrt(direction @ direction)
        left[pivot] = 0.0
        if length**2 > NEARLY_NOTHING * tol:
            basis = np.vstack([basis, direction / length])
            left -= (sample @ basis[-1]) ** 2
    return basis


def _is_hopeless(rank: int, most: int, left: float, tol: float) -> bool:
    if rank == 0 or rank % RANKS_BETWEEN_LOOKS:
        return False
    return rank * math.log(tol) / math.log(left) > WORTH_TRYING * most


def projected(Phi: Any, basis: FloatArray) -> FloatArray:
    """Rows in the coordinates of ``basis``, (n_rows, rank), in single precision."""
    return Phi @ basis.T.astype(np.float32)
