"""Shared ground: fixed numbers of threads, derandomised property tests, small data."""

from __future__ import annotations

import os
import signal

# A shell that starts the tests in the background makes them ignore Ctrl-C, and tests of Ctrl-C
# would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before NumPy is imported: two test workers with two BLAS threads each would only wait.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# The same for our own threads; tests of many threads set their number themselves.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("GEOMIX_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons

settings.register_profile("pr", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "pr"))


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def wdbc():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def moons():
    return make_moons(600, noise=0.2, random_state=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
