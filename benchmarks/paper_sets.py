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
import csv
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import geomix
from geomix import GeometricMixtureClassifier
from geomix.calibration import PRIOR_SCALE, expected_calibration_error, fit_temperature
from geomix.datasets import NAMES, load
from geomix.pooling import softmax

HERE = Path(__file__).parent
PAPER_RESULTS = HERE / "paper_results"
SEEDS = (0, 1, 2)


# --- the protocol -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and codes of the three parts, and of the 80 % that everyone learns from."""

    X_train: Any
    y_train: Any
    X_valid: Any
    y_valid: Any
    X_learn: Any
    y_learn: Any
    X_test: Any
    y_test: Any


def split_rows(X: Any, y: Any, seed: int) -> Split:
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=seed
    )
    X_train, X_valid, y_train, y_valid = train_test_split(
        X_learn, y_learn, test_size=0.25, stratify=y_learn, random_state=seed
    )
    return Split(X_train, y_train, X_valid, y_valid, X_learn, y_learn, X_test, y_test)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model said about the test rows, and what that cost.

    ``before`` and ``after`` are probabilities without and with temperature scaling;
    ``fit_seconds`` is the final fit, ``total_seconds`` includes the search before it.
    """

    predicted: Any
    before: Any
    after: Any
    fit_seconds: float
    total_seconds: float
    chosen: str


def measure(outcome: Outcome, y: Any) -> dict[str, float]:
    codes = np.arange(outcome.after.shape[1])
    return {
        "accuracy": accuracy_score(y, outcome.predicted),
        "macro_f1": f1_score(y, outcome.predicted, average="macro"),
        "log_loss_before": log_loss(y, outcome.before, labels=codes),
        "log_loss": log_loss(y, outcome.after, labels=codes),
        "ece_before": expected_calibration_error(outcome.before, y),
        "ece": expected_calibration_error(outcome.after, y),
        "fit_seconds": outcome.fit_seconds,
        "total_seconds": outcome.total_seconds,
    }


# --- geomix -------------------------------------------------------------------------------


def run_geomix(split: Split, seed: int) -> Outcome:
    clf = GeometricMixtureClassifier(random_state=seed)
    start = time.perf_counter()
    clf.fit(split.X_learn, split.y_learn)
    return geomix_outcome(clf, split, time.perf_counter() - start)


def run_geomix_paper(split: Split, seed: int) -> Outcome:
    clf = GeometricMixtureClassifier.paper(random_state=seed)
    start = time.perf_counter()
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    return geomix_outcome(clf, split, time.perf_counter() - start)


def geomix_outcome(clf: GeometricMixtureClassifier, split: Split, seconds: float) -> Outcome:
    uncalibrated = clf.model_.with_temperature(1.0)
    return Outcome(
        predicted=clf.predict(split.X_test),
        before=uncalibrated.predict_proba(split.X_test),
        after=clf.predict_proba(split.X_test),
        fit_seconds=seconds,
        total_seconds=seconds,
        chosen=describe_geomix(clf),
    )


def describe_geomix(clf: GeometricMixtureClassifier) -> str:
    """The lift and penalty that won, and the planes per class."""
    parts = [clf.model_.lift.kind]
    for trial in clf.history_.trials:
        if trial.chosen:
            parts += [] if trial.gamma_factor is None else [f"gamma x{trial.gamma_factor:g}"]
            parts += [f"l2 {trial.l2:.0e}"]
    planes = "+".join(str(count) for count in clf.n_planes_)
    return " ".join([*parts, f"T {clf.model_.temperature:.2f}", f"planes {planes}"])


# --- the peers: a grid, and how one of its settings becomes a model -----------------------


def most_probable(model: Any, X: Any) -> Any:
    return model.predict(X)


@dataclass(frozen=True)
class Peer:
    """``build(setting, seed, n_rows)`` makes the classifier that follows standardisation."""

    grid: dict[str, list[Any]]
    build: Callable[[dict[str, Any], int, int], Any]
    predict: Callable[[Any, Any], Any] = most_probable

    def run(self, split: Split, seed: int) -> Outcome:
        return run_peer(self, split, seed)


def logistic(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return LogisticRegression(**setting, max_iter=1000)


def rbf_svm(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return CalibratedClassifierCV(SVC(**setting), ensemble=False, cv=5)


def predict_with_machine(model: Any, X: Any) -> Any:
    """The support vector machine's own decision, which Platt scaling may overturn."""
    scaler, calibrated = (step for _, step in model.steps)
    return calibrated.calibrated_classifiers_[0].estimator.predict(scaler.transform(X))


