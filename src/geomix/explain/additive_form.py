"""A model's planes as sums of shapes over the user's own columns: what makes it readable.

    z_p(x) = b_p + sum_j f_pj(x_j)  (+ what pairs of columns add, if a spline lift has some)

Under a linear lift f_pj is a straight line around the column's mean, under a spline lift a
piecewise-linear curve that goes on flat beyond its outer knots; for a category it is a value for
each level, and for a missing cell a value of its own (``explain/shapes.py``). Explanations and all
of the
geometry work on this form and so need not know of lifts; a Fourier model has none (``NoShapes``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import Curve, Levels, Pair
from geomix.explain.cells import model_schema
from geomix.explain.column_sums import column_sums
from geomix.explain.shapes import LevelShape, NumberShape, PairShape, Shape
from geomix.model import GeometricMixture


class NoShapes(TypeError):
    """The model's planes are not sums over columns, so the question has no exact answer."""


@dataclass(frozen=True, eq=False)
class Additive:
    """All planes as sums over columns.

    shapes : one for each column, in order;  planes : their biases and classes.
    """

    shapes: tuple[Shape, ...]
    pairs: tuple[PairShape, ...]
    planes: Planes
    sharpness: float
    temperature: float

    def scores(self, encoded: FloatArray) -> FloatArray:
        """z, (n, P)."""
        Z = np.repeat(self.planes.biases[None, :], len(encoded), axis=0)
        for shape in self.shapes:
            Z += shape(encoded[:, shape.column])
        for pair in self.pairs:
            Z += pair(encoded)
        return Z

    def by_column(self, encoded: FloatArray, D: FloatArray) -> FloatArray:
        """sum_p D_p f_pj(x_j), (n, n_columns), for weights D of the planes, (n, P); of what a
        pair adds one half goes to either of its columns."""
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
        return self.planes.pooled(self.scores(encoded), self.sharpness)[0] / self.temperature

    def centred(self) -> Additive:
        """The same model with the classes' mean plane taken off every plane.

        A function that is added to all planes changes no probability; without it a plane's
        shapes say what speaks for *its* class.
        """
        planes = self.planes
        mean = (1.0 / (planes.n_classes * planes.per_class))[planes.class_of]
        biases = planes.biases - mean @ planes.biases
        pairs = tuple(replace(one, values=one.values - mean @ one.values) for one in self.pairs)
        shapes = tuple(shape.minus(mean) for shape in self.shapes)
        return replace(self, shapes=shapes, pairs=pairs, planes=replace(planes, biases=biases))


@lru_cache(maxsize=4)
def additive(model: GeometricMixture) -> Additive:
    """The additive form of a linear or spline model; ``NoShapes`` for a Fourier one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> bool(np.allclose(additive(model).scores(X), model.plane_scores(X)))
    True
    """
    if model.lift.kind == "fourier":
        raise NoShapes(
            "A Fourier model's planes are not sums over columns, so this has no exact answer; "
            "fit with lift='linear' or lift='spline', or lift=('linear', 'spline')."
        )
    pairs: tuple[PairShape, ...] = ()
    if isinstance(model.lift, SplineLift):
        shapes, pairs = _spline_shapes(model, model.lift)
    else:
        shapes = _linear_shapes(model)
    return Additive(shapes, pairs, model.planes, model.sharpness, model.temperature)


def pairless(model: GeometricMixture) -> Additive:
    """The additive form, for questions that a pair of columns makes too hard."""
    form = additive(model)
    if form.pairs:
        raise NoShapes("A spline lift with pairs of columns has no exact geometry; fit without.")
    return form


# --- linear: lines around the mean, and 0/1 columns back into one column each ---


