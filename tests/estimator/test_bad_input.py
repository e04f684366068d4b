"""Bad, odd and extreme input: a clear error, or exactly the answer that was promised.

Letters and numbers in the comments (A5, C15) are the cases of docs/promises.md.
"""

import dataclasses
import datetime
import hashlib
import re
import time
import types

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from kernels import SLOW_WITH_NUMPY, fast_with_numpy
from making import classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError

import geomix.core.kernel
from geomix import (
    DataQualityWarning,
    GeometricMixtureClassifier,
    InvalidParameterError,
    SchemaError,
)
from geomix.search import splits
from geomix.table import labels
from geomix.training import data_checks, many_classes

QUICK = {"lift": "linear", "n_planes": 2, "l2": 1e-4, "max_iter": 30, "random_state": 0}
# One plane per class and a firm penalty make one optimum; tol this small reaches it.
CONVEX = {"n_planes": 1, "l2": 1e-2, "tol": 1e-13, "max_iter": 500, "early_stopping": "off"}


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


def spoilt(X, value, n_rows=3, column=2):
    X = X.copy()
    X[:n_rows, column] = value
    return X


def frame(X):
    return pd.DataFrame(X, columns=list("abcd"))


def proba(X, y, *, ask=None, sample_weight=None, **parameters):
    """Probabilities of a quick fit, for its own rows or for ``ask``."""
    fitted = quick(**parameters).fit(X, y, sample_weight=sample_weight)
    return fitted.predict_proba(X if ask is None else ask)


def fingerprint(X):
    parts = [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [np.asarray(X)]
    return [hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in parts]


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(*load_iris(return_X_y=True))


# --- A. values and shape of X ---


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_missing_values_at_fit_are_counted_by_column(iris, make):  # A1
    X, y = iris
    X = spoilt(spoilt(X, np.nan), np.nan, n_rows=17, column=0)
    with pytest.raises(ValueError, match=r"X contains NaN \(x0: 17 of 150, x2: 3 of 150\)"):
        quick(missing="error").fit(make(X), y)


def test_missing_values_are_counted_by_the_frames_own_names(iris):  # A1
    X, y = iris
    with pytest.raises(ValueError, match=r"X contains NaN \(c: 3 of 150\).*Impute or drop"):
        quick(missing="error").fit(frame(spoilt(X, np.nan)), y)


def test_of_many_columns_with_missing_values_five_are_named(rng):  # A1
    X = np.full((10, 8), np.nan)
    with pytest.raises(ValueError, match=r"x4: 10 of 10, 100 % missing, and 3 more columns\)"):
        quick(missing="error").fit(X, rng.integers(0, 2, 10))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_missing_values_at_predict_are_refused_like_at_fit(iris, make):  # A2
    strict = quick(missing="error").fit(*iris)
    with pytest.raises(ValueError, match=r"X contains NaN \(x2: 3 of 150\)"):
        strict.predict(make(spoilt(iris[0], np.nan)))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_infinity_is_never_missing(iris, fitted, value, make):  # A3, A4
    X, y = iris
    X = make(spoilt(X, value))
    words = r"X contains infinity .*\(x2: 3 of 150\)\. .*never treated as missing"
    with pytest.raises(ValueError, match=words):
        quick().fit(X, y)
    with pytest.raises(ValueError, match=words):
        fitted.predict_proba(X)


@pytest.mark.kernel
@pytest.mark.parametrize("factor", fast_with_numpy([1e-290, 1e155, 1e300], [1e155]))
@pytest.mark.parametrize(
    "parameters", [{}, {"solver": "adam"}, {"lift": "fourier", "gamma": 0.3, "n_frequencies": 16}]
)
def test_rows_whose_squares_overflow_give_the_same_model_to_the_bit(iris, factor, parameters):
    X, y = iris[0] * factor, iris[1]  # A5, A6
    same_digits = np.ldexp(X, -np.frexp(X.max())[1])
    assert 0.5 <= same_digits.max() < 1.0
    assert np.array_equal(proba(X, y, **parameters), proba(same_digits, y, **parameters))


def test_a_column_of_denormals_counts_as_constant(iris):  # A7
    X, y = iris
    wider = np.c_[X, X[:, 0] * 1e-310]
    with pytest.warns(DataQualityWarning, match="'x4' varies by less than 1e-300"):
        clf = quick().fit(wider, y)
    assert (clf.model_.folded.weights[:, 4] == 0.0).all()
    assert np.array_equal(clf.predict_proba(wider), proba(X, y))


@pytest.mark.kernel
def test_values_beyond_float32_are_scored_in_float64(iris):  # A8
    X, y = iris
    clf = quick(n_planes=1, calibrate=False).fit(X, y)
    row = np.array([[5.0, 3.0, 1e39, 0.2]])
    np.testing.assert_allclose(
        clf.decision_function(row), row @ clf.coef_.T + clf.intercept_, rtol=1e-12
    )
    assert np.isfinite(clf.predict_proba(np.full((1, 4), 1.7e308))).all()


@pytest.mark.kernel
def test_a_constant_column_has_a_coefficient_of_exactly_zero(iris):  # A9
    X, y = iris
    clf = quick().fit(np.c_[X[:, :2], np.full(150, 7.1), X[:, 2:]], y)
    assert (clf.model_.folded.weights[:, 2] == 0.0).all()
    assert (clf.model_.folded.weights[:, [0, 1, 3, 4]] != 0.0).all()


@pytest.mark.kernel
@pytest.mark.parametrize("label_smoothing", [0.0, 0.02])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"lift": "auto", "l2": "auto", "n_planes": "auto"},
        {"lift": "fourier"},
        {"init": "random"},
        {"init": "logistic"},
        {"solver": "adam"},
    ],
)
def test_constant_columns_alone_give_the_class_shares(parameters, label_smoothing):  # A10
    X, y = np.full((150, 3), 4.2), np.repeat([0, 1, 2], [90, 45, 15])
    with pytest.warns(DataQualityWarning, match="Every column is constant"):
        clf = quick(label_smoothing=label_smoothing, **parameters).fit(X, y)
    shares = (1.0 - label_smoothing) * np.array([0.6, 0.3, 0.1]) + label_smoothing / 3
    np.testing.assert_allclose(clf.predict_proba(X[:1]), [shares], atol=1e-6)


def test_a_column_without_any_value_is_named_as_such(iris):  # A11
    X, y = iris
    with pytest.raises(ValueError, match=r"NaN \(c: 150 of 150, 100 % missing\)"):
        quick(missing="error").fit(frame(spoilt(X, np.nan, n_rows=150)), y)


def test_no_rows_and_no_columns_are_refused_in_scikit_learns_words():  # A12, A13
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\)"):
        quick().fit(np.empty((0, 3)), np.empty(0))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of"):
        quick().fit(np.empty((3, 0)), [0, 1, 1])


