"""``DaskGeometricMixtureClassifier``: a fit over Dask arrays and data frames.

The solver runs on the client. Every pass gives the sums of each partition
(``objective.BatchTerms``), which are added in a tree of fixed order. Partitions are spread evenly
over the workers, and one task takes those of a thread. Where planes, partitions or threads are
many, each partition has a task, and so has each node of the tree.
Tasks keep nothing between passes and partitions can be made again from what made them, so a
worker that dies changes no bit of the model: what it held is made anew elsewhere.

Many planes travel as an argument of one small task per pass, on which all others depend: known to
the scheduler, unlike scattered data.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from geomix.core import kernel
from geomix.core.objective import BatchTerms
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums, tree_sum
from geomix.estimator import GeometricMixtureClassifier, routed
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture
from geomix.out_of_core.fit import fit_estimator
from geomix.out_of_core.part_reader import PartReader, StoredRows
from geomix.out_of_core.placement import groups_of, spread_evenly
from geomix.out_of_core.sampling import likely_bar
from geomix.out_of_core.survey import RowPart, Survey, survey_part, with_factors
from geomix.search.assembly import FitResult

try:
    import dask
    import distributed
except ImportError as error:
    raise ImportError(
        "geomix.dask needs dask and distributed; install them with pip install 'geomix[dask]'."
    ) from error

__all__ = ["ClusterError", "DaskGeometricMixtureClassifier"]

# A node of the tree adds the sums of this many partitions.
BRANCHES = 16
# Up to this many threads and bytes, the client sends the planes to every thread and adds the sums
# of all partitions itself. More would wait for the client and its network; each step through the
# scheduler takes as long as 50,000 rows.
MOST_GROUPS = 16
MOST_BYTES = 4_000_000
LOOK_EVERY = 1.0  # seconds between checks for workers


class ClusterError(RuntimeError):
    """The cluster cannot finish the work: no workers, data lost, or a worker that failed."""


class DaskGeometricMixtureClassifier:
    """Fit on a Dask cluster; ``predict`` lazily; ``to_local()`` for everything else.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster to work on; None finds the current one.
    worker_timeout : float, default=60
        Seconds without a single worker after which a fit gives up with ``ClusterError``.
    parameters : those of ``GeometricMixtureClassifier`` and of ``Recipe``
        Of these, ``solver="adam"``, ensembles and early stopping need rows in memory.

    Attributes
    ----------
    As a ``GeometricMixtureClassifier`` has them: classes_, model_, history_, n_iter_, ...

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> client = Client("scheduler:8786")  # doctest: +SKIP
    >>> clf = DaskGeometricMixtureClassifier(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> clf.predict_proba(X).compute()  # doctest: +SKIP
    """

    def __init__(
        self, *, client: Any = None, worker_timeout: float = 60.0, **parameters: Any
    ) -> None:
        self.client = client
        self.worker_timeout = worker_timeout
        self._local = GeometricMixtureClassifier(**routed(parameters))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        own = {"client": self.client, "worker_timeout": self.worker_timeout}
        return own | self._local.get_params(deep)

    def set_params(self, **parameters: Any) -> DaskGeometricMixtureClassifier:
        for name in ("client", "worker_timeout"):
            if name in parameters:
                setattr(self, name, parameters.pop(name))
        self._local.set_params(**parameters)
        return self

    def __repr__(self) -> str:
        return f"Dask{self._local!r}"

    def __getattr__(self, name: str) -> Any:
        """What was learnt: ``classes_``, ``model_`` and the like."""
        if name.endswith("_") and not name.startswith("_"):
            return getattr(self._local, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self._local, "model_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DaskGeometricMixtureClassifier:
        """Fit to a Dask array or data frame ``X`` and labels ``y`` with the same partitions.

        An error or Ctrl-C cancels the work on the cluster and leaves the estimator as it was.
        """
        self._local.settings()
        with _Cluster(_client(self.client), float(self.worker_timeout)) as cluster:
            fit_estimator(self._local, DaskSource(cluster, _parts(X, y, sample_weight)))
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, lazily: a Dask array, or a series for a frame."""
        return self._lazily(_predicted, X, one_column=True)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, lazily: a Dask array of (n_rows, n_classes), or a frame."""
        return self._lazily(_probabilities, X, one_column=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, computed now."""
        right = [
            dask.delayed(_n_right)(self._fitted(), part) for part in _parts(X, y, sample_weight)
        ]
        counts = np.array(_client(self.client).compute(right, sync=True))
        return float(counts[:, 0].sum() / counts[:, 1].sum())

    def to_local(self) -> GeometricMixtureClassifier:
        """An ordinary estimator with the same model, which needs no cluster."""
        local = GeometricMixtureClassifier(**self._local.get_params())
        if self.__sklearn_is_fitted__():
            result = FitResult(self.model_, self.history_, self._local._training_state)
            local.take_over(self._local, result)
        return local

    def _fitted(self) -> GeometricMixture:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet.")
        model: GeometricMixture = self.model_
        return model

    def _lazily(self, answer: Callable[..., Any], X: Any, *, one_column: bool) -> Any:
        model = self._fitted()
        classes = model.classes
        dtype = classes.dtype if one_column else np.float64
        if hasattr(X, "map_partitions"):
            import pandas

            model_schema(model).check_names(list(X.columns))
            meta: Any = pandas.DataFrame(columns=classes, dtype=np.float64)
            if one_column:
                meta = pandas.Series([], dtype=dtype)
            return X.map_partitions(_as_frame, answer, dask.delayed(model), meta=meta)
        X = X.rechunk({1: -1})
        shape = {"drop_axis": 1} if one_column else {"chunks": (X.chunks[0], (len(classes),))}
        meta = np.empty((0,) if one_column else (0, 0), dtype=dtype)
        return X.map_blocks(_answered, answer, dask.delayed(model), meta=meta, **shape)


def _client(client: Any) -> Any:
    if client is not None:
        return client
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "No Dask client was found; start one with distributed.Client(...), or pass client=."
        ) from error


