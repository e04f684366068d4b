"""A model as sums over its raw columns: the form in which it leaves the library.

    h_o(x) = bias_o + sum_t term_to(x)                           outputs o = 0 .. m - 1
    z      = h                                                   linear and spline lift: m = planes
    z      = biases + W [cos h; sin h] / sqrt(m)                 Fourier lift: m = frequencies

Expanding, standardising, rotating and the lift are all folded into the terms, exactly but for
rounding. A term reads one column (a pair: two) and has a value for a missing cell; a level never
seen adds nothing, unless the column has the level ``other``, which then is the last.

    Line     weights * clip((x - mean) / scale, -1e150, 1e150)
    Curve    values at the knots, linear between them, constant beyond
    Levels   one row of values for each level
    Grid     two columns: one row of values for each cell

Shapes: ``weights``, ``missing`` (m,); ``values`` (knots, levels or cells, m).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.lift import FourierLift, Standardize
from geomix.model import GeometricMixture
from geomix.schema import Column, Table, numbers_table
from geomix.spline import Curve as SplineCurve
from geomix.spline import Levels as SplineLevels
from geomix.spline import Pair as SplinePair
from geomix.spline import SplineLift


@dataclass(frozen=True, eq=False)
class Line:
    column: int
    mean: float
    scale: float
    weights: FloatArray
    missing: FloatArray
    kind = "line"


@dataclass(frozen=True, eq=False)
class Curve:
    column: int
    knots: FloatArray
    values: FloatArray
    missing: FloatArray
    kind = "curve"


@dataclass(frozen=True, eq=False)
class Levels:
    column: int
    values: FloatArray
    missing: FloatArray
    kind = "levels"


@dataclass(frozen=True, eq=False)
class Grid:
    """cuts : ascending thresholds of a number, whose cell is how many of them are at or below
    it; None for a category, whose cell is its level. A missing or unseen cell adds nothing."""

    columns: tuple[int, int]
    cuts: tuple[FloatArray | None, FloatArray | None]
    shape: tuple[int, int]
    values: FloatArray
    kind = "grid"


Term: TypeAlias = "Line | Curve | Levels | Grid"


@dataclass(frozen=True, eq=False)
class Fourier:
    """weights : (n_planes, 2 m), of the cosines and then of the sines, with 1 / sqrt(m) in them."""

    weights: FloatArray
    biases: FloatArray


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Everything needed to answer a raw row. class_start : (n_classes + 1,) as in ``Planes``."""

    classes: list[Any]
    columns: tuple[Column, ...]
    terms: tuple[Term, ...]
    bias: FloatArray
    fourier: Fourier | None
    class_start: list[int]
    n_members: int
    sharpness: float
    temperature: float

    @property
    def n_outputs(self) -> int:
        return len(self.bias)

    @property
    def n_planes(self) -> int:
        return self.class_start[-1]

    @property
    def groups(self) -> list[range]:
        """The planes that are pooled together: for each class, those of each member."""
        made = []
        for first, end in itertools.pairwise(self.class_start):
            size = (end - first) // self.n_members
            made += [range(at, at + size) for at in range(first, end, size)]
        return made


def additive(model: GeometricMixture) -> AdditiveModel:
    """The model as sums over its raw columns."""
    planes, lift = model.planes, model.lift
    table = numbers_table(model.columns) if model.table is None else model.table
    fourier = None
    if isinstance(lift, SplineLift):
        terms, bias = _spline_terms(lift, planes.weights, table), planes.biases
    elif isinstance(lift, FourierLift):
        terms, bias = _affine_terms(model, table, lift.frequencies.T)
        n_frequencies = lift.frequencies.shape[1]
        fourier = Fourier(planes.weights * np.sqrt(1.0 / n_frequencies), planes.biases)
    else:
        terms, bias = _affine_terms(model, table, planes.weights)
        bias = bias + planes.biases
    return AdditiveModel(
        model.classes.tolist(),
        table.columns,
        tuple(terms),
        bias,
        fourier,
        planes.class_start.tolist(),
        planes.n_members,
        float(model.sharpness),
        float(model.temperature),
    )


