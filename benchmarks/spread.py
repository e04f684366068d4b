"""How far measurements of several seeds lie apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spread(numbers: Sequence[float]) -> float:
    """Standard deviation of the sample; zero for a single number."""
    return float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0


def standard_error(numbers: Sequence[float]) -> float:
    """Of the mean; infinite for a single number, which says nothing about its error."""
    if len(numbers) < 2:
        return float("inf")
    return spread(numbers) / float(np.sqrt(len(numbers)))
