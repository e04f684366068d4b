"""Perceptron with early stopping: size and penalty by inner folds, epochs by held-out log-loss.

scikit-learn's own early stopping watches the accuracy of a tenth of the rows, which on small
tables stops at once; so epochs are run one by one here, and the last fit is on all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from peers._columns import standardised
from peers._search import best_rounds, described, inner_splits, loss_of

NAME = "MLP"
NEEDS = ("sklearn",)
GRID = {"hidden_layer_sizes": [(128,), (256, 128)], "alpha": [1e-4, 0.3]}
MOST_EPOCHS, PATIENCE = 300, 20


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    prepare = standardised().fit(X)
    Z, codes = prepare.transform(X).astype(np.float32), np.unique(y)

    def build(setting: dict[str, Any]) -> Any:
        batch = int(np.clip(len(y) // 20, 16, 128))
        return MLPClassifier(**setting, batch_size=batch, random_state=seed)

    def learn(setting: dict[str, Any], train: Any, valid: Any) -> tuple[float, int]:
        model, best = build(setting), (np.inf, 0)
        for epoch in range(1, MOST_EPOCHS + 1):
            model.partial_fit(Z[train], y[train], classes=codes)
            best = min(best, (loss_of(model, Z[valid], y[valid]), epoch))
            if epoch - best[1] >= PATIENCE:
                break
        return best

    setting, epochs = best_rounds(learn, ParameterGrid(GRID), inner_splits(y, seed))
    model = build(setting)
    for _ in range(epochs):
        model.partial_fit(Z, y, classes=codes)
    return make_pipeline(prepare, model), f"{described(setting)} epochs={epochs}"
