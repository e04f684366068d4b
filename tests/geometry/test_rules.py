"""Rules that cover: short, pure, and with the figures of what is printed."""

import json
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest
from reading_models import fitted

from geomix import GeometricMixtureClassifier
from geomix.geometry.rules import wilson_interval

NAMES = ["linear", "committee", "mixed linear", "mixed spline", "mixed fourier", "fourier"]


def car_like():
    """Every combination of four categories; unacc wherever persons is 2 or safety is low."""
    levels = {
        "buying": ["low", "med", "high", "vhigh"],
        "doors": ["2", "3", "4"],
        "persons": ["2", "4", "more"],
        "safety": ["low", "med", "high"],
    }
    grid = pd.MultiIndex.from_product(levels.values(), names=levels.keys())
    X = grid.to_frame(index=False)
    X = pd.concat([X] * 4, ignore_index=True)
    is_bad = (X["persons"] == "2") | (X["safety"] == "low")
    is_good = ~is_bad & (X["buying"] == "low") & (X["safety"] == "high")
    return X, np.where(is_bad, "unacc", np.where(is_good, "good", "acc"))


def as_frame(model, X):
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=list(model.columns))


def python_predictions(found, frame):
    scope = {}
    exec(found.to_python(), scope)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [scope["predict"](row) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_that_of_the_printed_rule(name):
    model, X, y = fitted(name)
    frame, predicted = as_frame(model, X), model.predict(X)
    found = model.rules(X, y, purity=0.8)
    assert len(found) > 0
    covered = np.zeros(len(y), dtype=bool)
    for rule in found:
        alone = type(found)((rule,), len(y), 0.0, None, None, None, True)
        inside = np.array([answer is not None for answer in python_predictions(alone, frame)])
        assert rule.n_rows == inside.sum()
        assert rule.coverage == inside.mean()
        assert rule.purity == (y[inside] == rule.label).mean() >= 0.8
        assert rule.fidelity == (predicted[inside] == rule.label).mean() >= 0.8
        assert rule.n_new == (inside & ~covered).sum()
        assert rule.purity_low < rule.purity <= rule.purity_high
        covered |= inside
    assert found.coverage == covered.mean()
    answers = python_predictions(found, frame)
    right = [a == b for a, b, inside in zip(answers, y.tolist(), covered, strict=True) if inside]
    assert found.purity == pytest.approx(np.mean(right))


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_the_first_rules_find_what_one_sees_at_once(lift):
    X, y = car_like()
    settings = {"lift": lift, "n_planes": 2, "l2": 1e-4, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    found = model.rules(X, y, class_="unacc")
    assert {str(rule) for rule in found} == {"persons = 2", "safety = low"}
    assert found.coverage == pytest.approx(5 / 9)
    assert found.purity == 1.0
    assert found.default is None


@pytest.mark.parametrize("max_terms", [1, 2])
def test_a_rule_has_no_more_conditions_than_asked_for_and_no_rule_twice(max_terms):
    for name in NAMES:
        model, X, y = fitted(name)
        found = model.rules(X, y, max_terms=max_terms, max_rules=5, purity=0.7)
        assert len(found) <= 5
        assert all(len(rule.conditions) <= max_terms for rule in found)
        assert len({(rule.label, rule.conditions) for rule in found}) == len(found)


@pytest.mark.parametrize("name", ["mixed spline", "spline"])
def test_sql_and_python_answer_alike(name):
    model, X, y = fitted(name)
    frame = as_frame(model, X)
    found = model.rules(X, y, purity=0.8)
    expected = python_predictions(found, frame)
    rows = frame.astype(object).where(frame.notna(), None)
    columns = ", ".join(
        f'"{c}" {"DOUBLE" if frame[c].dtype.kind == "f" else "TEXT"}' for c in frame
    )
    marks = ", ".join("?" * frame.shape[1])
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany(f"INSERT INTO t VALUES ({marks})", rows.to_numpy().tolist())
        answers = connection.execute(f"SELECT {found.to_sql()} FROM t").fetchall()
        assert [answer for (answer,) in answers] == expected


def test_without_labels_purity_is_against_the_predictions():
    model, X, _ = fitted("several")
    found = model.rules(X)
    assert not found.is_labelled
    assert all(rule.purity == rule.fidelity for rule in found)


def test_rules_as_text_frame_json_and_html():
    model, X, y = fitted("mixed linear")
    found = model.rules(X, y, purity=0.8)
    text = found.to_text().splitlines()
    assert text[0].startswith("if ")
    assert text[1].startswith("else if ")
    assert text[-1] == f"else: {found.default}"
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == len(found)
    assert "red <b>" not in found._repr_html_()
    assert f"{len(found)} rules cover" in str(found)
    assert found.of_class(found[0].label)[0] is found[0]


def test_settings_that_make_no_sense_are_refused():
    model, X, y = fitted("linear")
    for options in (
        {"purity": 0.0},
        {"purity": 1.5},
        {"max_terms": 0},
        {"max_rules": 0},
        {"min_coverage": 2.0},
        {"digits": 0},
        {"class_": "nope"},
    ):
        with pytest.raises(ValueError, match="expected"):
            model.rules(X, y, **options)
    with pytest.raises(ValueError, match="pass X"):
        model.rules()


def test_a_purity_that_no_rule_reaches_leaves_an_empty_list():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    settings = {"lift": "linear", "n_planes": 1, "l2": 1.0, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    found = model.rules(X, y, purity=1.0, min_coverage=0.2)
    assert len(found) == 0
    assert found.coverage == 0.0
    assert found.to_sql().startswith("CASE")
    assert python_predictions(found, as_frame(model, X)) == [found.default] * 200


def test_the_wilson_interval_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    for n_hits, n_rows in ((0, 7), (3, 10), (99, 100), (20, 20)):
        expected = stats.binomtest(n_hits, n_rows).proportion_ci(method="wilson")
        assert wilson_interval(n_hits, n_rows) == pytest.approx(tuple(expected), abs=1e-12)


def test_every_rule_adds_rows_to_those_before_it():
    """Also where an earlier rule covers more than was searched, since it needs fewer conditions."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 10, 300), "f": rng.normal(size=300)})
    X["c"] = rng.choice(list("pqr"), 300)
    score = X["a"] / 3 + X["f"] * (X["c"] == "p") + 0.5 * rng.normal(size=300)
    y = np.digitize(score, [1.0, 2.0])
    model = GeometricMixtureClassifier(lift="linear", n_planes=1, random_state=0).fit(X, y).model_
    for i in range(0, 300, 30):
        for purity in (0.5, 0.6, 0.8):
            some = X[i : i + 30].reset_index(drop=True)
            found = model.rules(some, y[i : i + 30], purity=purity, max_terms=2)
            assert all(rule.n_new >= 2 for rule in found)
