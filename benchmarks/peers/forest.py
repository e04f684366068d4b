"""Random forest of 500 trees; leaves and columns per split by out-of-bag log-loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline

from peers._columns import ordinal
from peers._search import WIDE, described
from peers._votes import OneMoreVote

NAME = "RF"
NEEDS = ("sklearn",)
TREES = 500
OUT_OF_BAG = 0.37  # of the trees have not seen a given row
GRID: dict[str, list[Any]] = {"min_samples_leaf": [1, 3], "max_features": ["sqrt", 0.4]}
# On wide tables 0.4 of the columns is many times their root, in number and in time.
WIDE_GRID: dict[str, list[Any]] = {"min_samples_leaf": [1, 3]}


def out_of_bag_loss(votes: OneMoreVote, y: Any) -> float:
    P = votes.smooth(votes.estimator.oob_decision_function_, OUT_OF_BAG * TREES)
    return -float(np.log(P[np.arange(len(y)), y]).mean())


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = ordinal().fit(X)
    Z = prepare.transform(X)

    def grown(setting: dict[str, Any]) -> Any:
        forest = RandomForestClassifier(TREES, **setting, oob_score=True, random_state=seed)
        votes = OneMoreVote(forest, TREES).fit(Z, y)
        return out_of_bag_loss(votes, y), votes, described(setting)

    grid = ParameterGrid(GRID if Z.shape[1] <= WIDE else WIDE_GRID)
    _, best, chosen = min(map(grown, grid), key=lambda one: one[0])
    del best.estimator.oob_decision_function_  # not part of the model that is stored
    return make_pipeline(prepare, best), chosen
