"""Rows by index and in blocks: the same numbers as copies, and the room that a fit takes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from kernels import SLOW_WITH_NUMPY
from making import classifier

from geomix import GeometricMixtureClassifier
from geomix.arrays import CenteredSparse
from geomix.core import kernel, lifts
from geomix.core.kernel import NumpyRows
from geomix.core.lifts import fit_standardize, with_rotation
from geomix.core.objective import batch_terms, cross_entropy
from geomix.search import choosing, splits
from geomix.table import row_views
from geomix.table.reader import read_rows
from geomix.table.row_views import PickedRows, blocks, numbers
from geomix.table.schema import Column, Schema, numeric_schema
from geomix.training import features, preparation
from geomix.training.rows import Rows, column_range, distinct_rows
from geomix.training.settings import Settings

from shapes import random_planes  # isort: skip

pytestmark = pytest.mark.kernel

FIXED = {"lift": "linear", "n_planes": 1, "l2": 1e-2, "random_state": 0}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that small tables cross their borders."""
    monkeypatch.setattr(row_views, "CELLS_PER_BLOCK", 64)


@pytest.fixture
def always_single(monkeypatch):
    """float32 tables of any size are trained on in float32."""
    monkeypatch.setattr(lifts, "CELLS_FOR_SINGLE", 0)


def proba(X, y, **settings):
    return classifier(**{**FIXED, **settings}).fit(X, y).predict_proba(X)


# --- picked rows and their blocks ---


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda X: X[::-2]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [None, np.array([0, 2, 5]), np.array([4]), np.arange(6)])
def test_lazily_taken_rows_equal_copied_ones(rng, small_blocks, layout, dtype, columns):
    table = layout(rng.standard_normal((400, 6)).astype(dtype))
    first, second = rng.permutation(len(table))[:150], rng.integers(0, 150, 70)
    y, weight = rng.integers(0, 2, len(table)), rng.random(len(table))
    lazy = Rows(PickedRows(table, np.arange(len(table))), y, weight).take(first).take(second)
    eager = Rows(table, y, weight).take(first).take(second)
    assert lazy.X.table is table
    assert lazy.X.shape == eager.X.shape
    assert np.array_equal(lazy.y, eager.y)
    assert np.array_equal(lazy.weight, eager.weight)
    expected = eager.X if columns is None else eager.X[:, columns]
    for X in (lazy.X, eager.X):
        found = list(blocks(X, columns))
        assert len(found) > 1
        assert all(block.dtype == np.float64 and block.flags.c_contiguous for _, block in found)
        assert np.array_equal(np.concatenate([block for _, block in found]), expected)
        assert all(np.array_equal(block, expected[rows]) for rows, block in found)


def test_repeats_among_lazy_rows_are_merged_like_copied_ones(rng, small_blocks):
    X = rng.integers(0, 2, (300, 5)).astype(np.float32)
    y, weight = rng.integers(0, 2, 300), rng.random(300)
    eager = distinct_rows(Rows(X, y, weight), column_range(X))
    X = PickedRows(X, np.arange(300))
    lazy = distinct_rows(Rows(X, y, weight), column_range(X))
    assert np.array_equal(numbers(lazy.X), eager.X)
    assert np.array_equal(lazy.y, eager.y)
    assert np.array_equal(lazy.weight, eager.weight)


