"""Facets: the straight pieces that a two-column model with a linear lift puts between classes.

With the maximum in place of the soft-OR, the boundary between classes is made of pieces of the
lines z_cm(x) = z_kj(x), planes of two classes, where no third plane is higher:

    piece of (c m, k j) = {x : z_cm(x) = z_kj(x) >= z_p(x) for every other plane p}

Along such a line every condition is linear in one number t, so that a piece is an interval of
t and comes out exactly. The soft boundary rounds the corners between the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.explain.additive_form import additive
from geomix.explain.shapes import NumberShape, Shape
from geomix.model import GeometricMixture

# In parts of the window: pieces under a pixel or so are not worth a line across the picture.
SHORTEST_PIECE = 2e-3


@dataclass(frozen=True, eq=False)
class Facet:
    """Planes ``first`` and ``second`` (columns of ``plane_scores``) meet along a line.

    line : (2, 2) its ends at the window's edge;  piece : (2, 2) ends of the part that counts.
    """

    first: int
    second: int
    line: FloatArray
    piece: FloatArray


def facets_of(model: GeometricMixture, low: FloatArray, high: FloatArray) -> tuple[Facet, ...]:
    """Every facet inside the window from corner ``low`` to corner ``high``; linear lift only."""
    return facets_between(model.folded, low, high)


def slice_of(model: GeometricMixture, places: tuple[int, int], held: FloatArray) -> Planes:
    """The planes of a linear model over two of its columns, the others held at an encoded row."""
    shapes = additive(model).shapes
    slopes = np.column_stack([_number(shapes[j]).outer[:, 1] for j in places])
    anchor = np.where(np.isnan(held), 0.0, held)
    row = held.copy()
    row[list(places)] = anchor[list(places)]
    scores = model.answer("plane_scores", row[None, :])[0]
    return replace(model.planes, weights=slopes, biases=scores - slopes @ row[list(places)])


def _number(shape: Shape) -> NumberShape:
    assert isinstance(shape, NumberShape)  # checked at the door
    return shape


def facets_between(planes: Planes, low: FloatArray, high: FloatArray) -> tuple[Facet, ...]:
    """The same for planes over two columns."""
    size = high - low
    planes = planes.through(np.diag(size), low)  # over u in the unit square, x = low + size u
    class_of = planes.class_of
    found = []
    for first, second in combinations(range(planes.n_planes), 2):
        if class_of[first] != class_of[second]:
            ends = _facet_in_unit_square(planes, first, second)
            if ends is not None:
                line, piece = ends
                found.append(Facet(first, second, low + size * line, low + size * piece))
    return tuple(found)


def _facet_in_unit_square(
    planes: Planes, first: int, second: int
) -> tuple[FloatArray, FloatArray] | None:
    normal = planes.weights[first] - planes.weights[second]
    length = np.linalg.norm(normal)
    if length == 0.0:
        return None
    offset = planes.biases[first] - planes.biases[second]
    nearest = -offset / length * normal / length  # the line's point nearest to the origin
    along = np.array([-normal[1], normal[0]]) / length
    in_window = _interval(np.r_[nearest, 1.0 - nearest], np.r_[along, -along])
    others = np.delete(np.arange(planes.n_planes), [first, second])
    lead_weights = planes.weights[first] - planes.weights[others]
    lead_biases = planes.biases[first] - planes.biases[others]
    on_top = _interval(lead_weights @ nearest + lead_biases, lead_weights @ along)
    counts = max(in_window[0], on_top[0]), min(in_window[1], on_top[1])
    if counts[1] - counts[0] < SHORTEST_PIECE:
        return None
    return nearest + np.outer(in_window, along), nearest + np.outer(counts, along)


def _interval(constant: FloatArray, slope: FloatArray) -> tuple[float, float]:
    """All t with constant + slope t >= 0 in every entry, as (least, most); least > most if none."""
    if (constant[slope == 0.0] < 0.0).any():
        return np.inf, -np.inf
    rising, falling = slope > 0.0, slope < 0.0
    least = np.max(-constant[rising] / slope[rising], initial=-np.inf)
    most = np.min(-constant[falling] / slope[falling], initial=np.inf)
    return float(least), float(most)
