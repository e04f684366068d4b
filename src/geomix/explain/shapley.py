"""Shapley values by sampling, for planes that are not sums over columns (Fourier).

The mean row is walked to the row asked about, one raw column after another in a random order; a
column's share is the mean change of the margin at its step. Every order and its reverse are
walked (which halves the noise of what is nearly linear), and the spread between such pairs of
orders gives the standard error that is reported. Shares add up to margin(row) - margin(mean row)
in every order, so they do exactly; each one alone is an estimate.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.contributions import Contributions, plane_scores, raw_column_of, standardised
from geomix.model import GeometricMixture

N_ORDERS = 32


def sampled(
    model: GeometricMixture,
    encoded: FloatArray,
    of: IntArray,
    against: IntArray,
    n_orders: int = N_ORDERS,
    seed: int = 0,
) -> Contributions:
    """Parts of the margin of class ``of`` over class ``against``, with their standard errors."""
    rng = np.random.default_rng(seed)
    U = standardised(model, encoded)
    half = max(n_orders // 2, 2)
    orders: list[IntArray] = [rng.permutation(model.n_features) for _ in range(half)]
    means = np.empty((len(U), model.n_features))
    errors, bias = np.empty_like(means), np.empty(len(U))
    for i, row in enumerate(U):
        pairs, bias[i] = _walks(model, row, int(of[i]), int(against[i]), orders)
        means[i] = pairs.mean(axis=0)
        errors[i] = pairs.std(axis=0, ddof=1) / np.sqrt(half)
    return Contributions(means, bias, np.zeros(len(U)), errors)


def _walks(
    model: GeometricMixture, row: FloatArray, of: int, against: int, orders: list[IntArray]
) -> tuple[FloatArray, float]:
    """Shares by pair of orders, (n_pairs, n_columns), and the margin of the mean row."""
    shares = np.empty((len(orders), 2, model.n_features))
    start = 0.0
    for k, order in enumerate(orders):
        for side, walk in enumerate((order, order[::-1])):
            margins = _margins(model, _steps(model, row, walk), of, against)
            shares[k, side, walk] = np.diff(margins)
            start = float(margins[0])
    return shares.mean(axis=1), start


def _steps(model: GeometricMixture, row: FloatArray, walk: IntArray) -> FloatArray:
    """The mean row, then with the first column of the row, the first two, ... (d + 1, n_kept)."""
    step_of = np.empty(len(walk), dtype=np.intp)
    step_of[walk] = np.arange(1, len(walk) + 1)
    there = np.arange(len(walk) + 1)[:, None] >= step_of[raw_column_of(model)]
    return np.where(there, row, 0.0)


def _margins(model: GeometricMixture, U: FloatArray, of: int, against: int) -> FloatArray:
    S, _ = model.planes.pooled(plane_scores(model, U), model.sharpness)
    margins: FloatArray = (S[:, of] - S[:, against]) / model.temperature
    return margins
