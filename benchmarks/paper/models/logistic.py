"""Logistic regression; C from both of the paper's lists, 0.1 to 10 and 1 to 100."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit

NAME, PAPER = "LR", "LR"
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return LogisticRegression(**setting, max_iter=1000)


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID), split, seed)
