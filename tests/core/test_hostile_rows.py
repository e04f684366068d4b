"""Rows and systems that mean harm: nothing may end the process, and nothing is wrong in silence.

What could crash runs in a process of its own, so that a crash is a failed test.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse

from geomix import GeometricMixtureClassifier, Recipe
from geomix.core import kernel

native_only = pytest.mark.skipif(not kernel.is_native, reason="is about native code")


def run(script, **environment):
    """What a process prints that runs the script; it has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.split()


def fit_linear(X, y, **parameters):
    chosen = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "max_iter": 5}
    recipe = Recipe(calibrate=False)
    return GeometricMixtureClassifier(**chosen | parameters, advanced=recipe).fit(X, y)


# --- threads that cannot be created ---

FEW_THREADS = """
import resource, numpy as np, scipy.sparse, hashlib, warnings
warnings.simplefilter("ignore")
from geomix import GeometricMixtureClassifier, Recipe
from geomix.core import kernel
rng = np.random.default_rng(0)
X, y = rng.standard_normal((12_000, 24)), rng.integers(0, 3, 12_000)
S = scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
if {limited}:
    with open("/proc/self/statm") as file:
        in_use = int(file.read().split()[0]) * resource.getpagesize()
    # Room for the work, and for the stacks of some of the threads.
    resource.setrlimit(resource.RLIMIT_AS, (in_use + 300 * 2**20,) * 2)
for lift in ("linear", "spline"):
    for solver in ("lbfgs", "adam") if lift == "linear" else ("lbfgs",):
        for rows in (X, S) if lift == "linear" else (X,):
            clf = GeometricMixtureClassifier(
                lift=lift, n_planes=4, l2=1e-3, max_iter=2, n_members=1, early_stopping="off",
                preset="accurate", random_state=0, advanced=Recipe(solver=solver, calibrate=False),
            ).fit(rows, y)
            P = clf.predict_proba(rows)
            print(hashlib.sha256(P.tobytes()).hexdigest())
"""


@native_only
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
def test_threads_that_cannot_be_created_change_no_bit_of_fits_and_answers():
    free = run(FEW_THREADS.format(limited=False), GEOMIX_NUM_THREADS="4")
    assert len(free) == 5
    assert run(FEW_THREADS.format(limited=True), GEOMIX_NUM_THREADS="64") == free


# --- sparse matrices whose structure is broken ---


def broken(how):
    rng = np.random.default_rng(0)
    cells = scipy.sparse.random(60, 8, density=0.4, random_state=rng)
    X = getattr(scipy.sparse, f"{how.split()[0]}_array")(cells)
    if how == "csr column too large":
        X.indices[3] = 10**6
    elif how == "csr column negative":
        X.indices[3] = -(10**6)
    elif how == "csr indptr too far":
        X.indptr[-1] = 10**9
    elif how == "csr indptr jumps":
        X.indptr[5] = 10**9
    elif how == "csr indptr falls":
        X.indptr[5] = 0
    elif how == "csr indptr begins late":
        X.indptr[0] = 10**7
    elif how == "csr indptr short":
        X.indptr = X.indptr[:-5]
    elif how == "csr data short":
        X.data = X.data[:-50]
    elif how == "csc row too large":
        X.indices[3] = 10**6
    elif how == "csc indptr too far":
        X.indptr[-1] = 10**9
    elif how == "coo row too large":
        X.row[3] = 10**6
    elif how == "coo column negative":
        X.col[3] = -(10**6)
    elif how == "bsr column too large":
        X.indices[3] = 10**6
    return X


BROKEN = [
    "csr column too large",
    "csr column negative",
    "csr indptr too far",
    "csr indptr jumps",
    "csr indptr falls",
    "csr indptr begins late",
    "csr indptr short",
    "csr data short",
    "csc row too large",
    "csc indptr too far",
    "coo row too large",
    "coo column negative",
    "bsr column too large",
]


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_sparse_matrix_is_refused_by_fit_predict_and_the_model(how):
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    kind = how.split()[0].upper()
    clf = fit_linear(scipy.sparse.csr_array(rng.standard_normal((60, 8))), y)
    for ask in (
        lambda X: fit_linear(X, y),
        clf.predict_proba,
        clf.model_.predict_proba,
        clf.model_.explain_local,
    ):
        with pytest.raises(ValueError, match=f"X is not a valid {kind} matrix"):
            ask(broken(how))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_sparse_format_is_answered_like_its_dense_rows(format):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((60, 8)) < 0.4, rng.standard_normal((60, 8)), 0.0)
    X = scipy.sparse.csr_array(dense).asformat(format)
    clf = fit_linear(X, np.arange(60) % 2)
    np.testing.assert_allclose(clf.predict_proba(X), clf.model_.predict_proba(dense), atol=1e-12)


