"""Probabilities for support vector machines, by cross-validated Platt scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold


def with_probabilities(machine: Any, folds: int) -> Any:
    """One machine fitted on all rows, its sigmoids on scores of rows that it had not seen."""
    return CalibratedClassifierCV(machine, method="sigmoid", cv=Folds(folds), ensemble=False)


class Folds:
    """Stratified folds that do not refuse a class of fewer rows than folds."""

    def __init__(self, count: int) -> None:
        self.count = count

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        return StratifiedKFold(self.count).split(X, y)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.count
