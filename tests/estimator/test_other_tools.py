"""Recipes of the guide for other libraries: skops, MLflow, eli5, SHAP."""

import numpy as np
import pandas as pd
import pytest
from making import classifier
from sklearn.datasets import load_breast_cancer

import geomix.skops
from geomix import GeometricMixtureClassifier

QUICK = {"l2": 1e-3, "max_iter": 30, "random_state": 0}


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 3)), columns=list("abc"))
    X["kind"] = rng.choice(["u", "v"], 200)
    y = (X["b"] * X["c"] + (X["kind"] == "u") > 0.0).to_numpy().astype(int)
    X.loc[::7, "a"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def wdbc_frame():
    return load_breast_cancer(return_X_y=True, as_frame=True)


SETTINGS = {
    "the default": {"l2": "auto", "max_iter": 20},
    "linear": {"lift": "linear", "n_planes": 2, "pca": 2},
    "pairs": {"lift": "spline", "n_planes": 1, "max_interactions": 2},
    "ensemble": {"lift": "spline", "n_planes": 2, "preset": "accurate", "n_members": 2},
    "fourier": {"lift": "fourier", "n_planes": 1, "gamma": 0.1},
    "adam": {"lift": "linear", "n_planes": 1, "solver": "adam"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_skops_loads_an_estimator_of_every_kind_with_the_published_types(mixed, name):
    skops = pytest.importorskip("skops.io")
    X, y = mixed
    clf = quick(**SETTINGS[name]).fit(X, y)
    content = skops.dumps(clf)
    assert set(skops.get_untrusted_types(data=content)) <= set(geomix.skops.TRUSTED_TYPES)
    again = skops.loads(content, trusted=geomix.skops.TRUSTED_TYPES)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_skops_loads_a_stream_that_can_go_on(mixed):
    skops = pytest.importorskip("skops.io")
    X, y = mixed
    clf = quick(lift="linear", n_planes=1).partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    again = skops.loads(skops.dumps(clf), trusted=geomix.skops.TRUSTED_TYPES)
    assert np.array_equal(
        again.partial_fit(X, y).predict_proba(X), clf.partial_fit(X, y).predict_proba(X)
    )


def test_every_published_type_is_one_of_ours_and_exists():
    import importlib

    for name in geomix.skops.TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert module.startswith("geomix.")
        assert isinstance(getattr(importlib.import_module(module), kind), type)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_saves_and_loads_by_its_default(wdbc_frame, tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    X, y = wdbc_frame
    clf = quick(lift="linear", n_planes=1).fit(X, y)
    types = geomix.skops.TRUSTED_TYPES
    mlflow.save_model(clf, str(tmp_path / "model"), skops_trusted_types=types)
    again = mlflow.load_model(str(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


@pytest.mark.filterwarnings("ignore")
def test_mlflow_logs_a_fit_in_a_pipeline(wdbc_frame, tmp_path, monkeypatch):
    pytest.importorskip("mlflow.sklearn")
    import mlflow
    from sklearn.pipeline import make_pipeline

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'runs'}")
    mlflow.sklearn.autolog(log_models=False, log_datasets=False)
    try:
        with mlflow.start_run() as run:
            make_pipeline(quick(lift="linear", n_planes=1)).fit(*wdbc_frame)
    finally:
        mlflow.sklearn.autolog(disable=True)
    logged = mlflow.get_run(run.info.run_id).data
    assert logged.params["geometricmixtureclassifier__l2"] == "0.001"
    assert logged.metrics["training_accuracy_score"] > 0.9


@pytest.mark.filterwarnings("ignore")
def test_eli5_shows_the_weights_of_a_linear_model(wdbc_frame):
    eli5 = pytest.importorskip("eli5")
    from eli5.sklearn.explain_weights import explain_linear_classifier_weights

    X, y = wdbc_frame
    clf = quick(lift="linear", n_planes=1).fit(X, y)
    eli5.explain_weights.register(GeometricMixtureClassifier)(explain_linear_classifier_weights)
    explained = eli5.explain_weights(clf, top=(3, 3), feature_names=list(X))
    (target,) = explained.targets
    weights = {one.feature: one.weight for one in target.feature_weights.pos}
    largest = np.argmax(clf.coef_[0])
    assert weights[list(X)[largest]] == pytest.approx(clf.coef_[0, largest])


@pytest.mark.filterwarnings("ignore")
def test_shaps_linear_explainer_gives_the_log_odds(wdbc_frame):
    shap = pytest.importorskip("shap")
    X, y = wdbc_frame
    clf = quick(lift="linear", n_planes=1).fit(X, y)
    explainer = shap.LinearExplainer(clf, X)
    values = explainer.shap_values(X[:5])
    assert values.shape == (5, X.shape[1])
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, clf.decision_function(X[:5]), rtol=1e-6)
