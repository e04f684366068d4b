"""Paired differences over seeds: the same rows, one model against another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student
from spread import standard_error

from paper.results import MODELS, Results

# Differences of counts over the same test rows: rounding must not decide a tie.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """Mean over the seeds, its standard error (infinite for one seed), and half of its 95 %
    interval (Student's t; NaN for one seed)."""

    mean: float
    error: float
    half: float
    n: int

    @property
    def not_behind(self) -> bool:
        """Ahead, or behind by no more than one standard error."""
        return self.mean >= -self.error - ROUNDING

    @property
    def not_ahead(self) -> bool:
        return self.mean <= self.error + ROUNDING


def difference(numbers: list[float]) -> Difference:
    n = len(numbers)
    error = standard_error(numbers)
    half = float(student.ppf(0.975, n - 1)) * error if n > 1 else float("nan")
    return Difference(float(np.mean(numbers)), error, half, n)


def paired(
    results: Results,
    dataset: str,
    ours: str,
    theirs: str,
    metric: str,
    part: str = MODELS,
    *,
    their_metric: str = "",
) -> Difference | None:
    """``ours`` minus ``theirs`` on the seeds that both have; None if there are none.

    ``their_metric`` is what ``theirs`` is measured by, where that is another one.
    """
    a = results.by_seed(dataset, ours, metric, part)
    b = results.by_seed(dataset, theirs, their_metric or metric, part)
    seeds = sorted(set(a) & set(b))
    return difference([a[seed] - b[seed] for seed in seeds]) if seeds else None
