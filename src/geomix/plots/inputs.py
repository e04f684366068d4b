"""The door of the plots: what a caller may hand in, and what to do about the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from geomix.arrays import IntArray
from geomix.labels import codes_of
from geomix.model import GeometricMixture


def check_model(model: Any) -> None:
    if not isinstance(model, GeometricMixture):
        raise TypeError(
            f"Got a {type(model).__name__}; expected a GeometricMixture, "
            "which is the model_ of a fitted GeometricMixtureClassifier."
        )


def check_two_columns(model: GeometricMixture, display: str) -> None:
    if model.n_features != 2:
        raise ValueError(
            f"{display} draws a map of two columns; this model has {model.n_features}. "
            "Fit on two columns to see them, or use UsageDisplay, which takes any number."
        )


def labelled_rows(model: GeometricMixture, X: Any, y: Any) -> tuple[Any, IntArray]:
    """Rows as a float array (SciPy sparse rows as they are) and codes into ``model.classes``."""
    sparse = scipy.sparse.issparse(X)
    X, y = X if sparse else np.asarray(X, dtype=np.float64), np.asarray(y)
    if y.ndim != 1 or X.ndim != 2 or X.shape[0] != len(y) or not len(y):
        raise ValueError(
            f"Got X of shape {X.shape} and y of shape {y.shape}; expected (n_rows, "
            f"{model.n_features}) and (n_rows,), with at least one row."
        )
    if not np.isfinite(X.data if sparse else X).all():
        raise ValueError("X holds NaN or infinity; expected finite numbers.")
    return X, codes_of(y, model.classes, "y")
