"""Fits side by side on threads: native code releases the interpreter, so they use several cores.

Results come in the order of the work, whatever finished first, and each fit is the same whether it
runs alone or beside others. So the model is the same for any ``n_jobs``.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from geomix.core import kernel

Item = TypeVar("Item")
Result = TypeVar("Result")

# Counted operations (``search/cost.py``) of a fit from which a thread of its own pays.
SMALLEST_WORK = 2e7


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: None and -1 are all processors, -2 all but one; one
    inside work that runs in parallel already."""
    most = kernel.thread_limit() or _n_processors()
    if n_jobs is None:
        return most
    return min(n_jobs, most) if n_jobs > 0 else max(most + 1 + n_jobs, 1)


def _n_processors() -> int:
    """Those of this process, or GEOMIX_NUM_THREADS."""
    wanted = os.environ.get("GEOMIX_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def in_order(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> Generator[Result, None, None]:
    """``work`` of each item in turn, the next ones begun on other threads.

    Passes inside an item have one thread; those of the last items, where fewer are left than
    there are threads, have several. Where the caller stops early, what had begun is awaited and
    its result dropped.
    """
    if threads < 2 or len(items) < 2:
        yield from map(work, items)
        return
    n_last = len(items) % threads

    def alone(numbered: tuple[int, Item]) -> Result:
        position, item = numbered
        is_last = position >= len(items) - n_last
        with kernel.at_most_threads(threads // n_last if is_last else 1):
            return work(item)

    waiting: deque[Future[Result]] = deque()
    left = iter(enumerate(items))
    try:
        while _begin(alone, left, waiting, threads):
            yield waiting.popleft().result()
    finally:
        wait(waiting)


def _begin(
    work: Callable[[Any], Any], left: Iterator[Any], waiting: deque[Future[Any]], most: int
) -> bool:
    """Begin work until ``most`` results are awaited; whether there are any."""
    while len(waiting) < most and (item := next(left, None)) is not None:
        waiting.append(_begun(work, item))
    return bool(waiting)


def _begun(work: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Work on a thread of its own, or here where the system refuses to start one."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work(item))
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="geomix fit").start()
    except RuntimeError:  # "can't start new thread"
        run()
    return future
