"""Rows of raw cells in native code: the same numbers and the same refusals as in Python."""

import collections
import itertools
import json

import numpy as np
import pandas as pd
import pytest

from geomix import GeometricMixtureClassifier, Recipe, SchemaError

NAMES = ("age", "size", "colour", "code", "mixed")
FIXED = {"n_planes": 2, "l2": 1e-2, "max_iter": 5, "random_state": 0, "advanced": Recipe()}
CELLS = {
    "age": [1.5, 3, True, None, float("nan"), float("inf"), -0.0, 2**60, 10**400, np.float64(2.0),
            np.int64(7), np.int64(2**60), np.float32(0.5), np.nan, pd.NA, "7", b"7", 1j, "",
            object()],
    "size": [2.0, 1, False, None, "big", pd.NaT, np.array(3.0), [1.0]],
    "colour": ["red", "mauve", "", None, float("nan"), pd.NA, 3, 2.5, True, b"red", np.str_("red"),
               np.float64("nan"), "re\ud800d", ("red",), [1]],
    "code": [1, 2.0, np.int64(2), 77, 2.5, True, "1", None, float("nan"), 10**400, float("inf")],
    "mixed": ["a", 1, 1.0, True, "b", 0.25, None, {}],
}  # fmt: skip


def frame(n_rows=160):
    rng = np.random.default_rng(0)
    columns = {
        "age": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
        "size": rng.normal(size=n_rows),
        "colour": rng.choice(np.array(["red", "green", "blue", None], dtype=object), n_rows),
        "code": rng.choice([1, 2, 3], n_rows),
        "mixed": pd.Categorical(rng.choice(np.array(["a", 1, 0.25], dtype=object), n_rows)),
    }
    y = (columns["size"] + (columns["colour"] == "red") > 0.2).astype(int)
    return pd.DataFrame(columns), y


@pytest.fixture(scope="module", params=["linear", "spline"])
def model(request):
    X, y = frame()
    clf = GeometricMixtureClassifier(**FIXED, lift=request.param, categorical_features=["code"])
    return clf.fit(X, y).model_


def usual_row():
    return {"age": 0.5, "size": 1, "colour": "red", "code": 2, "mixed": "a"}


def outcome(work):
    """The numbers of an answer, or the kind and words of its error."""
    try:
        return np.asarray(work()).tolist()
    except Exception as error:
        return type(error), str(error)


def in_python(model, row):
    return model.answer("predict_proba", model.schema.encode_row(row)[None, :])[0]


@pytest.mark.parametrize(
    ("name", "position"), [(name, k) for name in NAMES for k in range(len(CELLS[name]))]
)
def test_every_kind_of_cell_is_answered_or_refused_as_by_the_schema(model, name, position):
    score, row = model.scorer(), {**usual_row(), name: CELLS[name][position]}
    for given in (row, list(row.values()), tuple(row.values())):
        expected = outcome(lambda given=given: in_python(model, given))
        assert repr(outcome(lambda given=given: score(given))) == repr(expected)


def test_the_order_of_the_names_does_not_matter(model):
    score, expected = model.scorer(), in_python(model, usual_row())
    for names in itertools.islice(itertools.permutations(NAMES), 0, None, 7):
        assert np.array_equal(score({name: usual_row()[name] for name in names}), expected)


def test_a_row_from_json_is_answered_like_its_frame(model):
    X, _ = frame()
    score, P = model.scorer(), model.predict_proba(X)
    for k, line in enumerate(X.to_json(orient="records", lines=True).splitlines()):
        row = json.loads(line)
        row = {**row, "age": X["age"][k], "size": X["size"][k]}  # JSON has fewer digits
        assert np.array_equal(score(row), P[k])


@pytest.mark.parametrize(
    "given",
    [
        dict.fromkeys(NAMES[:-1], 1),
        {**usual_row(), "extra": 1},
        {**dict.fromkeys(NAMES[:-1], 1), "other": 1},
        {**dict.fromkeys(NAMES[:-1], 1), 4: 1},
        {},
        [1.0, 2.0],
        "row",
        None,
        np.zeros(5),
        np.array([0.5, 1, "red", 2, "a"], dtype=object),
        np.zeros((1, 5)),
    ],
    ids=str,
)
def test_rows_of_another_shape_get_the_schemas_error(model, given):
    expected = outcome(lambda: in_python(model, given))
    assert outcome(lambda: model.scorer()(given)) == expected


def test_a_missing_column_is_named(model):
    row = usual_row()
    del row["colour"]
    with pytest.raises(SchemaError, match=r"(?s)now missing.*colour"):
        model.scorer()(row)


def test_other_mappings_are_read_like_dicts(model):
    score, expected = model.scorer(), in_python(model, usual_row())
    assert np.array_equal(score(collections.OrderedDict(usual_row())), expected)
    assert np.array_equal(score(collections.ChainMap(usual_row())), expected)


class Meddling(str):
    """A key that empties the row as soon as it is compared."""

    row: dict

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        self.row.clear()
        return True


def test_a_row_that_changes_while_it_is_read_breaks_nothing(model):
    row = usual_row()
    key = Meddling("mixed")
    key.row = row
    row[key] = row.pop("mixed")
    assert len(row) in (0, 5)
    with pytest.raises((SchemaError, RuntimeError, KeyError)):
        model.scorer()(row)


def test_numbers_with_holes_are_read_from_an_array_too():
    X, y = frame()
    X = X[["age", "size"]]
    fitted = GeometricMixtureClassifier(**FIXED, lift="linear").fit(X, y).model_
    score, P = fitted.scorer(), fitted.predict_proba(X)
    for k, row in enumerate(X.to_numpy()):
        assert np.array_equal(score(row), P[k])
        assert np.array_equal(score({"age": row[0], "size": row[1]}), P[k])


def test_the_reasons_are_by_raw_column_and_add_up(model):
    found = model.scorer().explain(usual_row())
    plane = model.planes.class_start[found.label] + found.plane
    total = found.contributions.sum() + model.planes.biases[plane]
    assert found.contributions.shape == (len(NAMES),)
    assert total == pytest.approx(found.score, abs=1e-12)
    assert model.scorer().predict(usual_row()) == found.label
