"""The spline lift: curves, levels and grids as sums of steps, and rows of it as codes.

The native kernel works on codes in float32. Its class scores are within SCORES_BOUND of the
largest one; its sums over rows within SUMS_BOUND of the rows' weight (times the largest feature,
for the gradient of the weights), which is the most that such a sum can be.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from kernels import fast_with_numpy
from making import classifier
from places import TESTS
from shapes import central_differences

from geomix import GeometricMixture
from geomix.core import kernel, objective
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import pass_through
from geomix.core.planes import Planes, class_starts, ensemble
from geomix.core.predictors import NumpyPredictor, NumpyScorer
from geomix.core.spline import Binned, CurvePart, LevelPart, SplineLift, fit_spline
from geomix.training.initial_planes import initial_planes
from geomix.training.rows import Rows

pytestmark = pytest.mark.kernel

native_only = pytest.mark.skipif(not kernel.is_native, reason="the NumPy kernel is in use")

SCORES_BOUND = 2e-6 if kernel.is_native else 1e-12
SUMS_BOUND = 2e-6 if kernel.is_native else 1e-12

# Columns of ``some_table``: three numbers, a category of 5, one of 400; pairs of every kind.
LEVELS = np.array([0, 0, 0, 5, 400])
PAIRS = {"no pairs": (), "pairs": ((0, 1), (0, 3), (3, 2), (3, 3))}


def some_table(n_rows, rng):
    """Few distinct values, so that codes stand for the values themselves; some are missing."""
    X = np.round(rng.standard_normal((n_rows, 5)), 1)
    X[:, 1] *= rng.random(n_rows) < 0.2
    X[:, 3] = rng.integers(5, size=n_rows)
    X[:, 4] = rng.integers(400, size=n_rows)
    X[:, [0, 2, 3]] = np.where(rng.random((n_rows, 3)) < 0.1, np.nan, X[:, [0, 2, 3]])
    return X


def some_lift(rng, columns=(0, 1, 2, 3, 4), pairs=(), n_knots=8):
    X = some_table(2000, rng)[:, columns]
    return fit_spline(X, rng.uniform(0.5, 2.0, len(X)), LEVELS[list(columns)], n_knots, pairs)


def only_values_of(lift, X):
    """X with every number replaced by the representative of its bin: then codes lose nothing."""
    X = X.copy()
    for part in lift.parts:
        if isinstance(part, CurvePart):
            at = np.append(part.values, np.nan)[part.codes(X)]
            X[:, part.column] = at
    return X


def some_planes(per_class, n_inputs, rng):
    start = class_starts(per_class)
    weights = 0.3 * rng.standard_normal((start[-1], n_inputs))
    return Planes(weights, rng.standard_normal(start[-1]), start)


def some_labels(n_rows, n_classes, rng):
    return rng.integers(n_classes, size=n_rows), rng.uniform(0.5, 2.0, n_rows)


# --- the lift itself ---


def test_every_step_is_zero_on_average_over_the_training_rows(rng):
    X, weight = some_table(500, rng), rng.uniform(0.5, 2.0, 500)
    lift = fit_spline(X, weight, LEVELS, 8, ((0, 1),))
    for part in lift.parts:
        phi = part.phi(X)
        columns = [part.column] if hasattr(part, "column") else list(part.columns)
        if isinstance(part, CurvePart) and part.has_missing:
            phi = phi[:, :-1]  # the step of missing cells is zero wherever there is a number
        here = ~np.isnan(X[:, columns]).any(axis=1)
        if not isinstance(part, CurvePart) and getattr(part, "has_missing", False):
            here[:] = True  # missing is a level like any other
        # The means are of positions rounded to 24 bits, as training reads them.
        np.testing.assert_allclose(weight[here] @ phi[here] / weight.sum(), 0.0, atol=2.0**-24)


def test_sums_over_bins_and_values_of_bins_equal_those_by_the_matrix(rng):
    X = rng.standard_normal((300, 4))
    X[::7, 0], X[:, 1], X[::5, 1] = np.nan, rng.integers(4, size=300), np.nan
    lift = fit_spline(X, np.ones(300), np.array([0, 4, 0, 0]), 12, ((0, 1), (2, 3)))
    for part in lift.parts:
        mass = rng.random((3, part.n_bins))
        np.testing.assert_allclose(part.sums_of_bins(mass), mass @ part.bin_phi(), atol=1e-12)
        weights = rng.standard_normal((part.n_steps, 2))
        by_matrix = part.bin_phi() @ weights
        np.testing.assert_allclose(part.values_of_bins(weights), by_matrix, atol=1e-12)


def test_a_sum_of_steps_is_linear_interpolation(rng):
    """Against np.interp: a curve through the knots with the cumulative sums of the steps."""
    X = rng.standard_normal((400, 1))
    lift = fit_spline(X, np.ones(400), np.array([0]), 12)
    (curve,) = lift.parts
    steps = rng.standard_normal(lift.n_outputs)
    x = np.concatenate([np.linspace(-9.0, 9.0, 1001), curve.knots, curve.values])
    heights = np.concatenate([[0.0], np.cumsum(steps)])
    expected = np.interp(x, curve.knots, heights) - curve.mean @ steps
    np.testing.assert_allclose(lift(x[:, None]) @ steps, expected, atol=1e-12)


def test_a_curve_has_no_jumps_and_is_flat_beyond_its_ends(rng):
    X = rng.standard_normal((400, 1))
    lift = fit_spline(X, np.ones(400), np.array([0]), 12)
    knots, steps = lift.parts[0].knots, rng.standard_normal(lift.n_outputs)

    def curve(x):
        return lift(x[:, None]) @ steps

    below, above = np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)
    np.testing.assert_allclose(curve(below), curve(knots), atol=1e-10)
    np.testing.assert_allclose(curve(above), curve(knots), atol=1e-10)
    ends = curve(np.array([knots[0], -1e300, knots[-1], 1e300]))
    assert ends[0] == ends[1]
    assert ends[2] == ends[3]


def test_a_mostly_zero_column_has_knots_where_it_is_not_zero(rng):
    x = np.where(rng.random(5000) < 0.98, 0.0, rng.uniform(1.0, 2.0, 5000))
    (curve,) = fit_spline(x[:, None], np.ones(5000), np.array([0]), 16).parts
    assert (curve.knots > 1.0).sum() >= 5
    assert (curve.values > 1.0).sum() >= 50


def test_a_constant_column_gets_no_part():
    X = np.column_stack([np.ones(20), np.full(20, np.nan), np.zeros(20)])
    lift = fit_spline(X, np.ones(20), np.array([0, 0, 3]), 8)
    assert lift.parts == ()
    assert lift(X).shape == (20, 0)
    assert kernel.binned(lift, X).shape == (20, 0)


@pytest.mark.parametrize("value", [1.0, -3.0, 0.0, 1e-310, 1e300])
def test_present_or_missing_is_told_where_that_is_all_there_is(value):
    X = np.where(np.arange(30) % 3 == 0, np.nan, value)[:, None]
    lift = fit_spline(X, np.ones(30), np.array([0]), 8)
    binned = kernel.binned(lift, X)
    np.testing.assert_allclose(binned @ np.eye(lift.n_outputs), lift(X), atol=1e-15)
    assert set(binned.codes[:, 0]) == {0, 2}


def test_neighbouring_and_huge_values_have_bins_of_their_own():
    up = [1.0, np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2.0), 2.0)]
    x = np.array([-1.7e308, -1e308, *up, 5e-324, 1e-323, 1e308, 1.7e308])
    x.sort()
    (curve,) = fit_spline(x[:, None], np.ones(len(x)), np.array([0]), 300).parts
    assert np.array_equal(curve.codes(x[:, None]), np.arange(len(x)))


def test_a_level_that_was_never_seen_adds_nothing(rng):
    lift = some_lift(rng)
    X = some_table(50, rng)
    X[:, 3:] = -1.0
    seen = some_table(50, rng)
    seen[:, :3] = X[:, :3]
    steps = lift.step_start[-3]
    assert np.array_equal(lift(X)[:, steps:], np.zeros_like(lift(X)[:, steps:]))
    assert np.array_equal(lift(X)[:, :steps], lift(seen)[:, :steps])


def test_more_bins_than_two_bytes_can_name_are_refused():
    X = np.arange(70_000.0)[:, None] % 66_000
    part = some_lift(np.random.default_rng(0)).parts[-1]
    lift = SplineLift((type(part)(0, 66_000, False, np.zeros(1)),), 1)
    with pytest.raises(ValueError, match="66002 bins"):
        lift.binned(X)


# --- codes ---


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_native_codes_equal_numpy(pairs, dtype, rng):
    lift = some_lift(rng, pairs=pairs)
    X = np.vstack([some_table(700, rng), rng.standard_normal((300, 5)) * 100.0])
    X[:50] = np.nan
    X[50:60, :3], X[60:70] = np.inf, -np.inf
    X[70:80, 3:], X[80:90, 3:] = 1e30, -0.5
    X[90:100, 3:] = 2.7
    X = X.astype(dtype)
    for part in lift.parts:  # values that are edges
        if isinstance(part, CurvePart) and dtype == np.float64:
            n = min(len(part.edges), len(X) - 100)
            X[100 : 100 + n, part.column] = part.edges[:n]
    expected = lift.binned(X).codes
    bytes_off = np.empty(X.nbytes + 1, dtype=np.uint8)[1:].view(dtype).reshape(X.shape)
    bytes_off[:] = X
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    for layout in (X, np.asfortranarray(X), wide, bytes_off, X[::-1][::-1]):
        found = kernel.binned(lift, layout).codes
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
    assert np.array_equal(kernel.binned(lift, X[::-3]).codes, expected[::-3])
    assert kernel.binned(lift, X[:0]).codes.shape == (0, len(lift.parts))


def test_codes_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    X = rng.standard_normal((20_000, 7))
    lift = fit_spline(X, np.ones(len(X)), np.zeros(7, dtype=int), 20)
    assert lift.code_type == np.uint8
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
        assert np.array_equal(kernel.binned(lift, X).codes, lift.binned(X).codes)


def rows_of_bins(lift, X):
    """phi of rows whose cells are representatives, as training reads it: rounded to 24 bits."""
    Phi = np.hstack([part.bin_phi()[part.codes(X)] for part in lift.parts])
    np.testing.assert_allclose(Phi, lift(X), rtol=0, atol=2.0**-24)
    return Phi


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_codes_stand_for_rows_of_the_lift(pairs, rng):
    lift = some_lift(rng, pairs=pairs)
    X = only_values_of(lift, some_table(300, rng))
    X[:9, 3:] = -1.0
    Phi, binned = rows_of_bins(lift, X), kernel.binned(lift, X)
    right, left = rng.standard_normal((lift.n_outputs, 3)), rng.standard_normal((4, 300))
    np.testing.assert_allclose(binned @ right, Phi @ right, atol=1e-11)
    np.testing.assert_allclose(left @ binned, left @ Phi, atol=1e-11)
    np.testing.assert_allclose(left[0] @ binned, left[0] @ Phi, atol=1e-11)
    np.testing.assert_allclose(binned[5:9] @ right, Phi[5:9] @ right, atol=1e-11)
    group = rng.integers(3, size=300)
    G = np.where(np.arange(5)[:, None] == group, left[0], 0.0)
    np.testing.assert_allclose(binned.group_sums(group, left[0], 5), G @ Phi, atol=1e-11)


def test_a_pickled_lift_holds_its_fields_alone(rng):
    lift = some_lift(rng)
    before = pickle.dumps(lift)
    binned = kernel.binned(lift, some_table(50, rng))
    binned.group_sums(np.zeros(50, dtype=int), np.ones(50), 1)
    assert pickle.dumps(lift) == before


# --- training terms ---


def assert_terms_equal(ours, theirs, Phi, weight):
    whole = SUMS_BOUND * max(weight.sum(), 1.0)
    assert ours.row_weight == pytest.approx(theirs.row_weight, rel=SUMS_BOUND)
    assert ours.loss == pytest.approx(theirs.loss, abs=whole)
    np.testing.assert_allclose(ours.biases_gradient, theirs.biases_gradient, rtol=0, atol=whole)
    np.testing.assert_allclose(ours.usage, theirs.usage, rtol=0, atol=whole)
    whole *= np.abs(Phi).max(initial=1.0)
    np.testing.assert_allclose(ours.weights_gradient, theirs.weights_gradient, rtol=0, atol=whole)


@pytest.mark.parametrize("per_class", [[1, 1, 1], [3, 3], [1, 4, 2, 9], [4] * 7, [17, 2]])
@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000, 2500])
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("narrow", [True, False])
def test_terms_of_codes_equal_those_of_the_lifted_rows(per_class, n_rows, pairs, narrow, rng):
    columns = (0, 1, 2, 3) if narrow else (0, 1, 2, 3, 4)
    lift = some_lift(rng, columns, pairs)
    assert lift.code_type == (np.uint8 if narrow else np.uint16)
    X = some_table(n_rows, rng)[:, columns]
    X[::5, 3:] = -1.0
    X = only_values_of(lift, X)
    Phi, binned = rows_of_bins(lift, X), kernel.binned(lift, X)
    planes = some_planes(per_class, lift.n_outputs, rng)
    y, weight = some_labels(n_rows, len(per_class), rng)
    rows = kernel.training_rows(binned, y, weight)
    ours = rows.terms(planes, 6.0, 0.02)
    theirs = objective.batch_terms(planes, 6.0, Phi, y, weight, 0.02)
    assert ours.weights_gradient.shape == planes.weights.shape
    assert_terms_equal(ours, theirs, Phi, weight)
    dense = kernel.NumpyRows(Phi, y, weight)
    expected = dense.class_scores(planes, 6.0)
    np.testing.assert_allclose(
        rows.class_scores(planes, 6.0),
        expected,
        rtol=0,
        atol=SCORES_BOUND * np.abs(expected).max(initial=1.0),
    )
    if n_rows:
        assert rows.cross_entropy(planes, 6.0) == pytest.approx(
            dense.cross_entropy(planes, 6.0), rel=SCORES_BOUND
        )


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_units_are_factors_on_the_steps(pairs, rng):
    lift = some_lift(rng, pairs=pairs)
    X = only_values_of(lift, some_table(300, rng))
    units = rng.uniform(0.1, 3.0, lift.n_outputs)
    Phi = rows_of_bins(lift, X) * units
    binned = replace(kernel.binned(lift, X), units=units)
    right, left = rng.standard_normal((lift.n_outputs, 3)), rng.standard_normal((4, 300))
    np.testing.assert_allclose(binned @ right, Phi @ right, atol=1e-11)
    np.testing.assert_allclose(binned[5:9] @ right[:, 0], Phi[5:9] @ right[:, 0], atol=1e-11)
    np.testing.assert_allclose(left @ binned, left @ Phi, atol=1e-11)
    every = np.zeros(300, dtype=int)
    np.testing.assert_allclose(binned.group_sums(every, left[0], 1)[0], left[0] @ Phi, atol=1e-11)
    planes = some_planes([1, 4, 2], lift.n_outputs, rng)
    y, weight = some_labels(300, 3, rng)
    theirs = objective.batch_terms(planes, 6.0, Phi, y, weight, 0.02)
    for rows in (kernel.training_rows(binned, y, weight), kernel.NumpyRows(binned, y, weight)):
        assert_terms_equal(rows.terms(planes, 6.0, 0.02), theirs, Phi, weight)


@pytest.mark.parametrize("n_parts", range(1, 14))
def test_any_number_of_parts_is_added_up(n_parts, rng):
    X = np.round(rng.standard_normal((90, n_parts)), 1)
    lift = fit_spline(X, np.ones(90), np.zeros(n_parts, dtype=int), 5)
    planes = some_planes([2, 1], lift.n_outputs, rng)
    y, weight = some_labels(90, 2, rng)
    ours = kernel.training_rows(kernel.binned(lift, X), y, weight).terms(planes, 6.0, 0.0)
    Phi = rows_of_bins(lift, X)
    theirs = objective.batch_terms(planes, 6.0, Phi, y, weight, 0.0)
    assert_terms_equal(ours, theirs, Phi, weight)


def test_gradients_are_the_slopes_of_the_objective(rng):
    lift = some_lift(rng, (0, 1, 2, 3), ((0, 3),), n_knots=4)
    X = only_values_of(lift, some_table(60, rng)[:, :4])
    planes = some_planes([2, 1, 3], lift.n_outputs, rng)
    y, weight = some_labels(60, 3, rng)
    Phi, binned = lift(X), kernel.binned(lift, X)

    def loss(vector):
        return objective.batch_terms(planes.with_vector(vector), 5.0, Phi, y, weight, 0.05).loss

    slopes = central_differences(loss, planes.as_vector())
    for rows in (kernel.training_rows(binned, y, weight), kernel.NumpyRows(binned, y, weight)):
        terms = rows.terms(planes, 5.0, 0.05)
        found = np.concatenate([terms.weights_gradient.ravel(), terms.biases_gradient])
        np.testing.assert_allclose(found, slopes, atol=1e-4)


@native_only
def test_any_number_of_threads_gives_the_same_terms_of_codes(rng, monkeypatch):
    X = rng.standard_normal((40_000, 9))
    lift = fit_spline(X, np.ones(len(X)), np.zeros(9, dtype=int), 16)
    planes = some_planes([2, 1, 3, 4], lift.n_outputs, rng)
    y, weight = some_labels(len(X), 4, rng)
    rows = kernel.training_rows(kernel.binned(lift, X), y, weight)
    found, scores, entropies = [], [], []
    for n_threads in (1, 2, 3, 8):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", str(n_threads))
        found.append(rows.terms(planes, 6.0, 0.02))
        scores.append(rows.class_scores(planes, 6.0))
        entropies.append(rows.cross_entropy(planes, 6.0))
    assert len(set(entropies)) == 1
    for other, S in zip(found[1:], scores[1:], strict=True):
        assert other.loss == found[0].loss
        assert np.array_equal(other.weights_gradient, found[0].weights_gradient)
        assert np.array_equal(other.biases_gradient, found[0].biases_gradient)
        assert np.array_equal(other.usage, found[0].usage)
        assert np.array_equal(S, scores[0])


FINGERPRINT = """
import hashlib, sys
import numpy as np
sys.path[:0] = {folders!r}
from test_spline import PAIRS, kernel, odd_rows, some_labels, some_lift, some_planes, some_table
from test_spline import some_model
digest = hashlib.sha256()
rng = np.random.default_rng(0)
for columns in ((0, 1, 2, 3), (0, 1, 2, 3, 4)):
    lift = some_lift(rng, columns, PAIRS["pairs"])
    binned = kernel.binned(lift, some_table(1500, rng)[:, columns])
    digest.update(binned.codes.tobytes())
    planes = some_planes([3, 1, 9], lift.n_outputs, rng)
    rows = kernel.training_rows(binned, *some_labels(1500, 3, rng))
    terms = rows.terms(planes, 6.0, 0.02)
    digest.update(terms.weights_gradient.tobytes() + terms.usage.tobytes())
    digest.update(np.float64(terms.loss).tobytes())
    digest.update(rows.class_scores(planes, 6.0).tobytes())
