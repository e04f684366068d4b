"""The first planes: k-means centres, one-vs-rest logistic directions, or random.

    kmeans    z_cm = s (mu_cm . phi - ||mu_cm||^2 / 2): nearest centre, with the scale s that
              fits the labels best
    logistic  every plane of class c is the direction of c against the rest, plus noise
    random    Gaussian weights of variance 1 / n_inputs

Biases start at the log share of each class (the logistic ones have learnt theirs).
Soft-OR is a sum, so a class with more planes would start log(M_c) / k ahead; every first bias
gives that back. ``auto`` is k-means, or logistic where clustering was unstable.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from geomix import kernel
from geomix.arrays import CenteredSparse, FloatArray, IntArray, Matrix
from geomix.budget import Clusters
from geomix.planes import Planes, class_starts
from geomix.rows import Rows

ROWS_FOR_SCALE = 2000
SCALES = np.geomspace(0.1, 300.0, 9)
LOGISTIC_NOISE = 0.2


def initial_planes(
    rows: Rows,
    clusters: Clusters,
    init: str,
    sharpness: float,
    label_smoothing: float,
    rng: np.random.Generator,
) -> tuple[Planes, str]:
    """First planes over the working features ``rows.X``, and the method that made them."""
    if init == "auto":
        init = "logistic" if clusters.unstable else "kmeans"
    if rows.X.shape[1] == 0:  # no column, so no direction either: biases are all there is
        init = "random"
    make = {"kmeans": _from_centres, "logistic": _from_logistic, "random": _from_noise}[init]
    planes = make(rows, clusters, sharpness, rng)
    head_start = np.log(planes.per_class) / sharpness
    prior = 0.0 if init == "logistic" else _log_prior(rows, planes.n_classes, label_smoothing)
    return planes.with_class_bias(prior - head_start), init


def _log_prior(rows: Rows, n_classes: int, label_smoothing: float) -> FloatArray:
    """Log share of each class after label smoothing; a class without rows counts as rare."""
    share = np.bincount(rows.y, rows.weight, n_classes) / rows.weight.sum()
    smoothed = (1.0 - label_smoothing) * share + label_smoothing / n_classes
    return np.log(np.maximum(smoothed, 1e-12))


def _from_centres(
    rows: Rows, clusters: Clusters, sharpness: float, rng: np.random.Generator
) -> Planes:
    class_start = class_starts(clusters.planes_per_class)
    plane = class_start[rows.y] + clusters.plane_of_row
    centres = _weighted_centres(rows.X, plane, rows.weight, int(class_start[-1]))
    overall = (rows.weight / rows.weight.sum()) @ rows.X
    biases = -0.5 * (centres**2).sum(axis=1)
    spread = float(((centres - overall) ** 2).sum(axis=1).mean())
    if spread == 0.0:
        return Planes(np.zeros_like(centres), np.zeros_like(biases), class_start)
    sample = rows
    if len(rows) > ROWS_FOR_SCALE:
        sample = rows.take(np.sort(rng.choice(len(rows), ROWS_FOR_SCALE, replace=False)))
    scaled = [
        Planes(centres * (scale / spread), biases * (scale / spread), class_start)
        for scale in SCALES
    ]
    losses = [
        kernel.cross_entropy(planes, sharpness, sample.X, sample.y, sample.weight)
        for planes in scaled
    ]
    return scaled[int(np.argmin(losses))]


def _weighted_centres(X: Matrix, group: IntArray, weight: FloatArray, n_groups: int) -> FloatArray:
    """Weighted mean of the rows of each group, (n_groups, n_columns)."""
    centres = np.zeros((n_groups, X.shape[1]))
    for index in np.unique(group):
        members = np.flatnonzero(group == index)
        centres[index] = (weight[members] / weight[members].sum()) @ X[members]
    return centres


def _from_logistic(
    rows: Rows, clusters: Clusters, sharpness: float, rng: np.random.Generator
) -> Planes:
    sparse = isinstance(rows.X, CenteredSparse)
    X = rows.X.csr if sparse else rows.X
    n_classes = len(clusters.planes_per_class)
    directions = np.zeros((n_classes, rows.X.shape[1]))
    offsets = np.zeros(n_classes)
    # C weighs the rows against the penalty: without this, the unit of the weights would matter.
    weight = rows.weight * (len(rows) / rows.weight.sum())
    for code in np.unique(rows.y):
        logistic = LogisticRegression(C=1.0, max_iter=100)
        with warnings.catch_warnings():  # a first guess need not have converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            logistic.fit(X, rows.y == code, sample_weight=weight)
        directions[code] = logistic.coef_[0]
        offsets[code] = logistic.intercept_[0]
        if sparse:
            offsets[code] += directions[code] @ rows.X.shift
    class_start = class_starts(clusters.planes_per_class)
    class_of = np.repeat(np.arange(n_classes), clusters.planes_per_class)
    weights = directions[class_of]
    size = np.sqrt((weights**2).mean(axis=1, keepdims=True)) + 1e-3
    weights = weights + LOGISTIC_NOISE * size * _noise(rows.y, class_start, weights.shape[1], rng)
    return Planes(weights, offsets[class_of], class_start)


def _from_noise(
    rows: Rows, clusters: Clusters, sharpness: float, rng: np.random.Generator
) -> Planes:
    class_start = class_starts(clusters.planes_per_class)
    n_inputs = rows.X.shape[1]
    weights = _noise(rows.y, class_start, n_inputs, rng) / np.sqrt(max(n_inputs, 1))
    return Planes(weights, np.zeros(len(weights)), class_start)


def _noise(
    y: IntArray, class_start: IntArray, n_inputs: int, rng: np.random.Generator
) -> FloatArray:
    """Gaussian numbers for every plane, (n_planes, n_inputs).

    Drawn class by class in the order in which the classes come up in the rows, which have an
    order of their own: so renaming the classes changes nothing.
    """
    noise = np.zeros((int(class_start[-1]), n_inputs))
    found, first = np.unique(y, return_index=True)
    for code in found[np.argsort(first)]:
        planes = slice(class_start[code], class_start[code + 1])
        noise[planes] = rng.standard_normal(noise[planes].shape)
    return noise