def _linear_shapes(model: GeometricMixture) -> tuple[Shape, ...]:
    sums = column_sums(model, model.planes.weights)
    W, mean, scale = sums.per_unit, sums.mean, sums.scale
    shapes: list[Shape] = []
    for j, column in enumerate(model_schema(model).columns):
        number, levels, flags = sums.places(j)
        # Where a cell is there, its 0/1 columns stand below their means.
        below = -(W[:, flags] @ mean[flags])
        if len(number):
            missing = W[:, flags] @ (1.0 - mean[flags])
            slope, at = W[:, number], mean[number]
            shapes.append(
                NumberShape(
                    j,
                    column.name,
                    at,
                    below[:, None],
                    np.repeat(slope, 2, axis=1),
                    missing,
                    float(scale[number][0]),
                )
            )
            continue
        below = below - W[:, levels] @ mean[levels]
        # A missing category that training had none of is unknown: it adds nothing.
        missing = (below + W[:, flags].sum(axis=1)) * bool(len(flags))
        values = W[:, levels] + below[:, None]
        shapes.append(LevelShape(j, column.name, tuple(column.level_names), values, missing))
    return tuple(shapes)


# --- spline: curves from steps ---


def _spline_shapes(
    model: GeometricMixture, lift: SplineLift
) -> tuple[tuple[Shape, ...], tuple[PairShape, ...]]:
    schema, weights = model_schema(model), model.planes.weights
    made: dict[int, Shape] = {}
    pairs = []
    for part, steps in lift.by_part():
        W = weights[:, steps]
        if isinstance(part, Pair):
            pairs.append(PairShape(part, W @ part.bin_phi().T))
            continue
        column = schema.columns[part.column]
        shape = (
            _curve(part, W, column) if isinstance(part, Curve) else _level_values(part, W, column)
        )
        # A merged model (``editing.merge``) has several parts over one column.
        before = made.get(part.column)
        made[part.column] = shape if before is None else before.plus(shape)
    shapes = [
        made.get(j) or _flat(j, column, len(weights)) for j, column in enumerate(schema.columns)
    ]
    return tuple(shapes), tuple(pairs)


def _curve(part: Curve, W: FloatArray, column: Any) -> NumberShape:
    n_rises = len(part.knots) - 1
    first = -(W[:, :n_rises] @ part.mean[:n_rises])
    values = first[:, None] + np.column_stack([np.zeros(len(W)), np.cumsum(W[:, :n_rises], axis=1)])
    missing = W[:, -1] if part.has_missing else np.zeros(len(W))
    flat = np.zeros((len(W), 2))
    return NumberShape(
        part.column, column.name, part.knots, values, flat, missing, _deviation(part)
    )


def _level_values(part: Levels, W: FloatArray, column: Any) -> LevelShape:
    schema = W @ part.bin_phi().T
    values, missing = schema[:, : part.n_levels], schema[:, part.n_levels]
    return LevelShape(part.column, column.name, tuple(column.level_names), values, missing)


def _flat(j: int, column: Any, n_planes: int) -> Shape:
    """A column that no plane looks at."""
    nothing = np.zeros(n_planes)
    if column.kind == "category":
        values = np.zeros((n_planes, column.n_levels))
        return LevelShape(j, column.name, tuple(column.level_names), values, nothing)
    flat = np.zeros((n_planes, 2))
    return NumberShape(j, column.name, np.zeros(1), nothing[:, None], flat, nothing, 1.0)


def _deviation(part: Curve) -> float:
    """Standard deviation of the column over the training rows, from the means of its steps.

    The mean of step k is the mean of P(x > t) between knots k - 1 and k, and
    E[x - t_0] = integral of P(x > t), E[(x - t_0)^2] = integral of 2 (t - t_0) P(x > t): exact
    but for how P falls between two neighbouring knots, where it counts as constant.
    """
    knots = part.knots
    with np.errstate(over="ignore", invalid="ignore"):
        above, width = part.mean[: len(knots) - 1], np.diff(knots)
        middle = (knots[:-1] / 2.0 + knots[1:] / 2.0) - knots[0]
        variance = float(2.0 * (above * width) @ middle - np.square(above @ width))
    if not np.isfinite(variance) or variance <= 0.0:
        return 1.0
    return float(np.sqrt(variance))
