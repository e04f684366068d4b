"""Weighted k-means and silhouettes: the reference for the native versions.

    inertia     = sum_i w_i ||x_i - nearest centre||^2
    silhouette  = mean_i (b_i - a_i) / max(a_i, b_i),  a_i the mean distance within the row's own
                  cluster, b_i the smallest mean distance to another one

Rows are an array or a SciPy sparse matrix, which stays sparse. Seeding is greedy k-means++
(each next centre is the best of a few draws by squared distance); random draws are an
argument, so equal draws give equal clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray

MOST_ROUNDS = 300
# Lloyd's rounds end when the centres move by less than this share of the columns' variance.
SHIFT_TOL = 1e-4


@dataclass(frozen=True, eq=False)
class Clustering:
    """labels : (n_rows,);  centres : (k, n_columns);  inertia : weighted squared distance."""

    labels: IntArray
    centres: FloatArray
    inertia: float


def shift_tol(X: Any) -> float:
    if isinstance(X, np.ndarray):
        return SHIFT_TOL * float(np.var(X, axis=0).mean())
    mean = np.asarray(X.mean(axis=0)).ravel()
    return SHIFT_TOL * float((X.multiply(X).mean(axis=0) - mean**2).mean())


def n_trials(n_clusters: int) -> int:
    """Draws for each next centre, as scikit-learn has it."""
    return 2 + int(np.log(n_clusters))


def kmeans(X: Any, weight: FloatArray, n_clusters: int, draws: FloatArray) -> Clustering:
    """Cluster rows ``X`` (n, d); ``draws`` (n_clusters, n_trials) are uniform in [0, 1)."""
    tol = shift_tol(X)
    centres = _seed(X, weight, n_clusters, draws)
    labels, squared = nearest(X, centres)
    for _ in range(MOST_ROUNDS):
        moved = _move(X, weight, labels, squared, centres)
        shift = float(((moved - centres) ** 2).sum())
        before, centres = labels, moved
        labels, squared = nearest(X, centres)
        if np.array_equal(labels, before) or shift <= tol:
            break
    return Clustering(labels, centres, float(weight @ squared))


def nearest(X: Any, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """Index of the nearest centre of each row (the first of equals) and its squared distance."""
    squared = np.stack([_squared_to(X, centre) for centre in centres], axis=1)
    labels = squared.argmin(axis=1)
    return labels, squared[np.arange(len(labels)), labels]


def silhouettes(X: Any, labelings: list[IntArray]) -> FloatArray:
    """Mean silhouette of the rows under each labeling; 0 for a row alone in its cluster."""
    D = np.sqrt(np.stack([_squared_to(X, _row(X, i)) for i in range(X.shape[0])]))
    return np.array([_silhouette(D, np.asarray(labels)) for labels in labelings])


def _silhouette(D: FloatArray, labels: IntArray) -> float:
    count = np.bincount(labels)
    sums = D @ (labels[:, None] == np.arange(len(count)))
    rows = np.arange(len(labels))
    own = np.maximum(count[labels] - 1, 1)
    a = sums[rows, labels] / own
    others = np.where(count > 0, sums / np.maximum(count, 1), np.inf)
    others[rows, labels] = np.inf
    b = others.min(axis=1)
    widest = np.maximum(a, b)
    counts = (count[labels] > 1) & np.isfinite(b) & (widest > 0.0)
    return float(np.where(counts, b - a, 0.0) @ (1.0 / np.where(counts, widest, 1.0)) / len(rows))


def _squared_to(X: Any, point: FloatArray) -> FloatArray:
    if isinstance(X, np.ndarray):
        squared: FloatArray = ((X - point) ** 2).sum(axis=1)
        return squared
    lengths = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.maximum(lengths - 2.0 * (X @ point) + point @ point, 0.0)


def _row(X: Any, i: int) -> FloatArray:
    row: FloatArray = X[i] if isinstance(X, np.ndarray) else X[[i]].toarray()[0]
    return row


def _draw_row(mass: FloatArray, draw: float) -> int:
    running = np.cumsum(mass)
    return min(int(np.searchsorted(running, draw * running[-1], side="right")), len(mass) - 1)


def _seed(X: Any, weight: FloatArray, n_clusters: int, draws: FloatArray) -> FloatArray:
    picked = [_draw_row(weight, draws[0, 0])]
    closest = _squared_to(X, _row(X, picked[0]))
    for trials in draws[1:n_clusters]:
        rows = [_draw_row(weight * closest, draw) for draw in trials]
        options = [np.minimum(closest, _squared_to(X, _row(X, row))) for row in rows]
        best = int(np.argmin([weight @ option for option in options]))
        picked.append(rows[best])
        closest = options[best]
    return np.stack([_row(X, row) for row in picked])


def _move(
    X: Any, weight: FloatArray, labels: IntArray, squared: FloatArray, centres: FloatArray
) -> FloatArray:
    """Weighted means; a cluster without weight moves to the row farthest from its centre."""
    n_clusters = len(centres)
    mass = np.bincount(labels, weight, n_clusters)
    member = (labels[:, None] == np.arange(n_clusters)) * weight[:, None]
    moved: FloatArray = np.asarray(member.T @ X) / np.where(mass > 0.0, mass, 1.0)[:, None]
    far = iter(np.argsort(-squared, kind="stable"))
    for empty in np.flatnonzero(mass <= 0.0):
        moved[empty] = _row(X, int(next(far)))
    return moved
