"""XGBoost: shallow or deep trees and the rounds by early stopping, then a fit on all rows."""

from __future__ import annotations

from typing import Any

from peers._search import WIDE, best_rounds, described, inner_splits, rows_of

NAME = "XGBoost"
NEEDS = ("xgboost", "sklearn")
SETTINGS = ({"max_depth": 3}, {"max_depth": 6})
WIDE_SETTINGS = SETTINGS[1:]
MOST_ROUNDS, PATIENCE = 2_000, 50


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from xgboost import XGBClassifier

    def build(setting: dict[str, Any], rounds: int, **stopping: Any) -> Any:
        return XGBClassifier(
            **setting,
            **stopping,
            n_estimators=rounds,
            learning_rate=0.05,
            subsample=0.8,
            colsample_bytree=0.8 if X.shape[1] <= WIDE else 0.3,
            tree_method="hist",
            enable_categorical=True,
            random_state=seed,
            n_jobs=1,
        )

    def learn(setting: dict[str, Any], train: Any, valid: Any) -> tuple[float, int]:
        model = build(setting, MOST_ROUNDS, early_stopping_rounds=PATIENCE)
        held_out = [(rows_of(X, valid), y[valid])]
        model.fit(rows_of(X, train), y[train], eval_set=held_out, verbose=False)
        return model.best_score, model.best_iteration + 1

    settings = SETTINGS if X.shape[1] <= WIDE else WIDE_SETTINGS
    setting, rounds = best_rounds(learn, settings, inner_splits(y, seed))
    return build(setting, rounds).fit(X, y), f"{described(setting)} rounds={rounds}"