def test_no_rows_at_predict_are_refused(fitted):  # A14
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 4\)\)"):
        fitted.predict(np.empty((0, 4)))


def test_one_row_given_flat_is_refused_with_the_remedy(iris, fitted):  # A15
    X, y = iris
    with pytest.raises(ValueError, match=r"(?s)Expected 2D array, got 1D.*reshape\(-1, 1\)"):
        quick().fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"(?s)Expected 2D array, got 1D.*reshape\(1, -1\)"):
        fitted.predict(X[0])


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((2, 2, 2)), "dim 3"),
        (3.0, "got scalar array"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous shape"),
    ],
)
def test_what_is_no_table_is_refused(fitted, X, words):  # A16
    with pytest.raises(ValueError, match=words):
        quick().fit(X, [0, 1])
    with pytest.raises(ValueError, match=words):
        fitted.predict(X)


def test_different_numbers_of_rows_and_labels_are_both_told(iris):  # A17
    X, y = iris
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 149\]"):
        quick().fit(X, y[:-1])


@pytest.mark.parametrize("n_columns", [1, 3, 5])
def test_a_wrong_number_of_columns_at_predict_is_told(fitted, n_columns):  # A18
    words = f"X has {n_columns} features, but GeometricMixtureClassifier is expecting 4 features"
    with pytest.raises(ValueError, match=words):
        fitted.predict(np.zeros((2, n_columns)))


@pytest.mark.parametrize("n_rows", [1, 5])
@pytest.mark.parametrize("label", [0, "cat"])
def test_one_class_is_refused_and_named(iris, n_rows, label):  # A19, C9
    with pytest.raises(ValueError, match=f"needs at least 2 classes, got 1 class: {label!r}"):
        quick().fit(iris[0][:n_rows], [label] * n_rows)


@pytest.mark.parametrize("parameters", [{}, {"n_planes": "auto", "lift": "auto", "l2": "auto"}])
def test_one_row_per_class_gives_one_plane_each_and_holds_nothing_out(iris, parameters):  # A20
    X, y = iris[0][[0, 60, 120]], iris[1][[0, 60, 120]]
    with pytest.warns(DataQualityWarning):
        clf = quick(**parameters).fit(X, y)
    assert clf.n_planes_.tolist() == [1, 1, 1]
    assert any("nothing was held out" in note for note in clf.history_.notes)
    assert np.isfinite(clf.predict_proba(iris[0])).all()
    assert clf.predict(X).tolist() == [0, 1, 2]


def test_a_class_of_one_row_is_learnt_and_warned_of(iris):  # A21
    X, y = iris[0][:101], np.array(["seto", "versi", "virgi"])[iris[1][:101]]
    with pytest.warns(DataQualityWarning, match=r"'virgi' \(1\) has fewer than 5 rows"):
        clf = quick(n_planes="auto").fit(X, y)
    assert clf.n_planes_[2] == 1
    assert clf.predict(X[100:])[0] == "virgi"  # it was in the training part


@pytest.mark.kernel
def test_equal_rows_with_different_labels_give_the_class_shares():  # A22
    X, y = np.ones((40, 2)), np.repeat([0, 1], [30, 10])
    with pytest.warns(DataQualityWarning, match="Every column is constant"):
        clf = quick(n_planes="auto", label_smoothing=0.0).fit(X, y)
    assert clf.n_planes_.tolist() == [1, 1]
    np.testing.assert_allclose(clf.predict_proba(X[:1]), [[0.75, 0.25]], atol=1e-6)


def test_planes_are_no_more_than_distinct_rows_and_the_history_says_so():  # A23
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], 50, axis=0)
    y = np.repeat([0, 0, 1, 1], 50)
    clf = quick(n_planes=4).fit(X, y)
    assert clf.n_planes_.tolist() == [2, 2]
    assert any("planes" in note for note in clf.history_.notes), clf.history_.notes


@pytest.mark.parametrize("n_planes", [10, {0: 10, 1: 10, 2: 10}])
def test_more_planes_than_rows_are_cut_with_a_warning(iris, n_planes):  # A24
    X, y = iris[0][::10], iris[1][::10]
    with pytest.warns(DataQualityWarning, match="Class . has 5 rows for 10 planes") as caught:
        clf = quick(n_planes=n_planes).fit(X, y)
    assert len([one for one in caught if one.category is DataQualityWarning]) == 3
    assert clf.n_planes_.tolist() == [5, 5, 5]
    assert clf.plane_scores(X).shape == (15, 15)


@pytest.mark.parametrize(("pca", "n_axes"), [(None, 200), (100, 29), (1.0, 29)])
def test_more_columns_than_rows_are_fine_and_axes_stay_below_the_rows(rng, pca, n_axes):  # A25
    X = rng.standard_normal((30, 200))
    y = (X[:, 0] > 0).astype(int)
    clf = quick(pca=pca).fit(X, y)
    assert clf.model_.planes.n_inputs == n_axes
    assert clf.score(X, y) == 1.0


@pytest.mark.kernel
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_separable_classes_get_finite_weights(solver):  # A26
    X = np.r_[np.linspace(-9, -1, 60), np.linspace(1, 9, 60)][:, None]
    y = np.repeat([0, 1], 60)
    clf = quick(solver=solver, label_smoothing=0.0, max_iter=300).fit(X, y)
    assert np.abs(clf.model_.folded.weights).max() < 1e3
    assert clf.score(X, y) == 1.0
    unpenalised = quick(solver=solver, l2=0.0, label_smoothing=0.0, max_iter=300).fit(X, y)
    assert np.isfinite(unpenalised.model_.folded.weights).all()


def test_as_many_classes_as_rows_are_quick_and_warned_of(rng):  # A27
    start = time.process_time()
    with pytest.warns(UserWarning, match="greater than 50 ?%") as caught:
        clf = GeometricMixtureClassifier(random_state=0).fit(
            rng.standard_normal((200, 5)), np.arange(200)
        )
    assert time.process_time() - start < 2.0  # of the processor, which others may share
    assert any("classes (200) is greater than 50 %" in str(one.message) for one in caught)
    assert clf.n_planes_.tolist() == [1] * 200


@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_a_sample_of_very_many_small_classes_has_a_row_of_each(rng, monkeypatch):  # A27
    """Their shares of a rung round to no row at all; 10,000 classes of three rows ended so."""
    monkeypatch.setattr(splits, "ROWS_PER_RUNG", (200,))
    y = np.repeat(np.arange(400), 3)
    X = rng.standard_normal((len(y), 2)) + y[:, None]
    clf = GeometricMixtureClassifier(1, lift="linear", max_iter=2, random_state=0).fit(X, y)
    assert len(clf.classes_) == 400


