"""The native kernel is a second writing of the NumPy one: same numbers, to stated bounds."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from kernels import fast_with_numpy
from places import TESTS

from geomix import GeometricMixture
from geomix.core import clustering, kernel, objective, row_span
from geomix.core.calibration import calibrate
from geomix.core.descent import Descent, descend
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import FourierLift, IdentityLift, Standardize, draw_fourier, pass_through
from geomix.core.pair_gains import pair_gains
from geomix.core.planes import Planes, class_starts, ensemble
from geomix.core.predictors import NumpyPredictor, NumpyScorer
from geomix.core.row_sums import NumpyRows
from geomix.core.spline import fit_spline

pytestmark = pytest.mark.kernel

native_only = pytest.mark.skipif(not kernel.is_native, reason="the NumPy kernel is in use")

PER_CLASS = {"one": [1, 1, 1], "two classes": [3, 3], "uneven": [1, 4, 2, 9], "wide": [4] * 10}
LIFTS = ["linear", "rotated", "fourier", "rotated fourier", "dropped columns"]
LIFTS += ["spline", *(f"{kind}, committee" for kind in ("linear", "rotated fourier", "spline"))]


def some_planes(per_class, n_inputs, rng, size=1.0):
    class_start = class_starts(per_class)
    weights = size * rng.standard_normal((class_start[-1], n_inputs))
    return Planes(weights, rng.standard_normal(class_start[-1]), class_start)


def some_rows(n_rows, n_inputs, n_classes, rng):
    X = rng.standard_normal((n_rows, n_inputs))
    return X, rng.integers(n_classes, size=n_rows), rng.uniform(0.5, 2.0, n_rows)


def some_model(kind, n_columns=13, per_class=(2, 1, 5), seed=0):
    rng = np.random.default_rng(seed)
    kept = np.arange(n_columns)
    n_members = 3 if "committee" in kind else 1
    if kind == "dropped columns":
        kept = np.delete(kept, [0, 4])
    mean, scale = rng.standard_normal(len(kept)), rng.uniform(0.5, 3.0, len(kept))
    rotation = None
    if "rotated" in kind:
        rotation = np.linalg.qr(rng.standard_normal((len(kept), 7)))[0].T.copy()
    standardize = Standardize(kept, mean, scale, rotation, n_columns)
    lift = IdentityLift(standardize.n_outputs)
    if "fourier" in kind:
        lift = draw_fourier(standardize.n_outputs, 21, 0.3, True, rng)
    if "spline" in kind:
        standardize = pass_through(n_columns)
        X = 2.0 * rng.standard_normal((500, n_columns))
        X[:, 3:5] = np.round(X[:, 3:5])
        pairs = ((0, 1), (5, 4), (2, 2))
        lift = fit_spline(X, np.ones(500), np.zeros(n_columns, dtype=int), 12, pairs)
    members = [some_planes(per_class, lift.n_outputs, rng) for _ in range(n_members)]
    planes = ensemble(members) if n_members > 1 else members[0]
    labels = np.array([f"c{i}" for i in range(len(per_class))])
    columns = tuple(f"x{j}" for j in range(n_columns))
    return GeometricMixture(labels, columns, FeatureMap(standardize, lift), planes, 6.0, 1.3)


def reference(model):
    return NumpyPredictor(model.feature_map, model.planes, model.sharpness, model.temperature)


# --- training terms ---


@pytest.mark.parametrize("per_class", PER_CLASS.values(), ids=PER_CLASS)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000, 2500])
@pytest.mark.parametrize("n_inputs", [1, 2, 30, 100])
def test_native_terms_equal_numpy(per_class, n_rows, n_inputs):
    rng = np.random.default_rng(n_rows + n_inputs)
    planes = some_planes(per_class, n_inputs, rng)
    X, y, weight = some_rows(n_rows, n_inputs, len(per_class), rng)
    ours = kernel.batch_terms(planes, 6.0, X, y, weight, 0.02)
    theirs = objective.batch_terms(planes, 6.0, X, y, weight, 0.02)
    assert ours.row_weight == pytest.approx(theirs.row_weight, rel=1e-12)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-12)
    for name in ("weights_gradient", "biases_gradient", "usage"):
        one, other = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * max(n_rows, 1))
    if n_rows:
        assert kernel.cross_entropy(planes, 6.0, X, y, weight) == pytest.approx(
            objective.cross_entropy(planes, 6.0, X, y, weight), rel=1e-12
        )


def test_terms_in_float32_stay_within_their_bound():
    rng = np.random.default_rng(0)
    planes = some_planes([4, 3, 5], 54, rng)
    X, y, weight = some_rows(3000, 54, 3, rng)
    ours = kernel.batch_terms(planes, 6.0, X.astype(np.float32), y, weight, 0.02)
    theirs = objective.batch_terms(planes, 6.0, X, y, weight, 0.02)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    scale = np.abs(theirs.weights_gradient).max()
    np.testing.assert_allclose(ours.weights_gradient, theirs.weights_gradient, atol=1e-5 * scale)
    np.testing.assert_allclose(ours.usage, theirs.usage, rtol=1e-4, atol=1e-3)


@native_only
def test_slopes_too_small_for_a_normal_float32_count_as_zero():
    """Many CPUs take a hundred cycles for each, and p a is often one: 2e-9 times 2e-35 here."""
    planes = Planes(np.zeros((3, 1)), np.array([0.0, -8.0, 20.0]), class_starts([2, 1]))
    X, y, weight = np.ones((40, 1)), np.ones(40, dtype=int), np.ones(40)
    single = kernel.batch_terms(planes, 10.0, X.astype(np.float32), y, weight, 0.0)
    double = kernel.batch_terms(planes, 10.0, X, y, weight, 0.0)
    assert single.weights_gradient[1, 0] == 0.0
    assert double.weights_gradient[1, 0] > 0.0
    assert single.weights_gradient[0, 0] == pytest.approx(double.weights_gradient[0, 0], rel=1e-5)


@native_only
@pytest.mark.parametrize("n_threads", ["1", "3"])
def test_training_leaves_the_arithmetic_of_its_thread_as_it_was(monkeypatch, n_threads):
    monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
    rng = np.random.default_rng(0)
    planes, rows = some_planes([3, 3], 40, rng), some_rows(5000, 40, 2, rng)
    descent = Descent(planes, 4.0, 0.0, np.full(6, 1e-3), 3, tol=0.0, value_tol=0.0)
    kernel.minimize(kernel.training_rows(*rows), descent)
    kernel.batch_terms(planes, 4.0, *rows, 0.0)
    one_epoch(planes, *rows)
    assert (np.array([5e-324, 1e-310]) * 1.0 > 0.0).all()


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e3])
def test_huge_scores_leave_the_terms_finite_and_equal(size):
    rng = np.random.default_rng(3)
    planes = some_planes([3, 2], 5, rng, size)
    X, y, weight = some_rows(50, 5, 2, rng)
    for sharpness in (1e-6, 6.0, 1e6):
        ours = kernel.batch_terms(planes, sharpness, 10.0 * X, y, weight, 0.0)
        theirs = objective.batch_terms(planes, sharpness, 10.0 * X, y, weight, 0.0)
        assert np.isfinite(ours.weights_gradient).all()
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-10)
        np.testing.assert_allclose(ours.weights_gradient, theirs.weights_gradient, atol=1e-8)


@native_only
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_number_of_threads_gives_the_same_terms(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    planes = some_planes([4] * 7, 54, rng)
    X, y, weight = some_rows(9000, 54, 7, rng)
    rows = kernel.training_rows(X.astype(dtype), y, weight)
    found = []
    for n_threads in (1, 2, 3, 8):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", str(n_threads))
        found.append(rows.terms(planes, 6.0, 0.02))
    for other in found[1:]:
        assert other.loss == found[0].loss
        assert np.array_equal(other.weights_gradient, found[0].weights_gradient)
        assert np.array_equal(other.usage, found[0].usage)


@native_only
def test_any_number_of_threads_gives_the_same_epoch_of_adam(monkeypatch):
    rng = np.random.default_rng(1)
    planes = some_planes([4] * 7, 54, rng)
    X, y, weight = some_rows(5000, 54, 7, rng)
    found = []
    for n_threads in (1, 2, 3):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", str(n_threads))
        found.append(one_epoch(planes, X.astype(np.float32), y, weight, batch_size=700)[0])
    for other in found[1:]:
        assert np.array_equal(other.weights, found[0].weights)


def one_epoch(planes, X, y, weight, **changed):
    settings = {
        "sharpness": 5.0,
        "label_smoothing": 0.02,
        "batch_size": 64,
        "learning_rate": 0.01,
        "l2": 1e-3,
        "usage_beta": 0.5,
        "usage_delta": 0.01,
        "usage_decay": 0.9,
        "clip_norm": 0.5,
        "max_weight_norm": 2.0,
    }
    state = kernel.AdamState(
        np.zeros(planes.as_vector().size), np.zeros(planes.as_vector().size), 0
    )
    usage = np.repeat(1.0 / planes.per_class, planes.per_class)
    order = np.random.default_rng(5).permutation(len(y))
    return kernel.adam_epoch(X, y, weight, order, planes, state, usage, **{**settings, **changed})


# --- prediction ---


@pytest.mark.parametrize("kind", LIFTS)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 1000])
def test_native_predictions_equal_numpy(kind, n_rows):
    model = some_model(kind)
    X = 2.0 * np.random.default_rng(1).standard_normal((n_rows, model.n_features))
    numpy = reference(model)
    for name in ("plane_scores", "class_scores"):
        ours, theirs = getattr(model, name)(X), getattr(numpy, name)(X)
        scale = np.abs(theirs).max(initial=1.0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)
    for name in ("predict_proba", "responsibilities"):
        np.testing.assert_allclose(getattr(model, name)(X), getattr(numpy, name)(X), atol=1e-12)


@pytest.mark.parametrize(
    "kind", fast_with_numpy(LIFTS, [kind for kind in LIFTS if "spline" not in kind])
)
def test_a_prediction_depends_on_its_row_alone(kind, monkeypatch):
    model = some_model(kind)
    X = 2.0 * np.random.default_rng(2).standard_normal((3000, model.n_features))
    whole = model.predict_proba(X)
    for size in (1, 2, 3, 7, 64, 1000):
        parts = [model.predict_proba(X[i : i + size]) for i in range(0, 1500, size)]
        assert np.array_equal(np.vstack(parts), whole[: len(np.vstack(parts))])
    assert np.array_equal(model.predict_proba(np.asfortranarray(X)), whole)
    assert np.array_equal(model.predict_proba(X[::-1])[::-1], whole)
    for n_threads in ("1", "2", "8"):
        monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
        assert np.array_equal(model.predict_proba(np.vstack([X] * 40))[: len(X)], whole)


def test_any_layout_of_the_rows_gives_the_same_bits():
    model = some_model("linear")
    X = np.random.default_rng(2).standard_normal((50, model.n_features))
    expected = model.predict_proba(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    every_other = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    bytes_off = np.empty(X.nbytes + 1, dtype=np.uint8)[1:]
    misaligned = bytes_off.view(np.float64).reshape(X.shape)
    misaligned[:] = X
    packed = np.empty(len(X), dtype=[("a", "u1"), ("x", "f8", X.shape[1])])
    packed["x"] = X
    layouts = [read_only, every_other, misaligned, packed["x"], X.astype(">f8"), X.tolist()]
    for layout in layouts:
        assert np.array_equal(model.predict_proba(layout), expected)
    assert np.array_equal(
        model.predict_proba(X.astype(np.float32)),
        model.predict_proba(X.astype(np.float32).astype(np.float64)),
    )


@pytest.mark.parametrize("kind", LIFTS)
@pytest.mark.parametrize("size", [1e-300, 1e4, 1e150, 1e300])
def test_every_finite_row_has_finite_probabilities(kind, size):
    model = some_model(kind)
    P = model.predict_proba(size * np.random.default_rng(0).standard_normal((64, 13)))
    assert np.isfinite(P).all()
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=4 * 3 * 2.3e-16)


def test_one_plane_per_class_ignores_the_sharpness_to_the_bit():
    model = some_model("linear", per_class=(1, 1, 1))
    X = np.random.default_rng(0).standard_normal((40, 13))
    from dataclasses import replace

    answers = [replace(model, sharpness=k).predict_proba(X) for k in (1e-6, 1.0, 1e6)]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


# --- the row scorer ---


@pytest.mark.parametrize(
    "kind", fast_with_numpy(LIFTS, [kind for kind in LIFTS if "spline" not in kind])
)
def test_the_scorer_equals_predict_proba_bit_for_bit(kind):
    model = some_model(kind)
    X = 2.0 * np.random.default_rng(4).standard_normal((300, 13))
    X[0], X[1], X[2] = 1e300, -1e300, 0.0
    score, P, labels = model.scorer(), model.predict_proba(X), model.predict(X)
    out = np.empty(P.shape[1])
    for row, p, label in zip(X, P, labels, strict=True):
        assert np.array_equal(score(row), p)
        assert np.array_equal(score(row.tolist()), p)
        assert score(tuple(row), out=out) is out
        assert np.array_equal(out, p)
        assert score.predict(row) == label
    f32 = X[3:].astype(np.float32)
    assert np.array_equal([score(row) for row in f32], model.predict_proba(f32))
    wide = np.repeat(X, 2, axis=1)
    assert np.array_equal([score(row[::2]) for row in wide], P)
    assert np.array_equal([score(row[::-1]) for row in X[:, ::-1].copy()], P)


@pytest.mark.parametrize("n_frequencies", [1, 8, 21, 64, 70, 130, 300])
@pytest.mark.parametrize("n_planes", [1, 3, 12, 35])
def test_short_numbers_score_one_row_like_long_ones(n_frequencies, n_planes):
    rng = np.random.default_rng(n_frequencies)
    short_lift = draw_fourier(5, n_frequencies, 0.3, True, rng)
    nudged = FourierLift(np.nextafter(short_lift.frequencies, 9.0), 0.3)
    for lift in (short_lift, nudged):  # held as halves, and whole
        planes = some_planes([n_planes, 2], lift.n_outputs, rng)
        standardize = Standardize(np.arange(5), np.zeros(5), np.ones(5), None, 5)
        model = GeometricMixture(
            np.arange(2), tuple("abcde"), FeatureMap(standardize, lift), planes, 6.0
        )
        X = rng.standard_normal((20, 5))
        answers = np.array([model.scorer()(row) for row in X])
        assert np.array_equal(answers, model.predict_proba(X))
        np.testing.assert_allclose(answers, reference(model).predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("kind", LIFTS)
def test_the_scorers_explanation_adds_up(kind):
    model = some_model(kind)
    x = np.random.default_rng(4).standard_normal(13)
    scorers = [model.scorer()]
    if kernel.is_native:
        weights = model.planes.weights
        if model.standardize.rotation is not None and model.lift.kind == "linear":
            weights = weights @ model.standardize.rotation
        linear = weights if model.lift.kind == "linear" else None
        scorers.append(NumpyScorer(reference(model), tuple(model.classes), linear))
    for score in scorers:
        told = score.explain(x)
        code = int(model.predict_proba(x[None])[0].argmax())
        plane = model.planes.class_start[code] + told.plane
        assert told.label == model.classes[code]
        assert told.probability == pytest.approx(model.predict_proba(x[None])[0, code])
        assert told.score == pytest.approx(model.plane_scores(x[None])[0, plane])
        if model.lift.kind != "fourier":
            assert told.contributions.shape == (13,)
            whole = told.contributions.sum() + model.planes.biases[plane]
            assert whole == pytest.approx(told.score, abs=1e-12)
        else:
            assert told.contributions is None


@pytest.mark.parametrize("bad", [
    np.zeros(12), np.zeros((1, 13)), [0.0] * 14, (), np.zeros((13, 1)), np.array(1.0),
])  # fmt: skip
def test_a_row_of_the_wrong_shape_is_refused(bad):
    score = some_model("linear").scorer()
    for ask in (score, score.predict, score.explain):
        with pytest.raises(ValueError, match="row"):
            ask(bad)


@pytest.mark.parametrize("bad", [
    None, "x" * 13, 1.0, {1: 2}, ["a"] * 13, [None] * 13, np.zeros(13, dtype=complex),
    np.array(["a"] * 13), np.array([None] * 13), np.zeros(13, dtype="M8[s]"),
    np.ma.masked_array(np.zeros(13)),
])  # fmt: skip
def test_a_row_of_the_wrong_type_is_refused(bad):
    score = some_model("linear").scorer()
    for ask in (score, score.predict, score.explain):
        with pytest.raises((TypeError, ValueError)):
            ask(bad)


def test_a_wrong_call_of_the_scorer_is_refused():
    score, x = some_model("linear").scorer(), np.zeros(13)
    for wrong in (lambda: score(), lambda: score(x, x), lambda: score(x, into=x)):
        with pytest.raises(TypeError):
            wrong()
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for out in (np.zeros(4), np.zeros((3, 1)), np.zeros(6)[::2], frozen):
        with pytest.raises(ValueError, match="out"):
            score(x, out=out)
    for out in ([0.0] * 3, np.zeros(3, dtype=np.float32)):
        with pytest.raises(TypeError, match="out"):
            score(x, out=out)


def test_threads_share_a_scorer_and_get_the_right_rows():
    """Two threads for GEOMIX_SOAK_SECONDS: a moment by default, ten seconds with `make soak`."""
    model = some_model("fourier")
    X = np.random.default_rng(0).standard_normal((500, 13))
    P, score = model.predict_proba(X), model.scorer()
    until = time.monotonic() + float(os.environ.get("GEOMIX_SOAK_SECONDS", "1.5"))
    n_scored, wrong = [0, 0], []

    def ask(thread):
        while n_scored[thread] == 0 or time.monotonic() < until:
            wrong.extend(i for i in range(len(X)) if not np.array_equal(score(X[i]), P[i]))
            n_scored[thread] += len(X)

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{sum(n_scored):,} rows scored by two threads, {len(wrong)} of them wrong")
    assert min(n_scored) > 0
    assert wrong == []


def test_eight_threads_predict_the_bits_of_one():
    model = some_model("fourier")
    X = np.random.default_rng(0).standard_normal((4000, 13))
    expected = model.predict_proba(X)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model.predict_proba, [X] * 24))
    assert all(np.array_equal(one, expected) for one in found)


def test_a_wish_for_a_million_threads_changes_no_bit(monkeypatch):
    model = some_model("fourier")
    X = np.random.default_rng(0).standard_normal((30_000, 13))
    expected = model.predict_proba(X)
    monkeypatch.setenv("GEOMIX_NUM_THREADS", "1000000")
    assert np.array_equal(model.predict_proba(X), expected)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("cc") is None, reason="needs a compiler for x86"
)
def test_denormals_that_another_library_switched_off_change_no_bit(tmp_path, monkeypatch):
    """As after loading a library that was built with -ffast-math."""
    source, library = tmp_path / "flush.c", tmp_path / "flush.so"
    source.write_text(
        "#include <xmmintrin.h>\n"
        "unsigned swap(unsigned to) { unsigned old = _mm_getcsr(); _mm_setcsr(to); return old; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    swap = ctypes.CDLL(str(library)).swap
    monkeypatch.setenv("GEOMIX_NUM_THREADS", "1")  # the setting is that of a thread
    X = np.random.default_rng(0).standard_normal((500, 13))
    X[::7, 3] = 5e-310
    for kind in ("linear", "fourier", "spline"):
        model = some_model(kind)
        expected = model.predict_proba(X)
        usual = swap(0x9FC0)  # results and operands below the smallest normal number are zero
        try:
            found = model.predict_proba(X)
        finally:
            swap(usual)
        assert np.array_equal(found, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_predicts_like_its_parent(monkeypatch):
    monkeypatch.setenv("GEOMIX_NUM_THREADS", "2")
    model = some_model("fourier")
    X = np.random.default_rng(0).standard_normal((30000, 13))
    expected = model.predict_proba(X)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(model.predict_proba(X), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- levels and kernels in processes of their own ---

FINGERPRINT = """
import hashlib, sys
import numpy as np
import scipy.sparse
from geomix.arrays import CenteredSparse
from geomix.core.descent import Descent
sys.path[:0] = {folders!r}
from test_native import LIFTS, kernel, one_epoch, some_model, some_planes, some_rows
digest = hashlib.sha256()
rng = np.random.default_rng(0)
X = 3 * rng.standard_normal((200, 13))
X[0] = 1e300
for kind in LIFTS:
    model = some_model(kind)
    asks = model.predict_proba, model.class_scores, model.plane_scores, model.responsibilities
    for ask in asks:
        digest.update(ask(X).tobytes())
    digest.update(model.scorer()(X[5]).tobytes())
