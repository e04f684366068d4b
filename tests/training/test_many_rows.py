"""Training of several planes on very many rows: a sample, batches, and then all rows."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier, Recipe
from geomix.training import many_rows

SETTINGS = {"lift": "spline", "n_planes": 3, "l2": 1e-4, "random_state": 0}
NOT_CALIBRATED = Recipe(calibrate=False)


@pytest.fixture(scope="module")
def table():
    return make_moons(3_000, noise=0.25, random_state=0)


@pytest.fixture
def few_are_many(monkeypatch):
    """1,500 rows are very many, 500 are a sample of them."""
    monkeypatch.setattr(many_rows, "FEWEST_ROWS", 1_500)
    monkeypatch.setattr(many_rows, "ROWS_OF_SAMPLE", 500)


def fitted(table, **settings):
    X, y = table
    clf = GeometricMixtureClassifier(**SETTINGS, advanced=NOT_CALIBRATED, **settings)
    return clf.fit(X[:2_000], y[:2_000])


def loss(clf, table):
    X, y = table
    return log_loss(y[2_000:], clf.predict_proba(X[2_000:]))


def test_batches_reach_the_loss_of_full_passes(table, few_are_many, monkeypatch):
    by_batches = fitted(table)
    monkeypatch.setattr(many_rows, "FEWEST_ROWS", 10**9)
    assert loss(by_batches, table) < loss(fitted(table), table) + 0.01


def test_a_fit_by_batches_has_a_record_for_each_pass(table, few_are_many):
    records = [one for one in fitted(table).history_.records if one.phase == "fit"]
    rates = [one.learning_rate for one in records if one.learning_rate is not None]
    assert len(rates) == many_rows.PASSES
    assert rates == sorted(rates, reverse=True)
    assert len(records) <= many_rows.PASSES + many_rows.LAST_ITERATIONS


def test_a_fit_by_batches_is_the_same_again(table, few_are_many):
    X, _ = table
    first, second = fitted(table), fitted(table)
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))


def test_batches_that_raise_the_objective_are_not_kept(table, few_are_many, monkeypatch):
    monkeypatch.setattr(many_rows, "LEARNING_RATES", (50.0, 50.0))
    strayed = fitted(table)
    monkeypatch.setattr(many_rows, "FEWEST_ROWS", 10**9)
    assert loss(strayed, table) < loss(fitted(table), table) + 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_of_few_iterations_does_not_go_by_batches(table, few_are_many):
    clf = fitted(table, max_iter=10)
    assert all(one.learning_rate is None for one in clf.history_.records)
    assert clf.n_iter_ <= 10
