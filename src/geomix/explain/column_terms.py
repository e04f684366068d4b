"""A model's scores as sums of terms, one term per raw column (or pair of columns).

    score_o(x) = bias_o + sum_t term_to(x)            outputs o = 0 .. m - 1

Expanding categories, standardising, rotating and the lift are folded into the terms, exactly but
for rounding. For linear and spline models the outputs are the planes; for a Fourier model they are
the angles. ``explain/additive_form.py`` turns terms into shapes that can be evaluated, and
``export/tables.py`` writes them down, so both describe the same model.

    LineTerm    weights * clip((x - mean) / scale, -1e150, 1e150) + present
    CurveTerm   values at the knots, linear between them, constant beyond
    LevelTerm   one row of values per level
    PairTerm    two columns: one row of values per cell of their grid

A missing cell adds ``missing``. A level never seen in training adds nothing, unless the column has
the level ``other``, which is then the last one.

Shapes: ``weights``, ``present``, ``missing`` (m,); ``values`` (knots, levels or cells, m).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart, LevelPart, PairPart, SplinePart
from geomix.explain.cells import model_schema
from geomix.explain.shapes import sums_by_place
from geomix.model import GeometricMixture
from geomix.table.one_hot import NUMBER


@dataclass(frozen=True, eq=False)
class LineTerm:
    """A number under a linear lift. present : added where the cell is not missing, which is not
    zero if training had missing cells."""

    column: int
    mean: float
    scale: float
    weights: FloatArray
    present: FloatArray
    missing: FloatArray
    kind = "line"


@dataclass(frozen=True, eq=False)
class CurveTerm:
    """A number under a spline lift. scale : standard deviation over the training rows."""

    column: int
    knots: FloatArray
    values: FloatArray
    missing: FloatArray
    scale: float
    kind = "curve"


@dataclass(frozen=True, eq=False)
class LevelTerm:
    column: int
    values: FloatArray
    missing: FloatArray
    kind = "levels"


@dataclass(frozen=True, eq=False)
class PairTerm:
    """Two columns of a spline lift together: a value for each cell of the grid of ``part``."""

    part: PairPart
    values: FloatArray
    kind = "grid"

    @property
    def columns(self) -> tuple[int, int]:
        return self.part.columns

    @property
    def cuts(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Thresholds of each column; None for a category. A number's cell is the count of
        thresholds at or below it."""
        return self.part.first, self.part.second

    @property
    def shape(self) -> tuple[int, int]:
        """Cells along each side; the last of each is for missing and unseen ones."""
        return self.part.n_first, self.part.n_second

    def __call__(self, encoded: FloatArray) -> FloatArray:
        """(n_rows, n_columns) -> (n_rows, m)."""
        added: FloatArray = self.values[self.part.codes(encoded)]
        return added

    def weighted_sums(self, encoded: FloatArray, weights: FloatArray) -> FloatArray:
        """(m,) sums over rows of weights * self(encoded), for weights (n_rows, m)."""
        codes = self.part.codes(encoded)
        by_cell = sums_by_place(codes, np.ones(len(codes)), weights, len(self.values))
        return np.einsum("cm,cm->m", by_cell, self.values)


ColumnTerm: TypeAlias = "LineTerm | CurveTerm | LevelTerm"
Term: TypeAlias = "ColumnTerm | PairTerm"


# --- linear lift: sums over standardised columns ---


@dataclass(frozen=True, eq=False)
class _ExpandedSums:
    """m sums over the expanded columns: sum_i weights_i (x_i - mean_i) / scale_i.

    weights : (m, n_expanded), zero for columns that standardising drops;  mean, scale :
    (n_expanded,);  column_of, shows : (n_expanded,) as in ``Expand``
    """

    weights: FloatArray
    mean: FloatArray
    scale: FloatArray
    column_of: IntArray
    shows: IntArray

    def added(self, X: FloatArray, some: IntArray) -> FloatArray:
        """The part of the sums that some columns of expanded rows add, (n_rows, m)."""
        U = (X[:, some] - self.mean[some]) / self.scale[some]
        added: FloatArray = np.where(np.isnan(U), 0.0, U) @ self.weights[:, some].T
        return added


