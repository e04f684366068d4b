"""XGBoost, the paper's grid."""

from __future__ import annotations

from typing import Any

from paper.data import Split
from paper.models import Fitted, OneRow
from paper.models._grid import Search, last_step, search_and_fit

NAME, PAPER = "XGBoost", "XGBoost"
NEEDS, PACKAGES = ("xgboost",), ("xgboost", "scikit-learn")
GRID = {"n_estimators": [200, 400], "learning_rate": [0.05, 0.1], "max_depth": [4, 6]}


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(**setting, n_jobs=1, random_state=seed)


def paths(model: Any) -> dict[str, OneRow]:
    scaler, classifier = (step for _, step in model.steps)
    quick = OneRow(classifier.get_booster().inplace_predict, prepared=scaler.transform)
    return {**last_step(model), "booster.inplace_predict, row scaled before": quick}


def fit(split: Split, seed: int) -> Fitted:
    return search_and_fit(Search(build, GRID, paths=paths), split, seed)
