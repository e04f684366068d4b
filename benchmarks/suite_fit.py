"""One fit of one model on one table, in a process of its own, and what is measured of it.

The process is a fork of a server that has the common libraries loaded and has not computed
anything. Its fit may use ``cpu_seconds`` of processor time (one thread: on an idle machine that
is the time on the wall) and its memory is bounded; what does not keep to that ends as
"out of time" or "failed: ...", and the run goes on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import peers
from sklearn.metrics import accuracy_score, f1_score
from suite_tables import Caps, Split, read_table, split
from threadpoolctl import threadpool_limits

from geomix.calibration import expected_calibration_error

OK, OUT_OF_TIME = "ok", "out of time"
ONE_ROW_CALLS = 200
CPU_SECONDS = 600
# A busy machine gives a process less than a processor; ten times the limit is a fit that hangs.
WALL_PER_CPU = 10


@dataclass(frozen=True)
class Job:
    table: str
    path: Path
    model: str
    seed: int
    caps: Caps
    cpu_seconds: int = CPU_SECONDS
    memory_bytes: int = 12 * 2**30


def run(job: Job) -> dict[str, Any]:
    """Measure in a process of its own; always answers, with a status."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["suite_fit", "pandas", "pyarrow.parquet", "sklearn.pipeline"])
    answer, end = server.Pipe(duplex=False)
    process = server.Process(target=_work, args=(job, end))
    process.start()
    end.close()
    try:
        if not answer.poll(WALL_PER_CPU * job.cpu_seconds):
            return {"status": OUT_OF_TIME}
        measured = answer.recv()
        process.join(10)
        return measured
    except EOFError:
        process.join()
        return {"status": death(process.exitcode)}
    finally:
        process.kill()
        process.join()


def death(code: int | None) -> str:
    """A process that says nothing was ended from outside: by its limit, or by a crash."""
    if code is not None and -code == getattr(signal, "SIGXCPU", None):
        return OUT_OF_TIME
    return f"failed: the process ended with exit code {code}"


def _work(job: Job, end: Any) -> None:
    try:
        warnings.simplefilter("ignore")
        os.environ.update(OMP_NUM_THREADS="1", GEOMIX_NUM_THREADS="1")
        measured = measure(job)
    except MemoryError:
        measured = {"status": f"failed: more than {job.memory_bytes / 2**30:.0f} GB of memory"}
    except Exception as error:
        measured = {"status": f"failed: {type(error).__name__}: {error}"}
    end.send(measured)


def measure(job: Job) -> dict[str, Any]:
    peer = peers.get(job.model)
    versions = peer.versions()
    threadpool_limits(1)  # what was loaded before the variables were set
    data = split(*read_table(job.path), job.seed, job.caps)
    limit_memory(job.memory_bytes)
    limit_processor(job.cpu_seconds)
    wall, cpu = time.perf_counter(), cpu_seconds()
    model, chosen = peer.fit(data.X_train, data.y_train, job.seed)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    limit_processor(None)
    P = probabilities(model, data)
    return {
        "status": OK,
        **quality(P, data.y_test),
        "fit_seconds": wall,
        "fit_cpu_seconds": cpu,
        **speed(model, data.X_test),
        "size_bytes": len(pickle.dumps(model)),
        "n_train": len(data.y_train),
        "n_test": len(data.y_test),
        "chosen": chosen,
        "versions": versions,
    }


def probabilities(model: Any, data: Split) -> Any:
    P = np.asarray(model.predict_proba(data.X_test), float)
    expected = (len(data.y_test), data.n_classes)
    if P.shape != expected or not np.isfinite(P).all():
        raise ValueError(f"Got probabilities of shape {P.shape}; expected {expected}, all finite.")
    return P


def quality(P: Any, y: Any) -> dict[str, float]:
    """Figures of probabilities ``P`` (n_rows, n_classes) against codes ``y``.

    The prediction is the most probable class. Macro-F1 is the mean over the classes that the
    test part has.
    """
    predicted = P.argmax(axis=1)
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "log_loss": log_loss(P, y),
        "macro_f1": float(
            f1_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0.0)
        ),
        "ece": expected_calibration_error(P, y),
    }


def log_loss(P: Any, y: Any) -> float:
    """-mean log p of the true class, p clipped at 1e-15 and made to sum to one again."""
    P = np.clip(P, 1e-15, 1.0)
    return -float(np.log(P[np.arange(len(y)), y] / P.sum(axis=1)).mean())


def speed(model: Any, X: Any) -> dict[str, float]:
    """Microseconds of ``predict_proba``: median of single rows, and per row of the whole frame."""
    rows = [X.iloc[[i % len(X)]] for i in range(ONE_ROW_CALLS)]
    walls, cpu = timed(model.predict_proba, rows)
    single = unstretched(float(np.median(walls)), cpu, len(rows))
    walls, cpu = timed(model.predict_proba, [X])
    if walls[0] < 1.0:
        walls, cpu = timed(model.predict_proba, [X] * 5)
    batch = unstretched(min(walls), cpu, len(walls))
    return {"row_us": 1e6 * single, "batch_us": 1e6 * batch / len(X)}


def timed(work: Any, inputs: list[Any]) -> tuple[list[float], float]:
    """Seconds on the wall of each call, and of processor time of all together."""
    walls, cpu = [], time.process_time()
    for one in inputs:
        start = time.perf_counter()
        work(one)
        walls.append(time.perf_counter() - start)
    return walls, time.process_time() - cpu


def unstretched(wall: float, cpu: float, n_calls: int) -> float:
    """Seconds of a call: a busy machine stretches long calls, where processor time tells more.

    Its clock may tick as rarely as every 10 ms, so it is asked only about much longer spans.
    """
    return min(wall, cpu / n_calls) if cpu >= 0.2 else wall


def cpu_seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def limit_memory(n_bytes: int) -> None:
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def limit_processor(more: int | None) -> None:
    """The process is ended after so many more seconds of processor time; None: never."""
    with contextlib.suppress(ImportError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = hard if more is None else int(time.process_time()) + more
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