for n_members in (1, 3):
    model, X = some_model(rng, n_members), odd_rows(rng)
    asks = model.predict_proba, model.class_scores, model.plane_scores, model.responsibilities
    for ask in asks:
        digest.update(ask(X).tobytes())
    digest.update(model.scorer()(X[5]).tobytes())
    digest.update(model.scorer().explain(X[5]).contributions.tobytes())
print(kernel.simd, digest.hexdigest())
"""


@native_only
def test_every_cpu_level_gives_the_same_bits_of_codes():
    code = FINGERPRINT.format(folders=[os.path.dirname(__file__), str(TESTS)])
    found = {}
    for level in ("scalar", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "GEOMIX_SIMD": level},
            capture_output=True,
            text=True,
            check=True,
        )
        name, digest = done.stdout.split()
        found[name] = digest
    assert "scalar" in found
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("step_by_step", [False, True])
def test_descent_over_codes_ends_where_that_over_lifted_rows_does(step_by_step, rng):
    lift = some_lift(rng, (0, 1, 2, 3), ((0, 3),), n_knots=4)
    X = only_values_of(lift, some_table(400, rng)[:, :4])
    y = (np.nan_to_num(X[:, 0]) ** 2 + rng.standard_normal(400) > 1.0).astype(int)
    y[X[:, 3] == 2] = 2
    weight = rng.uniform(0.5, 2.0, 400)
    start = Planes(np.zeros((3, lift.n_outputs)), np.zeros(3), class_starts([1, 1, 1]))
    seen: list[float] = []
    told = (lambda planes, value: seen.append(value)) if step_by_step else None
    ends = []
    for matrix, watch in ((kernel.binned(lift, X), told), (lift(X), None)):
        rows = kernel.training_rows(matrix, y, weight)
        descent = kernel.Descent(start, 1.0, 0.0, np.full(3, 1e-3), 300, 1e-5, 1e-9, watch)
        ends.append(kernel.minimize(rows, descent))
    assert len(seen) == (len(ends[0].values) if step_by_step else 0)
    assert ends[0].values[-1] == pytest.approx(ends[1].values[-1], rel=1e-5)
    assert ends[0].values[-1] < 0.9 * ends[0].values[0]
    np.testing.assert_allclose(ends[0].planes.weights, ends[1].planes.weights, atol=0.02)


@pytest.mark.parametrize("init", ["kmeans", "logistic", "random"])
def test_first_planes_over_codes_are_those_over_lifted_rows(init, rng):
    from geomix.training.plane_counts import Clusters

    lift = some_lift(rng, (0, 1, 2, 3), ((0, 3),), n_knots=4)
    X = only_values_of(lift, some_table(300, rng)[:, :4])
    y, weight = some_labels(300, 3, rng)
    per_class = np.array([2, 1, 3])
    clusters = Clusters(rng.integers(9, size=300) % per_class[y], per_class, False)
    found = [
        initial_planes(
            Rows(matrix, y, weight), clusters, init, 6.0, 0.02, np.random.default_rng(1)
        )[0]
        for matrix in (kernel.binned(lift, X), lift(X))
    ]
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-3)
    np.testing.assert_allclose(found[0].biases, found[1].biases, atol=1e-3)


# --- models that answer ---

ANSWERS = ("predict_proba", "class_scores", "plane_scores", "responsibilities")
MEMBERS = pytest.mark.parametrize("n_members", fast_with_numpy([1, 3], [3]))


def model_over(lift, planes):
    labels = np.array([f"c{i}" for i in range(planes.n_classes)])
    names = tuple(f"x{j}" for j in range(lift.n_columns))
    return GeometricMixture(
        labels, names, FeatureMap(pass_through(lift.n_columns), lift), planes, 6.0, 1.3
    )


def some_model(rng, n_members=1, per_class=(2, 1, 5), pairs=PAIRS["pairs"]):
    lift = some_lift(rng, pairs=pairs)
    members = [some_planes(per_class, lift.n_outputs, rng) for _ in range(n_members)]
    return model_over(lift, ensemble(members) if n_members > 1 else members[0])


def odd_rows(rng):
    """Rows like those of training, and numbers and codes that no training row had."""
    X = some_table(300, rng)
    X[:, :3] += rng.standard_normal((300, 3))
    odd = [-1.0, 5.0, 400.0, 2.5, -0.5, 1e18, -1e300, 1e300, 2.0**63, np.inf, -np.inf, np.nan, -0.0]
    X[:100] = np.where(rng.random((100, 5)) < 0.5, rng.choice(odd, (100, 5)), X[:100])
    X[100], X[101], X[102] = 1e300, -1e300, np.nan
    return X


def reference(model):
    return NumpyPredictor(model.feature_map, model.planes, model.sharpness, model.temperature)


@MEMBERS
@pytest.mark.parametrize("per_class", [(1, 1), (2, 1, 5), (12, 12), (9, 40)])
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_native_predictions_of_a_spline_model_equal_numpy(n_members, per_class, pairs, rng):
    model, X = some_model(rng, n_members, per_class, pairs), odd_rows(rng)
    kinds = {type(part).__name__ for part in model.lift.parts}
    assert kinds == (
        {"CurvePart", "LevelPart", "PairPart"} if pairs else {"CurvePart", "LevelPart"}
    )
    for name in ANSWERS:
        ours, theirs = getattr(model, name)(X), getattr(reference(model), name)(X)
        assert np.isfinite(ours).all()
        scale = np.abs(theirs).max() if "scores" in name else 1.0
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)


@MEMBERS
def test_a_prediction_of_a_spline_model_depends_on_its_row_alone(n_members, rng, monkeypatch):
    model, X = some_model(rng, n_members), odd_rows(rng)
    for name in ANSWERS:
        ask = getattr(model, name)
        whole = ask(X)
        for size in (1, 2, 7, 8, 64, 100):
            parts = [ask(X[i : i + size]) for i in range(0, len(X), size)]
            assert np.array_equal(np.vstack(parts), whole)
        assert np.array_equal(ask(np.asfortranarray(X)), whole)
        assert np.array_equal(ask(X[::-1])[::-1], whole)
        assert np.array_equal(ask(np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]), whole)
        for n_threads in ("1", "2", "8") if kernel.is_native else ("1",):
            monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
            assert np.array_equal(ask(np.vstack([X] * 60)), np.vstack([whole] * 60))


@MEMBERS
def test_the_scorer_of_a_spline_model_equals_predict_proba_bit_for_bit(n_members, rng):
    model, X = some_model(rng, n_members), odd_rows(rng)
    score, P, labels = model.scorer(), model.predict_proba(X), model.predict(X)
    Z, A = model.plane_scores(X), model.responsibilities(X)
    for row, p, z, a, label in zip(X, P, Z, A, labels, strict=True):
        assert np.array_equal(score(row), p)
        assert np.array_equal(score(row.tolist()), p)
        assert score.predict(row) == label
        told = score.explain(row)
        code = model.classes.tolist().index(label)
        first, end = model.planes.class_start[code : code + 2]
        assert (told.label, told.probability) == (label, p[code])
        assert (told.plane, told.score) == (a[first:end].argmax(), z[first + told.plane])


@MEMBERS
def test_what_columns_add_sums_to_the_score_of_the_responsible_plane(n_members, rng):
    model, X = some_model(rng, n_members), odd_rows(rng)
    for score in (model.scorer(), NumpyScorer(reference(model), tuple(model.classes), None)):
        for row in X:
            told = score.explain(row)
            code = model.classes.tolist().index(told.label)
            bias = model.planes.biases[model.planes.class_start[code] + told.plane]
            assert told.contributions.shape == (5,)
            assert told.contributions.sum() + bias == pytest.approx(told.score, abs=1e-12)


def test_a_column_adds_its_own_tables_and_half_of_its_pairs(rng):
    """Against phi of each part: pairs of two numbers, of a category and a number, of one twice."""
    model, X = some_model(rng, per_class=(1, 1)), odd_rows(rng)
    for row in X[:120]:
        told = model.scorer().explain(row)
        weights = model.planes.weights[model.classes.tolist().index(told.label)]
        expected, starts = np.zeros(5), model.lift.step_start
        for part, start in zip(model.lift.parts, starts[:-1], strict=True):
            value = part.phi(row[None]) @ weights[start : start + part.n_steps]
            columns = [part.column] * 2 if hasattr(part, "column") else part.columns
            for column in columns:
                expected[column] += value[0] / 2
        np.testing.assert_allclose(told.contributions, expected, rtol=0, atol=1e-12)


def test_predictions_use_exact_numbers_and_not_their_bins(rng):
    """Against np.interp, at far more values than there are bins."""
    X = rng.standard_normal((3000, 1))
    lift = fit_spline(X, np.ones(3000), np.array([0]), 128)
    (curve,) = lift.parts
    planes = some_planes([1, 2], lift.n_outputs, rng)
    x = rng.uniform(-5.0, 5.0, 2000)
    Z = model_over(lift, planes).plane_scores(x[:, None])
    for z, steps, bias in zip(Z.T, planes.weights, planes.biases, strict=True):
        heights = np.concatenate([[0.0], np.cumsum(steps)])
        expected = np.interp(x, curve.knots, heights) - curve.mean @ steps + bias
        np.testing.assert_allclose(z, expected, atol=1e-12)


@pytest.mark.parametrize("knots", [
    [-1e300, 1e300], [-1.7e308, 1.7e308], [-1.7e308, -1.0, 5e-324, 1e-323, 1.7e308],
    [0.0, 5e-324], [1.0, np.nextafter(1.0, 2.0), 1e300], [-1e308, 0.0, 1e308],
])  # fmt: skip
def test_any_knots_give_finite_probabilities_for_every_finite_row(knots, rng):
    knots = np.array(knots)
    curve = CurvePart(0, knots, knots, False, np.zeros(len(knots) - 1))
    lift = SplineLift((curve,), 1)
    model = model_over(lift, some_planes([2, 1], lift.n_outputs, rng))
    x = np.array([0.0, 1.0, -1.0, 1e300, -1e300, 1.79e308, -1.79e308, 5e-324, np.nan])
    X = np.concatenate([x, knots, knots / 2.0])[:, None]
    Z = model.plane_scores(X)
    assert np.isfinite(Z).all()
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_allclose(Z, reference(model).plane_scores(X), rtol=1e-12, atol=1e-14)
    heights = np.vstack([np.zeros(3), np.cumsum(model.planes.weights.T, axis=0)])
    at_knots = Z[len(x) : len(x) + len(knots)] - model.planes.biases
    np.testing.assert_allclose(at_knots, heights, rtol=1e-12, atol=1e-14)


def test_a_missing_or_unknown_cell_adds_nothing_where_training_had_none(rng):
    curve = CurvePart(0, np.array([0.0, 1.0]), np.array([0.0, 1.0]), False, np.array([0.3]))
    levels = LevelPart(1, 3, False, np.full(3, 0.2))
    lift = SplineLift((curve, levels), 2)
    model = model_over(lift, some_planes([1, 2], lift.n_outputs, rng))
    for code in (np.nan, -1.0, 3.0, 1e300, -np.inf, np.inf):
        assert np.array_equal(model.plane_scores([[np.nan, code]])[0], model.planes.biases)


def test_a_lift_without_parts_predicts_from_the_biases(rng):
    model = model_over(SplineLift((), 3), some_planes([1, 2], 0, rng))
    assert np.array_equal(model.plane_scores(np.ones((2, 3))), [model.planes.biases] * 2)
    assert np.array_equal(model.scorer()([1.0] * 3), model.predict_proba(np.ones((1, 3)))[0])
    assert np.array_equal(model.scorer().explain([1.0] * 3).contributions, np.zeros(3))


def test_sparse_rows_for_a_spline_model_are_refused_with_a_reason(rng):
    with pytest.raises(TypeError, match="pass dense rows"):
        some_model(rng).predict_proba(scipy.sparse.csr_array(np.ones((3, 5))))


@MEMBERS
def test_a_pickled_spline_model_predicts_the_same_bits(n_members, rng):
    model, X = some_model(rng, n_members), odd_rows(rng)
    expected = model.predict_proba(X)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), expected)
    assert np.array_equal(again.scorer()(X[7]), expected[7])


def test_the_scorer_takes_raw_cells_of_a_table_with_categories(rng):
    n = 200
    size, colour = rng.standard_normal(n), rng.choice(["red", "green", "blue"], n)
    y = (size > 0) ^ (colour == "red")
    X = np.column_stack([size.astype(object), colour.astype(object)])
    X[:9, 0], X[5:15, 1] = None, None
    settings = {"lift": "spline", "preset": "accurate", "n_members": 2, "random_state": 0}
    model = classifier(2, l2=1e-3, shrink_to_mean=0.0, **settings).fit(X, y).model_
    ask = np.array([[0.3, "red"], [None, "blue"], [1.0, None], [1e300, "violet"]], dtype=object)
    score, P = model.scorer(), model.predict_proba(ask)
    for row, p in zip(ask, P, strict=True):
        assert np.array_equal(score(row), p)
        assert np.array_equal(score(dict(zip(model.columns, row, strict=True))), p)
        told = score.explain(row)
        code = model.classes.tolist().index(told.label)
        bias = model.planes.biases[model.planes.class_start[code] + told.plane]
        assert told.contributions.sum() + bias == pytest.approx(told.score, abs=1e-12)


# --- the door ---


@native_only
def test_a_wrong_lift_of_a_model_is_refused_at_the_door(rng):
    from geomix import _native

    lift, mean, knots = _native.SplineLift(), np.zeros(2), np.array([0.0, 1.0, 2.0])
    for wrong in (
        lambda: lift.add_curve(-1, knots, False, mean),
        lambda: lift.add_curve(0, knots[:1], False, mean[:0]),
        lambda: lift.add_curve(0, knots[::-1].copy(), False, mean),
        lambda: lift.add_curve(0, np.array([0.0, 0.0, 1.0]), False, mean),
        lambda: lift.add_curve(0, np.array([0.0, np.nan, 1.0]), False, mean),
        lambda: lift.add_curve(0, np.array([0.0, 1.0, np.inf]), False, mean),
        lambda: lift.add_curve(0, knots, True, mean),
        lambda: lift.add_levels(-1, 2, False, mean),
        lambda: lift.add_levels(0, 3, False, mean),
        lambda: lift.add_levels(0, 2**62, False, mean),
        lambda: lift.add_levels(0, -1, False, mean[:0]),
        lambda: lift.add_pair(0, -1, None, None, 3, 2, mean),
        lambda: lift.add_pair(0, 1, None, None, 2, 2, mean),
        lambda: lift.add_pair(0, 1, knots, None, 3, 2, mean),
        lambda: lift.add_pair(0, 1, knots[1::-1].copy(), None, 4, 2, np.zeros(3)),
        lambda: lift.add_pair(0, 1, None, None, 2**40, 2**40, mean),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    lift.add_curve(3, knots, False, mean)
    weights, biases, start = np.zeros((4, 2)), np.zeros(4), np.array([0, 2, 4])
    _native.Predictor(lift, weights, biases, start, 2, 4, 6.0, 1.0)
    for wrong in (
        lambda: _native.Predictor(lift, weights, biases, start, 1, 3, 6.0, 1.0),
        lambda: _native.Predictor(lift, weights[:, :1].copy(), biases, start, 1, 4, 6.0, 1.0),
        lambda: _native.Predictor(lift, weights, biases, start, 3, 4, 6.0, 1.0),
        lambda: _native.Predictor(lift, weights, biases, start, 0, 4, 6.0, 1.0),
        lambda: some_model(rng).predict_proba(np.zeros((3, 4))),
        lambda: some_model(rng).scorer()(np.zeros(4)),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()


@native_only
def test_wrong_codes_are_refused_at_the_door(rng):
    lift = some_lift(rng, (0, 1, 2, 3), ((0, 3),))
    codes = kernel.binned(lift, some_table(20, rng)[:, :4]).codes
    y, weight = some_labels(20, 2, rng)
    planes = some_planes([1, 2], lift.n_outputs, rng)
    beyond = codes.copy()
    beyond[3, 1] = lift.parts[1].n_bins
    wrong = [
        (beyond, y, weight),
        (codes[:, :-1], y, weight),
        (codes[0], y, weight),
        (codes[:5], y, weight),
        (codes, y[:5], weight),
        (codes, y, weight[:5]),
        (codes, y - 1, weight),
        (codes.astype(np.int64), y, weight),
        (codes.astype(np.int8), y, weight),
        (codes.astype(np.float64), y, weight),
        (codes.astype(np.uint32), y, weight),
    ]
    for bad, labels, weights in wrong:
        with pytest.raises((TypeError, ValueError)):
            kernel.training_rows(Binned(bad, lift), labels, weights)
    rows = kernel.training_rows(Binned(codes, lift), y, weight)
    other = some_planes([1, 2], lift.n_outputs + 1, rng)
    for ask in (rows.cross_entropy, rows.class_scores):
        with pytest.raises(ValueError, match="columns"):
            ask(other, 6.0)
    with pytest.raises(ValueError, match="columns"):
        rows.terms(other, 6.0, 0.0)
    with pytest.raises(ValueError, match="class"):
        kernel.training_rows(Binned(codes, lift), y + 1, weight).terms(planes, 6.0, 0.0)
    both = [kernel.training_rows(Binned(c, lift), y, weight) for c in (codes, codes.astype("u2"))]
    narrow, wide = (each.terms(planes, 6.0, 0.0) for each in both)
    assert np.array_equal(narrow.weights_gradient, wide.weights_gradient)


@native_only
def test_wrong_parts_are_refused_at_the_door():
    from geomix import _native

    parts, mean = _native.SplineParts(), np.zeros(2)
    at, part = np.array([0, 1]), np.zeros(2)
    for wrong in (
        lambda: parts.add_curve(at + 1, part, False, mean),
        lambda: parts.add_curve(at - 1, part, False, mean),
        lambda: parts.add_curve(at, part[:1], False, mean),
        lambda: parts.add_curve(at, part, True, mean),
        lambda: parts.add_curve(at, part, False, mean[:0]),
        lambda: parts.add_curve(at.astype(float), part, False, mean),
        lambda: parts.add_levels(3, False, mean),
        lambda: parts.add_levels(-1, True, mean[:0]),
        lambda: parts.add_levels(2**40, False, mean),
        lambda: parts.add_pair(2, 2, True, True, mean),
        lambda: parts.add_pair(0, 5, True, True, mean),
        lambda: parts.add_pair(2**33, 2**33, True, True, mean),
        lambda: parts.with_units(mean),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    coder, edges = _native.SplineCoder(), np.array([0.0, 1.0])
    for wrong in (
        lambda: coder.add_number(1, 0, edges, 3, 1),
        lambda: coder.add_number(0, -1, edges, 3, 1),
        lambda: coder.add_number(0, 0, edges[::-1].copy(), 3, 1),
        lambda: coder.add_number(0, 0, np.array([0.0, np.nan]), 3, 1),
        lambda: coder.add_number(0, 0, np.array([np.nan]), 3, 1),
        lambda: coder.add_number(0, 0, edges, -3, 1),
        lambda: coder.add_number(0, 0, edges, 3, 0),
        lambda: coder.add_category(0, 0, 2**40, 0, 0, 1),
        lambda: coder.add_category(0, 0, 4, -1, 0, 1),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    coder.add_number(0, 4, edges, 300, 1)
    with pytest.raises(ValueError, match="columns"):
        coder.codes(np.zeros((3, 4)), True)
    with pytest.raises(ValueError, match="bins"):
        coder.codes(np.zeros((3, 5)), False)
    with pytest.raises(TypeError):
        coder.codes(np.zeros((3, 5), dtype=int), True)
