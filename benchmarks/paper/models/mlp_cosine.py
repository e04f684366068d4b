"""Perceptron with the paper's schedule: layers (64, 32), ReLU, Xavier start, Adam at 0.001 that
falls along a cosine, batches of 128, weight decay 1e-4, 100 epochs with early stopping.

scikit-learn has no cosine schedule, so the network is written out in NumPy. The validation rows
stop it and set the temperature; like the other rivals it is then trained once more on train and
validation, for as many epochs of the same schedule. On iris an epoch is one step, so that the
schedule ends long before the network has converged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from timing import now, since

from geomix.core.adam import adam_start, adam_step
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.pooling import log_softmax, softmax
from paper.data import Split
from paper.models import Fitted, OneRow, Score

NAME, PAPER = "MLP, cosine", None
NEEDS, PACKAGES = ("numpy",), ("numpy", "scikit-learn")
LAYERS, EPOCHS, BATCH, RATE, DECAY, PATIENCE = (64, 32), 100, 128, 1e-3, 1e-4, 12


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and biases of each layer, behind a scaler."""

    scaler: Any
    shapes: tuple[tuple[int, int], ...]
    vector: Any

    def layers(self) -> list[tuple[Any, Any]]:
        found, at = [], 0
        for n_in, n_out in self.shapes:
            W = self.vector[at : at + n_in * n_out].reshape(n_in, n_out)
            at += n_in * n_out
            found.append((W, self.vector[at : at + n_out]))
            at += n_out
        return found

    def scores(self, X: Any) -> Any:
        return forward(self.layers(), self.scaler.transform(X))[-1]


def forward(layers: list[tuple[Any, Any]], X: Any) -> list[Any]:
    """The input and the output of every layer; the last one is linear."""
    outputs = [X]
    for place, (W, b) in enumerate(layers):
        Z = outputs[-1] @ W + b
        outputs.append(Z if place == len(layers) - 1 else np.maximum(Z, 0.0))
    return outputs


def gradient(layers: list[tuple[Any, Any]], X: Any, y: Any) -> Any:
    """Of the mean cross-entropy plus half of DECAY times the squared weights."""
    outputs = forward(layers, X)
    error = softmax(outputs[-1])
    error[np.arange(len(y)), y] -= 1.0
    error /= len(y)
    parts: list[Any] = []
    for place in range(len(layers) - 1, -1, -1):
        W, _ = layers[place]
        parts[:0] = [(outputs[place].T @ error + DECAY * W).ravel(), error.sum(axis=0)]
        if place:
            error = (error @ W.T) * (outputs[place] > 0.0)
    return np.concatenate(parts)


def trained(
    X: Any, y: Any, n_classes: int, seed: int, n_epochs: int, valid: Any = None
) -> tuple[Network, int]:
    """After ``n_epochs``; with validation rows, the epoch that did best on them, and its number."""
    rng = np.random.default_rng(seed)
    scaler = StandardScaler().fit(X)
    Z, sizes = scaler.transform(X), (X.shape[1], *LAYERS, n_classes)
    shapes = tuple(pairwise(sizes))
    vector = np.concatenate([one for shape in shapes for one in first_layer(*shape, rng)])
    network, state = Network(scaler, shapes, vector), adam_start(len(vector))
    best = np.inf, network, 0
    for epoch in range(n_epochs):
        rate = RATE * 0.5 * (1.0 + math.cos(math.pi * epoch / EPOCHS))
        for batch in np.array_split(rng.permutation(len(y)), max(round(len(y) / BATCH), 1)):
            slope = gradient(network.layers(), Z[batch], y[batch])
            state, vector = adam_step(state, network.vector, slope, rate)
            network = Network(scaler, shapes, vector)
        if valid is None:
            best = 0.0, network, epoch + 1
            continue
        loss = -log_softmax(network.scores(valid[0]))[np.arange(len(valid[1])), valid[1]].mean()
        if loss < best[0]:
            best = loss, network, epoch + 1
        elif epoch + 1 - best[2] >= PATIENCE:
            break
    return best[1], best[2]


def first_layer(n_in: int, n_out: int, rng: np.random.Generator) -> tuple[Any, Any]:
    reach = math.sqrt(6.0 / (n_in + n_out))
    return rng.uniform(-reach, reach, n_in * n_out), np.zeros(n_out)


def fit(split: Split, seed: int) -> Fitted:
    start, n_classes = now(), int(split.y_learn.max()) + 1
    rest = n_classes, seed
    stopped, n_epochs = trained(
        split.X_train, split.y_train, *rest, EPOCHS, (split.X_valid, split.y_valid)
    )
    S = stopped.scores(split.X_valid)
    temperature = fit_temperature(S, split.y_valid, None, PRIOR_SCALE)
    start_of_fit = now()
    final, _ = trained(split.X_learn, split.y_learn, *rest, n_epochs)
    fit, total = since(start_of_fit), since(start)
    return Fitted(
        predict=lambda X: final.scores(X).argmax(axis=1),
        before=lambda X: softmax(final.scores(X)),
        after=lambda X: softmax(final.scores(X) / temperature),
        paths={"pipeline.predict_proba": OneRow(lambda X: softmax(final.scores(X)))},
        fit=fit,
        total=total,
        chosen=f"epochs={n_epochs}",
        on_train=Score(
            lambda X: stopped.scores(X).argmax(axis=1),
            lambda X: softmax(stopped.scores(X) / temperature),
        ),
    )
