"""geomix with all defaults, on the raw frame."""

from __future__ import annotations

from typing import Any

NAME = "geomix"
NEEDS = ("geomix", "sklearn")


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from chosen import describe_geomix

    from geomix import GeometricMixtureClassifier

    model = GeometricMixtureClassifier(random_state=seed).fit(X, y)
    return model, describe_geomix(model)
