"""Inner splits and searches over settings, by log-loss, from training rows alone.

Small tables are cut into five folds, larger ones lose a fifth of their rows: a choice from 30
rows would be noise, and five fits on 10,000 rows would cost more than they improve.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from suite_tables import take

SMALL, MEDIUM = 1_000, 5_000  # rows
WIDE = 100  # columns; above that, trees look at fewer of them, and at fewer settings
VALID_SHARE = 0.2

Setting = dict[str, Any]
Fold = tuple[Any, Any]


def inner_splits(y: Any, seed: int, medium_folds: int = 1) -> list[Fold]:
    """Pairs (train, valid) of row numbers: 5 up to 1,000 rows, ``medium_folds`` up to 5,000."""
    folds = 5 if len(y) < SMALL else medium_folds if len(y) < MEDIUM else 1
    if folds == 1:
        train = take(y, round((1 - VALID_SHARE) * len(y)), 1, np.random.default_rng(seed))
        return [(train, np.setdiff1d(np.arange(len(y)), train))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of fewer rows than folds
        found = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y))
    return [with_every_class(y, *fold) for fold in found]


def with_every_class(y: Any, train: Any, valid: Any) -> Fold:
    """The only row of a class stays in training: XGBoost wants every code there."""
    lost = ~np.isin(y[valid], y[train])
    return np.append(train, valid[lost]), valid[~lost]


def best_setting(
    build: Callable[[Setting], Any], grid: dict[str, list[Any]], X: Any, y: Any, folds: list[Fold]
) -> Setting:
    """The setting of least held-out log-loss; ``build(setting)`` makes an unfitted model."""

    def loss(setting: Setting) -> float:
        return float(np.mean([held_out_loss(build(setting), X, y, fold) for fold in folds]))

    return min(ParameterGrid(grid), key=loss)


def held_out_loss(model: Any, X: Any, y: Any, fold: Fold) -> float:
    train, valid = fold
    model.fit(rows_of(X, train), y[train])
    return loss_of(model, rows_of(X, valid), y[valid])


def loss_of(model: Any, X: Any, y: Any) -> float:
    """Log-loss; a class that the model has not seen gets probability zero, clipped."""
    P = np.zeros((len(y), max(int(y.max()), int(model.classes_.max())) + 1))
    P[:, model.classes_.astype(int)] = model.predict_proba(X)
    return -float(np.log(np.clip(P[np.arange(len(y)), y], 1e-15, 1.0)).mean())


def best_rounds(
    learn: Callable[[Setting, Any, Any], tuple[float, int]],
    settings: Iterable[Setting],
    folds: list[Fold],
) -> tuple[Setting, int]:
    """The setting of least mean loss, and the median of the rounds at which its folds stopped.

    ``learn(setting, train, valid)`` gives the least held-out loss and the round it came with.
    """
    found = []
    for setting in settings:
        losses, rounds = zip(*(learn(setting, *fold) for fold in folds), strict=True)
        found.append((float(np.mean(losses)), setting, max(1, round(float(np.median(rounds))))))
    _, setting, n_rounds = min(found, key=lambda one: one[0])
    return setting, n_rounds


def rows_of(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def described(setting: Setting) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())
