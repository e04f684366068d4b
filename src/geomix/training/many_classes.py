"""Very many classes: training is cut short, so that it ends.

Every row is scored by every class, so the cost of a pass grows with their product.
"""

from __future__ import annotations

from geomix.core.planes import Planes
from geomix.training.rows import Rows

# From more classes than this on, one training takes at most this many multiplications (20 s of one
# core), but at least this many iterations.
MANY_CLASSES = 1_000
MOST_OPERATIONS = 2e10
FEWEST_ITERATIONS = 3
# Multiplications that the exponential of pooling one plane is worth.
PER_PLANE = 16


def affordable(max_iter: int, train: Rows, planes: Planes) -> int:
    """Iterations of a training: ``max_iter``, or fewer where there are very many classes."""
    if planes.n_classes <= MANY_CLASSES:
        return max_iter
    each = float(len(train)) * planes.n_planes * (train.X.shape[1] + PER_PLANE)
    return min(max_iter, max(int(MOST_OPERATIONS / each), FEWEST_ITERATIONS))
