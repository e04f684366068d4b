"""Measurements on disk: a line per data set, model, seed and metric, added run by run.

The last line of a run is its status; a run without one was interrupted and is measured again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conditions
import ledger
import numpy as np

from geomix.core import kernel

HEADER = (
    "part", "dataset", "model", "seed", "metric", "value", "versions", "cpu", "is_native",
)  # fmt: skip
TEXTS = ("status", "chosen")
MODELS, ABLATIONS, SENSITIVITY, LIMITS = "models", "ablations", "sensitivity", "limits"


@dataclass(frozen=True, order=True)
class Run:
    """``part`` is one of the four above; ``model`` a file's name or a variant's."""

    part: str
    dataset: str
    model: str
    seed: int


@dataclass(frozen=True)
class Measured:
    """``values`` is empty unless the status is "ok"."""

    status: str
    values: dict[str, float] = field(default_factory=dict)
    chosen: str = ""
    versions: str = ""
    cpu: str = ""
    is_native: bool = False

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True)
class Results:
    """Runs with their measurements, and the statistics that tables need."""

    runs: dict[Run, Measured]

    def __len__(self) -> int:
        return len(self.runs)

    def by_seed(
        self, dataset: str, model: str, metric: str, part: str = MODELS
    ) -> dict[int, float]:
        return {
            run.seed: made.values[metric]
            for run, made in sorted(self.runs.items(), key=lambda item: item[0])
            if (run.part, run.dataset, run.model) == (part, dataset, model)
            and metric in made.values
        }

    def mean(self, dataset: str, model: str, metric: str, part: str = MODELS) -> float:
        """NaN where nothing was measured."""
        found = list(self.by_seed(dataset, model, metric, part).values())
        return float(np.mean(found)) if found else float("nan")

    def datasets(self, order: tuple[str, ...], part: str = MODELS) -> list[str]:
        seen = {run.dataset for run, made in self.runs.items() if run.part == part and made.ok}
        return [name for name in order if name in seen]

    def models(self, order: tuple[str, ...], part: str = MODELS) -> list[str]:
        seen = {run.model for run, made in self.runs.items() if run.part == part and made.ok}
        return [name for name in order if name in seen]

    def metrics(self, dataset: str, model: str, seed: int, prefix: str) -> dict[str, float]:
        """Metrics that start with ``prefix``, by the rest of their name."""
        made = self.runs.get(Run(MODELS, dataset, model, seed), Measured("absent"))
        return {
            name.removeprefix(prefix): value
            for name, value in made.values.items()
            if name.startswith(prefix)
        }


def read(path: Path) -> Results:
    """Complete runs only; of two for one run the later one holds."""
    runs: dict[Run, Measured] = {}
    open_runs: dict[Run, dict[str, str]] = {}
    for line in ledger.read(path):
        run = Run(line["part"], line["dataset"], line["model"], int(line["seed"]))
        metrics = open_runs.setdefault(run, {})
        metrics[line["metric"]] = line["value"]
        if line["metric"] == "status":
            values = {name: float(text) for name, text in metrics.items() if name not in TEXTS}
            runs[run] = Measured(
                line["value"],
                values,
                metrics.get("chosen", ""),
                line["versions"],
                line["cpu"],
                line["is_native"] == "True",
            )
            del open_runs[run]
    return Results(runs)


def add(path: Path, run: Run, made: Measured) -> None:
    ledger.append(path, HEADER, lines(run, made))


def write(path: Path, results: Results) -> None:
    ledger.replace(
        path,
        HEADER,
        [line for run in sorted(results.runs) for line in lines(run, results.runs[run])],
    )


def lines(run: Run, made: Measured) -> list[list[Any]]:
    metrics: dict[str, str] = {name: f"{value:.6g}" for name, value in made.values.items()}
    metrics |= {"chosen": made.chosen} if made.chosen else {}
    metrics["status"] = made.status
    start = [run.part, run.dataset, run.model, run.seed]
    end = [made.versions, made.cpu, made.is_native]
    return [[*start, metric, value, *end] for metric, value in metrics.items()]


def measured(answer: dict[str, Any], packages: tuple[str, ...]) -> Measured:
    """What a process answered, with the conditions of this machine."""
    return Measured(
        answer["status"],
        {name: float(value) for name, value in answer.get("values", {}).items()},
        answer.get("chosen", ""),
        conditions.versions(packages),
        conditions.processor(),
        kernel.is_native,
    )
