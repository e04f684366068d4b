"""The four equations of the model, exact for any sharpness and any score size.

    soft-OR          s_c  = log( sum_m exp(k z_cm) ) / k
    responsibility   a_cm = exp(k z_cm) / sum_j exp(k z_cj)
    posterior        p_c  = exp(s_c) / sum_k exp(s_k)

Shapes: ``Z`` is (n_rows, n_planes) with the planes of class c in columns
``class_start[c]:class_start[c + 1]``; ``S`` and ``P`` are (n_rows, n_classes); ``A`` is
shaped like ``Z``. These functions are the reference that any faster kernel is held against.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray, IntArray


def pool(Z: FloatArray, class_start: IntArray, sharpness: float) -> tuple[FloatArray, FloatArray]:
    """Class scores ``S`` and responsibilities ``A`` of plane scores ``Z``, computed together."""
    starts = class_start[:-1]
    if len(starts) == Z.shape[1]:  # one plane per class: its score is the class score, exactly
        return Z, np.ones_like(Z)
    top, A = _relative(Z, class_start, sharpness)
    total = np.add.reduceat(A, starts, axis=1)
    A /= np.repeat(total, np.diff(class_start), axis=1)
    S = top + np.log(total) / sharpness
    return S, A


def _relative(
    Z: FloatArray, class_start: IntArray, sharpness: float
) -> tuple[FloatArray, FloatArray]:
    """The class maximum of Z, and exp(k (Z - maximum))."""
    # Subtract the class maximum before multiplying by the sharpness: exp(700) overflows, and
    # log-sum-exp of the product loses the scores themselves when the sharpness is tiny.
    top = np.maximum.reduceat(Z, class_start[:-1], axis=1)
    A = Z - np.repeat(top, np.diff(class_start), axis=1)
    A *= sharpness
    np.exp(A, out=A)
    return top, A


def soft_or(Z: FloatArray, class_start: IntArray, sharpness: float) -> FloatArray:
    """Pool plane scores into class scores: s_c = log(sum_m exp(k z_cm)) / k.

    Examples
    --------
    >>> Z = np.array([[1.0, 1.0, 0.5]])
    >>> soft_or(Z, np.array([0, 2, 3]), sharpness=1.0).round(4)
    array([[1.6931, 0.5   ]])
    """
    starts = class_start[:-1]
    if len(starts) == Z.shape[1]:
        return Z
    top, A = _relative(Z, class_start, sharpness)
    S: FloatArray = top + np.log(np.add.reduceat(A, starts, axis=1)) / sharpness
    return S


def responsibilities(Z: FloatArray, class_start: IntArray, sharpness: float) -> FloatArray:
    """Share of each plane in its class's score; sums to one over the planes of a class."""
    return pool(Z, class_start, sharpness)[1]


def log_softmax(S: FloatArray) -> FloatArray:
    """Log of the posterior over classes, from class scores (already divided by temperature)."""
    S = S - S.max(axis=1, keepdims=True)
    log_p: FloatArray = S - np.log(np.exp(S).sum(axis=1, keepdims=True))
    return log_p


def softmax(S: FloatArray) -> FloatArray:
    """Posterior over classes from class scores (already divided by the temperature)."""
    P: FloatArray = np.exp(S - S.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P
