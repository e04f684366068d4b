"""Random forest, the paper's grid."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit

NAME, PAPER = "RF", "RF"
NEEDS, PACKAGES = ("sklearn",), ("scikit-learn",)
GRID = {"n_estimators": [200, 400], "max_depth": [None, 12]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return RandomForestClassifier(**setting, n_jobs=1, random_state=seed)


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID), split, seed)
