"""Shares of votes as probabilities: one more vote, cast by the frequencies of the classes.

Bare shares are 0 wherever all voters agree. Log-loss is then dominated by those rows, and asks
for fifty neighbours where three are right. With n voters, shares p and frequencies f it sees

    (n p + f) / (n + 1)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class OneMoreVote(ClassifierMixin, BaseEstimator):
    """``estimator`` is fitted in place; ``n_voters`` is how many of its votes make a share."""

    def __init__(self, estimator: Any, n_voters: int) -> None:
        self.estimator = estimator
        self.n_voters = n_voters

    def fit(self, X: Any, y: Any) -> OneMoreVote:
        self.classes_ = self.estimator.fit(X, y).classes_
        self.frequencies_ = np.unique(y, return_counts=True)[1] / len(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.smooth(self.estimator.predict_proba(X), self.n_voters)

    def smooth(self, shares: Any, n_voters: float) -> Any:
        return (n_voters * shares + self.frequencies_) / (n_voters + 1.0)
