"""One fit of one model on one table, in a process of its own, and what is measured of it.

Its fit may use ``cpu_seconds`` of processor time (one thread: on an idle machine that is the
time on the wall) and its memory is bounded; ``apart`` has the process.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apart
import numpy as np
import peers
from apart import OK, limit_memory, limit_processor, peak_bytes
from quality import quality
from suite_tables import Caps, Split, read_table, split
from threadpoolctl import threadpool_limits
from timing import now, since, timed, unstretched

ONE_ROW_CALLS = 200
CPU_SECONDS = 600


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
    return apart.run(measure, job, ["suite_fit", "pandas", "pyarrow.parquet", "sklearn.pipeline"])


def measure(job: Job) -> dict[str, Any]:
    peer = peers.get(job.model)
    versions = peer.versions()
    threadpool_limits(1)  # what was loaded before the variables were set
    data = split(*read_table(job.path), job.seed, job.caps)
    limit_memory(job.memory_bytes)
    limit_processor(job.cpu_seconds)
    start = now()
    model, chosen = peer.fit(data.X_train, data.y_train, job.seed)
    spent, peak = since(start), peak_bytes()
    limit_processor(None)
    P = probabilities(model, data)
    return {
        "status": OK,
        **quality(P, data.y_test),
        "fit_seconds": spent.wall,
        "fit_cpu_seconds": spent.cpu,
        "peak_bytes": peak,
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
