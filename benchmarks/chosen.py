"""In a few words, what a fit of geomix chose."""

from __future__ import annotations

from geomix import GeometricMixtureClassifier


def describe_geomix(clf: GeometricMixtureClassifier) -> str:
    """The lift and penalty that won, and the planes per class."""
    parts = [clf.model_.lift.kind]
    for trial in clf.history_.trials:
        if trial.chosen:
            parts += [] if trial.gamma_factor is None else [f"gamma x{trial.gamma_factor:g}"]
            parts += [f"l2 {trial.l2:.0e}"]
    planes = "+".join(str(count) for count in clf.n_planes_)
    return " ".join([*parts, f"T {clf.model_.temperature:.2f}", f"planes {planes}"])
