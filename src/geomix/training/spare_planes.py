"""Planes that a class does not need: idle ones go, near copies become one.

    share of plane p = weighted mean of its responsibility over the rows of its class

A plane with a share below ``SMALLEST_SHARE`` is removed. Two planes of a class whose scores differ
by less than ``COPY_DISTANCE`` / k (root mean square over the rows of the class) are replaced by
their mean, with log(2) / k added to its bias: exp(k z) + exp(k z) = exp(k (z + log(2) / k)).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import pool
from geomix.table.row_views import made_whole
from geomix.training.rows import Rows

# A plane that answers for less than this share of its class is not worth reading.
SMALLEST_SHARE = 0.01
# Scores closer than this share of a sharpness unit give the same responsibilities.
COPY_DISTANCE = 0.1


def without_spare_planes(planes: Planes, rows: Rows, sharpness: float) -> Planes:
    """The planes that matter, of the working features that ``rows`` hold; one model only."""
    if planes.n_planes == planes.n_classes or planes.n_members > 1:
        return planes
    X = made_whole(rows.X)
    planes = _without_copies(planes, planes.scores(X), rows, sharpness)
    Z, used = planes.scores(X), list[BoolArray]()
    for code, (begin, end) in enumerate(
        zip(planes.class_start, planes.class_start[1:], strict=False)
    ):
        own = rows.y == code
        used.append(_used(Z[own, begin:end], rows.weight[own], sharpness))
    return _kept(planes, np.concatenate(used))


def _used(Z: FloatArray, weight: FloatArray, sharpness: float) -> BoolArray:
    """Planes of one class that stay, by the scores of its rows: the least used goes, again and
    again, until its share is large enough or it is alone."""
    used = np.ones(Z.shape[1], dtype=bool)
    while used.sum() > 1 and len(Z):
        A = pool(Z[:, used], class_starts([int(used.sum())]), sharpness)[1]
        share = np.average(A, axis=0, weights=weight)
        if share.min() >= SMALLEST_SHARE:
            break
        used[np.flatnonzero(used)[np.argmin(share)]] = False
    return used


def _without_copies(planes: Planes, Z: FloatArray, rows: Rows, sharpness: float) -> Planes:
    keep = np.ones(planes.n_planes, dtype=bool)
    weights, biases = planes.weights.copy(), planes.biases.copy()
    for code, (begin, end) in enumerate(
        zip(planes.class_start, planes.class_start[1:], strict=False)
    ):
        own = rows.y == code
        Z_own, weight = Z[own, begin:end], rows.weight[own]
        for p, q in combinations(range(begin, end), 2):
            if not (keep[p] and keep[q] and own.any()):
                continue
            distance = Z_own[:, p - begin] - Z_own[:, q - begin]
            if np.sqrt(np.average(distance**2, weights=weight)) * sharpness < COPY_DISTANCE:
                weights[p] = (weights[p] + weights[q]) / 2.0
                biases[p] = (biases[p] + biases[q]) / 2.0 + np.log(2.0) / sharpness
                keep[q] = False
    return _kept(replace(planes, weights=weights, biases=biases), keep)


def _kept(planes: Planes, keep: BoolArray) -> Planes:
    if keep.all():
        return planes
    counts = np.bincount(planes.class_of[keep], minlength=planes.n_classes)
    return Planes(planes.weights[keep], planes.biases[keep], class_starts(counts))
