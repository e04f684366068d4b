"""Facts about a run of the suite: means over seeds, ranks over tables, wins and losses.

All of them are taken from the same ground: the tables, and for each the seeds, that every model
was measured on. A model that failed or ran out of time on one of those seeds has no figure for
that table (NaN) and is last on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, studentized_range
from spread import standard_error
from suite_rows import Results, Run

LARGER_IS_BETTER = {"log_loss": False, "accuracy": True, "macro_f1": True, "ece": False}


@dataclass(frozen=True)
class Ground:
    """What the models of ``results`` have in common; seeds by table, tables small first."""

    results: Results
    models: list[str]
    seeds: dict[str, list[int]]

    @property
    def tables(self) -> list[str]:
        return list(self.seeds)

    @property
    def seeds_per_table(self) -> str:
        """How many seeds its tables have: "3", or "1–3" where that differs."""
        counts = {len(seeds) for seeds in self.seeds.values()} or {0}
        return "–".join(str(n) for n in sorted({min(counts), max(counts)}))

    def runs(self, table: str, model: str) -> list[Run]:
        return [Run(table, model, seed) for seed in self.seeds[table]]

    def figures(self, table: str, model: str, metric: str) -> list[float]:
        """One figure per seed; none at all unless every seed ended well."""
        made = [self.results[run] for run in self.runs(table, model)]
        return [one.values[metric] for one in made] if all(one.ok for one in made) else []

    def mean(self, table: str, model: str, metric: str) -> float:
        figures = self.figures(table, model, metric)
        return float(np.mean(figures)) if figures else float("nan")

    def means(self, metric: str) -> Any:
        """(n_tables, n_models)"""
        rows = [[self.mean(table, m, metric) for m in self.models] for table in self.tables]
        return np.array(rows, float).reshape(len(self.tables), len(self.models))


def common_ground(results: Results, models: list[str]) -> Ground:
    """``models`` gives their order; those without any row are left out."""
    models = [model for model in models if any(run.model == model for run in results)]
    tables = sorted({run.table for run in results}, key=lambda name: (n_rows(results, name), name))
    found = sorted({run.seed for run in results})
    seeds = {
        table: [s for s in found if all(Run(table, model, s) in results for model in models)]
        for table in tables
    }
    return Ground(results, models, {table: shared for table, shared in seeds.items() if shared})


def n_rows(results: Results, table: str) -> float:
    """How large a table is, by the runs that ended well."""
    made = [made.values for run, made in results.items() if run.table == table and made.ok]
    return max((values["n_train"] + values["n_test"] for values in made), default=0.0)


def ranks(scores: Any, larger_is_better: bool) -> Any:
    """Ranks along the last axis, 1 for the best; ties share the mean of theirs; NaN is last."""
    cost = -scores if larger_is_better else scores
    return rankdata(np.where(np.isnan(cost), np.inf, cost), axis=-1)


def mean_ranks(ground: Ground, metric: str) -> Any:
    """(n_models,)"""
    return ranks(ground.means(metric), LARGER_IS_BETTER[metric]).mean(axis=0)


def place(ground: Ground, table: str, model: str, metric: str) -> int | None:
    """1 for the best on that table; models that are level share the better place."""
    scores = np.array([ground.mean(table, one, metric) for one in ground.models])
    ours = ground.mean(table, model, metric)
    if np.isnan(ours):
        return None
    return 1 + int((scores > ours if LARGER_IS_BETTER[metric] else scores < ours).sum())


def critical_difference(n_models: int, n_tables: int, level: float = 0.05) -> float:
    """Nemenyi: mean ranks that are further apart differ at that level (Demšar 2006).

    CD = q sqrt(k (k + 1) / (6 N)), q the studentised range for k means over sqrt(2).
    """
    q = studentized_range.ppf(1 - level, n_models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_models * (n_models + 1) / (6 * n_tables)))


def verdict(ours: list[float], theirs: list[float], larger_is_better: bool) -> int:
    """1: ours is better; -1: worse; 0: within a standard error of the paired seeds.

    A model without figures loses against one that has them.
    """
    if not ours or not theirs:
        return bool(ours) - bool(theirs)
    gains = [(a - b) if larger_is_better else (b - a) for a, b in zip(ours, theirs, strict=True)]
    # Differences of counts over the same test rows: rounding must not decide a tie.
    if abs(np.mean(gains)) <= standard_error(gains) + 1e-12:
        return 0
    return 1 if np.mean(gains) > 0 else -1


def duel(ground: Ground, ours: str, theirs: str, metric: str) -> tuple[int, int, int]:
    """Tables won, tied and lost, over the seeds that both were measured on."""
    both = common_ground(ground.results, [ours, theirs])
    found = [
        verdict(
            both.figures(table, ours, metric),
            both.figures(table, theirs, metric),
            LARGER_IS_BETTER[metric],
        )
        for table in both.tables
    ]
    return found.count(1), found.count(0), found.count(-1)


def duel_by_mean(ground: Ground, ours: str, theirs: str, metric: str) -> tuple[int, int]:
    """Tables with the better and with the worse mean, whatever the noise, over the same seeds."""
    both = common_ground(ground.results, [ours, theirs])
    found = ranks(both.means(metric), LARGER_IS_BETTER[metric])
    return int((found[:, 0] < found[:, 1]).sum()), int((found[:, 0] > found[:, 1]).sum())


def gap_to_best(ground: Ground, table: str, ours: str, others: list[str]) -> float:
    """Accuracy points by which the best of ``others`` is ahead of ``ours``; NaN without either."""
    best = max((ground.mean(table, one, "accuracy") for one in others), default=float("nan"))
    return 100.0 * (best - ground.mean(table, ours, "accuracy"))