for kind in ("fourier", "rotated fourier, committee"):
    model = some_model(kind).with_precision("float32")
    for ask in (model.predict_proba, model.plane_scores):
        digest.update(ask(X).tobytes())
    digest.update(model.scorer()(X[5]).tobytes())
planes = some_planes([3, 1, 4], 13, rng)
X, y, weight = some_rows(1500, 13, 3, rng)
for dtype in (np.float64, np.float32):
    terms = kernel.batch_terms(planes, 6.0, X.astype(dtype), y, weight, 0.02)
    digest.update(terms.weights_gradient.tobytes() + terms.usage.tobytes())
    digest.update(np.float64(terms.loss).tobytes())
    digest.update(one_epoch(planes, X.astype(dtype), y, weight)[0].weights.tobytes())
csr = scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
for kind in ("linear", "dropped columns"):
    digest.update(some_model(kind).predict_proba(csr).tobytes())
sparse = CenteredSparse(csr, rng.standard_normal(13))
terms = kernel.batch_terms(planes, 6.0, sparse, y, weight, 0.02)
digest.update(terms.weights_gradient.tobytes() + terms.usage.tobytes())
digest.update(np.float64(terms.loss).tobytes())
digest.update(one_epoch(planes, sparse, y, weight)[0].weights.tobytes())
planes = some_planes([3, 1, 4], 600, rng)
rows = kernel.training_rows(*some_rows(300, 600, 3, rng))
descent = Descent(planes, 6.0, 0.0, np.full(8, 1e-2), 14, tol=0.0, value_tol=0.0)
digest.update(kernel.minimize(rows, descent).planes.as_vector().tobytes())
print(kernel.simd, digest.hexdigest())
"""


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@native_only
def test_every_cpu_level_gives_the_same_bits():
    code = FINGERPRINT.format(folders=[os.path.dirname(__file__), str(TESTS)])
    found = dict(run_python(code, GEOMIX_SIMD=level) for level in ("scalar", "avx2", "avx512"))
    assert "scalar" in found
    assert len(set(found.values())) == 1


@native_only
def test_a_multiply_add_is_rounded_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    planes = some_planes([2, 1], 2, rng)
    planes = Planes(planes.weights, np.zeros(3), planes.class_start)
    model = GeometricMixture(
        np.arange(2), ("a", "b"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0
    )
    Z = model.plane_scores(X)
    for x, z in zip(X, Z, strict=True):
        for w, ours in zip(planes.weights, z, strict=True):
            exact = Fraction(w[1]) * Fraction(x[1]) + Fraction(float(w[0] * x[0]))
            assert ours == float(exact)
    assert not np.array_equal(Z, X[:, :1] * planes.weights[:, 0] + X[:, 1:] * planes.weights[:, 1])


@native_only
def test_the_numpy_kernel_can_be_chosen():
    code = """
