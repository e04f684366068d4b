"""A linear plane added to the curves of a model."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier
from geomix.core.planes import Planes
from geomix.training.straight_lines import as_curves, with_shared_plane


def mixed_table(n_rows=400, seed=0):
    """Two numbers, one of them with missing cells, and a category with missing cells."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "gaps": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            "level": rng.choice(["a", "b", "c", None], n_rows),
        }
    )
    score = X["number"] + X["gaps"].fillna(1.0) + 2.0 * (X["level"] == "a")
    return X, np.where(score > rng.normal(size=n_rows), "yes", "no")


def correlated_columns(n_rows=240, seed=0):
    """Classes that differ along a line through nearly equal columns, and along a curve."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 1)) + 0.1 * rng.normal(size=(n_rows, 25))
    bent = rng.normal(size=n_rows)
    score = 15.0 * (X[:, 0] - X[:, 1]) + 6.0 * (np.abs(bent) - 0.8)
    return np.column_stack([X, bent]), (score > 0.3 * rng.logistic(size=n_rows)).astype(int)


@pytest.fixture(scope="module")
def models():
    X, y = mixed_table()
    fixed = {"n_planes": 1, "l2": 1e-3, "random_state": 0}
    linear = GeometricMixtureClassifier(lift="linear", **fixed).fit(X, y)
    curves = GeometricMixtureClassifier(lift="spline", max_interactions=0, **fixed).fit(X, y)
    return X, linear, curves


def test_a_linear_plane_as_curves_has_the_same_scores(models):
    X, linear, curves = models
    lines, lift = linear.model_.planes, curves.model_.feature_map.lift
    written = as_curves(lines, linear.model_.feature_map, lift)
    rows = curves.model_.encoded(X)
    expected = linear.model_.feature_map(rows) @ lines.weights.T + lines.biases
    np.testing.assert_allclose(lift(rows) @ written.weights.T + written.biases, expected, atol=1e-5)


def test_lines_of_a_wide_table_take_no_more_memory_than_its_curves():
    """Columns times steps would be 256 MB here, and 24 GB for 20,000 columns."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2000)), np.arange(60) % 2
    fixed = {"n_planes": 1, "l2": 0.1, "max_iter": 3, "max_interactions": 0, "random_state": 0}
    linear, curves = (
        GeometricMixtureClassifier(lift=lift, **fixed).fit(X, y).model_
        for lift in ("linear", "spline")
    )
    tracemalloc.start()
    written = as_curves(linear.planes, linear.feature_map, curves.lift)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * written.weights.nbytes


def test_lines_are_added_to_every_plane_of_a_class():
    starts = np.array([0, 2, 3])
    planes = Planes(np.zeros((3, 1)), np.zeros(3), starts)
    lines = Planes(np.array([[1.0], [2.0]]), np.array([3.0, 4.0]), np.array([0, 1, 2]))
    both = with_shared_plane(planes, lines, 0.5)
    np.testing.assert_array_equal(both.weights, [[0.5], [0.5], [1.0]])
    np.testing.assert_array_equal(both.biases, [1.5, 1.5, 2.0])


def test_planes_that_a_user_counts_get_no_lines():
    """The linear model has several planes per class then, and no line of its own."""
    X, y = correlated_columns(400)
    clf = GeometricMixtureClassifier(2, max_interactions=0, random_state=0).fit(X, y)
    assert not any("linear model was added" in note for note in clf.history_.notes)


def one_plane(**params):
    return GeometricMixtureClassifier(1, max_interactions=0, random_state=0, **params)


def test_smooth_curves_get_the_lines_of_correlated_columns_back():
    X, y = correlated_columns()
    Xt, yt = correlated_columns(2000, seed=9)
    curves = one_plane(lift="spline").fit(X, y)
    both = one_plane(lift=("linear", "spline")).fit(X, y)
    assert any("linear model was added" in note for note in both.history_.notes)
    assert both.model_.feature_map.lift.kind == "spline"
    losses = (log_loss(yt, one.predict_proba(Xt)) for one in (both, curves))
    assert next(losses) < 0.9 * next(losses)


def test_no_line_is_added_where_curves_alone_are_as_good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (np.abs(X[:, 0]) > 0.7 + 0.1 * rng.normal(size=300)).astype(int)
    clf = one_plane(lift=("linear", "spline")).fit(X, y)
    assert not any("linear model was added" in note for note in clf.history_.notes)
