"""Random forest of 500 trees; the smallest leaf by out-of-bag log-loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from peers._columns import ordinal

NAME = "RF"
NEEDS = ("sklearn",)
SMALLEST_LEAVES = (1, 2, 5)


def out_of_bag_loss(forest: Any, y: Any) -> float:
    """Log-loss of the trees that did not see a row; their probability of 0 counts as 1e-3."""
    p = forest.oob_decision_function_[np.arange(len(y)), y]
    return -float(np.log(np.clip(p, 1e-3, 1.0)).mean())


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = ordinal().fit(X)
    Z = prepare.transform(X)
    forests = [
        RandomForestClassifier(500, min_samples_leaf=leaf, oob_score=True, random_state=seed)
        for leaf in SMALLEST_LEAVES
    ]
    best = min(forests, key=lambda forest: out_of_bag_loss(forest.fit(Z, y), y))
    del best.oob_decision_function_  # not part of the model that is stored
    return make_pipeline(prepare, best), f"min_samples_leaf={best.min_samples_leaf}"
