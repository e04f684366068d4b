"""Measurements on disk: one line per table, model and seed, added as they are made."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METRICS = (
    "accuracy",
    "log_loss",
    "macro_f1",
    "ece",
    "fit_seconds",
    "fit_cpu_seconds",
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
    if path.exists():
        complete = path.read_text().rpartition("\n")[0]
        for line in csv.DictReader(io.StringIO(complete)):
            run = Run(line["table"], line["model"], int(line["seed"]))
            values = {name: float(line[name]) for name in METRICS if line[name]}
            results[run] = Measured(line["status"], values, line["chosen"], line["versions"])
    return results


def add_row(path: Path, run: Run, made: Measured) -> None:
    """Add one line in one write; what an interruption left of a line is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        text = "" if size else as_line(HEADER)
        if size:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                _drop_last_line(file)
        file.write((text + as_line(cells(run, made))).encode())
        file.flush()
        os.fsync(file.fileno())


def _drop_last_line(file: Any) -> None:
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)


def write_rows(path: Path, results: Results) -> None:
    """Replace the file in one step, so that it is whole at every moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    new.write_text(as_line(HEADER) + "".join(as_line(cells(*one)) for one in results.items()))
    os.replace(new, path)


def cells(run: Run, made: Measured) -> list[str]:
    figures = [f"{made.values[name]:.8g}" if name in made.values else "" for name in METRICS]
    return [run.table, run.model, str(run.seed), made.status, *figures, made.chosen, made.versions]


def as_line(values: Any) -> str:
    """One line of CSV; line breaks in a message become spaces, so that lines stay lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([" ".join(str(v).split()) for v in values])
    return text.getvalue()