@pytest.mark.kernel
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_collinear_columns_share_their_weight_alike_for_every_seed(iris, seed):  # A28
    X, y = iris
    wider = np.c_[X, 2.0 * X[:, 0] - 3.0]
    a = quick(random_state=seed).fit(wider, y)
    b = quick(random_state=seed).fit(wider, y)
    assert np.array_equal(a.model_.folded.weights, b.model_.folded.weights)
    weights = a.model_.folded.weights
    np.testing.assert_allclose(weights[:, 0], 2.0 * weights[:, 4], rtol=1e-6)


def test_one_column_is_a_table(iris):
    X, y = iris
    clf = quick().fit(X[:, 2:3], y)
    assert clf.score(X[:, 2:3], y) > 0.9


# --- B. types and memory layout ---

LAYOUTS = {
    "fortran": np.asfortranarray,
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "big endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "list": lambda X: X.tolist(),
}


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("layout", [*LAYOUTS, "read-only"])
def test_the_layout_of_the_rows_changes_no_bit(iris, fitted, layout):  # B1-B4, B8, B17
    X, y = iris
    given = LAYOUTS.get(layout, _read_only)(X)
    expected = fitted.predict_proba(X)
    assert np.array_equal(fitted.predict_proba(given), expected)
    assert np.array_equal(quick().fit(given, y).predict_proba(X), expected)


def test_a_read_only_memory_map_changes_no_bit(iris, fitted, tmp_path):  # B2
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(quick().fit(mapped, y).predict_proba(mapped), fitted.predict_proba(X))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.uint8, ">f4", ">i2"])
def test_narrow_numbers_become_float64_exactly(iris, dtype):  # B3
    X, y = iris
    narrow = (10 * X).astype(dtype)
    assert np.array_equal(proba(narrow, y), proba(narrow.astype(np.float64), y))


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider floats")
def test_a_longdouble_beyond_float64_is_refused(iris, fitted):  # B4
    X = iris[0].astype(np.longdouble)
    X[4, 1] = np.longdouble("1e400")
    words = r"too large for float64 \(x1: 1 of 150\)"
    with pytest.raises(ValueError, match=words):
        quick().fit(X, iris[1])
    with pytest.raises(ValueError, match=words):
        fitted.predict(X)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_complex_numbers_are_refused(iris, fitted, make):  # B5
    X = make(iris[0] + 1j)
    with pytest.raises(ValueError, match="Complex data not supported"):
        quick().fit(X, iris[1])
    with pytest.raises(ValueError, match="Complex data not supported"):
        fitted.predict(X)


@pytest.mark.parametrize("largest", [2**62, -(2**63), 2**53 + 1])
@pytest.mark.parametrize("make", [
    np.asarray, lambda X: X.tolist(), lambda X: X.astype(object), scipy.sparse.csr_matrix,
])  # fmt: skip
def test_integers_that_a_float_cannot_hold_are_warned_of(iris, fitted, make, largest):  # B6
    X = (10 * iris[0]).astype(np.int64)
    X[0, 1] = largest
    X = make(X)
    with pytest.warns(DataQualityWarning, match=r"Column 'x1' holds integers up to .* 2\*\*53"):
        quick().fit(X, iris[1])
    with pytest.warns(DataQualityWarning, match="'x1'"):
        fitted.predict(X)


@pytest.mark.parametrize("make", [frame, lambda X: pl.DataFrame(X, schema=list("abcd"))])
def test_integers_that_a_float_cannot_hold_are_named_by_column(iris, make):  # B6
    X = (10 * iris[0]).astype(np.uint64)
    X[0, 1] = 2**64 - 1
    with pytest.warns(DataQualityWarning, match=f"Column 'b' holds integers up to {2**64 - 1}"):
        quick().fit(make(X), iris[1])


def test_integers_that_a_float_can_hold_pass_in_silence(fitted):  # B6
    X = np.array([[2**53, -(2**53), 1, 0]])
    assert np.array_equal(fitted.predict_proba(X), fitted.predict_proba(X.astype(float)))


def test_booleans_are_zero_and_one(iris):  # B7
    X, y = iris
    answers = np.greater(X, X.mean(axis=0))
    expected = proba(answers.astype(float), y)
    assert np.array_equal(proba(answers, y), expected)
    assert np.array_equal(proba(frame(answers), y), expected)
    assert np.array_equal(proba(frame(answers).astype("boolean"), y), expected)


@pytest.mark.parametrize(
    ("make", "column"),
    [(np.asarray, "x2"), (lambda X: X.tolist(), "x2"), (frame, "c")],
)
def test_an_integer_beyond_every_float_is_named_by_row_and_column(iris, fitted, make, column):
    X = iris[0].astype(object)  # B9
    X[5, 2] = 10**400
    words = f"Column '{column}', row 5 holds 1000.*0000, too large for a float64"
    with pytest.raises(ValueError, match=words):
        quick().fit(make(X), iris[1])
    if column == "x2":
        with pytest.raises(ValueError, match=words):
            fitted.predict(make(X))


@pytest.mark.parametrize("make", [
    lambda X: X.astype(str),
    lambda X: X.astype(str).astype(object),
    lambda X: X.astype(str).tolist(),
    lambda X: X.astype("S5"),
])  # fmt: skip
def test_text_that_looks_like_numbers_is_not_parsed(iris, fitted, make):  # B10
    X = make(iris[0])
    with pytest.raises(SchemaError, match=r"'x0' holds (text: row 0 is '5\.1'|bytes)"):
        quick().fit(X, iris[1])
    with pytest.raises(SchemaError, match=r"holds (text|bytes)"):
        fitted.predict(X)


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (np.asarray, "x3"),
        (lambda X: X.tolist(), "x3"),
        (frame, "d"),
        (lambda X: pl.DataFrame({name: X[:, j].tolist() for j, name in enumerate("abcd")},
                                schema_overrides={"d": pl.Object}), "d"),
    ],
)  # fmt: skip
def test_a_word_among_numbers_is_named_by_row_column_and_value(iris, make, column):  # B11
    X = iris[0].astype(object)
    X[7, 3] = "abc"
    words = f"Column '{column}' mixes text with other types: row 7 is 'abc', row 0 is 0.2"
    with pytest.raises(SchemaError, match=words):
        quick().fit(make(X), iris[1])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_words_where_training_had_numbers_are_named(make):  # B11, D6
    table = make({"a": [0.5, 1.5, 2.5, 3.5], "b": [1.0, 2.0, 0.0, 3.0]})
    clf = quick(n_planes=1).fit(table, [0, 0, 1, 1])
    with pytest.raises(SchemaError, match="Column 'b' holds text: row 0 is 'red', expected a num"):
        clf.predict(make({"a": [0.5, 1.5], "b": ["red", "green"]}))


def _dates(count):
    return [datetime.datetime(2024, 5, 1 + day) for day in range(count)]