REWRITTEN = """
import threading, numpy as np, scipy.sparse
from geomix import GeometricMixtureClassifier
rng = np.random.default_rng(0)
X = scipy.sparse.csr_array(scipy.sparse.random(20_000, 50, density=0.1, random_state=rng))
y = rng.integers(0, 2, 20_000)
clf = GeometricMixtureClassifier(lift="linear", n_planes=2, l2=1e-3, max_iter=2)
clf.fit(X, y)
indices, indptr, done = X.indices.copy(), X.indptr.copy(), False

def rewrite():
    while not done:
        X.indices[:] = 2**30
        X.indptr[1:] = 2**30
        X.indices[:] = indices
        X.indptr[:] = indptr

thread = threading.Thread(target=rewrite)
thread.start()
refused = 0
for _ in range(200):
    for answer in (clf.predict_proba, clf.model_.predict_proba):
        try:
            answer(X)
        except ValueError:
            refused += 1
done = True
thread.join()
print("alive", refused > 0)
"""


def test_sparse_rows_that_another_thread_rewrites_do_not_end_the_process():
    assert run(REWRITTEN)[0] == "alive"


class Shrinks(np.ndarray):
    """A row that resizes itself as soon as somebody looks for its mask."""

    @property
    def mask(self):
        self.resize(1, refcheck=False)
        raise AttributeError


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_that_resizes_itself_while_it_is_read_is_refused(dtype):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4000)), np.arange(60) % 2
    score = fit_linear(X, y).model_.scorer()
    for ask in (score, score.predict, score.explain):
        row = Shrinks(4000, dtype=dtype)
        row[:] = 1.0
        with pytest.raises(ValueError, match="Got a row of 1 numbers; expected 4000"):
            ask(row)


# --- one large answer, and small stacks ---

LARGE_ANSWER = """
import os, signal, sys, threading, time, numpy as np
from geomix import GeometricMixtureClassifier, Recipe
rng = np.random.default_rng(0)
X, y = rng.standard_normal((300, 10)), np.arange(300) % 3
recipe = Recipe(gamma=0.1, n_frequencies=512, calibrate=False)
model = GeometricMixtureClassifier(lift="fourier", n_planes=4, l2=1e-3, max_iter=2,
                                   advanced=recipe).fit(X, y).model_

def seconds(n_rows):
    start = time.perf_counter()
    try:
        model.predict_proba(np.broadcast_to(X[0], (n_rows, 10)))
    except KeyboardInterrupt:
        print("interrupted")
    return time.perf_counter() - start

def interrupt():
    begins.wait()
    os.kill(os.getpid(), signal.SIGINT)

small, begins = min(seconds(50_000) for _ in range(3)), threading.Event()
threading.Thread(target=interrupt).start()
sys.setswitchinterval(1000.0)  # the other thread runs as soon as native code lets it, no sooner
begins.set()
print(seconds(2_000_000) < 20 * small, model.predict_proba(X).shape)
"""


@native_only
def test_ctrl_c_ends_one_large_answer():
    assert run(LARGE_ANSWER) == ["interrupted", "True", "(300,", "3)"]


SMALL_STACKS = """
import threading, numpy as np
from geomix import GeometricMixtureClassifier, Recipe
rng = np.random.default_rng(0)
X, y = rng.standard_normal((300, 20)), np.arange(300) % 3
def ask(score):
    for row in X:
        score(row), score.predict(row), score.explain(row), score.explain(row.tolist())
    print("answered")
threading.stack_size(64 * 1024)
for lift in ("linear", "spline", "fourier"):
    clf = GeometricMixtureClassifier(lift=lift, n_planes=4, l2=1e-3, max_iter=2, preset="accurate",
                                     advanced=Recipe(gamma=0.1, calibrate=False)).fit(X, y)
    thread = threading.Thread(target=ask, args=(clf.model_.scorer(),))
    thread.start()
    thread.join()
"""


def test_a_thread_with_a_small_stack_can_score_and_explain_with_every_lift():
    assert run(SMALL_STACKS) == ["answered"] * 3


def test_threads_may_score_with_one_model():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 5)), np.arange(200) % 2
    model = fit_linear(X, y).model_
    score, expected = model.scorer(), model.predict_proba(X)
    wrong = []

    def ask():
        for row, p in zip(X, expected, strict=True):
            if not np.array_equal(score(row), p):
                wrong.append(row)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
