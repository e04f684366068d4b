"""Planes over several spline lifts of the same rows, written over one lift."""

import numpy as np
import pytest

from geomix.core.joined_splines import joined, over, units_over
from geomix.core.planes import Planes
from geomix.core.spline import MOST_BINS, MOST_KNOTS, fit_spline
from geomix.core.spline_parts import CurvePart


@pytest.fixture(scope="module")
def rows():
    """Two numbers, one with missing cells, and a category of three levels."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(600, 2)), rng.integers(0, 3, 600)])
    X[rng.random(600) < 0.2, 1] = np.nan
    return X


def lift_of(X, n_knots, pairs=()):
    return fit_spline(X, np.ones(len(X)), np.array([0, 0, 3]), n_knots, pairs)


def some_planes(lift, seed=0):
    rng = np.random.default_rng(seed)
    return Planes(rng.normal(size=(2, lift.n_outputs)), rng.normal(size=2), np.array([0, 1, 2]))


def scores(lift, planes, X):
    return lift(X) @ planes.weights.T + planes.biases


@pytest.mark.parametrize("pairs", [(), ((0, 1),)], ids=["curves", "with a pair"])
def test_planes_over_a_joined_lift_have_the_same_scores(rows, pairs):
    one, other = lift_of(rows, 16), lift_of(rows, 50, pairs)
    joint = joined([one, other], rows, np.ones(len(rows)))
    between = np.column_stack([np.linspace(-4.0, 4.0, 99), np.linspace(4.0, -4.0, 99), [1.0] * 99])
    for lift in (one, other):
        planes = some_planes(lift)
        for X in (rows, between):
            written = scores(joint, over(planes, lift, joint), X)
            np.testing.assert_allclose(written, scores(lift, planes, X), atol=1e-9)


def test_a_joined_curve_has_at_most_as_many_knots_as_any_curve(rows):
    one, other = lift_of(rows, 200), lift_of(rows, 150)
    joint = joined([one, other], rows, np.ones(len(rows)))
    for part, first in zip(joint.parts, one.parts, strict=True):
        if isinstance(part, CurvePart):
            assert len(part.knots) <= MOST_KNOTS
            assert len(part.values) <= MOST_BINS
            assert np.isin(first.knots, part.knots).all()


def test_a_step_of_a_joined_curve_keeps_the_unit_of_the_step_it_is_part_of(rows):
    one, other = lift_of(rows, 16), lift_of(rows, 50, ((0, 1),))
    joint = joined([one, other], rows, np.ones(len(rows)))
    units = np.arange(1.0, one.n_outputs + 1.0)
    found = units_over(units, one, joint)
    (part, old), (finer, new) = next(one.by_part()), next(joint.by_part())
    middle = 0.5 * (finer.knots[:-1] + finer.knots[1:])
    np.testing.assert_array_equal(found[new], units[old][part.place(middle)[0]])
    assert (found[joint.step_start[-2] :] == 1.0).all()
    assert units_over(None, one, joint) is None
