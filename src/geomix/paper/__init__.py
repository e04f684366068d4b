"""What the paper reports: its tables as data, to hold our own figures against.

    accuracy, macro_f1, train_seconds, latency_us, ece      data set x model (GMC and eight rivals)
    gam_ebm_accuracy                                        data set x (GMC, GAM, EBM)
    max_responsibility, responsibility_entropy              data set, GMC alone
    plane_usage                                             data set x class x plane, shares

The numbers are those printed in the paper, misprints included: ``gam_ebm_accuracy`` gives the
GMC on moons a deviation of 0.5. Its usage shares are over all test rows of three seeds (they are
multiples of 1/108 on wine), not over the rows of the class, as its text has it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

BY_MODEL = ("accuracy", "macro_f1", "train_seconds", "latency_us", "ece", "gam_ebm_accuracy")
# Tables that share a file: the columns of the mean and of its deviation.
BY_COLUMN = {
    "max_responsibility": ("max_responsibility", "max_std"),
    "responsibility_entropy": ("entropy", "entropy_std"),
}
TABLES = (*BY_MODEL, *BY_COLUMN)


@dataclass(frozen=True)
class Reported:
    """A cell of a table: a mean over three seeds and, where the paper gives it, its deviation."""

    mean: float
    std: float | None = None


def reported(table: str) -> dict[tuple[str, str], Reported]:
    """The paper's figures in one of its tables (``TABLES``), by data set and model.

    Examples
    --------
    >>> reported("accuracy")["moons", "GMC"]
    Reported(mean=0.948, std=0.003)
    """
    if table in BY_COLUMN:
        mean, std = BY_COLUMN[table]
        lines = _lines("responsibility")
        return {(line["dataset"], "GMC"): _cell(line[mean], line[std]) for line in lines}
    if table not in BY_MODEL:
        raise ValueError(f"Got table={table!r}; expected one of {', '.join(map(repr, TABLES))}.")
    return {
        (line["dataset"], line["model"]): _cell(line["mean"], line["std"]) for line in _lines(table)
    }


def reported_usage(dataset: str) -> dict[int, tuple[float, ...]]:
    """Shares of the planes of each class (by code) in the paper's appendix; empty if not there.

    Examples
    --------
    >>> reported_usage("wdbc")
    {0: (0.436, 0.564, 0.0), 1: (0.313, 0.687, 0.0)}
    """
    usage: dict[int, tuple[float, ...]] = {}
    for line in _lines("plane_usage"):
        if line["dataset"] == dataset:
            code = int(line["class"])
            usage[code] = (*usage.get(code, ()), float(line["share"]))
    return usage


def _lines(name: str) -> Iterator[dict[str, str]]:
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


def _cell(mean: str, std: str) -> Reported:
    return Reported(float(mean), float(std) if std else None)
