"""HierarchicalClassifier: a ``GeometricMixtureClassifier`` whose classes form a tree.

    strategy="single"      one model of all classes
    strategy="per_group"   P(class) = product over the groups on its path of P(child | group, x)

In both the probability of a group is the sum of its classes. With one model per group, the model of
a group sees only the rows of its classes. ``predict`` takes the most probable class, or, with
``minimize="distance"``, the one with the smallest expected distance along the tree: then mistakes
are near.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.errors import InvalidParameterError
from geomix.estimator import GeometricMixtureClassifier
from geomix.hierarchy.tree import ClassTree, Group, read_tree
from geomix.inner import (
    check_labels_are_known,
    for_labels,
    inner_estimator,
    named_by_class,
    with_inner_tags,
)
from geomix.table.labels import check_weights, plain_labels, read_labels
from geomix.table.reader import read_rows
from geomix.training.labelled_rows import check_two_classes, check_y_is_there
from geomix.training.monotone import is_about_two_classes

if TYPE_CHECKING:
    from typing_extensions import Self

STRATEGIES = ("single", "per_group")
MINIMIZED = ("errors", "distance")


class HierarchicalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classify along a tree of classes.

    Parameters
    ----------
    estimator : GeometricMixtureClassifier or None, default=None
        The model, with its parameters; None is one with default parameters. Parameters that name
        classes do so by the labels of y; they need one model that tells all classes apart.
    tree : dict or None, default=None
        Groups of classes: a dict of names to dicts or to lists of class labels, in which every
        class of y is once. None is one group, which makes an ordinary classifier.
    strategy : {"single", "per_group"}, default="single"
        A single model of all classes, or one model for each group, which tells its children apart.
    minimize : {"errors", "distance"}, default="errors"
        What ``predict`` makes small: the share of errors, or the expected number of steps along
        the tree between the predicted class and the true one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of ``predict_proba``.
    tree_ : ClassTree
        The groups, and the distances between classes.
    estimators_ : dict
        The fitted model of each group with several children, by its path of names; its classes are
        the positions of the children in the group. A single model has the path ``()``, and its
        classes are positions in ``classes_``.
    n_features_in_ : int
        Number of columns in ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier, HierarchicalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(preset="fast", random_state=0)
    >>> tree = {"setosa": [0], "others": [1, 2]}
    >>> clf = HierarchicalClassifier(model, tree=tree).fit(X, y)
    >>> sorted(clf.predict_group_proba(X[:2]))
    ['others', 'setosa']
    """

    classes_: Any
    tree_: ClassTree
    estimators_: dict[tuple[str, ...], GeometricMixtureClassifier]
    n_features_in_: int

    def __init__(
        self,
        estimator: Any = None,
        *,
        tree: Any = None,
        strategy: str = "single",
        minimize: str = "errors",
    ) -> None:
        self.estimator = estimator
        self.tree = tree
        self.strategy = strategy
        self.minimize = minimize

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows ``X`` with labels ``y``."""
        base = self._checked_estimator()
        check_y_is_there(self, y)
        (X,) = indexable(X)
        read_rows(clone(base), X, reset=True)  # one check of all rows, before groups of them
        classes, codes = read_labels(column_or_1d(plain_labels(y), warn=True))
        check_two_classes(self, classes)
        tree = read_tree(self.tree, classes)
        check_consistent_length(X, codes)
        weight = None if sample_weight is None else check_weights(sample_weight, len(codes))
        modelled = tree if self.strategy == "per_group" else read_tree(None, classes)
        groups = [group for group in modelled.groups if len(group.children) > 1]
        base = _told_positions(base, groups, classes.tolist())
        if weight is not None:
            has_weight = np.bincount(codes, weight, len(classes)) > 0.0
            if has_weight.any():  # a fit refuses weights that are all zero
                check_two_classes(self, classes[has_weight])
                _check_children_have_weight(groups, has_weight)
        fitted = {group.name: _fitted(clone(base), group, X, codes, weight) for group in groups}
        first = next(iter(fitted.values()))
        self.classes_, self.tree_, self.estimators_ = classes, tree, fitted
        self._groups = groups
        self.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class: of the single model, or the product along its path."""
        check_is_fitted(self)
        P: FloatArray | None = None
        for group in self._groups:
            each = self.estimators_[group.name].predict_proba(X)
            if P is None:
                P = np.ones((len(each), len(self.classes_)))
            for position, codes in enumerate(group.children):
                P[:, codes] *= each[:, position, None]
        assert P is not None
        return P

    def predict_group_proba(self, X: Any) -> dict[str, FloatArray]:
        """Probability of each named group, the sum of its classes, by its path 'animal / bird'."""
        P = self.predict_proba(X)
        return self.tree_.group_probabilities(P)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class, or the one with the smallest expected distance."""
        P = self.predict_proba(X)
        if self.minimize == "distance":
            return self.classes_[(P @ self.tree_.distances).argmin(axis=1)]
        return self.classes_[P.argmax(axis=1)]

    def _checked_estimator(self) -> GeometricMixtureClassifier:
        for name, known in {"strategy": STRATEGIES, "minimize": MINIMIZED}.items():
            if getattr(self, name) not in known:
                raise InvalidParameterError(
                    f"Got {name}={getattr(self, name)!r}; expected one of "
                    f"{', '.join(map(repr, known))}."
                )
        return inner_estimator(self.estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        return with_inner_tags(super().__sklearn_tags__(), self.estimator)


def _told_positions(
    estimator: GeometricMixtureClassifier, groups: list[Group], labels: list[Any]
) -> GeometricMixtureClassifier:
    """The estimator with positions in the one group instead of labels; refused for several."""
    named = named_by_class(estimator)
    if not named:
        return estimator
    if len(groups) > 1:
        raise InvalidParameterError(
            f"Got {named[0]}={getattr(estimator, named[0])!r} with strategy='per_group'; expected "
            "no parameter that names classes, which each group counts anew: use strategy='single'."
        )
    check_labels_are_known(estimator, labels)
    position = {labels[int(codes[0])]: at for at, codes in enumerate(groups[0].children)}
    is_in_order = list(position) == labels
    if not is_in_order and is_about_two_classes(estimator.monotonic_cst):
        raise InvalidParameterError(
            f"Got monotonic_cst={estimator.monotonic_cst!r} with strategy='per_group'; name the "
            f"class, as in {{column: {{{labels[-1]!r}: 1}}}}."
        )
    return for_labels(estimator, position)


def _check_children_have_weight(groups: list[Group], has_weight: BoolArray) -> None:
    """Raise unless every group has rows of positive weight of at least two of its children."""
    for group in groups:
        if sum(bool(has_weight[below].any()) for below in group.children) < 2:
            place = f"below {' / '.join(group.name)}" if group.name else "at the root"
            raise ValueError(
                f"The tree needs rows of positive weight in at least 2 children {place}; give "
                "their rows weight, drop their classes, or use strategy='single'."
            )


def _fitted(
    estimator: GeometricMixtureClassifier,
    group: Group,
    X: Any,
    codes: IntArray,
    sample_weight: FloatArray | None,
) -> GeometricMixtureClassifier:
    """The model of a group, which tells its children apart."""
    child_of = np.full(codes.max() + 1, -1)
    for position, below in enumerate(group.children):
        child_of[below] = position
    rows = np.flatnonzero(child_of[codes] >= 0)
    weight = None if sample_weight is None else sample_weight[rows]
    if len(rows) < len(codes):
        X = _safe_indexing(X, rows)
    return estimator.fit(X, child_of[codes[rows]], sample_weight=weight)
