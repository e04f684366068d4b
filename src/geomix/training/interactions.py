"""Which pairs of columns interact: a screen on the residuals of an additive model.

One spline plane per class is trained first. With p_ic its probability for row i and class c, and
every column cut into at most ``BINS_PER_COLUMN`` bins, a pair (j, k) has the score

    gain(j, k) - gain(j) - gain(k) - degrees of freedom
    gain = sum over cells and classes of G^2 / (H + 1),   G = sum w_i (p_ic - y_ic),
                                                          H = sum w_i p_ic (1 - p_ic)

which estimates twice the log-likelihood that a table over the pair would add (a Newton step for
each cell) beyond what one-column tables would, less what noise alone is expected to add.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

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


def strongest_pairs(planes: Planes, rows: Rows, n_pairs: int) -> Pairs:
    """At most ``n_pairs`` pairs of columns with positive scores, the strongest first.

    planes : one per class, trained on ``rows``, which are binned by a spline lift without pairs.
    """
    X = rows.X
    assert isinstance(X, Binned)
    some = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.intp)
    parts = np.sort(np.argsort(-part_strengths(planes, rows), kind="stable")[:MOST_COLUMNS])
    sample = rows.take(some)
    slopes, curvatures = _newton_terms(planes, sample)
    bins = {int(part): _coarse(X.codes[some, part], sample.weight) for part in parts}
    alone = {part: _gain(one, slopes, curvatures) for part, one in bins.items()}
    scores = {
        pair: _pair_score(pair, bins, alone, slopes, curvatures) for pair in combinations(bins, 2)
    }
    best = sorted(scores, key=lambda pair: -scores[pair])[:n_pairs]
    column = X.lift.column_of
    return tuple((int(column[j]), int(column[k])) for j, k in best if scores[j, k] > 0.0)


def _newton_terms(planes: Planes, rows: Rows) -> tuple[FloatArray, FloatArray]:
    """(n_classes, n_rows) slopes w (p - y) and curvatures w p (1 - p)."""
    P = np.exp(log_softmax(planes.scores(rows.X))).T
    Y = rows.y == np.arange(len(P))[:, None]
    return rows.weight * (P - Y), rows.weight * P * (1.0 - P)


def _coarse(codes: IntArray, weight: FloatArray) -> IntArray:
    """Neighbouring bins merged into at most ``BINS_PER_COLUMN`` of about equal weight."""
    mass = np.bincount(codes, weight)
    middle = (np.cumsum(mass) - mass / 2.0) / mass.sum()
    merged = np.minimum((middle * BINS_PER_COLUMN).astype(np.intp), BINS_PER_COLUMN - 1)
    return merged[codes]


def _pair_score(
    pair: tuple[int, int],
    bins: dict[int, IntArray],
    alone: dict[int, float],
    slopes: FloatArray,
    curvatures: FloatArray,
) -> float:
    j, k = pair
    cells = bins[j] * BINS_PER_COLUMN + bins[k]
    n_cells = len(np.unique(cells)) - len(np.unique(bins[j])) - len(np.unique(bins[k])) + 1
    together = _gain(cells, slopes, curvatures) - alone[j] - alone[k]
    return together - n_cells * (len(slopes) - 1)


def _gain(cells: IntArray, slopes: FloatArray, curvatures: FloatArray) -> float:
    total = 0.0
    for slope, curvature in zip(slopes, curvatures, strict=True):
        G, H = np.bincount(cells, slope), np.bincount(cells, curvature)
        total += float((G**2 / (H + 1.0)).sum())
    return total
