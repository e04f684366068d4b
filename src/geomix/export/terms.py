"""A model as sums over its raw columns: the form in which it leaves the library.

    h_o(x) = bias_o + sum_t term_to(x)                           outputs o = 0 .. m - 1
    z      = h                                                   linear and spline lift: m = planes
    z      = biases + W [cos h; sin h] / sqrt(m)                 Fourier lift: m = frequencies

Expanding, standardising, rotating and the lift are all folded into the terms, exactly but for
rounding. A term reads one column (a pair: two) and has a value for a missing cell; a level never
seen adds nothing, unless the column has the level ``other``, which then is the last. These are
tables to be written down; ``explain/additive_form.py`` has the same sums as shapes to be asked.

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

from geomix.arrays import FloatArray
from geomix.core import spline_parts
from geomix.core.lifts import FourierLift
from geomix.core.spline import SplineLift
from geomix.explain.cells import model_schema
from geomix.explain.column_sums import ColumnSums, column_sums
from geomix.model import GeometricMixture
from geomix.table.schema import Column, Schema


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


def as_terms(model: GeometricMixture) -> AdditiveModel:
    """The model as sums over its raw columns."""
    planes, lift = model.planes, model.lift
    schema = model_schema(model)
    fourier = None
    if isinstance(lift, SplineLift):
        terms, bias = _spline_terms(lift, planes.weights, schema), planes.biases
    elif isinstance(lift, FourierLift):
        terms, bias = _affine_terms(model, schema, lift.frequencies.T)
        n_frequencies = lift.frequencies.shape[1]
        fourier = Fourier(planes.weights * np.sqrt(1.0 / n_frequencies), planes.biases)
    else:
        terms, bias = _affine_terms(model, schema, planes.weights)
        bias = bias + planes.biases
    return AdditiveModel(
        model.classes.tolist(),
        schema.columns,
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
    model: GeometricMixture, schema: Schema, weights: FloatArray
) -> tuple[list[Term], FloatArray]:
    """Terms of sums ``weights`` (m, n_standardised) over standardised columns, and a bias."""
    sums = column_sums(model, weights)
    bias = np.zeros(len(weights))
    if model.expand is None:
        zero = np.zeros(len(weights))
        return [_line(sums, j, j, zero) for j in model.standardize.kept.tolist()], bias
    terms: list[Term] = []
    for j, column in enumerate(schema.columns):
        outputs = np.flatnonzero(sums.column_of == j)
        if not sums.weights[:, outputs].any():
            continue
        # What the column can hold, cell by cell, through the library's own expansion. A number is
        # tried at its mean, where it adds nothing and only the column "missing" speaks.
        number = float(sums.mean[outputs[0]])
        cells = np.zeros((column.n_levels + 2, len(schema)))
        cells[:, j] = [*range(column.n_levels), number, np.nan]
        added = sums.added(model.expand(cells), outputs)
        present, missing = added[-2:]
        if column.kind == "category":
            terms.append(Levels(j, added[:-2], missing))
        else:
            bias = bias + present
            terms.append(_line(sums, j, int(outputs[0]), missing - present))
    return terms, bias


def _line(sums: ColumnSums, column: int, at: int, missing: FloatArray) -> Line:
    """The term of a raw column whose number is the expanded column ``at``."""
    mean, scale = float(sums.mean[at]), float(sums.scale[at])
    return Line(column, mean, scale, sums.weights[:, at], missing)


# --- the spline lift ---


def _spline_terms(lift: SplineLift, weights: FloatArray, schema: Schema) -> list[Term]:
    return [_spline_term(part, weights[:, steps].T, len(schema)) for part, steps in lift.by_part()]


def _spline_term(part: spline_parts.Part, weights: FloatArray, n_columns: int) -> Term:
    """weights : (n_steps, m) of one part."""
    if isinstance(part, spline_parts.Pair):
        values = part.bin_phi() @ weights
        return Grid(part.columns, (part.first, part.second), (part.n_first, part.n_second), values)
    if isinstance(part, spline_parts.Curve):
        values = _phi_at(part, part.knots, n_columns) @ weights
        return Curve(part.column, part.knots, values[:-1], values[-1])
    values = _phi_at(part, np.arange(part.n_levels), n_columns) @ weights
    return Levels(part.column, values[:-1], values[-1])


def _phi_at(
    part: spline_parts.Curve | spline_parts.Levels, places: Any, n_columns: int
) -> FloatArray:
    """phi of some cells of the part's column, and of a missing one."""
    cells = np.zeros((len(places) + 1, n_columns))
    cells[:, part.column] = np.append(places, np.nan)
    return part.phi(cells)
