"""The paper's experiments by one command: every table, ablation, figure, and a verdict per claim.

    python benchmarks/paper [--quick] [--only NAME ...] [--models KEY ...] [--seeds N] [--jobs N]
                            [--fresh] [--times] [--row-seconds S] [--output FOLDER]
                            [--report] [--readme]

Measurements go to ``results.csv`` one by one, so a stopped run goes on where it was; ``--fresh``
measures the selected runs again. Tables (Markdown, LaTeX), figures (PNG, SVG), ``paper.md`` and
``report.html`` are made from that file and, for the figures, from a few models of the first seed.
Every fit has one thread, and ``--jobs`` of them (two) run at a time; times of training are
processor times. ``--only`` takes names of data sets, tables, figures, or one of the words models,
ablations, sensitivity, limits, figures. The small sets (iris, wine, wdbc) have ten seeds.

Quality does not depend on the load of the machine, times do. ``--times`` measures training and one
row again, one fit at a time: the first three seeds of geomix, the first one of its rivals. Times
of other seeds leave the file, so that all times are from that run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from paper import ablations, data, limits, models, results, sensitivity
from paper.measure import Job, run
from paper.results import ABLATIONS, LIMITS, MODELS, SENSITIVITY, Measured, Results, Run

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "benchmarks" / "results" / "paper"
QUICK_OUTPUT = ROOT / "build" / "paper-quick"
SEEDS, SMALL_SEEDS, VARIANT_SEEDS, JOBS = 3, 10, 5, 2
ROW_SECONDS, QUICK_ROW_SECONDS = 1.0, 0.02
TIMES_ROW_SECONDS = 0.5  # keeps --times below ten minutes
QUICK_SETS = ("iris", "moons")
QUICK_MODELS = (*models.OURS, "logistic", "linear_svm", "knn")
QUICK_VARIANTS = 2
PARTS = (MODELS, ABLATIONS, SENSITIVITY, LIMITS)
FIGURES = "figures"


@dataclass(frozen=True)
class Wanted:
    """What ``--only`` and ``--quick`` left: data sets, parts to measure, tables and figures."""

    sets: tuple[str, ...]
    parts: tuple[str, ...]
    tables: tuple[str, ...] | None
    figures: tuple[str, ...]
    quick: bool
    models: tuple[str, ...] = ()


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    wanted = replace(selected(options.only, quick=options.quick), models=options.models)
    path = options.output / "results.csv"
    interrupted = False
    if not options.report:
        try:
            if options.times:
                measure_times(wanted, path)
            else:
                seeds = 1 if options.quick else options.seeds
                jobs = planned(wanted, seeds, options.row_seconds)
                measure_missing(jobs, path, fresh=options.fresh, at_a_time=options.jobs)
                draw(wanted.figures, options.output)
        except KeyboardInterrupt:
            interrupted = True
            print("Stopped; run again without --fresh to go on.", file=sys.stderr)
    show(results.read(path), options.output, wanted.tables, readme=options.readme)
    return 130 if interrupted else 0


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="two small sets, cheap models")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="see above")
    parser.add_argument("--models", nargs="+", default=[], metavar="KEY", help="files of models/")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="seeds 0 .. N - 1")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help="fits at a time")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument(
        "--row-seconds", type=float, default=ROW_SECONDS, metavar="S", help="per path of one row"
    )
    parser.add_argument("--times", action="store_true", help="measure times again, see above")
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    parser.add_argument("--report", action="store_true", help="only make tables and pages")
    parser.add_argument("--readme", action="store_true", help="renew the block in README.md")
    options = parser.parse_args(arguments)
    options.output = options.output or (QUICK_OUTPUT if options.quick else OUTPUT)
    options.models = tuple(options.models)
    for key in options.models:
        if key not in models.every():
            text = f"Got --models {key}; expected {', '.join(models.every())}."
            raise SystemExit(text)
    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise SystemExit(f"Got --{name} {getattr(options, name)}; expected at least 1.")
    return options


def selected(only: list[str], *, quick: bool) -> Wanted:
    from paper.figures import FIGURES as DRAWINGS
    from paper.show import TABLE_KEYS

    known = {"data set": data.every(), "table": TABLE_KEYS, "figure": tuple(DRAWINGS)}
    words = (*PARTS, FIGURES)
    for name in only:
        if name not in words and not any(name in names for names in known.values()):
            text = "; ".join(f"a {kind} ({', '.join(names)})" for kind, names in known.items())
            raise SystemExit(f"Got --only {name}; expected {', '.join(words)}; {text}.")
    sets = tuple(name for name in known["data set"] if name in only) or (
        QUICK_SETS if quick else known["data set"]
    )
    tables = tuple(name for name in TABLE_KEYS if name in only)
    parts = tuple(
        part for part in PARTS if part in only or any(part == part_of(name) for name in tables)
    )
    figures = tuple(name for name in DRAWINGS if name in only or FIGURES in only)
    if not (parts or tables or figures):
        parts, figures = PARTS, tuple(DRAWINGS)
    figures = tuple(name for name in figures if set(DRAWINGS[name].needs) <= set(sets))
    return Wanted(sets, parts, tables or None, figures, quick)


def part_of(table: str) -> str:
    word = table.split("_")[0]
    return word if word in PARTS else MODELS


def planned(wanted: Wanted, seeds: int, row_seconds: float = ROW_SECONDS) -> list[Job]:
    """Seed by seed, the comparison first; one row is timed with the first seed. Small sets have
    at least ``SMALL_SEEDS`` seeds."""
    chosen = QUICK_MODELS if wanted.quick else tuple(models.every())
    keys = available(wanted.models or chosen)
    row_seconds = QUICK_ROW_SECONDS if wanted.quick else row_seconds
    jobs = [
        Job(Run(MODELS, name, key, seed), row_seconds if seed == 0 else 0.0)
        for seed in range(seeds if wanted.quick else max(seeds, SMALL_SEEDS))
        for name in wanted.sets
        if seed < seeds or name in data.SMALL
        for key in keys
        if MODELS in wanted.parts and (name not in data.GLASS_ONLY or key in models.GLASS_BOX)
    ]
    variants = {ABLATIONS: ablations.VARIANTS, SENSITIVITY: sensitivity.VARIANTS}
    for part, changes in variants.items():
        if part in wanted.parts:
            names = list(changes)[: QUICK_VARIANTS if wanted.quick else None]
            jobs += [
                Job(Run(part, name, key, seed), 0.0)
                for seed in range(1 if wanted.quick else max(seeds, VARIANT_SEEDS))
                for name in wanted.sets
                if name in data.ABLATED
                for key in names
            ]
    if LIMITS in wanted.parts and not wanted.quick:
        jobs += [
            Job(Run(LIMITS, name, key, seed), 0.0)
            for seed in range(limits.SEEDS)
            for name in wanted.sets
            if name in limits.SETS
            for key in limits.VARIANTS
        ]
    return jobs


def available(keys: Iterable[str]) -> list[str]:
    """Without the models whose library is missing, which are printed."""
    found = []
    for key in keys:
        lacks = models.get(key).lacks
        if lacks:
            text = f"Left out: {key} needs {', '.join(lacks)}; install the extra 'bench'."
            print(text, file=sys.stderr)
        else:
            found.append(key)
    return found


def measure_missing(jobs: list[Job], path: Path, *, fresh: bool, at_a_time: int) -> None:
    """Run what the file does not have, or has as failed; ``fresh``: what it has, too."""
    known = results.read(path)
    if fresh:
        dropped = {job.run for job in jobs}
        known = Results({one: made for one, made in known.runs.items() if one not in dropped})
        results.write(path, known)
    missing = [job for job in jobs if job.run not in known.runs or not known.runs[job.run].ok]
    # Threads only wait here: every fit is a process of its own.
    pool = ThreadPoolExecutor(at_a_time)
    try:
        waiting = {pool.submit(run, job): job.run for job in missing}
        with tqdm(total=len(missing), file=sys.stderr, unit="fit", disable=None) as bar:
            for done in as_completed(waiting):
                one = waiting[done]
                made = results.measured(done.result(), packages_of(one))
                results.add(path, one, made)
                bar.update()
                bar.set_description(f"{one.dataset}, {one.model}, seed {one.seed}")
                if bar.disable:
                    print(line_of(one, made), file=sys.stderr, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)


def measure_times(wanted: Wanted, path: Path) -> None:
    """Fit and one row again, one at a time; times of other seeds are dropped."""
    keys = available(wanted.models or tuple(models.every()))
    results.write(path, without_times(results.read(path), wanted.sets, keys))
    jobs = [
        Job(Run(MODELS, name, key, seed), TIMES_ROW_SECONDS if seed == 0 else 0.0)
        for seed in range(SEEDS)
        for name in wanted.sets
        for key in keys
        if (seed == 0 or key in models.OURS) and name not in data.GLASS_ONLY
    ]
    measure_missing(jobs, path, fresh=True, at_a_time=1)


def without_times(known: Results, sets: Iterable[str], keys: Iterable[str]) -> Results:
    """The same runs without the times of these models on these sets."""
    again = {(MODELS, name, key) for name in sets for key in keys}
    return Results(
        {
            one: replace(made, values=_without_times(made.values))
            if (one.part, one.dataset, one.model) in again
            else made
            for one, made in known.runs.items()
        }
    )


def _without_times(values: dict[str, float]) -> dict[str, float]:
    return {
        metric: value
        for metric, value in values.items()
        if not metric.endswith("_seconds") and not metric.startswith("row_")
    }


def packages_of(one: Run) -> tuple[str, ...]:
    if one.part == LIMITS:
        return models.get(limits.VARIANTS[one.model][0]).packages
    return models.get(one.model if one.part == MODELS else "geomix_paper").packages


def line_of(one: Run, made: Measured) -> str:
    text = f"{one.part}: {one.dataset}, {one.model}, seed {one.seed}: {made.status}"
    if made.ok:
        text += (
            f", accuracy {made.values['accuracy']:.4f}, {made.values['total_cpu_seconds']:.1f} s"
        )
    return text


def draw(names: tuple[str, ...], output: Path) -> None:
    from threadpoolctl import threadpool_limits

    from paper import figures

    with threadpool_limits(1), tqdm(names, file=sys.stderr, unit="figure", disable=None) as bar:
        for name in bar:
            bar.set_description(name)
            figures.draw(name, output / "figures")


def show(
    found: Results, output: Path, tables: tuple[str, ...] | None, *, readme: bool = False
) -> None:
    from paper import show

    if not found.runs:
        print("Nothing measured yet.")
        return
    written = show.write(found, output, tables)
    if readme:
        show.renew_readme(ROOT / "README.md", found)
    print(written)


if __name__ == "__main__":
    sys.exit(main())
