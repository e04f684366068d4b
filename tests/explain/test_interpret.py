"""Explanations as InterpretML takes them."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from reading_models import fitted

from geomix.errors import NoShapes


@pytest.fixture(scope="module")
def two_classes():
    from geomix import GeometricMixtureClassifier

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"number": rng.normal(size=300), "level": rng.choice(["a", "b"], 300)})
    y = np.where(X["number"] + rng.logistic(size=300) > 0.0, "yes", "no")
    clf = GeometricMixtureClassifier(1, lift="spline", l2=0.01, max_interactions=0, random_state=0)
    return clf.fit(X, y), X, y


def test_data_has_names_scores_bounds_and_density_of_each_column(two_classes):
    clf, X, y = two_classes
    told = clf.explain_global(X, y)
    number, level = told.data(0), told.data(1)
    n_pieces = len(number["scores"])
    assert len(number["names"]) == n_pieces + 1  # edges, as InterpretML has them
    assert len(number["lower_bounds"]) == len(number["upper_bounds"]) == n_pieces
    assert sum(number["density"]["scores"]) == pytest.approx(len(X), abs=40)
    assert level["names"] == ["a", "b"]
    assert level["density"]["scores"] == X["level"].value_counts().sort_index().tolist()
    assert (level["lower_bounds"] <= level["scores"]).all()
    assert number["meta"] == {"label_names": ["no", "yes"]}


def test_data_without_a_key_has_the_importances(two_classes):
    clf, X, _ = two_classes
    facts = clf.explain_global(X).data()
    assert facts["names"] == ["number", "level"]
    assert facts["scores"] == [one.size for one in clf.effects(X)]
    everything = clf.explain_global(X).data(-1)
    assert everything["overall"] == facts
    assert len(everything["specific"]) == 2


def test_data_of_several_classes_has_a_score_for_each(two_classes):
    model, X, _ = fitted("mixed linear")
    told = model.explain_global(X)
    assert told.data(0)["scores"].shape[1] == 3
    pair = told.data(len(told.feature_names) - 1)
    assert pair["type"] == "interaction"
    assert pair["scores"].shape[2] == 3


def test_data_of_one_row_adds_up_to_its_log_odds(two_classes):
    clf, X, _ = two_classes
    told = clf.explain_local(X[:3])
    facts = told.data(2)
    total = sum(facts["scores"]) + sum(facts["extra"]["scores"])
    assert total == pytest.approx(told.margin[2])
    assert facts["values"] == X.iloc[2].tolist()
    assert told.data() is None


def test_a_key_that_is_not_there_is_refused(two_classes):
    clf, X, _ = two_classes
    with pytest.raises(ValueError, match="0 to 1"):
        clf.explain_global(X).data(2)


def test_a_fourier_model_without_rows_has_no_data():
    model, _, _ = fitted("fourier")
    with pytest.raises(NoShapes, match="pass X"):
        model.explain_global().data()


def test_without_interpretml_the_message_names_what_to_install(two_classes, monkeypatch):
    clf, X, _ = two_classes
    monkeypatch.setitem(sys.modules, "interpret", None)
    monkeypatch.delitem(sys.modules, "interpret.visual.plot", raising=False)
    with pytest.raises(ImportError, match="pip install interpret"):
        clf.explain_global(X).visualize()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["two classes", "several"])
def test_interpret_show_takes_our_explanations(kind, two_classes):
    interpret = pytest.importorskip("interpret")
    pytest.importorskip("interpret.visual.plot", reason="interpret-core alone has no plotly")
    if kind == "two classes":
        clf, X, _ = two_classes
    else:
        clf, X, _ = fitted("mixed linear")
    drawn = []

    class Keeps:
        def render(self, explanation, key=-1, **kwargs):
            keys = [None, *range(len(explanation.selector))] if key == -1 else [key]
            drawn.extend(explanation.visualize(one) for one in keys)

    before = interpret.get_visualize_provider()
    interpret.set_visualize_provider(Keeps())
    try:
        told = clf.explain_global(X)
        interpret.show(told)
        assert len(drawn) == 1 + len(told.feature_names)
        interpret.show(told, key=told.feature_names[0])
        interpret.show(clf.effects(X), key=0)
        interpret.show(clf.explain_local(X[:2]), key=1)
    finally:
        interpret.set_visualize_provider(before)
    assert all(hasattr(figure, "to_json") for figure in drawn)
    assert "log-odds" in drawn[-1].to_json()
