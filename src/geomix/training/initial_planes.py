"""The first planes: k-means centres, one-vs-rest logistic directions, or random.

    kmeans    z_cm = s (mu_cm . phi - ||mu_cm||^2 / 2): nearest centre, with the scale s that
              fits the labels best
    logistic  every plane of class c is the direction of c against the rest, plus noise
    random    Gaussian weights of variance 1 / n_inputs

    split     the one trained plane of each class, moved a little towards the centre of the
              residuals in each of its clusters (``split_planes``)
    flat      zero weights: one plane per class has one optimum (``flat_planes``)

Biases start at the log share of each class (the logistic ones are learnt), minus log(M_c) / k: the
soft-OR of M_c equal scores is higher by that. ``auto`` is k-means, or logistic where two runs of
k-means differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix
from geomix.core import kernel
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import softmax
from geomix.core.spline import Binned
from geomix.table.row_views import blocks, is_dense, pick
from geomix.training.plane_counts import Clusters
from geomix.training.rows import Rows

ROWS_FOR_SCALE = 2000
SCALES = np.geomspace(0.1, 300.0, 9)
LOGISTIC_NOISE = 0.2
APART = 0.3
LEAST_RESIDUAL = 1e-3  # a cluster of perfect rows keeps a centre
APART_NOISE = 0.01
LOGISTIC_ITERATIONS = 100  # a first guess need not have converged


def initial_planes(
    rows: Rows,
    clusters: Clusters,
    init: str,
    sharpness: float,
    label_smoothing: float,
    rng: np.random.Generator,
    *,
    smooth_scale: bool = False,
) -> tuple[Planes, str]:
    """First planes over the working features ``rows.X``, and the method that made them.

    smooth_scale : choose the scale of k-means planes by the loss with smoothed labels. Plain loss
    has no smallest value on rows that separate, so the largest scale would win. L-BFGS leaves any
    scale; Adam moves a weight by its learning rate, and would stay there.
    """
    if init == "auto":
        init = "logistic" if clusters.unstable else "kmeans"
    if rows.X.shape[1] == 0:  # no column, so no direction either: biases are all there is
        init = "random"
    if init == "kmeans":
        smoothing = label_smoothing if smooth_scale else 0.0
        planes = _from_centres(rows, clusters, sharpness, smoothing, rng)
    else:
        make = {"logistic": _from_logistic, "random": _from_noise}[init]
        planes = make(rows, clusters, sharpness, rng)
    head_start = np.log(planes.per_class) / sharpness
    prior = 0.0 if init == "logistic" else _log_prior(rows, planes.n_classes, label_smoothing)
    return planes.with_class_bias(prior - head_start), init


def flat_planes(rows: Rows, n_classes: int, label_smoothing: float) -> Planes:
    """One plane per class with zero weights."""
    weights, biases = np.zeros((n_classes, rows.X.shape[1])), np.zeros(n_classes)
    planes = Planes(weights, biases, class_starts(np.ones(n_classes, dtype=np.intp)))
    return planes.with_class_bias(_log_prior(rows, n_classes, label_smoothing))


def split_planes(
    whole: Planes, rows: Rows, clusters: Clusters, sharpness: float, rng: np.random.Generator
) -> Planes:
    """Several planes per class from ``whole``, which has one.

    Rows count by 1 - p(own class): a plane moves to where the one plane fails.
    """
    class_start = class_starts(clusters.planes_per_class)
    n_planes = int(class_start[-1])
    plane = class_start[rows.y] + clusters.plane_of_row
    class_of = np.repeat(np.arange(whole.n_classes), clusters.planes_per_class)
    weight = rows.weight * _residuals(whole, rows, sharpness)
    mass = np.bincount(plane, weight, n_planes).astype(np.float64)
    centres = _weighted_centres(rows.X, plane, weight, mass)
    starts = class_start[:-1]
    in_class = np.maximum(np.add.reduceat(mass, starts), np.finfo(float).tiny)
    middles = np.add.reduceat(mass[:, None] * centres, starts, axis=0) / in_class[:, None]
    # A cluster without rows has no centre: its plane starts as the one of the class.
    apart = np.where(mass[:, None] > 0.0, APART * (centres - middles[class_of]), 0.0)
    noise = APART_NOISE * _noise(rows.y, class_start, whole.n_inputs, rng)
    planes = Planes(whole.weights[class_of] + apart + noise, whole.biases[class_of], class_start)
    return planes.with_class_bias(-np.log(planes.per_class) / sharpness)


def _residuals(planes: Planes, rows: Rows, sharpness: float) -> FloatArray:
    """(n,) 1 - p of each row's own class, at least ``LEAST_RESIDUAL``."""
    P = softmax(rows.prepared.class_scores(planes, sharpness))
    own: FloatArray = P[np.arange(len(rows.y)), rows.y]
    return np.maximum(1.0 - own, LEAST_RESIDUAL)


