"""geomix and ten peers on a folder of real tables: quality, speed and size, in one run.

    python benchmarks/suite.py [--data FOLDER] [--tables a,b] [--models a,b] [--seeds N]
                               [--output FOLDER] [--fresh] [--openml ID ...]
                               [--report] [--quick] [--full]

Protocol. Each table is split 80/20, stratified, once per seed (0, 1, 2); all models get the same
at most 10,000 training rows and 20,000 test rows, as a raw frame with categories and missing
values. What a model does about those, and about its settings, is part of its fit and of its
time; ``benchmarks/peers`` has one file per model. Everything runs on one thread. A fit that
needs more than ten minutes of processor time is "out of time", and counts as last.

Measurements go to ``suite.csv`` one by one, so a stopped run goes on where it was; ``--fresh``
measures the selected runs again. ``suite.md`` and the plot of ranks are made from that file,
``--report`` makes only those. ``--full`` is the same without caps on rows, in ``full.csv``, for
the speed on large tables.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import peers
from apart import OUT_OF_TIME
from suite_fit import Job, run
from suite_plot import draw_ranks
from suite_report import render
from suite_rows import METRICS, Measured, Results, Run, add_row, read_rows, write_rows
from suite_tables import Caps, Table, fetch_openml_table, find_tables
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
OUTPUT = ROOT / "benchmarks" / "results" / "suite"
QUICK_OUTPUT = ROOT / "build" / "suite-quick"
QUICK_MODELS = ("geomix", "logistic", "linear_svm", "knn")


def main(arguments: list[str] | None = None) -> int:
    wanted = parse_arguments(arguments)
    models = chosen_models(wanted.models)
    path = wanted.output / ("full.csv" if wanted.full else "suite.csv")
    interrupted = False
    if not wanted.report:
        tables = chosen_tables(wanted)
        jobs = planned(tables, models, wanted.seeds, full=wanted.full)
        try:
            measure_missing(jobs, path, fresh=wanted.fresh)
        except KeyboardInterrupt:
            interrupted = True
            print("Stopped; run again without --fresh to go on.", file=sys.stderr)
    report(path, read_rows(path), models, wanted.tables)
    return 130 if interrupted else 0


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("--tables", type=names, metavar="A,B", help="default: all of the folder")
    parser.add_argument("--models", type=names, metavar="A,B", help="default: all installed")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds 0 .. N - 1")
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--openml", type=int, nargs="+", metavar="ID", help="instead of --data")
    parser.add_argument("--report", action="store_true", help="only make the tables and the plot")
    parser.add_argument("--quick", action="store_true", help="two small tables, cheap models")
    parser.add_argument("--full", action="store_true", help="no caps on rows; for speed")
    wanted = parser.parse_args(arguments)
    if wanted.quick:
        wanted.seeds, wanted.models = 1, wanted.models or list(QUICK_MODELS)
    wanted.output = wanted.output or (QUICK_OUTPUT if wanted.quick else OUTPUT)
    return wanted


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def chosen_models(keys: list[str] | None) -> dict[str, peers.Peer]:
    """The models by key; those whose library is missing are left out, or refused if named."""
    known = peers.every()
    unknown = set(keys or ()) - set(known)
    if unknown:
        expected = ", ".join(known)
        raise SystemExit(f"Got --models {', '.join(sorted(unknown))}; expected some of {expected}.")
    lacking = {key: peer.lacks for key, peer in known.items() if peer.lacks}
    for key in lacking:
        if keys is None or key in keys:
            text = f"{key} needs {', '.join(lacking[key])}; install the extra 'bench'."
            if keys is not None:
                raise SystemExit(text)
            print(f"Left out: {text}", file=sys.stderr)
    return {
        key: peer
        for key, peer in known.items()
        if key not in lacking and (keys is None or key in keys)
    }


def chosen_tables(wanted: argparse.Namespace) -> list[Table]:
    """Smallest first."""
    folder = wanted.data
    if wanted.openml:
        folder = wanted.output / "openml"
        fetched = {fetch_openml_table(number, folder).stem for number in wanted.openml}
        tables = [table for table in find_tables(folder) if table.name in fetched]
    else:
        tables = find_tables(folder)
    if wanted.tables is not None:
        unknown = set(wanted.tables) - {table.name for table in tables}
        if unknown:
            expected = ", ".join(table.name for table in tables)
            raise SystemExit(f"Got --tables {', '.join(sorted(unknown))}; expected {expected}.")
        tables = [table for table in tables if table.name in wanted.tables]
    return tables[:2] if wanted.quick else tables


def planned(
    tables: list[Table], models: dict[str, peers.Peer], seeds: int, *, full: bool
) -> list[Job]:
    """Seed by seed: the cheap models on all tables, then the expensive ones."""
    caps = Caps(None, None) if full else Caps()
    return [
        Job(table.name, table.path, key, seed, caps)
        for seed in range(seeds)
        for expensive in (False, True)
        for table in tables
        for key, peer in models.items()
        if peer.expensive == expensive
    ]


def measure_missing(jobs: list[Job], path: Path, *, fresh: bool) -> None:
    """Run what the file does not have, adding a line for each; ``fresh`` drops them first."""
    results = read_rows(path)
    if fresh:
        dropped = {run_of(job) for job in jobs}
        results = {one: made for one, made in results.items() if one not in dropped}
        write_rows(path, results)
    missing = [job for job in jobs if run_of(job) not in results]
    with tqdm(missing, file=sys.stderr, unit="fit", disable=None) as bar:
        for job in bar:
            bar.set_description(f"{job.table} {job.model} seed {job.seed}")
            late = out_of_time_before(job, results)
            made = Measured(OUT_OF_TIME, {}, late) if late else measured(run(job))
            results[run_of(job)] = made
            add_row(path, run_of(job), made)
            if bar.disable:
                print(line_of(job, made), file=sys.stderr, flush=True)


def run_of(job: Job) -> Run:
    return Run(job.table, job.model, job.seed)


def out_of_time_before(job: Job, results: Results) -> str:
    """A model that ran out of time with one seed is last on that table; others cannot help it."""
    late = [
        one.seed
        for one, made in results.items()
        if (one.table, one.model) == (job.table, job.model) and made.status == OUT_OF_TIME
    ]
    return f"not run: out of time with seed {late[0]}" if late else ""


def measured(answer: dict[str, object]) -> Measured:
    values = {name: float(str(answer[name])) for name in METRICS if name in answer}
    texts = (str(answer.get(name, "")) for name in ("chosen", "versions"))
    return Measured(str(answer["status"]), values, *texts)


def line_of(job: Job, made: Measured) -> str:
    text = f"{job.table} {job.model} seed {job.seed}: {made.status}"
    if made.ok:
        found = made.values
        text += (
            f", accuracy {found['accuracy']:.4f}, log-loss {found['log_loss']:.4f}, "
            f"{found['fit_cpu_seconds']:.1f} s, {made.chosen}"
        )
    return text


def report(
    path: Path, results: Results, models: dict[str, peers.Peer], tables: list[str] | None
) -> None:
    """Tables and plot of the selected models and tables."""
    results = {
        one: made
        for one, made in results.items()
        if one.model in models and (tables is None or one.table in tables)
    }
    titles = {key: peer.name for key, peer in models.items()}
    picture = path.with_name(f"{path.stem}_ranks.svg")
    text = render(results, titles, picture.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(text)
    draw_ranks(results, titles, picture)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
