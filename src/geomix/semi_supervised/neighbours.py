"""A graph of nearest rows, and class labels that spread along it.

    w_ij = exp(-|x_i - x_j|^2 / (s_i s_j))     for the k nearest rows of i, or of j
    S    = D^-1/2 W D^-1/2                     D: sums of the rows of W
    F    = (1 - a) sum_t a^t S^t Y             Y: known class probabilities, zero rows elsewhere

s_i is the distance from row i to its k-th neighbour, so dense and sparse regions have edges of the
same weight. F, with rows that sum to one, are the responsibilities of the classes for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from geomix.arrays import FloatArray

# The share of its neighbours' labels in the label of a row. Larger shares spread further and need
# more steps.
SPREADING = 0.9
# 0.9^60 = 0.002: later steps change no label.
STEPS = 60
# A row that no label has reached has this responsibility for each class, before normalising.
SMALLEST = 1e-6
# Repeated rows have distance zero to all their neighbours: any positive scale will do.
SMALLEST_SCALE = 1e-75


def neighbour_graph(V: FloatArray, n_neighbors: int) -> Any:
    """S, (n_rows, n_rows), sparse and symmetric, from numeric rows."""
    n_rows, n_neighbors = len(V), min(n_neighbors, len(V) - 1)
    distance, index = NearestNeighbors(n_neighbors=n_neighbors).fit(V).kneighbors()
    scale = np.maximum(distance[:, -1], SMALLEST_SCALE)
    weight = np.exp(-(distance / scale[:, None]) * (distance / scale[index]))
    rows = np.repeat(np.arange(n_rows), n_neighbors)
    W = sparse.csr_array((weight.ravel(), (rows, index.ravel())), shape=(n_rows, n_rows))
    W = W.maximum(W.T)
    root = sparse.diags_array(1.0 / np.sqrt(np.maximum(W.sum(axis=1), SMALLEST)))
    return (root @ W @ root).tocsr()


def spread_labels(S: Any, Y: FloatArray) -> FloatArray:
    """Responsibility of each class for each row, (n_rows, n_classes), from those known, Y."""
    known = (1.0 - SPREADING) * Y
    F = known.copy()
    for _ in range(STEPS):
        F = SPREADING * (S @ F) + known
    F += SMALLEST
    return np.asarray(F / F.sum(axis=1, keepdims=True))