# --- statistics ---


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1.0, 1e100, 1e300])
@pytest.mark.parametrize("offset", [0.0, 5.0, -1000.0])
def test_means_and_deviations_in_blocks_are_numpys(rng, small_blocks, scale, offset):
    X = rng.standard_normal((500, 7)) + offset
    weight = rng.uniform(0.01, 3.0, 500)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    order = rng.permutation(500)
    inverse = np.argsort(order)
    with np.errstate(under="ignore"):
        table = (X * scale)[order]
    ours = fit_standardize(PickedRows(table, inverse), weight, np.arange(7))
    np.testing.assert_allclose(ours.mean / scale, mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(ours.scale / scale, deviation, rtol=1e-11)


def test_the_largest_floats_have_a_finite_deviation():
    X = np.array([[1.7e308, 1.0], [-1.7e308, 2.0], [1.7e308, 4.0]])
    ours = fit_standardize(X, np.ones(3), np.arange(2))
    np.testing.assert_allclose(ours.scale[0], 1.7e308 * (np.sqrt(8.0) / 3.0), rtol=1e-12)


@pytest.mark.parametrize("kept", [np.arange(8), np.array([0, 3, 4, 7])])
@pytest.mark.parametrize("n_axes", [None, 3])
def test_lazy_rows_standardise_like_copied_ones(rng, small_blocks, kept, n_axes):
    X = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8))
    weight = rng.uniform(0.5, 2.0, 300)
    lazy = PickedRows(X, np.arange(300))
    standardize = fit_standardize(lazy, weight, kept)
    if n_axes:
        standardize = with_rotation(standardize, lazy, weight, n_axes)
        U = (X[:, kept] - standardize.mean) / standardize.scale
        values = np.linalg.eigvalsh(np.cov(U.T, aweights=weight, bias=True))
        ours = np.cov(standardize(lazy).T, aweights=weight, bias=True)
        np.testing.assert_allclose(ours, np.diag(values[::-1][:n_axes]), atol=1e-12)
    np.testing.assert_allclose(standardize(lazy), standardize(X), rtol=1e-12, atol=1e-12)


def test_numpy_rows_add_up_over_blocks(rng, small_blocks):
    planes = random_planes(rng, [2, 1, 3], 5)
    X = rng.standard_normal((200, 5)).astype(np.float32)
    y, weight = rng.integers(0, 3, 200), rng.uniform(0.1, 2.0, 200)
    ours, wide = NumpyRows(X, y, weight), X.astype(np.float64)
    terms, whole = ours.terms(planes, 4.0, 0.1), batch_terms(planes, 4.0, wide, y, weight, 0.1)
    for name in ("row_weight", "loss", "weights_gradient", "biases_gradient", "usage"):
        np.testing.assert_allclose(getattr(terms, name), getattr(whole, name), rtol=1e-11)
    expected = cross_entropy(planes, 4.0, wide, y, weight)
    np.testing.assert_allclose(ours.cross_entropy(planes, 4.0), expected, rtol=1e-12)
    S = kernel.pool(planes.scores(wide), planes.class_start, 4.0)[0]
    np.testing.assert_allclose(ours.class_scores(planes, 4.0), S, rtol=1e-12)


# --- float32 tables ---


def test_training_rows_are_float32_only_of_large_float32_tables(rng, monkeypatch):
    monkeypatch.setattr(lifts, "CELLS_FOR_SINGLE", 600)
    X = rng.standard_normal((200, 3))
    standardize = fit_standardize(X, np.ones(200), np.arange(3))
    for table, n_rows, expected in [
        (X.astype(np.float32), 200, np.float32),
        (X.astype(np.float32), 199, np.float64),
        (X, 200, np.float64),
    ]:
        V = standardize(PickedRows(table, np.arange(n_rows)))
        assert V.dtype == expected
        np.testing.assert_allclose(V, standardize(table[:n_rows]), rtol=1e-7, atol=1e-7)


