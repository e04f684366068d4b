"""Soft labels from several sources, weighed by how well they predict labels that were held out.

    log p_c = sum_s weight_s log q_sc - normaliser,    weight_s >= 0

q_s are probabilities of a source s: the supervised model, or the labels that spread along a graph.
The weights minimise the log-loss on labelled rows, each predicted without its own label. A weight
of zero leaves a source out; a sum below one makes the soft labels less certain.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from geomix.arrays import FloatArray, IntArray
from geomix.core.pooling import log_softmax

# Probabilities below this are not told apart: a source that is certain and wrong costs at most
# 6.9 nats, so that one row cannot decide.
FLOOR = 1e-3


def stacked(sources: list[FloatArray], weights: FloatArray) -> FloatArray:
    """Probabilities, (n_rows, n_classes), from those of each source."""
    return np.asarray(np.exp(_log_probabilities(_logs(sources), weights)))


def source_weights(sources: list[FloatArray], codes: IntArray) -> FloatArray:
    """(n_sources,) weights that minimise the log-loss of ``codes``."""
    logs = _logs(sources)
    picked = logs[:, np.arange(len(codes)), codes]

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        log_p = _log_probabilities(logs, weights)
        value = -log_p[np.arange(len(codes)), codes].mean()
        expected = (np.exp(log_p)[None] * logs).sum(axis=2)
        return float(value), (expected - picked).mean(axis=1)

    start = np.full(len(sources), 1.0 / len(sources))
    bounds = [(0.0, None)] * len(sources)
    return np.asarray(minimize(loss, start, jac=True, bounds=bounds).x)


def row_losses(P: FloatArray, codes: IntArray) -> FloatArray:
    """-log p of the true class, row by row."""
    return -np.log(np.maximum(P[np.arange(len(codes)), codes], FLOOR))


def _logs(sources: list[FloatArray]) -> FloatArray:
    return np.log(np.maximum(np.array(sources), FLOOR))


def _log_probabilities(logs: FloatArray, weights: FloatArray) -> FloatArray:
    return log_softmax(np.tensordot(weights, logs, axes=1))
