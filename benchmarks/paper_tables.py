"""Measurements on disk (one line per data set, model, seed and metric), and tables of them."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import sklearn
from paper_models import MODELS, PEERS

import geomix
from geomix.datasets import NAMES, load

HERE = Path(__file__).parent
PAPER_RESULTS = HERE / "paper_results"

HEADER = ("dataset", "model", "seed", "metric", "value", "chosen", "conditions")


@dataclass(frozen=True, order=True)
class Run:
    dataset: str
    model: str
    seed: int


@dataclass(frozen=True)
class Measured:
    values: dict[str, float]
    chosen: str
    conditions: str


Results = dict[Run, Measured]


def read_results(path: Path) -> Results:
    """Complete runs only: what a killed process left half written is measured again."""
    results: Results = {}
    if path.exists():
        with path.open(newline="") as file:
            for line in csv.DictReader(file):
                if line["conditions"] is None:
                    continue
                run = Run(line["dataset"], line["model"], int(line["seed"]))
                made = results.setdefault(run, Measured({}, line["chosen"], line["conditions"]))
                made.values[line["metric"]] = float(line["value"])
    return {run: made for run, made in results.items() if set(made.values) == set(METRICS)}


def write_results(path: Path, results: Results) -> None:
    """Replace the file in one step, so that it is whole at every moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    with new.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for run, made in sorted(results.items(), key=lambda item: item[0]):
            for metric in METRICS:
                value = f"{made.values[metric]:.6g}"
                key = (run.dataset, run.model, run.seed)
                writer.writerow([*key, metric, value, made.chosen, made.conditions])
    os.replace(new, path)


def conditions() -> str:
    versions = {
        "geomix": geomix.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return ", ".join([*(f"{name} {number}" for name, number in versions.items()), "1 thread"])


@dataclass(frozen=True)
class Table:
    """How one metric is shown. ``paper`` names the file of the paper's figures, if any."""

    metric: str
    title: str
    digits: int
    larger_is_better: bool
    paper: str | None = None


TABLES = (
    Table("accuracy", "Accuracy", 4, True, "accuracy"),
    Table("macro_f1", "Macro-F1", 4, True, "macro_f1"),
    Table("log_loss", "Log-loss after temperature scaling", 4, False),
    Table("log_loss_before", "Log-loss before temperature scaling", 4, False),
    Table("ece", "ECE after temperature scaling (15 bins)", 4, False, "ece"),
    Table("ece_before", "ECE before temperature scaling (15 bins)", 4, False),
    Table("fit_seconds", "Seconds of the final fit (geomix: of everything)", 2, False),
    Table("total_seconds", "Seconds with the search", 2, False, "train_seconds"),
)
METRICS = tuple(table.metric for table in TABLES)


def render(results: Results) -> str:
    if not results:
        return "Nothing measured yet.\n"
    sections = [render_heading(results), render_comparison(results)]
    sections += [render_table(table, results) for table in TABLES]
    sections.append(render_choices(results))
    return "\n\n".join(sections) + "\n"


def render_heading(results: Results) -> str:
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in results}))
    made_with = sorted({made.conditions for made in results.values()})
    return "\n".join(
        [
            "# The paper's data sets",
            "",
            "Made by `python benchmarks/paper_sets.py`, which describes the protocol (stratified",
            f"60/20/20, seeds {seeds}; mean ± standard deviation over the seeds; best measured",
            "mean in bold; the paper's own GMC beside ours).",
            "",
            *(f"Conditions: {line}." for line in made_with),
            "",
            *(f"- {name}: {load(name).description}" for name in datasets_of(results)),
        ]
    )


def render_table(table: Table, results: Results) -> str:
    models = models_of(results)
    paper = read_paper(table.paper)
    header = ["data", *models, *(["paper's GMC"] if paper else [])]
    lines = [f"## {table.title}", "", row(header), row(["---"] * len(header))]
    for dataset in datasets_of(results):
        cells = summary_cells(table, [values(results, dataset, m, table.metric) for m in models])
        lines.append(row([dataset, *cells, *([paper.get(dataset, "")] if paper else [])]))
    return "\n".join(lines)