import geomix.core.kernel, numpy as np
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
assert not geomix.core.kernel.is_native and geomix.core.kernel.simd == ""
clf = geomix.GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y)
score = clf.model_.scorer()
assert np.array_equal(score(X[3]), clf.predict_proba(X)[3])
print(clf.score(X, y))
"""
    assert float(run_python(code, GEOMIX_KERNEL="numpy")[0]) > 0.93


def test_show_versions_names_the_kernel(capsys):
    import geomix

    geomix.show_versions()
    told = capsys.readouterr().out
    assert ("native" in told) == kernel.is_native
    assert "numpy" in told


# --- elementary functions ---


@native_only
def test_elementary_functions_are_as_accurate_as_stated():
    rng = np.random.default_rng(0)
    from geomix import _native

    def rounded(function, x):  # NumPy's own float64 functions may be off by a bit, too
        return function(x.astype(np.longdouble)).astype(np.float64)

    x = np.concatenate([rng.uniform(-708, 709, 50000), rng.standard_normal(50000)])
    exact = rounded(np.exp, x)
    assert np.max(np.abs(_native.exponential(x) - exact) / np.spacing(exact)) <= 1.0
    x = np.concatenate([rng.uniform(1, 100, 50000), 10 ** rng.uniform(-300, 300, 50000)])
    exact = rounded(np.log, x)
    assert np.max(np.abs(_native.logarithm(x) - exact) / np.spacing(np.abs(exact))) <= 1.0
    x = np.concatenate([10 * rng.standard_normal(50000), rng.uniform(-1e6, 1e6, 50000)])
    x = np.concatenate([x, 10 ** rng.uniform(6, 300, 1000), [0.0, np.pi / 2, np.pi, 2.0**19]])
    sine, cosine = _native.sine_cosine(x)
    assert np.max(np.abs(sine - rounded(np.sin, x))) <= 2.3e-16
    assert np.max(np.abs(cosine - rounded(np.cos, x))) <= 2.3e-16
    x = rng.uniform(-512, 512, 100_000).astype(np.float32)
    sine, cosine = _native.sine_cosine(x)
    assert np.max(np.abs(sine - np.sin(x.astype(np.float64)))) <= 1.3e-7
    assert np.max(np.abs(cosine - np.cos(x.astype(np.float64)))) <= 1.3e-7
    x = rng.uniform(-87, 88, 50000).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    off = np.abs(_native.exponential(x) - exact) / np.spacing(exact.astype(np.float32))
    assert np.max(off) <= 1.5
    x = rng.uniform(1, 1000, 50000).astype(np.float32)
    exact = np.log(x.astype(np.float64))
    off = np.abs(_native.logarithm(x) - exact) / np.spacing(exact.astype(np.float32))
    assert np.max(off) <= 1.5


@native_only
def test_elementary_functions_keep_their_special_values():
    from geomix import _native

    x = np.array([0.0, -0.0, -1e4, -np.inf, 1e4, np.inf, np.nan])
    expected = np.array([1.0, 1.0, 0.0, 0.0, np.inf, np.inf, np.nan])
    assert np.array_equal(_native.exponential(x), expected, equal_nan=True)
    assert _native.logarithm(np.array([1.0]))[0] == 0.0
    with pytest.raises(TypeError):
        _native.exponential(np.arange(3))


# --- clustering and calibration ---


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_native_clusters_equal_numpy(seed, n_clusters):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((301, 3)) + rng.integers(3, size=(301, 1))
    weight = rng.uniform(0.1, 1.0, 301)
    draws = rng.random((n_clusters, clustering.n_trials(n_clusters)))
    ours = kernel.kmeans(X, weight, n_clusters, draws)
    theirs = clustering.kmeans(X, weight, n_clusters, draws)
    assert np.array_equal(ours.labels, theirs.labels)
    np.testing.assert_allclose(ours.centres, theirs.centres, rtol=1e-10)
    assert ours.inertia == pytest.approx(theirs.inertia, rel=1e-12)
    assert np.array_equal(kernel.nearest(X, ours.centres), ours.labels)


def test_identical_rows_can_be_clustered():
    X, weight = np.ones((20, 2)), np.ones(20)
    draws = np.random.default_rng(0).random((3, clustering.n_trials(3)))
    for cluster in (kernel.kmeans, clustering.kmeans):
        assert cluster(X, weight, 3, draws).inertia == 0.0


def test_silhouettes_equal_scikit_learns():
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) + 3 * rng.integers(2, size=(200, 1))
    labelings = [rng.integers(k, size=200) for k in (2, 3, 4)] + [(X[:, 0] > 1).astype(int)]
    expected = [silhouette_score(X, labels) for labels in labelings]
    np.testing.assert_allclose(kernel.silhouettes(X, labelings), expected, atol=1e-12)
    np.testing.assert_allclose(clustering.silhouettes(X, labelings), expected, atol=1e-12)


def test_native_calibration_equals_numpy():
    rng = np.random.default_rng(0)
    S, y = 4 * rng.standard_normal((500, 4)), rng.integers(4, size=500)
    weight = rng.uniform(0.1, 1.0, 500)
    for prior in (None, 0.5):
        ours, theirs = kernel.calibrate(S, y, weight, prior), calibrate(S, y, weight, prior)
        assert ours == pytest.approx(theirs, rel=1e-8)


# --- the door ---


@native_only
@pytest.mark.parametrize("per_class", [[1, 1, 1], [2, 3]])
def test_both_kernels_take_the_same_steps_of_lbfgs(per_class):
    rng = np.random.default_rng(0)
    rows = some_rows(300, 5, len(per_class), rng)
    planes = some_planes(per_class, 5, rng)
    penalty = np.full(planes.n_planes, 1e-3)
    for max_iter in (1, 20, 500):
        descent = Descent(planes, 4.0, 0.05, penalty, max_iter, tol=1e-5, value_tol=1e-9)
        ours = kernel.minimize(kernel.training_rows(*rows), descent)
        theirs = descend(NumpyRows(*rows), descent)
        assert ours.converged == theirs.converged
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-8)
        np.testing.assert_allclose(ours.planes.weights, theirs.planes.weights, atol=1e-5)


@native_only
def test_both_kernels_take_the_same_steps_of_lbfgs_over_many_weights():
    rng = np.random.default_rng(0)
    rows, planes = some_rows(200, 2100, 2, rng), some_planes([1, 2], 2100, rng)
    descent = Descent(planes, 4.0, 0.05, np.full(3, 1e-2), 15, tol=1e-5, value_tol=1e-9)
    ours = kernel.minimize(kernel.training_rows(*rows), descent)
    theirs = descend(NumpyRows(*rows), descent)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-6)


@native_only
def test_a_pass_runs_on_no_more_threads_than_it_has_room_for(monkeypatch):
    """100 rows of 9,000 columns are two chunks, while the arithmetic of L-BFGS has more threads."""
    rng = np.random.default_rng(0)
    rows, planes = some_rows(100, 9000, 2, rng), some_planes([1, 2], 9000, rng)
    descent = Descent(planes, 4.0, 0.0, np.full(3, 1e-2), 30, tol=0.0, value_tol=0.0)
    found = []
    for n_threads in "1", "8":
        monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
        found.append(kernel.minimize(kernel.training_rows(*rows), descent))
    assert found[0].values == found[1].values


@native_only
@pytest.mark.parametrize("kind", ["dense", "binned"])
def test_threads_inside_a_descent_give_the_same_bits(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, weight = some_rows(5000, 40, 3, rng)
    if kind == "binned":
        lift = fit_spline(X, weight, np.zeros(40, dtype=int), 32)
        X = kernel.lifted(lift, X)
    n_inputs = X.lift.n_outputs if kind == "binned" else 40
    planes = some_planes([12, 12, 12], n_inputs, rng)
    descent = Descent(planes, 4.0, 0.0, np.full(36, 1e-3), 12, tol=0.0, value_tol=0.0)
    found = []
    for n_threads in "1", "2", "3":
        monkeypatch.setenv("GEOMIX_NUM_THREADS", n_threads)
        done = kernel.minimize(kernel.training_rows(X, y, weight), descent)
        found.append((done.values, done.planes.as_vector().tobytes()))
    assert found[0] == found[1] == found[2]


@native_only
@pytest.mark.parametrize(("n_rows", "width"), [(300, 0.5), (40, 1.0), (600, 3.0)])
def test_a_native_basis_of_rows_equals_numpy(n_rows, width):
    rng = np.random.default_rng(0)
    V, frequencies = rng.standard_normal((n_rows, 2)), width * rng.standard_normal((2, 128))
    lift = FourierLift(frequencies, 1.0)
    Phi = kernel.lifted(lift, V)
    np.testing.assert_allclose(Phi, lift(V), atol=1e-6)
    ours = kernel.compressed(Phi)
    theirs = row_span.row_basis(Phi, kernel.ROWS_FOR_SPAN, 128, kernel.LEFT_OUTSIDE_SPAN)
    if ours is None:
        assert len(theirs) == 0
        return
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    coordinates = kernel.in_basis(Phi, ours)
    np.testing.assert_allclose(coordinates, row_span.projected(Phi, ours), atol=1e-5)
    np.testing.assert_allclose(coordinates @ ours, Phi, atol=1e-3)


@native_only
@pytest.mark.parametrize(("n_columns", "n_classes"), [(1, 2), (2, 2), (7, 3)])
def test_native_gains_of_pairs_equal_numpy(n_columns, n_classes):
    rng = np.random.default_rng(0)
    bins = rng.integers(8, size=(n_columns, 500)).astype(np.uint8)
    terms = rng.random((500, 3 * n_classes))
    ours = np.triu(kernel.pair_gains(bins, terms, 8))
    np.testing.assert_allclose(ours, pair_gains(bins, terms, 8), rtol=1e-11)


@native_only
@pytest.mark.parametrize(
    "per_class", [[1, 1], [2, 1], [2, 2], [3, 2], [4, 4], [6, 3], [9, 8], [13, 11], [20, 15]]
)
def test_a_plane_of_curves_has_the_same_sums_beside_any_number_of_planes(per_class):
    """Planes go in tiles of two, four or eight, which change no bit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = rng.integers(4, size=300)
    lift = fit_spline(X, np.ones(300), np.array([0, 0, 0, 0, 4]), 12, ((0, 1), (2, 4)))
    planes = some_planes(per_class, lift.n_outputs, rng, 0.1)
    y, weight = rng.integers(2, size=300), rng.uniform(0.5, 2.0, 300)
    rows = kernel.training_rows(kernel.binned(lift, X), y, weight)
    theirs = NumpyRows(kernel.binned(lift, X), y, weight).terms(planes, 3.0, 0.1)
    ours = rows.terms(planes, 3.0, 0.1)
    np.testing.assert_allclose(ours.weights_gradient, theirs.weights_gradient, atol=2e-3)
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-5)


@native_only
def test_wrong_shapes_and_types_are_refused_at_the_door():
    rng = np.random.default_rng(0)
    planes = some_planes([2, 2], 3, rng)
    X, y, weight = some_rows(10, 3, 2, rng)
    wrong = [
        (X[:, :2], y, weight),
        (X, y[:5], weight),
        (X, y, weight[:5]),
        (X, y + 7, weight),
        (X, y - 1, weight),
        (X[0], y, weight),
        (X.astype(complex), y, weight),
        (X.astype(str), y, weight),
    ]
    for rows in wrong:
        with pytest.raises((TypeError, ValueError)):
            kernel.batch_terms(planes, 6.0, *rows, 0.02)
    for class_start in ([0, 4, 4], [0, 2], [1, 4], [0, 3, 2, 4], [0]):
        odd = Planes(planes.weights, planes.biases, np.array(class_start))
        with pytest.raises((TypeError, ValueError)):
            kernel.batch_terms(odd, 6.0, X, y, weight, 0.02)
    with pytest.raises((TypeError, ValueError)):
        some_model("linear").predict_proba(np.zeros((3, 4)))
