"""The silhouettes that rows without clusters reach: a reference for the number of planes.

k-means cuts one Gaussian as well, and the cut has a silhouette: 0.6 in one dimension, 0.35 in two,
more for a longer Gaussian. So the silhouettes s_k of a class are compared with those of reference
rows, drawn from one Gaussian with the mean and the covariance of the class:

    z_k = (s_k - mean of the references) / their standard deviation,   k = 2, 3, ...

A cut into k clusters is convincing if z_k exceeds the largest z of a reference, max_k z_k, by
``DEVIATIONS``: the more cuts are tried, the larger is the best of them by chance.

The reference rows are sums of the class's own centred rows C (n, d) with Gaussian factors,
G C / sqrt(n - 1), G (n, n), so no covariance is computed and singular ones need no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core import clustering, kernel
from geomix.training.random_streams import stream

# With 20 the standard deviation is too uncertain: twice as many Gaussians were split.
N_REFERENCES = 40
# Standard deviations of the references' largest z above its mean: a limit for z_k of 3.5 to 4. The
# classes of wdbc have 4.5, those of moons 9; of 260 Gaussians none exceeds it.
DEVIATIONS = 4.0


def is_convincing(X: Any, counts: Sequence[int], found: FloatArray, seed: int) -> BoolArray:
    """Whether k-means into each of ``counts`` clusters found more than in one Gaussian.

    X : the rows, an array or sparse;  found : (n_counts,) their silhouettes.
    """
    C, rng = _centred(X), stream(seed, "one cluster")
    reached = np.array([_silhouettes(_gaussian(C, rng), counts, rng) for _ in range(N_REFERENCES)])
    mean = reached.mean(axis=0)
    deviation = np.maximum(reached.std(axis=0, ddof=1), np.finfo(float).eps)
    largest = ((reached - mean) / deviation).max(axis=1)
    limit = largest.mean() + DEVIATIONS * largest.std(ddof=1)
    convincing: BoolArray = (found - mean) / deviation > limit
    return convincing


def _centred(X: Any) -> FloatArray:
    """Rows around their mean; wide ones in at most as many coordinates, with equal distances."""
    n_rows, n_columns = X.shape
    if isinstance(X, np.ndarray) and n_columns <= n_rows:
        return X - X.mean(axis=0)
    gram = X @ X.T
    gram = np.asarray(gram if isinstance(gram, np.ndarray) else gram.todense())
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _gaussian(C: FloatArray, rng: np.random.Generator) -> FloatArray:
    """As many rows as ``C``, from one Gaussian with its covariance."""
    n_rows = len(C)
    return rng.standard_normal((n_rows, n_rows)) @ C / np.sqrt(n_rows - 1.0)


def _silhouettes(X: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> FloatArray:
    return kernel.silhouettes(X, [_labels(X, k, rng) for k in counts])


def _labels(X: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """The better of two runs of k-means, as the class itself is split."""
    draws = rng.random((2, n_clusters, clustering.n_trials(n_clusters)))
    runs = [kernel.kmeans(X, np.ones(len(X)), n_clusters, draw) for draw in draws]
    return min(runs, key=lambda run: run.inertia).labels
