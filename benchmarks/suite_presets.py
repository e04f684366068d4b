"""Each preset of geomix among the ten peers, on both parts of the tables, from the suite's files.

    python benchmarks/suite_presets.py

Reads ``results/suite/suite.csv`` and ``results/suite_second/suite.csv`` (``suite.py`` makes them)
and writes ``results/suite/presets.md``: mean ranks of every preset among the same peers, the ranks
among models that a person can read, duels with EBM, and the sizes of the models.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import peers
from markdown_table import table
from suite_ranks import Ground, common_ground, mean_ranks
from suite_rows import Results, read_rows

RESULTS = Path(__file__).resolve().parent / "results"
PARTS = {"first": RESULTS / "suite", "second": RESULTS / "suite_second"}
PRESETS = {"geomix": "readable", "geomix_accurate": "accurate", "geomix_fast": "fast"}
READABLE = ("ebm", "logistic", "linear_svm")


def main() -> None:
    sections = []
    for name, folder in PARTS.items():
        results = read_rows(folder / "suite.csv")
        sections.append(f"## The {name} part\n\n" + "\n\n".join(section(results)))
    text = "# Presets\n\nMade by `python benchmarks/suite_presets.py`.\n\n" + "\n\n".join(sections)
    (RESULTS / "suite" / "presets.md").write_text(text + "\n")
    print(text)


def section(results: Results) -> list[str]:
    others = [key for key in peers.every() if key not in PRESETS]
    measured = [key for key in PRESETS if any(run.model == key for run in results)]
    parts = [rank_rows(results, measured, others), duels(results, measured)]
    return [*parts, sizes(results, measured)]


def rank_rows(results: Results, measured: list[str], others: list[str]) -> str:
    """Every preset alone among the peers, on the tables and seeds that all of them have."""
    rows = []
    for key in measured:
        ground = common_ground(only(results, [key, *others]), [key, *others])
        cells = [f"{mean_ranks(ground, m)[ground.models.index(key)]:.2f}" for m in METRICS]
        best = {
            m: min((mean_ranks(ground, m)[i], ground.models[i]) for i in peers_of(ground, key))
            for m in METRICS
        }
        leader = ", ".join(f"{best[m][1]} {best[m][0]:.2f}" for m in METRICS)
        few = [key, *(one for one in READABLE if one in others)]
        readable = common_ground(only(results, few), few)
        among = [f"{mean_ranks(readable, m)[readable.models.index(key)]:.2f}" for m in METRICS]
        seen = [f"{len(ground.tables)}", ground.seeds_per_table]
        rows.append([PRESETS[key], *seen, *cells, leader, " / ".join(among)])
    head = [
        "preset", "tables", "seeds", "log-loss rank of 11", "accuracy rank", "best peer",
        "among readable models",
    ]  # fmt: skip
    return "\n".join(table(head, rows))


METRICS = ("log_loss", "accuracy")


def only(results: Results, models: list[str]) -> Results:
    return {run: made for run, made in results.items() if run.model in models}


def peers_of(ground: Ground, key: str) -> list[int]:
    return [i for i, model in enumerate(ground.models) if model != key]


def duels(results: Results, measured: list[str]) -> str:
    """Tables won and lost against EBM by mean log-loss; a table that EBM did not finish is won."""
    rows = []
    for key in measured:
        ground = common_ground(only(results, [key, "ebm"]), [key, "ebm"])
        if "ebm" not in ground.models:
            continue
        means = ground.means("log_loss")
        ours, theirs = (means[:, ground.models.index(one)] for one in (key, "ebm"))
        finished = np.isfinite(theirs)
        won = int((ours < theirs).sum() + (~finished).sum())
        lost = int((ours > theirs).sum())
        ratio = np.exp(np.mean(np.log(ours[finished] / theirs[finished])))
        seen = [str(len(ground.tables)), ground.seeds_per_table, f"{won} : {lost}"]
        rows.append([PRESETS[key], *seen, str(int((~finished).sum())), f"{ratio:.3f}"])
    head = [
        "preset", "tables", "seeds", "won : lost", "EBM not finished",
        "log-loss ratio, geometric mean",
    ]  # fmt: skip
    return "Against EBM:\n\n" + "\n".join(table(head, rows))


def sizes(results: Results, measured: list[str]) -> str:
    rows = []
    for key in measured:
        made = [one for run, one in results.items() if run.model == key and one.ok]
        planes = [[*map(int, found[1].split("+"))] for one in made if (found := planes_in(one))]
        largest = [max(of_fit) for of_fit in planes]
        medians = [f"{np.median(some):g}" for some in (np.concatenate(planes), largest)]
        seconds = [one.values["fit_cpu_seconds"] for one in made]
        times = [f"{np.median(seconds):.1f}", f"{max(seconds):.1f}"]
        rows.append([PRESETS[key], str(len(made)), *medians, str(max(largest)), *times])
    head = [
        "preset", "fits", "planes per class, median", "of the largest class of each fit",
        "largest", "processor seconds, median", "longest",
    ]  # fmt: skip
    return "Size and time:\n\n" + "\n".join(table(head, rows))


def planes_in(made: object) -> re.Match[str] | None:
    return re.search(r"planes (\d[\d+]*)", str(getattr(made, "chosen", "")))


if __name__ == "__main__":
    main()
