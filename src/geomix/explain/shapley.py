"""Shapley values by sampling, for Fourier planes, which are not sums over columns.

Columns are switched from the mean row to the explained row, one after another in a random order. A
column's contribution is the mean change of the margin when it is switched. Every order is used
forwards and backwards, which halves the noise of nearly linear margins. The spread between such
pairs gives the standard error. Contributions add up to margin(row) - margin(mean row) exactly; each
one alone is an estimate.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.contributions import Contributions, plane_scores, raw_column_of, standardised
from geomix.model import GeometricMixture

N_ORDERS = 32  # standard errors of about a tenth of the largest contribution


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
        pairs, bias[i] = _sampled_shares(model, row, int(of[i]), int(against[i]), orders)
        means[i] = pairs.mean(axis=0)
        errors[i] = pairs.std(axis=0, ddof=1) / np.sqrt(half)
    return Contributions(means, bias, np.zeros(len(U)), errors)


def _sampled_shares(
    model: GeometricMixture, row: FloatArray, of: int, against: int, orders: list[IntArray]
) -> tuple[FloatArray, float]:
    """Shares by pair of orders, (n_pairs, n_columns), and the margin of the mean row."""
    shares = np.empty((len(orders), 2, model.n_features))
    start = 0.0
    for k, order in enumerate(orders):
        for side, switched in enumerate((order, order[::-1])):
            margins = _margins(model, _switched_rows(model, row, switched), of, against)
            shares[k, side, switched] = np.diff(margins)
            start = float(margins[0])
    return shares.mean(axis=1), start


def _switched_rows(model: GeometricMixture, row: FloatArray, order: IntArray) -> FloatArray:
    """The mean row with 0, 1, ..., d columns switched to the row's, (d + 1, n_kept)."""
    step_of = np.empty(len(order), dtype=np.intp)
    step_of[order] = np.arange(1, len(order) + 1)
    is_switched = np.arange(len(order) + 1)[:, None] >= step_of[raw_column_of(model)]
    return np.where(is_switched, row, 0.0)


def _margins(model: GeometricMixture, U: FloatArray, of: int, against: int) -> FloatArray:
    S = model.planes.class_scores(plane_scores(model, U), model.sharpness)
    margins: FloatArray = (S[:, of] - S[:, against]) / model.temperature
    return margins
