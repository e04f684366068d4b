"""Logistic regression with an L2 penalty, C by inner folds."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from peers._columns import standardised
from peers._search import best_setting, described, inner_splits

NAME = "LR"
NEEDS = ("sklearn",)
GRID = {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z = prepare.transform(X)

    def build(setting: dict[str, Any]) -> Any:
        return LogisticRegression(**setting, max_iter=1000)

    setting = best_setting(build, GRID, Z, y, inner_splits(y, seed, medium_folds=3))
    return make_pipeline(prepare, build(setting).fit(Z, y)), described(setting)
