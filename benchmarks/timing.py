"""Clocks: spans of work on the wall and of the processor, and calls on a machine that is shared."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Span:
    """Seconds on the wall, and of processor time (children included)."""

    wall: float
    cpu: float


def now() -> Span:
    return Span(time.perf_counter(), cpu_seconds())


def since(start: Span) -> Span:
    end = now()
    return Span(end.wall - start.wall, end.cpu - start.cpu)


def cpu_seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def timed(work: Callable[[Any], Any], inputs: Sequence[Any]) -> tuple[list[float], float]:
    """Seconds on the wall of each call, and of processor time of all together."""
    walls, cpu = [], time.process_time()
    for one in inputs:
        start = time.perf_counter()
        work(one)
        walls.append(time.perf_counter() - start)
    return walls, time.process_time() - cpu


def unstretched(wall: float, cpu: float, n_calls: int) -> float:
    """Seconds of a call: a busy machine stretches long calls, where processor time is more exact.

    Its clock may tick as rarely as every 10 ms, so it is used only for much longer spans.
    """
    return min(wall, cpu / n_calls) if cpu >= 0.2 else wall


@dataclass(frozen=True)
class Latency:
    """Seconds of one call: ``mean`` over all on the wall; ``typical`` without interruptions."""

    mean: float
    typical: float
    calls: int


def latency(
    call: Callable[[Any], Any], inputs: Sequence[Any], most_calls: int, most_seconds: float
) -> Latency:
    """Call with each of ``inputs`` in turn, ``most_calls`` times or for ``most_seconds``.

    Five rounds of warm-up come first. Calls are timed in blocks of about a hundredth of the
    whole, so that the clock is not part of a quick call, and ``typical`` is the median of the
    blocks.
    """
    warm = time.perf_counter()
    for one in list(inputs[:5]):
        call(one)
    one_call = (time.perf_counter() - warm) / min(5, len(inputs))
    expected = min(most_calls, most_seconds / max(one_call, 1e-9))
    rows = _in_turn(inputs, max(1, int(expected / 100)))
    for _ in range(4):  # with the round above: five
        for one in rows[:1000]:
            call(one)
    blocks: list[float] = []
    start, cpu = time.perf_counter(), time.process_time()
    while not blocks or (
        len(blocks) * len(rows) < most_calls and time.perf_counter() - start < most_seconds
    ):
        begin = time.perf_counter()
        for one in rows:
            call(one)
        blocks.append((time.perf_counter() - begin) / len(rows))
    calls = len(blocks) * len(rows)
    typical = unstretched(float(np.median(blocks)), time.process_time() - cpu, calls)
    return Latency(float(np.mean(blocks)), typical, calls)


def _in_turn(inputs: Sequence[Any], count: int) -> list[Any]:
    return [inputs[i % len(inputs)] for i in range(count)]
