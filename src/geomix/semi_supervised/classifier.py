"""SemiSupervisedClassifier: a ``GeometricMixtureClassifier`` that also learns from unlabelled rows.

    1. a supervised model is trained on the labelled rows
    2. soft labels of the unlabelled rows come from it and from their neighbours
    3. labelled rows, predicted without their labels, decide whether the soft labels are used
    4. the final model is trained on all rows: an unlabelled row counts for each class by its
       probability, times ``UNLABELLED_WEIGHT``

Without step 3's consent the final model is the supervised one.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from geomix.arrays import FloatArray, IntArray
from geomix.errors import InvalidParameterError
from geomix.estimator import GeometricMixtureClassifier
from geomix.inner import for_labels, inner_estimator, with_inner_tags
from geomix.model import GeometricMixture
from geomix.semi_supervised.labels import PartlyLabelled, read_partly_labelled
from geomix.semi_supervised.soft_labels import (
    SoftLabelChoice,
    choose,
    fold_numbers,
    folds_leave_two_classes,
    graphs_of,
    soft_labels,
)
from geomix.table.labels import label_codes
from geomix.table.reader import read_rows
from geomix.table.sparse_rows import is_sparse
from geomix.training.labelled_rows import check_two_classes, check_y_is_there

if TYPE_CHECKING:
    from typing_extensions import Self

# A probability below this adds a row of training and changes no model.
SMALLEST_SHARE = 0.05
# Weight of an unlabelled row beside a labelled one: soft labels are less certain than labels.
# Picked on one split of letter and of digits (decision 95).
UNLABELLED_WEIGHT = 0.3


class SemiSupervisedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Learn from a few labelled rows and many unlabelled ones.

    Rows whose ``y`` is ``unlabeled`` have no label. They get soft labels from the supervised model
    and from labels that spread along a graph of nearest rows, and the final model is trained on all
    rows. Labelled rows that are held out decide whether it is; otherwise the result is the
    supervised model.

    Parameters
    ----------
    estimator : GeometricMixtureClassifier or None, default=None
        The model to train, with its parameters; None is one with default parameters.
    unlabeled : int, float, bool, str or None, default=-1
        The value of ``y`` in rows without a label. None or NaN is any missing value.
    n_neighbors : int, default=7
        Nearest rows that a row is joined to.
    cv : int, default=5
        Folds of the labelled rows that decide whether unlabelled rows are used.
    max_unlabeled : int, default=20000
        Most unlabelled rows that are used; of more, a random sample.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the sample. The estimator has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, without the marker.
    estimator_ : GeometricMixtureClassifier
        The fitted final model.
    model_ : GeometricMixture
        ``estimator_.model_``, which explains, saves and exports.
    choice_ : SoftLabelChoice or None
        What the held-out labels measured; None where every row has a label, or where the labels
        are too few to hold some out.
    soft_labels_ : ndarray of shape (n_used, n_classes)
        Class probabilities of the rows ``used_rows_`` from which the final model was trained.
    used_rows_ : ndarray of shape (n_used,)
        Positions in ``X``: labelled rows first.
    n_features_in_ : int
        Number of columns in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier, SemiSupervisedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> model = GeometricMixtureClassifier(preset="fast", random_state=0)
    >>> clf = SemiSupervisedClassifier(model, random_state=0).fit(X, few)
    >>> clf.classes_
    array([0, 1, 2])
    """

    classes_: Any
    estimator_: GeometricMixtureClassifier
    choice_: SoftLabelChoice | None

    def __init__(
        self,
        estimator: Any = None,
        *,
        unlabeled: Any = -1,
        n_neighbors: int = 7,
        cv: int = 5,
        max_unlabeled: int = 20_000,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.unlabeled = unlabeled
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.max_unlabeled = max_unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows ``X`` with labels ``y``, of which some are ``unlabeled``."""
        base = self._checked_estimator()
        if is_sparse(X):
            raise TypeError(
                "Got a sparse X; SemiSupervisedClassifier measures distances between dense rows: "
                "pass X.toarray()."
            )
        check_y_is_there(self, y)
        known = read_partly_labelled(y, self.unlabeled)
        check_two_classes(self, known.classes)
        check_consistent_length(X, y)
        (X,) = indexable(X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        labels = known.classes[known.codes]
        fitted = clone(base).fit(_safe_indexing(X, known.labelled), labels)
        rows, choice = known.labelled, None
        soft: FloatArray = np.eye(len(known.classes))[known.codes]
        is_enough = len(labels) >= 2 * self.cv and folds_leave_two_classes(known.codes, self.cv)
        if len(known.unlabelled) and is_enough:
            every = np.concatenate([known.labelled, _sample(known, self.max_unlabeled, rng)])
            X = _safe_indexing(X, every)
            choice, found = self._soft_labels(base, fitted, X, known, rng)
            if choice.uses_unlabelled:
                rows, soft = every, found
                fitted = _trained_on(base, X, soft, len(labels), known.classes)
        self.classes_, self.estimator_, self.choice_ = known.classes, fitted, choice
        self.soft_labels_, self.used_rows_ = soft, rows
        return self

    def _soft_labels(
        self,
        base: Any,
        fitted: Any,
        X: Any,
        known: PartlyLabelled,
        rng: np.random.Generator,
    ) -> tuple[SoftLabelChoice, FloatArray]:
        """Soft labels of the rows X, labelled ones first, and whether they help."""
        encoded = read_rows(fitted, X, reset=False, schema=fitted.model_.schema)
        graphs = graphs_of(encoded, fitted.model_.schema, self.n_neighbors)
        codes, classes = known.codes, known.classes

        def predicted(model: GeometricMixtureClassifier) -> FloatArray:
            P = np.zeros((encoded.shape[0], len(classes)))
            P[:, label_codes(model.classes_, classes)] = model.predict_proba(X)
            return P

        def supervised(positions: IntArray) -> FloatArray:
            labels = classes[codes[positions]]
            return predicted(_copy_for(base, labels).fit(_safe_indexing(X, positions), labels))

        def student(soft: FloatArray) -> FloatArray:
            return predicted(_trained_on(base, X, soft, len(codes), classes))

        folds = fold_numbers(codes, self.cv, rng)
        choice = choose(supervised, student, graphs, codes, folds)
        return choice, soft_labels(fitted.predict_proba(X), graphs, codes, choice)

    def _checked_estimator(self) -> GeometricMixtureClassifier:
        for name, least in {"n_neighbors": 1, "cv": 2, "max_unlabeled": 1}.items():
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
                raise InvalidParameterError(
                    f"Got {name}={value!r}; expected an integer of at least {least}."
                )
        if isinstance(self.unlabeled, (list, tuple, set, dict, np.ndarray)):
            raise InvalidParameterError(
                f"Got unlabeled={self.unlabeled!r}; expected a single value, such as -1 or None."
            )
        others = " For other models use sklearn.semi_supervised.SelfTrainingClassifier."
        return inner_estimator(self.estimator, others)

    @property
    def model_(self) -> GeometricMixture:
        """The trained model."""
        check_is_fitted(self)
        return self.estimator_.model_

    @property
    def n_features_in_(self) -> int:
        if not hasattr(self, "estimator_"):
            raise AttributeError("n_features_in_ is there after fit.")
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        if not hasattr(getattr(self, "estimator_", None), "feature_names_in_"):
            raise AttributeError("feature_names_in_ is there after a fit on named columns.")
        return self.estimator_.feature_names_in_

    def predict(self, X: Any) -> Any:
        """The most probable class of each row; never the marker."""
        return self._final().predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities, one column per class in the order of ``classes_``."""
        return self._final().predict_proba(X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of ``predict_proba``."""
        return self._final().predict_log_proba(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class (two classes), or calibrated class scores (more)."""
        return self._final().decision_function(X)

    def _final(self) -> GeometricMixtureClassifier:
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = with_inner_tags(super().__sklearn_tags__(), self.estimator)
        tags.input_tags.sparse = False
        return tags


def _sample(known: PartlyLabelled, most: int, rng: np.random.Generator) -> IntArray:
    rows = known.unlabelled
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _trained_on(
    estimator: GeometricMixtureClassifier,
    X: Any,
    soft: FloatArray,
    n_labelled: int,
    classes: Any,
) -> GeometricMixtureClassifier:
    """Trained on rows, labelled ones first, that count for each class by their probability."""
    share = np.where(soft >= SMALLEST_SHARE, soft, 0.0)
    # Of very many classes all may be below it: then the most probable one is taken.
    top = soft.argmax(axis=1)
    share[np.arange(len(soft)), top] = soft[np.arange(len(soft)), top]
    share /= share.sum(axis=1, keepdims=True)
    share[n_labelled:] *= UNLABELLED_WEIGHT
    position, code = np.nonzero(share)
    labels = classes[code]
    trained = _copy_for(estimator, labels)
    return trained.fit(_safe_indexing(X, position), labels, sample_weight=share[position, code])


def _copy_for(estimator: GeometricMixtureClassifier, labels: Any) -> GeometricMixtureClassifier:
    """An unfitted copy for rows that may lack a class: parameters by class leave it out."""
    present = np.unique(labels).tolist()
    return for_labels(estimator, dict(zip(present, present, strict=True)))
