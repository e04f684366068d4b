"""What an editor, a type checker and a notebook show: signatures, types and short descriptions."""

import importlib.util
import inspect
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from making import classifier
from reading_models import fitted
from sklearn.exceptions import NotFittedError

from geomix import GeometricMixture, GeometricMixtureClassifier, load
from geomix.explain import drift, editing, global_explanation, local_explanation
from geomix.geometry import (
    certificate,
    counterfactual,
    intervals,
    monotone,
    regions,
    rules,
    thresholds,
)
from geomix.report import report_html
from geomix.training.history import History

# Methods of the model and the functions behind them.
FUNCTIONS = {
    "explain_global": global_explanation.explain_global,
    "explain_local": local_explanation.explain_local,
    "counterfactual": counterfactual.counterfactual,
    "counterfactuals": counterfactual.counterfactuals,
    "certify": certificate.certify,
    "probability_intervals": intervals.probability_intervals,
    "thresholds": thresholds.thresholds,
    "rules": rules.rules,
    "regions": regions.regions,
    "check_monotone": monotone.check_monotone,
    "compare": drift.compare,
    "without_plane": editing.without_plane,
    "merge_planes": editing.merge_planes,
    "with_priors": editing.with_priors,
}
FORWARDED = (
    "explain_global", "explain_local", "counterfactual", "rules", "certify", "report", "save",
)  # fmt: skip
MOST_CHARACTERS = 1000  # of what an object shows of itself


def parameters(function):
    """Names, kinds and defaults, without the object itself."""
    given = list(inspect.signature(function).parameters.values())[1:]
    return [(one.name, one.kind, one.default) for one in given]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_method_of_the_model_has_the_signature_of_its_function(name):
    assert parameters(getattr(GeometricMixture, name)) == parameters(FUNCTIONS[name])


def test_the_report_takes_a_path_and_the_options_of_its_page():
    ours = [one for one in parameters(GeometricMixture.report) if one[0] != "path"]
    assert ours == parameters(report_html)


@pytest.mark.parametrize("owner", [GeometricMixture, GeometricMixtureClassifier])
def test_no_public_method_hides_its_parameters(owner):
    hidden = {
        name
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("geomix")
        for one in inspect.signature(method).parameters.values()
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    # These take any parameter of the estimator, or any fact, by name.
    assert hidden <= {"paper", "set_params", "with_edit"}


@pytest.mark.parametrize("name", FORWARDED)
def test_the_estimator_forwards_with_signature_and_description(name):
    ours, models = (getattr(kind, name) for kind in (GeometricMixtureClassifier, GeometricMixture))
    assert parameters(ours) == parameters(models)
    assert ours.__doc__ == models.__doc__
    with pytest.raises(NotFittedError):
        getattr(GeometricMixtureClassifier(), name)(np.zeros((1, 2)), None, None)


def test_the_estimator_explains_and_saves_as_its_model_does(iris, tmp_path):
    X, y = iris
    clf = classifier(2, lift="linear", l2=1e-3, max_iter=20, random_state=0).fit(X, y)
    ours, models = clf.explain_local(X[:3], label=1), clf.model_.explain_local(X[:3], label=1)
    np.testing.assert_array_equal(ours.contributions, models.contributions)
    assert clf.counterfactual(X[0], target=2).target == 2
    clf.save(tmp_path / "m.geomix")
    loaded = load(tmp_path / "m.geomix")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


# --- what objects show of themselves ---


@pytest.mark.parametrize("name", ["several", "committee", "fourier", "mixed spline"])
def test_a_model_shows_itself_in_a_few_lines(name):
    model, _, _ = fitted(name)
    lines = repr(model).splitlines()
    assert 2 <= len(lines) <= 6
    assert len(repr(model)) < MOST_CHARACTERS
    assert f"{len(model.classes)} classes" in lines[0]
    assert model.lift.kind in repr(model)
    assert model.columns[0] in repr(model)
    assert len(model._repr_html_()) < 2 * MOST_CHARACTERS


def test_a_model_of_many_classes_and_columns_with_long_names_is_short_and_safe(rng):
    names = np.array([f"<b>class {code:03d}</b>" + "x" * 300 for code in range(40)])
    X, y = rng.normal(size=(200, 90)), names[np.arange(200) % 40]
    model = classifier(1, lift="linear", l2=1.0, max_iter=2, random_state=0).fit(X, y).model_
    assert len(repr(model)) < MOST_CHARACTERS
    assert "and 35 more" in repr(model)
    assert "and 85 more" in repr(model)
    assert "<b>" not in model._repr_html_()


def test_a_history_shows_itself_in_a_few_lines(moons):
    history = GeometricMixtureClassifier(lift="linear", random_state=0).fit(*moons).history_
    history = replace(history, notes=("a note " * 100,) * 20)
    lines = repr(history).splitlines()
    assert 2 <= len(lines) <= 6
    assert len(repr(history)) < MOST_CHARACTERS
    assert f"{history.n_iter} iterations" in repr(history)
    assert "<table>" in history._repr_html_()
    assert repr(History()).startswith("History")


def test_a_history_cannot_be_changed(moons):
    history = GeometricMixtureClassifier(lift="linear", random_state=0).fit(*moons).history_
    with pytest.raises(FrozenInstanceError):
        history.l2 = 1.0
    for name in ("records", "trials", "notes"):
        assert isinstance(getattr(history, name), tuple)


# --- types ---

SCRIPT = """
import numpy as np

import geomix
from geomix import GeometricMixtureClassifier, Recipe

X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
clf = GeometricMixtureClassifier(3, lift="linear", advanced=Recipe(sharpness=8)).fit(X, y)
reveal_type(clf)  # GeometricMixtureClassifier
reveal_type(clf.model_)  # GeometricMixture
reveal_type(clf.history_)  # History
reveal_type(clf.classes_)  # ndarray
reveal_type(clf.n_iter_)  # int
reveal_type(clf.predict_proba(X))  # ndarray
reveal_type(clf.explain_local(X, label=1))  # LocalExplanation
reveal_type(clf.counterfactual(X[0], target=1))  # Counterfactual
reveal_type(clf.model_.rules(X))  # Rules
reveal_type(clf.partial_fit(X, y))  # GeometricMixtureClassifier
reveal_type(clf.coef_)  # ndarray
reveal_type(clf.feature_importances_)  # ndarray
reveal_type(geomix.load("m.geomix"))  # GeometricMixture
reveal_type(GeometricMixtureClassifier.from_model(clf.model_))  # GeometricMixtureClassifier
reveal_type(geomix.fit_files("rows.csv", "y", sharpness=8))  # GeometricMixtureClassifier
reveal_type(GeometricMixtureClassifier.paper(sharpness=8))  # GeometricMixtureClassifier
clf.counterfactual(X[0], targett=1)  # Unexpected keyword argument "targett"
GeometricMixtureClassifier(sharpness=8)  # Unexpected keyword argument "sharpness"
GeometricMixtureClassifier(preset="best")  # incompatible type "Literal['best']"
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_users_script_has_the_types_it_should(tmp_path, request):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    cache = request.config.cache.mkdir("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, script]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    told = {}
    for line in ran.stdout.splitlines():
        if "script.py:" in line:
            _, number, text = line.split(":", 2)
            told[number] = told.get(number, "") + text
    for number, line in enumerate(SCRIPT.splitlines(), start=1):
        _, _, expected = line.partition("  # ")
        if expected:
            assert expected in told.pop(str(number), ""), ran.stdout
    assert not told, ran.stdout
