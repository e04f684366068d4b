"""Tables of numbers, categories and missing cells: how they are read, learnt and answered."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from kernels import SLOW_WITH_NUMPY, fast_with_numpy
from making import classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.class_weight import compute_sample_weight

from geomix import (
    DataQualityWarning,
    GeometricMixtureClassifier,
    InvalidParameterError,
    SchemaError,
)
from geomix.core.predictors import NumpyPredictor
from geomix.explain.diagnostics import top_columns
from geomix.table.category_levels import MOST_LEVELS
from geomix.table.one_hot import MISSING, NUMBER, expanded, fit_expand
from geomix.table.row_views import all_rows, blocks
from geomix.table.schema import Column, Schema
from geomix.training.rows import Rows, column_range, distinct_rows

pytestmark = pytest.mark.kernel

QUICK = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "max_iter": 40, "random_state": 0}
# One optimum, reached: what must not matter then does not.
CONVEX = {
    "n_planes": 1, "l2": 1e-2, "tol": 1e-12, "max_iter": 1000, "early_stopping": "off",
    "calibrate": False,
}  # fmt: skip


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


def convex(**parameters):
    return quick(**{**CONVEX, **parameters})


def columns_of(n_rows=240, seed=0):
    """Plain lists: two numbers, one with holes; text with holes; a boolean; and labels."""
    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(40.0, 10.0, n_rows), 1)
    colour = rng.choice(["red", "green", "blue", ""], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    member = rng.random(n_rows) < 0.5
    hole, blank = rng.random(n_rows) < 0.15, rng.random(n_rows) < 0.1
    score = (age - 40) / 10 + 1.5 * (colour == "red") - 1.5 * blank + 0.8 * member + hole
    y = (score + rng.normal(0.0, 0.7, n_rows) > 0.9).astype(int)
    return {
        "age": [None if gap else float(x) for x, gap in zip(age, hole, strict=True)],
        "height": rng.normal(170.0, 9.0, n_rows).tolist(),
        "colour": [None if gap else str(x) for x, gap in zip(colour, blank, strict=True)],
        "member": member.tolist(),
    }, y


def as_object_array(columns):
    return np.array(list(zip(*columns.values(), strict=True)), dtype=object)


def pandas_categories(columns):
    return pd.DataFrame(columns).astype({"colour": "category"})


MAKERS = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas categories": pandas_categories,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas over Arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars categories": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("colour").cast(pl.Categorical)
    ),
    "polars enum": lambda columns: pl.DataFrame(columns).with_columns(
        # An Enum keeps its order (test_any_frame), so here it has that of the texts.
        pl.col("colour").cast(pl.Enum(["", "blue", "green", "never", "red"]))
    ),
    "arrow": pa.table,
    "arrow dictionary": lambda columns: pa.table(
        {**columns, "colour": pa.array(columns["colour"]).dictionary_encode()}
    ),
    "objects": as_object_array,
    "lists": lambda columns: as_object_array(columns).tolist(),
}


@pytest.fixture(scope="module")
def fitted():
    columns, y = columns_of()
    return quick().fit(pd.DataFrame(columns), y)


# --- reading ---


@SLOW_WITH_NUMPY
@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_of_table_gives_the_same_bits(fitted, kind):
    columns, y = columns_of()
    X = MAKERS[kind](columns)
    clf = quick().fit(X, y)
    expected = fitted.predict_proba(pd.DataFrame(columns))
    assert np.array_equal(clf.predict_proba(X), expected)
    assert np.array_equal(clf.model_.predict_proba(X), expected)
    ours, theirs = clf.model_.schema.columns, fitted.model_.schema.columns
    assert [(one.kind, one.levels) for one in ours] == [(one.kind, one.levels) for one in theirs]


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind not in ("objects", "lists")])
def test_a_model_of_one_library_reads_the_frames_of_all(fitted, kind):
    columns, _ = columns_of(seed=1)
    expected = fitted.predict_proba(pd.DataFrame(columns))
    assert np.array_equal(fitted.predict_proba(MAKERS[kind](columns)), expected)


def test_levels_are_in_the_order_of_their_texts_and_the_empty_text_is_one(fitted):
    table = fitted.model_.schema
    assert [column.kind for column in table.columns] == ["number", "number", "category", "number"]
    assert table.columns[2].levels == ("", "blue", "green", "red")
    assert table.n_levels.tolist() == [0, 0, 4, 0]
    assert table.names == fitted.model_.columns == ("age", "height", "colour", "member")


def test_codes_are_those_of_pandas_factorize(fitted):
    columns, _ = columns_of()
    frame = pd.DataFrame(columns)
    rows = fitted.model_.schema.encode(frame)
    codes, _ = pd.factorize(frame["colour"], sort=True)
    assert np.array_equal(rows[:, 2], np.where(codes < 0, np.nan, codes), equal_nan=True)
    assert np.array_equal(rows[:, 0], frame["age"].to_numpy(), equal_nan=True)
    assert np.array_equal(rows[:, 3], frame["member"].astype(float))
    assert rows.dtype == np.float64


def test_encoding_comes_back_to_the_cells(fitted):
    columns, _ = columns_of()
    table = fitted.model_.schema
    codes = table.encode(pd.DataFrame(columns))[:, 2]
    back = [None if np.isnan(c) else table.columns[2].levels[int(c)] for c in codes]
    assert back == columns["colour"]
    for row, cells in enumerate(zip(*columns.values(), strict=True)):
        assert np.array_equal(
            table.encode_row(cells), table.encode(as_object_array(columns))[row], equal_nan=True
        )


@pytest.mark.parametrize(
    "codes",
    [
        pd.Series(pd.Categorical([10, 9, 10, 9, None, 2, 2, 9])),
        pd.Series([10, 9, 10, 9, None, 2, 2, 9], dtype="Int64"),
        pd.Series([10.0, 9, 10, 9, np.nan, 2, 2, 9]),
        pd.Series([10, 9, 10, 9, None, 2, 2, 9], dtype=object),
    ],
)
def test_whole_numbers_as_levels_stay_integers(codes):
    X = pd.DataFrame({"a": np.arange(8.0), "k": codes})
    clf = convex(categorical_features=["k"]).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    assert clf.model_.schema.columns[1].levels == (10, 2, 9)  # by text
    assert all(type(level) is int for level in clf.model_.schema.columns[1].levels)
    assert clf.model_.expanded_names == ("a", "k=10", "k=2", "k=9", "k missing")


def test_numbers_in_a_text_column_are_text():
    X = pd.DataFrame({"k": ["12", "x", "12", "x", "7", "7"], "a": np.arange(6.0)})
    clf = quick(n_planes=1).fit(X, [0, 0, 0, 1, 1, 1])
    assert clf.model_.schema.columns[0].levels == ("12", "7", "x")
    all_digits = pd.DataFrame({"k": ["1", "2"] * 3, "a": np.arange(6.0)})
    assert quick(n_planes=1).fit(all_digits, [0, 0, 0, 1, 1, 1]).model_.schema.has_categories


@pytest.mark.parametrize("make", [np.array, lambda X: np.array(X, dtype=object), list])
def test_text_of_digits_in_a_plain_array_is_refused_unless_named(make):
    X = make([["1", "a"], ["2", "b"]] * 3)
    y = [0, 1] * 3
    with pytest.raises(SchemaError, match=r"'x0' holds text: row 0 is '1'.*categorical_features"):
        quick().fit(X, y)
    clf = convex(categorical_features=[0]).fit(X, y)
    assert clf.model_.schema.columns[0].levels == ("1", "2")


@pytest.mark.parametrize("kind", ["pandas objects", "objects", "lists"])
@pytest.mark.parametrize("odd", [7, 1.5, True])
def test_a_column_that_mixes_text_and_numbers_is_named_with_both_cells(kind, odd):
    columns, y = columns_of()
    columns["colour"][:6] = ["red", None, "blue", odd, "red", "red"]
    name = "colour" if kind.startswith("pandas") else "x2"
    words = f"Column '{name}' mixes text with other types: row 0 is 'red', row 3 is {odd!r}"
    with pytest.raises(SchemaError, match=words):
        quick().fit(MAKERS[kind](columns), y)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"a": 1}, "row 1 holds"),
        (datetime.date(2024, 1, 1), "dates or times"),
        (b"bytes", "holds bytes"),
    ],
)
def test_what_is_neither_number_nor_label_is_refused(cell, words):
    X = pd.DataFrame({"k": pd.Series(["u", cell, "u", "v"], dtype=object)})
    with pytest.raises(SchemaError, match=words):
        quick(categorical_features=["k"]).fit(X, [0, 1, 0, 1])


def test_an_infinite_category_is_never_missing():
    X = np.array([[1.0], [np.inf], [2.0], [1.0]])
    with pytest.raises(ValueError, match=r"contains infinity .*\(x0: 1 of 4\)"):
        quick(categorical_features=[0]).fit(X, [0, 1, 0, 1])


def test_infinity_among_missing_numbers_and_categories_is_named():
    columns, y = columns_of()
    columns["age"][5] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity .*\(age: 1 of 240\)"):
        quick().fit(pd.DataFrame(columns), y)


# --- which columns are categories ---


@SLOW_WITH_NUMPY
@pytest.mark.parametrize("named", [["code"], [1], [-2], [False, True, False], np.array(["code"])])
def test_named_columns_are_categories_like_those_of_the_type(named):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(60), "code": rng.integers(0, 4, 60), "b": rng.random(60)})
    y = (X["code"] % 2).to_numpy()
    expected = quick().fit(X.astype({"code": "category"}), y)
    clf = quick(categorical_features=named).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), expected.predict_proba(X))
    assert not quick().fit(X, y).model_.schema.has_categories


def test_integer_codes_of_an_array_can_be_categories():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 5, 200), rng.random(200)].astype(float)
    y = np.isin(X[:, 0], [0, 3]).astype(int)
    as_numbers, as_codes = quick(n_planes=1), quick(n_planes=1, categorical_features=[0])
    assert as_numbers.fit(X, y).score(X, y) < 0.9
    assert as_codes.fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("a", "expected None, or a list"),
        (["a", 0], "expected None, or a list"),
        ([1.5], "expected None, or a list"),
        (["c"], "names the column 'c', which X does not have"),
        ([2], "names the column 2"),
        ([-3], "names the column -3"),
        ([True], "a mask of 1 categorical_features for 2 columns"),
    ],
)
def test_columns_that_are_not_there_cannot_be_categories(named, words):
    X = pd.DataFrame({"a": [1, 2, 1, 2], "b": [0.5, 1.5, 2.5, 3.5]})
    with pytest.raises(InvalidParameterError, match=words):
        quick(categorical_features=named).fit(X, [0, 1, 0, 1])


def test_columns_of_an_array_have_no_names():
    with pytest.raises(InvalidParameterError, match="no names; give their positions"):
        quick(categorical_features=["a"]).fit(np.eye(4), [0, 1, 0, 1])


# --- rare, many, single and missing levels ---


def table_of(levels, **more):
    n_rows = len(levels)
    y = np.arange(n_rows) % 2
    X = pd.DataFrame({"k": levels, "a": np.arange(n_rows) / n_rows, **more})
    return quick(n_planes=1).fit(X, y).model_.schema


def test_levels_of_one_row_are_pooled_where_there_are_two_of_them():
    assert table_of(["a", "a", "b", "b", "c"]).columns[0] == Column(
        "k", "category", ("a", "b", "c"), False
    )
    pooled = table_of(["a", "a", "b", "b", "c", "d"]).columns[0]
    assert (pooled.levels, pooled.has_other, pooled.n_levels) == (("a", "b"), True, 3)
    assert pooled.level_names == ["a", "b", "(other)"]


def test_a_level_of_one_row_with_weight_two_was_seen_twice():
    columns, y = columns_of(60)
    X = pd.DataFrame(columns)
    X.loc[:2, "colour"] = ["once", "too", "uno"]
    weight = np.where(np.arange(60) == 1, 2.0, 1.0)
    heavy = quick().fit(X, y, sample_weight=weight)
    twice = quick().fit(pd.concat([X, X[1:2]]), np.r_[y, y[1]])
    assert heavy.model_.schema == twice.model_.schema
    assert heavy.model_.schema.columns[2].levels == ("", "blue", "green", "red", "too")
    assert heavy.model_.schema.columns[2].has_other
    assert np.array_equal(heavy.predict_proba(X), twice.predict_proba(X))


def test_few_distinct_rows_make_no_level_rare():
    X = pd.DataFrame({"k": ["u", "v", "w"] * 20})
    y = (X["k"] == "v").to_numpy(int)
    assert quick(n_planes=1).fit(X, y).score(X, y) == 1.0


def test_of_many_levels_the_heaviest_are_kept_and_ties_go_by_text():
    rng = np.random.default_rng(0)
    names = [f"level {j:03}" for j in range(400)]
    counts = np.r_[np.full(100, 5), np.full(300, 2)]
    levels = np.repeat(names, counts)
    order = rng.permutation(len(levels))
    X = pd.DataFrame({"k": levels[order], "a": rng.random(len(levels))})
    y = rng.integers(0, 2, len(levels))
    table = quick(n_planes=1).fit(X, y).model_.schema
    assert table.columns[0].levels == tuple(names[: MOST_LEVELS - 1])
    assert table.n_levels[0] == MOST_LEVELS
    weight = np.where(X["k"] == "level 399", 10.0, 1.0)
    heavy = quick(n_planes=1).fit(X, y, sample_weight=weight).model_.schema
    assert heavy.columns[0].levels == (*names[: MOST_LEVELS - 2], "level 399")


def test_a_level_without_weight_was_never_seen():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    X.loc[:9, "colour"] = "ghost"
    weight = np.r_[np.zeros(10), np.ones(230)]
    a, b = quick().fit(X, y, sample_weight=weight), quick().fit(X[10:], y[10:])
    assert a.model_.schema == b.model_.schema
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


def test_a_level_of_its_own_in_every_row_teaches_nothing_and_is_warned_of():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    with_id = X.assign(id=[f"id {row}" for row in range(len(X))])
    with pytest.warns(DataQualityWarning, match="'id' has another text in every row"):
        clf = quick().fit(with_id, y)
    assert np.array_equal(clf.predict_proba(with_id), quick().fit(X, y).predict_proba(X))


@SLOW_WITH_NUMPY
def test_one_level_and_no_cell_at_all_cost_nothing():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    expected = quick().fit(X, y).predict_proba(X)
    one_level = X.assign(k="same")
    assert np.array_equal(quick().fit(one_level, y).predict_proba(one_level), expected)
    for empty in (np.nan, None, pd.NA):
        hollow = X.assign(none=pd.Series([empty] * len(X), dtype=object))
        with pytest.warns(DataQualityWarning, match="Column 'none' is 100 % missing"):
            clf = quick().fit(hollow, y)
        assert np.array_equal(clf.predict_proba(hollow), expected)
        assert np.array_equal(clf.predict_proba(hollow.assign(none=4.0)), expected)


def test_nothing_but_empty_columns_gives_the_class_shares():
    with pytest.warns(DataQualityWarning) as caught:
        clf = quick(label_smoothing=0.0).fit(np.full((40, 2), np.nan), np.repeat([0, 1], [30, 10]))
    words = [str(warning.message) for warning in caught]
    assert any("Every column is constant" in one for one in words)
    assert any("Column 'x1' is 100 % missing" in one for one in words)
    np.testing.assert_allclose(clf.predict_proba([[1.0, np.nan]]), [[0.75, 0.25]], atol=1e-6)


# --- what an unknown cell adds ---


def test_a_level_never_seen_adds_nothing():
    """It counts as the training rows do on average: their mean score of the column."""
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    clf = convex().fit(X, y)
    assert clf.model_.schema.encode(X.assign(colour="mauve"))[0, 2] == -1.0
    of_levels = np.mean(
        [clf.plane_scores(X.iloc[:1].assign(colour=level))[0] for level in X["colour"]], axis=0
    )
    unseen = clf.plane_scores(X.iloc[:1].assign(colour="mauve"))[0]
    np.testing.assert_allclose(unseen, of_levels, atol=1e-10)
    told = clf.model_.scorer().explain({**X.iloc[0].to_dict(), "colour": "mauve"})
    assert told.contributions[2] == 0.0


@pytest.mark.parametrize("by", ["class_weight", "sample_weight"])
def test_weights_that_even_out_the_classes_leave_rare_levels_rare(by, rng):
    x = rng.normal(size=200)
    y = (x + 0.5 * rng.normal(size=200) > 1.0).astype(int)
    X = pd.DataFrame({"name": [f"n{i}" for i in range(200)], "x": x})
    settings = {"class_weight": "balanced"} if by == "class_weight" else {}
    weight = None if settings else compute_sample_weight("balanced", y)
    clf = classifier(1, lift="linear", l2=1e-3, random_state=0, **settings)
    with pytest.warns(DataQualityWarning, match="'name' has another text in every row"):
        clf.fit(X, y, sample_weight=weight)
    assert clf.model_.schema.columns[0].level_names == ["(other)"]


def test_a_level_never_seen_is_the_pooled_one_where_there_is_one():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    X.loc[:1, "colour"] = ["once", "too"]
    clf = quick().fit(X, y)
    assert clf.model_.schema.encode(X.assign(colour="mauve"))[0, 2] == 4.0
    assert np.array_equal(
        clf.predict_proba(X.assign(colour="mauve")), clf.predict_proba(X.assign(colour="once"))
    )


@pytest.mark.parametrize("lift", ["linear", "fourier"])
def test_a_number_missing_at_predict_alone_counts_as_the_mean(wine, lift):
    X, y = wine
    clf = quick(lift=lift).fit(X, y)
    rows = X[:20].copy()
    rows[:, 3] = np.nan
    at_mean = rows.copy()
    at_mean[:, 3] = clf.model_.standardize.mean[3]
    expected = clf.predict_proba(at_mean)
    assert np.array_equal(clf.predict_proba(rows), expected)
    assert np.array_equal(clf.model_.predict_proba(rows), expected)
    score = clf.model_.scorer()
    assert np.array_equal([score(row) for row in rows], expected)
    if lift == "linear":
        assert score.explain(rows[0]).contributions[3] == 0.0
    model = clf.model_
    by_numpy = NumpyPredictor(model.feature_map, model.planes, model.sharpness, model.temperature)
    np.testing.assert_allclose(by_numpy.predict_proba(rows), expected, atol=1e-12)


def test_a_category_missing_at_predict_alone_counts_as_never_seen():
    columns, y = columns_of()
    X = pd.DataFrame(columns).assign(colour=lambda X: X["colour"].fillna("red"))
    clf = quick().fit(X, y)
    assert np.array_equal(
        clf.predict_proba(X.assign(colour=None)), clf.predict_proba(X.assign(colour="mauve"))
    )


def test_missing_cells_teach():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = np.where(rng.random(400) < 0.1 + 0.8 * y, np.nan, rng.standard_normal(400))
    assert quick(n_planes=1).fit(x[:, None], y).score(x[:, None], y) > 0.85
    words = pd.DataFrame({"k": np.where(np.isnan(x), None, "here")})
    assert quick(n_planes=1).fit(words, y).score(words, y) > 0.85


def test_one_value_or_missing_is_a_column_that_varies():
    y = np.repeat([0, 1], 50)
    X = np.where(y[:, None] == 1, np.nan, 3.0)
    assert quick(n_planes=1).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("parameters", [{"standardize": False}, {"pca": 3}, {"lift": "fourier"}])
def test_mixed_tables_go_through_every_lift(parameters):
    columns, y = columns_of()
    X = pd.DataFrame(columns).drop(columns="height")
    clf = quick(**parameters).fit(X, y)
    assert clf.score(X, y) > 0.75
    assert np.isfinite(clf.predict_proba(X.assign(colour="mauve"))).all()


# --- against an independent truth ---


def test_one_plane_over_a_mixed_table_is_logistic_regression_over_dummies():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    l2, beta, delta = 1e-3, 0.5, 0.01
    ours = quick(
        n_planes=1, l2=l2, usage_beta=beta, usage_delta=delta, label_smoothing=0.0,
        solver="lbfgs", tol=1e-10, max_iter=5000, calibrate=False, early_stopping="off",
    ).fit(X, y)  # fmt: skip
    dummies = pd.get_dummies(X["colour"], dummy_na=True).to_numpy(dtype=float)
    numbers = X[["age", "height", "member"]].astype(float)
    numbers = ((numbers - numbers.mean()) / numbers.std(ddof=0)).fillna(0.0).to_numpy()
    Z = np.c_[numbers, X["age"].isna().to_numpy(float), dummies]
    Z[:, 3:] -= Z[:, 3:].mean(axis=0)
    effective = l2 * (1.0 + beta / (1.0 + delta))
    theirs = LogisticRegression(C=1.0 / (len(y) * effective), tol=1e-12, max_iter=10_000)
    theirs.fit(Z, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-4)


def test_expanding_is_get_dummies():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    model = quick().fit(X, y).model_
    rows = model.expand(model.schema.encode(X))
    names = list(model.expanded_names)
    assert names == [
        "age", "age missing", "height", "colour=", "colour=blue", "colour=green", "colour=red",
        "colour missing", "member",
    ]  # fmt: skip
    assert np.array_equal(rows[:, 1], X["age"].isna().astype(float))
    theirs = pd.get_dummies(X["colour"], dummy_na=True).to_numpy(dtype=float)
    assert np.array_equal(rows[:, 3:8], theirs)


def test_complete_numbers_are_not_expanded(wine):
    X, y = wine
    model = quick().fit(X, y).model_
    assert model.expand is None
    assert model.expanded_names == model.columns
    assert model.schema.n_levels.tolist() == [0] * 13


@SLOW_WITH_NUMPY
def test_expanded_rows_come_in_blocks_like_the_whole(monkeypatch):
    from geomix.table import row_views

    monkeypatch.setattr(row_views, "CELLS_PER_BLOCK", 64)
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    model = quick().fit(X, y).model_
    rows = model.schema.encode(X)
    lazy = expanded(all_rows(rows), model.expand)
    whole = np.concatenate([block for _, block in blocks(lazy)])
    assert np.array_equal(whole, model.expand(rows), equal_nan=True)
    some = np.concatenate([block for _, block in blocks(lazy, np.array([1, 4]))])
    assert np.array_equal(some, whole[:, [1, 4]])
    assert lazy.shape == whole.shape
    assert np.array_equal(lazy.limits, [np.nanmin(whole, axis=0), np.nanmax(whole, axis=0)])


def test_what_each_output_shows_is_known():
    table = Schema((Column("n", "number"), Column("k", "category", ("u", "v"))))
    rows = np.array([[1.0, 0.0], [np.nan, 1.0], [2.0, 1.0]])
    expand = fit_expand(all_rows(rows), table)
    assert expand.shows.tolist() == [NUMBER, MISSING, 0, 1]
    nan = np.nan
    np.testing.assert_array_equal(
        expand(np.array([[-3.0, 0.0], [nan, nan], [5.0, -1.0]])),
        [[-3.0, 0.0, 1.0, 0.0], [nan, 1.0, nan, nan], [5.0, 0.0, nan, nan]],
    )
    assert expand.by_column(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [3.0, 12.0]


def test_a_category_that_was_always_missing_has_one_output():
    table = Schema((Column("empty", "category", ()), Column("k", "category", ("u", "v"))))
    expand = fit_expand(all_rows(np.array([[np.nan, 0.0], [np.nan, np.nan]])), table)
    assert expand.shows.tolist() == [MISSING, 0, 1, MISSING]
    nan = np.nan
    np.testing.assert_array_equal(
        expand(np.array([[nan, 1.0], [-1.0, nan], [nan, -1.0]])),
        [[1.0, 0.0, 1.0, 0.0], [nan, 0.0, 0.0, 1.0], [1.0, nan, nan, nan]],
    )


# --- laws ---


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": "adam"},
        pytest.param({"lift": "auto", "l2": "auto", "n_planes": "auto"}, marks=SLOW_WITH_NUMPY),
    ],
)
def test_row_order_changes_no_bit(parameters):
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    order = np.random.default_rng(1).permutation(len(y))
    a = quick(**parameters).fit(X, y)
    b = quick(**parameters).fit(X.iloc[order], y[order])
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("parameters", [{}, {"solver": "adam"}])
def test_weight_two_is_row_twice_and_weight_zero_is_no_row(parameters):
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    a = quick(**parameters).fit(X, y, sample_weight=weight)
    b = quick(**parameters).fit(X.iloc[repeated], y[repeated])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-7)


def test_the_order_of_columns_does_not_matter():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    turned = X[["colour", "member", "height", "age"]]
    a, b = convex().fit(X, y), convex().fit(turned, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(turned), atol=1e-6)


@pytest.mark.parametrize("factor", fast_with_numpy([1e-100, 2.0**40, 1e100], [1e100]))
def test_the_unit_and_zero_of_a_number_with_holes_do_not_matter(factor):
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    moved = X.assign(age=(X["age"] + 3.0) * factor)
    a, b = quick().fit(X, y), quick().fit(moved, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(moved), atol=1e-7)


def test_renaming_levels_in_their_order_changes_no_bit():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    renamed = X.assign(colour="=" + X["colour"] + "\n<b>")
    a, b = quick().fit(X, y), quick().fit(renamed, y)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(renamed))


def test_renaming_levels_changes_nothing_but_names():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    new = {"red": "a", "green": "zz", "blue": "m", "": "é"}
    renamed = X.assign(colour=X["colour"].map(new))
    a, b = convex().fit(X, y), convex().fit(renamed, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(renamed), atol=1e-6)


def test_rows_that_are_missing_in_the_same_places_are_repeats():
    nan = np.nan
    X = np.array([[nan, 1.0], [2.0, nan], [nan, 1.0], [2.0, 1.0], [2.0, nan], [nan, nan]])
    for table in (X, all_rows(X)):
        rows = Rows(table, np.zeros(6, dtype=int), np.ones(6))
        merged = distinct_rows(rows, column_range(rows.X))
        assert sorted(merged.weight.tolist()) == [1.0, 1.0, 2.0, 2.0]


def test_a_rows_answer_depends_on_that_row_alone():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    clf = quick().fit(X, y)
    whole = clf.predict_proba(X)
    parts = [clf.predict_proba(X.iloc[row : row + 7]) for row in range(0, len(X), 7)]
    assert np.array_equal(np.vstack(parts), whole)


# --- one row, planes, and the rest of the model ---


def test_a_scorer_takes_raw_cells_and_equals_the_table_to_the_bit(fitted):
    columns, _ = columns_of(seed=2)
    X = pd.DataFrame(columns)
    score, expected = fitted.model_.scorer(), fitted.predict_proba(X)
    for row, cells in enumerate(zip(*columns.values(), strict=True)):
        as_dict = dict(zip(columns, cells, strict=True))
        out = np.empty(2)
        for given in (cells, list(cells), np.array(cells, dtype=object), as_dict):
            assert np.array_equal(score(given, out=out), expected[row])
        assert score.predict(cells) == fitted.classes_[expected[row].argmax()]


def test_contributions_are_by_raw_column_and_add_up_to_the_score(fitted):
    columns, _ = columns_of()
    score, model = fitted.model_.scorer(), fitted.model_
    for cells in list(zip(*columns.values(), strict=True))[:40]:
        told = score.explain(cells)
        assert told.contributions.shape == (4,)
        plane = model.planes.class_start[told.label] + told.plane
        total = told.contributions.sum() + model.planes.biases[plane]
        assert total == pytest.approx(told.score, abs=1e-12)


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ([1.0, 2.0, "red"], ValueError, "3 cells; expected 4"),
        ([1.0, 2.0, 3.0, True], SchemaError, "'colour' holds 3.*levels were text"),
        ([1.0, "tall", "red", True], SchemaError, "Column 'height' holds text: 'tall'"),
        ("red", TypeError, "row of type str"),
        (np.zeros((1, 4)), ValueError, "2 dimensions"),
        ({"age": 1.0, "colour": "red", "member": 1, "size": 2}, SchemaError, "(?s)size.*height"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(fitted, row, error, words):
    with pytest.raises(error, match=words):
        fitted.model_.scorer()(row)


def test_folded_planes_are_over_the_expanded_columns(fitted):
    columns, _ = columns_of()
    X = pd.DataFrame(columns)
    model = fitted.model_
    rows = model.expand(model.schema.encode(X))
    mean = np.zeros(rows.shape[1])
    mean[model.standardize.kept] = model.standardize.mean
    filled = np.where(np.isnan(rows), mean, rows)
    folded = model.folded
    np.testing.assert_allclose(
        filled @ folded.weights.T + folded.biases, fitted.plane_scores(X), atol=1e-9
    )
    assert folded.weights.shape[1] == len(model.expanded_names)
    named = {name for plane in top_columns(model, k=9) for name in plane.columns}
    assert named <= set(model.expanded_names)
    assert "colour=red" in named


def test_pickled_then_loaded_answers_the_same_bits(fitted):
    columns, _ = columns_of(seed=3)
    X = pd.DataFrame(columns)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.model_.schema == fitted.model_.schema


HOSTILE = ['a"b', "x,y", "<script>", "\x1b[2J", "日本 🙂", "a\0", "a", " ", "nan", "None", "-1"]


def test_names_and_levels_may_hold_any_character():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(np.array(HOSTILE, dtype=object), 200) for name in HOSTILE})
    y = rng.integers(0, 2, 200)
    clf = quick(n_planes=1).fit(X, y)
    assert clf.model_.schema.columns[0].levels == tuple(sorted(HOSTILE))
    assert clf.model_.columns == tuple(HOSTILE)
    assert np.array_equal(
        clf.model_.scorer()(X.iloc[0].to_dict()), clf.predict_proba(X.iloc[:1])[0]
    )


def test_the_model_itself_checks_the_names_of_a_frame(fitted):
    columns, _ = columns_of()
    X = pd.DataFrame(columns)
    with pytest.raises(SchemaError, match="same order"):
        fitted.model_.predict_proba(X[["height", "age", "colour", "member"]])
    with pytest.raises(ValueError, match=r"expected \(n_rows, 4\)"):
        fitted.model_.predict_proba(as_object_array(columns)[:, :3])


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_reordered_missing_and_extra_columns_are_named(fitted, library):
    columns, _ = columns_of()
    make = MAKERS[library]
    turned = {name: columns[name] for name in ("height", "age", "colour", "member")}
    with pytest.raises(SchemaError, match="must be in the same order"):
        fitted.predict(make(turned))
    renamed = {name.replace("colour", "shade"): cells for name, cells in columns.items()}
    with pytest.raises(SchemaError, match=r"(?s)unseen at fit time:\n- shade.*missing:\n- colour"):
        fitted.predict(make(renamed))


def test_words_for_numbers_and_numbers_for_words_are_named(fitted):
    columns, _ = columns_of()
    X = pd.DataFrame(columns)
    with pytest.raises(SchemaError, match="'height' holds text: row 0 is 'tall', expected a numb"):
        fitted.predict(X.assign(height="tall"))
    with pytest.raises(SchemaError, match="'height' holds categories"):
        fitted.predict(X.assign(height=pd.Categorical([1] * len(X))))
    with pytest.raises(SchemaError, match=r"'colour' holds 7 in row 0.*text in training"):
        fitted.predict(X.assign(colour=7))


def test_validation_rows_may_have_levels_and_holes_of_their_own():
    columns, y = columns_of()
    X = pd.DataFrame(columns)
    judge = X[200:].assign(colour="mauve", height=np.nan)
    clf = quick(l2="auto").fit(X[:200], y[:200], X_val=judge, y_val=y[200:])
    assert "mauve" not in clf.model_.schema.columns[2].levels
    assert np.isfinite(clf.predict_proba(judge)).all()


def test_sparse_rows_cannot_answer_for_categories(fitted):
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        fitted.model_.predict_proba(scipy.sparse.csr_matrix(np.eye(4)))


# --- those who want an error ---


@pytest.mark.parametrize("kind", MAKERS)
def test_missing_cells_are_counted_by_column_where_they_are_an_error(kind):
    columns, y = columns_of()
    names = ("x0", "x2") if kind in ("objects", "lists") else ("age", "colour")
    counts = [sum(cell is None for cell in columns[name]) for name in ("age", "colour")]
    words = rf"X contains NaN \({names[0]}: {counts[0]} of 240, {names[1]}: {counts[1]} of 240\)"
    with pytest.raises(ValueError, match=words):
        quick(missing="error").fit(MAKERS[kind](columns), y)


@pytest.mark.parametrize("missing", ["impute", None, 0])
def test_an_unknown_way_with_missing_values_is_refused(iris, missing):
    with pytest.raises(InvalidParameterError, match="expected one of 'learn', 'error'"):
        quick(missing=missing).fit(*iris)


def test_the_tags_tell_what_is_taken():
    tags = GeometricMixtureClassifier().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert tags.categorical
    assert not GeometricMixtureClassifier(missing="error").__sklearn_tags__().input_tags.allow_nan


def test_mixed_tables_cross_validate():
    columns, y = columns_of()
    scores = cross_val_score(quick(), pd.DataFrame(columns), y, cv=3, error_score="raise")
    assert scores.mean() > 0.7