DATE_COLUMNS = {
    "pandas": lambda: pd.DataFrame({"a": [1.0, 2.0], "t": _dates(2)}),
    "pandas with a zone": lambda: pd.DataFrame(
        {"a": [1.0, 2.0], "t": pd.to_datetime(_dates(2)).tz_localize("UTC")}
    ),
    "pandas durations": lambda: pd.DataFrame({"t": pd.to_timedelta([1, 2], unit="D")}),
    "pandas periods": lambda: pd.DataFrame({"t": pd.period_range("2024", periods=2, freq="D")}),
    "pandas objects": lambda: pd.DataFrame({"t": pd.Series(_dates(2), dtype=object)}),
    "polars": lambda: pl.DataFrame({"a": [1.0, 2.0], "t": _dates(2)}),
    "polars days": lambda: pl.DataFrame({"t": [day.date() for day in _dates(2)]}),
    "polars times": lambda: pl.DataFrame({"t": [datetime.time(1), datetime.time(2)]}),
    "arrow": lambda: pa.table({"a": [1.0, 2.0], "t": _dates(2)}),
}


@pytest.mark.parametrize("kind", DATE_COLUMNS)
def test_a_column_of_dates_is_named_and_refused(kind):  # B12
    with pytest.raises(SchemaError, match=r"Column 't' holds dates or times .* drop it, or conv"):
        quick().fit(DATE_COLUMNS[kind](), [0, 1])


def test_an_array_of_dates_is_refused():  # B12
    with pytest.raises(SchemaError, match=r"Column 'x0' holds dates or times \(datetime64\[D\]\)"):
        quick().fit(np.array([["2024-05-01"], ["2024-05-02"]], dtype="M8[D]"), [0, 1])
    with pytest.raises(SchemaError, match=r"Column 'x1' holds dates or times \(datetime\)"):
        quick().fit([[1.0, day] for day in _dates(2)], [0, 1])


@pytest.mark.parametrize("column", [
    pl.Series([[1.0], [2.0], [3.0]]),
    pl.Series([{"r": 1.0}] * 3),
    pa.array([[1.0], [2.0], [3.0]]),
])  # fmt: skip
def test_a_column_of_lists_or_records_is_named_and_refused(column):
    make = pl.DataFrame if isinstance(column, pl.Series) else pa.table
    with pytest.raises(SchemaError, match="Column 'k' holds records"):
        quick().fit(make({"a": [1.0, 2.0, 3.0], "k": column}), [0, 1, 1])


def test_an_odd_object_among_numbers_is_named_by_row_and_column(iris):
    X = iris[0].astype(object)
    X[3, 1] = {"half": 0.5}
    with pytest.raises(TypeError, match=r"Column 'x1', row 3 holds \{'half': 0\.5\}: .*number"):
        quick().fit(X, iris[1])


@pytest.mark.parametrize("column", [
    pd.array([1, None, 2], dtype="Int64"),
    pd.array([True, None, False], dtype="boolean"),
    pd.array([1.5, None, 2.0], dtype="Float64"),
    pd.array([1, None, 2], dtype="int64[pyarrow]"),
    pd.Series([1.5, pd.NA, 2.0], dtype=object),
    pd.Series([1.5, None, 2.0], dtype=object),
])  # fmt: skip
def test_pandas_na_is_a_missing_value(column):  # B14
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "k": column})
    with pytest.raises(ValueError, match=r"X contains NaN \(k: 1 of 3\)"):
        quick(missing="error").fit(X, [0, 1, 1])


@pytest.mark.parametrize("values", [[1, None, 2], [True, None, False], [0.5, None, 1.5]])
@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_null_in_polars_and_arrow_is_a_missing_value(make, values):  # B14, B18
    with pytest.raises(ValueError, match=r"X contains NaN \(k: 1 of 3\)"):
        quick(missing="error").fit(make({"a": [1.0, 2.0, 3.0], "k": values}), [0, 1, 1])


def test_nullable_columns_without_holes_are_plain_numbers(iris):  # B14
    X, y = iris
    table = frame((10 * X).astype(int)).astype("Int64")
    assert np.array_equal(proba(table, y), proba((10 * X).astype(int), y))


def test_masked_arrays_are_refused_because_the_mask_would_be_lost(iris, fitted):  # B15
    X, y = iris
    masked = np.ma.masked_greater(X, 7.0)
    with pytest.raises(TypeError, match=r"X is a masked array.*X\.filled\(np\.nan\)"):
        quick().fit(masked, y)
    with pytest.raises(TypeError, match="X is a masked array"):
        fitted.predict(masked)
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        quick().fit(X, y, sample_weight=np.ma.masked_equal(np.ones(150), 2.0))


@pytest.mark.parametrize("parameter", [{"lift": "fourier"}, {"pca": 2}, {"pca": 0.9}])
def test_sparse_rows_with_a_dense_only_parameter_are_refused_at_fit(iris, parameter):  # B16
    ((name, value),) = parameter.items()
    with pytest.raises(TypeError, match=f"Sparse data was passed, but {name}={value!r} needs den"):
        quick(**parameter).fit(scipy.sparse.csr_matrix(iris[0]), iris[1])


@pytest.mark.parametrize("parameter", [{"lift": "fourier", "n_frequencies": 8}, {"pca": 2}])
def test_sparse_rows_are_refused_by_a_model_that_needs_dense_ones(iris, parameter):  # B16
    X, y = iris
    clf = quick(**parameter).fit(X, y)
    with pytest.raises(TypeError, match=r"(?i)sparse.*dense"):
        clf.predict(scipy.sparse.csr_matrix(X))
    with pytest.raises(TypeError, match=r"(?i)sparse.*dense"):
        quick(**parameter).fit(X, y, X_val=scipy.sparse.csr_matrix(X), y_val=y)


@pytest.mark.kernel
def test_repeated_entries_of_a_sparse_matrix_are_summed(iris, fitted):
    X, _ = iris
    n_rows, n_columns = X.shape
    indices = np.tile(np.repeat(np.arange(n_columns), 2), n_rows)
    halves = scipy.sparse.csr_matrix(
        (np.repeat(X.ravel() / 2.0, 2), indices, 2 * n_columns * np.arange(n_rows + 1)), X.shape
    )
    before = fingerprint(halves)
    whole = scipy.sparse.csr_matrix(X)
    assert np.array_equal(fitted.predict_proba(halves), fitted.predict_proba(whole))
    assert np.array_equal(proba(halves, iris[1]), proba(whole, iris[1]))
    assert fingerprint(halves) == before


@pytest.mark.parametrize("make", [
    frame,
    lambda X: pl.DataFrame(X, schema=list("abcd")),
    lambda X: pa.table(dict(zip("abcd", X.T, strict=True))),
])  # fmt: skip
def test_frames_of_every_library_give_the_same_bits_and_names(iris, fitted, make):  # B18
    X, y = iris
    clf = quick().fit(make(X), y)
    assert clf.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(clf.predict_proba(make(X)), fitted.predict_proba(X))


