"""``n_jobs``: fits side by side give the model of one thread, and leave nothing behind."""

import hashlib
import threading

import numpy as np
import pytest
from making import classifier
from sklearn.datasets import make_moons

from geomix.core import kernel
from geomix.search import parallel
from geomix.search.parallel import in_order, n_threads


@pytest.fixture(scope="module")
def moons():
    return make_moons(2100, noise=0.25, random_state=0)


def bits(clf):
    model = clf.model_
    numbers = model.planes.weights, model.planes.biases, np.array([model.temperature])
    return hashlib.sha256(b"".join(one.tobytes() for one in numbers)).hexdigest()


@pytest.mark.parametrize(
    "settings",
    [{"preset": "readable"}, {"preset": "accurate", "lift": "spline", "n_members": 3, "l2": 1e-3}],
    ids=["readable", "ensemble"],
)
def test_any_n_jobs_gives_the_same_model(moons, settings, monkeypatch):
    monkeypatch.setattr("geomix.search.race.SMALLEST_WORK", 0.0)
    monkeypatch.setenv("GEOMIX_NUM_THREADS", "3")
    one = classifier(n_jobs=1, random_state=0, **settings).fit(*moons)
    several = classifier(n_jobs=3, random_state=0, **settings).fit(*moons)
    assert bits(one) == bits(several)
    assert one.history_.trials == several.history_.trials


def test_results_come_in_order_and_from_several_threads():
    both = threading.Barrier(2, timeout=60)

    def work(item):
        if item < 2:
            both.wait()  # returns only if two of them run at once
        return item

    assert list(in_order(work, range(5), 2)) == list(range(5))


def test_work_beside_other_work_starts_no_threads_of_its_own():
    limits = list(in_order(lambda _: kernel.thread_limit(), range(4), 2))
    assert limits == [1 if kernel.is_native else 0] * 4
    assert kernel.thread_limit() == 0


def test_work_that_is_left_alone_has_the_threads_of_the_others():
    limits = list(in_order(lambda _: kernel.thread_limit(), range(5), 4))
    assert limits == ([1, 1, 1, 1, 4] if kernel.is_native else [0] * 5)


def test_an_error_in_one_fit_ends_them_all():
    def work(item):
        if item == 1:
            raise ValueError("one")
        return item

    with pytest.raises(ValueError, match="one"):
        list(in_order(work, range(5), 2))


def test_work_is_done_here_where_no_thread_can_be_started(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(in_order(lambda item: (item, threading.current_thread()), range(3), 2)) == [
        (item, threading.main_thread()) for item in range(3)
    ]


def test_n_jobs_counts_as_scikit_learn_counts(monkeypatch):
    monkeypatch.setenv("GEOMIX_NUM_THREADS", "4")
    assert [n_threads(n) for n in (None, -1, -2, 1, 3, -9)] == [4, 4, 3, 1, 3, 1]
    with kernel.one_thread():
        assert n_threads(None) == (1 if kernel.is_native else 4)
    assert parallel.n_threads(2) == 2
