"""The training objective: smoothed cross-entropy plus usage-aware L2.

    t_ic     = (1 - eps) 1{y_i = c} + eps / C
    loss     = - sum_i w_i sum_c t_ic log p_c(x_i) / sum_i w_i
    lambda_p = l2 (1 + beta / (u_p + delta)),    u_p = weighted mean responsibility of plane p
    value    = loss + sum_p lambda_p ||w_p||^2   (biases are not penalised)
               - shrink_to_mean sum_c Lambda_c ||mu_c||^2,   mu_c = sum_p lambda_p w_p / Lambda_c

Where the paper gives two versions, ours is: the penalty is lambda ||w||^2, so its gradient is
2 lambda w; cross-entropy is a weighted mean; usage is averaged over all rows and is a constant for
the gradient. An idle plane has a *stronger* penalty, which shrinks and so prunes it.

The penalty splits into one on a class's mean plane mu_c and one on the deviations from it;
``shrink_to_mean`` reduces the first by that share (0: the paper's objective).

Loss, gradients and usage are sums over rows (``BatchTerms``), so they add: a mini-batch, a
thread's share and a partition on another machine are the same code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix
from geomix.core.planes import Planes
from geomix.core.pooling import pool


@dataclass(frozen=True, eq=False)
class BatchTerms:
    """Weighted row sums of a batch; ``a + b`` is the batch of both."""

    row_weight: float
    loss: float
    weights_gradient: FloatArray
    biases_gradient: FloatArray
    usage: FloatArray

    def __add__(self, other: BatchTerms) -> BatchTerms:
        return BatchTerms(
            self.row_weight + other.row_weight,
            self.loss + other.loss,
            self.weights_gradient + other.weights_gradient,
            self.biases_gradient + other.biases_gradient,
            self.usage + other.usage,
        )

    @property
    def mean_loss(self) -> float:
        return self.loss / self.row_weight

    @property
    def mean_usage(self) -> FloatArray:
        return self.usage / self.row_weight


def batch_terms(
    planes: Planes,
    sharpness: float,
    Phi: Matrix,
    y: IntArray,
    row_weight: FloatArray,
    label_smoothing: float,
) -> BatchTerms:
    """Loss, gradients and usage of the rows ``Phi`` with class codes ``y``, as weighted sums."""
    Z = planes.scores(Phi)
    S, A = pool(Z, planes.class_start, sharpness)
    rows = np.arange(len(y))
    shifted = S - S.max(axis=1, keepdims=True)
    P = np.exp(shifted)
    total = P.sum(axis=1, keepdims=True)
    P /= total
    # -sum_c t_c log p_c = log(sum_c exp s_c) - sum_c t_c s_c, because the targets sum to one.
    expected = (1.0 - label_smoothing) * shifted[rows, y] + label_smoothing * shifted.mean(axis=1)
    loss = float(row_weight @ (np.log(total[:, 0]) - expected))
    # dL/ds = p - t, and dL/dz = (dL/ds) a.
    P -= label_smoothing / planes.n_classes
    P[rows, y] -= 1.0 - label_smoothing
    P *= row_weight[:, None]
    G = np.repeat(P, planes.per_class, axis=1) * A
    return BatchTerms(float(row_weight.sum()), loss, G.T @ Phi, G.sum(axis=0), row_weight @ A)


def cross_entropy(
    planes: Planes, sharpness: float, Phi: Matrix, y: IntArray, row_weight: FloatArray
) -> float:
    """Weighted mean cross-entropy against the plain labels: what validation measures."""
    S, _ = pool(planes.scores(Phi), planes.class_start, sharpness)
    shifted = S - S.max(axis=1, keepdims=True)
    per_row = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y]
    return float(row_weight @ per_row / row_weight.sum())


def usage_penalty(mean_usage: FloatArray, l2: float, beta: float, delta: float) -> FloatArray:
    """lambda_p = l2 (1 + beta / (u_p + delta)): one coefficient per plane."""
    coefficients: FloatArray = l2 * (1.0 + beta / (mean_usage + delta))
    return coefficients


def penalised(
    terms: BatchTerms, planes: Planes, coefficients: FloatArray, shrink_to_mean: float = 0.0
) -> tuple[float, FloatArray]:
    """Value of the objective and its gradient as one flat array (see ``Planes.as_vector``)."""
    squared_norms = (planes.weights**2).sum(axis=1)
    value = terms.mean_loss + float(coefficients @ squared_norms)
    pulled = planes.weights
    if shrink_to_mean:
        means, total = _class_means(planes, coefficients)
        value -= shrink_to_mean * float(total @ (means**2).sum(axis=1))
        pulled = planes.weights - shrink_to_mean * means[planes.class_of]
    weights_gradient = terms.weights_gradient / terms.row_weight
    weights_gradient += 2.0 * coefficients[:, None] * pulled
    biases_gradient = terms.biases_gradient / terms.row_weight
    return value, np.concatenate([weights_gradient.ravel(), biases_gradient])


def _class_means(planes: Planes, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """mu_c, the mean of a class's planes weighted by lambda, and Lambda_c, the sum of those."""
    starts = planes.class_start[:-1]
    total = np.add.reduceat(coefficients, starts)
    sums = np.add.reduceat(coefficients[:, None] * planes.weights, starts, axis=0)
    return sums / np.where(total > 0.0, total, 1.0)[:, None], total
