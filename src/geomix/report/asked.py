"""The rows of a report as the model answered them: predicted once, shown in many places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.cells import class_codes, encoded_rows
from geomix.model import GeometricMixture
from geomix.table.frames import taken

MOST_ROWS = 4000


@dataclass(frozen=True, eq=False)
class Asked:
    """Raw rows X as the model read and answered them.

    encoded : (n, n_columns);  y, predicted : (n,) codes;  P : (n, n_classes) probabilities;
    some : places of the rows for cards, curves and rules.
    """

    model: GeometricMixture
    X: Any
    encoded: FloatArray
    y: IntArray
    P: FloatArray
    predicted: IntArray
    some: IntArray

    @property
    def some_rows(self) -> tuple[Any, Any]:
        """Raw rows and labels for what is not made from all rows."""
        return taken(self.X, self.some), self.model.classes[self.y[self.some]]


def ask(model: GeometricMixture, X: Any, y: Any) -> Asked:
    """Ask the model once for every row."""
    encoded = encoded_rows(model, X)
    codes = class_codes(model, y, len(encoded))
    P = model.answer("predict_proba", encoded)
    predicted = model.answer("class_scores", encoded).argmax(axis=1)
    some = np.arange(len(codes))
    if len(some) > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(some), MOST_ROWS, replace=False))
    return Asked(model, X, encoded, codes, P, predicted, some)
