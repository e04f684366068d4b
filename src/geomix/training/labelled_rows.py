"""X, y and weights as the user passes them to ``fit``, as checked ``Rows`` with class codes.

``first_rows`` learns the columns and the classes. Later rows and validation rows are read by a
known schema and known classes. Rows of zero weight are dropped. ``estimator`` is a
``GeometricMixtureClassifier``, which stores the columns or checks X against those it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from geomix.arrays import FloatArray, IntArray
from geomix.table.category_levels import learn_schema
from geomix.table.check import check_read_columns
from geomix.table.labels import (
    check_labels,
    class_weight_factors,
    codes_of,
    plain_labels,
    read_labels,
    read_weights,
)
from geomix.table.reader import column_names, read_rows, refuse_dense_only
from geomix.table.row_views import all_rows
from geomix.table.schema import Schema, numeric_schema
from geomix.table.sparse_rows import is_sparse
from geomix.training.data_checks import warn_about
from geomix.training.rows import Rows, column_range


def first_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any = None
) -> tuple[Rows, Schema, Any]:
    """Rows to learn from, the table that their columns make, and the classes, in order.

    classes : every label that may come, where that is known before; None: those of y.
    """
    check_y_is_there(estimator, y)
    X = read_rows(estimator, X, reset=True, as_it_lies=True)
    y = column_or_1d(plain_labels(y), warn=True)
    check_consistent_length(X[0] if isinstance(X, list) else X, y)
    if classes is None:
        classes, codes = read_labels(y)
    else:
        classes = known_labels(classes)
        codes = codes_of(y, classes, "y", "classes")
    weight = read_weights(sample_weight, len(codes))
    check_two_classes(estimator, classes[np.unique(codes[weight > 0])])
    names = column_names(estimator, estimator.n_features_in_)
    check = check_read_columns(names, X, codes, classes, used=np.flatnonzero(weight > 0))
    estimator.table_check_ = check
    if isinstance(X, list):
        factors = _class_factors(estimator.class_weight, codes, weight, classes)
        weighted = weight if factors is None else weight * factors[codes]
        schema, X = learn_schema(names, X, weighted, codes)
    else:
        schema = numeric_schema(names)
    used_codes = codes[weight > 0]
    warn_about(check, column_range(X), schema, classes, used_codes, estimator.n_planes)
    return _of_positive_weight(X, codes, weight), schema, classes


def known_labels(classes: Any) -> Any:
    """The ``classes`` of a stream in sorted order; they may be a set."""
    listed = list(classes) if isinstance(classes, (set, frozenset)) else classes
    labels = np.asarray(plain_labels(listed))
    check_labels(labels, "classes")
    return np.unique(labels)


def later_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows to train further on, read by the schema and classes of the model."""
    check_y_is_there(estimator, y)
    model = estimator.model_
    if is_sparse(X) and not model.feature_map.takes_sparse:
        raise TypeError(
            "Sparse data was passed, but the model was trained on dense rows; use X.toarray()."
        )
    known = model.schema, estimator.classes_, "the classes of the model"
    return _known_rows(estimator, *known, X=X, y=y, sample_weight=sample_weight)


def validation_rows(
    estimator: Any,
    schema: Schema,
    classes: Any,
    rows: Rows,
    X_val: Any,
    y_val: Any,
    sample_weight_val: Any,
) -> Rows | None:
    """Validation rows, or None. rows : those to learn from"""
    if X_val is None and y_val is None:
        if sample_weight_val is not None:
            raise ValueError("sample_weight_val was given without X_val and y_val.")
        return None
    if X_val is None or y_val is None:
        one, other = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{one} was given without {other}; pass both or neither.")
    if is_sparse(X_val) and not is_sparse(rows.X):
        refuse_dense_only(estimator, "X_val")
        X_val = X_val.toarray()  # the race may take curves, since the rows to learn from are dense
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    return _known_rows(estimator, schema, classes, "the labels of y", **given)


def _known_rows(
    estimator: Any, schema: Schema, classes: Any, classes_are: str, **given: Any
) -> Rows:
    """Rows in known terms; ``given`` are X, y and weights by the names that messages call them."""
    (X_name, X), (y_name, y), (weight_name, weight) = given.items()
    X = read_rows(estimator, X, reset=False, name=X_name, as_it_lies=True, schema=schema)
    y = column_or_1d(plain_labels(y), warn=True)
    check_consistent_length(X, y)
    codes = codes_of(y, classes, y_name, classes_are)
    return _of_positive_weight(X, codes, read_weights(weight, len(codes), weight_name))


def check_y_is_there(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )


def check_two_classes(estimator: Any, classes: Any) -> None:
    """classes : those that rows have."""
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least 2 classes, got 1 class: "
            f"{classes.tolist()[0]!r}."
        )


def _of_positive_weight(X: Any, codes: IntArray, weight: FloatArray) -> Rows:
    rows, used = Rows(all_rows(X), codes, weight), weight > 0
    return rows if used.all() else rows.take(np.flatnonzero(used))


def class_weights(class_weight: Any, rows: Rows, classes: Any) -> FloatArray | None:
    """Factors on the weights of each class, (n_classes,), or None."""
    return _class_factors(class_weight, rows.y, rows.weight, classes)


def _class_factors(
    class_weight: Any, codes: IntArray, weight: FloatArray, classes: Any
) -> FloatArray | None:
    by_class = np.bincount(codes, weight, minlength=len(classes)).astype(float)
    return class_weight_factors(class_weight, classes, by_class, weight.sum())
