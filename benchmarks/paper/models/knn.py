"""Nearest neighbours with uniform weights, the paper's grid."""

from __future__ import annotations

from typing import Any

from sklearn.neighbors import KNeighborsClassifier

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit

NAME, PAPER = "kNN", "k-NN"
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {"n_neighbors": [3, 5, 7, 9, 11]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return KNeighborsClassifier(**setting, n_jobs=1)


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID), split, seed)