def _log_prior(rows: Rows, n_classes: int, label_smoothing: float) -> FloatArray:
    """Log share of each class after label smoothing; a class without rows counts as rare."""
    share = np.bincount(rows.y, rows.weight, n_classes) / rows.weight.sum()
    smoothed = (1.0 - label_smoothing) * share + label_smoothing / n_classes
    return np.log(np.maximum(smoothed, 1e-12))


def _from_centres(
    rows: Rows,
    clusters: Clusters,
    sharpness: float,
    label_smoothing: float,
    rng: np.random.Generator,
) -> Planes:
    class_start = class_starts(clusters.planes_per_class)
    plane = class_start[rows.y] + clusters.plane_of_row
    mass = np.bincount(plane, rows.weight, int(class_start[-1])).astype(np.float64)
    centres = _weighted_centres(rows.X, plane, rows.weight, mass)
    overall = (mass / mass.sum()) @ centres
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
    losses = [_loss(sample, planes, sharpness, label_smoothing) for planes in scaled]
    return scaled[int(np.argmin(losses))]


def _loss(rows: Rows, planes: Planes, sharpness: float, label_smoothing: float) -> float:
    if label_smoothing == 0.0:
        return rows.prepared.cross_entropy(planes, sharpness)
    return rows.prepared.terms(planes, sharpness, label_smoothing).mean_loss


def _weighted_centres(
    X: Matrix, group: IntArray, weight: FloatArray, mass: FloatArray
) -> FloatArray:
    """Weighted mean of the rows of each group, whose weights sum to ``mass``: (n_groups,
    n_columns), zero where a group has no row."""
    if isinstance(X, Binned):
        share = weight / np.where(mass > 0.0, mass, 1.0)[group]
        return X.group_sums(group, share, len(mass))
    centres = np.zeros((len(mass), X.shape[1]))
    for index in np.unique(group):
        members = np.flatnonzero(group == index)
        centres[index] = _weighted_mean(pick(X, members), weight[members])
    return centres


def _weighted_mean(X: Any, weight: FloatArray) -> FloatArray:
    share = weight / weight.sum()
    if not is_dense(X):
        return share @ X
    mean: FloatArray = sum(share[rows] @ block for rows, block in blocks(X))
    return mean


def _from_logistic(
    rows: Rows, clusters: Clusters, sharpness: float, rng: np.random.Generator
) -> Planes:
    n_classes = len(clusters.planes_per_class)
    directions = np.zeros((n_classes, rows.X.shape[1]))
    offsets = np.zeros(n_classes)
    for code in np.unique(rows.y):
        directions[code], offsets[code] = _against_the_rest(rows, int(code))
    class_start = class_starts(clusters.planes_per_class)
    class_of = np.repeat(np.arange(n_classes), clusters.planes_per_class)
    weights = directions[class_of]
    size = np.sqrt((weights**2).mean(axis=1, keepdims=True)) + 1e-3
    weights = weights + LOGISTIC_NOISE * size * _noise(rows.y, class_start, weights.shape[1], rng)
    return Planes(weights, offsets[class_of], class_start)


def _against_the_rest(rows: Rows, code: int) -> tuple[FloatArray, float]:
    """Weights and bias of a logistic regression of one class against all others, with C = 1.

    It is a model of two classes with one plane each; the planes come out opposite, so that
    l2 = 1 / n_rows on both is the penalty of C = 1 on their difference.
    """
    start = Planes(np.zeros((2, rows.X.shape[1])), np.zeros(2), class_starts([1, 1]))
    own = (rows.y == code).astype(np.intp)
    two_sided = kernel.training_rows(rows.X, own, rows.weight)
    descent = kernel.Descent(
        start,
        sharpness=1.0,
        label_smoothing=0.0,
        coefficients=np.full(2, 1.0 / len(rows)),
        max_iter=LOGISTIC_ITERATIONS,
        tol=1e-4,
        value_tol=1e-6,
    )
    found = kernel.minimize(two_sided, descent).planes
    return found.weights[1] - found.weights[0], float(found.biases[1] - found.biases[0])


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

    Drawn class by class in the order in which the classes appear in the rows. The order of the
    rows is canonical, so renaming the classes changes nothing.
    """
    noise = np.zeros((int(class_start[-1]), n_inputs))
    found, first = np.unique(y, return_index=True)
    for code in found[np.argsort(first)]:
        planes = slice(class_start[code], class_start[code + 1])
        noise[planes] = rng.standard_normal(noise[planes].shape)
    return noise
