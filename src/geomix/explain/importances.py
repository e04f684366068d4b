"""Importances: how far each raw column moves the answers of some rows.

    importance_j = mean over the rows of | contribution of column j to log(p_winner / p_second) |

The contributions are those of ``explain/contributions.py``: exact for linear and spline lifts, the
tangent of each row for Fourier lifts. A column's level and missing cells count as the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.spline import SplineLift
from geomix.explain import contributions
from geomix.explain.additive_form import additive
from geomix.model import GeometricMixture
from geomix.table.row_views import is_dense, numbers

# Of training rows: the standard error of the mean is then some 2 %, and a fit takes a few percent
# longer (spline 1 %, Fourier 5 %, 20,000 sparse columns 10 %).
MOST_ROWS = 2_000
MOST_CELLS = 2**21
SPARSE_ROWS = 8  # that become dense at a time


def importances(model: GeometricMixture, encoded: FloatArray, P: FloatArray) -> FloatArray:
    """(n_columns,) importances over encoded rows with probabilities ``P``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> int(importances(model, X, model.predict_proba(X)).argmax())  # the length of the petals
    2
    """
    order = np.argsort(-P, axis=1, kind="stable")
    winner, second = order[:, 0], order[:, 1]
    if isinstance(model.lift, SplineLift):
        Z = model.answer("plane_scores", encoded)
        parts = contributions.exact(additive(model), encoded, winner, second, Z)
    else:
        parts = contributions.tangent(model, encoded, winner, second)
    sizes: FloatArray = np.abs(parts.by_column).mean(axis=0)
    return sizes


def training_importances(model: GeometricMixture, rows: Any) -> FloatArray:
    """Importances over training rows, encoded as a table, by index or sparse: evenly spaced ones
    where there are many."""
    n_rows = rows.shape[0]
    most = int(np.clip(MOST_CELLS // max(model.n_features, 1), 1, MOST_ROWS))
    index = np.unique(np.linspace(0, n_rows - 1, min(most, n_rows)).astype(np.intp))
    size = len(index) if is_dense(rows) else SPARSE_ROWS
    total: FloatArray = np.zeros(model.n_features)
    for start in range(0, len(index), size):
        some = rows[index[start : start + size]]
        encoded = numbers(some) if is_dense(some) else some.toarray()
        P = model.answer("predict_proba", encoded)
        total += len(encoded) * importances(model, encoded, P)
    total /= len(index)
    total.flags.writeable = False
    return total
