"""The estimator inside a meta-estimator: what it may be, and its tags."""

from __future__ import annotations

from typing import Any

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
