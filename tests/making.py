"""Estimators for tests, made of the parameters of the estimator and of ``Recipe`` side by side."""

from __future__ import annotations

from geomix import GeometricMixtureClassifier
from geomix.estimator import routed


def classifier(n_planes="auto", **parameters):
    return GeometricMixtureClassifier(**routed({"n_planes": n_planes, **parameters}))
