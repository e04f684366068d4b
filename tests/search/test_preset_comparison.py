"""``compare_presets``: labels and folds of every kind."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, ShuffleSplit

from geomix import GeometricMixtureClassifier

SMALL = GeometricMixtureClassifier(
    lift="linear", n_planes=1, l2=1e-2, n_members=1, max_iter=40, random_state=0
)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["u", "v", "w"])[y]


@pytest.fixture(scope="module")
def compared(rows):
    return measures(SMALL.compare_presets(*rows, cv=3))


def measures(comparison):
    return [(one.preset, one.log_loss, one.accuracy) for one in comparison.results]


@pytest.mark.parametrize(
    "kind",
    [
        list,
        pd.Series,
        pl.Series,
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pd.Series(y, dtype="string", index=range(7, 7 + len(y))),
        lambda y: y.astype(object),
    ],
)
def test_labels_of_every_kind_give_the_same_figures(rows, compared, kind):
    X, y = rows
    assert measures(SMALL.compare_presets(X, kind(y), cv=3)) == compared


def test_labels_in_a_column_are_compared_row_by_row(rows, compared):
    X, y = rows
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        found = SMALL.compare_presets(X, y[:, None], cv=3)
    assert measures(found) == compared


def test_one_fold_has_means_without_errors(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = SMALL.compare_presets(*rows, cv=ShuffleSplit(1, test_size=0.3, random_state=0))
    assert all(np.isnan(one.log_loss_error) for one in found.results)
    assert "Presets, 1 fold\n" in str(found)
    assert "nan" not in str(found)


def test_labels_that_no_fit_takes_are_refused_as_a_fit_refuses_them(rows):
    X, y = rows
    with pytest.raises(ValueError, match="requires y to be passed"):
        SMALL.compare_presets(X, None)
    with pytest.raises(ValueError, match=r"Input y contains NaN.*Drop those rows"):
        SMALL.compare_presets(X, np.where(y == "u", None, y))
    with pytest.raises(ValueError, match="y mixes int and str"):
        SMALL.compare_presets(X, np.where(y == "u", 1, y.astype(object)))
    with pytest.raises(ValueError, match="The class 'u' has no row outside one of the 3 folds"):
        SMALL.compare_presets(X, y, cv=KFold(3))
