"""Generalised additive model (pygam): a spline per column; several classes one against the rest.

Columns have twelve basis functions, or six where there are more than five columns: pygam's 20
would be more than the training rows of wine. Its own penalty leaves straight lines free, so that
its Newton steps run off where classes separate (digits: accuracy 0.44); a ridge beside it, chosen
on the validation rows, ends that.
"""

from __future__ import annotations

import contextlib
import io
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from paper.data import Split
from paper.models import Fitted
from paper.models._grid import Search, search_and_fit

NAME, PAPER = "GAM", "GAM"
NEEDS, PACKAGES = ("pygam",), ("pygam", "scikit-learn")
GRID = {"ridge": [0.1, 1.0]}
SMOOTHING = 0.6  # pygam's own
FEW_COLUMNS = 5


def one_against_rest(X: Any, own: Any, ridge: float) -> Any:
    from pygam import LogisticGAM, s

    n_splines = 12 if X.shape[1] <= FEW_COLUMNS else 6
    shape = {"penalties": ["derivative", "l2"], "lam": [SMOOTHING, ridge], "n_splines": n_splines}
    terms = reduce(add, (s(column, **shape) for column in range(X.shape[1])))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints if it did not converge
        return LogisticGAM(terms).fit(X, own.astype(int))


class AdditiveModel(ClassifierMixin, BaseEstimator):
    """pygam's LogisticGAM for any number of classes; constant columns are left out."""

    def __init__(self, ridge: float = 0.1) -> None:
        self.ridge = ridge

    def fit(self, X: Any, y: Any) -> AdditiveModel:
        self.classes_ = np.unique(y)
        self.kept_ = np.ptp(X, axis=0) > 0.0
        wins = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.models_ = [
            one_against_rest(X[:, self.kept_], y == label, self.ridge) for label in wins
        ]
        return self

    def predict_proba(self, X: Any) -> Any:
        shares = np.column_stack([gam.predict_proba(X[:, self.kept_]) for gam in self.models_])
        if len(self.models_) == 1:
            return np.column_stack([1.0 - shares, shares])
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def terms(self, X: Any) -> Any:
        """What each column adds to the log-odds of the predicted class, (n_rows, n_columns)."""
        rows = X[:, self.kept_]
        winner = self.predict_proba(X).argmax(axis=1)
        of = np.zeros(len(rows), dtype=int) if len(self.models_) == 1 else winner
        added = np.empty(rows.shape)
        for code, gam in enumerate(self.models_):
            own = of == code
            if own.any():
                added[own] = np.column_stack(
                    [gam.partial_dependence(term, X=rows[own]) for term in range(rows.shape[1])]
                )
        return added


def build(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return AdditiveModel(**setting)


def contributions(model: Any) -> Any:
    scaler, gam = (step for _, step in model.steps)
    return lambda X: gam.terms(scaler.transform(X))


def terms(model: Any) -> tuple[tuple[int, ...], ...]:
    _, gam = (step for _, step in model.steps)
    return tuple((int(column),) for column in np.flatnonzero(gam.kept_))


def fit(split: Split, seed: int) -> Fitted:
    search = Search(build, GRID, contributions=contributions, terms=terms)
    return search_and_fit(search, split, seed)
