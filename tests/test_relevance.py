"""Columns weighed by what they say: the units, the penalty that they make, and what it wins."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier
from geomix.objective import batch_terms, usage_penalty
from geomix.planes import Planes, class_starts
from geomix.relevance import SMALLEST_STRENGTH, part_strengths, units_of
from geomix.rows import Rows
from geomix.spline import fit_spline

WEIGHED = {"weigh_columns": True, "n_planes": 1, "l2": 1e-2, "relief": 0.0, "random_state": 0}


@pytest.fixture(scope="module")
def noisy():
    """Four columns that tell three classes apart, among sixty that tell nothing."""
    rng = np.random.default_rng(0)
    X, y = make_classification(
        900, 4, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=1
    )
    return np.hstack([X, rng.standard_normal((900, 60))]), y


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
        np.testing.assert_allclose(found[j], expected, rtol=1e-12)


def test_units_follow_strengths_down_to_a_floor():
    units = units_of(np.array([4.0, 2.0, 0.0, 1e-9]))
    np.testing.assert_allclose(np.mean(units**2), 1.0)
    np.testing.assert_allclose(units[0], 2.0 * units[1])
    np.testing.assert_allclose(units[2:] / units[0], SMALLEST_STRENGTH * np.sqrt(5.0) / 4.0)
    np.testing.assert_array_equal(units_of(np.zeros(3)), 1.0)


def test_units_divide_the_penalty_by_their_square(noisy):
    """At the end of training no entry of loss plus sum_j lambda / unit_j^2 w_j^2 has a slope."""
    X, y = noisy
    clf = GeometricMixtureClassifier(lift="spline", n_knots=6, tol=1e-9, max_iter=2000, **WEIGHED)
    clf.fit(X, y)
    model, units = clf.model_, np.array(clf.history_.units)
    assert units.max() > 10.0 * units.min()
    Phi = model.lift.binned(X)
    terms = batch_terms(model.planes, 6.0, Phi, y, np.ones(len(y)), 0.02)
    coefficients = usage_penalty(terms.mean_usage, 1e-2, 0.5, 0.01)
    of_steps = np.repeat(units, [part.n_steps for part in model.lift.parts])
    pull = 2.0 * coefficients[:, None] * model.planes.weights / of_steps**2
    slope = terms.weights_gradient / terms.row_weight + pull
    # In the solver's own coordinates, whose features are float32.
    assert np.abs(slope * of_steps).max() < 2e-5


@pytest.mark.parametrize("lift", ["linear", "fourier"])
def test_standardised_columns_are_measured_in_their_units(noisy, lift):
    X, y = noisy
    settings = {**WEIGHED, "gamma": 0.1, "n_frequencies": 64, "pca": None, "lift": lift}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    units = X.std(axis=0) / model.standardize.scale
    np.testing.assert_allclose(np.mean(units**2), 1.0)
    assert np.median(units[:4]) > 4.0 * np.median(units[4:])


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_weighing_finds_the_columns_that_tell(noisy, lift):
    X, y = noisy
    train, test = slice(0, 600), slice(600, None)
    settings = {"lift": lift, "n_planes": 1, "random_state": 0, "pca": None}
    alike, weighed = (
        GeometricMixtureClassifier(**settings, weigh_columns=one).fit(X[train], y[train])
        for one in (False, True)
    )
    losses = [log_loss(y[test], clf.predict_proba(X[test])) for clf in (alike, weighed)]
    assert losses[1] < 0.95 * losses[0]


def test_the_choice_tries_both_and_says_so(noisy):
    clf = GeometricMixtureClassifier(lift="spline", n_planes=1, random_state=0).fit(*noisy)
    assert {trial.weighed for trial in clf.history_.trials} == {False, True}
    chosen = next(trial for trial in clf.history_.trials if trial.chosen)
    assert chosen.weighed
    assert "columns weighed" in clf.history_.choice
    assert len(clf.history_.units) == 64


@pytest.mark.parametrize("setting", [{"weigh_columns": False}, {"l2": 1e-3}])
def test_columns_are_alike_where_asked_for_or_where_the_penalty_is_given(noisy, setting):
    settings = {"lift": ("spline", "fourier"), "n_planes": 1, "random_state": 0}
    clf = GeometricMixtureClassifier(**settings, **setting).fit(*noisy)
    assert not any(trial.weighed for trial in clf.history_.trials)
    assert clf.history_.units is None


def test_members_of_a_committee_have_units_of_their_own(noisy):
    """What the model answers is what its members, each over its own units, answer on average."""
    X, y = noisy
    settings = {**WEIGHED, "n_planes": 2, "n_members": 3, "lift": "spline"}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    assert model.planes.n_members == 3
    P = model.predict_proba(X)
    Z = model.lift(X) @ model.planes.weights.T + model.planes.biases
    each = np.logaddexp.reduce(6.0 * Z.reshape(len(X), 3, 3, 2), axis=3) / 6.0
    expected = log_softmax(each.mean(axis=2) / model.temperature, axis=1)
    np.testing.assert_allclose(np.log(P), expected, atol=1e-9)
    assert log_loss(y, P) < 0.5


def test_levels_of_a_category_share_a_unit():
    rng = np.random.default_rng(0)
    told = rng.integers(0, 3, 800)
    frame = pd.DataFrame(
        {"told": np.array(["a", "b", "c"])[told], "noise": rng.choice(["u", "v", "w"], 800)}
    )
    y = np.where(rng.random(800) < 0.1, rng.integers(0, 3, 800), told)
    clf = GeometricMixtureClassifier(**WEIGHED, lift="linear").fit(frame, y)
    scale = clf.model_.standardize.scale
    np.testing.assert_allclose(scale[:3], scale[0])
    np.testing.assert_allclose(scale[3:], scale[3])
    assert scale[3] > 4.0 * scale[0]


def test_a_warm_start_keeps_the_units():
    X, y = load_breast_cancer(return_X_y=True)
    clf = GeometricMixtureClassifier(**WEIGHED, lift="spline", warm_start=True, tol=1e-8)
    clf.fit(X, y)
    before, units = clf.model_.planes.weights, clf.history_.units
    clf.fit(X, y)
    assert clf.history_.units == units
    np.testing.assert_allclose(clf.model_.planes.weights, before, atol=2e-3 * np.abs(before).max())


def test_a_stream_goes_on_in_the_units_of_its_first_batch(noisy):
    X, y = noisy
    clf = GeometricMixtureClassifier(**WEIGHED, lift="spline", learning_rate=1e-3)
    clf.fit(X[:450], y[:450])
    before = clf.model_.planes.weights
    clf.partial_fit(X[450:], y[450:])
    moved = np.abs(clf.model_.planes.weights - before).max(axis=0)
    units = np.repeat(clf.history_.units, [part.n_steps for part in clf.model_.lift.parts])
    # Two batches: Adam's steps are about as long for every number that it works on.
    assert (moved <= 2.5e-3 * units).all()
    assert moved.max() > 1e-3
    assert log_loss(y, clf.predict_proba(X)) < 0.6
