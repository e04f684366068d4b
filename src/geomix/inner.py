"""The estimator inside a meta-estimator: what it may be, its tags, and its parameters by class.

``n_planes``, ``class_weight`` and ``monotonic_cst`` may be dicts by class label. The inner model
may be trained on other labels, or on rows of some classes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from geomix.errors import InvalidParameterError
from geomix.estimator import GeometricMixtureClassifier


def inner_estimator(given: Any, otherwise: str = "") -> GeometricMixtureClassifier:
    """The estimator that a user gave, or one with default parameters.

    otherwise : a sentence on what to use for other estimators.
    """
    if given is None:
        return GeometricMixtureClassifier()
    if not isinstance(given, GeometricMixtureClassifier):
        raise InvalidParameterError(
            f"Got estimator={given!r}; expected a GeometricMixtureClassifier.{otherwise}"
        )
    return given


def with_inner_tags(tags: Any, given: Any) -> Any:
    """The tags of a meta-estimator, which takes the rows that its estimator takes."""
    inner = GeometricMixtureClassifier() if given is None else given
    tags.input_tags = inner.__sklearn_tags__().input_tags
    return tags


# --- parameters that name classes ---


def for_labels(
    estimator: GeometricMixtureClassifier, names: Mapping[Any, Any]
) -> GeometricMixtureClassifier:
    """An unfitted copy for the labels in ``names``, whose parameters call each by its new name.

    Labels that are not in ``names`` are left out.
    """

    def renamed(by_label: Mapping[Any, Any]) -> dict[Any, Any]:
        return {names[label]: value for label, value in by_label.items() if label in names}

    changed = {name: renamed(value) for name, value in _by_label(estimator).items()}
    if _directions(estimator):
        changed["monotonic_cst"] = {
            column: renamed(wanted) if isinstance(wanted, Mapping) else wanted
            for column, wanted in estimator.monotonic_cst.items()
        }
    copy: GeometricMixtureClassifier = clone(estimator)
    return copy.set_params(**changed) if changed else copy


def named_by_class(estimator: GeometricMixtureClassifier) -> list[str]:
    """The parameters that name classes, or that are about one of two classes."""
    is_monotone = estimator.monotonic_cst is not None and estimator.settings().is_monotone
    return [*_by_label(estimator), *(["monotonic_cst"] if is_monotone else [])]


def check_labels_are_known(estimator: GeometricMixtureClassifier, labels: list[Any]) -> None:
    """Raise if a parameter names a class that is not among ``labels``, or lacks one it needs."""
    by_label = dict(_by_label(estimator))
    if _directions(estimator):
        wanted = estimator.monotonic_cst.values()
        by_label["monotonic_cst"] = {
            label: sign for one in wanted if isinstance(one, Mapping) for label, sign in one.items()
        }
    for name, given in by_label.items():
        unknown = [label for label in given if label not in labels]
        left_out = [label for label in labels if label not in given]
        # As in a fit: class_weight may name more classes than y has, if it names all of those.
        if unknown and (left_out or name != "class_weight"):
            raise InvalidParameterError(
                f"{name} names the class {unknown[0]!r}, which is not in y; expected labels among "
                f"{labels!r}."
            )
        if left_out and name == "n_planes":
            raise InvalidParameterError(
                f"n_planes has no entry for the class {left_out[0]!r}; expected one entry for each "
                f"of {labels!r}."
            )


def _by_label(estimator: GeometricMixtureClassifier) -> dict[str, Mapping[Any, Any]]:
    given = {name: getattr(estimator, name) for name in ("n_planes", "class_weight")}
    return {name: value for name, value in given.items() if isinstance(value, Mapping)}


def _directions(estimator: GeometricMixtureClassifier) -> bool:
    return isinstance(estimator.monotonic_cst, Mapping)
