"""A linear plane added to the curves of a spline lift.

A curve whose penalty is strong enough to be smooth shrinks straight trends too, most of all those
of correlated columns. The linear model of the same rows has them. So ``share`` times its plane is
added to every plane of a class,

    z'_cm(x) = z_cm(x) + share z_c(x),      s'_c(x) = s_c(x) + share z_c(x)

and the sum is again one curve for each column: a line is a curve with steps in proportion to the
distance between its knots. Beyond the outer knots it is constant, as every curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart, LevelPart, PairPart
from geomix.table.one_hot import MISSING, NUMBER


def with_shared_plane(planes: Planes, others: Planes, share: float) -> Planes:
    """Planes plus ``share`` times the one plane that ``others`` has for each class."""
    of_class = planes.class_of
    return replace(
        planes,
        weights=planes.weights + share * others.weights[of_class],
        biases=planes.biases + share * others.biases[of_class],
    )


def as_curves(planes: Planes, linear: FeatureMap, lift: SplineLift) -> Planes:
    """Planes over the features of a linear map as planes over those of a spline lift.

    linear   z = b + sum_i v_i (e_i - mean_i)        e: numbers and 0/1 columns
    spline   z = b' + sum_i v_i (e_i - centre_i)     so b' = b + sum_i v_i (centre_i - mean_i)
    """
    slopes = linear.column_weights(planes.weights)
    assert slopes is not None
    slopes = slopes / linear.standardize.scale
    weights, centre = np.zeros((len(slopes), lift.n_outputs)), linear.standardize.mean.copy()
    for at, one, line in _lines(linear, lift):
        steps, centre[one] = line
        weights[:, at] += slopes[:, one, None] * steps
    biases = planes.biases + slopes @ (centre - linear.standardize.mean)
    return replace(planes, weights=weights, biases=biases)


def _lines(
    linear: FeatureMap, lift: SplineLift
) -> Iterator[tuple[slice, int, tuple[FloatArray, float]]]:
    """Where the steps of a part are, a standardised column of that part, and its ``_line``."""
    kept = linear.standardize.kept
    shows = np.full(len(kept), NUMBER) if linear.expand is None else linear.expand.shows[kept]
    order = np.argsort(linear.column_of, kind="stable")
    first, behind = (
        np.searchsorted(linear.column_of[order], np.arange(lift.n_columns), side)
        for side in ("left", "right")
    )
    for part, at in lift.by_part():
        if isinstance(part, PairPart):
            continue
        for one in order[first[part.column] : behind[part.column]]:
            line = _line(part, int(shows[one]), linear.standardize.mean[one])
            if line is not None:
                yield at, int(one), line


def _line(part: CurvePart | LevelPart, shows: int, mean: float) -> tuple[FloatArray, float] | None:
    """Steps of a part that add up to the number, or to 1 at a level or at a missing cell, and the
    value at phi = 0; None where the part has no such step. A missing number counts as ``mean``."""
    steps = np.zeros(part.n_steps)
    if shows == NUMBER:
        assert isinstance(part, CurvePart)
        steps[: part.n_ordered] = np.diff(part.knots)
        centre = float(part.knots[0] + part.mean @ steps)
        steps[part.n_ordered :] = mean - centre
        return steps, centre
    step = part.n_steps - 1 if shows == MISSING else shows
    if shows == MISSING and not part.has_missing:
        return None
    steps[step] = 1.0
    return steps, float(part.mean[step])
