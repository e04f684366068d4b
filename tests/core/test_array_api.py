"""Arrays of other libraries: predictions and sums equal those of the kernel."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
import sklearn
from sklearn.utils import get_tags

from geomix import GeometricMixtureClassifier
from geomix.core import array_api, kernel
from geomix.out_of_core.devices import ArraySource
from geomix.out_of_core.fit import MemorySource, fit_estimator
from geomix.out_of_core.survey import RowPart

from shapes import random_planes, random_rows  # isort: skip

pytestmark = pytest.mark.kernel

pytest.importorskip("array_api_compat")


def strict():
    return pytest.importorskip("array_api_strict").asarray


def torch():
    return pytest.importorskip("torch").asarray


def jax():
    found = pytest.importorskip("jax")
    found.config.update("jax_enable_x64", True)  # float32 otherwise
    return found.numpy.asarray


def cupy():
    found = pytest.importorskip("cupy")
    if not found.cuda.is_available():
        pytest.skip("CuPy needs a GPU")
    return found.asarray


LIBRARIES = pytest.mark.parametrize(
    "library", [strict, torch, jax, cupy], ids=["strict", "torch", "jax", "cupy"]
)


@pytest.fixture(scope="module", params=["linear", "spline", "fourier"])
def fitted(request):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[::9, 1] = np.nan
    settings = {"lift": request.param, "n_planes": 2, "l2": 1e-3, "preset": "accurate"}
    return GeometricMixtureClassifier(**settings, random_state=0).fit(X, y).model_, X


@LIBRARIES
@pytest.mark.parametrize("what", array_api.ANSWERS)
def test_predictions_equal_those_of_the_kernel_and_stay_in_the_library(fitted, library, what):
    model, X = fitted
    there = library()(X)
    answers = getattr(model, what)(there)
    assert type(answers) is type(there)
    np.testing.assert_allclose(
        array_api.to_numpy(answers), getattr(model, what)(X), rtol=1e-12, atol=1e-12
    )


@LIBRARIES
def test_labels_are_those_of_the_kernel(fitted, library):
    model, X = fitted
    labels = model.predict(library()(X))
    assert np.array_equal(array_api.to_numpy(labels), model.predict(X))


@LIBRARIES
def test_text_labels_come_as_numpys(library, iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = (
        GeometricMixtureClassifier(1, lift="linear", l2=1e-3, random_state=0).fit(X, names).model_
    )
    assert np.array_equal(model.predict(library()(X)), model.predict(X))


@LIBRARIES
@pytest.mark.parametrize("per_class", [[1, 1], [2, 1, 3], [4, 4]])
def test_sums_are_those_of_the_kernel(rng, library, per_class):
    planes = random_planes(rng, per_class, 5)
    Phi, y, weight = random_rows(rng, 80, 5, len(per_class))
    make = library()
    found = array_api.terms(planes, 4.0, make(Phi), make(y), make(weight), 0.1)
    expected = kernel.batch_terms(planes, 4.0, Phi, y, weight, 0.1)
    for name in ("row_weight", "loss", "weights_gradient", "biases_gradient", "usage"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12
        )


@LIBRARIES
def test_an_ensemble_predicts_on_a_device_too(rng, library):
    from geomix import GeometricMixture
    from geomix.core.feature_map import FeatureMap
    from geomix.core.lifts import IdentityLift, Standardize
    from geomix.core.planes import ensemble

    planes = ensemble([random_planes(rng, [2, 3], 4) for _ in range(3)])
    way = Standardize(np.arange(4), np.zeros(4), np.ones(4), None, 4)
    linear = FeatureMap(way, IdentityLift(4))
    model = GeometricMixture(np.arange(2), tuple("abcd"), linear, planes, 5.0, 1.3)
    X = rng.standard_normal((30, 4))
    for what in array_api.ANSWERS:
        ours = array_api.to_numpy(getattr(model, what)(library()(X)))
        np.testing.assert_allclose(ours, getattr(model, what)(X), atol=1e-12)


def test_wrong_shapes_and_categories_are_refused(iris):
    import pandas as pd

    X, y = iris
    make = strict()
    model = GeometricMixtureClassifier(1, lift="linear", l2=1e-3, random_state=0).fit(X, y).model_
    with pytest.raises(ValueError, match="one column"):
        model.predict_proba(make(X[:, :2]))
    frame = pd.DataFrame(X).assign(kind=np.where(y > 0, "u", "v"))
    frame.columns = list("abcde")
    for lift in ("linear", "spline"):
        model = GeometricMixtureClassifier(1, lift=lift, l2=1e-3, preset="fast").fit(frame, y)
        with pytest.raises(TypeError, match="categories"):
            model.model_.predict_proba(make(np.column_stack([X, y])))


def test_a_missing_array_api_compat_is_said(iris, monkeypatch):
    X, y = iris
    model = GeometricMixtureClassifier(1, lift="linear", l2=1e-3, random_state=0).fit(X, y).model_
    there = strict()(X)
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"geomix\[array-api\]"):
        model.predict_proba(there)


FIT = """
import warnings; warnings.simplefilter("error")
import numpy as np, sklearn, {library} as xp
from sklearn.datasets import load_iris
from geomix import GeometricMixtureClassifier
from geomix.out_of_core.fit import MemorySource, fit_estimator
from geomix.out_of_core.survey import RowPart
X, y = load_iris(return_X_y=True)
settings = dict(lift="linear", n_planes=2, l2=1e-3, random_state=0)
with sklearn.config_context(array_api_dispatch=True):
    clf = GeometricMixtureClassifier(**settings).fit(xp.asarray(X), xp.asarray(y))
    assert type(clf.predict_proba(xp.asarray(X))) is type(xp.asarray(X))
    labels = clf.predict(xp.asarray(X))