def test_a_lazy_frame_has_no_rows_yet(iris):  # B18
    lazy = pl.DataFrame(iris[0], schema=list("abcd")).lazy()
    with pytest.raises(TypeError, match=r"X is a LazyFrame.*collect it first"):
        quick().fit(lazy, iris[1])


@pytest.mark.kernel
@pytest.mark.parametrize(
    "make",
    [np.array, np.asfortranarray, frame, scipy.sparse.csr_matrix, lambda X: X.astype(np.float32)],
)
def test_nothing_that_is_given_is_written_to(iris, make):  # B19
    X, y = make(iris[0]), iris[1].copy()
    X_val, y_val = make(iris[0][::3]), iris[1][::3].copy()
    weight, weight_val = np.linspace(0.0, 2.0, 150), np.linspace(0.5, 2.0, 50)
    given = [X, y, weight, X_val, y_val, weight_val]
    before = [fingerprint(one) for one in given]
    clf = quick().fit(X, y, weight, X_val, y_val, weight_val)
    for method in ("predict", "predict_proba", "decision_function", "responsibilities"):
        getattr(clf, method)(X)
    assert [fingerprint(one) for one in given] == before


@pytest.mark.kernel
@pytest.mark.parametrize("n_planes", [1, 2])
def test_answers_own_their_memory(iris, n_planes):  # B20
    X, y = iris
    clf = quick(n_planes=n_planes).fit(X, y)
    expected = clf.predict_proba(X)
    for method in ("predict_proba", "predict", "decision_function", "plane_scores"):
        answer = getattr(clf, method)(X)
        answer[...] = 0
    clf.responsibilities(X)[...] = -1.0
    assert np.array_equal(clf.predict_proba(X), expected)


# --- C. labels, weights, parameters ---


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_label_that_is_no_number_is_refused_with_its_row(iris, value):  # C1
    X, y = iris
    y = np.where(np.isin(np.arange(150), [4, 9]), value, y)
    with pytest.raises(ValueError, match=r"y contains NaN.*: 2 of 150 labels, the first at row 4"):
        quick().fit(X, y)


MISSING_LABELS = {
    "objects": lambda y: y,
    "list": lambda y: y.tolist(),
    "pandas text": lambda y: pd.Series(y, dtype="string"),
    "pandas text with NaN": lambda y: pd.Series(y, dtype="str"),
    "pandas categories": lambda y: pd.Series(pd.Categorical(y)),
    "polars": lambda y: pl.Series(y.tolist()),
    "list with NaN": lambda y: [np.nan if label is None else label for label in y],
}


@pytest.mark.parametrize("kind", MISSING_LABELS)
def test_a_missing_label_is_refused_with_its_row(iris, kind):  # C1
    X, y = iris
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[3] = None
    with pytest.raises(ValueError, match=r"y contains NaN.*: 1 of 150 labels, the first at row 3"):
        quick().fit(X, MISSING_LABELS[kind](labels))


def test_missing_numbers_and_dates_as_labels_are_refused_too(iris):  # C1
    X, y = iris
    with pytest.raises(ValueError, match=r"y contains NaN.*1 of 150 labels, the first at row 3"):
        quick().fit(X, pd.Series(y, dtype="Int64").where(pd.Series(np.arange(150) != 3)))
    days = np.array(["2024-05-01", "2024-05-02", "NaT"], dtype="M8[D]")
    with pytest.raises(ValueError, match=r"y contains NaN.*50 of 150 labels, the first at row 100"):
        quick().fit(X, days[y])


def test_no_labels_at_all_are_refused(iris):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        quick().fit(iris[0], None)


def test_continuous_labels_are_refused(iris, rng):  # C2
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        quick().fit(iris[0], rng.standard_normal(150))


@pytest.mark.parametrize("make", [np.asarray, list])
def test_labels_of_mixed_types_are_refused(iris, make):  # C3
    X, y = iris
    labels = np.array([1, "a", 2], dtype=object)[y]
    with pytest.raises(ValueError, match="Unknown label type: y mixes int and str"):
        quick().fit(X, make(labels))


@pytest.mark.parametrize("labels", [
    ["naïve\n", "🙂", "日本"],
    ["a\0b", "a", "a,\"b"],
    ["", " ", "NA"],
    [-5, 7, 10**12],
    [2.0, 3.0, 5.0],
])  # fmt: skip
def test_labels_of_any_kind_come_back_as_they_were_given(iris, labels):  # C4, C5
    X, y = iris
    labels = np.array(labels)
    clf = quick().fit(X, labels[y])
    assert clf.classes_.dtype == labels.dtype
    assert clf.classes_.tolist() == sorted(labels.tolist())
    assert np.mean(clf.predict(X) == labels[y]) > 0.9


@pytest.mark.parametrize("make", [lambda y: y, pd.Series, list])
def test_labels_that_differ_by_a_final_nul_are_two_classes(iris, make):  # C4
    X, y = iris
    labels = np.array(["a\0", "a", "b"], dtype=object)[y]
    assert quick().fit(X, make(labels)).classes_.tolist() == ["a", "a\0", "b"]


@pytest.mark.parametrize(
    ("dtype", "expected"), [("Int64", np.int64), ("boolean", np.bool_), ("UInt8", np.uint8)]
)
def test_pandas_nullable_labels_keep_their_kind(iris, dtype, expected):  # C5
    X, y = iris
    labels = pd.Series(y > 0 if dtype == "boolean" else y, dtype=dtype)
    clf = quick().fit(X, labels)
    assert clf.classes_.dtype == expected
    assert clf.predict(X).dtype == expected


def test_a_column_of_labels_is_flattened_with_a_warning(iris, fitted):  # C7
    X, y = iris
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        clf = quick().fit(X, y[:, None])
    assert np.array_equal(clf.predict_proba(X), fitted.predict_proba(X))


def test_labels_in_several_columns_are_refused(iris):  # C8
    X, y = iris
    with pytest.raises(ValueError, match=r"y should be a 1d array, got .* shape \(150, 3\)"):
        quick().fit(X, np.eye(3, dtype=int)[y])


def test_weights_that_are_all_zero_are_refused(iris):  # C10
    X, y = iris
    with pytest.raises(ValueError, match="must contain at least one non-zero number"):
        quick().fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="needs at least 2 classes, got 1 class: 1"):
        quick().fit(X, y, sample_weight=(y == 1).astype(float))


