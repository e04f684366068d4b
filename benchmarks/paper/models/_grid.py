"""Search over a grid on the validation rows, refit on train + validation, one temperature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import now, since

from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.pooling import softmax
from paper.data import Split
from paper.models import Fitted, OneRow, Score

Setting = dict[str, Any]


def most_probable(model: Any, X: Any) -> Any:
    return model.predict(X)


def last_step(model: Any) -> dict[str, OneRow]:
    """The whole pipeline, and the classifier alone on a row that was scaled beforehand."""
    scaler, classifier = (step for _, step in model.steps)
    return {
        "pipeline.predict_proba": OneRow(model.predict_proba),
        "predict_proba, row scaled before": OneRow(
            classifier.predict_proba, prepared=scaler.transform
        ),
    }


@dataclass(frozen=True)
class Search:
    """``build(setting, seed, n_rows)`` makes the classifier that follows standardisation.

    ``predict`` is for models whose decision is not their most probable class; ``paths`` names
    the ways to ask the fitted pipeline about one row.
    """

    build: Callable[[Setting, int, int], Any]
    grid: dict[str, list[Any]]
    predict: Callable[[Any, Any], Any] = most_probable
    paths: Callable[[Any], dict[str, OneRow]] = last_step
    contributions: Callable[[Any], Callable[[Any], Any]] | None = None
    terms: Callable[[Any], tuple[tuple[int, ...], ...]] = lambda model: ()


def search_and_fit(search: Search, split: Split, seed: int) -> Fitted:
    start = now()
    setting, temperature, on_train = best_setting(search, split, seed)
    start_of_fit = now()
    model = fitted(search, setting, split.X_learn, split.y_learn, seed)
    fit, total = since(start_of_fit), since(start)
    return Fitted(
        predict=lambda X: search.predict(model, X),
        before=model.predict_proba,
        after=lambda X: softmax(log_probabilities(model.predict_proba(X)) / temperature),
        paths=search.paths(model),
        fit=fit,
        total=total,
        chosen=" ".join(f"{key}={value}" for key, value in setting.items()),
        contributions=search.contributions and search.contributions(model),
        terms=search.terms(model),
        on_train=Score(
            lambda X: search.predict(on_train, X),
            lambda X: softmax(log_probabilities(on_train.predict_proba(X)) / temperature),
        ),
    )


def best_setting(search: Search, split: Split, seed: int) -> tuple[Setting, float, Any]:
    """The setting that does best on the validation rows, the temperature fitted on them, and the
    model with that setting, which was fitted on the training rows."""
    best: tuple[tuple[float, float], Setting, Any, Any] | None = None
    for setting in ParameterGrid(search.grid):
        model = fitted(search, setting, split.X_train, split.y_train, seed)
        P = model.predict_proba(split.X_valid)
        accuracy = accuracy_score(split.y_valid, search.predict(model, split.X_valid))
        rank = (accuracy, -log_loss(split.y_valid, P, labels=np.arange(P.shape[1])))
        if best is None or rank > best[0]:
            best = rank, setting, P, model
    assert best is not None
    _, setting, P, model = best
    # The prior that geomix uses itself: on 30 validation rows, all right, T would run to zero.
    S = log_probabilities(P)
    return setting, fit_temperature(S, split.y_valid, None, PRIOR_SCALE), model


def fitted(search: Search, setting: Setting, X: Any, y: Any, seed: int) -> Any:
    model = make_pipeline(StandardScaler(), search.build(setting, seed, len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # epochs are part of the MLP's grid
        return model.fit(X, y)


def log_probabilities(P: Any) -> Any:
    """log p with the floor that scikit-learn's log-loss has: a forest returns 0 and 1."""
    return np.log(np.clip(P, np.finfo(float).eps, 1.0))
