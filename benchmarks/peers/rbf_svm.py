"""Support vector machine with the Gaussian kernel and Platt scaling.

C and gamma come from at most 2,000 rows; the machine is then fitted on all of them. Gamma is in
units of scikit-learn's "scale", 1 / (columns x variance).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from suite_tables import take

from peers._columns import standardised
from peers._platt import with_probabilities
from peers._search import best_setting, described, inner_splits

NAME = "RBF-SVM"
NEEDS = ("sklearn",)
EXPENSIVE = True
GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.25, 1.0, 4.0]}
SEARCH_ROWS = 2_000


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z = prepare.transform(X)
    unit = 1.0 / (Z.shape[1] * Z.var())

    def build(setting: dict[str, Any], folds: int = 3) -> Any:
        machine = SVC(C=setting["C"], gamma=setting["gamma"] * unit, cache_size=500)
        return with_probabilities(machine, folds)

    some = take(y, min(len(y), SEARCH_ROWS), 10, np.random.default_rng(seed))
    setting = best_setting(build, GRID, Z[some], y[some], inner_splits(y[some], seed))
    return make_pipeline(prepare, build(setting, folds=5).fit(Z, y)), described(setting)
