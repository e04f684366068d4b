"""Checks of what is passed to a plot."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from geomix.arrays import FloatArray, IntArray
from geomix.explain.cells import column_place, encoded_row, encoded_rows, model_schema
from geomix.explain.plane_cards import typical_row
from geomix.model import GeometricMixture
from geomix.table.labels import codes_of


def model_of(estimator: Any) -> GeometricMixture:
    """The model of a fitted estimator; a model is its own."""
    model = getattr(estimator, "model_", estimator)
    if not isinstance(model, GeometricMixture):
        raise TypeError(
            f"Got a {type(estimator).__name__}; expected a fitted GeometricMixtureClassifier or "
            "a GeometricMixture."
        )
    return model


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
            "Name two of them: columns=('a', 'b'); the others are held."
        )


def labelled_rows(model: GeometricMixture, X: Any, y: Any) -> tuple[Any, IntArray]:
    """Rows that the model can predict, and codes into ``model.classes``.

    Numbers as a float array, SciPy sparse rows and tables with categories as they are.
    """
    sparse, y = scipy.sparse.issparse(X), np.asarray(y)
    if not sparse and not model_schema(model).has_categories:
        X = model.encoded(X)
    shape = np.shape(X)
    if y.ndim != 1 or len(shape) != 2 or shape[0] != len(y) or not len(y):
        raise ValueError(
            f"Got X of shape {shape} and y of shape {y.shape}; expected (n_rows, "
            f"{model.n_features}) and (n_rows,), with at least one row."
        )
    if (isinstance(X, np.ndarray) and X.dtype == np.float64) or sparse:
        _check_numbers(model, X.data if sparse else X)
    return X, codes_of(y, model.classes, "y")


def _check_numbers(model: GeometricMixture, numbers: Any) -> None:
    knows_missing = model.expand is not None or model.lift.reads_cells
    if knows_missing and not np.isinf(numbers).any():
        return
    if not np.isfinite(numbers).all():
        raise ValueError("X holds NaN or infinity; expected finite numbers.")


def two_columns(
    model: GeometricMixture, X: Any, columns: Any, hold: Any
) -> tuple[FloatArray, tuple[int, int], FloatArray]:
    """Encoded rows, the places of two numbers, and the encoded row that holds the others.

    columns : names or places, or None where there are only two;  hold : a row, or None for the
    medians and most frequent levels of ``X``.
    """
    columns = (0, 1) if columns is None else columns
    places = [column_place(model, column) for column in columns]
    if len(places) != 2 or places[0] == places[1]:
        raise ValueError(f"Got columns={columns!r}; expected two different ones.")
    for j in places:
        if model_schema(model).is_category[j]:
            raise ValueError(f"Column {model.columns[j]!r} is a category; a map needs numbers.")
    encoded = encoded_rows(model, X)
    held = typical_row(model, encoded) if hold is None else encoded_row(model, hold)
    return encoded, (places[0], places[1]), held


def predictions(
    y: Any, P: Any, classes: Any = None
) -> tuple[tuple[Any, ...], IntArray, FloatArray]:
    """Labels of the columns of P, codes of ``y``, and P as floats.

    classes : in the order of P's columns; None: the sorted labels in ``y``.
    """
    y, P = np.asarray(y), np.asarray(P, dtype=np.float64)
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if P.ndim != 2 or P.shape != (len(y), len(labels)) or not len(y):
        raise ValueError(
            f"Got P of shape {P.shape} for {len(y)} labels of {len(labels)} classes; expected "
            f"{(len(y), len(labels))}. Pass classes= in the order of P's columns."
        )
    return tuple(labels.tolist()), codes_of(y, labels, "y"), P
