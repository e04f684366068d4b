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
from geomix.core.adam import adam_start, adam_step, clip_norm
from geomix.core.lifts import FourierLift, short
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import pool
from geomix.training.rows import Rows

# Of the training rows of a fold, the share that stops the learning of the lift.
STOPPING_SHARE = 0.15
# Fewer rows than this cannot spare a part.
FEWEST_ROWS = 200
EPOCHS = 60
BATCH_SIZE = 128
# Weights over features of size sqrt(1/D) are large; frequencies and log scales are near one. Three
# times the rates of the lift were worse on phoneme and satimage.
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
    angles = V @ frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    size = np.sqrt(1.0 / n_frequencies)
    Phi = size * np.concatenate([cos, sin], axis=1)
    S, A = pool(planes.scores(Phi), planes.class_start, sharpness)
    rows, share = np.arange(len(y)), weight / weight.sum()
    S -= S.max(axis=1, keepdims=True)
    P = np.exp(S)
    total = P.sum(axis=1, keepdims=True)
    P /= total
    loss = float(share @ (np.log(total[:, 0]) - S[rows, y]))
    P[rows, y] -= 1.0
    P *= share[:, None]
    G = np.repeat(P, planes.per_class, axis=1) * A
    by_cos = G @ planes.weights[:, :n_frequencies]
    by_sin = G @ planes.weights[:, n_frequencies:]
    by_angle = size * (cos * by_sin - sin * by_cos)
    return LiftTerms(loss, G.T @ Phi, G.sum(axis=0), V.T @ by_angle)


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
    order = rng.permutation(len(rows))
    n_stop = round(STOPPING_SHARE * len(rows))
    stop, train = rows.take(np.sort(order[:n_stop])), rows.take(np.sort(order[n_stop:]))
    start = lift.frequencies
    n_inputs, D = start.shape
    n_plane_numbers = n_classes * (2 * D + 1)
    n_lift_numbers = n_inputs if kind == "scales" else start.size
    vector = np.zeros(n_plane_numbers + n_lift_numbers)
    if kind == "frequencies":
        vector[n_plane_numbers:] = start.ravel()
    rates = np.full(len(vector), PLANE_RATE)
    rates[n_plane_numbers:] = LIFT_RATE[kind]
    state = adam_start(len(vector))
    best, best_loss, since = start, np.inf, 0
    for epoch in range(EPOCHS):
        falling = 0.5 * (1.0 + np.cos(np.pi * epoch / EPOCHS))
        for batch in np.array_split(rng.permutation(len(train)), -(-len(train) // BATCH_SIZE)):
            planes, frequencies = _read(vector, start, n_classes, kind)
            part = train.take(np.sort(batch))
            terms = lift_terms(planes, frequencies, sharpness, part.X, part.y, part.weight)
            gradient = clip_norm(_flat(terms, planes, frequencies, l2, kind), LARGEST_GRADIENT)
            state, vector = adam_step(state, vector, gradient, rates * falling)
        planes, frequencies = _read(vector, start, n_classes, kind)
        loss = lift_terms(planes, frequencies, sharpness, stop.X, stop.y, stop.weight).loss
        since += 1
        if loss < best_loss:
            # The first epoch has hardly moved: where it is the best one, the lift was good.
            best, best_loss, since = frequencies if epoch else start, loss, 0
        if since >= PATIENCE:
            break
    return replace(lift, frequencies=short(np.ascontiguousarray(best)))


def _read(
    vector: FloatArray, start: FloatArray, n_classes: int, kind: str
) -> tuple[Planes, FloatArray]:
    """One plane per class and the frequencies, from all numbers that are learnt."""
    width = 2 * start.shape[1]
    weights, rest = np.split(vector, [n_classes * width])
    biases, lifted = np.split(rest, [n_classes])
    planes = Planes(
        weights.reshape(n_classes, width), biases, class_starts(np.ones(n_classes, dtype=np.intp))
    )
    if kind == "scales":
        return planes, np.exp(lifted)[:, None] * start
    return planes, lifted.reshape(start.shape)


def _flat(
    terms: LiftTerms, planes: Planes, frequencies: FloatArray, l2: float, kind: str
) -> FloatArray:
    by_weight = terms.weights + 2.0 * l2 * planes.weights
    by_lift = terms.frequencies
    if kind == "scales":  # d/d log s_j
        by_lift = (frequencies * terms.frequencies).sum(axis=1)
    return np.concatenate([by_weight.ravel(), terms.biases, by_lift.ravel()])
