"""Deadline: how much of the time that a fit was given has passed.

The clock is an argument, so that a test can hold the hands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

# Choosing may take this share of the time; the rest belongs to the final training.
SHARE_FOR_CHOOSING = 0.5


@dataclass(frozen=True)
class Deadline:
    """``seconds`` from ``start``, by ``clock``."""

    seconds: float
    start: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(seconds, clock(), clock)

    def is_past(self, phase: str) -> bool:
        """Whether the share of ``phase``, "choose" or the final training, is used up."""
        share = SHARE_FOR_CHOOSING if phase == "choose" else 1.0
        return self.clock() - self.start > share * self.seconds
