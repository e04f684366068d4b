"""How many planes each class gets, and which of its rows each plane starts from.

Where no number is given (``n_planes`` "auto" or "silhouette") a class is split by k-means into
2, 3, ... ``max_planes`` clusters and keeps the number with the best silhouette among those that one
Gaussian would not reach (``one_cluster``), or one plane. All of it runs on a sample of the class's
rows, so it stays cheap on large classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import CenteredSparse, FloatArray, IntArray
from geomix.core import clustering, kernel
from geomix.table.row_views import numbers, pick
from geomix.training.one_cluster import is_convincing
from geomix.training.random_streams import stream
from geomix.training.rows import Rows
from geomix.training.settings import Settings

# Smaller clusters have high silhouettes by chance.
FEWEST_ROWS_PER_CLUSTER = 10
# ``n_planes="auto"``: a silhouette does not separate more clusters than this reliably.
MOST_CLUSTERS = 4
ROWS_FOR_KMEANS = 2000
ROWS_FOR_SILHOUETTE = 500
# Two runs of k-means whose inertias differ by more than this found different clusters.
UNSTABLE_INERTIA = 0.2


@dataclass(frozen=True, eq=False)
class Clusters:
    """Per row, which plane of its class it starts from; per class, how many planes.

    plane_of_row : (n_rows,) index within the class;  planes_per_class : (n_classes,);
    unstable : codes of the classes where two runs of k-means differ.
    """

    plane_of_row: IntArray
    planes_per_class: IntArray
    unstable: tuple[int, ...]

    def of(self, index: IntArray | None) -> Clusters:
        """The clusters of some of the rows (None: of all)."""
        return self if index is None else replace(self, plane_of_row=self.plane_of_row[index])


def whole_classes(y: IntArray, n_classes: int) -> Clusters:
    """One plane per class, for which nothing has to be split."""
    return Clusters(np.zeros(len(y), dtype=np.intp), np.ones(n_classes, dtype=np.intp), ())


def find_clusters(
    rows: Rows, n_classes: int, wanted: IntArray | None, settings: Settings, seed: int
) -> Clusters:
    """Split class c into ``wanted[c]`` clusters, or into the number with the best silhouette.

    rows : standardised rows (``rows.X`` dense or ``CenteredSparse``).
    """
    X = rows.X.csr if isinstance(rows.X, CenteredSparse) else rows.X
    most = settings.most_planes("linear")
    if settings.n_planes == "auto":
        most = min(most, MOST_CLUSTERS)
    plane_of_row = np.zeros(len(rows), dtype=np.intp)
    planes_per_class = np.ones(n_classes, dtype=np.intp)
    unstable = []
    for code in range(n_classes):
        members = np.flatnonzero(rows.y == code)
        limit = most if wanted is None else int(wanted[code])
        split = _split_class(pick(X, members), rows.weight[members], limit, wanted is None, seed)
        plane_of_row[members] = split.labels
        planes_per_class[code] = split.n_clusters
        if not split.stable:
            unstable.append(code)
    return Clusters(plane_of_row, planes_per_class, tuple(unstable))


def wanted_planes(n_planes: Any, classes: Any) -> IntArray | None:
    """``n_planes`` as one number per class; None means that the silhouette decides."""
    if isinstance(n_planes, str):
        return None
    if isinstance(n_planes, Mapping):
        by_label = {_plain(label): count for label, count in n_planes.items()}
        return np.array([by_label[_plain(label)] for label in classes], dtype=np.intp)
    return np.full(len(classes), n_planes, dtype=np.intp)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


@dataclass(frozen=True, eq=False)
class _Split:
    labels: IntArray
    n_clusters: int
    stable: bool = True


def _split_class(X: Any, weight: FloatArray, limit: int, choose: bool, seed: int) -> _Split:
    n_rows = X.shape[0]
    whole = _Split(np.zeros(n_rows, dtype=np.intp), 1)
    limit = min(limit, n_rows // FEWEST_ROWS_PER_CLUSTER if choose else n_rows)
    if limit <= 1 or not X.shape[1]:
        return whole
    # The same stream for every class: renaming the classes changes nothing.
    order = stream(seed, "budget").permutation(n_rows)
    sample = np.sort(order[:ROWS_FOR_KMEANS])
    if not choose:
        return _kmeans(X, weight, sample, limit, seed)
    splits = [_kmeans(X, weight, sample, k, seed) for k in range(2, limit + 1)]
    sample = np.sort(order[:ROWS_FOR_SILHOUETTE])
    found = _silhouettes(X, [s.labels for s in splits], sample)
    counts = range(2, limit + 1)
    found = np.where(is_convincing(numbers(X[sample]), counts, found, seed), found, -np.inf)
    best = int(np.argmax(found))
    return splits[best] if np.isfinite(found[best]) else whole


def _kmeans(X: Any, weight: FloatArray, sample: IntArray, n_clusters: int, seed: int) -> _Split:
    draws = stream(seed, "kmeans").random((2, n_clusters, clustering.n_trials(n_clusters)))
    sampled = numbers(X[sample])
    runs = [kernel.kmeans(sampled, weight[sample], n_clusters, draw) for draw in draws]
    better, worse = sorted(runs, key=lambda run: run.inertia)
    labels = better.labels if len(sample) == X.shape[0] else kernel.nearest(X, better.centres)
    return _as_split(labels, better.inertia, worse.inertia)


def _as_split(labels: IntArray, better: float, worse: float) -> _Split:
    found, labels = np.unique(labels, return_inverse=True)  # a cluster may have come out empty
    return _Split(labels.astype(np.intp), len(found), worse <= (1.0 + UNSTABLE_INERTIA) * better)


def _silhouettes(X: Any, labelings: list[IntArray], sample: IntArray) -> FloatArray:
    """Mean silhouette of the sampled rows under each labeling; -1 where there is none."""
    sampled = [labels[sample] for labels in labelings]
    found = np.array([len(np.unique(labels)) for labels in sampled])
    usable = (found >= 2) & (found < len(sample))
    return np.where(usable, kernel.silhouettes(numbers(X[sample]), sampled), -1.0)