def _expanded_sums(model: GeometricMixture, weights: FloatArray) -> _ExpandedSums:
    standardize, expand = model.standardize, model.expand
    n_columns, kept = standardize.n_columns, standardize.kept
    whole = np.zeros((len(weights), n_columns))
    mean, scale = np.zeros(n_columns), np.ones(n_columns)
    whole[:, kept] = standardize.unrotated(weights)
    mean[kept], scale[kept] = standardize.mean, standardize.scale
    if expand is None:
        return _ExpandedSums(whole, mean, scale, np.arange(n_columns), np.full(n_columns, NUMBER))
    return _ExpandedSums(whole, mean, scale, expand.column_of, expand.shows)


def linear_terms(model: GeometricMixture, weights: FloatArray) -> list[LineTerm | LevelTerm]:
    """One term per raw column, for sums ``weights`` (m, n_standardised) over standardised rows."""
    sums = _expanded_sums(model, weights)
    return [_linear_term(model, sums, j) for j in range(len(model.columns))]


def _linear_term(model: GeometricMixture, sums: _ExpandedSums, j: int) -> LineTerm | LevelTerm:
    column = model_schema(model).columns[j]
    outputs = np.flatnonzero(sums.column_of == j)
    at = int(outputs[0])
    mean, scale = float(sums.mean[at]), float(sums.scale[at])
    if model.expand is None:
        zero = np.zeros(len(sums.weights))
        return LineTerm(j, mean, scale, sums.weights[:, at], zero, zero)
    # Evaluate every level, a number and a missing cell with the model's own expansion. The number
    # is the mean, where the line itself is zero.
    cells = np.zeros((column.n_levels + 2, len(model.columns)))
    cells[:, j] = [*range(column.n_levels), mean, np.nan]
    added = sums.added(model.expand(cells), outputs)
    if column.kind == "category":
        return LevelTerm(j, added[:-2], added[-1])
    return LineTerm(j, mean, scale, sums.weights[:, at], added[-2], added[-1])


# --- spline lift ---


def spline_terms(model: GeometricMixture, lift: SplineLift) -> Iterator[Term]:
    """One term per part of the lift. A merged model has several parts per column."""
    for part, steps in lift.by_part():
        yield _spline_term(part, model.planes.weights[:, steps].T, len(model.columns))


def _spline_term(part: SplinePart, weights: FloatArray, n_columns: int) -> Term:
    """weights : (n_steps, m) of one part."""
    if isinstance(part, PairPart):
        return PairTerm(part, part.bin_phi() @ weights)
    if isinstance(part, CurvePart):
        values = _phi_at(part, part.knots, n_columns) @ weights
        return CurveTerm(part.column, part.knots, values[:-1], values[-1], _deviation(part))
    values = _phi_at(part, np.arange(part.n_levels), n_columns) @ weights
    return LevelTerm(part.column, values[:-1], values[-1])


def _phi_at(part: CurvePart | LevelPart, cells: Any, n_columns: int) -> FloatArray:
    """phi of some cells of the part's column, followed by phi of a missing one."""
    rows = np.zeros((len(cells) + 1, n_columns))
    rows[:, part.column] = np.append(cells, np.nan)
    return part.phi(rows)


def _deviation(part: CurvePart) -> float:
    """Standard deviation of the column over the training rows, from the means of its steps.

    The mean of step k is the mean of P(x > t) between knots k - 1 and k, and
    E[x - t_0] = integral of P(x > t), E[(x - t_0)^2] = integral of 2 (t - t_0) P(x > t). This is
    exact if P(x > t) is constant between neighbouring knots, and an approximation otherwise.
    """
    knots = part.knots
    with np.errstate(over="ignore", invalid="ignore"):
        above, width = part.mean[: len(knots) - 1], np.diff(knots)
        middle = (knots[:-1] / 2.0 + knots[1:] / 2.0) - knots[0]
        variance = float(2.0 * (above * width) @ middle - np.square(above @ width))
    if not np.isfinite(variance) or variance <= 0.0:
        return 1.0
    return float(np.sqrt(variance))
