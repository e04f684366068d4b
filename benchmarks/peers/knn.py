"""Nearest neighbours on standardised columns, their number and weights by inner folds."""

from __future__ import annotations

from typing import Any

from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from peers._columns import standardised
from peers._search import best_setting, described, inner_splits
from peers._votes import OneMoreVote

NAME = "kNN"
NEEDS = ("sklearn",)
GRID = {"n_neighbors": [1, 3, 5, 10, 20, 50], "weights": ["distance", "uniform"]}


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z = prepare.transform(X)

    def build(setting: dict[str, Any]) -> Any:
        return OneMoreVote(KNeighborsClassifier(**setting, n_jobs=1), setting["n_neighbors"])

    setting = best_setting(build, GRID, Z, y, inner_splits(y, seed, medium_folds=3))
    return make_pipeline(prepare, build(setting).fit(Z, y)), described(setting)