near = fit_estimator(GeometricMixtureClassifier(**settings), MemorySource([RowPart(X, y)]))
assert np.array_equal(np.asarray(labels), near.predict(X))
print(np.abs(clf.model_.planes.weights - near.model_.planes.weights).max())
"""


@LIBRARIES
def test_class_weight_is_sample_weight_on_a_device(iris, library):
    X, y = iris
    make, factors = library(), np.array([3.0, 1.0, 0.5])
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "random_state": 0}
    by_class = GeometricMixtureClassifier(class_weight=dict(enumerate(factors)), **settings)
    fit_estimator(by_class, ArraySource(make(X), y))
    by_row = GeometricMixtureClassifier(**settings)
    fit_estimator(by_row, ArraySource(make(X), y, factors[y]))
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)


@pytest.fixture
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn insists on it
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 14):
        pytest.skip("scikit-learn dispatches with SciPy 1.14 and later")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@LIBRARIES
@pytest.mark.usefixtures("dispatch")
def test_the_logarithm_of_probabilities_stays_in_the_library(fitted, library):
    model, X = fitted
    clf = GeometricMixtureClassifier.from_model(model)
    there = library()(X)
    found = clf.predict_log_proba(there)
    assert type(found) is type(there)
    np.testing.assert_allclose(array_api.to_numpy(found), clf.predict_log_proba(X), atol=1e-12)


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("name", ["device1", "device2", "no_float64"])
def test_rows_on_another_device_are_fitted_and_answered_there(iris, name):
    xp = pytest.importorskip("array_api_strict")
    try:
        device = xp.Device(name)
    except ValueError:
        pytest.skip(f"this array-api-strict has no device {name!r}")
    X, y = iris
    dtype = xp.float32 if name == "no_float64" else xp.float64
    there = xp.asarray(X.astype(np.float32), dtype=dtype, device=device)
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-2, "random_state": 0}
    clf = GeometricMixtureClassifier(**settings)
    clf.fit(there, xp.asarray(y, device=device))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert getattr(clf, method)(there).device == device
    near = fit_estimator(GeometricMixtureClassifier(**settings), MemorySource([RowPart(X, y)]))
    np.testing.assert_allclose(clf.predict_proba(X), near.predict_proba(X), atol=1e-2)


@LIBRARIES
@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_arrays_of_a_library_can_go_on_training(iris, library, class_weight):
    X, y = iris
    make = library()
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    settings |= {"class_weight": class_weight, "max_iter": 20}
    for method, options in (("fit", {"warm_start": True}), ("partial_fit", {})):
        ours, expected = (GeometricMixtureClassifier(**settings, **options) for _ in range(2))
        classes = {} if method == "fit" else {"classes": np.arange(3)}
        for rows in (slice(None), slice(None, None, 2)):
            getattr(ours, method)(make(X[rows]), make(y[rows]), **classes)
            getattr(expected, method)(X[rows], y[rows], **classes)
        assert np.array_equal(ours.predict_proba(X), expected.predict_proba(X)), method


def test_the_tag_says_that_fitted_attributes_are_numpys():
    # scikit-learn's compliance test wants them in the library of X, and other libraries refused.
    assert not get_tags(GeometricMixtureClassifier()).array_api_support


@pytest.mark.parametrize("library", ["array_api_strict", "torch", "jax.numpy"])
def test_a_fit_goes_down_where_the_rows_are(library):
    pytest.importorskip(library)
    pytest.importorskip("scipy", "1.14")  # older ones have no array API that scikit-learn accepts
    # scikit-learn needs this before SciPy is imported.
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "JAX_ENABLE_X64": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FIT.format(library=library)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-6
