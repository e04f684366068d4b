"""A fit of geomix with a preset and nothing else, and in a few words what it chose."""

from __future__ import annotations

from typing import Any


def fit_preset(X: Any, y: Any, seed: int, preset: str) -> tuple[Any, str]:
    from chosen import describe_geomix

    from geomix import GeometricMixtureClassifier

    model = GeometricMixtureClassifier(preset=preset, random_state=seed).fit(X, y)
    return model, describe_geomix(model)
