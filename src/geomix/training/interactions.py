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
from typing import TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.planes import Planes
from geomix.core.pooling import log_softmax
from geomix.core.spline import PAIR_BINS_RANGE, Binned
from geomix.core.spline_parts import LevelPart, SplinePart
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
# A table of more cells than 64 x 64 cannot be read, and has hardly a row in each cell: two columns
# of 5,000 categories would make 25 million.
MOST_CELLS = 2**12


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
    bins = np.array([_coarse(X.codes[some, part], sample.weight) for part in parts], dtype=np.uint8)
    if len(parts) < 2:
        return ()
    gains = kernel.pair_gains(bins, _newton_terms(planes, sample), BINS_PER_COLUMN)
    j, k = np.triu_indices(len(parts), 1)
    scores = gains[j, k] - gains[j, j] - gains[k, k]
    sides = np.array([_side(X.lift.parts[part]) for part in parts])
    scores[sides[j] * sides[k] > MOST_CELLS] = 0.0
    best = [one for one in np.argsort(-scores, kind="stable")[:n_pairs] if scores[one] > 0.0]
    column = X.lift.column_of[parts]
    return tuple((int(column[j[one]]), int(column[k[one]])) for one in best)


def _side(part: SplinePart) -> int:
    """Bins of a column in the table over a pair, at most."""
    return part.n_bins if isinstance(part, LevelPart) else PAIR_BINS_RANGE[1]


def _newton_terms(planes: Planes, rows: Rows) -> FloatArray:
    """(n_rows, 3 n_classes) slopes w (p - y), curvatures w p (1 - p), variances w^2 p (1 - p)."""
    P = np.exp(log_softmax(planes.scores(rows.X)))
    Y = rows.y[:, None] == np.arange(P.shape[1])
    weight = (rows.weight / rows.weight.mean())[:, None]
    curvatures = weight * P * (1.0 - P)
    return np.hstack([weight * (P - Y), curvatures, weight * curvatures])


def _coarse(codes: IntArray, weight: FloatArray) -> IntArray:
    """Neighbouring bins merged into at most ``BINS_PER_COLUMN`` of about equal weight."""
    mass = np.bincount(codes, weight)
    middle = (np.cumsum(mass) - mass / 2.0) / mass.sum()
    merged = np.minimum((middle * BINS_PER_COLUMN).astype(np.intp), BINS_PER_COLUMN - 1)
    return merged[codes]