# --- partitions ---


def _parts(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """One delayed ``RowPart`` for each partition."""
    columns = [_delayed(X, "X"), _delayed(y, "y")]
    if sample_weight is not None:
        columns.append(_delayed(sample_weight, "sample_weight"))
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise ValueError(
            f"X, y and sample_weight have {counts} partitions; expected as many in each, cut at "
            "the same rows. Rechunk or repartition them in the same way."
        )
    # The name does not depend on the data, so that tokenizing does not read them.
    return [dask.delayed(RowPart, pure=False)(*pieces) for pieces in zip(*columns, strict=True)]


def _delayed(column: Any, name: str) -> list[Any]:
    if hasattr(column, "chunks") and hasattr(column, "rechunk"):
        if column.ndim == 2:
            column = column.rechunk({1: -1})
        return list(column.to_delayed().ravel())
    if hasattr(column, "to_delayed"):
        return list(column.to_delayed())
    raise TypeError(
        f"Got {name} of type {type(column).__name__}; expected a Dask array, data frame or "
        "series. For rows in memory use GeometricMixtureClassifier."
    )


# --- tasks: plain functions, one thread each ---


def _as_is(value: Any) -> Any:
    return value


def _surveyed(
    part: RowPart,
    offset: int,
    seed: int,
    categorical_features: Any,
    factor_of: Mapping[Any, float] | None,
    bar: Any,
) -> Survey:
    with kernel.one_thread():
        weighted = with_factors(part, factor_of)
        return survey_part(weighted, offset, seed, categorical_features, bar)


def _stored(reader: PartReader, part: RowPart) -> StoredRows:
    with kernel.one_thread():
        return reader.stored(part)


def _terms_of_each(
    reader: PartReader, at: tuple[Any, ...], *partitions: StoredRows
) -> list[BatchTerms | None]:
    return [_terms(reader, rows, at) for rows in partitions]


def _terms(reader: PartReader, rows: StoredRows, at: tuple[Any, ...]) -> BatchTerms | None:
    weights, biases, class_start, sharpness, label_smoothing = at
    if len(rows) == 0:
        return None
    planes = Planes(weights, biases, class_start)
    with kernel.one_thread():
        return tree_sum(b.terms(planes, sharpness, label_smoothing) for b in reader.blocks(rows))


def _added(*parts: Any) -> Any:
    there = [part for part in parts if part is not None]
    return tree_sum(there) if there else None


def tree_of(nodes: Sequence[Any], added: Callable[..., Any]) -> Any:
    """The root of a tree whose shape the number of nodes decides."""
    while len(nodes) > 1 or not nodes:
        nodes = [added(*nodes[i : i + BRANCHES]) for i in range(0, len(nodes), BRANCHES)]
    return nodes[0]


def _answered(X: Any, answer: Callable[..., Any], model: GeometricMixture) -> Any:
    with kernel.one_thread():
        return answer(model, X)


def _as_frame(X: Any, answer: Callable[..., Any], model: GeometricMixture) -> Any:
    import pandas

    found = _answered(X, answer, model)
    if found.ndim == 1:
        return pandas.Series(found, index=X.index)
    return pandas.DataFrame(found, index=X.index, columns=model.classes)


def _predicted(model: GeometricMixture, X: Any) -> Any:
    return model.predict(X) if len(X) else model.classes[:0]


def _probabilities(model: GeometricMixture, X: Any) -> Any:
    return model.predict_proba(X) if len(X) else np.empty((0, len(model.classes)))


def _n_right(model: GeometricMixture, part: RowPart) -> tuple[float, float]:
    weight = np.ones(len(part)) if part.weight is None else np.asarray(part.weight, dtype=float)
    weight, y = weight.reshape(-1), np.asarray(part.y).reshape(-1)  # of one column, as fit takes
    right = _answered(part.X, _predicted, model) == y
    return float(weight @ right), float(weight.sum())


# --- the cluster ---


class _Cluster:
    """A client and the futures it has submitted.

    On exit all futures are released, so the scheduler drops every task that nobody else wants,
    also those under way. `Client.cancel` is not used: it ends the connection of the client if a
    task depends on one of its keys and no future for that task is held any more.
    """

    def __init__(self, client: Any, worker_timeout: float) -> None:
        self.client = client
        self.worker_timeout = worker_timeout
        self._submitted: list[Any] = []  # weak references: a future that nobody holds is released

    def __enter__(self) -> _Cluster:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        left = [future for one in self._submitted if (future := one()) is not None]
        # The cluster may be gone, and its futures with it.
        with contextlib.suppress(Exception):
            for future in left:
                future.release()

    def compute(self, delayed: Sequence[Any]) -> list[Any]:
        return self._remember(self.client.compute(list(delayed)))

    def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        futures = self.client.map(function, *map(list, columns), pure=False)
        return self._remember(futures)

    def task(
        self, function: Callable[..., Any], *arguments: Any, preferred: str | None = None
    ) -> Any:
        """preferred : the worker that runs the task while it is there."""
        place = {} if preferred is None else {"workers": preferred, "allow_other_workers": True}
        return self._remember([self.client.submit(function, *arguments, pure=False, **place)])[0]

    def added(self, futures: Sequence[Any]) -> Any:
        """The sum of what the futures will hold."""
        return tree_of(futures, lambda *some: self.task(_added, *some))

    def threads(self) -> dict[str, int]:
        """How many threads each worker has."""
        return dict(self._asked(self.client.nthreads))

    def holders(self, futures: Sequence[Any]) -> list[Sequence[str]]:
        """The workers that hold what each future stands for."""
        found = self._asked(self.client.who_has, futures)
        return [found.get(future.key, ()) for future in futures]

    def _asked(self, question: Callable[..., Any], *about: Any) -> Any:
        try:
            return question(*about)
        except Exception as error:
            raise ClusterError(f"The scheduler does not respond: {error!r}.") from error

    def _remember(self, futures: list[Any]) -> list[Any]:
        self._submitted = [one for one in self._submitted if one() is not None]
        self._submitted += map(weakref.ref, futures)
        return futures

    def result(self, future: Any) -> Any:
        """What the future holds; an error rather than a wait without end."""
        alone_since = None
        while True:
            try:
                return future.result(timeout=LOOK_EVERY)
            except (distributed.CancelledError, distributed.KilledWorker) as error:
                raise self._lost(error) from error
            except Exception as error:
                # Not done in this second, or done just then; or a task has failed.
                if future.status == "error":
                    if isinstance(error, (ValueError, TypeError)):
                        raise  # an error about the data, with its own message
                    raise ClusterError(f"A worker failed with {error!r}.") from error
                if future.status not in ("pending", "finished"):
                    raise self._lost(error) from error
            if self.threads():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > self.worker_timeout:
                raise ClusterError(
                    f"The cluster has had no worker for {self.worker_timeout:g} seconds; start "
                    "workers and fit again, or raise worker_timeout."
                )

    def _lost(self, error: Exception) -> ClusterError:
        if isinstance(error, distributed.KilledWorker):
            return ClusterError(
                "Workers died repeatedly on one partition, probably out of memory; "
                "use smaller partitions or larger workers."
            )
        return ClusterError(
            "Data were lost with a worker and cannot be made again, because they were scattered "
            "and not computed, or the work was cancelled. Build the collection from a file or a "
            "computation, or scatter it again."
        )


class DaskSource:
    """Rows in the partitions of a Dask collection."""

    is_exact = True

    def __init__(self, cluster: _Cluster, delayed: list[Any]) -> None:
        self._cluster = cluster
        self._delayed = delayed
        self._parts: list[Any] = []
        self._lengths: list[int] = []

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey:
        if not self._parts:
            self._compute()
        settings = seed, categorical_features, factor_of
        bar = likely_bar(sum(self._lengths))
        survey = self._surveyed(*settings, bar)
        # Rows without weight are in no sample: where they are many, the others need a higher bar.
        return survey if survey.sample.is_whole_below(bar) else self._surveyed(*settings, None)

    def _surveyed(self, *settings: Any) -> Survey:
        offsets = np.cumsum([0, *self._lengths])[:-1].tolist()
        each = ([one] * len(offsets) for one in settings)
        cluster = self._cluster
        surveys = cluster.map(_surveyed, self._parts, offsets, *each)
        survey: Survey = cluster.result(cluster.added(surveys))
        return survey

    def _compute(self) -> None:
        cluster = self._cluster
        parts = cluster.compute(self._delayed)
        lengths = cluster.result(cluster.task(_listed, *cluster.map(len, parts)))
        there = [(part, n) for part, n in zip(parts, lengths, strict=True) if n]
        if not there:
            raise ValueError("Found no row in any partition.")
        self._parts = [part for part, _ in there]
        self._lengths = [n for _, n in there]

    @contextlib.contextmanager
    def sums(self, reader: PartReader) -> Iterator[Sums]:
        cluster = self._cluster
        threads = cluster.threads()
        places = spread_evenly(self._lengths, cluster.holders(self._parts), threads)
        carried = cluster.task(_as_is, reader)
        stored = [
            cluster.task(_stored, carried, part, preferred=place)
            for part, place in zip(self._parts, places, strict=True)
        ]
        # Once stored, the raw partitions may leave the workers' memory.
        self._parts = []
        yield _DaskSums(cluster, carried, stored, groups_of(places, threads))


class _DaskSums:
    """The sums of all partitions."""

    def __init__(
        self, cluster: _Cluster, reader: Any, stored: list[Any], groups: list[list[int]]
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._stored = stored
        self._groups = groups

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        at = planes.weights, planes.biases, planes.class_start, sharpness, label_smoothing
        n_bytes = len(self._stored) * planes.weights.nbytes
        is_small = n_bytes <= MOST_BYTES and len(self._groups) <= MOST_GROUPS
        total: BatchTerms = self._by_groups(at) if is_small else self._by_partitions(at)
        return total

    def _by_groups(self, at: tuple[Any, ...]) -> Any:
        """One task for each group; the client adds."""
        cluster = self._cluster
        made = [
            cluster.task(_terms_of_each, self._reader, at, *(self._stored[i] for i in group))
            for group in self._groups
        ]
        terms = chain.from_iterable(cluster.result(one) for one in made)
        found = dict(zip(chain.from_iterable(self._groups), terms, strict=True))
        return tree_of([found[i] for i in range(len(found))], _added)

    def _by_partitions(self, at: tuple[Any, ...]) -> Any:
        """One task for each partition and for each node of the tree."""
        cluster, n_parts = self._cluster, len(self._stored)
        carried = cluster.task(_as_is, at)
        each = cluster.map(_terms, [self._reader] * n_parts, self._stored, [carried] * n_parts)
        return cluster.result(cluster.added(each))


def _listed(*values: Any) -> list[Any]:
    return list(values)
