"""The paper's eight data sets: geomix and four peers, measured side by side in one run.

    python benchmarks/paper_sets.py [--data moons wine] [--models geomix LR] [--seeds 0 1 2]

Protocol. Each set is split 60/20/20 into train, validation and test, stratified, once per seed;
the seed also feeds every model. Everyone learns from the same 80 %:

    geomix        the defaults, fitted on train + validation; it holds out its own rows
    geomix-paper  the paper's recipe to the letter: train teaches, validation stops and calibrates
    LR, RBF-SVM,  standardised columns and the paper's grids: each setting is fitted on train, the
    RF, MLP       best on validation (accuracy, then log-loss) is refitted on train + validation

Temperatures come from ``geomix.calibration`` for all: the peers' from the validation rows before
the refit, on log p. RBF-SVM gets its probabilities by cross-validated Platt scaling and its
predictions from the machine itself. scikit-learn's MLP has no cosine schedule; its rate is fixed.

Measurements go to ``paper_sets.csv`` as they are made, so a stopped run goes on where it was;
``--fresh`` measures the selected runs again. ``paper_sets.md`` is rendered from that file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paper_models import MODELS, measure, split_rows
from paper_tables import (
    HERE,
    Measured,
    Results,
    Run,
    conditions,
    read_results,
    render,
    write_results,
)
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from geomix.datasets import NAMES, load

SEEDS = (0, 1, 2)


def measure_missing(runs: list[Run], path: Path, *, fresh: bool) -> Results:
    """Measure the runs that the file does not have, saving each one; ``fresh`` drops them first."""
    results = read_results(path)
    if fresh:
        results = {run: made for run, made in results.items() if run not in runs}
        write_results(path, results)
    missing = [run for run in runs if run not in results]
    with threadpool_limits(1), tqdm(missing, file=sys.stderr, unit="run") as bar:
        for run in bar:
            bar.set_description(f"{run.dataset} {run.model} seed {run.seed}")
            results[run] = measure_run(run)
            write_results(path, results)
    return results


def measure_run(run: Run) -> Measured:
    data = load(run.dataset)
    split = split_rows(data.X, data.y, run.seed)
    outcome = MODELS[run.model](split, run.seed)
    return Measured(measure(outcome, split.y_test), outcome.chosen, conditions())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, metavar="SEED")
    parser.add_argument("--output", type=Path, default=HERE / "results", metavar="FOLDER")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    return parser.parse_args()


def main() -> int:
    wanted = parse_arguments()
    raw = wanted.output / "paper_sets.csv"
    runs = [Run(d, m, s) for d in wanted.data for s in wanted.seeds for m in wanted.models]
    interrupted = False
    try:
        results = measure_missing(runs, raw, fresh=wanted.fresh)
    except KeyboardInterrupt:
        interrupted = True
        results = read_results(raw)
        print("Stopped; run again without --fresh to go on.", file=sys.stderr)
    tables = render(results)
    wanted.output.mkdir(parents=True, exist_ok=True)
    (wanted.output / "paper_sets.md").write_text(tables)
    print(tables)
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