# --- standardised columns ---


def _affine_terms(
    model: GeometricMixture, table: Table, weights: FloatArray
) -> tuple[list[Term], FloatArray]:
    """Terms of sums ``weights`` (m, n_standardised) over standardised columns, and a bias."""
    columns = _over_columns(model.standardize, weights)
    bias = np.zeros(len(weights))
    if model.expand is None:
        zero = np.zeros(len(weights))
        return [columns.line(j, j, zero) for j in model.standardize.kept.tolist()], bias
    terms: list[Term] = []
    for j, column in enumerate(table.columns):
        outputs = np.flatnonzero(model.expand.column_of == j)
        if not columns.weights[:, outputs].any():
            continue
        # What the column can hold, cell by cell, through the library's own expansion. A number is
        # tried at its mean, where it adds nothing and only the column "missing" speaks.
        number = float(columns.mean[outputs[0]])
        cells = np.zeros((column.n_levels + 2, len(table)))
        cells[:, j] = [*range(column.n_levels), number, np.nan]
        added = columns.added(model.expand(cells), outputs)
        present, missing = added[-2:]
        if column.kind == "category":
            terms.append(Levels(j, added[:-2], missing))
        else:
            bias = bias + present
            terms.append(columns.line(j, int(outputs[0]), missing - present))
    return terms, bias


@dataclass(frozen=True, eq=False)
class _Columns:
    """Sums ``weights`` (m, n_columns) of (x - mean) / scale; constant columns weigh nothing."""

    weights: FloatArray
    mean: FloatArray
    scale: FloatArray

    def added(self, X: FloatArray, some: IntArray) -> FloatArray:
        """What some of the columns add to the sums, (n_rows, m); NaN adds nothing."""
        U = (X[:, some] - self.mean[some]) / self.scale[some]
        added: FloatArray = np.where(np.isnan(U), 0.0, U) @ self.weights[:, some].T
        return added

    def line(self, column: int, at: int, missing: FloatArray) -> Line:
        """The term of a raw column that stands at position ``at`` of these."""
        mean, scale = float(self.mean[at]), float(self.scale[at])
        return Line(column, mean, scale, self.weights[:, at], missing)


def _over_columns(standardize: Standardize, weights: FloatArray) -> _Columns:
    """The same sums over all columns, before some are left out and the rest is rotated."""
    if standardize.rotation is not None:
        weights = weights @ standardize.rotation
    n_columns, kept = standardize.n_columns, standardize.kept
    whole = np.zeros((len(weights), n_columns))
    mean, scale = np.zeros(n_columns), np.ones(n_columns)
    whole[:, kept], mean[kept], scale[kept] = weights, standardize.mean, standardize.scale
    return _Columns(whole, mean, scale)


# --- the spline lift ---


def _spline_terms(lift: SplineLift, weights: FloatArray, table: Table) -> list[Term]:
    return [
        _spline_term(part, weights[:, start : start + part.n_steps].T, len(table))
        for part, start in zip(lift.parts, lift.step_start[:-1], strict=True)
    ]


def _spline_term(part: Any, weights: FloatArray, n_columns: int) -> Term:
    """weights : (n_steps, m) of one part."""
    if isinstance(part, SplinePair):
        values = part.bin_phi() @ weights
        return Grid(part.columns, (part.first, part.second), (part.n_first, part.n_second), values)
    is_curve = isinstance(part, SplineCurve)
    places = part.knots if is_curve else np.arange(part.n_levels)
    cells = np.zeros((len(places) + 1, n_columns))
    cells[:, part.column] = np.append(places, np.nan)
    values = part.phi(cells) @ weights
    if is_curve:
        return Curve(part.column, part.knots, values[:-1], values[-1])
    assert isinstance(part, SplineLevels)
    return Levels(part.column, values[:-1], values[-1])
