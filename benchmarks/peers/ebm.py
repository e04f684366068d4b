"""Explainable boosting machine with all defaults, on the raw frame."""

from __future__ import annotations

from typing import Any

NAME = "EBM"
NEEDS = ("interpret", "sklearn")
EXPENSIVE = True


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(random_state=seed, n_jobs=1).fit(X, y)
    return model, f"terms={len(model.term_names_)}"