def summary_cells(table: Table, columns: list[list[float]]) -> list[str]:
    """Mean ± std of each column; every mean that shows the best figure is bold."""
    means = [round(float(np.mean(column)), table.digits) for column in columns if column]
    best = (max if table.larger_is_better else min)(means)
    cells = []
    for column in columns:
        if not column:
            cells.append("")
            continue
        mean = float(np.mean(column))
        text = f"{mean:.{table.digits}f} ± {spread(column):.{table.digits}f}"
        cells.append(f"**{text}**" if round(mean, table.digits) == best else text)
    return cells


def render_comparison(results: Results) -> str:
    """geomix minus the best peer in accuracy, on the seeds that both were measured on."""
    lines = ["## geomix against the best peer (accuracy)", ""]
    header = ["data", "best peer", "geomix minus best peer", "standard error", "seed by seed", ""]
    lines += [row(header), row(["---"] * len(header))]
    level = not_below = n_compared = 0
    for dataset in datasets_of(results):
        found = compare(results, dataset)
        if found is None:
            continue
        peer, differences = found
        mean, error = float(np.mean(differences)), standard_error(differences)
        # Differences of counts over the same test rows: rounding must not decide a tie.
        good = mean >= -error - 1e-9
        level += good
        not_below += mean >= -1e-9
        n_compared += 1
        by_seed = ", ".join(f"{difference:+.4f}" for difference in differences)
        verdict = ("ahead" if mean > 1e-9 else "level") if good else "behind"
        lines.append(row([dataset, peer, f"{mean:+.4f}", f"{error:.4f}", by_seed, verdict]))
    count = (
        "level with or ahead of the best peer (within one standard error of the paired "
        f"difference) on {level} of {n_compared}; mean at least the best peer's on {not_below}"
    )
    return "\n".join([*lines, "", count])


def compare(results: Results, dataset: str) -> tuple[str, list[float]] | None:
    seeds = sorted(r.seed for r in results if (r.dataset, r.model) == (dataset, "geomix"))
    scores = {
        peer: [results[Run(dataset, peer, seed)].values["accuracy"] for seed in seeds]
        for peer in PEERS
        if seeds and all(Run(dataset, peer, seed) in results for seed in seeds)
    }
    if not scores:
        return None
    best = max(scores, key=lambda peer: float(np.mean(scores[peer])))
    ours = [results[Run(dataset, "geomix", seed)].values["accuracy"] for seed in seeds]
    return best, [a - b for a, b in zip(ours, scores[best], strict=True)]


def render_choices(results: Results) -> str:
    lines = ["## What each geomix fit chose", ""]
    ours = sorted(run for run in results if run.model == "geomix")
    lines += [f"- {run.dataset} seed {run.seed}: {results[run].chosen}" for run in ours]
    return "\n".join(lines)


def read_paper(name: str | None) -> dict[str, str]:
    """The paper's GMC figures by data set, as text."""
    if name is None:
        return {}
    with (PAPER_RESULTS / f"{name}.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["model"] == "GMC"]
    return {
        line["dataset"]: line["mean"] + (f" ± {line['std']}" if line["std"] else "")
        for line in lines
    }


def values(results: Results, dataset: str, model: str, metric: str) -> list[float]:
    return [
        made.values[metric]
        for run, made in sorted(results.items(), key=lambda item: item[0])
        if (run.dataset, run.model) == (dataset, model)
    ]


def spread(numbers: list[float]) -> float:
    return float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0


def standard_error(numbers: list[float]) -> float:
    return spread(numbers) / float(np.sqrt(len(numbers)))


def datasets_of(results: Results) -> list[str]:
    return [name for name in NAMES if any(run.dataset == name for run in results)]


def models_of(results: Results) -> list[str]:
    return [name for name in MODELS if any(run.model == name for run in results)]


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
