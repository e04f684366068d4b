"""Sparse rows in the native kernel: the numbers of SciPy and NumPy, to stated bounds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from test_native import native_only, one_epoch, reference, some_model, some_planes

from geomix.arrays import CenteredSparse
from geomix.core import kernel, objective
from geomix.core.kernel import AdamState
from geomix.training import adam_epochs
from geomix.training.rows import Rows

pytestmark = pytest.mark.kernel

ComplexWarning = getattr(np, "exceptions", np).ComplexWarning  # where NumPy before 1.25 has it
PER_CLASS = {"one": [1, 1, 1], "uneven": [1, 4, 2, 9], "more than a strip": [9] * 8}
ANSWERS = ("predict_proba", "class_scores", "plane_scores", "responsibilities")


def some_csr(n_rows, n_columns, rng, density=0.2):
    """Numbers in some cells; every seventh row and every fifth column is empty."""
    X = rng.standard_normal((n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    X[::7], X[:, 4::5] = 0.0, 0.0
    return scipy.sparse.csr_array(X)


def some_sparse_rows(n_rows, n_columns, n_classes, rng):
    X = CenteredSparse(some_csr(n_rows, n_columns, rng), rng.standard_normal(n_columns))
    return X, rng.integers(n_classes, size=n_rows), rng.uniform(0.5, 2.0, n_rows)


def as_dense(X):
    return X.csr.toarray() - X.shift


def shuffled(X, rng):
    """The same matrix, the entries of every row in another order."""
    X = X.copy()
    for first, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = first + rng.permutation(end - first)
        X.indices[first:end], X.data[first:end] = X.indices[order], X.data[order]
    X.has_sorted_indices = X.has_canonical_format = False
    return X


def doubled(X):
    """The same matrix, every entry as two halves side by side (halving is exact)."""
    return scipy.sparse.csr_array(
        (np.repeat(X.data, 2) / 2.0, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )


def with_zeros(X):
    """The same matrix, all its cells stored."""
    n_rows, n_columns = X.shape
    indices = np.tile(np.arange(n_columns), n_rows)
    indptr = n_columns * np.arange(n_rows + 1)
    return scipy.sparse.csr_array((X.toarray().ravel(), indices, indptr), shape=X.shape)


def wide(X):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def same_terms(ours, theirs, n_rows):
    assert ours.row_weight == pytest.approx(theirs.row_weight, rel=1e-12)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-12)
    for name in ("weights_gradient", "biases_gradient", "usage"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-10, atol=1e-10 * max(n_rows, 1)
        )


# --- training ---


@pytest.mark.parametrize("per_class", PER_CLASS.values(), ids=PER_CLASS)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000, 9000])
@pytest.mark.parametrize("n_columns", [1, 30, 100])
def test_terms_of_sparse_rows_equal_numpy(per_class, n_rows, n_columns):
    rng = np.random.default_rng(n_rows + n_columns)
    planes = some_planes(per_class, n_columns, rng)
    X, y, weight = some_sparse_rows(n_rows, n_columns, len(per_class), rng)
    rows = kernel.training_rows(X, y, weight)
    theirs = objective.batch_terms(planes, 6.0, X, y, weight, 0.02)
    same_terms(rows.terms(planes, 6.0, 0.02), theirs, n_rows)
    expected = kernel.NumpyRows(X, y, weight).class_scores(planes, 6.0)
    np.testing.assert_allclose(
        rows.class_scores(planes, 6.0),
        expected,
        rtol=1e-12,
        atol=1e-12 * abs(expected).max(initial=1.0),
    )
    if n_rows:
        assert rows.cross_entropy(planes, 6.0) == pytest.approx(
            objective.cross_entropy(planes, 6.0, X, y, weight), rel=1e-12
        )


@pytest.mark.parametrize("same", [doubled, with_zeros, wide], ids=lambda f: f.__name__)
def test_a_sparse_matrix_may_be_written_in_many_ways(same):
    rng = np.random.default_rng(0)
    planes = some_planes([3, 2, 4], 30, rng)
    X, y, weight = some_sparse_rows(500, 30, 3, rng)
    expected = kernel.batch_terms(planes, 6.0, X, y, weight, 0.02)
    for csr in (same(X.csr), shuffled(same(X.csr), rng)):
        before = csr.indices.copy()
        ours = kernel.batch_terms(planes, 6.0, CenteredSparse(csr, X.shift), y, weight, 0.02)
        same_terms(ours, expected, 500)
        if kernel.is_native:
            assert np.array_equal(ours.weights_gradient, expected.weights_gradient)
        assert np.array_equal(csr.indices, before)


def test_float32_entries_are_computed_with_in_float64():
    rng = np.random.default_rng(0)
    planes = some_planes([3, 2, 4], 30, rng)
    X, y, weight = some_sparse_rows(500, 30, 3, rng)
    single = X.csr.astype(np.float32)
    ours, theirs = (
        kernel.batch_terms(planes, 6.0, CenteredSparse(csr, X.shift), y, weight, 0.02)
        for csr in (single, single.astype(np.float64))
    )
    same_terms(ours, theirs, 500)


@native_only
def test_any_number_of_threads_gives_the_same_terms_of_sparse_rows(monkeypatch):
    rng = np.random.default_rng(1)
    planes = some_planes([9] * 8, 200, rng)
    X, y, weight = some_sparse_rows(9000, 200, 8, rng)
    rows, found, epochs = kernel.training_rows(X, y, weight), [], []
    for n_threads in (1, 2, 3, 8):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", str(n_threads))
        found.append(rows.terms(planes, 6.0, 0.02))
        epochs.append(one_epoch(planes, X, y, weight, batch_size=1500)[0])
    for other, planes in zip(found, epochs, strict=True):
        assert other.loss == found[0].loss
        assert np.array_equal(other.weights_gradient, found[0].weights_gradient)
        assert np.array_equal(other.biases_gradient, found[0].biases_gradient)
        assert np.array_equal(other.usage, found[0].usage)
        assert np.array_equal(planes.weights, epochs[0].weights)


@native_only
@pytest.mark.parametrize("usage_average", ["batch", "running"])
@pytest.mark.parametrize("limit", [None, 0.5])
def test_an_epoch_of_adam_over_sparse_rows_equals_numpys(monkeypatch, usage_average, limit):
    rng = np.random.default_rng(2)
    planes = some_planes([3, 1, 4], 40, rng)
    X, y, weight = some_sparse_rows(700, 40, 3, rng)
    recipe = SimpleNamespace(
        batch_size=64, label_smoothing=0.02, clip_norm=limit, max_weight_norm=limit and 4 * limit,
        usage_average=usage_average, usage_beta=0.5, usage_delta=0.01,
    )  # fmt: skip
    size = planes.as_vector().size
    state = AdamState(np.zeros(size), np.zeros(size), 0)
    usage = np.repeat(1.0 / planes.per_class, planes.per_class)
    order = rng.permutation(700)
    epoch = adam_epochs._Epoch(Rows(X, y, weight), recipe, 1e-3, 0.0, 5.0, 0.01, order)
    args = planes, state, usage, epoch
    ours = adam_epochs._native_epoch(*args)
    monkeypatch.setattr(adam_epochs.kernel, "batch_terms", objective.batch_terms)
    theirs = adam_epochs._epoch_by_batches(*args)
    np.testing.assert_allclose(ours[0].as_vector(), theirs[0].as_vector(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[1].square, theirs[1].square, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-9)
    assert ours[1].n_steps == theirs[1].n_steps
    assert ours[3] == pytest.approx(theirs[3], rel=1e-10)


@native_only
def test_sparse_rows_descend_like_dense_ones():
    rng = np.random.default_rng(3)
    planes = some_planes([2, 2, 2], 25, rng)
    X, y, weight = some_sparse_rows(400, 25, 3, rng)
    coefficients, seen = np.full(6, 1e-3), []
    descent = kernel.Descent(
        planes, 6.0, 0.02, coefficients, max_iter=500, tol=1e-8, value_tol=0.0,
        on_iterate=lambda planes, value: seen.append(value),
    )  # fmt: skip
    ours = kernel.minimize(kernel.training_rows(X, y, weight), replace(descent, max_iter=10))[0]
    theirs = kernel.minimize(
        kernel.training_rows(as_dense(X), y, weight), replace(descent, max_iter=10)
    )[0]
    np.testing.assert_allclose(ours.as_vector(), theirs.as_vector(), rtol=1e-6, atol=1e-8)
    assert seen[:10] == sorted(seen[:10], reverse=True)


# --- prediction ---


def sparse_model(kind="dropped columns", integers=False):
    model = some_model(kind, n_columns=40)
    if integers:  # held in halves
        weights = np.round(4.0 * model.planes.weights)
        model = replace(model, planes=replace(model.planes, weights=weights))
    return model


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("kind", ["linear", "dropped columns"])
@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000])
def test_predictions_of_sparse_rows_equal_numpy(kind, n_rows, integers):
    model = sparse_model(kind, integers)
    X = some_csr(n_rows, 40, np.random.default_rng(1))
    numpy = reference(model)
    for name in ANSWERS:
        ours, theirs = getattr(model, name)(X), getattr(numpy, name)(X)
        scale = np.abs(theirs).max(initial=1.0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)
        np.testing.assert_allclose(ours, getattr(model, name)(X.toarray()), atol=1e-12 * scale)


@pytest.mark.parametrize("per_class", [(1, 1), (30, 40, 20)])
def test_any_number_of_planes_predicts_sparse_rows(per_class):
    model = some_model("linear", n_columns=40, per_class=per_class)
    X = some_csr(200, 40, np.random.default_rng(1))
    for name in ANSWERS:
        theirs = getattr(reference(model), name)(X)
        np.testing.assert_allclose(
            getattr(model, name)(X), theirs, rtol=1e-12, atol=1e-12 * abs(theirs).max()
        )


@native_only
def test_a_prediction_of_a_sparse_row_depends_on_its_cells_alone(monkeypatch):
    model, rng = sparse_model(), np.random.default_rng(2)
    X = some_csr(3000, 40, rng)
    whole = model.predict_proba(X)
    for size in (1, 2, 3, 7, 64, 1000):
        parts = [model.predict_proba(X[i : i + size]) for i in range(0, 1500, size)]
        assert np.array_equal(np.vstack(parts), whole[: len(np.vstack(parts))])
    assert np.array_equal(model.predict_proba(X[::-1])[::-1], whole)
    for same in (doubled, with_zeros, wide, lambda X: shuffled(X, rng)):
        assert np.array_equal(model.predict_proba(same(X)), whole)
    for form in ("csc", "coo", "lil"):
        assert np.array_equal(model.predict_proba(X.asformat(form)), whole)
    many = scipy.sparse.vstack([X] * 40, format="csr")
    for n_threads in ("1", "2", "8"):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
        assert np.array_equal(model.predict_proba(many), np.tile(whole, (40, 1)))


@pytest.mark.parametrize("size", [1e-300, 1e4, 1e150, 1e300])
def test_every_finite_sparse_row_has_finite_probabilities(size):
    P = sparse_model().predict_proba(some_csr(64, 40, np.random.default_rng(0)) * size)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=4 * 3 * 2.3e-16)


def test_sparse_entries_of_columns_that_were_dropped_change_nothing():
    model = sparse_model()
    X = some_csr(50, 40, np.random.default_rng(0)).tolil()
    assert 4 not in model.standardize.kept
    X[:, 4] = 0.0
    expected = model.predict_proba(X)
    X[:, 4] = np.nan
    assert np.array_equal(model.predict_proba(X), expected)


# --- the door ---

BAD = {
    "a column beyond the last": {"indices": [0, 3]},
    "a column far beyond the last": {"indices": [0, 2**40]},
    "a column before the first": {"indices": [-1, 0]},
    "indptr that falls": {"indptr": [0, 2, 1, 2]},
    "indptr that begins late": {"indptr": [1, 1, 2, 2]},
    "indptr that begins before 0": {"indptr": [-1, 1, 2, 2]},
    "indptr beyond the entries": {"indptr": [0, 1, 2, 99]},
    "no indptr": {"indptr": []},
    "fewer data than indices": {"data": [1.0]},
    "fewer indices than data": {"indices": [0]},
}


def odd_csr(index, data=(1.0, 2.0), indices=(0, 2), indptr=(0, 1, 1, 2)):
    return SimpleNamespace(
        data=np.array(data, dtype=np.float64),
        indices=np.array(indices, dtype=index),
        indptr=np.array(indptr, dtype=np.int64),
    )


@native_only
def test_arrays_at_odd_addresses_give_the_same_bits():
    """``make sanitize`` fails where they are read without a copy."""

    def at_odd_address(array):
        odd = np.empty(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype)
        odd[:] = array
        assert not odd.flags.aligned
        return odd

    X = some_csr(50, 40, np.random.default_rng(0))
    parts = {name: at_odd_address(getattr(X, name)) for name in ("data", "indices", "indptr")}
    answering = kernel.native.NativeSparsePredictor(sparse_model()._predictor)
    for name in ANSWERS:
        ask = getattr(answering, name)
        assert np.array_equal(ask(SimpleNamespace(**parts)), ask(X))


@native_only
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_is_no_matrix_is_refused(bad, index):
    if np.max(bad.get("indices", [0])) > np.iinfo(index).max:
        pytest.skip("no such number")
    labels = np.zeros(3, dtype=np.int64), np.ones(3)
    model = some_model("linear", n_columns=3)
    answering = kernel.native.NativeSparsePredictor(model._predictor)
    fine = odd_csr(index)
    assert answering.predict_proba(fine).shape == (3, 3)
    assert len(kernel.training_rows(CenteredSparse(fine, np.zeros(3)), *labels).class_scores(
        model.planes, 6.0
    )) == 3  # fmt: skip
    with pytest.raises(ValueError, match=r"indptr|indices"):
        answering.predict_proba(odd_csr(index, **bad))
    with pytest.raises(ValueError, match=r"indptr|indices"):
        kernel.training_rows(CenteredSparse(odd_csr(index, **bad), np.zeros(3)), *labels)


@native_only
def test_labels_and_planes_that_do_not_fit_sparse_rows_are_refused():
    rng = np.random.default_rng(0)
    planes = some_planes([2, 2], 3, rng)
    X, y, weight = some_sparse_rows(10, 3, 2, rng)
    wrong = [
        (CenteredSparse(X.csr, X.shift[:2]), y, weight),
        (X, y[:5], weight),
        (X, y, weight[:5]),
        (X, y + 7, weight),
        (X, y - 1, weight),
        (CenteredSparse(X.csr.astype(complex), X.shift), y, weight),
    ]
    for rows in wrong:
        with pytest.raises((TypeError, ValueError, ComplexWarning)):
            kernel.batch_terms(planes, 6.0, *rows, 0.02)
    with pytest.raises(ValueError, match="columns"):
        kernel.batch_terms(some_planes([2, 2], 4, rng), 6.0, X, y, weight, 0.02)
    for change in ({"batch_size": 0}, {}):
        with pytest.raises(ValueError, match=r"batch_size|weights"):
            one_epoch(planes if change else some_planes([2, 2], 4, rng), X, y, weight, **change)


@native_only
def test_training_rows_do_not_follow_their_matrix():
    rng = np.random.default_rng(0)
    planes = some_planes([2, 2], 30, rng)
    X, y, weight = some_sparse_rows(50, 30, 2, rng)
    rows = kernel.training_rows(X, y, weight)
    expected = rows.class_scores(planes, 6.0)
    X.csr.data[:], X.csr.indices[:], X.csr.indptr[:] = np.nan, 10**6, -1
    assert np.array_equal(rows.class_scores(planes, 6.0), expected)
