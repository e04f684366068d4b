"""Waiting for what should happen, so that tests pass on a busy machine and never hang."""

from __future__ import annotations

import time

import psutil

# Seconds until a condition counts as false for good; a passing test never waits that long.
PATIENCE = 300.0


def eventually(condition):
    """Whether the condition comes true before patience runs out."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def has_worked(process, seconds):
    """Whether the process comes to use this much more processor time: the clock that a busy
    machine does not run ahead of."""
    of = psutil.Process(process.pid)

    def used():
        times = of.cpu_times()
        return times.user + times.system

    until = used() + seconds
    return eventually(lambda: used() >= until)