def test_values_that_leave_float32_no_room_are_trained_on_in_float64(rng, always_single):
    X = rng.standard_normal((50, 2)).astype(np.float32)
    for scale, expected in [(1.0, np.float32), (1e30, np.float64)]:
        lazy = PickedRows(X * np.float32(scale), np.arange(50))
        raw = fit_standardize(lazy, np.ones(50), np.arange(2), center_and_scale=False)
        assert raw(lazy).dtype == expected
        assert fit_standardize(lazy, np.ones(50), np.arange(2))(lazy).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("wdbc", {}),
        ("wdbc", {"solver": "adam", "n_planes": 2, "max_iter": 20}),
        ("digits", {"pca": 0.95}),
        # Along directions of little variance the default ends further from the optimum.
        ("digits", {"tol": 1e-5}),
        ("digits", {"solver": "adam", "n_planes": 2, "max_iter": 20}),
    ],
)
def test_float32_training_agrees_with_float64(name, settings, request, always_single):
    X, y = request.getfixturevalue(name)
    X = X.astype(np.float32)
    wide = proba(X.astype(np.float64), y, **settings)
    np.testing.assert_allclose(proba(X, y, **settings), wide, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_planes": 3, "l2": 1e-6, "tol": 1e-12},  # asks for more than float32 can give
        {"n_planes": 3, "init": "logistic"},
        {"lift": "fourier", "gamma": 0.05},
        pytest.param({"lift": "auto", "n_planes": "auto", "l2": "auto"}, marks=SLOW_WITH_NUMPY),
        {"standardize": False},
        {"pca": 5},
    ],
    ids=str,
)
def test_float32_training_ends_without_complaint(wine, settings, always_single):
    X, y = wine  # warnings are errors here
    assert np.isfinite(proba(X.astype(np.float32), y, **settings)).all()


@pytest.mark.parametrize(
    "other",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X.astype(">f4"),
        pd.DataFrame,
        lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
    ],
    ids=["fortran", "strided", "big-endian", "pandas", "polars"],
)
def test_the_layout_of_a_float32_table_changes_no_bit(wdbc, other, always_single, small_blocks):
    X, y = wdbc[0].astype(np.float32), wdbc[1]
    settings = {"solver": "adam", "max_iter": 3, "n_planes": 2, "pca": 5}
    ours = classifier(**{**FIXED, **settings}).fit(other(X), y)
    assert np.array_equal(ours.model_.predict_proba(X), proba(X, y, **settings))


def test_the_order_of_float32_rows_changes_no_bit(wdbc, rng, always_single, small_blocks):
    X, y = wdbc[0][:, :6].astype(np.float32), wdbc[1]
    order = rng.permutation(len(y))
    assert np.array_equal(proba(X[order], y[order]), proba(X, y)[order])


@pytest.mark.parametrize("settings", [{}, {"solver": "adam", "max_iter": 3}, {"pca": 4}], ids=str)
def test_a_float32_table_is_never_written_to(wdbc, settings, always_single):
    X, y = wdbc[0].astype(np.float32), wdbc[1]
    before = X.copy()
    expected = proba(X, y, **settings)
    assert np.array_equal(X, before)
    X.flags.writeable = False
    assert np.array_equal(proba(X, y, **settings), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X,
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype("Float32"),
        lambda X: pl.DataFrame(X, schema=list("abcd")),
        lambda X: pl.DataFrame(X, schema=list("abcd")).to_arrow(),
    ],
    ids=["array", "pandas", "nullable", "polars", "arrow"],
)
def test_float32_passes_the_door_as_float32_in_training_alone(iris, make):
    X = iris[0].astype(np.float32)
    clf, table = GeometricMixtureClassifier(), make(X)
    assert read_rows(clf, table, reset=True, as_it_lies=True).dtype == np.float32
    read = read_rows(clf, table, reset=False)
    assert read.dtype == np.float64
    assert np.array_equal(read, X)


def test_a_float32_array_or_pandas_frame_is_not_copied_at_the_door(iris):
    X = iris[0].astype(np.float32)
    for table in (X, np.asfortranarray(X), X[::2], pd.DataFrame(X)):
        rows = read_rows(GeometricMixtureClassifier(), table, reset=True, as_it_lies=True)
        assert np.shares_memory(rows, np.asarray(table))


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.uint8])
def test_other_numbers_pass_the_door_as_float64(iris, dtype):
    X = iris[0].astype(dtype)
    rows = read_rows(GeometricMixtureClassifier(), X, reset=True, as_it_lies=True)
    assert rows.dtype == np.float64


