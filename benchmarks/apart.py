"""Work in a process of its own, on one thread, within limits: it always answers, with a status.

The process is a fork of a server that has common libraries loaded and has not computed
anything. What does not keep to its limits ends as "out of time" or "failed: ...", and the run
goes on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

OK, OUT_OF_TIME = "ok", "out of time"
# A busy machine gives a process less than a processor; ten times the limit is a fit that hangs.
WALL_PER_CPU = 10
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GEOMIX_NUM_THREADS")

Answer = dict[str, Any]


class Job(Protocol):
    """What a piece of work needs to have."""

    @property
    def cpu_seconds(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...


def run(work: Callable[[Any], Answer], job: Job, preload: Sequence[str]) -> Answer:
    """``work(job)`` answers with a dict that has a "status"; it calls the limits below itself."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(list(preload))
    answer, end = server.Pipe(duplex=False)
    process = server.Process(target=_work, args=(work, job, end))
    process.start()
    end.close()
    try:
        if not answer.poll(WALL_PER_CPU * job.cpu_seconds):
            return {"status": OUT_OF_TIME}
        measured: Answer = answer.recv()
        process.join(10)
        return measured
    except EOFError:
        process.join()
        return {"status": death(process.exitcode)}
    finally:
        process.kill()
        process.join()


def death(code: int | None) -> str:
    """A process without a result was ended from outside: by its limit, or by a crash."""
    if code is not None and -code == getattr(signal, "SIGXCPU", None):
        return OUT_OF_TIME
    return f"failed: the process ended with exit code {code}"


def _work(work: Callable[[Any], Answer], job: Job, end: Any) -> None:
    try:
        warnings.simplefilter("ignore")
        os.environ.update(dict.fromkeys(THREADS, "1"))
        measured = work(job)
    except MemoryError:
        measured = {"status": f"failed: more than {job.memory_bytes / 2**30:.0f} GB of memory"}
    except Exception as error:
        measured = {"status": f"failed: {type(error).__name__}: {error}"}
    end.send(measured)


def limit_memory(n_bytes: int) -> None:
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def peak_bytes() -> int:
    """The most memory that this process has held at a time; 0 where nobody counts it."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def limit_processor(more: int | None) -> None:
    """The process is ended after this many more seconds of processor time; None: never."""
    with contextlib.suppress(ImportError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = hard if more is None else int(time.process_time()) + more
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
