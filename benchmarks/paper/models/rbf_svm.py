"""Support vector machine with the Gaussian kernel, the paper's grid."""

from __future__ import annotations

from typing import Any

from sklearn.svm import SVC

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit
from paper.models._machines import decide, paths, with_probabilities

NAME, PAPER = "RBF-SVM", "RBF-SVM"
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {"C": [1.0, 10.0, 100.0], "gamma": [1e-3, 1e-2, 1e-1]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return with_probabilities(SVC(**setting))


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID, decide, paths), split, seed)
