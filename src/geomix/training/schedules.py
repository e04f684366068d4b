"""Schedules as functions of progress in [0, 1]: sharpness and learning rate."""

from __future__ import annotations

import math


def sharpness_at(progress: float, start: float, end: float) -> float:
    """Straight line from ``start`` (soft pooling) to ``end`` (sharp pooling)."""
    return start + (end - start) * min(max(progress, 0.0), 1.0)


def learning_rate_at(progress: float, highest: float, schedule: str) -> float:
    """``"cosine"`` falls to 1 % along half a cosine, ``"exponential"`` to 1 % geometrically,
    ``"constant"`` stays."""
    progress = min(max(progress, 0.0), 1.0)
    if schedule == "cosine":
        return highest * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * progress)))
    if schedule == "exponential":
        return highest * 0.01**progress
    return highest
