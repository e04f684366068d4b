"""Planes that a class does not need: idle ones go, near copies become one.

    share of plane p = weighted mean of its responsibility over the rows of its class

A plane with a share below ``SMALLEST_SHARE`` is removed. Two planes of a class whose scores differ
by less than ``COPY_DISTANCE`` / k (root mean square over the rows of the class) are replaced by
their mean, with log(2) / k added to its bias: exp(k z) + exp(k z) = exp(k (z + log(2) / k)).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.core.planes import Planes, class_starts
from geomix.training.rows import Rows

# A plane that answers for less than this share of its class is not worth reading.
SMALLEST_SHARE = 0.01
# Scores closer than this share of a sharpness unit give the same responsibilities.
COPY_DISTANCE = 0.1


def without_spare_planes(planes: Planes, rows: Rows, sharpness: float) -> Planes:
    """The planes that matter, of the working features that ``rows`` hold; one model only."""
    if planes.n_planes == planes.n_classes or planes.n_members > 1:
        return planes
    planes = _without_copies(planes, planes.scores(rows.X), rows, sharpness)
    while (idle := _idle(planes, rows, sharpness)).any():
        planes = _kept(planes, ~idle)
    return planes


def _idle(planes: Planes, rows: Rows, sharpness: float) -> BoolArray:
    """The least used plane of each class, where its share is too small and it is not alone."""
    A = planes.pooled(planes.scores(rows.X), sharpness)[1]
    idle = np.zeros(planes.n_planes, dtype=bool)
    for code, (begin, end) in enumerate(
        zip(planes.class_start, planes.class_start[1:], strict=False)
    ):
        own = rows.y == code
        if end - begin == 1 or not own.any():
            continue
        share = np.average(A[own, begin:end], axis=0, weights=rows.weight[own])
        least = int(np.argmin(share))
        idle[begin + least] = share[least] < SMALLEST_SHARE
    return idle


def _without_copies(planes: Planes, Z: FloatArray, rows: Rows, sharpness: float) -> Planes:
    keep = np.ones(planes.n_planes, dtype=bool)
    weights, biases = planes.weights.copy(), planes.biases.copy()
    for p, q in _pairs_of_a_class(planes):
        own = rows.y == planes.class_of[p]
        if not (keep[p] and keep[q] and own.any()):
            continue
        distance = np.sqrt(np.average((Z[own, p] - Z[own, q]) ** 2, weights=rows.weight[own]))
        if distance * sharpness < COPY_DISTANCE:
            weights[p] = (weights[p] + weights[q]) / 2.0
            biases[p] = (biases[p] + biases[q]) / 2.0 + np.log(2.0) / sharpness
            keep[q] = False
    return _kept(replace(planes, weights=weights, biases=biases), keep)


def _pairs_of_a_class(planes: Planes) -> list[tuple[int, int]]:
    return [
        (p, q)
        for begin, end in zip(planes.class_start, planes.class_start[1:], strict=False)
        for p in range(begin, end)
        for q in range(p + 1, end)
    ]


def _kept(planes: Planes, keep: BoolArray) -> Planes:
    if keep.all():
        return planes
    counts = np.bincount(planes.class_of[keep], minlength=planes.n_classes)
    return Planes(planes.weights[keep], planes.biases[keep], class_starts(counts))
