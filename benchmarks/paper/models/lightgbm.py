"""LightGBM, the paper's grid; trees of depth 4 and 6 have up to 15 and 63 leaves."""

from __future__ import annotations

from typing import Any

from paper.data import Split
from paper.models import Fitted, OneRow
from paper.models._grid import Search, last_step, search_and_fit

NAME, PAPER = "LightGBM", "LightGBM"
NEEDS, PACKAGES = ("lightgbm",), ("lightgbm", "scikit-learn")
GRID = {"n_estimators": [200, 400], "learning_rate": [0.05, 0.1], "max_depth": [4, 6]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    from lightgbm import LGBMClassifier

    leaves = 2 ** setting["max_depth"] - 1
    return LGBMClassifier(**setting, num_leaves=leaves, n_jobs=1, random_state=seed, verbose=-1)


def paths(model: Any) -> dict[str, OneRow]:
    scaler, classifier = (step for _, step in model.steps)
    booster = classifier.booster_
    quick = OneRow(lambda X: booster.predict(X, num_threads=1), prepared=scaler.transform)
    return {**last_step(model), "booster.predict, row scaled before": quick}


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID, paths=paths), split, seed)