@pytest.mark.parametrize(
    ("value", "words"), [(-1.0, "a negative value"), (np.nan, "NaN"), (np.inf, "infinity")]
)
def test_an_impossible_weight_is_named_by_row(iris, value, words):  # C11, C12
    X, y = iris
    weight = np.ones(150)
    weight[[5, 8]] = value
    expected = rf"sample_weight contains {words}: sample_weight\[5\] = {value}; expected finite"
    with pytest.raises(ValueError, match=expected):
        quick().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=expected.replace("sample_weight", "sample_weight_val")):
        quick().fit(X, y, X_val=X, y_val=y, sample_weight_val=weight)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(5), r"sample_weight\.shape == \(5,\), expected \(150,\)"),
        (np.ones((150, 2)), r"sample_weight must be a 1D array; got shape \(150, 2\)"),
        (["1"] * 150, "sample_weight must hold numbers; got '1'"),
        (np.array(["heavy"] * 150, dtype=object), "must hold numbers; got 'heavy'"),
        (np.ones(150) + 1j, r"sample_weight must hold numbers; got .*1\+1j"),
        (pd.array([1, None, 2] * 50, dtype="Int64"), r"contains NaN: sample_weight\[1\]"),
        ([1.0, None, 2.0] * 50, r"contains NaN: sample_weight\[1\]"),
    ],
)
def test_weights_of_wrong_shape_or_kind_are_refused(iris, weight, words):  # C12
    X, y = iris
    with pytest.raises(ValueError, match=words):
        quick().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("weight", [2.5, np.full(150, 0.1), [7] * 150, np.full(150, 1e300)])
def test_the_same_weight_for_every_row_is_no_weight_to_the_bit(iris, fitted, weight):  # C13
    X, y = iris
    assert np.array_equal(proba(X, y, sample_weight=weight), fitted.predict_proba(X))


@pytest.mark.kernel
@pytest.mark.parametrize("exponent", fast_with_numpy([-1000, 1000], [1000]))
@pytest.mark.parametrize("parameters", [{}, {"init": "logistic"}, {"solver": "adam"}])
def test_a_power_of_two_as_factor_of_the_weights_changes_no_bit(iris, rng, exponent, parameters):
    X, y = iris  # C13
    weight = rng.uniform(0.5, 2.0, 150)
    a = proba(X, y, sample_weight=weight, **parameters)
    b = proba(X, y, sample_weight=np.ldexp(weight, exponent), **parameters)
    assert np.array_equal(a, b)


@pytest.mark.kernel
@pytest.mark.parametrize("factor", [1e-300, 7.0, 1e300])
def test_a_common_factor_of_the_weights_changes_nothing(iris, rng, factor):  # C13
    X, y = iris
    weight = rng.uniform(0.5, 2.0, 150)
    a = proba(X, y, sample_weight=weight, **CONVEX)
    b = proba(X, y, sample_weight=weight * factor, **CONVEX)
    # The product rounds, and the solver ends where the loss no longer changes in its last
    # digit, which leaves about 1e-8 to the probabilities; exact factors are tested above.
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-7)


def test_a_class_without_weight_is_kept_and_gets_no_probability(iris):  # C14
    X, y = iris
    weight = (y != 2).astype(float)
    with pytest.warns(DataQualityWarning, match="Class 2 has no row of positive weight") as caught:
        clf = quick(label_smoothing=0.0, **CONVEX).fit(X, y, sample_weight=weight)
    assert len(caught) == 1
    assert clf.classes_.tolist() == [0, 1, 2]
    without = proba(X[:100], y[:100], ask=X, label_smoothing=0.0, **CONVEX)
    np.testing.assert_allclose(clf.predict_proba(X), np.c_[without, np.zeros(150)], atol=1e-6)
    elsewhere = X.copy()
    elsewhere[100:] = -1e6
    with pytest.warns(DataQualityWarning):
        moved = quick(label_smoothing=0.0, **CONVEX).fit(elsewhere, y, sample_weight=weight)
    assert np.array_equal(moved.predict_proba(X), clf.predict_proba(X))


@pytest.mark.kernel
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": "adam"},
        {"init": "logistic"},
        {"refit": False},
        {"lift": "fourier", "n_frequencies": 16, "gamma": 0.3},
        pytest.param(
            {"n_planes": "auto", "lift": "auto", "l2": "auto", "n_frequencies": 16},
            marks=SLOW_WITH_NUMPY,
        ),
    ],
)
def test_weight_k_is_the_row_k_times_to_the_bit(iris, parameters):  # C15
    X, y = iris[0][::2], iris[1][::2]
    weight = np.random.default_rng(2).integers(0, 4, 75)
    again = np.repeat(np.arange(75), weight)
    a = proba(X, y, sample_weight=weight, **parameters)
    b = proba(X[again], y[again], ask=X, **parameters)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("sharpness", [0, -1.0, np.nan, 2e6, 1e-7])
def test_a_recipe_refuses_a_sharpness_that_it_cannot_have(sharpness):  # C16
    with pytest.raises(InvalidParameterError, match=f"Got sharpness={sharpness!r}; expected a num"):
        quick(sharpness=sharpness)


def test_a_falling_sharpness_is_allowed_and_its_end_is_kept(iris):  # C17
    clf = quick(sharpness_start=10.0, sharpness=2.0).fit(*iris)
    assert clf.model_.sharpness == 2.0
    assert clf.score(*iris) > 0.9


@pytest.mark.parametrize("n_planes", [0, -1, 2.0, [2, 2], "many", True, {0: 1, 1: 0, 2: 1}, {}])
def test_an_impossible_number_of_planes_is_refused(iris, n_planes):  # C18
    words = re.escape(f"Got n_planes={n_planes!r}; expected ") + ".*at least 1"
    with pytest.raises(InvalidParameterError, match=words):
        quick(n_planes=n_planes).fit(*iris)


@pytest.mark.parametrize(
    ("n_planes", "words"),
    [
        ({0: 1, 1: 2}, "has no entry for the class 2; expected one entry for each of"),
        ({0: 1, 1: 2, 2: 1, 5: 3}, "names the class 5, which is not in y"),
        ({0: 1, 1: 2, 2: 1, "x": 3}, "names the class 'x', which is not in y"),
    ],
)
def test_planes_by_label_must_name_every_label_and_no_other(iris, n_planes, words):  # C18
    with pytest.raises(InvalidParameterError, match=words):
        quick(n_planes=n_planes).fit(*iris)


def test_planes_by_label_may_be_any_mapping(iris):  # C18
    given = types.MappingProxyType({0: 1, 1: 3, 2: 2})
    assert quick(n_planes=given).fit(*iris).n_planes_.tolist() == [1, 3, 2]
    with pytest.raises(InvalidParameterError, match="has no entry for the class 2"):
        quick(n_planes=types.MappingProxyType({0: 1, 1: 3})).fit(*iris)


@pytest.mark.parametrize("seed", [-1, 2**32, "first", 1.5])
def test_an_impossible_seed_is_refused(iris, seed):  # C19
    with pytest.raises(ValueError, match=r"Seed must be between|cannot be used to seed"):
        quick(random_state=seed).fit(*iris)


@pytest.mark.parametrize("verbose", ["loud", None, 0.5])
def test_an_impossible_verbosity_is_refused(iris, verbose):
    with pytest.raises(InvalidParameterError, match=re.escape(f"Got verbose={verbose!r}; expect")):
        quick(verbose=verbose).fit(*iris)


