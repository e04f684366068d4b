"""Fourier features in float32: `model.with_precision("float32")`."""

import pickle

import numpy as np
import pytest
from test_native import reference, some_model, some_planes

import geomix
from geomix import GeometricMixture
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import Standardize, draw_fourier
from geomix.modelfile import saving

pytestmark = pytest.mark.kernel

KINDS = ["fourier", "rotated fourier", "rotated fourier, committee"]
ASKS = ["predict_proba", "class_scores", "plane_scores", "responsibilities"]


def single(kind):
    return some_model(kind).with_precision("float32")


def rows(n=300):
    return 2.0 * np.random.default_rng(1).standard_normal((n, 13))


@pytest.mark.parametrize("kind", KINDS)
def test_float32_features_change_probabilities_by_little(kind):
    X, exact = rows(), some_model(kind)
    P = exact.with_precision("float32").predict_proba(X)
    assert 0 < np.abs(P - exact.predict_proba(X)).max() < 1e-5
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)


def test_float64_is_the_default_and_the_way_back():
    X, model = rows(), some_model("fourier")
    again = model.with_precision("float32").with_precision("float64")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("what", ASKS)
def test_a_prediction_in_float32_depends_on_its_row_alone(what):
    X, ask = rows(), getattr(single("rotated fourier"), what)
    X[5] *= 1e5  # in float64, beside rows in float32
    whole = ask(X)
    for part in (slice(0, 1), slice(3, 20), slice(37, 54), slice(100, 229)):
        assert np.array_equal(ask(X[part]), whole[part])


@pytest.mark.parametrize("n_frequencies", [1, 15, 16, 70, 130, 300])
@pytest.mark.parametrize("n_planes", [1, 3, 35])
def test_a_scorer_in_float32_equals_predict_proba(n_frequencies, n_planes):
    rng = np.random.default_rng(n_frequencies)
    lift = draw_fourier(5, n_frequencies, 0.3, True, rng)
    planes = some_planes([n_planes, 2], lift.n_outputs, rng)
    standardize = Standardize(np.arange(5), np.zeros(5), np.ones(5), None, 5)
    feature_map = FeatureMap(standardize, lift)
    model = GeometricMixture(np.arange(2), tuple("abcde"), feature_map, planes, 6.0)
    X = rng.standard_normal((40, 5))
    X[7] *= 1e6
    score = model.with_precision("float32").scorer()
    expected = model.with_precision("float32").predict_proba(X)
    assert np.array_equal([score(row) for row in X], expected)
    np.testing.assert_allclose(expected, model.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_far_from_the_training_data_are_computed_in_float64(kind):
    X = rows(40) * np.array([[1e4], [1e9], [1e300], [1.0]]).repeat(10, axis=0)
    exact, found = some_model(kind).predict_proba(X), single(kind).predict_proba(X)
    assert np.array_equal(found[:30], exact[:30])
    assert not np.array_equal(found[30:], exact[30:])


@pytest.mark.skipif(not kernel.is_native, reason="compares the two kernels")
@pytest.mark.parametrize("kind", KINDS)
def test_native_float32_features_equal_numpy_ones(kind):
    X, model = rows(), single(kind)
    X[3] *= 1e6
    ours, theirs = model.predict_proba(X), reference(model).predict_proba(X)
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.skipif(not kernel.is_native, reason="NumPy multiplies planes in float64")
def test_planes_that_float32_cannot_hold_stay_in_float64():
    rng, lift = np.random.default_rng(0), some_model("fourier").lift
    standardize = Standardize(np.arange(13), np.zeros(13), np.ones(13), None, 13)
    planes = some_planes([1, 1], lift.n_outputs, rng, size=1e60)
    model = GeometricMixture(
        np.arange(2), tuple("abcdefghijklm"), FeatureMap(standardize, lift), planes, 6.0
    )
    found = model.with_precision("float32").predict_proba(rows())
    assert np.array_equal(found, model.predict_proba(rows()))


def test_a_file_keeps_the_precision(tmp_path):
    X, model = rows(), single("fourier")
    model.save(tmp_path / "m.geomix")
    for same in (geomix.load(tmp_path / "m.geomix"), pickle.loads(pickle.dumps(model))):
        assert same.lift.precision == "float32"
        assert np.array_equal(same.predict_proba(X), model.predict_proba(X))
    assert saving.manifest_of(model)["requires"] == ["core", "fourier", "float32"]
    assert "precision" not in saving.manifest_of(some_model("fourier"))["lift"]
    assert "float32" in repr(model)


def test_other_lifts_and_other_precisions_are_refused():
    with pytest.raises(ValueError, match=r"Got precision='float16'; expected 'float32' or"):
        some_model("fourier").with_precision("float16")
    for kind in ("linear", "spline"):
        model = some_model(kind)
        assert model.with_precision("float64") is model
        with pytest.raises(ValueError, match=f"for a {kind} lift; only a Fourier lift"):
            model.with_precision("float32")
