"""ProjectionDisplay: the rows on their two widest axes, with the wrong answers outlined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.cells import encoded_rows, model_schema
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of

MOST_ROWS = 3000
MOST_WRONG = 300  # rings; more of them hide the rows
# Marks get smaller in a crowd: full size up to this many rows.
ROWS_AT_FULL_SIZE = 500


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionDisplay:
    """Principal components of the standardised columns; a category counts as its 0/1 columns.

    Attributes
    ----------
    classes : labels of the classes
    points : (n_rows, 2) rows on the two axes of the largest variance
    explained : the shares of the variance that the two hold
    codes, predicted : (n_rows,) true class and answer
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    classes: tuple[Any, ...]
    points: FloatArray
    explained: tuple[float, float]
    codes: IntArray
    predicted: IntArray
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(cls, model: GeometricMixture, X: Any, y: Any) -> ProjectionDisplay:
        """Project rows ``X`` and predict them."""
        check_model(model)
        X, codes = labelled_rows(model, X, y)
        encoded = encoded_rows(model, X)
        U = _standardised(model, encoded)
        _, sizes, axes = np.linalg.svd(U, full_matrices=False)
        variance = sizes**2 / max(float((sizes**2).sum()), np.finfo(float).tiny)
        share = np.append(variance, 0.0)
        n_axes = min(2, len(axes))
        points = np.zeros((len(U), 2))
        points[:, :n_axes] = U @ axes[:n_axes].T
        answers = model.answer("class_scores", encoded).argmax(axis=1)
        explained = float(share[0]), float(share[1])
        return cls(tuple(model.classes.tolist()), points, explained, codes, answers)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> ProjectionDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y)

    @property
    def wrong(self) -> BoolArray:
        """(n_rows,) whether a row is predicted wrong."""
        return self.codes != self.predicted

    def frame(self) -> Any:
        """A line for each row."""
        labels = [self.classes[code] for code in self.codes]
        answers = [self.classes[code] for code in self.predicted]
        axes = {"first": self.points[:, 0], "second": self.points[:, 1]}
        return frame({"label": labels, "answer": answers, **axes})

    def plot(self, ax: Any = None) -> ProjectionDisplay:
        """Draw the rows by class; wrong answers have a ring. Of many rows, and of many wrong ones,
        an even selection."""
        ax = look.own_axes(5.4, 4.6) if ax is None else ax
        rows = _evenly(np.arange(len(self.codes)), MOST_ROWS)
        size = np.clip(np.sqrt(ROWS_AT_FULL_SIZE / len(rows)), 0.45, 1.0)
        for code in np.unique(self.codes):
            ax.scatter(
                *self.points[rows[self.codes[rows] == code]].T,
                s=14 * size,
                color=look.class_color(code),
                marker=look.class_marker(code),
                edgecolor="white",
                linewidth=0.4 * size,
                label=look.plain(self.classes[code]),
            )
        wrong = np.flatnonzero(self.wrong)
        ringed = _evenly(wrong, MOST_WRONG)
        some = f", {len(ringed)} ringed" if len(ringed) < len(wrong) else ""
        ax.scatter(
            *self.points[ringed].T,
            s=70 * np.clip(np.sqrt(60 / max(len(ringed), 1)), 0.45, 1.0),
            facecolor="none",
            edgecolor=look.INK,
            linewidth=1.1 if len(ringed) <= 60 else 0.7,
            label=f"wrong ({len(wrong)} of {len(self.codes)}{some})",
        )
        first, second = (f"{share:.0%} of the variance" for share in self.explained)
        ax.set(xlabel=f"first axis ({first})", ylabel=f"second axis ({second})")
        look.quiet_frame(ax)
        look.legend_above(ax)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png


def _evenly(rows: IntArray, most: int) -> IntArray:
    """At most ``most`` of the rows, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)] if len(rows) > most else rows


def _standardised(model: GeometricMixture, encoded: FloatArray) -> FloatArray:
    """Centred columns of deviation one, 0/1 columns of levels as they are; missing is the mean."""
    parts = []
    for j, column in enumerate(model_schema(model).columns):
        x = encoded[:, j : j + 1]
        if column.kind == "category":
            parts.append((x == np.arange(column.n_levels)).astype(float))
            continue
        there = ~np.isnan(x)
        scale = float(x[there].std()) if there.any() else 0.0
        mean = float(x[there].mean()) if there.any() else 0.0
        parts.append(np.where(there, (x - mean) / (scale or 1.0), 0.0))
    U = np.hstack(parts)
    centred: FloatArray = U - U.mean(axis=0)
    return centred
