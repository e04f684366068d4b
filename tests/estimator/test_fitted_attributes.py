"""Attributes that other tools read: coefficients, importances, and estimators around a model."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from making import classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer

import geomix
from geomix import GeometricMixtureClassifier
from geomix.core.planes import ensemble

QUICK = {"n_planes": 1, "l2": 1e-3, "max_iter": 30, "random_state": 0}
LIFTS = pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


@pytest.fixture(scope="module")
def table():
    """Two columns with signal, one of them with missing cells; two of noise; one category."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((400, 4)), columns=["noise", "a", "more noise", "b"])
    X["kind"] = rng.choice(["red", "blue"], 400)
    y = (X["a"] + X["b"] + rng.normal(0.0, 0.5, 400) > 0.0).to_numpy().astype(int)
    X.loc[::7, "a"] = np.nan
    return X, y


# --- coefficients ---


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("pca", [None, 3])
def test_coef_and_intercept_are_the_decision_function(load, pca):
    X, y = load(return_X_y=True)
    clf = quick(lift="linear", pca=pca).fit(X, y)
    n_lines = 1 if len(clf.classes_) == 2 else 3
    assert clf.coef_.shape == (n_lines, X.shape[1])
    assert clf.intercept_.shape == (n_lines,)
    scores = X @ clf.coef_.T + clf.intercept_
    expected = clf.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(scores, expected, atol=1e-8)


def test_an_ensemble_of_single_planes_has_coefficients(iris):
    X, y = iris
    fits = [quick(lift="linear", l2=l2).fit(X, y).model_ for l2 in (1e-3, 1e-2)]
    model = replace(fits[0], planes=ensemble([one.planes for one in fits]))
    clf = GeometricMixtureClassifier.from_model(model)
    scores = X @ clf.coef_.T + clf.intercept_
    np.testing.assert_allclose(scores, clf.decision_function(X), atol=1e-8)


def test_coefficients_cannot_be_written_to(iris):
    clf = quick(lift="linear").fit(*iris)
    for name in ("coef_", "intercept_", "feature_importances_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(clf, name)[:] = 0.0


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"lift": "linear", "n_planes": 2}, "a class has 2 planes.*n_planes=1"),
        ({"lift": "spline"}, "lift='linear'"),
        ({"lift": "fourier"}, "feature_importances_"),
    ],
)
def test_a_model_that_is_not_linear_has_no_coef_and_says_what_to_use(iris, parameters, remedy):
    clf = quick(**parameters).fit(*iris)
    for name in ("coef_", "intercept_"):
        assert not hasattr(clf, name)
        with pytest.raises(AttributeError, match=f"(?i){remedy}"):
            getattr(clf, name)


def test_missing_cells_and_categories_have_no_coef_and_name_the_place_of_the_weights(table):
    clf = quick(lift="linear").fit(*table)
    with pytest.raises(AttributeError, match="expanded_names"):
        _ = clf.coef_
    assert not hasattr(quick(), "coef_")


# --- importances ---


@LIFTS
def test_importances_have_one_number_for_each_column_and_find_the_signal(table, lift):
    X, y = table
    importances = quick(lift=lift).fit(X, y).feature_importances_
    assert importances.shape == (5,)
    assert set(np.argsort(-importances)[:2]) == {1, 3}
    assert not hasattr(quick(), "feature_importances_")


def test_importances_are_those_of_the_explanation_of_the_training_rows(table):
    X, y = table
    for lift in ("linear", "spline"):
        clf = quick(lift=lift).fit(X, y)
        expected = clf.explain_global(X).importances
        np.testing.assert_allclose(clf.feature_importances_, expected, rtol=1e-9)


@LIFTS
@pytest.mark.parametrize("select", [RFE, RFECV, SelectFromModel])
def test_columns_are_selected_with_every_lift_and_with_missing_cells(table, lift, select):
    X, y = table
    X = X.drop(columns="kind")  # RFE itself takes arrays of numbers
    options = {"cv": 3} if select is RFECV else {}
    options |= {"n_features_to_select": 2} if select is RFE else {}
    options |= {"min_features_to_select": 2} if select is RFECV else {}
    fitted = select(quick(lift=lift), **options).fit(X, y)
    assert fitted.get_support()[[1, 3]].all()


def test_sparse_rows_have_importances(iris):
    import scipy.sparse

    X, y = iris
    dense = quick(lift="linear").fit(X, y).feature_importances_
    sparse = quick(lift="linear").fit(scipy.sparse.csr_array(X), y).feature_importances_
    np.testing.assert_allclose(sparse, dense, rtol=1e-3)


# --- an estimator around a model ---


@pytest.fixture(scope="module")
def loaded(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.geomix"
    clf = quick(lift="spline").fit(*table)
    clf.save(path)
    return clf, GeometricMixtureClassifier.from_model(geomix.load(path))


def test_an_estimator_around_a_loaded_model_answers_with_the_same_bits(loaded, table):
    (clf, again), (X, _) = loaded, table
    for method in ("predict", "predict_proba", "decision_function", "plane_scores"):
        assert np.array_equal(getattr(again, method)(X), getattr(clf, method)(X))
    assert again.classes_.tolist() == [0, 1]
    assert again.feature_names_in_.tolist() == list(X)
    assert again.n_iter_ == clf.n_iter_
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(X.rename(columns={"a": "z"}))


def test_scorers_calibrators_and_permutations_take_it(loaded, table):
    (clf, again), (X, y) = loaded, table
    for name in ("accuracy", "neg_log_loss", "roc_auc"):
        assert get_scorer(name)(again, X, y) == get_scorer(name)(clf, X, y)
    calibrated = CalibratedClassifierCV(FrozenEstimator(again)).fit(X, y)
    assert calibrated.score(X, y) > 0.8
    found = permutation_importance(again, X, y, n_repeats=2, random_state=0)
    assert set(np.argsort(-found.importances_mean)[:2]) == {1, 3}


def test_what_a_model_does_not_hold_is_said(loaded, table):
    _, again = loaded
    with pytest.raises(AttributeError, match="explain_global"):
        _ = again.feature_importances_
    with pytest.raises(ValueError, match="made from a model"):
        again.partial_fit(*table)
    with pytest.raises(TypeError, match=r"geomix.load\(path\)"):
        GeometricMixtureClassifier.from_model("m.geomix")


def test_it_can_be_fitted_anew_and_cloned(loaded, table):
    from sklearn.base import clone

    _, again = loaded
    with pytest.raises(NotFittedError):
        clone(again).predict(table[0])
    fresh = GeometricMixtureClassifier.from_model(again.model_).set_params(**QUICK, lift="linear")
    assert fresh.fit(*table).model_.lift.kind == "linear"


def test_an_array_without_names_gives_an_estimator_without_names(iris):
    clf = quick(lift="linear").fit(*iris)
    again = GeometricMixtureClassifier.from_model(clf.model_)
    assert not hasattr(again, "feature_names_in_")
    assert again.n_features_in_ == 4
    assert np.array_equal(again.predict_proba(iris[0]), clf.predict_proba(iris[0]))
