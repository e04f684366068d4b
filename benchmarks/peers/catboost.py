"""CatBoost with its own treatment of categories; rounds by early stopping, then all rows."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from peers._columns import CATEGORIES
from peers._search import best_rounds, inner_splits, rows_of

NAME = "CatBoost"
NEEDS = ("catboost", "sklearn")
EXPENSIVE = True
MOST_ROUNDS, PATIENCE = 2_000, 50


def with_texts(X: Any) -> Any:
    """Categories as text, a missing one as the level that CatBoost's guide suggests."""
    return X.assign(
        **{name: X[name].astype(object).where(X[name].notna(), "nan") for name in CATEGORIES(X)}
    )


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from catboost import CatBoostClassifier

    several = len(set(y)) > 2
    texts = with_texts(X)

    def build(rounds: int) -> Any:
        return CatBoostClassifier(
            iterations=rounds,
            learning_rate=0.05,
            loss_function="MultiClass" if several else "Logloss",
            cat_features=CATEGORIES(X),
            random_seed=seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )

    def learn(setting: dict[str, Any], train: Any, valid: Any) -> tuple[float, int]:
        model = build(MOST_ROUNDS).fit(
            rows_of(texts, train),
            y[train],
            eval_set=(rows_of(texts, valid), y[valid]),
            early_stopping_rounds=PATIENCE,
        )
        (loss,) = model.get_best_score()["validation"].values()
        return loss, model.get_best_iteration() + 1

    _, rounds = best_rounds(learn, [{}], inner_splits(y, seed))
    model = build(rounds).fit(texts, y)
    return make_pipeline(FunctionTransformer(with_texts), model), f"rounds={rounds}"
