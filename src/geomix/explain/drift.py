"""Drift as the model sees it: in the planes that answer, and in the columns that cause it.

Every row falls into one cell: the predicted class and its strongest plane. If both tables come from
one population, twice the log-likelihood ratio of the counts,

    G = 2 sum over tables and cells of  O log(O / E),

is chi-squared with (cells in use - 1) degrees of freedom (the G-test). Small expected counts make
that approximate; ``smallest_expected`` is the smallest one. A cell's own part of G shows where the
drift is. ``column_drift.py`` names the columns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from geomix.arrays import FloatArray, IntArray
from geomix.explain.cells import encoded_rows
from geomix.explain.column_drift import ColumnDrift, column_drift
from geomix.explain.local_explanation import plane_places
from geomix.explain.plane_names import counted_from_one, plane_of_class
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain
from geomix.table.row_views import blocks


@dataclass(frozen=True)
class PlaneDrift:
    """A plane's cell: counts, shares of the rows, their difference, and its part of G."""

    label: Any
    plane: int
    member: int
    n_reference: int
    n_new: int
    share_reference: float
    share_new: float
    change: float
    g: float

    @property
    def name(self) -> str:
        """For people, counted from 1: "a/1"."""
        return plane_of_class(self.label, self.plane, self.member)


@dataclass(frozen=True)
class Drift:
    """g, degrees, p_value : of the G-test;  smallest_expected : count of a cell in use
    confidence_reference, confidence_new : mean probability of the answers
    planes : a line for each plane, the largest parts of G first
    columns : a line for each column, the largest part of the change of the class scores first;
        empty if only counts were compared
    """

    g: float
    degrees: int
    p_value: float
    smallest_expected: float
    n_reference: int
    n_new: int
    confidence_reference: float
    confidence_new: float
    planes: tuple[PlaneDrift, ...]
    columns: tuple[ColumnDrift, ...] = ()

    def to_frame(self) -> Any:
        return frame_of([asdict(one) for one in self.planes], HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = plain(asdict(self))
        return facts

    def to_html(self) -> str:
        return html_of("drift", self._tables())

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    def columns_frame(self) -> Any:
        """A pandas frame with a line for each column; ``to_frame`` has the planes."""
        return frame_of([asdict(one) for one in self.columns], COLUMN_HEADINGS)

    def _tables(self) -> list[SmallTable]:
        tables = [self._table()]
        if self.columns:
            rows = tuple(tuple(asdict(one).values()) for one in self.columns)
            title = "Columns, by their share of the change of the class scores"
            tables.append(SmallTable(title, COLUMN_HEADINGS, rows))
        return tables

    def _table(self) -> SmallTable:
        title = (
            f"G = {self.g:.4g} with {self.degrees} degrees of freedom, p = {self.p_value:.3g}; "
            f"{self.n_reference} rows against {self.n_new}; mean confidence "
            f"{self.confidence_reference:.1%} against {self.confidence_new:.1%}"
        )
        rows = tuple(tuple(counted_from_one(asdict(one)).values()) for one in self.planes)
        return SmallTable(title, HEADINGS, rows)


HEADINGS = (
    "label",
    "plane",
    "member",
    "n_reference",
    "n_new",
    "share_reference",
    "share_new",
    "change",
    "g",
)


COLUMN_HEADINGS = (
    "column",
    "distance",
    "p_value",
    "missing_reference",
    "missing_new",
    "label",
    "effect",
    "share",
)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """rows : (P,) by the strongest plane of the class that wins them;  confidence : mean
    probability of the answers"""

    rows: IntArray
    confidence: float

    def __add__(self, other: CellCounts) -> CellCounts:
        n_mine, n_its = int(self.rows.sum()), int(other.rows.sum())
        total = n_mine * self.confidence + n_its * other.confidence
        return CellCounts(self.rows + other.rows, total / max(n_mine + n_its, 1))


def cell_counts(model: GeometricMixture, X: Any) -> CellCounts:
    """What ``compare`` needs to know of a table, small enough to be kept."""
    return _counts(model, encoded_rows(model, X))


def _counts(model: GeometricMixture, encoded: FloatArray) -> CellCounts:
    rows, confidence = np.zeros(model.planes.n_planes, dtype=np.intp), 0.0
    for _, block in blocks(encoded):
        rows += _cell_counts(model, block)
        confidence += float(model.answer("predict_proba", block).max(axis=1).sum())
    # Without the last digits of the sum, which depend on the order of the rows.
    return CellCounts(rows, float(f"{confidence / max(len(encoded), 1):.12g}"))


def compare(model: GeometricMixture, X_reference: Any, X_new: Any) -> Drift:
    """Drift from ``X_reference`` to ``X_new``, in the model's planes and columns."""
    counts = [cell_counts(model, X) for X in (X_reference, X_new)]
    return with_columns(compare_counts(model, *counts), model, X_reference, X_new)


def with_columns(found: Drift, model: GeometricMixture, X_reference: Any, X_new: Any) -> Drift:
    """``found`` with the drift of each column, from rows of both tables."""
    tables = [encoded_rows(model, X) for X in (X_reference, X_new)]
    return replace(found, columns=column_drift(model, *tables))


def compare_counts(model: GeometricMixture, reference: CellCounts, new: CellCounts) -> Drift:
    """The same from counts alone, which a model can remember of the rows it was trained on."""
    for name, one in (("X_reference", reference), ("X_new", new)):
        if not one.rows.sum():
            raise ValueError(f"{name} has no rows.")
    counts = np.stack([reference.rows, new.rows])
    by_cell = _g_by_cell(counts)
    used = counts.sum(axis=0) > 0
    degrees = max(int(used.sum()) - 1, 0)
    g = float(by_cell.sum())
    sums = counts.sum(axis=1)
    expected = np.outer(sums, counts.sum(axis=0)) / counts.sum()
    return Drift(
        g,
        degrees,
        float(chdtrc(degrees, g)) if degrees else 1.0,
        float(expected[:, used].min()),
        int(sums[0]),
        int(sums[1]),
        reference.confidence,
        new.confidence,
        _lines(model, counts, by_cell),
    )


def _cell_counts(model: GeometricMixture, encoded: FloatArray) -> IntArray:
    """Rows by the strongest plane of the class that wins them, (P,)."""
    code = model.answer("class_scores", encoded).argmax(axis=1)
    A = model.answer("responsibilities", encoded)
    own = np.where(model.planes.class_of == code[:, None], A, -1.0)
    return np.bincount(own.argmax(axis=1), minlength=model.planes.n_planes)


def _g_by_cell(counts: IntArray) -> FloatArray:
    """(P,) parts of G; a count of zero adds nothing."""
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    by_cell: FloatArray = 2.0 * parts.sum(axis=0)
    return by_cell


def _lines(
    model: GeometricMixture, counts: IntArray, by_cell: FloatArray
) -> tuple[PlaneDrift, ...]:
    shares = counts / counts.sum(axis=1, keepdims=True)
    plane_of, member_of = plane_places(model)
    labels = model.classes.tolist()
    lines = [
        PlaneDrift(
            labels[int(model.planes.class_of[p])],
            int(plane_of[p]),
            int(member_of[p]),
            int(counts[0, p]),
            int(counts[1, p]),
            float(shares[0, p]),
            float(shares[1, p]),
            float(shares[1, p] - shares[0, p]),
            float(by_cell[p]),
        )
        for p in np.argsort(-by_cell, kind="stable")
    ]
    return tuple(lines)
