"""Models as ONNX graphs: ONNX Runtime answers as the library does, from raw columns."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
from making import classifier
from saved_models import MAKERS, case, exported_rows, mixed, numbers
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from geomix.export.onnx import to_onnx
from geomix.export.onnx_graph import MISSING_INTEGER
from geomix.export.sklearn_onnx import register
from geomix.table.schema import Column

QUICK = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "max_iter": 20, "random_state": 0}
PRECISION = {"float32": 1e-6, "float64": 1e-12}


def session_of(graph):
    content = graph if isinstance(graph, bytes) else graph.SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def rounded(model, rows, dtype):
    """Rows whose numbers are floats of this type, as raw cells: the input of either side."""
    rows = rows.astype(object)
    for j, column in enumerate(model.schema.columns):
        if column.kind == "number":
            cells = np.array([np.nan if x is None else x for x in rows[:, j]], dtype=float)
            with np.errstate(over="ignore"):
                rows[:, j] = cells.astype(dtype).astype(float)
    keep = [all(not isinstance(x, float) or not np.isinf(x) for x in row) for row in rows]
    return rows[keep]


def fed(model, rows, dtype, missing_text="?"):
    """What the graph takes: one array, or one for each column."""
    if not model.schema.has_categories:
        return {"X": rows.astype(dtype)}
    given = {}
    for j, column in enumerate(model.schema.columns):
        cells = rows[:, [j]]
        holes = np.array([[x is None or x != x] for x in rows[:, j]])
        if column.kind == "number":
            given[column.name] = np.where(holes, np.nan, cells).astype(dtype)
        elif isinstance(column.levels[0], str):
            given[column.name] = np.where(holes, missing_text, cells).astype(object)
        else:
            given[column.name] = np.where(holes, MISSING_INTEGER, cells).astype(np.int64)
    return given


def check(model, rows, dtype):
    graph = to_onnx(model, double=dtype == "float64", missing_text="?")
    rows = rounded(model, rows, dtype)
    label, p, plane = session_of(graph).run(None, fed(model, rows, dtype))
    raw = rows if model.schema.has_categories else rows.astype(float)
    assert p.dtype == dtype
    np.testing.assert_allclose(p, model.predict_proba(raw), rtol=0.0, atol=PRECISION[dtype])
    assert label.tolist() == model.predict(raw).tolist()
    score = model.scorer()
    assert plane.tolist() == [score.explain(row.tolist()).plane for row in raw]


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("name", MAKERS)
def test_onnx_runtime_answers_as_the_model_does(name, dtype):
    check(case(name).model, exported_rows(name), dtype)


@pytest.mark.parametrize("labels", [[False, True], ["a", "ü\n\U0001f600"], [2**40, -5]])
def test_labels_come_back_as_they_are(labels):
    X, y = numbers()
    order = np.sort(labels)
    model = classifier(**QUICK).fit(X, order[(y > 0).astype(int)]).model_
    label, _, _ = session_of(to_onnx(model)).run(None, {"X": X.astype("float32")})
    assert label.tolist() == model.predict(X.astype("float32")).tolist()
    assert {type(one) for one in label.tolist()} == {type(one) for one in labels}


def test_a_row_is_answered_alike_in_any_batch():
    model, rows = case("spline mixed").model, case("spline mixed").rows
    session = session_of(to_onnx(model, double=True, missing_text="?"))
    whole = session.run(None, fed(model, rows, "float64"))[1]
    for i in (0, 7, len(rows) - 1):
        one = session.run(None, fed(model, rows[i : i + 1], "float64"))[1]
        np.testing.assert_allclose(one[0], whole[i], rtol=0.0, atol=1e-15)


def test_the_graph_says_what_its_columns_and_classes_are():
    about = {one.key: json.loads(one.value) for one in to_onnx(case("linear").model).metadata_props}
    assert about == {"classes": [0, 1, 2], "columns": ["x0", "x1", "x2"]}


def test_a_category_of_floats_is_a_tensor_of_floats():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.choice([0.5, 1.0, 2.25], 200)])
    X[::9, 1] = np.nan
    y = (X[:, 0] + (X[:, 1] == 0.5) > 0.3).astype(int)
    clf = classifier(**QUICK, categorical_features=[1]).fit(X, y)
    session = session_of(to_onnx(clf.model_, double=True))
    rows = np.vstack([X, [[0.0, 7.5]]])
    _, p, _ = session.run(None, {"x0": rows[:, [0]], "x1": rows[:, [1]]})
    np.testing.assert_allclose(p, clf.predict_proba(rows), rtol=0.0, atol=1e-12)


def with_columns(model, *columns):
    table = type(model.schema)(columns)
    return replace(model, schema=table, columns=table.names)


def doses(rng, levels):
    """A table with a category of floats that have no exact float32, and its model."""
    X = pd.DataFrame({"dose": rng.choice(levels, 200), "z": rng.normal(size=200)})
    y = ((X.dose == levels[0]) ^ (rng.random(200) < 0.1)).astype(int)
    return X, classifier(**QUICK, categorical_features=["dose"]).fit(X, y)


@pytest.mark.parametrize("dtype", PRECISION)
def test_levels_without_an_exact_float32_are_found_in_either_precision(dtype, rng):
    X, clf = doses(rng, [0.1, 0.2, 0.3])
    given = {name: X[[name]].to_numpy(dtype) for name in X}
    session = session_of(to_onnx(clf.model_, double=dtype == "float64"))
    label, p, _ = session.run(None, given)
    rows = X.assign(z=X.z.astype(dtype).astype(float))
    np.testing.assert_allclose(p, clf.predict_proba(rows), rtol=0.0, atol=PRECISION[dtype])
    assert label.tolist() == clf.predict(rows).tolist()


def test_levels_that_are_one_number_in_float32_need_double_numbers(rng):
    _, clf = doses(rng, [0.1, 0.1 + 1e-12])
    with pytest.raises(ValueError, match="column 'dose' are one number in float32"):
        to_onnx(clf.model_)
    to_onnx(clf.model_, double=True)


def test_labels_beyond_signed_integers_come_back(rng):
    X, classes = rng.normal(size=(60, 2)), np.array([5, 2**63 + 5], dtype=np.uint64)
    model = classifier(**QUICK).fit(X, classes[(X[:, 0] > 0).astype(int)]).model_
    label = session_of(to_onnx(model)).run(["label"], {"X": X.astype("float32")})[0]
    assert label.tolist() == model.predict(X.astype("float32")).tolist()


def test_what_a_graph_cannot_hold_is_refused_by_name():
    model = case("linear mixed").model
    size, other, colour, code = model.schema.columns
    with pytest.raises(ValueError, match="missing_text"):
        to_onnx(model)  # the empty text is a level of the third column
    for name in ("label", "geomix_1", ""):
        with pytest.raises(ValueError, match="Rename"):
            to_onnx(
                with_columns(model, replace(size, name=name), other, colour, code), missing_text="?"
            )
    odd = Column("x3", "category", ("a", *code.levels[1:]), code.has_other)
    with pytest.raises(ValueError, match="text and numbers"):
        to_onnx(with_columns(model, size, other, colour, odd), missing_text="?")
    alone = Column("x2", "category", ("\ud800", *colour.levels[1:]), colour.has_other)
    with pytest.raises(ValueError, match="UTF-8"):
        to_onnx(with_columns(model, size, other, alone, code), missing_text="?")


# --- skl2onnx ---


@pytest.fixture(autouse=True)
def registered():
    register()


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
@pytest.mark.parametrize("dtype", PRECISION)
def test_a_pipeline_converts(lift, dtype):
    X, y = numbers()
    settings = {
        **QUICK,
        "lift": lift,
        "gamma": 0.1,
        "shrink_to_mean": 0.0,
        "preset": "accurate",
        "n_members": 2,
    }
    pipeline = make_pipeline(StandardScaler(), classifier(**settings)).fit(X, y)
    graph = skl2onnx.to_onnx(pipeline, X[:1].astype(dtype), options={"zipmap": False})
    session = session_of(graph)
    label, p, plane = session.run(None, {session.get_inputs()[0].name: X.astype(dtype)})
    # The scaler in front computes in float32, which costs a digit.
    precision = 1e-5 if dtype == "float32" else 1e-12
    X = X.astype(dtype).astype(float)
    np.testing.assert_allclose(p, pipeline.predict_proba(X), rtol=0.0, atol=precision)
    assert (label == pipeline.predict(X)).mean() > 0.99
    score = pipeline[-1].model_.scorer()
    inside = pipeline[:-1].transform(X)
    assert np.mean([score.explain(row).plane for row in inside] == plane) > 0.99


@pytest.mark.parametrize("labels", [None, ["a", "b", "c"]])
def test_the_estimator_alone_converts_to_six_digits(labels):
    X, y = numbers()
    y = y if labels is None else np.array(labels)[y]
    clf = classifier(**QUICK).fit(X, y)
    single = X.astype("float32")
    label, p, _ = session_of(skl2onnx.to_onnx(clf, single[:1])).run(None, {"X": single})
    np.testing.assert_allclose(p, clf.predict_proba(single), rtol=0.0, atol=1e-6)
    assert label.tolist() == clf.predict(single).tolist()


def test_an_estimator_of_categories_takes_one_input_for_each_column():
    X, y = mixed()
    X[X[:, 2] == "", 2] = "none"
    clf = classifier(**QUICK, categorical_features=[3]).fit(X, y)
    types = [DoubleTensorType, DoubleTensorType, StringTensorType, Int64TensorType]
    names = clf.model_.columns
    declared = [(name, kind([None, 1])) for name, kind in zip(names, types, strict=True)]
    session = session_of(skl2onnx.to_onnx(clf, initial_types=declared))
    label, p, _ = session.run(None, fed(clf.model_, X, "float64", missing_text=""))
    np.testing.assert_allclose(p, clf.predict_proba(X), rtol=0.0, atol=1e-12)
    assert label.tolist() == clf.predict(X).tolist()
    with pytest.raises(ValueError, match=r"one .* input for each column"):
        skl2onnx.to_onnx(clf, initial_types=[("X", StringTensorType([None, 4]))])


def test_a_vote_with_other_classifiers_converts():
    X, y = numbers()
    X = X / [1.0, 10.0, 100.0]
    voters = [("one", classifier(**QUICK)), ("other", LogisticRegression())]
    vote = VotingClassifier(voters, voting="soft", flatten_transform=False).fit(X, y)
    options = {id(vote): {"zipmap": False}}
    single = X.astype("float32")
    graph = skl2onnx.to_onnx(
        vote, initial_types=[("X", FloatTensorType([None, 3]))], options=options
    )
    p = session_of(graph).run(None, {"X": single})[1]
    np.testing.assert_allclose(p, vote.predict_proba(single), rtol=0.0, atol=1e-5)


def test_an_old_target_opset_is_refused():
    X, y = numbers()
    clf = classifier(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="at least 18"):
        skl2onnx.to_onnx(clf, X[:1], target_opset={"": 17, "ai.onnx.ml": 3})


@pytest.mark.parametrize(("module", "package"), [("onnx", "onnx"), ("sklearn_onnx", "skl2onnx")])
def test_without_the_package_a_message_says_what_to_install(module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"geomix.export.{module}")
    with pytest.raises(ImportError, match=r"pip install 'geomix\[onnx\]'"):
        importlib.import_module(f"geomix.export.{module}")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_calibrated_classifier_converts(n_classes, rng):
    X = rng.normal(size=(200, 3)).astype("float32")
    y = np.digitize(X[:, 0] + rng.normal(0.0, 0.3, 200), [0.0, 0.7][: n_classes - 1])
    clf = CalibratedClassifierCV(classifier(**QUICK), method="sigmoid", cv=2).fit(X, y)
    graph = skl2onnx.to_onnx(clf, X[:1], options={"zipmap": False})
    label, p = session_of(graph).run(None, {"X": X})[:2]
    np.testing.assert_allclose(p, clf.predict_proba(X), rtol=0.0, atol=1e-5)
    assert (label == clf.predict(X)).mean() > 0.99


def test_skl2onnx_finds_float_levels_and_refuses_tensors_of_another_kind(rng):
    X, clf = doses(rng, [0.1, 0.2, 0.3])
    X = X.assign(z=X.z.astype("float32").astype(float))
    declared = [(name, FloatTensorType([None, 1])) for name in X]
    session = session_of(skl2onnx.to_onnx(clf, initial_types=declared))
    given = {name: X[[name]].to_numpy("float32") for name in X}
    p = session.run(None, given)[1]
    np.testing.assert_allclose(p, clf.predict_proba(X), rtol=0.0, atol=1e-6)
    coded = X.assign(dose=(10 * X.dose).round().astype(int))
    clf = classifier(**QUICK, categorical_features=["dose"]).fit(coded, X.z > 0)
    with pytest.raises(ValueError, match=r"'dose' has levels of integers.*Int64TensorType"):
        skl2onnx.to_onnx(clf, initial_types=declared)


def test_skl2onnx_refuses_labels_beyond_64_bits():
    X, y = numbers()
    labels = np.array([5, 2**63 + 5], dtype=np.uint64)
    clf = classifier(**QUICK).fit(X, labels[(y == y[0]).astype(int)])
    with pytest.raises(ValueError, match=r"labels \[5, .* are not whole numbers of 64 bits"):
        skl2onnx.to_onnx(clf, X[:1].astype("float32"))
