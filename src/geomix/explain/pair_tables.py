"""Pair terms without main effects, so that a heat map shows nothing but the interaction.

The table g(s, t) of two columns also holds a part of each column alone. With the shares a_s and b_t
of the training rows in the cells of either column,

    r(s) = sum_t b_t g(s, t),    c(t) = sum_s a_s g(s, t),    m = sum_s a_s r(s)
    g(s, t) = (r(s) - m) + (c(t) - m) + m + interaction(s, t)

``pure`` moves the first three parts into the columns' shapes and the bias. The scores stay as they
are. The interaction is zero on average along each row and each column of the table.

g is zero where a cell is missing or has a level that training never saw. Such a cell has no share
of the rows, and its column's shape stays as it is. What the other parts add there, the interaction
takes off again in its last row and its last column, which are not zero on average.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.spline_parts import PairPart
from geomix.explain.additive_form import Additive, additive
from geomix.explain.column_terms import PairTerm
from geomix.explain.shapes import LevelShape, NumberShape, Shape
from geomix.model import GeometricMixture


@lru_cache(maxsize=4)
def pure(model: GeometricMixture) -> Additive:
    """The additive form of a model, its pair terms without main effects."""
    form = additive(model)
    for at in range(len(form.pairs)):
        form = _with_pure_pair(form, at)
    return form


def cell_shares(part: PairPart) -> FloatArray:
    """Share of the training rows in each cell that is not missing, (n_first - 1, n_second - 1).

    ``part.mean`` has P(x >= s, y >= t) for numbers and P(x = s, y = t) for levels.
    """
    shares = part.mean.reshape(part.n_first - 1, part.n_second - 1)
    if part.first is not None:
        shares = shares - np.vstack([shares[1:], np.zeros((1, shares.shape[1]))])
    if part.second is not None:
        shares = shares - np.hstack([shares[:, 1:], np.zeros((len(shares), 1))])
    shares = np.maximum(shares, 0.0)
    total = shares.sum()
    return shares / total if total > 0.0 else np.full(shares.shape, 1.0 / shares.size)


def margin_weights(part: PairPart) -> tuple[FloatArray, FloatArray]:
    """Shares of the rows along each side, zero for the missing cell at the end of each."""
    shares = cell_shares(part)
    return np.append(shares.sum(axis=1), 0.0), np.append(shares.sum(axis=0), 0.0)


def _with_pure_pair(form: Additive, at: int) -> Additive:
    term = form.pairs[at]
    a, b = margin_weights(term.part)
    grid = term.values.reshape(*term.shape, -1)
    mean = np.einsum("s,t,stp->p", a, b, grid)
    along = [np.einsum("t,stp->sp", b, grid) - mean, np.einsum("s,stp->tp", a, grid) - mean]
    for side in along:
        # The shape of a level never seen adds nothing, and it shares this row with missing cells.
        side[-1] = 0.0
    rest = grid - along[0][:, None] - along[1][None, :] - mean
    pairs = list(form.pairs)
    pairs[at] = replace(term, values=rest.reshape(term.values.shape))
    shapes = list(form.shapes)
    for column, cuts, side in zip(term.columns, term.cuts, along, strict=True):
        shapes[column] = shapes[column].plus(_side_shape(shapes[column], cuts, side[:-1].T))
    planes = replace(form.planes, biases=form.planes.biases + mean)
    return replace(form, shapes=tuple(shapes), pairs=tuple(pairs), planes=planes)


def _side_shape(shape: Shape, cuts: FloatArray | None, values: FloatArray) -> Shape:
    """values : (P, n_cells) of one column; a number's are steps at ``cuts``."""
    zero = np.zeros(len(values))
    if cuts is None:
        return LevelShape(shape.column, shape.name, shape.levels, values, zero)  # type: ignore[union-attr]
    outer = np.zeros((len(values), 2))
    if len(cuts) == 0:
        return NumberShape(shape.column, shape.name, np.zeros(1), values, outer, zero, shape.scale)
    # A step is a line between two neighbouring floats.
    knots = np.column_stack([np.nextafter(cuts, -np.inf), cuts]).ravel()
    stairs = np.repeat(values, 2, axis=1)[:, 1:-1]
    return NumberShape(shape.column, shape.name, knots, stairs, outer, zero, shape.scale)


def pair_of(form: Additive, first: int, second: int) -> list[PairTerm]:
    """The pair terms of two columns."""
    return [term for term in form.pairs if set(term.columns) == {first, second}]
