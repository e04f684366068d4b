"""Probability intervals under measurement errors: ``probability_intervals``.

p_c = 1 / (1 + sum_k exp(S_k - S_c)). Within a box of errors, S_k - S_c grows by at most the largest
gain of class k over class c (``bounds.py``): a maximum over sums of columns and pairs of columns,
each at an end of one of its segments. Exact for one plane per class and two classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import column_place, encoded_rows
from geomix.geometry.bounds import ROUNDING, gains_over, straight_slopes
from geomix.geometry.column_radius import numbers_free
from geomix.geometry.search import class_scores
from geomix.geometry.segments import moves_of
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

HEADINGS = ("row", "label", "low", "probability", "high")


@dataclass(frozen=True, eq=False)
class ProbabilityIntervals:
    """low, probability, high : (n, C). For every row within the stated errors, the model's
    probabilities lie between ``low`` and ``high``."""

    classes: tuple[Any, ...]
    low: FloatArray
    probability: FloatArray
    high: FloatArray

    @property
    def is_certain(self) -> BoolArray:
        """(n,) rows whose predicted class no error within the stated ones changes."""
        best = self.probability.argmax(axis=1)
        rows = np.arange(len(best))
        others = self.high.copy()
        others[rows, best] = -np.inf
        certain: BoolArray = self.low[rows, best] > others.max(axis=1)
        return certain

    def to_frame(self) -> Any:
        return frame_of(self._records(), HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": plain(self._records())}

    def to_html(self) -> str:
        return html_of("intervals", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _records(self) -> list[dict[str, Any]]:
        parts = (self.low, self.probability, self.high)
        return [
            dict(zip(HEADINGS, (i, label, *(float(part[i, c]) for part in parts)), strict=True))
            for i in range(len(self.low))
            for c, label in enumerate(self.classes)
        ]

    def _table(self) -> SmallTable:
        rows = tuple(tuple(one.values()) for one in self._records())
        return SmallTable("Probabilities under the stated errors", HEADINGS, rows)


def probability_intervals(
    model: GeometricMixture, X: Any, errors: Mapping[Any, float]
) -> ProbabilityIntervals:
    """Bounds of every probability if each named column may be wrong by up to its error, in its
    own units, all at the same time.
    """
    form = additive(model)
    encoded = encoded_rows(model, X)
    box = _box(model, form, errors)
    P = model.answer("predict_proba", encoded)
    low, high = np.empty_like(P), np.empty_like(P)
    for i, row in enumerate(encoded):
        grow = _growth(form, row, box) / form.temperature
        S = class_scores(form, form.scores(row[None, :])[0]) / form.temperature
        gap = S[None, :] - S[:, None]  # [c, k] = S_k - S_c
        most, least = gap + grow, gap - grow.T
        np.fill_diagonal(most, 0.0)
        np.fill_diagonal(least, 0.0)
        with np.errstate(over="ignore"):
            low[i] = 1.0 / np.exp(most).sum(axis=1)
            high[i] = 1.0 / np.exp(least).sum(axis=1)
    return ProbabilityIntervals(
        tuple(model.classes.tolist()),
        np.minimum(low * (1.0 - ROUNDING), P),
        P,
        np.maximum(np.minimum(high * (1.0 + ROUNDING), 1.0), P),
    )


def _box(model: GeometricMixture, form: Additive, errors: Mapping[Any, float]) -> FloatArray:
    """(n_columns,) half-widths."""
    box = np.zeros(len(form.shapes))
    if not isinstance(errors, Mapping):
        raise TypeError(
            f"Got errors={errors!r}; expected a mapping from columns to the error of each."
        )
    for column, error in errors.items():
        j = column_place(model, column)
        if form.shapes[j].kind == "category":
            raise ValueError(f"Column {column!r} is a category; errors are of numbers.")
        if not 0.0 <= float(error) < np.inf:
            raise ValueError(f"Got error {error!r} of {column!r}; expected a number of at least 0.")
        box[j] = float(error)
    return box


def _growth(form: Additive, row: FloatArray, box: FloatArray) -> FloatArray:
    """[c, k]: the most by which s_k - s_c can grow within the box, (C, C)."""
    planes = form.planes
    straight = straight_slopes(form)
    n_classes = planes.n_classes
    grow = np.zeros((n_classes, n_classes))
    if straight is not None and planes.n_members == 1:
        reach = straight * np.where(np.isnan(row), 0.0, box)
        between = np.abs(reach[None] - reach[:, None]).sum(axis=2)
        starts = planes.class_start[:-1]
        by_row = np.maximum.reduceat(between, starts, axis=0)
        most: FloatArray = np.maximum.reduceat(by_row, starts, axis=1)
        return most
    if not (box > 0.0).any():
        return grow
    size = np.where(np.isnan(row), 0.0, box)
    free = numbers_free(form, row, np.ones(len(row)))
    moves = moves_of(form, row, replace(free, low=row - size, high=row + size))
    for c in range(n_classes):
        gains, class_of = gains_over(moves, c)
        np.maximum.at(grow[c], class_of, moves.most(gains))
    np.fill_diagonal(grow, 0.0)
    return grow
