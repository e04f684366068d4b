"""Linear support vector machine with the squared hinge; C from both of the paper's lists."""

from __future__ import annotations

from typing import Any

from sklearn.svm import LinearSVC

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit
from paper.models._machines import decide, paths, with_probabilities

NAME, PAPER = "linear SVM", "LinSVM"
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return with_probabilities(LinearSVC(**setting, dual="auto", random_state=seed))


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID, decide, paths), split, seed)