@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan, np.inf])
def test_an_impossible_class_weight_is_refused(iris, weight):
    with pytest.raises(InvalidParameterError, match=r"Got class_weight=.*positive"):
        quick(class_weight={0: 1.0, 1: weight, 2: 1.0}).fit(*iris)


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({7: 2.0}, r"classes, \[0, 1, 2\], are not in class_weight"),
        ("heavy", "'class_weight' parameter .* Got 'heavy'"),
        ([1, 2, 3], r"'class_weight' parameter .* Got \[1, 2, 3\]"),
    ],
)
def test_class_weights_of_unknown_labels_or_kinds_are_refused(iris, class_weight, words):
    with pytest.raises(ValueError, match=words):
        quick(class_weight=class_weight).fit(*iris)


@pytest.mark.parametrize(
    "parameter",
    [{"label_smoothing": 1.0}, {"l2": -1.0}, {"l2": 1e300}, {"learning_rate": 1e7}],
)
def test_a_number_out_of_range_is_refused_at_fit(iris, parameter):  # C21
    ((name, value),) = parameter.items()
    with pytest.raises(InvalidParameterError, match=re.escape(f"Got {name}={value!r}; expected")):
        quick(**parameter).fit(*iris)


@pytest.mark.kernel
@pytest.mark.parametrize("parameters", [{}, {"clip_norm": None}, {"refit": False}, {"l2": 0.0}])
def test_a_learning_rate_far_too_large_ends_with_finite_weights(iris, parameters):  # C21
    X, y = iris
    clf = quick(solver="adam", learning_rate=1e6, **parameters).fit(X, y)
    planes = clf.model_.planes
    assert np.isfinite(planes.weights).all()
    assert np.isfinite(planes.biases).all()
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.kernel
@pytest.mark.parametrize("l2", [0.0, 1e6])
def test_the_extremes_of_the_penalty_give_finite_weights(iris, l2):  # C21
    X, y = iris
    clf = quick(l2=l2).fit(X, y)
    assert np.isfinite(clf.model_.folded.weights).all()
    if l2 > 0:
        np.testing.assert_allclose(clf.model_.folded.weights, 0.0, atol=1e-4)


@pytest.mark.kernel
@pytest.mark.parametrize("sharpness", [0.1, 1.0, 6.0])
def test_a_class_with_more_planes_is_not_more_probable(rng, sharpness):  # C22
    X, y = rng.standard_normal((400, 2)), np.tile([0, 1], 200)
    p = proba(X, y, n_planes={0: 6, 1: 1}, sharpness=sharpness, sharpness_start=sharpness)
    assert p[:, 0].mean() == pytest.approx(0.5, abs=0.03)


def test_repeated_column_names_are_refused_and_listed(iris):  # C23
    X, y = iris
    with pytest.raises(SchemaError, match=r"names must be unique; repeated ones are \['a'\]"):
        quick().fit(pd.DataFrame(X, columns=list("abca")), y)


def test_column_names_may_hold_any_character(iris, fitted):  # C24
    X, y = iris
    names = ["[a] <b>", 'c,"d"', "e\nf", "🙂"]
    clf = quick().fit(pd.DataFrame(X, columns=names), y)
    assert clf.model_.columns == tuple(names)
    assert np.array_equal(
        clf.predict_proba(pd.DataFrame(X, columns=names)), fitted.predict_proba(X)
    )


def test_column_names_of_mixed_types_are_refused(iris):  # C25
    X, y = iris
    with pytest.raises(TypeError, match="only supported if all input features have string names"):
        quick().fit(pd.DataFrame(X, columns=["a", 1, "b", 2]), y)


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "predict_log_proba", "decision_function", "plane_scores",
     "responsibilities"],
)  # fmt: skip
def test_an_answer_before_fit_is_refused(iris, method):  # C26
    with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'"):
        getattr(quick(), method)(iris[0])


def test_planes_before_fit_are_not_there():  # C26
    assert not hasattr(quick(), "coef_")
    assert not hasattr(quick(), "intercept_")


INTERRUPTIONS = [KeyboardInterrupt(), MemoryError("no more"), RuntimeError("solver broke")]


@pytest.fixture
def interrupted(monkeypatch):
    """Make training stop with an error after some iterations."""

    def after(n_iterations, error):
        original, calls = geomix.training.run.Record, iter(range(n_iterations))

        def record(*args, **named):
            if next(calls, None) is None:
                raise error
            return original(*args, **named)

        monkeypatch.setattr(geomix.training.run, "Record", record)

    return after


@pytest.mark.parametrize("error", INTERRUPTIONS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.parametrize("n_iterations", [0, 20])
def test_an_interrupted_first_fit_leaves_the_estimator_unfitted(
    iris, interrupted, error, solver, n_iterations
):  # C27
    clf = quick(solver=solver)
    before = dict(vars(clf))
    interrupted(n_iterations, error)
    with pytest.raises(type(error)):
        clf.fit(*iris)
    assert vars(clf) == before
    with pytest.raises(NotFittedError):
        clf.predict(iris[0])


@pytest.mark.parametrize("error", INTERRUPTIONS, ids=lambda error: type(error).__name__)
def test_an_interrupted_second_fit_leaves_the_first_one_answering(
    iris, wine, interrupted, error
):  # C27
    X = frame(iris[0])
    clf = quick().fit(X, iris[1])
    before, expected = dict(vars(clf)), clf.predict_proba(X)
    interrupted(20, error)
    with pytest.raises(type(error)):
        clf.fit(*wine)
    assert vars(clf) == before
    assert np.array_equal(clf.predict_proba(X), expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (spoilt(X, np.inf), y),
        lambda X, y: (X[:, :2], y[:-1]),
        lambda X, y: (X[:, :2], np.zeros(150)),
        lambda X, y: (X.astype(str), y),
    ],
)
def test_a_refused_second_fit_leaves_the_first_one_answering(iris, spoil):  # C27
    X, y = frame(iris[0]), iris[1]
    clf = quick().fit(X, y)
    before, expected = dict(vars(clf)), clf.predict_proba(X)
    with pytest.raises(ValueError):  # noqa: PT011  which error it is, is tested above
        clf.fit(*spoil(*iris))
    assert vars(clf) == before
    assert np.array_equal(clf.predict_proba(X), expected)


# --- validation rows of the user ---


@pytest.mark.parametrize(
    ("y_val", "words"),
    [
        ([0, 1, 3], r"y_val holds the label 3 \(row 2\), which is not among .*\[0, 1, 2\]"),
        (["0", "1", "2"], r"y_val holds the label '0' \(row 0\), which is not among"),
        ([0.0, np.nan, 1.0], "Input y_val contains NaN.* 1 of 3 labels, the first at row 1"),
        (np.array([0, None, 1], dtype=object), "Input y_val contains NaN.*first at row 1"),
        ([0, 1], r"inconsistent numbers of samples: \[3, 2\]"),
    ],
)
def test_labels_of_validation_rows_must_be_known(iris, y_val, words):
    X, y = iris
    with pytest.raises(ValueError, match=words):
        quick().fit(X, y, X_val=X[:3], y_val=y_val)


