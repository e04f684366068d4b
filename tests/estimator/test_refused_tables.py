"""Tables and parameters that were read in another sense than they were meant."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from making import classifier
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from geomix import GeometricMixtureClassifier, Recipe
from geomix.errors import InvalidParameterError, SchemaError

LINEAR = {"n_planes": 1, "lift": "linear", "l2": 1e-3, "random_state": 0}
CURVES = {"n_planes": 1, "lift": "spline", "l2": 1e-3, "random_state": 0, "max_iter": 25}


@pytest.fixture
def table(rng):
    X = pd.DataFrame(rng.integers(0, 3, (80, 3)).astype(float), columns=["x0", "x1", "x2"])
    return X, (X.x0 == 1).to_numpy().astype(int)


# --- sparse tables ---


def test_categories_of_sparse_rows_are_refused(table):
    X, y = table
    clf = classifier(**LINEAR, categorical_features=[0])
    with pytest.raises(TypeError, match=r"categorical_features=\[0\] needs dense rows"):
        clf.fit(csr_array(X.to_numpy()), y)
    assert not clf.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("kind", [pd.SparseDtype(float, 0), pd.SparseDtype(float, np.nan)], ids=str)
def test_sparse_columns_of_pandas_are_those_of_the_dense_frame(table, kind):
    X, y = table
    dense = classifier(**CURVES).fit(X, y)
    sparse = classifier(**CURVES).fit(X.astype(kind), y)
    assert sparse.model_.lift.kind == "spline"
    assert np.array_equal(dense.predict_proba(X), sparse.predict_proba(X.astype(kind)))


def test_sparse_columns_of_truth_values_are_numbers(table):
    X, y = table
    flags = X > 0
    sparse = flags.astype(pd.SparseDtype(bool, False))
    P = classifier(**LINEAR).fit(sparse, y).predict_proba(sparse)
    assert np.array_equal(P, classifier(**LINEAR).fit(flags, y).predict_proba(flags))


@pytest.mark.parametrize("settings", [LINEAR, {"preset": "fast", "random_state": 0}], ids=str)
def test_sparse_validation_rows_are_those_of_the_dense_table(table, settings):
    X, y = table[0].to_numpy(), table[1]
    dense, sparse = (
        classifier(**settings).fit(X, y, X_val=rows, y_val=y) for rows in (X, csr_array(X))
    )
    assert np.array_equal(dense.predict_proba(X), sparse.predict_proba(X))


def test_later_rows_of_a_model_of_dense_rows_are_dense(table):
    X, y = table[0].to_numpy(), table[1]
    clf = classifier(**CURVES, warm_start=True).fit(X, y)
    with pytest.raises(TypeError, match="trained on dense rows"):
        clf.fit(csr_array(X), y)


# --- columns ---


def test_complex_columns_beside_text_are_refused(table):
    X, y = table
    X = X.assign(x0=X.x0 + 1j, kind=["u", "v"] * 40)
    with pytest.raises(ValueError, match="Complex data not supported: column 'x0'"):
        classifier(**LINEAR).fit(X, y)


@pytest.mark.parametrize("is_from_model", [True, False])
def test_columns_called_x0_are_not_read_in_another_order(table, is_from_model):
    X, y = table
    clf = classifier(**LINEAR).fit(X if is_from_model else X.to_numpy(), y)
    if is_from_model:
        clf = GeometricMixtureClassifier.from_model(clf.model_)
    with pytest.raises(SchemaError, match="same order"):
        clf.predict(X[["x1", "x0", "x2"]])


@pytest.mark.filterwarnings("error")
def test_a_frame_with_numbers_for_names_is_answered_without_a_warning(table):
    X, y = table
    X = pd.DataFrame({0: X.x0, 1: X.x1.map({0.0: "a", 1.0: "b", 2.0: "c"})})
    clf = classifier(**LINEAR).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), clf.model_.predict_proba(X))


@pytest.mark.parametrize("row", [["a", 1, 2], {"x0": 1.0}], ids=["flat", "dict"])
def test_one_row_that_is_no_table_is_refused_with_the_remedy(table, row):
    clf = classifier(**LINEAR).fit(*table)
    with pytest.raises((ValueError, TypeError), match=r"Reshape your data|pandas\.DataFrame"):
        clf.predict(row)


# --- labels and weights ---


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: "a", 1: 1.0}, "positive number for class 0"),
        ({0: 1e300, 1: 1e-300}, "within a factor of 1e300"),
    ],
)
def test_class_weights_that_are_no_weights_are_refused(table, class_weight, message):
    with pytest.raises(InvalidParameterError, match=message):
        classifier(**LINEAR, class_weight=class_weight).fit(*table)


def test_class_weights_may_name_dates(table):
    X, y = table
    days = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    weights = dict(zip(days, [2.0, 1.0], strict=True))
    P = classifier(**LINEAR, class_weight=weights).fit(X, days[y]).predict_proba(X)
    expected = classifier(**LINEAR, class_weight={0: 2.0, 1: 1.0}).fit(X, y).predict_proba(X)
    assert np.array_equal(P, expected)


def test_dates_of_another_unit_are_the_same_labels(table):
    X, y = table
    days = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")[y]
    one, other = (
        classifier(**LINEAR).fit(X, days, X_val=X, y_val=days.astype(f"datetime64[{unit}]"))
        for unit in ("ns", "s")
    )
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("weight", [{}, [10**400] * 80], ids=["dict", "beyond floats"])
def test_weights_that_are_no_numbers_are_refused(table, weight):
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        classifier(**LINEAR).fit(*table, sample_weight=weight)


def test_the_classes_of_a_stream_may_be_a_set_and_are_known(table):
    X, y = table
    clf = classifier(**LINEAR).partial_fit(X, y, classes={1, 0})
    assert clf.partial_fit(X, y, classes={1, 0}).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="classes contains NaN"):
        classifier(**LINEAR).partial_fit(X, y, classes=[0, 1, np.nan])


def test_a_warm_start_on_one_class_is_refused_as_a_first_fit_is(table):
    X, y = table
    clf = classifier(**CURVES, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        clf.fit(X, np.zeros(80, dtype=int))


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_presets_are_compared_where_every_fold_trains_every_class(table):
    X, y = table
    with pytest.raises(ValueError, match="class 5 has no row outside one of the 5 folds"):
        classifier(**LINEAR).compare_presets(X, np.where(np.arange(80) == 0, 5, y))


# --- parameters ---


@pytest.mark.parametrize(
    ("lift", "recipe", "validates"),
    [("linear", {}, False), ("spline", {"refit": False}, False), ("spline", {}, True)],
    ids=["linear planes", "no refit", "validation rows"],
)
def test_an_ensemble_that_cannot_be_made_is_noted(table, lift, recipe, validates):
    X, y = table
    clf = GeometricMixtureClassifier(
        2, preset="accurate", n_members=4, lift=lift, l2=1e-3, advanced=Recipe(**recipe)
    )
    given = {"X_val": X, "y_val": y} if validates else {}
    notes = clf.fit(X, y, **given).history_.notes
    assert any("n_members=4 had no effect" in note for note in notes)


def test_fields_of_a_recipe_are_not_set_by_a_path():
    with pytest.raises(InvalidParameterError, match=r"advanced=Recipe\(sharpness=...\)"):
        classifier().set_params(advanced__sharpness=2)


# --- results ---


def test_a_race_in_which_all_are_behind_has_a_winner():
    x = np.array([0.565, -0.174, -0.069, np.nan, -0.44, -2.2, np.nan, -2.6, np.nan, np.nan])
    X, y = x[:, None], np.arange(10) % 2
    clf = classifier(random_state=4, max_iter=2, advanced=Recipe(init="kmeans"))
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y, X_val=X[::2], y_val=y[::2])
    assert clf.predict_proba(X).shape == (10, 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_arrays_of_a_copied_model_are_read_only(table, copied):
    clf = copied(classifier(**LINEAR).fit(*table))
    with pytest.raises(ValueError, match="read-only"):
        clf.model_.planes.weights[:] = 0.0
