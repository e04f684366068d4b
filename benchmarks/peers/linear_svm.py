"""Linear support vector machine with Platt scaling, C by inner folds."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from peers._columns import standardised
from peers._platt import with_probabilities
from peers._search import best_setting, described, inner_splits

NAME = "linear SVM"
NEEDS = ("sklearn",)
GRID = {"C": [0.001, 0.01, 0.1, 1.0, 10.0]}


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z = prepare.transform(X)

    def build(setting: dict[str, Any], folds: int = 3) -> Any:
        machine = LinearSVC(**setting, dual="auto", random_state=seed)
        return with_probabilities(machine, folds)

    setting = best_setting(build, GRID, Z, y, inner_splits(y, seed))
    return make_pipeline(prepare, build(setting, folds=5).fit(Z, y)), described(setting)