def forest(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return RandomForestClassifier(**setting, random_state=seed)


def perceptron(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return MLPClassifier(
        **setting,
        alpha=1e-4,
        batch_size=min(128, n_rows * 9 // 10),  # early stopping holds out a tenth
        learning_rate_init=1e-3,
        max_iter=100,
        early_stopping=True,
        random_state=seed,
    )


PEERS = {
    "LR": Peer({"C": [0.1, 1.0, 10.0]}, logistic),
    "RBF-SVM": Peer(
        {"C": [1.0, 10.0, 100.0], "gamma": [1e-3, 1e-2, 1e-1]}, rbf_svm, predict_with_machine
    ),
    "RF": Peer({"n_estimators": [200, 400], "max_depth": [None, 12]}, forest),
    "MLP": Peer({"hidden_layer_sizes": [(64,), (128,)]}, perceptron),
}

MODELS: dict[str, Callable[[Split, int], Outcome]] = {
    "geomix": run_geomix,
    "geomix-paper": run_geomix_paper,
    **{name: peer.run for name, peer in PEERS.items()},
}


def run_peer(peer: Peer, split: Split, seed: int) -> Outcome:
    start = time.perf_counter()
    setting, temperature = search(peer, split, seed)
    start_of_fit = time.perf_counter()
    model = fit_peer(peer, setting, split.X_learn, split.y_learn, seed)
    end = time.perf_counter()
    before = model.predict_proba(split.X_test)
    return Outcome(
        predicted=peer.predict(model, split.X_test),
        before=before,
        after=softmax(log_probabilities(before) / temperature),
        fit_seconds=end - start_of_fit,
        total_seconds=end - start,
        chosen=" ".join(f"{key}={value}" for key, value in setting.items()),
    )


def search(peer: Peer, split: Split, seed: int) -> tuple[dict[str, Any], float]:
    """The setting that does best on the validation rows, and the temperature they ask for."""
    best: tuple[tuple[float, float], dict[str, Any], Any] | None = None
    for setting in ParameterGrid(peer.grid):
        model = fit_peer(peer, setting, split.X_train, split.y_train, seed)
        P = model.predict_proba(split.X_valid)
        accuracy = accuracy_score(split.y_valid, peer.predict(model, split.X_valid))
        rank = (accuracy, -log_loss(split.y_valid, P, labels=np.arange(P.shape[1])))
        if best is None or rank > best[0]:
            best = rank, setting, P
    assert best is not None
    _, setting, P = best
    # The prior that geomix uses itself: on 30 validation rows, all right, T would run to zero.
    return setting, fit_temperature(log_probabilities(P), split.y_valid, None, PRIOR_SCALE)


def fit_peer(peer: Peer, setting: dict[str, Any], X: Any, y: Any, seed: int) -> Any:
    model = make_pipeline(StandardScaler(), peer.build(setting, seed, len(y)))
    with warnings.catch_warnings():
        # 100 epochs are the paper's limit, and reaching it is no news.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def log_probabilities(P: Any) -> Any:
    """log p with the floor that scikit-learn's log-loss has: a forest says 0 and 1."""
    return np.log(np.clip(P, np.finfo(float).eps, 1.0))


# --- measurements on disk: one line per data set, model, seed and metric ------------------

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


# --- tables -------------------------------------------------------------------------------


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


# --- command line -------------------------------------------------------------------------


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
