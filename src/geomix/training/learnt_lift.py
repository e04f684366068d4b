"""A Fourier lift that is learnt together with its planes, from the random draw on.

    angles = V (s * Omega),   phi = sqrt(1/D) [cos(angles); sin(angles)],   Z = phi W' + b
    dL/dangles = sqrt(1/D) (cos(angles) (G W_sin) - sin(angles) (G W_cos)),   G = dL/dZ
    dL/dOmega  = s * (V' dL/dangles),    dL/ds_j = sum_d Omega_jd (V' dL/dangles)_jd

``learn_lift="scales"`` learns one scale s_j for each input (log s_j, so that it stays positive): an
anisotropic kernel, with as many new numbers as inputs. ``"frequencies"`` learns all of Omega.
Adam trains lift and planes on part of the training rows; the epoch with the lowest log-loss on the
other part is kept, which may be the first: the lift as it was drawn. The planes are then trained
anew by the usual solver, on all training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.adam import AdamState, adam_start, adam_step, clip_norm
from geomix.core.lifts import FourierLift, short
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import log_softmax, pool
from geomix.training.rows import Rows

# Of the training rows of a fold, the share that stops the learning of the lift.
STOPPING_SHARE = 0.15
# Fewer rows than this cannot spare a part.
FEWEST_ROWS = 200
# A lift is learnt from at most this many rows, drawn at random: the planes see all of them.
MOST_ROWS = 5_000
EPOCHS = 60
BATCH_SIZE = 128
# Weights over features of size sqrt(1/D) are large; frequencies and log scales are near one. The
# rates of the lift were picked on some of the tables of decision 99.
PLANE_RATE = 0.1
LIFT_RATE = {"scales": 0.03, "frequencies": 0.01}
# Epochs without a lower loss before learning ends.
PATIENCE = 10
LARGEST_GRADIENT = 5.0


@dataclass(frozen=True, eq=False)
class LiftTerms:
    """Mean loss of a batch and its gradients."""

    loss: float
    weights: FloatArray
    biases: FloatArray
    frequencies: FloatArray


def lift_terms(
    planes: Planes,
    frequencies: FloatArray,
    sharpness: float,
    V: FloatArray,
    y: IntArray,
    weight: FloatArray,
) -> LiftTerms:
    """Cross-entropy of a batch, and its gradient by planes and frequencies."""
    n_frequencies = frequencies.shape[1]
    Phi = kernel.fourier_features(V, frequencies)
    S, A = pool(planes.scores(Phi), planes.class_start, sharpness)
    rows, share = np.arange(len(y)), weight / weight.sum()
    log_p = log_softmax(S)
    loss = float(-(share @ log_p[rows, y]))
    residual = np.exp(log_p)
    residual[rows, y] -= 1.0
    residual *= share[:, None]
    G = np.repeat(residual, planes.per_class, axis=1) * A
    by_cos = G @ planes.weights[:, :n_frequencies]
    by_sin = G @ planes.weights[:, n_frequencies:]
    # cos and sin times sqrt(1/D), which is the factor of the derivative too.
    by_angle = Phi[:, :n_frequencies] * by_sin - Phi[:, n_frequencies:] * by_cos
    return LiftTerms(loss, G.T @ Phi, G.sum(axis=0), V.T @ by_angle)


@dataclass(frozen=True, eq=False)
class _Learning:
    """Lift and planes as one vector: weights, biases, then log scales or frequencies.

    start : (n_inputs, n_frequencies) as drawn;  kind : what is learnt of the lift.
    """

    start: FloatArray
    n_classes: int
    sharpness: float
    l2: float
    kind: str

    @property
    def n_plane_numbers(self) -> int:
        return self.n_classes * (2 * self.start.shape[1] + 1)

    def first(self) -> FloatArray:
        """Planes of zeros over the lift as drawn."""
        of_lift = np.zeros(len(self.start)) if self.kind == "scales" else self.start.ravel()
        return np.concatenate([np.zeros(self.n_plane_numbers), of_lift])

    def rates(self) -> FloatArray:
        of_lift = np.full(len(self.first()) - self.n_plane_numbers, LIFT_RATE[self.kind])
        return np.concatenate([np.full(self.n_plane_numbers, PLANE_RATE), of_lift])

    def read(self, vector: FloatArray) -> tuple[Planes, FloatArray]:
        """One plane per class, and the frequencies."""
        width = 2 * self.start.shape[1]
        weights, biases, of_lift = np.split(vector, [self.n_classes * width, self.n_plane_numbers])
        class_start = class_starts(np.ones(self.n_classes, dtype=np.intp))
        planes = Planes(weights.reshape(self.n_classes, width), biases, class_start)
        if self.kind == "scales":
            return planes, np.exp(of_lift)[:, None] * self.start
        return planes, of_lift.reshape(self.start.shape)

    def loss(self, vector: FloatArray, rows: Rows) -> float:
        return lift_terms(*self.read(vector), self.sharpness, rows.X, rows.y, rows.weight).loss

    def gradient(self, vector: FloatArray, rows: Rows) -> FloatArray:
        planes, frequencies = self.read(vector)
        terms = lift_terms(planes, frequencies, self.sharpness, rows.X, rows.y, rows.weight)
        by_weight = terms.weights + 2.0 * self.l2 * planes.weights
        by_lift = terms.frequencies
        if self.kind == "scales":  # d/d log s_j
            by_lift = (frequencies * terms.frequencies).sum(axis=1)
        return np.concatenate([by_weight.ravel(), terms.biases, by_lift.ravel()])


def learnt_lift(
    lift: FourierLift,
    rows: Rows,
    n_classes: int,
    sharpness: float,
    l2: float,
    kind: str,
    rng: np.random.Generator,
) -> FourierLift:
    """The lift with the frequencies of the best epoch; rows : standardised training rows."""
    if len(rows) < FEWEST_ROWS or lift.frequencies.shape[0] == 0:
        return lift
    order = rng.permutation(len(rows))[:MOST_ROWS]
    n_stop = round(STOPPING_SHARE * len(order))
    stop, train = rows.take(np.sort(order[:n_stop])), rows.take(np.sort(order[n_stop:]))
    learning = _Learning(lift.frequencies, n_classes, sharpness, l2, kind)
    vector, rates = learning.first(), learning.rates()
    state = adam_start(len(vector))
    best, best_loss, since = lift.frequencies, np.inf, 0
    for epoch in range(EPOCHS):
        falling = 0.5 * (1.0 + np.cos(np.pi * epoch / EPOCHS))
        state, vector = _epoch(learning, state, vector, rates * falling, train, rng)
        loss = learning.loss(vector, stop)
        since += 1
        if loss < best_loss:
            # The first epoch has hardly moved: where it is the best one, the lift was good.
            found = learning.read(vector)[1] if epoch else lift.frequencies
            best, best_loss, since = found, loss, 0
        if since >= PATIENCE:
            break
    return replace(lift, frequencies=short(np.ascontiguousarray(best)))


def _epoch(
    learning: _Learning,
    state: AdamState,
    vector: FloatArray,
    rates: FloatArray,
    train: Rows,
    rng: np.random.Generator,
) -> tuple[AdamState, FloatArray]:
    """One pass of Adam over the rows, in random batches."""
    n_batches = -(-len(train) // BATCH_SIZE)
    for batch in np.array_split(rng.permutation(len(train)), n_batches):
        gradient = learning.gradient(vector, train.take(np.sort(batch)))
        state, vector = adam_step(state, vector, clip_norm(gradient, LARGEST_GRADIENT), rates)
    return state, vector
