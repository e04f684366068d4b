"""Random planes and rows of random shape, for tests that must hold for all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from geomix.core.planes import Planes, class_starts

planes_per_class = st.lists(st.integers(1, 5), min_size=2, max_size=6)
sharpness = st.floats(1e-3, 1e3)
seeds = st.integers(0, 2**32 - 1)


def random_planes(rng, per_class, n_inputs, size=1.0):
    start = class_starts(per_class)
    weights = size * rng.standard_normal((start[-1], n_inputs))
    return Planes(weights, size * rng.standard_normal(start[-1]), start)


def random_rows(rng, n_rows, n_inputs, n_classes):
    """Phi, y and row weights between 0.1 and 2."""
    Phi = rng.standard_normal((n_rows, n_inputs))
    return Phi, rng.integers(0, n_classes, n_rows), rng.uniform(0.1, 2.0, n_rows)


def central_differences(function, vector, step=1e-6):
    """Gradient of a scalar function by central differences, entry by entry."""
    gradient = np.empty_like(vector)
    for i in range(len(vector)):
        moved = vector.copy()
        moved[i] += step
        above = function(moved)
        moved[i] -= 2 * step
        gradient[i] = (above - function(moved)) / (2 * step)
    return gradient
