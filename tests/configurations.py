"""The configurations that the documentation names, for tests of scikit-learn's contract."""

from __future__ import annotations

from geomix import GeometricMixtureClassifier, Recipe

CONFIGURATIONS = {
    "the default": GeometricMixtureClassifier(),
    "accurate": GeometricMixtureClassifier(preset="accurate", max_planes=2),
    "fast": GeometricMixtureClassifier(preset="fast"),
    "two planes": GeometricMixtureClassifier(2),
    "silhouette": GeometricMixtureClassifier("silhouette", lift="linear"),
    "at most four planes": GeometricMixtureClassifier(max_planes=4),
    "linear": GeometricMixtureClassifier(lift="linear"),
    "spline": GeometricMixtureClassifier(lift="spline"),
    "fourier": GeometricMixtureClassifier(lift="fourier"),
    "linear or spline": GeometricMixtureClassifier(lift=("linear", "spline")),
    "no pairs": GeometricMixtureClassifier(max_interactions=0),
    "a penalty": GeometricMixtureClassifier(l2=1e-3),
    "balanced": GeometricMixtureClassifier(class_weight="balanced"),
    "prior corrected": GeometricMixtureClassifier(class_weight="balanced", correct_prior=True),
    "missing cells refused": GeometricMixtureClassifier(missing="error"),
    "monotone": GeometricMixtureClassifier(monotonic_cst={0: 1}),
    "warm start": GeometricMixtureClassifier(lift="linear", n_planes=1, warm_start=True),
    "a time limit": GeometricMixtureClassifier(time_limit=60),
    "the paper's": GeometricMixtureClassifier.paper(),
    "adam": GeometricMixtureClassifier(lift="linear", advanced=Recipe(solver="adam")),
    "principal axes": GeometricMixtureClassifier(lift="linear", advanced=Recipe(pca=0.99)),
}
