"""Knots beside the values at which the classes of a column change at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from geomix import GeometricMixtureClassifier, Recipe
from geomix.core.spline_parts import CurvePart
from geomix.training.step_knots import FEWEST_VALUES, MOST_CUTS, step_knots

N = 4_000


@pytest.fixture
def x(rng):
    return rng.uniform(0.0, 10.0, N)


def knots(x, y, weight=None, n_classes=2):
    return step_knots(x, y.astype(int), np.ones(len(x)) if weight is None else weight, n_classes)


def beside(x, cut):
    return [x[x < cut].max(), x[x >= cut].min()]


def shares(low, high, above, rng):
    """Labels of a class whose share is ``low``, and ``high`` for the rows above."""
    return rng.random(len(above)) < np.where(above, high, low)


def test_a_threshold_has_a_knot_on_either_side(x, rng):
    y = shares(0.1, 0.9, x >= 6.2, rng)
    low, high = knots(x, y)
    # A few labels at random beside the threshold may move the cut by a few rows.
    assert low < high
    assert abs(low - 6.2) < 0.05
    sharp = x >= 6.2
    assert knots(x, sharp).tolist() == beside(x, 6.2)


def test_a_rare_class_may_begin_at_a_threshold(x):
    assert knots(x, x >= 9.8).tolist() == beside(x, 9.8)


@pytest.mark.parametrize("slope", [0.0, 0.5, 2.0])
def test_a_trend_has_no_steps_however_strong_it_is(x, rng, slope):
    y = rng.random(N) < 1.0 / (1.0 + np.exp(-slope * (x - 5.0)))
    assert len(knots(x, y)) == 0


def test_noise_of_many_classes_has_no_steps(x, rng):
    assert len(knots(x, rng.integers(7, size=N), n_classes=7)) == 0


def test_several_thresholds_are_found_and_no_more_than_a_curve_can_have(x):
    found = knots(x, (x // 2.5).astype(int), n_classes=4)
    assert found.tolist() == [*beside(x, 2.5), *beside(x, 5.0), *beside(x, 7.5)]
    many = knots(x, (x // 0.25).astype(int) % 2)
    assert len(many) <= 2 * MOST_CUTS
    assert len(many) > MOST_CUTS


def test_missing_cells_are_left_out(x):
    y = x >= 6.2
    wanted = knots(x, y)
    holes = np.concatenate([x, np.full(500, np.nan)])
    labels = np.concatenate([y, np.arange(500) % 2 == 0])
    assert knots(holes, labels).tolist() == wanted.tolist()
    assert len(knots(np.full(N, np.nan), y)) == 0


def test_few_rows_and_few_values_need_no_more_knots(x):
    assert len(knots(x[:200], x[:200] >= 6.2)) == 0
    steps = np.floor(x * (FEWEST_VALUES - 1) / 10.0)
    assert len(knots(steps, steps >= 6)) == 0


def test_only_the_ratio_of_weights_counts(x, rng):
    y = shares(0.2, 0.8, x >= 6.2, rng)
    times = rng.integers(1, 4, N).astype(float)
    wanted = knots(x, y, times)
    assert len(wanted)
    assert knots(x, y, 2.0 * times).tolist() == wanted.tolist()


def test_rows_of_a_small_weight_show_no_step(x):
    """Labels that disagree with those of heavier rows beside them."""
    y = x >= 6.2
    assert len(knots(x, y))
    heavy = np.where(np.arange(N) % 2 == 0, 1.0, 1e-3)
    assert len(knots(x, y & (heavy < 1.0), heavy)) == 0


def test_very_many_classes_take_neither_time_nor_memory(x):
    tracemalloc.start()
    assert len(knots(x, np.arange(N) % 2_000, n_classes=2_000)) == 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_unit_and_the_order_of_rows_and_classes_change_no_place(x, rng):
    y = shares(0.2, 0.8, x >= 6.2, rng)
    wanted = knots(x, y)
    order = rng.permutation(N)
    assert knots(x[order], y[order]).tolist() == wanted.tolist()
    assert knots(x, ~y).tolist() == wanted.tolist()
    assert (knots(8.0 * x, y) / 8.0).tolist() == wanted.tolist()


# --- in a fit ---


@pytest.fixture
def table(x, rng):
    return np.column_stack([x, rng.standard_normal(N)]), shares(0.03, 0.97, x >= 6.2, rng)


def curve_of(clf, column):
    parts = clf.model_.feature_map.lift.parts
    return next(one for one in parts if isinstance(one, CurvePart) and one.column == column)


def fitted(X, y, **settings):
    made = {"lift": "spline", "n_planes": 1, "max_interactions": 0, "random_state": 0}
    return GeometricMixtureClassifier(**made | settings).fit(X, y)


def test_a_fitted_curve_steps_at_the_threshold(table):
    X, y = table
    clf = fitted(X, y)
    step = knots(X[:, 0], y)
    assert set(step) <= set(curve_of(clf, 0).knots)
    assert not set(knots(X[:, 1], y))
    low, high = clf.predict_proba(np.column_stack([step, [0.0, 0.0]]))[:, 1]
    assert low < 0.2
    assert high > 0.8


def test_knots_that_a_user_counts_are_that_many(table):
    clf = fitted(*table, l2=1e-3, advanced=Recipe(n_knots=20))
    assert len(curve_of(clf, 0).knots) <= 20


@pytest.mark.parametrize(("n_rows", "is_same"), [(900, True), (N, False)])
def test_rows_that_cross_validate_place_no_knots_by_their_labels(table, rng, n_rows, is_same):
    """Folds of few rows share their knots: a validation row would have helped to place them."""
    X, y = table[0][:n_rows], table[1][:n_rows]
    by_label, at_random = (
        curve_of(GeometricMixtureClassifier(preset="fast", random_state=0).fit(X, labels), 0).knots
        for labels in (y, rng.permutation(y))
    )
    assert (by_label.tolist() == at_random.tolist()) == is_same
