"""A cluster of two worker processes: the same model as one machine, whatever happens to it."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from patience import PATIENCE, eventually
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from making import classifier  # noqa: E402

import geomix.dask as bridge  # noqa: E402
from geomix import GeometricMixtureClassifier, SchemaError  # noqa: E402
from geomix.dask import ClusterError, DaskGeometricMixtureClassifier  # noqa: E402
from geomix.out_of_core import sampling  # noqa: E402
from geomix.out_of_core.fit import MemorySource, fit_estimator  # noqa: E402
from geomix.out_of_core.survey import RowPart  # noqa: E402

# One process runs them all: each would start a cluster of its own.
pytestmark = pytest.mark.filterwarnings("ignore")
FIXED = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "random_state": 0}
CHUNKS = {
    "one": (1200,),
    "two": (600, 600),
    "seven": (100, 150, 150, 200, 250, 250, 100),
    "unequal": (1, 3, 1196),
    "one empty": (300, 0, 900),
}


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def table():
    return make_classification(
        1200, 6, n_informative=4, n_classes=3, n_clusters_per_class=2, random_state=0
    )


def cut(X, y, chunks):
    return da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=(chunks,))


def local(X, y, **settings):
    clf = classifier(**{**FIXED, **settings})
    return fit_estimator(clf, MemorySource([RowPart(X, y)]))


def same_bits(one, two):
    return (
        np.array_equal(one.planes.weights, two.planes.weights)
        and np.array_equal(one.planes.biases, two.planes.biases)
        and one.temperature == two.temperature
    )


# --- the same model ---


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS.keys())
def test_any_partitioning_gives_the_model_of_one_machine(client, table, chunks):
    ours = DaskGeometricMixtureClassifier(**FIXED).fit(*cut(*table, chunks)).model_
    one = local(*table).model_
    np.testing.assert_allclose(ours.planes.weights, one.planes.weights, atol=1e-6)
    np.testing.assert_allclose(ours.planes.biases, one.planes.biases, atol=1e-6)


def test_class_weight_is_sample_weight_on_a_cluster(client, table):
    X, y = cut(*table, (600, 600))
    factors = np.array([3.0, 1.0, 0.5])
    weight = da.from_array(factors[table[1]], chunks=((600, 600),))
    by_row = DaskGeometricMixtureClassifier(**FIXED).fit(X, y, weight).model_
    settings = {**FIXED, "class_weight": dict(enumerate(factors))}
    by_class = DaskGeometricMixtureClassifier(**settings).fit(X, y).model_
    assert same_bits(by_class, by_row)


def test_fourier_planes_too(client, table):
    settings = {**FIXED, "lift": "fourier", "n_frequencies": 32, "gamma": 0.1}
    ours = DaskGeometricMixtureClassifier(**settings).fit(*cut(*table, (500, 700))).model_
    one = local(*table, **settings).model_
    assert np.array_equal(ours.lift.frequencies, one.lift.frequencies)
    size = np.abs(one.planes.weights).max()
    np.testing.assert_allclose(ours.planes.weights / size, one.planes.weights / size, atol=1e-6)


def test_frames_with_categories_missing_cells_and_one_class_per_partition(client):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.standard_normal(900), "colour": rng.choice(["red", "blue"], 900)}
    )
    frame.loc[:299, "size"] = np.nan  # all missing in the first partition
    frame.loc[600:, "colour"] = "black"  # a level of the last one alone
    y = pd.Series(np.where(np.arange(900) < 450, "no", "yes"), name="y")
    X, target = dd.from_pandas(frame, npartitions=3), dd.from_pandas(y, npartitions=3)
    weight = dd.from_pandas(pd.Series(np.ones(900)), npartitions=3)
    clf = DaskGeometricMixtureClassifier(**FIXED).fit(X, target, weight)
    one = local(frame, y.to_numpy())
    assert clf.model_.schema == one.model_.schema
    np.testing.assert_allclose(clf.model_.planes.weights, one.model_.planes.weights, atol=1e-6)
    labels, P = clf.predict(X), clf.predict_proba(X)
    assert isinstance(labels, dd.Series)
    assert isinstance(P, dd.DataFrame)
    found = labels.compute()
    assert found.index.equals(frame.index)
    assert np.array_equal(found, clf.to_local().predict(frame))
    assert P.compute().columns.tolist() == ["no", "yes"]
    assert clf.score(X, target) == pytest.approx(clf.to_local().score(frame, y))


def test_predictions_are_lazy_and_those_of_the_local_estimator(client, table):
    X, y = cut(*table, (700, 500))
    clf = DaskGeometricMixtureClassifier(**FIXED).fit(X, y)
    P, labels = clf.predict_proba(X), clf.predict(X)
    assert isinstance(P, da.Array)
    assert P.shape == (1200, 3)
    assert P.chunks[0] == (700, 500)
    alone = clf.to_local()
    assert type(alone) is GeometricMixtureClassifier
    assert np.array_equal(P.compute(), alone.predict_proba(table[0]))
    assert np.array_equal(labels.compute(), alone.predict(table[0]))
    assert clf.score(X, y) == pytest.approx(alone.score(*table))
    assert clf.score(X, y.reshape(-1, 1)) == clf.score(X, y)
    assert clf.classes_.tolist() == [0, 1, 2]


def test_it_has_the_parameters_of_the_estimator(table):
    clf = DaskGeometricMixtureClassifier(n_planes=3, worker_timeout=5)
    assert clf.get_params() == {
        **GeometricMixtureClassifier(n_planes=3).get_params(), "client": None, "worker_timeout": 5
    }  # fmt: skip
    assert clone(clf).set_params(l2=0.5, worker_timeout=7).get_params()["l2"] == 0.5
    with pytest.raises(NotFittedError):
        clf.predict(da.zeros((3, 2)))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = clf.nonsense


# --- what may happen to a cluster ---


def kill_a_worker(client, at_pass, monkeypatch):
    """Kill one worker, for good, at the n-th pass of the solver."""
    n_asked = []
    terms = bridge._DaskSums.terms

    def asked(self, *at):
        n_asked.append(1)
        if len(n_asked) == at_pass:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
        return terms(self, *at)

    monkeypatch.setattr(bridge._DaskSums, "terms", asked)
    return n_asked


@pytest.mark.parametrize("at_pass", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_killed_worker_changes_no_bit(client, table, monkeypatch, at_pass):
    X, y = cut(*table, CHUNKS["seven"])
    # So that there are passes enough to be killed in, and not many more.
    settings = {**FIXED, "tol": 1e-9, "max_iter": 8}
    undisturbed = DaskGeometricMixtureClassifier(**settings).fit(X, y).model_
    n_asked = kill_a_worker(client, at_pass, monkeypatch)
    disturbed = DaskGeometricMixtureClassifier(**settings).fit(X, y).model_
    assert len(n_asked) >= at_pass
    assert same_bits(undisturbed, disturbed)
    client.wait_for_workers(2, timeout=PATIENCE)


def test_scattered_data_that_are_lost_are_an_error_and_not_a_hang(table, monkeypatch):
    with (
        distributed.LocalCluster(n_workers=1, dashboard_address=":0", silence_logs=50) as doomed,
        distributed.Client(doomed, set_as_default=False) as client,
    ):
        _lose_scattered_data(client, table, monkeypatch)


def _lose_scattered_data(client, table, monkeypatch):
    X, y = table
    scattered = client.scatter([X[:600], X[600:]])
    blocks = [da.from_delayed(dask.delayed(one), (600, 6), float) for one in scattered]
    far = da.concatenate(blocks)
    n_asked = []
    terms = bridge._DaskSums.terms

    def asked(self, *at):
        n_asked.append(1)
        if len(n_asked) == 2:
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
        return terms(self, *at)

    monkeypatch.setattr(bridge._DaskSums, "terms", asked)
    with pytest.raises(ClusterError, match="lost"):
        DaskGeometricMixtureClassifier(client=client, **FIXED).fit(
            far, da.from_array(y, chunks=600)
        )


def test_no_workers_left_is_an_error_within_the_stated_time(table):
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=":0", silence_logs=50
        ) as empty,
        distributed.Client(empty, set_as_default=False) as client,
    ):
        clf = DaskGeometricMixtureClassifier(client=client, worker_timeout=1.0, **FIXED)
        with pytest.raises(ClusterError, match="no worker for 1 seconds"):
            clf.fit(*cut(*table, (600, 600)))
        assert not hasattr(clf, "model_")


def test_the_error_of_a_failed_worker_is_reported(client, table, monkeypatch):
    X, y = table

    def broken(block):
        raise RuntimeError("the disk is on fire")

    far, labels = cut(X, y, (600, 600))
    with pytest.raises(ClusterError, match="the disk is on fire"):
        DaskGeometricMixtureClassifier(**FIXED).fit(far.map_blocks(broken, dtype=float), labels)
    with pytest.raises(ValueError, match=r"infinity.*x0"):
        DaskGeometricMixtureClassifier(**FIXED).fit(
            far.map_blocks(lambda block: block / np.where(block > 2, 0.0, 1.0), dtype=float), labels
        )
    assert quiet(client)


def quiet(client):
    """Whether the cluster comes to have nothing left to do."""
    return eventually(lambda: not any(client.processing().values()) and not client.futures)


def test_interrupting_the_client_cancels_the_work(client, table, tmp_path, monkeypatch):
    X, y = cut(*table, CHUNKS["seven"])
    started, over = tmp_path / "started", tmp_path / "over"
    waits = threading.Event()

    def endless(block):  # in a worker, until the test is over
        if block.size:  # Dask also calls it here, without rows, to learn the type
            started.touch()
        while block.size and not over.exists():
            time.sleep(0.02)
        return block

    result = bridge._Cluster.result

    def waiting(self, future):
        waits.set()
        return result(self, future)

    def interrupt():
        if waits.wait(PATIENCE) and eventually(started.exists):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    monkeypatch.setattr(bridge._Cluster, "result", waiting)
    threading.Thread(target=interrupt, daemon=True).start()
    clf = DaskGeometricMixtureClassifier(**FIXED)
    try:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X.map_blocks(endless, dtype=float), y)
        assert not hasattr(clf, "model_")
        assert quiet(client)
    finally:
        over.touch()


def test_a_failed_fit_leaves_the_other_work_of_the_client_alone(client, table, monkeypatch):
    # Futures are freed late where an exception holds the frames that used them; here all are.
    held = []
    result = bridge._Cluster.result

    def holding(self, future):
        held.append(future)
        return result(self, future)

    monkeypatch.setattr(bridge._Cluster, "result", holding)
    mine = client.submit(sum, [1, 2])
    X, y = cut(*table, (600, 600))
    with pytest.raises(ValueError, match=r"infinity.*x0"):
        DaskGeometricMixtureClassifier(**FIXED).fit(
            X.map_blocks(lambda block: block / np.where(block > 2, 0.0, 1.0), dtype=float), y
        )
    assert len(held) == 2  # the lengths, and the survey that fails
    assert client.submit(sum, [mine, 4], pure=False).result(timeout=PATIENCE) == 7
    mine.release()
    assert quiet(client)


def test_nothing_stays_on_the_cluster_after_a_fit(client, table):
    DaskGeometricMixtureClassifier(**FIXED).fit(*cut(*table, (600, 600)))
    assert quiet(client)


def test_what_is_no_collection_is_refused(client, table):
    X, y = table
    with pytest.raises(TypeError, match="GeometricMixtureClassifier"):
        DaskGeometricMixtureClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"\[2, 3\] partitions"):
        DaskGeometricMixtureClassifier().fit(
            da.from_array(X, chunks=(600, 6)), da.from_array(y, chunks=400)
        )


def test_large_parameters_travel(client):
    # Above 100 kB a keyword argument of Client.map fails; ours are positional.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 300)), rng.integers(0, 30, 400)
    settings = {**FIXED, "n_planes": 3, "max_iter": 3, "pca": None, "calibrate": False}
    clf = DaskGeometricMixtureClassifier(**settings)
    clf.fit(da.from_array(X, chunks=(200, 300)), da.from_array(y, chunks=200))
    assert clf.model_.planes.weights.nbytes > 100_000


# --- how the work is spread ---


def test_one_task_per_partition_gives_the_bits_of_one_task_per_thread(client, table, monkeypatch):
    X, y = cut(*table, CHUNKS["seven"])
    together = DaskGeometricMixtureClassifier(**FIXED).fit(X, y).model_
    monkeypatch.setattr(bridge, "MOST_BYTES", 0)
    apart = DaskGeometricMixtureClassifier(**FIXED).fit(X, y).model_
    assert same_bits(together, apart)


class AtHome:
    """A cluster that does its work at once, in this process."""

    def __init__(self):
        self.bars = []

    def compute(self, parts):
        return parts

    def map(self, function, *columns):
        if function is bridge._surveyed:
            self.bars.append(columns[-1][0])
        return [function(*row) for row in zip(*columns, strict=True)]

    def task(self, function, *arguments):
        return function(*arguments)

    def added(self, nodes):
        return bridge.tree_of(nodes, bridge._added)

    def result(self, found):
        return found


@pytest.mark.parametrize("share_without_weight", [0.0, 0.9])
def test_the_sample_is_that_of_one_machine_whatever_the_bar(monkeypatch, share_without_weight):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 400)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 10)
    rng = np.random.default_rng(0)
    X, y = np.arange(6000.0)[:, None], rng.integers(0, 3, 6000)
    weight = (rng.random(6000) >= share_without_weight).astype(float)
    parts = [
        RowPart(X[a : a + 1500], y[a : a + 1500], weight[a : a + 1500])
        for a in range(0, 6000, 1500)
    ]
    home = AtHome()
    found = bridge.DaskSource(home, parts).survey(3, None).sample
    expected = MemorySource(parts).survey(3, None).sample
    np.testing.assert_array_equal(found.columns[0], expected.columns[0])
    assert home.bars[0] is not None
    # Where most rows are without weight, those below the bar are too few: all are asked for.
    assert home.bars[1:] == ([None] if share_without_weight else [])


def test_a_missing_client_is_an_error_with_a_remedy(table, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="pass client="):
        DaskGeometricMixtureClassifier().fit(*cut(*table, (600, 600)))


def test_a_missing_dask_is_an_error_with_a_remedy(monkeypatch):
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "geomix.dask")
    with pytest.raises(ImportError, match=r"geomix\[dask\]"):
        importlib.import_module("geomix.dask")


def test_a_frame_with_columns_in_another_order_is_refused_before_any_work(client, table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcdef"))
    rows = dd.from_pandas(frame, npartitions=2)
    labels = dd.from_pandas(pd.Series(y), npartitions=2)
    fitted = DaskGeometricMixtureClassifier(client=client, **FIXED).fit(rows, labels)
    for ask in (fitted.predict, fitted.predict_proba):
        with pytest.raises(SchemaError, match="must be in the same order"):
            ask(rows[list("fedcba")])
