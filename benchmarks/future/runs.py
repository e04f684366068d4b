"""What the experiments of this folder share: tables, a ledger of runs, and a page of means.

A run is (table, setting, model, seed) and has some figures. Runs that are in the CSV are not
measured again, so a script can be stopped at any time and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCHMARKS))

import ledger  # noqa: E402
from markdown_table import bold, table  # noqa: E402
from suite_tables import read_table  # noqa: E402

DATA = BENCHMARKS.parent.parent / "shared" / "data"
RESULTS = BENCHMARKS / "results" / "future"
KEY = ("table", "setting", "model", "seed")

Run = tuple[str, str, str, int]


def load(name: str, data: Path = DATA) -> tuple[Any, Any]:
    """A table by its name; digits and the paper's sets come with scikit-learn or geomix."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return pd.DataFrame(X, columns=[f"p{j}" for j in range(X.shape[1])]), y
    file = table_file(name, data)
    if not file.exists():
        from geomix import datasets

        found = datasets.load(name)
        return pd.DataFrame(found.X).rename(columns=str), np.asarray(found.y)
    return read_table(file)


def table_file(name: str, data: Path = DATA) -> Path:
    """In the folder of the suite's tables, or in that of its second part."""
    first, second = data / f"{name}.parquet", data / "second" / f"{name}.parquet"
    return second if second.exists() else first


def arguments(
    doc: str, seeds: int, tables: Iterable[str] = (), *, first_seed: int = 0, flag: str = ""
) -> Any:
    """The options that the experiments share; ``--tables`` for those that have several, ``flag``
    for one more."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--first-seed", type=int, default=first_seed, metavar="SEED")
    parser.add_argument("--models", default="", metavar="A,B", help="only these models")
    parser.add_argument("--report", action="store_true", help="only make the page")
    if flag:
        parser.add_argument(flag, action="store_true")
    if tables := ",".join(tables):
        parser.add_argument("--tables", default=tables)
    warnings.simplefilter("ignore")
    return parser.parse_args()


def every_run(options: Any, tables: Iterable[str], models: Iterable[str]) -> list[Run]:
    """Every model (or those of --models) on every table, seed by seed, in one setting."""
    return [
        (name, "-", model, seed)
        for seed in seeds_of(options)
        for name in tables
        for model in chosen(options, models)
    ]


def chosen(options: Any, models: Iterable[str]) -> list[str]:
    """The models that --models names; without it, all."""
    named = options.models.split(",") if options.models else None
    return [model for model in models if named is None or model in named]


def seeds_of(options: Any) -> range:
    return range(options.first_seed, options.first_seed + options.seeds)


def measure(
    path: Path, figures: Sequence[str], wanted: Iterable[Run], run: Callable[..., Sequence[float]]
) -> None:
    """Run what is missing; ``run`` gets the key and returns the figures."""
    header = (*KEY, *figures)
    known = {tuple(line[name] for name in KEY) for line in ledger.read(path)}
    for key in wanted:
        if tuple(map(str, key)) not in known:
            values = run(*key)
            print(*key, *(f"{value:.4f}" for value in values), flush=True)
            ledger.append(path, header, [(*key, *(f"{value:.5f}" for value in values))])


def page(path: Path, title: str, figures: Sequence[str], higher: set[str], about: str) -> None:
    """A Markdown page beside the CSV: for each figure the mean over seeds, the best in bold."""
    frame = pd.read_csv(path)
    lines = [f"# {title}", "", about, ""]
    for figure in figures:
        means = frame.groupby(["table", "setting", "model"], sort=False)[figure].mean().unstack()
        means = means[[m for m in dict.fromkeys(frame["model"]) if m in means]]
        best = means.max(axis=1) if figure in higher else means.min(axis=1)
        body = [
            [" ".join(str(part) for part in key if part != "-")]
            + ["" if np.isnan(v) else bold(f"{v:.4f}", abs(v - best[key]) < 5e-5) for v in values]
            for key, values in zip(means.index, means.to_numpy(), strict=True)
        ]
        lines += [f"## {figure}", "", *table(["table", *means.columns], body), ""]
    seeds = frame.groupby(["table", "setting", "model"])["seed"].nunique()
    lines.append(f"Means over {seeds.min()} to {seeds.max()} seeds.")
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