def test_mixed_labels_of_validation_rows_are_refused(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    with pytest.raises(ValueError, match=r"y_val holds the label 1 \(row 1\)"):
        quick().fit(X, names, X_val=X[:3], y_val=np.array(["a", 1, "b"], dtype=object))


def test_validation_rows_and_labels_go_together(iris):
    X, y = iris
    with pytest.raises(ValueError, match="X_val was given without y_val"):
        quick().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="y_val was given without X_val"):
        quick().fit(X, y, y_val=y)


def test_validation_weights_without_rows_are_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="sample_weight_val was given without X_val"):
        quick().fit(X, y, sample_weight_val=np.ones(150))


def test_validation_rows_are_checked_like_the_others(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 4 features"):
        quick().fit(X, y, X_val=X[:, :2], y_val=y)
    with pytest.raises(SchemaError, match="must be in the same order as they were in fit"):
        quick().fit(frame(X), y, X_val=frame(X)[list("bacd")], y_val=y)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        quick().fit(X, y, X_val=X, y_val=y, sample_weight_val=np.zeros(150))


def test_missing_values_in_validation_rows_are_told_apart_from_those_in_x(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"Input X_val contains NaN \(x2: 3 of 150\)"):
        quick(missing="error").fit(X, y, X_val=spoilt(X, np.nan), y_val=y)


# --- D. columns at predict ---

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": lambda columns: pa.table(columns),
}


def columns(X, names):
    return dict(zip(names, X.T, strict=True))


@pytest.mark.parametrize("library", FRAMES)
def test_columns_in_another_order_are_refused(iris, library):  # D1
    X, y = iris
    make = FRAMES[library]
    clf = quick().fit(make(columns(X, "abcd")), y)
    with pytest.raises(SchemaError, match="names must be in the same order as they were in fit"):
        clf.predict(make(columns(X, "bacd")))


@pytest.mark.parametrize("library", FRAMES)
def test_all_missing_columns_are_listed(digits, library):  # D2
    X, y = digits[0][:60], digits[1][:60] % 2
    names = [f"pixel{j:02d}" for j in range(64)]
    make = FRAMES[library]
    clf = quick().fit(make(columns(X, names)), y)
    with pytest.raises(SchemaError, match="yet now missing") as caught:
        clf.predict(make(columns(X[:, 7:], names[7:])))
    for name in names[:7]:
        assert f"- {name}\n" in str(caught.value)


def test_extra_columns_are_listed(iris):  # D3
    X, y = iris
    clf = quick().fit(frame(X), y)
    with pytest.raises(SchemaError, match=r"unseen at fit time:\n- extra1\n- extra2\n"):
        clf.predict(frame(X).assign(extra1=1.0, extra2=2.0))


def test_renamed_columns_are_listed_on_both_sides(iris):  # D2, D3
    X, y = iris
    clf = quick().fit(frame(X), y)
    words = r"unseen at fit time:\n- z\nFeature names seen at fit time, yet now missing:\n- a\n"
    with pytest.raises(SchemaError, match=words):
        clf.predict(frame(X).rename(columns={"a": "z"}))


def test_a_plain_array_after_names_is_answered_with_a_warning(iris, fitted):  # D4
    X, y = iris
    clf = quick().fit(frame(X), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Geometric"):
        answer = clf.predict_proba(X)
    assert np.array_equal(answer, fitted.predict_proba(X))
    with pytest.warns(UserWarning, match="X has feature names, but .* fitted without feature nam"):
        fitted.predict(frame(X))


# --- what a fitted model refuses ---


@pytest.fixture(scope="module")
def small_model():
    X = np.arange(60.0).reshape(30, 2)
    return classifier(lift="linear", n_planes=1, l2=1e-2, max_iter=5).fit(X, np.arange(30) % 3)


@pytest.mark.parametrize("value", [0, 0.0, -1, np.nan, np.inf, "1", None, True])
def test_a_temperature_is_a_positive_number(small_model, value):
    with pytest.raises(ValueError, match=r"Got temperature=.*; expected a positive number"):
        small_model.model_.with_temperature(value)
    assert small_model.model_.with_temperature(np.float32(2)).temperature == 2.0


def test_masked_labels_are_refused_because_the_mask_would_be_lost(small_model):
    X, y = np.arange(60.0).reshape(30, 2), np.ma.masked_equal(np.arange(30) % 3, 2)
    model = small_model.model_
    for use in (
        lambda: classifier().fit(X, y),
        lambda: classifier(lift="linear").fit(X, np.arange(30) % 3, X_val=X, y_val=y),
        lambda: model.explain_global(X, y),
        lambda: model.rules(X, y),
    ):
        with pytest.raises(TypeError, match="masked array, whose mask would be ignored; drop"):
            use()


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_arrays_of_a_model_are_read_only(lift):
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    clf = classifier(lift=lift, l2=1e-2, max_iter=3).fit(X, y)
    model = clf.model_
    arrays = [clf.classes_, model.classes, model.planes.weights, model.planes.biases]
    arrays += [model.planes.class_start, model.standardize.mean, model.standardize.scale]
    arrays += [model.lift.frequencies] if lift == "fourier" else []
    arrays += [model.lift.parts[0].knots, model.lift.parts[0].mean] if lift == "spline" else []
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 7
    labels = np.array([3, 4])
    dataclasses.replace(model, classes=labels)
    labels[:] = 5  # the caller's array stays writeable


def test_shares_of_classes_are_given_by_label(small_model):
    with pytest.raises(TypeError, match=r"Got priors of type list; expected a dict .* \{0: 0\.2"):
        small_model.model_.with_priors([0.2, 0.3, 0.5])


def test_more_labels_than_classes_can_be_are_refused():
    n = labels.MOST_CLASSES + 1
    with pytest.raises(ValueError, match=r"y has 10001 different labels; expected at most 10000"):
        classifier().fit(np.zeros((3 * n, 1)), np.arange(3 * n) % n)


def test_training_on_very_many_classes_is_cut_short_with_a_warning(monkeypatch):
    monkeypatch.setattr(many_classes, "MANY_CLASSES", 5)
    monkeypatch.setattr(many_classes, "MOST_OPERATIONS", 1.0)
    monkeypatch.setattr(data_checks, "MANY_CLASSES", 5)
    X, y = np.random.default_rng(0).standard_normal((120, 3)), np.arange(120) % 6
    with pytest.warns(DataQualityWarning, match="6 classes: training takes fewer iterations"):
        clf = classifier(lift="linear", n_planes=1, l2=1e-3).fit(X, y)
    assert clf.n_iter_ <= many_classes.FEWEST_ITERATIONS