def test_float32_values_whose_sum_overflows_are_finite_all_the_same(iris):
    X = iris[0].astype(np.float32) * np.float32(1e37)
    assert np.isfinite(proba(X, iris[1])).all()
    X[3, 1], X[4, 1], X[7, 2] = np.inf, -np.inf, np.inf
    with pytest.raises(ValueError, match=r"x1: 2 of 150, x2: 1 of 150"):
        proba(X, iris[1])
    X[9, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(x0: 1 of 150\)"):
        proba(X, iris[1], missing="error")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_of_a_table_at_an_odd_address_are_aligned(rng, small_blocks, dtype):
    X = rng.standard_normal((50, 3)).astype(dtype)
    odd = np.empty(X.nbytes + 1, dtype=np.uint8)[1:].view(dtype).reshape(X.shape)
    odd[:] = X
    assert not odd.flags.aligned
    found = list(row_views.blocks(odd))
    assert len(found) > 1
    assert all(block.flags.carray for _, block in found)
    assert np.array_equal(np.vstack([block for _, block in found]), X)


def test_choosing_sees_only_so_many_held_out_rows(rng, monkeypatch):
    monkeypatch.setattr(splits, "ROWS_PER_RUNG", (50, 100))
    seen = []

    def race(rungs, *args):
        folds = [rungs.folds(rung)[0] for rung in range(len(rungs))]
        seen.extend((len(fold.preparation.rows), len(fold.valid)) for fold in folds)
        return run_race(rungs, *args)

    run_race = choosing.run_race
    monkeypatch.setattr(choosing, "run_race", race)
    X = rng.standard_normal((2100, 2))
    proba(X, (X[:, 0] > 0).astype(int))
    assert seen == [(100, 100)]


def test_centred_sparse_rows_are_one_block(rng):
    X = scipy.sparse.csr_matrix(rng.standard_normal((50, 6)) * (rng.random((50, 6)) < 0.3))
    planes, y = random_planes(rng, [1, 2], 6), rng.integers(0, 2, 50)
    rows = NumpyRows(CenteredSparse(X, np.full(6, 0.1)), y, np.ones(50))
    dense = NumpyRows(X.toarray() - 0.1, y, np.ones(50))
    np.testing.assert_allclose(
        rows.class_scores(planes, 3.0), dense.class_scores(planes, 3.0), atol=1e-12
    )


@pytest.mark.parametrize("pca", [None, 2])
def test_large_rows_are_clustered_block_by_block(rng, small_blocks, monkeypatch, pca):
    """The same clusters, and the standardised rows are never made."""
    table = Schema((*numeric_schema(("a", "b", "c")).columns, Column("d", "category", ("x", "y"))))
    X = np.column_stack([rng.standard_normal((600, 3)), rng.integers(2, size=600)])
    y = rng.integers(2, size=600)
    found, whole_rows, standardised = [], [], preparation.standardised
    monkeypatch.setattr(
        preparation, "standardised", lambda *at: whole_rows.append(at) or standardised(*at)
    )
    for most in (10**9, 0):
        whole_rows.clear()
        monkeypatch.setattr(preparation, "MOST_NUMBERS_AT_ONCE", most)
        rows = Rows(row_views.all_rows(X), y, np.ones(600))
        made = preparation.prepare(rows, None, table, 2, None, Settings(pca=pca), 0)
        found.append((made.clusters, made.clusters_of(5)))
        # Few rows are made whole only where a rotation could round by the size of a block.
        assert bool(whole_rows) == (most > 0 and pca is not None)
        assert "rows" not in vars(made)  # made for the clustering, and not kept
    for whole, in_blocks in zip(*found, strict=True):
        assert np.array_equal(whole.plane_of_row, in_blocks.plane_of_row)
        assert np.array_equal(whole.planes_per_class, in_blocks.planes_per_class)
    assert found[0][1].planes_per_class.tolist() == [5, 5]


def test_one_plane_per_class_needs_no_clusters(rng):
    rows = Rows(row_views.all_rows(rng.standard_normal((40, 2))), np.arange(40) % 3, np.ones(40))
    made = preparation.prepare(rows, None, numeric_schema(("a", "b")), 3, None, Settings(), 0)
    found = made.clusters_of(1)
    assert found.planes_per_class.tolist() == [1, 1, 1]
    assert found.plane_of_row.tolist() == [0] * 40
    assert not {"clusters", "rows"} & set(vars(made))


# --- the room a fit takes ---

ROOM = """
import numpy as np
from geomix import GeometricMixtureClassifier, Recipe
def kilobytes(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))
rng = np.random.default_rng(0)
X = rng.standard_normal((100_000, 50), dtype=np.float32)
y = rng.integers(3, size=len(X))
clf = GeometricMixtureClassifier(
    lift="linear", n_planes=2, l2=1e-3, max_iter=1, early_stopping="off", random_state=0,
    advanced=Recipe(solver="adam", calibrate=False),
)
clf.fit(X[:1000], y[:1000])
before = kilobytes("VmRSS:")
clf.fit(X, y)
print(1024 * (kilobytes("VmHWM:") - before) / X.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@SLOW_WITH_NUMPY  # it names the kernel itself
@pytest.mark.parametrize("kind", ["native", "numpy"])
def test_a_fit_takes_little_more_room_than_its_rows(kind):
    done = subprocess.run(
        [sys.executable, "-c", ROOM],
        env={**os.environ, "GEOMIX_KERNEL": kind},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 2.5


# --- rows that are made again ---


@pytest.mark.parametrize("n_rows", [1, 63, 64, 700])
def test_rows_packed_block_by_block_have_the_sums_of_all_at_once(rng, monkeypatch, n_rows):
    monkeypatch.setattr(row_views, "CELLS_AT_ONCE", 400)
    X, y, weight = rng.standard_normal((800, 5)), rng.integers(0, 3, n_rows), rng.random(n_rows)
    picked = PickedRows(X, rng.permutation(800)[:n_rows])
    planes = random_planes(rng, [2, 1, 2], 5)
    by_block, at_once = (
        kernel.training_rows(rows, y, weight).terms(planes, 6.0, 0.02)
        for rows in (picked, numbers(picked))
    )
    assert by_block.loss == at_once.loss
    assert np.array_equal(by_block.weights_gradient, at_once.weights_gradient)


@pytest.mark.parametrize("as_read", [numbers, lambda picked: picked], ids=["array", "picked"])
def test_rows_in_single_precision_have_nearly_the_sums_of_double(rng, as_read):
    X, y, weight = rng.standard_normal((800, 5)), rng.integers(0, 3, 700), rng.random(700)
    rows = as_read(PickedRows(X, rng.permutation(800)[:700]))
    planes = random_planes(rng, [2, 1, 2], 5)
    single, double = (
        kernel.training_rows(rows, y, weight, is_single=one).terms(planes, 6.0, 0.02)
        for one in (True, False)
    )
    assert single.loss == pytest.approx(double.loss, rel=1e-6)
    np.testing.assert_allclose(single.weights_gradient, double.weights_gradient, atol=1e-4)


@pytest.mark.slow
def test_a_fit_that_makes_its_rows_again_is_the_same_model(rng, monkeypatch):
    frame = pd.DataFrame(rng.standard_normal((3000, 3)), columns=list("abc"))
    frame["d"] = rng.choice(list("uvwxyz"), 3000)
    y = (frame["a"] * frame["b"] + (frame["d"] == "u") + rng.standard_normal(3000) > 0.3).to_numpy()
    kept = classifier(random_state=0).fit(frame, y).predict_proba(frame)
    monkeypatch.setattr(features, "MOST_BYTES_TO_KEEP_PACKED", 0)
    monkeypatch.setattr(preparation, "MOST_NUMBERS_TO_KEEP", 0)
    again = classifier(random_state=0).fit(frame, y).predict_proba(frame)
    assert np.array_equal(kept, again)
