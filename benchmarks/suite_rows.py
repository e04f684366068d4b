"""Measurements on disk: one line per table, model and seed, added as they are made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import ledger

METRICS = (
    "accuracy",
    "log_loss",
    "macro_f1",
    "ece",
    "fit_seconds",
    "fit_cpu_seconds",
    "peak_bytes",
    "row_us",
    "batch_us",
    "size_bytes",
    "n_train",
    "n_test",
)
HEADER = ("table", "model", "seed", "status", *METRICS, "chosen", "versions")


@dataclass(frozen=True, order=True)
class Run:
    table: str
    model: str
    seed: int


@dataclass(frozen=True)
class Measured:
    """``values`` is empty unless the status is "ok"."""

    status: str
    values: dict[str, float]
    chosen: str = ""
    versions: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


Results = dict[Run, Measured]


def read_rows(path: Path) -> Results:
    """All complete lines; of two for one run the later one holds."""
    results: Results = {}
    for line in ledger.read(path):
        run = Run(line["table"], line["model"], int(line["seed"]))
        values = {name: float(line[name]) for name in METRICS if line[name]}
        results[run] = Measured(line["status"], values, line["chosen"], line["versions"])
    return results


def add_row(path: Path, run: Run, made: Measured) -> None:
    ledger.append(path, HEADER, [cells(run, made)])


def write_rows(path: Path, results: Results) -> None:
    ledger.replace(path, HEADER, (cells(*one) for one in results.items()))


def cells(run: Run, made: Measured) -> list[str]:
    figures = [f"{made.values[name]:.8g}" if name in made.values else "" for name in METRICS]
    return [run.table, run.model, str(run.seed), made.status, *figures, made.chosen, made.versions]
