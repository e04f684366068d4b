"""A model as tables: the form in which it leaves the library.

    h_o(x) = bias_o + sum_t term_to(x)                           outputs o = 0 .. m - 1
    z      = h                                                   linear and spline lift: m = planes
    z      = biases + W [cos h; sin h] / sqrt(m)                 Fourier lift: m = frequencies

The terms are those of ``explain/column_terms.py``. Only columns that can change an output are
written. The bias contains what a present number adds, so ``missing`` is relative to that.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.lifts import FourierLift
from geomix.core.spline import SplineLift
from geomix.explain.cells import model_schema
from geomix.explain.column_terms import (
    CurveTerm,
    LevelTerm,
    LineTerm,
    Term,
    linear_terms,
    spline_terms,
)
from geomix.model import GeometricMixture
from geomix.table.schema import Column


@dataclass(frozen=True, eq=False)
class FourierOutputs:
    """weights : (n_planes, 2 m), of the cosines and then of the sines, with 1 / sqrt(m) in them."""

    weights: FloatArray
    biases: FloatArray


@dataclass(frozen=True, eq=False)
class ModelTables:
    """Everything needed to answer a raw row. class_start : (n_classes + 1,) as in ``Planes``."""

    classes: list[Any]
    columns: tuple[Column, ...]
    terms: tuple[Term, ...]
    bias: FloatArray
    fourier: FourierOutputs | None
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


def model_tables(model: GeometricMixture) -> ModelTables:
    """The model as tables over its raw columns."""
    planes, lift = model.planes, model.lift
    fourier = None
    terms: list[Term]
    if isinstance(lift, SplineLift):
        terms = [_with_narrow_pieces(term) for term in spline_terms(model, lift)]
        bias = planes.biases
    elif isinstance(lift, FourierLift):
        terms, bias = _written(model, linear_terms(model, lift.frequencies.T))
        n_frequencies = lift.frequencies.shape[1]
        fourier = FourierOutputs(planes.weights * np.sqrt(1.0 / n_frequencies), planes.biases)
    else:
        terms, bias = _written(model, linear_terms(model, planes.weights))
        bias = bias + planes.biases
    return ModelTables(
        model.classes.tolist(),
        model_schema(model).columns,
        tuple(terms),
        bias,
        fourier,
        planes.class_start.tolist(),
        planes.n_members,
        float(model.sharpness),
        float(model.temperature),
    )


def _with_narrow_pieces(term: Term) -> Term:
    """A curve with a knot in the middle where two are further apart than the largest float: the
    exports divide by the distance."""
    if not isinstance(term, CurveTerm):
        return term
    with np.errstate(over="ignore"):
        wide = np.flatnonzero(np.isinf(np.diff(term.knots)))
    if not len(wide):
        return term
    knots = term.knots[wide] / 2 + term.knots[wide + 1] / 2
    values = term.values[wide] / 2 + term.values[wide + 1] / 2
    return replace(
        term,
        knots=np.insert(term.knots, wide + 1, knots),
        values=np.insert(term.values, wide + 1, values, axis=0),
    )


def _written(
    model: GeometricMixture, terms: list[LineTerm | LevelTerm]
) -> tuple[list[Term], FloatArray]:
    """The terms to write, and the bias that their present numbers add."""
    bias = np.zeros(len(terms[0].missing))
    made: list[Term] = []
    for term in terms:
        if not _is_used(model, term):
            continue
        if isinstance(term, LineTerm) and model.expand is not None:
            bias = bias + term.present
            term = replace(term, missing=term.missing - term.present)
        made.append(term)
    return made, bias


def _is_used(model: GeometricMixture, term: LineTerm | LevelTerm) -> bool:
    if model.expand is None:
        return term.column in model.standardize.kept
    if isinstance(term, LevelTerm):
        return bool(term.values.any() or term.missing.any())
    return bool(term.weights.any() or (term.missing != term.present).any())
