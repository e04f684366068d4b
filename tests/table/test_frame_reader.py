"""Frames read in native code: the same rows and the same refusals as in Python."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geomix import GeometricMixtureClassifier, Recipe, SchemaError
from geomix.core import kernel
from geomix.errors import DataQualityWarning

FIXED = {"n_planes": 2, "l2": 1e-2, "max_iter": 5, "random_state": 0, "advanced": Recipe()}
LONG = "a level of more than twelve bytes, é"
LEVELS = ["red", "green", "", LONG, "日本", "12bytes_long"]
NAMES = ["age", "size", "colour", "code"]
pytestmark = pytest.mark.skipif(not kernel.is_native, reason="frames are read by native code")


def table(n_rows=200, seed=0):
    """Columns of Python cells, None where missing."""
    rng = np.random.default_rng(seed)
    holes = rng.random((4, n_rows)) < 0.1
    columns = {
        "age": rng.integers(-9, 90, n_rows).tolist(),
        "size": rng.normal(size=n_rows).tolist(),
        "colour": [LEVELS[k] for k in rng.integers(0, len(LEVELS), n_rows)],
        "code": rng.integers(1, 4, n_rows).tolist(),
    }
    return {
        name: [None if hole else cell for cell, hole in zip(cells, holes[j], strict=True)]
        for j, (name, cells) in enumerate(columns.items())
    }


@pytest.fixture(scope="module")
def clf():
    columns = table()
    y = [int((size or 0.0) + (colour == "red") > 0.2) for size, colour in
         zip(columns["size"], columns["colour"], strict=True)]  # fmt: skip
    X = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    X = X.astype({"age": float, "size": float})
    return GeometricMixtureClassifier(**FIXED, categorical_features=["code"]).fit(X, y)


def in_python(model, X):
    return model.schema.encode(X)


def outcome(work):
    """The bytes of encoded rows, or the kind and words of an error."""
    try:
        return work().tobytes()
    except (SchemaError, TypeError, ValueError) as error:
        return type(error), str(error)


def arrow(columns, **types):
    given = {name: pa.array(cells, types.get(name)) for name, cells in columns.items()}
    return pa.table(given)


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
MAKERS = {
    "polars, text": pl.DataFrame,
    "polars, categories": lambda c: pl.DataFrame(c).with_columns(
        pl.col("colour").cast(pl.Categorical)
    ),
    "polars, enum": lambda c: pl.DataFrame(c).with_columns(pl.col("colour").cast(pl.Enum(LEVELS))),
    "polars, sliced": lambda c: pl.DataFrame({n: [None, *v, None] for n, v in c.items()})[1:-1],
    "polars, chunks": lambda c: pl.concat([pl.DataFrame(c)[:3], pl.DataFrame(c)[3:]]),
    "polars, narrow": lambda c: pl.DataFrame(c).with_columns(
        pl.col("age").cast(pl.Int8), pl.col("size").cast(pl.Float32)
    ),
    "arrow, text": arrow,
    "arrow, large text": lambda c: arrow(c, colour=pa.large_string()),
    "arrow, views": lambda c: arrow(c, colour=pa.string_view()),
    "arrow, dictionary": lambda c: arrow(c, colour=DICTIONARY),
    "arrow, sliced": lambda c: arrow({n: [None, *v] for n, v in c.items()}, colour=DICTIONARY)[1:],
    "arrow, chunks": lambda c: pa.concat_tables(
        [arrow(c, colour=DICTIONARY)[:5], arrow(c, colour=DICTIONARY)[5:]]
    ),
    "arrow, half": lambda c: arrow(c, size=pa.float16()),
    "arrow, decimal ages": lambda c: arrow(c).set_column(
        0, "age", pa.array(c["age"]).cast(pa.decimal128(24, 2))
    ),
    "pandas, objects": lambda c: pd.DataFrame(c, dtype=object),
    "pandas, text": lambda c: pd.DataFrame(c).astype({"colour": "str"}),
    "pandas, categories": lambda c: pd.DataFrame(c).astype({"colour": "category"}),
    "pandas, nullable": lambda c: pd.DataFrame(c).astype({"age": "Int64", "size": "Float64"}),
    "pandas, arrow": lambda c: arrow(c).to_pandas(types_mapper=pd.ArrowDtype),
}  # fmt: skip


@pytest.mark.parametrize("n_rows", [1, 3, 40])
@pytest.mark.parametrize("maker", MAKERS)
def test_every_frame_is_encoded_as_in_python_to_the_bit(clf, maker, n_rows):
    for seed in range(3):
        X = MAKERS[maker](table(n_rows, seed))
        expected = in_python(clf.model_, X)
        assert np.array_equal(clf.model_.encoded(X), expected, equal_nan=True)
        P = clf.model_.answer("predict_proba", expected)
        assert np.array_equal(clf.predict_proba(X), P)


@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_unseen_levels_are_codes_of_their_own(clf, make):
    X = make({**table(4), "colour": ["mauve", "red", None, LONG + "!"]})
    codes = clf.model_.encoded(X)[:, 2]
    unseen = clf.model_.schema.columns[2].unseen
    assert codes[[0, 3]].tolist() == [unseen, unseen]
    assert np.isnan(codes[2])


ODD = {
    "text for a number": {"age": ["x", "y"]},
    "a number for text": {"colour": [1, 2]},
    "dates": {"age": [datetime.date(2020, 1, 1), None]},
    "missing dates": {"size": [datetime.datetime(2020, 1, 1), None]},
    "bytes": {"colour": [b"red", None]},
    "lists": {"size": [[1.0], [2.0]]},
    "text for a code": {"code": ["1", "2"]},
}


@pytest.mark.parametrize("row", [slice(0, 2), slice(1, 2)], ids=["both rows", "the second row"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_what_python_refuses_is_refused_in_the_same_words(clf, make, odd, row):
    X = make({**table(2), **ODD[odd]})[row]
    expected = outcome(lambda: in_python(clf.model_, X))
    assert outcome(lambda: clf.model_.encoded(X)) == expected


@pytest.mark.skipif(not hasattr(pa, "bool8"), reason="before pyarrow 18")
def test_types_that_are_only_stored_as_numbers_are_left_to_python(clf):
    stored = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    X = arrow(table(2)).set_column(0, "age", stored)
    expected = outcome(lambda: in_python(clf.model_, X))
    assert outcome(lambda: clf.model_.encoded(X)) == expected
    noted = pa.field("age", pa.int64(), metadata={"unit": "years", "source": "form"})
    X = arrow(table(2)).cast(arrow(table(2)).schema.set(0, noted))
    assert np.array_equal(clf.model_.encoded(X), in_python(clf.model_, X), equal_nan=True)


@pytest.mark.parametrize("dtype", ["str", "string", "category"])
def test_a_missing_cell_does_not_hide_the_type_of_its_column(clf, dtype):
    X = pd.DataFrame({**table(1), "age": pd.Series([None], dtype=dtype)})
    with pytest.raises(SchemaError, match="'age' holds categories, expected a number"):
        clf.predict_proba(X)


@pytest.mark.parametrize("age", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**64 - 1])
@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_integers_that_lose_digits_are_warned_of(clf, make, age):
    ages = np.array([age], dtype=np.uint64 if age >= 2**63 else np.int64)
    X = make({**table(1), "age": ages, "size": [1.0]})
    with pytest.warns(DataQualityWarning, match=f"'age' holds integers up to {abs(age)}"):
        clf.model_.predict_proba(X)


@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_integers_that_keep_their_digits_are_read_without_a_warning(clf, make):
    X = make({**table(2), "age": [2**53, -(2**53)], "size": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.model_.encoded(X)[:, 0].tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_other_names_and_another_order_are_refused(clf, make):
    columns = table(2)
    turned = make({name: columns[name] for name in reversed(NAMES)})
    renamed = make({**{name: columns[name] for name in NAMES[:3]}, "other": columns["code"]})
    for X in (turned, renamed):
        for answer in (clf.predict_proba, clf.model_.predict_proba):
            with pytest.raises(SchemaError, match="feature names should match"):
                answer(X)


@pytest.mark.parametrize("make", [pl.DataFrame, arrow, pd.DataFrame])
def test_infinity_is_refused_by_the_estimator(clf, make):
    X = make({**table(1), "age": [float("inf")]})
    with pytest.raises(ValueError, match=r"infinity.*age: 1 of 1"):
        clf.predict_proba(X)


def test_a_pickled_model_reads_frames_again(clf):
    import pickle

    X = pl.DataFrame(table(9))
    clf.model_.predict_proba(X)
    loaded = pickle.loads(pickle.dumps(clf.model_))
    assert np.array_equal(loaded.predict_proba(X), clf.model_.predict_proba(X))


def test_frames_of_numbers_are_read_from_their_buffers_without_a_warning():
    rng = np.random.default_rng(0)
    X = pl.DataFrame(
        {"a": rng.normal(size=60), "b": rng.integers(0, 9, 60), "c": rng.random(60) < 0.5}
    )
    y = (X["a"] > 0).to_numpy()
    model = GeometricMixtureClassifier(**FIXED, lift="linear").fit(X, y).model_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P = model.predict_proba(X)
    assert np.array_equal(P, model.predict_proba(np.asarray(X, dtype=float)))
