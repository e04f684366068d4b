"""In a few words, what a fit of geomix chose."""

from __future__ import annotations

from geomix import GeometricMixtureClassifier


def describe_geomix(clf: GeometricMixtureClassifier) -> str:
    """The family that won, planes per class, pairs and temperature."""
    planes, choice = clf.model_.planes, clf.history_.choice
    pairs = clf.model_.lift.n_pairs
    family = choice.chosen.family if choice else clf.model_.lift.kind
    counts = "+".join(str(count) for count in planes.planes_per_member)
    members = f" members {planes.n_members}" if planes.n_members > 1 else ""
    return f"{family} planes {counts}{members} pairs {pairs} T {clf.model_.temperature:.2f}"
