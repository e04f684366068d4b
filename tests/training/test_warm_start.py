"""Training further: warm starts, and batches of a stream."""

import copy

import numpy as np
import pandas as pd
import pytest
from kernels import SLOW_WITH_NUMPY
from making import classifier
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from geomix import DataQualityWarning, GeometricMixtureClassifier, Recipe
from geomix.core.objective import penalised, usage_penalty
from geomix.errors import InvalidParameterError

pytestmark = pytest.mark.kernel
LIFTS = ["linear", pytest.param("spline", marks=SLOW_WITH_NUMPY), "fourier"]

FIXED = {"lift": "linear", "n_planes": 1, "l2": 1e-2, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(
        2400, 6, n_informative=4, n_classes=3, n_clusters_per_class=2, random_state=0
    )


# --- warm starts ---


def test_a_warm_start_on_the_same_rows_stays_where_it_is(table):
    X, y = table
    clf = classifier(**FIXED, warm_start=True, tol=1e-8).fit(X, y)
    before = clf.model_
    clf.fit(X, y)
    np.testing.assert_allclose(clf.model_.planes.weights, before.planes.weights, atol=1e-5)
    assert clf.model_.lift is before.lift
    assert clf.history_.notes == ("A warm start.",)
    assert clf.n_iter_ <= 3


def test_a_warm_start_ends_at_the_optimum_of_the_new_rows(table):
    X, y = table
    clf = classifier(**FIXED, warm_start=True, tol=1e-9)
    clf.fit(X[:1200], y[:1200]).fit(X[1200:], y[1200:])
    model = clf.model_
    V = (X[1200:] - model.standardize.mean) / model.standardize.scale
    from geomix.core.objective import batch_terms

    terms = batch_terms(model.planes, 6.0, V, y[1200:], np.ones(1200), Recipe.label_smoothing)
    coefficients = usage_penalty(terms.mean_usage, 1e-2, 0.5, 0.01)
    _, gradient = penalised(terms, model.planes, coefficients)
    assert np.abs(gradient).max() < 1e-6


@pytest.mark.parametrize("lift", LIFTS)
def test_more_rows_make_a_warm_started_model_better(table, lift):
    X, y = table
    settings = {"lift": lift, "n_planes": 2, "random_state": 0, "warm_start": True}
    clf = classifier(**settings).fit(X[:150], y[:150])
    first = clf.score(X[1800:], y[1800:])
    clf.fit(X[:1800], y[:1800])
    assert clf.score(X[1800:], y[1800:]) > first - 0.01
    assert clf.model_.planes.n_members == 1


@pytest.mark.parametrize("lift", LIFTS)
def test_neither_order_nor_repeats_of_rows_change_a_bit_of_a_warm_start(table, lift):
    X, y = table
    settings = {"lift": lift, "n_planes": 2, "max_iter": 20, "random_state": 0}
    first = classifier(**settings, l2=1e-3, warm_start=True).fit(X[:300], y[:300])
    X, y = X[300:700], y[300:700]
    turned = np.random.default_rng(0).permutation(400)
    twice = np.repeat(np.arange(400), 1 + np.arange(400) % 2)
    expected = copy.deepcopy(first).fit(X, y).predict_proba(X)
    other = copy.deepcopy(first).fit(X[turned], y[turned]).predict_proba(X)
    np.testing.assert_array_equal(other, expected)
    weighted = copy.deepcopy(first).fit(X, y, sample_weight=7.0 * (1 + np.arange(400) % 2))
    repeated = copy.deepcopy(first).fit(X[twice], y[twice])
    np.testing.assert_array_equal(repeated.predict_proba(X), weighted.predict_proba(X))


def test_validation_rows_recalibrate_a_warm_start(table):
    X, y = table
    clf = classifier(**FIXED, warm_start=True).fit(X[:300], y[:300])
    before = clf.model_.temperature
    clf.fit(X[:1200], y[:1200], X_val=X[1200:], y_val=y[1200:])
    assert clf.model_.temperature != before


@pytest.fixture(scope="module")
def few_positives():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    return X, (rng.random(3000) < 1.0 / (1.0 + np.exp(3.0 - X[:, 0]))).astype(int)


def test_a_warm_start_corrects_for_class_weights_as_the_first_fit_does(few_positives):
    X, y = few_positives
    settings = {**FIXED, "class_weight": "balanced", "correct_prior": True, "l2": 1e-4}
    clf = classifier(**settings, warm_start=True, calibrate=False).fit(X[:1500], y[:1500])
    once = clf.predict_proba(X)[:, 1].mean()
    clf.fit(X, y)
    assert once == pytest.approx(y.mean(), abs=0.02)
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)
    assert clf.model_.training["class_shares"][1] == pytest.approx(y.mean())


