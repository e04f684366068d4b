"""Processor time of one step of learning a Fourier lift, and of its parts.

    python benchmarks/future/lift_steps.py                       # with the native kernel
    GEOMIX_KERNEL=numpy python benchmarks/future/lift_steps.py

Median of 300 steps with batches of 128 rows, in microseconds: loss and gradients together, features
alone, matrix products alone, Adam's step alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from runs import table

from geomix.core import kernel
from geomix.core.adam import adam_start, adam_step, clip_norm
from geomix.core.planes import Planes, class_starts
from geomix.training.learnt_lift import BATCH_SIZE, lift_terms

# Inputs, classes, frequencies.
SIZES = ((16, 26, 64), (36, 6, 64), (5, 2, 64), (16, 26, 256), (64, 10, 256))
REPEATS = 300


def microseconds(work: Callable[[], object]) -> float:
    found = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        work()
        found.append(time.process_time_ns() - began)
    return float(np.median(found)) / 1e3


def parts(n_inputs: int, n_classes: int, n_frequencies: int) -> list[float]:
    rng = np.random.default_rng(0)
    V = rng.standard_normal((BATCH_SIZE, n_inputs))
    y, weight = rng.integers(0, n_classes, BATCH_SIZE), np.ones(BATCH_SIZE)
    frequencies = rng.standard_normal((n_inputs, n_frequencies))
    W = rng.standard_normal((n_classes, 2 * n_frequencies))
    class_start = class_starts(np.ones(n_classes, dtype=np.intp))
    planes = Planes(W, np.zeros(n_classes), class_start)
    Phi = kernel.fourier_features(V, frequencies)
    by_angle, G = Phi[:, :n_frequencies], Phi[:, :n_classes]
    vector = np.ones(W.size + n_classes + frequencies.size)
    state, rates = adam_start(len(vector)), np.full(len(vector), 0.01)
    return [
        microseconds(lambda: lift_terms(planes, frequencies, 6.0, V, y, weight)),
        microseconds(lambda: kernel.fourier_features(V, frequencies)),
        microseconds(lambda: (Phi @ W.T, G @ W, G.T @ Phi, V.T @ by_angle)),
        microseconds(lambda: adam_step(state, vector, clip_norm(vector, 5.0), rates)),
    ]


def main() -> None:
    header = ["inputs, classes, frequencies", "loss and gradients", "features", "products", "Adam"]
    body = [
        [", ".join(map(str, size)), *(f"{value:.0f}" for value in parts(*size))] for size in SIZES
    ]
    print(f"Native kernel: {kernel.is_native}.", "", *table(header, body), sep="\n")


if __name__ == "__main__":
    main()
