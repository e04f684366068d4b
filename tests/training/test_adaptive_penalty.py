"""The adaptive penalty: importance of columns and steps, their units, and what they improve."""

import numpy as np
import pandas as pd
import pytest
from kernels import SLOW_WITH_NUMPY
from making import classifier
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier, Recipe, estimator
from geomix.core.objective import batch_terms, usage_penalty
from geomix.core.planes import Planes, class_starts
from geomix.core.spline import fit_spline
from geomix.search import finish, splits, trials
from geomix.search.folds import ITERATIONS_OF_FIRST_PLANES
from geomix.training.adaptive_penalty import (
    SMALLEST_STRENGTH,
    UNIT_FLOOR,
    part_strengths,
    step_units,
    units_of,
)
from geomix.training.rows import Rows

WEIGHED = {
    "preset": "accurate",
    "adaptive_penalty": True,
    "n_planes": 1,
    "l2": 1e-2,
    "shrink_to_mean": 0.0,
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def as_trained(monkeypatch):
    """Models keep the curves that training found."""
    monkeypatch.setattr(finish, "CALM", finish.CALM._replace(tolerances=()))


def noisy_table(n_rows, n_noise=60):
    """Four columns that separate three classes, among others of noise."""
    made = {"n_redundant": 0, "n_classes": 3, "n_clusters_per_class": 1, "random_state": 1}
    X, y = make_classification(n_rows, 4, n_informative=4, **made)
    return np.hstack([X, np.random.default_rng(0).standard_normal((n_rows, n_noise))]), y


@pytest.fixture(scope="module")
def noisy():
    return noisy_table(900)


@pytest.mark.kernel
def test_strength_is_the_spread_of_what_a_column_adds(rng):
    X = np.round(rng.standard_normal((500, 3)), 1)
    X[rng.random(500) < 0.1, 0] = np.nan
    weight = rng.uniform(0.5, 2.0, 500)
    lift = fit_spline(X, weight, np.zeros(3, int), 8)
    planes = Planes(rng.standard_normal((2, lift.n_outputs)), np.zeros(2), class_starts([1, 1]))
    found = part_strengths(planes, Rows(lift.binned(X), np.zeros(500, int), weight))
    for j, (part, steps) in enumerate(lift.by_part()):
        adds = part.phi(X) @ planes.weights[:, steps].T
        half_apart = (adds[:, 0] - adds[:, 1]) / 2.0
        expected = np.sqrt(np.average(half_apart**2, weights=weight))
        # Training reads positions between knots rounded to 24 bits.
        np.testing.assert_allclose(found[j], expected, rtol=1e-7)


def test_units_follow_strengths_down_to_a_floor():
    units = units_of(np.array([4.0, 2.0, 0.0, 1e-9]))
    np.testing.assert_allclose(np.mean(units**2), 1.0)
    np.testing.assert_allclose(units[0], 2.0 * units[1])
    np.testing.assert_allclose(units[2:] / units[0], SMALLEST_STRENGTH * np.sqrt(5.0) / 4.0)
    np.testing.assert_array_equal(units_of(np.zeros(3)), 1.0)


@pytest.mark.kernel
def test_units_of_steps_grow_with_the_differences_between_planes(rng):
    """Smoothed along a curve but for its missing cell, one for all levels, floored."""
    X = np.column_stack([rng.standard_normal(400), rng.integers(0, 3, 400), rng.random(400)])
    X[:20, 0] = np.nan
    lift = fit_spline(X, np.ones(400), np.array([0, 3, 0]), 6)
    curve, levels, still = (steps for _, steps in lift.by_part())
    W = np.zeros((3, lift.n_outputs))
    W[:, curve] = rng.standard_normal((3, curve.stop - curve.start))
    W[:, levels] = rng.standard_normal((3, 3))
    W[:, still] = 5.0  # the same in all planes: softmax does not see it
    units = step_units(Planes(W, np.zeros(3), class_starts([2, 1])), lift)
    spread = W.var(axis=0)
    a, b, c = spread[curve][:3]
    expected = {
        0: 0.75 * a + 0.25 * b,
        1: 0.25 * a + 0.5 * b + 0.25 * c,
        curve.stop - 1: spread[curve.stop - 1],
        levels.start: spread[levels].mean(),
        levels.stop - 1: spread[levels].mean(),
    }
    size = (units[1] ** 2 - UNIT_FLOOR) / expected[1]
    for step, one in expected.items():
        np.testing.assert_allclose(units[step] ** 2, UNIT_FLOOR + size * one, rtol=1e-10)
    np.testing.assert_allclose(units[still] ** 2, UNIT_FLOOR)
    np.testing.assert_allclose(np.mean(units**2), 1.0, rtol=1e-10)
    nothing = Planes(np.zeros_like(W), np.zeros(3), class_starts([2, 1]))
    np.testing.assert_array_equal(step_units(nothing, lift), 1.0)


@pytest.mark.kernel
def test_an_adaptive_penalty_lets_a_curve_be_steep_where_the_classes_change(rng):
    """A step at zero, found from few rows: a uniform penalty spreads it over the neighbours."""
    X = rng.uniform(-1.0, 1.0, (1200, 2))
    y = (rng.random(1200) < np.where(X[:, 0] > 0.0, 0.9, 0.1)).astype(int)
    settings = {"lift": "spline", "n_knots": 32, "n_planes": 1, "l2": 1e-2, "random_state": 0}
    grid = np.column_stack([np.linspace(-0.9, 0.9, 400), np.zeros(400)])
    truth = np.where(grid[:, 0] > 0.0, 0.9, 0.1)
    errors = {}
    for adaptive in (False, True):
        clf = classifier(**settings, adaptive_penalty=adaptive).fit(X, y)
        errors[adaptive] = np.abs(clf.predict_proba(grid)[:, 1] - truth).mean()
    assert errors[True] < 0.75 * errors[False]


@pytest.mark.parametrize("max_iter", [1, 30, 90])
def test_the_uniform_first_training_is_watched_and_bounded(monkeypatch, max_iter):
    noisy = noisy_table(400, n_noise=12)
    settings = {**WEIGHED, "n_planes": 2, "max_iter": max_iter, "tol": 1e-9}
    clf = classifier(**settings, lift="spline", n_members=1)
    seen = {"adapt": 0, "fit": 0}

    def watch(record, snapshot):
        if record.phase == "choose":
            return False
        assert record.iteration == seen[record.phase] + 1
        assert snapshot().planes.n_planes == 6
        seen[record.phase] += 1
        return seen["adapt"] == most

    watch.end = lambda: None  # of the estimator's own task
    monkeypatch.setattr(estimator, "callback_watch", lambda *_: watch)
    most = 1000
    clf.fit(*noisy)
    assert seen == {"adapt": min(max_iter, ITERATIONS_OF_FIRST_PLANES), "fit": max_iter}
    assert clf.n_iter_ == max_iter
    # A callback that returns True ends the first training there, and the second one at once.
    most, seen = 1, dict.fromkeys(seen, 0)
    clf.fit(*noisy)
    assert seen == {"adapt": 1, "fit": 1}
    assert clf.history_.stopped == "request"


@SLOW_WITH_NUMPY
def test_units_divide_the_penalty_by_their_square():
    """At the end of training no entry of loss plus sum_k lambda / unit_k^2 w_k^2 has a slope."""
    X, y = noisy_table(400, n_noise=12)
    clf = classifier(lift="spline", n_knots=6, tol=1e-9, max_iter=2000, **WEIGHED)
    clf.fit(X, y)
    model, units = clf.model_, clf._training_state.units
    assert units.max() > 10.0 * units.min()
    Phi = model.lift.binned(X)
    terms = batch_terms(model.planes, 6.0, Phi, y, np.ones(len(y)), Recipe.label_smoothing)
    coefficients = usage_penalty(terms.mean_usage, 1e-2, 0.5, 0.01)
    pull = 2.0 * coefficients[:, None] * model.planes.weights / units**2
    slope = terms.weights_gradient / terms.row_weight + pull
    # In the solver's own coordinates, whose features are float32.
    assert np.abs(slope * units).max() < 2e-5


@pytest.mark.kernel
@pytest.mark.parametrize("lift", ["linear", "fourier"])
def test_standardised_columns_are_measured_in_their_units(lift):
    X, y = noisy_table(500, n_noise=20)
    settings = {**WEIGHED, "gamma": 0.1, "n_frequencies": 64, "pca": None, "lift": lift}
    model = classifier(**settings).fit(X, y).model_
    units = X.std(axis=0) / model.standardize.scale
    np.testing.assert_allclose(np.mean(units**2), 1.0)
    assert np.median(units[:4]) > 4.0 * np.median(units[4:])


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_the_adaptive_penalty_finds_the_informative_columns(noisy, lift):
    X, y = noisy
    train, test = slice(0, 600), slice(600, None)
    settings = {"lift": lift, "n_planes": 1, "random_state": 0, "pca": None, "preset": "accurate"}
    settings["max_interactions"] = 0
    alike, adaptive = (
        classifier(**settings, adaptive_penalty=one).fit(X[train], y[train])
        for one in (False, True)
    )
    losses = [log_loss(y[test], clf.predict_proba(X[test])) for clf in (alike, adaptive)]
    assert losses[1] < 0.95 * losses[0]


def test_the_search_tries_both_penalties_and_records_them(noisy):
    clf = GeometricMixtureClassifier(lift="spline", n_planes=1, random_state=0).fit(*noisy)
    assert {trial.adaptive for trial in clf.history_.trials} == {False, True}
    chosen = next(trial for trial in clf.history_.trials if trial.chosen)
    assert chosen.adaptive
    assert clf._training_state.units.shape == (clf.model_.lift.n_outputs,)


@pytest.mark.parametrize("setting", [{"adaptive_penalty": False}, {"l2": 1e-3}])
def test_the_penalty_is_uniform_where_set_or_where_l2_is_given(setting):
    settings = {"lift": ("spline", "fourier"), "n_planes": 1, "random_state": 0}
    clf = classifier(**settings, **setting).fit(*noisy_table(400, n_noise=8))
    assert not any(trial.adaptive for trial in clf.history_.trials)
    assert clf._training_state.units is None


def test_members_of_an_ensemble_have_units_of_their_own(noisy):
    """What the model answers is what its members, each over its own units, answer on average."""
    X, y = noisy
    settings = {**WEIGHED, "n_planes": 2, "preset": "accurate", "n_members": 3, "lift": "spline"}
    model = classifier(**settings).fit(X, y).model_
    assert model.planes.n_members == 3
    P = model.predict_proba(X)
    Z = model.lift(X) @ model.planes.weights.T + model.planes.biases
    each = np.logaddexp.reduce(6.0 * Z.reshape(len(X), 3, 3, 2), axis=3) / 6.0
    expected = log_softmax(each.mean(axis=2) / model.temperature, axis=1)
    np.testing.assert_allclose(np.log(P), expected, atol=1e-9)
    assert log_loss(y, P) < 0.5


@pytest.mark.parametrize("many_rows", [False, True])
def test_trials_with_an_adaptive_penalty_are_longer_on_the_last_rung_only(monkeypatch, many_rows):
    if many_rows:
        monkeypatch.setattr(splits, "ROWS_PER_RUNG", (500, 1680))
    settings = {"lift": "spline", "n_planes": 3, "n_members": 1, "tol": 1e-9, "random_state": 0}
    clf = classifier(**settings).fit(*noisy_table(2100 if many_rows else 1300, n_noise=10))
    last = max(trial.rung for trial in clf.history_.trials)
    assert last == int(many_rows)

    def longest(adaptive, is_last):
        found = [
            trial.n_iter
            for trial in clf.history_.trials
            if trial.adaptive == adaptive and (trial.rung == last) == is_last
        ]
        return max(found, default=0)

    assert longest(True, True) > trials.ITERATIONS_PER_TRIAL
    assert longest(True, False) <= trials.ITERATIONS_PER_TRIAL
    assert longest(False, True) <= trials.ITERATIONS_PER_TRIAL


@pytest.mark.kernel
def test_levels_of_a_category_share_a_unit():
    rng = np.random.default_rng(0)
    told = rng.integers(0, 3, 800)
    frame = pd.DataFrame(
        {"told": np.array(["a", "b", "c"])[told], "noise": rng.choice(["u", "v", "w"], 800)}
    )
    y = np.where(rng.random(800) < 0.1, rng.integers(0, 3, 800), told)
    clf = classifier(**WEIGHED, lift="linear").fit(frame, y)
    scale = clf.model_.standardize.scale
    np.testing.assert_allclose(scale[:3], scale[0])
    np.testing.assert_allclose(scale[3:], scale[3])
    assert scale[3] > 4.0 * scale[0]


def test_a_warm_start_keeps_the_units():
    X, y = load_breast_cancer(return_X_y=True)
    clf = classifier(**WEIGHED, lift="spline", warm_start=True, tol=1e-8)
    clf.fit(X, y)
    before, units = clf.model_.planes.weights, clf._training_state.units
    clf.fit(X, y)
    np.testing.assert_array_equal(clf._training_state.units, units)
    np.testing.assert_allclose(clf.model_.planes.weights, before, atol=2e-3 * np.abs(before).max())


def test_a_stream_goes_on_in_the_units_of_its_first_batch(noisy):
    X, y = noisy
    clf = classifier(**WEIGHED, lift="spline", learning_rate=1e-3)
    clf.fit(X[:450], y[:450])
    before = clf.model_.planes.weights
    clf.partial_fit(X[450:], y[450:])
    moved = np.abs(clf.model_.planes.weights - before).max(axis=0)
    units = clf._training_state.units
    # Two batches: Adam's steps are about as long for every number that it works on.
    assert (moved <= 2.5e-3 * units).all()
    assert moved.max() > 1e-3
    assert log_loss(y, clf.predict_proba(X)) < 0.6
