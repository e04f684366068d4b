"""Plane cards: one summary per plane.

From the model alone: the plane's class and its strongest columns. From rows: how many rows it
answers and a typical one. From labels: purity, calibration and its share of the errors. A plane
*answers* a row if its class is predicted and it is the strongest plane of that class. In an
ensemble each member has one answering plane per row.

Adding one function to every plane changes no probability, so cards describe planes less their mean
over the classes (``Additive.centred``).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import decoded_row, model_schema
from geomix.explain.contributions import by_raw_column, plane_gradients, standardised
from geomix.explain.local_explanation import plane_places
from geomix.explain.plane_names import plane_of_class
from geomix.explain.shapes import LevelShape
from geomix.model import GeometricMixture
from geomix.table.printing import plain

STEADY = 0.95  # a direction needs one sign of the gradient in this share of the rows


@dataclass(frozen=True)
class ColumnStrength:
    """How strongly a column changes a plane's score.

    strength : with rows, the standard deviation over them of what the column adds; without,
        half its range, a missing cell included, or the rise of a straight line over one standard
        deviation. For a Fourier model, the mean absolute gradient per standard deviation, an
        approximation
    direction : "rises", "falls" or "bends"; of a category "from a to b", lowest to highest level
    """

    column: str
    strength: float
    direction: str


@dataclass(frozen=True)
class PlaneCard:
    """One plane. Facts that need rows or labels are None without them.

    label, plane, member : the class, the plane's position in it, and its ensemble member
    columns : its strongest columns, strongest first
    usage : share of all rows that it answers;  own_usage : share of its class's rows whose
        strongest plane it is, whatever class is predicted
    n_rows : rows that it answers
    purity : share of those that belong to its class;  confidence : mean probability of its class
        there. The two agree if calibrated; ``calibration_error`` is their difference
    error_share : share of all errors that this plane makes
    typical : medians and most frequent levels of the rows that it answers
    """

    label: Any
    plane: int
    member: int
    columns: tuple[ColumnStrength, ...]
    usage: float | None = None
    own_usage: float | None = None
    n_rows: int | None = None
    purity: float | None = None
    confidence: float | None = None
    error_share: float | None = None
    typical: dict[str, Any] | None = None

    @property
    def calibration_error(self) -> float | None:
        """confidence - purity: positive if the plane is overconfident."""
        if self.confidence is None or self.purity is None:
            return None
        return self.confidence - self.purity

    @property
    def name(self) -> str:
        """For people, counted from 1: "a/1", or "a/1 (member 3)" in an ensemble."""
        return plane_of_class(self.label, self.plane, self.member)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        facts: dict[str, Any] = plain(asdict(self))
        return facts | {"calibration_error": plain(self.calibration_error)}


@dataclass(frozen=True, eq=False)
class AnsweredRows:
    """Rows with the model's answers.

    encoded : (n, n_columns);  y : (n,) class codes or None;  P : (n, C);  A : (n, P)
    predicted : (n,) codes;  strongest : (n, P) whether a plane leads its class within its member
    """

    encoded: FloatArray
    y: IntArray | None
    P: FloatArray
    A: FloatArray
    predicted: IntArray
    strongest: BoolArray


def answered_rows(model: GeometricMixture, encoded: FloatArray, y: IntArray | None) -> AnsweredRows:
    """Predict the rows once, for all cards."""
    P = model.answer("predict_proba", encoded)
    A = model.answer("responsibilities", encoded)
    predicted = model.answer("class_scores", encoded).argmax(axis=1)
    return AnsweredRows(encoded, y, P, A, predicted, leads(model, A))


def leads(model: GeometricMixture, A: FloatArray) -> BoolArray:
    """(n, P) whether a plane has the largest responsibility of its class and member; the
    first one in a tie."""
    planes = model.planes
    out = np.zeros(A.shape, dtype=bool)
    for first, end in pairwise(planes.pool_starts.tolist()):
        out[np.arange(len(A)), first + A[:, first:end].argmax(axis=1)] = True
    return out


def plane_cards(
    model: GeometricMixture, rows: AnsweredRows | None = None, n_columns: int = 5
) -> tuple[PlaneCard, ...]:
    """A card for every plane, in plane order."""
    strengths = _strengths(model, None if rows is None else rows.encoded)
    plane_of, member_of = plane_places(model)
    labels = model.classes.tolist()
    cards = []
    for p, code in enumerate(model.planes.class_of.tolist()):
        facts = {} if rows is None else _facts(model, rows, p, code)
        order = np.argsort(-strengths.size[p], kind="stable")[:n_columns]
        columns = tuple(
            ColumnStrength(model.columns[j], float(strengths.size[p, j]), strengths.direction[p][j])
            for j in order
            if strengths.size[p, j] > 0.0
        )
        cards.append(PlaneCard(labels[code], int(plane_of[p]), int(member_of[p]), columns, **facts))
    return tuple(cards)


def _facts(model: GeometricMixture, rows: AnsweredRows, p: int, code: int) -> dict[str, Any]:
    """Facts about plane ``p`` of class ``code`` from rows."""
    leading = rows.strongest[:, p]
    answered = leading & (rows.predicted == code)
    n_rows = int(answered.sum())
    facts: dict[str, Any] = {"n_rows": n_rows, "usage": float(answered.mean())}
    if n_rows:
        facts["confidence"] = float(rows.P[answered, code].mean())
        facts["typical"] = decoded_row(model, typical_row(model, rows.encoded[answered]))
    if rows.y is None:
        return facts
    own, wrong = rows.y == code, rows.predicted != rows.y
    if own.any():
        facts["own_usage"] = float(leading[own].mean())
    if n_rows:
        facts["purity"] = float(own[answered].mean())
    facts["error_share"] = float(answered[wrong].mean()) if wrong.any() else 0.0
    return facts


def typical_row(model: GeometricMixture, encoded: FloatArray) -> FloatArray:
    """Median of each number, most frequent code of each category; NaN where most are missing."""
    middle = np.full(encoded.shape[1], np.nan)
    for j, is_category in enumerate(model_schema(model).is_category.tolist()):
        present = encoded[~np.isnan(encoded[:, j]), j]
        if 2 * len(present) < len(encoded):
            continue
        if is_category:
            found, counts = np.unique(present, return_counts=True)
            middle[j] = found[counts.argmax()]
        else:
            # An observed value rather than the mean of two: the column may hold integers.
            middle[j] = np.sort(present)[len(present) // 2]
    return middle


@dataclass(frozen=True, eq=False)
class _Strengths:
    """size : (P, n_columns);  direction : names, by plane and column."""

    size: FloatArray
    direction: list[list[str]]


def _strengths(model: GeometricMixture, encoded: FloatArray | None) -> _Strengths:
    if not model.lift.is_additive:
        return _fourier_strengths(model, encoded)
    form = additive(model).centred()
    return _Strengths(_sizes(form, encoded), _directions(form))


def _sizes(form: Additive, encoded: FloatArray | None) -> FloatArray:
    if encoded is None or not len(encoded):
        return np.column_stack([shape.spread for shape in form.shapes])
    size = np.column_stack([_deviations(shape(encoded[:, shape.column])) for shape in form.shapes])
    # The deviation of a constant column is zero up to rounding.
    return np.where(size > 1e-12, size, 0.0)


def _deviations(F: FloatArray) -> FloatArray:
    """Standard deviation of each column, scaled by the maximum so that squares do not overflow."""
    top = np.maximum(np.abs(F).max(axis=0), np.finfo(float).tiny)
    return (F / top).std(axis=0) * top


def _directions(form: Additive) -> list[list[str]]:
    by_column = []
    for shape in form.shapes:
        if isinstance(shape, LevelShape) and not shape.levels:
            by_column.append(["bends"] * len(shape.values))
        elif isinstance(shape, LevelShape):
            ends = zip(shape.values.argmin(axis=1), shape.values.argmax(axis=1), strict=True)
            by_column.append([f"from {shape.levels[a]} to {shape.levels[b]}" for a, b in ends])
        else:
            by_column.append([{1: "rises", -1: "falls", 0: "bends"}[d] for d in shape.direction])
    return [list(row) for row in zip(*by_column, strict=True)]


def _fourier_strengths(model: GeometricMixture, encoded: FloatArray | None) -> _Strengths:
    """Mean absolute gradient per standard deviation over the rows; zero without rows."""
    n_planes = model.planes.n_planes
    size = np.zeros((n_planes, model.n_features))
    direction = [["bends"] * model.n_features for _ in range(n_planes)]
    if encoded is None or not len(encoded):
        return _Strengths(size, direction)
    U = standardised(model, encoded)
    mean = (1.0 / (model.planes.n_classes * model.planes.per_class))[model.planes.class_of]
    for p in range(n_planes):
        D = np.broadcast_to(np.eye(n_planes)[p] - mean, (len(U), n_planes))
        slope = by_raw_column(model, plane_gradients(model, U, D))
        size[p] = np.abs(slope).mean(axis=0)
        rises = (slope > 0.0).mean(axis=0)
        direction[p] = [
            "rises" if up >= STEADY else "falls" if up <= 1.0 - STEADY else "bends" for up in rises
        ]
    return _Strengths(size, direction)
