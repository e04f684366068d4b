"""What must not matter to a fit: the unit of a column, constant columns, the factor of the weights,
the order of the labels. The choice of a model amplifies any difference, so defaults are tested too.
"""

import numpy as np
import pandas as pd
import pytest
from kernels import fast_with_numpy
from making import classifier
from scipy.sparse import csr_array

from geomix import GeometricMixtureClassifier

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore")]
FITS = {
    "linear": {"lift": "linear", "n_planes": 3, "l2": 1e-3, "random_state": 0},
    "spline": {"lift": "spline", "n_planes": 2, "l2": 1e-3, "random_state": 0, "max_iter": 25},
    "fourier": {"lift": "fourier", "l2": 1e-4, "random_state": 0, "n_frequencies": 64},
    "fast": {"preset": "fast", "random_state": 0, "max_iter": 25},
}
BY_NAME = fast_with_numpy(FITS, ["linear", "fourier"])


@pytest.fixture(scope="module", params=BY_NAME)
def fitted(request, wine):
    """Settings, and the probabilities of a fit with them on wine."""
    X, y = wine
    settings = FITS[request.param]
    return settings, classifier(**settings).fit(X, y).predict_proba(X)


def test_any_factor_of_the_weights_changes_no_bit(fitted, wine, rng):
    (settings, _), (X, y) = fitted, wine
    weight = rng.uniform(0.5, 2.0, len(y))
    a = classifier(**settings).fit(X, y, sample_weight=weight)
    b = classifier(**settings).fit(X, y, sample_weight=weight * 3.7)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


def test_columns_in_another_unit_change_nothing_beyond_rounding(fitted, wine):
    (settings, expected), (X, y) = fitted, wine
    scaled = X / np.linspace(2.54, 1013.25, X.shape[1])
    found = classifier(**settings).fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_columns_with_another_zero_change_nothing_beyond_rounding(fitted, wine):
    (settings, expected), (X, y) = fitted, wine
    moved = X + 100.0
    found = classifier(**settings).fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_constant_columns_change_no_bit(fitted, wine):
    (settings, expected), (X, y) = fitted, wine
    wider = np.c_[np.full(len(y), 3.0), X[:, :2], np.full(len(y), 7.1), X[:, 2:]]
    found = classifier(**settings).fit(wider, y).predict_proba(wider)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("far", [-3.4e38, 1e16])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_value_far_from_all_others_leaves_order_and_repeats_alone(far, is_sparse, rng):
    A, B = rng.random(150), rng.integers(0, 3, 150)
    A[::6] = far
    X, y = np.column_stack([A, B]), (rng.random(150) < A.clip(0.1, 0.9)).astype(int)
    times, mixed = rng.integers(1, 3, 150), rng.permutation(150)

    def probabilities(rows, weight=None):
        given = csr_array(X[rows]) if is_sparse else X[rows]
        clf = classifier(lift="linear", random_state=0)
        return clf.fit(given, y[rows], weight).predict_proba(csr_array(X) if is_sparse else X)

    P = probabilities(np.arange(150), times)
    assert np.array_equal(P, probabilities(mixed, times[mixed]))
    assert np.array_equal(P, probabilities(rng.permutation(np.repeat(np.arange(150), times))))


@pytest.mark.parametrize("seed", range(3))
def test_class_weights_leave_the_order_of_a_table_of_categories_alone(seed):
    rng = np.random.default_rng(seed)
    X, y = pd.DataFrame({"c": rng.choice(list("abcd"), 60)}), rng.integers(0, 2, 60)
    mixed = rng.permutation(60)
    clf = classifier(2, lift="linear", class_weight="balanced", random_state=0)
    P = clf.fit(X, y).predict_proba(X)
    assert np.array_equal(P, clf.fit(X.iloc[mixed], y[mixed]).predict_proba(X))


def test_labels_in_another_order_permute_the_probabilities(fitted, wine):
    (settings, expected), (X, y) = fitted, wine
    other = np.array([2, 0, 1])
    found = classifier(**settings).fit(X, other[y]).predict_proba(X)[:, other]
    # Only the sum of the softmax over the classes is taken in another order.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_classes_of_equal_weight_are_told_apart_by_their_rows(iris):
    X, y = iris
    other = np.array([1, 2, 0])
    expected = classifier(**FITS["linear"]).fit(X, y).predict_proba(X)
    found = classifier(**FITS["linear"]).fit(X, other[y]).predict_proba(X)[:, other]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def mixed_table():
    rng, n = np.random.default_rng(5), 600
    a, b, c = rng.normal(size=n), rng.exponential(size=n), rng.choice(list("pqrs"), n)
    d = rng.integers(0, 9, n).astype(float)
    score = a + 1.2 * (c == "p") - 0.7 * np.abs(b - 1) + 0.1 * d * (a > 0)
    y = np.digitize(score + 0.6 * rng.logistic(size=n), [-0.3, 0.9])
    b[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine", "wdbc", "mixed"])
@pytest.mark.parametrize("preset", ["readable", "accurate"])
def test_the_defaults_keep_every_law_whatever_they_choose(name, preset, request, rng):
    X, y = mixed_table() if name == "mixed" else request.getfixturevalue(name)
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).add_prefix("x")
    numbers = X.columns[[dtype.kind == "f" for dtype in X.dtypes]]

    def probabilities(X, y, weight=None):
        clf = GeometricMixtureClassifier(preset=preset, random_state=0)
        return clf.fit(X, y, sample_weight=weight).predict_proba(X)

    expected = probabilities(X, y)
    scaled, moved = X.copy(), X.copy()
    scaled[numbers], moved[numbers] = X[numbers] / 2.54, X[numbers] + 100.0
    wider = X.assign(always=7.1)[["always", *X.columns]]
    weight = rng.uniform(0.5, 2.0, len(y))
    np.testing.assert_allclose(probabilities(scaled, y), expected, rtol=0, atol=1e-12)
    assert np.array_equal(probabilities(wider, y), expected)
    reversed_labels = probabilities(X, y.max() - y)[:, ::-1]
    np.testing.assert_allclose(reversed_labels, expected, rtol=0, atol=1e-15)
    by_weight = probabilities(X, y, weight), probabilities(X, y, 3.7 * weight)
    assert np.array_equal(*by_weight)
    # Some columns of wdbc spread over 0.003: plus 100, they keep eleven of their digits. A kernel's
    # training ends early, at an iteration that rounding can move by one.
    lost = {"readable": 1e-3, "accurate": 1e-2}[preset]
    np.testing.assert_allclose(probabilities(moved, y), expected, rtol=0, atol=lost)
