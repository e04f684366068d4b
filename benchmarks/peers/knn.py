"""Nearest neighbours on standardised columns, their number and weights by inner folds.

Bare shares of votes say 0 wherever k neighbours agree, and log-loss then asks for fifty of them.
One more vote, cast by the frequencies of the classes, lets k be small: (k p + f) / (k + 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from peers._columns import standardised
from peers._search import best_setting, inner_splits, told

NAME = "kNN"
NEEDS = ("sklearn",)
GRID = {"n_neighbors": [1, 3, 5, 10, 20, 50], "weights": ["distance", "uniform"]}


class SmoothNeighbours(ClassifierMixin, BaseEstimator):
    def __init__(self, n_neighbors: int, weights: str) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights

    def fit(self, Z: Any, y: Any) -> SmoothNeighbours:
        self.neighbours_ = KNeighborsClassifier(self.n_neighbors, weights=self.weights, n_jobs=1)
        self.classes_ = self.neighbours_.fit(Z, y).classes_
        self.frequencies_ = np.unique(y, return_counts=True)[1] / len(y)
        return self

    def predict_proba(self, Z: Any) -> Any:
        P = self.neighbours_.predict_proba(Z)
        return (self.n_neighbors * P + self.frequencies_) / (self.n_neighbors + 1.0)


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z = prepare.transform(X)

    def build(setting: dict[str, Any]) -> Any:
        return SmoothNeighbours(**setting)

    setting = best_setting(build, GRID, Z, y, inner_splits(y, seed, medium_folds=3))
    return make_pipeline(prepare, build(setting).fit(Z, y)), told(setting)
