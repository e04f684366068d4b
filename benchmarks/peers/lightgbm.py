"""LightGBM: few or many leaves and the rounds by early stopping, then a fit on all rows."""

from __future__ import annotations

from typing import Any

from peers._search import SMALL, WIDE, best_rounds, described, inner_splits, rows_of

NAME = "LightGBM"
NEEDS = ("lightgbm", "sklearn")
SETTINGS = ({"num_leaves": 8}, {"num_leaves": 31})
WIDE_SETTINGS = SETTINGS[1:]
MOST_ROUNDS, PATIENCE = 2_000, 50


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from lightgbm import LGBMClassifier, early_stopping

    def build(setting: dict[str, Any], rounds: int) -> Any:
        return LGBMClassifier(
            **setting,
            n_estimators=rounds,
            learning_rate=0.05,
            min_child_samples=5 if len(y) < SMALL else 20,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.8 if X.shape[1] <= WIDE else 0.3,
            reg_lambda=0.1,  # at 0, leaves of rare classes run off (shuttle)
            random_state=seed,
            n_jobs=1,
            verbose=-1,
        )

    def learn(setting: dict[str, Any], train: Any, valid: Any) -> tuple[float, int]:
        model = build(setting, MOST_ROUNDS).fit(
            rows_of(X, train),
            y[train],
            eval_set=[(rows_of(X, valid), y[valid])],
            callbacks=[early_stopping(PATIENCE, verbose=False)],
        )
        (loss,) = model.best_score_["valid_0"].values()
        return loss, model.best_iteration_

    settings = SETTINGS if X.shape[1] <= WIDE else WIDE_SETTINGS
    setting, rounds = best_rounds(learn, settings, inner_splits(y, seed))
    return build(setting, rounds).fit(X, y), f"{described(setting)} rounds={rounds}"
