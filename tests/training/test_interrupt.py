"""Ctrl-C, sent for real to a process that is deep in a fit."""

import signal
import subprocess
import sys

import pytest
from patience import PATIENCE

SCRIPT = """
import threading, time, numpy as np, scipy.sparse
from geomix import GeometricMixtureClassifier, Recipe

rng = np.random.default_rng(0)
X, y = rng.standard_normal((20_000, 40)), rng.integers(0, 4, 20_000)
if {sparse}:
    X = scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.2, X, 0.0))
recipe = Recipe(solver={solver!r}, tol=0.0, calibrate=False)
clf = GeometricMixtureClassifier(4, lift="linear", l2=1e-6, max_iter=100_000, early_stopping="off",
                                 advanced=recipe)
def announce():  # after half a second of work: preparing these rows takes a fraction of it
    end = time.process_time() + 0.5
    while time.process_time() < end:
        time.sleep(0.02)
    print("training", flush=True)
threading.Thread(target=announce, daemon=True).start()
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", hasattr(clf, "model_"), flush=True)
"""


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_ctrl_c_ends_a_fit_and_leaves_the_estimator_unfitted(solver, sparse):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(solver=solver, sparse=sparse)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert rest == "interrupted False\n"
    assert errors == ""
    assert process.returncode == 0
