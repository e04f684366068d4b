"""Which pairs of columns interact: a screen on the residuals of an additive model.

One spline plane per class is trained first. With p_ic its probability for row i and class c, and
every column cut into at most ``BINS_PER_COLUMN`` bins, a pair (j, k) has the score

    gain(j, k) - gain(j) - gain(k)
    gain = sum over cells and classes of (G^2 - V) / (H + 1),   G = sum w_i (p_ic - y_ic),
                                                                H = sum w_i p_ic (1 - p_ic),
                                                                V = sum w_i^2 p_ic (1 - p_ic)

with weights of mean one. G^2 / (H + 1) estimates twice the log-likelihood that a Newton step in
the cell would add. Noise alone has E G^2 = V, which is taken off. So the score is what a table
over the pair would add beyond what one-column tables would.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.planes import Planes
from geomix.core.pooling import log_softmax
from geomix.core.spline import Binned
from geomix.training.adaptive_penalty import part_strengths
from geomix.training.rows import Rows

# Pairs of columns, by position.
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"

# Coarse cells are enough to see an interaction, and have rows in them.
BINS_PER_COLUMN = 8
# Pairs of more columns than this would take longer to screen than to train; columns of little
# importance seldom interact.
MOST_COLUMNS = 24
# The screen needs no more rows than this to rank pairs.
MOST_ROWS = 10_000


def strongest_pairs(
    planes: Planes, rows: Rows, n_pairs: int, left_out: Container[int] = ()
) -> Pairs:
    """At most ``n_pairs`` pairs of columns with positive scores, the strongest first.

    planes : one per class, trained on ``rows``, which are binned by a spline lift without pairs.
    left_out : columns that may be in no pair
    """
    X = rows.X
    assert isinstance(X, Binned)
    some = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.intp)
    order = np.argsort(-part_strengths(planes, rows), kind="stable").tolist()
    allowed = [part for part in order if X.lift.column_of[part] not in left_out]
    parts = np.sort(allowed[:MOST_COLUMNS])
    sample = rows.take(some)
    terms = _newton_terms(planes, sample)
    bins = {int(part): _coarse(X.codes[some, part], sample.weight) for part in parts}
    alone = {part: _gain(one, terms) for part, one in bins.items()}
    scores = {
        (j, k): _gain(bins[j] * BINS_PER_COLUMN + bins[k], terms) - alone[j] - alone[k]
        for j, k in combinations(bins, 2)
    }
    best = sorted(scores, key=lambda pair: -scores[pair])[:n_pairs]
    column = X.lift.column_of
    return tuple((int(column[j]), int(column[k])) for j, k in best if scores[j, k] > 0.0)


class Terms(NamedTuple):
    """(n_classes, n_rows) slopes w (p - y), curvatures w p (1 - p), variances w^2 p (1 - p)."""

    slopes: FloatArray
    curvatures: FloatArray
    variances: FloatArray


def _newton_terms(planes: Planes, rows: Rows) -> Terms:
    P = np.exp(log_softmax(planes.scores(rows.X))).T
    Y = rows.y == np.arange(len(P))[:, None]
    weight = rows.weight / rows.weight.mean()
    curvatures = weight * P * (1.0 - P)
    return Terms(weight * (P - Y), curvatures, weight * curvatures)


def _coarse(codes: IntArray, weight: FloatArray) -> IntArray:
    """Neighbouring bins merged into at most ``BINS_PER_COLUMN`` of about equal weight."""
    mass = np.bincount(codes, weight)
    middle = (np.cumsum(mass) - mass / 2.0) / mass.sum()
    merged = np.minimum((middle * BINS_PER_COLUMN).astype(np.intp), BINS_PER_COLUMN - 1)
    return merged[codes]


def _gain(cells: IntArray, terms: Terms) -> float:
    total = 0.0
    for slope, curvature, variance in zip(*terms, strict=True):
        G, H, V = (np.bincount(cells, one) for one in (slope, curvature, variance))
        total += float(((G**2 - V) / (H + 1.0)).sum())
    return total
