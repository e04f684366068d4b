"""Calm curves: what is removed, what is kept; and planes that a class does not need."""

import numpy as np
import pytest
from shapes import random_planes
from sklearn.isotonic import isotonic_regression

from geomix.core import kernel
from geomix.core.calm import (
    KnotMasses,
    calm,
    calm_steps,
    direction_changes,
    isotonic,
    turning_points,
)
from geomix.core.planes import Planes, class_starts
from geomix.training.rows import Rows
from geomix.training.spare_planes import SMALLEST_SHARE, without_spare_planes


def walks(rng):
    """Random walks of all lengths, with weights and a tolerance."""
    for _ in range(500):
        n = int(rng.integers(2, 40))
        yield np.cumsum(rng.standard_normal(n)), rng.random(n), float(rng.uniform(0.0, 3.0))


def test_what_is_left_turns_only_at_the_large_turning_points(rng):
    for values, mass, tolerance in walks(rng):
        found = calm(values, mass, tolerance)
        assert direction_changes(found) <= len(turning_points(values, tolerance))


def test_turning_points_alternate_and_lie_further_apart_than_the_tolerance(rng):
    for values, _, tolerance in walks(rng):
        steps = np.diff(values[turning_points(values, tolerance)])
        assert (np.abs(steps) > tolerance).all()
        assert (np.sign(steps[1:]) == -np.sign(steps[:-1])).all()


def test_the_weighted_mean_stays(rng):
    for values, mass, tolerance in walks(rng):
        mass = mass + 0.1
        expected = np.average(values, weights=mass)
        found = np.average(calm(values, mass, tolerance), weights=mass)
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_monotone_curve_that_moves_enough_stays_as_it_is(rng):
    values = np.sort(rng.standard_normal(30))
    np.testing.assert_allclose(calm(values, np.ones(30), 0.5), values)
    np.testing.assert_allclose(calm(-values, np.ones(30), 0.5), -values)


def test_a_curve_within_the_tolerance_becomes_flat(rng):
    values = 0.01 * rng.standard_normal(20)
    assert np.ptp(calm(values, np.ones(20), 0.5)) == 0.0


def test_a_copy_of_a_plane_goes_and_no_score_changes(rng):
    one = random_planes(rng, [1, 1], 4)
    copied = Planes(one.weights[[0, 0, 1]], one.biases[[0, 0, 1]], class_starts([2, 1]))
    rows = Rows(rng.standard_normal((200, 4)), rng.integers(0, 2, 200), np.ones(200))
    kept = without_spare_planes(copied, rows, 6.0)
    assert kept.per_class.tolist() == [1, 1]
    before, after = (p.pooled(p.scores(rows.X), 6.0)[0] for p in (copied, kept))
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_idle_planes_go_and_every_class_keeps_one(rng):
    planes = random_planes(rng, [4, 3], 3)
    low = np.where([True, False, True, False, False, True, True], -50.0, 0.0)
    planes = Planes(planes.weights, planes.biases + low, planes.class_start)
    rows = Rows(rng.standard_normal((300, 3)), rng.integers(0, 2, 300), np.ones(300))
    kept = without_spare_planes(planes, rows, 6.0)
    assert (kept.per_class >= 1).all()
    A = kept.pooled(kept.scores(rows.X), 6.0)[1]
    for plane, code in enumerate(kept.class_of):
        assert kept.per_class[code] == 1 or A[rows.y == code, plane].mean() >= SMALLEST_SHARE
    assert kept.n_planes <= 3


@pytest.mark.kernel
def test_the_native_code_calms_curves_bit_for_bit_as_the_reference_does(rng):
    for values, mass, tolerance in walks(rng):
        steps = np.diff(values, prepend=1.0)  # the first one belongs to no curve
        masses = KnotMasses(np.array([1]), np.array([0, len(mass)]), mass + 0.1)
        found = kernel.calm_steps(steps[None, :], masses, tolerance)
        from_zero = np.concatenate([[0.0], np.cumsum(steps[1:])])
        expected = np.diff(calm(from_zero, mass + 0.1, tolerance))
        np.testing.assert_array_equal(found[0], np.concatenate([steps[:1], expected]))


@pytest.mark.kernel
def test_all_curves_of_all_planes_are_calmed_as_each_is_alone(rng):
    weights = rng.standard_normal((3, 12))
    masses = KnotMasses(np.array([0, 7]), np.array([0, 6, 10]), rng.uniform(0.1, 2.0, 10))
    found = kernel.calm_steps(weights, masses, 0.8)
    np.testing.assert_array_equal(found, calm_steps(weights, masses, 0.8))
    np.testing.assert_array_equal(found[:, [5, 6, 10, 11]], weights[:, [5, 6, 10, 11]])


@pytest.mark.skipif(not kernel.is_native, reason="needs the native kernel")
def test_native_code_walks_only_over_curves_that_there_are():
    weights, mass = np.zeros((2, 4)), np.ones(5)
    for first, start in (
        ([0], [0, 6]),
        ([0], [1, 5]),
        ([1], [0, 5]),
        ([-1], [0, 5]),
        ([0, 0], [0, 5]),
        ([0, 0], [0, 9, 5]),
        ([0, 0], [0, 0, 5]),
        ([0], [0]),
    ):
        masses = KnotMasses(np.array(first), np.array(start), mass)
        with pytest.raises(ValueError, match=r"knot|steps"):
            kernel.calm_steps(weights, masses, 0.1)


def test_isotonic_pieces_are_those_of_scikit_learn(rng):
    for values, mass, _ in walks(rng):
        for rising in (True, False):
            expected = isotonic_regression(values, sample_weight=mass, increasing=rising)
            found = isotonic(values.tolist(), mass.tolist(), rising=rising)
            np.testing.assert_allclose(found, expected, atol=1e-9)
