"""RBF-SVM again with gamma up to 10: the paper's largest, 0.1, is too smooth for spirals."""

from __future__ import annotations

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit
from paper.models._machines import decide, paths
from paper.models.rbf_svm import GRID as PAPERS
from paper.models.rbf_svm import build

NAME, PAPER = "RBF-SVM, gamma to 10", None
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {**PAPERS, "gamma": [*PAPERS["gamma"], 1.0, 10.0]}


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID, decide, paths), split, seed)
