"""Merging repeats, canonical order, and splits."""

import numpy as np
import pytest
import scipy.sparse

from geomix.training.rows import (
    Rows,
    column_range,
    distinct_rows,
    stratified_folds,
    stratified_split,
)


def as_rows(X, y, weight=None):
    return Rows(X, y, np.ones(len(y)) if weight is None else weight)


def merged(rows):
    return distinct_rows(rows, column_range(rows.X))


def test_only_dense_rows_of_many_numbers_are_trained_on_in_single_precision(rng):
    X, y = rng.random((5000, 4)), rng.integers(0, 2, 5000)
    single = as_rows(X, y).in_single_precision()
    assert single.is_single
    assert single.take(np.arange(10)).is_single
    assert not as_rows(X[:50], y[:50]).in_single_precision().is_single
    assert not as_rows(scipy.sparse.csr_array(X), y).in_single_precision().is_single


@pytest.fixture
def repeated(rng):
    """60 rows of 25 distinct ones, two classes."""
    X = rng.integers(0, 3, (25, 4)).astype(float) + 0.1
    y = rng.integers(0, 2, 25)
    pick = rng.integers(0, 25, 60)
    return X[pick], y[pick]


def test_repeats_become_one_row_with_the_sum_of_the_weights(repeated):
    X, y = repeated
    rows = merged(as_rows(X, y))
    table = {}
    for row, label in zip(map(tuple, X), y, strict=True):
        table[(row, label)] = table.get((row, label), 0) + 1
    ours = {
        (tuple(row), label): weight
        for row, label, weight in zip(rows.X, rows.y, rows.weight, strict=True)
    }
    assert ours == table


def test_row_order_does_not_matter(repeated, rng):
    X, y = repeated
    order = rng.permutation(len(y))
    a, b = merged(as_rows(X, y)), merged(as_rows(X[order], y[order]))
    assert np.array_equal(a.X, b.X)
    assert np.array_equal(a.y, b.y)
    assert np.array_equal(a.weight, b.weight)


def test_neither_units_nor_constant_columns_nor_sparsity_change_the_order(rng):
    X, y = rng.standard_normal((50, 3)) * (rng.random((50, 3)) < 0.7), rng.integers(0, 2, 50)
    plain = merged(as_rows(X, y))
    scaled = merged(as_rows(X * 1e200, y))
    np.testing.assert_allclose(scaled.X, plain.X * 1e200, rtol=1e-15)
    wider = merged(as_rows(np.c_[X, np.full(50, 7.0)], y))
    assert np.array_equal(wider.X[:, :3], plain.X)
    sparse = merged(as_rows(scipy.sparse.csr_matrix(X), y))
    assert np.array_equal(sparse.X.toarray(), plain.X)
    assert np.array_equal(sparse.weight, plain.weight)


def test_the_same_row_with_two_labels_stays_two_rows():
    rows = merged(as_rows(np.ones((4, 2)), np.array([0, 1, 0, 1])))
    assert rows.y.tolist() == [0, 1]
    assert rows.weight.tolist() == [2.0, 2.0]


def test_column_range_finds_constant_and_nearly_constant_columns():
    X = np.array([[1.0, 7.0, 1e-310, -1.7e308], [2.0, 7.0, 2e-310, 1.7e308]])
    columns = column_range(X)
    assert columns.varying.tolist() == [0, 3]
    assert columns.nearly_constant.tolist() == [2]
    assert np.isfinite(columns.half_spread).all()


def test_a_split_takes_its_share_of_every_class_and_keeps_single_rows(rng):
    y = np.repeat([0, 1, 2], [100, 40, 1])
    train, valid = stratified_split(y, 0.2, rng)
    assert np.bincount(y[valid], minlength=3).tolist() == [20, 8, 0]
    assert np.array_equal(np.sort(np.r_[train, valid]), np.arange(141))


def test_folds_hold_every_row_out_once_except_single_rows(rng):
    y = np.repeat([0, 1, 2], [23, 11, 1])
    folds = stratified_folds(y, 5, rng)
    held_out = np.concatenate([valid for _, valid in folds])
    assert np.array_equal(np.sort(held_out), np.flatnonzero(y < 2))
    for train, valid in folds:
        assert not np.intersect1d(train, valid).size
        assert 2 in y[train]
        assert len(train) + len(valid) == len(y)
        assert 4 <= (y[valid] == 0).sum() <= 5


def test_renaming_the_classes_moves_no_row_between_the_parts(rng):
    y = rng.integers(0, 3, 90)
    renamed = np.array([2, 0, 1])[y]
    for a, b in zip(
        stratified_split(y, 0.3, np.random.default_rng(5)),
        stratified_split(renamed, 0.3, np.random.default_rng(5)),
        strict=True,
    ):
        assert np.array_equal(a, b)


def test_a_column_that_is_constant_in_one_fold_does_no_harm():
    from geomix import GeometricMixtureClassifier

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 3)), np.repeat([0, 1], 60)
    X[:, 0] += y
    X[:, 2] = 0.1
    X[7, 2] = 1e9
    clf = GeometricMixtureClassifier(lift="linear", n_planes=1, random_state=0).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert all(np.isfinite(trial.valid_loss) for trial in clf.history_.trials)