def test_a_stream_corrects_for_class_weights_as_its_first_batch_does(few_positives):
    X, y = few_positives
    settings = {**FIXED, "class_weight": {0: 1.0, 1: 10.0}, "correct_prior": True, "l2": 1e-4}
    clf = classifier(**settings, calibrate=False)
    for start in range(0, 3000, 500):
        clf.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)


def test_a_warm_start_refuses_what_it_cannot_go_on_from(table):
    X, y = table
    clf = classifier(**FIXED, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"label 7.*the classes of the model"):
        clf.fit(X, np.where(y == 0, 7, y))
    with pytest.raises(ValueError, match="features"):
        clf.fit(X[:, :4], y)
    with pytest.raises(InvalidParameterError, match="linear lift; set lift='linear' to go on"):
        clf.set_params(lift="spline").fit(X, y)
    with pytest.raises(InvalidParameterError, match="warm_start"):
        clf.set_params(lift="linear", warm_start="yes").fit(X, y)


def test_without_warm_start_a_fit_starts_anew(table):
    X, y = table
    clf = classifier(**FIXED)
    once = clf.fit(X[:500], y[:500]).fit(X, y).model_
    anew = classifier(**FIXED).fit(X, y).model_
    assert np.array_equal(once.planes.weights, anew.planes.weights)


# --- streams ---


def batches(X, y, size=200):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]


@pytest.mark.parametrize("lift", LIFTS)
def test_a_mixed_stream_learns(table, lift):
    X, y = table
    clf = GeometricMixtureClassifier(lift=lift, n_planes=2, random_state=0)
    scores = []
    for X_batch, y_batch in batches(X[:2000], y[:2000]):
        clf.partial_fit(X_batch, y_batch, classes=[0, 1, 2])
        scores.append(clf.score(X[2000:], y[2000:]))
    assert scores[-1] > scores[0] - 0.02
    assert scores[-1] > 0.65


def test_the_same_stream_gives_the_same_bits(table):
    X, y = table
    found = []
    for _ in range(2):
        clf = classifier(**FIXED)
        for batch in batches(X[:1000], y[:1000]):
            clf.partial_fit(*batch, classes=[0, 1, 2])
        found.append(clf.model_.planes.weights)
    assert np.array_equal(*found)


def test_a_batch_of_one_class_is_warned_about(table):
    X, y = table
    clf = classifier(**FIXED).partial_fit(X[:500], y[:500], classes=[0, 1, 2])
    with pytest.warns(DataQualityWarning, match="one class only, 1"):
        clf.partial_fit(X[y == 1][:100], y[y == 1][:100])
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier(**FIXED).partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2])


def test_the_first_batch_names_all_classes_and_later_ones_may_lack_some(table):
    X, y = table
    first = y[:400] != 2
    clf = classifier(**FIXED)
    with pytest.raises(ValueError, match="classes must be passed"):
        clf.partial_fit(X[:400][first], y[:400][first])
    with pytest.warns(DataQualityWarning, match="Class 2 has no row"):
        clf.partial_fit(X[:400][first], y[:400][first], classes=[2, 0, 1])
    assert clf.classes_.tolist() == [0, 1, 2]
    before = clf.predict_proba(X)[:, 2].mean()
    for batch in batches(X[400:], y[400:]):
        clf.partial_fit(*batch)
    assert clf.predict_proba(X)[:, 2].mean() > before
    with pytest.raises(ValueError, match="is not what it was"):
        clf.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="the classes of the model"):
        clf.partial_fit(X, y + 1)


def test_a_stream_of_frames_keeps_levels_and_weights(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(y == 0, "u", "v"))
    clf = classifier(**FIXED)
    clf.partial_fit(frame[:600], y[:600], classes=[0, 1, 2])
    new_level = frame[600:1200].assign(kind="w")
    weight = np.r_[np.zeros(300), np.ones(300)]
    clf.partial_fit(new_level, y[600:1200], sample_weight=weight)
    other = classifier(**FIXED)
    other.partial_fit(frame[:600], y[:600], classes=[0, 1, 2])
    other.partial_fit(new_level[300:], y[900:1200])
    assert np.array_equal(clf.model_.planes.weights, other.model_.planes.weights)


def test_a_step_that_is_too_long_is_left_out_and_said(table, monkeypatch):
    X, y = table
    clf = classifier(**FIXED, learning_rate=1e6, clip_norm=None)
    clf.partial_fit(X[:500], y[:500], classes=[0, 1, 2])
    with np.errstate(all="ignore"):
        before = clf.model_
        monkeypatch.setattr(
            "geomix.search.warm_start.adam_batch", lambda planes, *rest: (planes, None, np.nan)
        )
        with pytest.warns(ConvergenceWarning, match="learning_rate"):
            clf.partial_fit(X[500:], y[500:])
    assert clf.model_ is before
    assert np.isfinite(clf.predict_proba(X)).all()
