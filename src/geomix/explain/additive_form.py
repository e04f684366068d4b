"""A model's planes as sums over the user's own columns.

    z_p(x) = b_p + sum_j f_pj(x_j)  (+ pair terms, if a spline lift has any)

Under a linear lift f_pj is a straight line around the column's mean. Under a spline lift it is a
piecewise-linear curve, constant beyond its outer knots. A category has one value per level, and a
missing cell has a value of its own (``explain/shapes.py``). Explanations and geometry work on this
form alone and never look at the lift. A Fourier model has no such form (``NoShapes``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.errors import NoShapes
from geomix.explain.cells import model_schema
from geomix.explain.column_terms import (
    ColumnTerm,
    CurveTerm,
    LevelTerm,
    PairTerm,
    linear_terms,
    spline_terms,
)
from geomix.explain.pair_grids import PairGrids, pair_grids
from geomix.explain.shapes import LevelShape, NumberShape, Shape
from geomix.model import GeometricMixture
from geomix.table.schema import Column


@dataclass(frozen=True, eq=False)
class Additive:
    """All planes as sums over columns.

    shapes : one per column, in order;  pairs : terms of two columns;  planes : biases and classes
    """

    shapes: tuple[Shape, ...]
    pairs: tuple[PairTerm, ...]
    planes: Planes
    sharpness: float
    temperature: float

    @cached_property
    def grids(self) -> PairGrids:
        """The pair terms on common cells of each column."""
        return pair_grids(self.pairs)

    def scores(self, encoded: FloatArray) -> FloatArray:
        """z, (n, P)."""
        Z = np.repeat(self.planes.biases[None, :], len(encoded), axis=0)
        for shape in self.shapes:
            Z += shape(encoded[:, shape.column])
        for pair in self.pairs:
            Z += pair(encoded)
        return Z

    def by_column(self, encoded: FloatArray, D: FloatArray) -> FloatArray:
        """sum_p D_p f_pj(x_j), (n, n_columns), for weights D of the planes, (n, P).

        A pair term is split equally between its two columns.
        """
        out = np.empty((len(encoded), len(self.shapes)))
        for j, shape in enumerate(self.shapes):
            out[:, j] = np.einsum("np,np->n", D, shape(encoded[:, j]))
        for pair in self.pairs:
            half = np.einsum("np,np->n", D, pair(encoded)) / 2.0
            for j in pair.part.columns:
                out[:, j] += half
        return out

    def class_scores(self, encoded: FloatArray) -> FloatArray:
        """s_c / T, (n, C)."""
        return self.planes.class_scores(self.scores(encoded), self.sharpness) / self.temperature

    def centred(self) -> Additive:
        """The same model with the mean over the classes' mean planes subtracted from every plane.

        Adding one function to all planes changes no probability. Without that common part, a
        plane's shapes show what raises the probability of *its* class.
        """
        planes = self.planes
        mean = (1.0 / (planes.n_classes * planes.per_class))[planes.class_of]
        biases = planes.biases - mean @ planes.biases
        pairs = tuple(
            replace(one, values=one.values - (one.values @ mean)[:, None]) for one in self.pairs
        )
        shapes = tuple(shape.minus(mean) for shape in self.shapes)
        return replace(self, shapes=shapes, pairs=pairs, planes=replace(planes, biases=biases))


@lru_cache(maxsize=4)
def additive(model: GeometricMixture) -> Additive:
    """The additive form of a linear or spline model; ``NoShapes`` for a Fourier model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> bool(np.allclose(additive(model).scores(X), model.plane_scores(X)))
    True
    """
    if not model.lift.is_additive:
        raise NoShapes(
            "A Fourier model's planes are not sums over columns, so this has no exact answer; "
            "fit with lift='linear' or lift='spline', or lift=('linear', 'spline')."
        )
    pairs: tuple[PairTerm, ...] = ()
    terms: list[ColumnTerm]
    if isinstance(model.lift, SplineLift):
        every = list(spline_terms(model, model.lift))
        pairs = tuple(term for term in every if isinstance(term, PairTerm))
        terms = [term for term in every if not isinstance(term, PairTerm)]
    else:
        terms = list(linear_terms(model, model.planes.weights))
    shapes = _shapes(model_schema(model).columns, terms, model.planes.n_planes)
    return Additive(shapes, pairs, model.planes, model.sharpness, model.temperature)


def _shapes(columns: Iterable[Column], terms: list[ColumnTerm], n_planes: int) -> tuple[Shape, ...]:
    """One shape per column: the sum of its terms, or zero where it has none."""
    of_column: dict[int, list[ColumnTerm]] = {}
    for term in terms:
        of_column.setdefault(term.column, []).append(term)
    made = []
    for j, column in enumerate(columns):
        own = [_shape(term, column) for term in of_column.get(j, [])]
        total = own[0] if own else _zero_shape(j, column, n_planes)
        for other in own[1:]:
            total = total.plus(other)
        made.append(total)
    return tuple(made)


def _shape(term: ColumnTerm, column: Column) -> Shape:
    j, name, missing = term.column, column.name, term.missing
    if isinstance(term, LevelTerm):
        return LevelShape(j, name, tuple(column.level_names), term.values.T, missing)
    if isinstance(term, CurveTerm):
        constant = np.zeros((len(missing), 2))
        return NumberShape(j, name, term.knots, term.values.T, constant, missing, term.scale)
    slopes = np.repeat((term.weights / term.scale)[:, None], 2, axis=1)
    mean = np.array([term.mean])
    return NumberShape(j, name, mean, term.present[:, None], slopes, missing, term.scale)


def _zero_shape(j: int, column: Column, n_planes: int) -> Shape:
    """The shape of a column that the lift leaves out."""
    zero = np.zeros(n_planes)
    if column.kind == "category":
        values = np.zeros((n_planes, column.n_levels))
        return LevelShape(j, column.name, tuple(column.level_names), values, zero)
    outer = np.zeros((n_planes, 2))
    return NumberShape(j, column.name, np.zeros(1), zero[:, None], outer, zero, 1.0)
