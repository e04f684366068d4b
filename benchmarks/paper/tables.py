"""The tables as facts: what was measured, what the paper has in the same place, who is better.

Every function here turns ``Results`` into ``Table``; ``render`` and ``report`` show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from spread import spread

from geomix.paper import Reported, reported, reported_usage
from paper import bayes, data, limits, models
from paper.differences import Difference, difference, paired
from paper.models import GLASS_BOX, OURS
from paper.results import LIMITS, Results

NOT_IN_MAIN = ("geomix_linear", "gam", "ebm", "mlp_cosine", "rbf_svm_wide")
LATENCY_SEED = DETAIL_SEED = 0
LEVEL_SHARE = 0.1  # where the paper gives no deviation, a tenth is level
BETTER, WORSE, LEVEL = "better", "worse", "level"


@dataclass(frozen=True)
class Cell:
    """``value`` ± ``spread`` as measured, or ``words``; ``paper`` is its figure for the same cell.

    ``best`` of its row among ours; ``standing``: how we stand against ``paper`` (or against the
    row that a table compares with): BETTER, WORSE, LEVEL or "".
    """

    value: float | None = None
    spread: float | None = None
    paper: float | None = None
    digits: int = 3
    percent: bool = False
    signed: bool = False
    words: str = ""
    best: bool = False
    standing: str = ""


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    head: str = "data"
    reference: str = "the paper's figure"


@dataclass(frozen=True)
class Metric:
    """A measured figure that has a table; ``paper`` names the paper's table, if it has one."""

    key: str
    metric: str
    title: str
    note: str
    digits: int
    larger_is_better: bool
    paper: str | None = None


METRICS = (
    Metric("accuracy", "accuracy", "Accuracy", "", 3, True, "accuracy"),
    Metric("macro_f1", "macro_f1", "Macro-F1", "", 3, True, "macro_f1"),
    Metric(
        "train_seconds",
        "fit_cpu_seconds",
        "Training, seconds of the final fit",
        "Processor time on one thread. For geomix and the GMC recipe all of the work: choice of "
        "lift, penalty and planes, refit and calibration. For the rivals the one fit with the "
        "chosen setting; the search is in the next table.",
        3,
        False,
        "train_seconds",
    ),
    Metric(
        "search_seconds",
        "total_cpu_seconds",
        "Training, seconds with the search",
        "Processor time on one thread, with the fits of the grid on the training part.",
        3,
        False,
    ),
    Metric("ece", "ece", "ECE after temperature scaling", "15 equal bins.", 3, False, "ece"),
    Metric(
        "ece_before", "ece_before", "ECE before temperature scaling", "15 equal bins.", 3, False
    ),
    Metric("log_loss", "log_loss", "Log-loss after temperature scaling", "", 3, False),
)


def main_models(results: Results) -> list[str]:
    return [key for key in _model_keys(results) if key not in NOT_IN_MAIN]


def _model_keys(results: Results) -> list[str]:
    return results.models(tuple(models.every()))


def rivals(results: Results) -> list[str]:
    return [key for key in _model_keys(results) if key not in OURS]


def titles(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(models.get(key).name for key in keys)


def data_table(results: Results) -> Table:
    rows = []
    for name in results.datasets(data.names()):
        found = data.load(name)
        counts = (*found.X.shape, len(found.classes))
        cells = [Cell(words=f"{count:,}") for count in counts]
        rows.append((name, (*cells, Cell(words=found.description))))
    return Table(
        "data",
        "Data sets",
        "Split 60/20/20, stratified, once per seed.",
        ("rows", "columns", "classes", "where from"),
        tuple(rows),
    )


def metric_table(
    results: Results, metric: Metric, keys: list[str], sets: list[str] | None = None
) -> Table:
    paper = reported(metric.paper) if metric.paper else {}

    def cell(dataset: str, key: str) -> Cell:
        found = list(results.by_seed(dataset, key, metric.metric).values())
        return against_paper(
            found, paper.get((dataset, models.get(key).paper or "")), metric.digits,
            metric.larger_is_better,
        )  # fmt: skip

    sets = results.datasets(data.names()) if sets is None else sets
    rows = [
        (name, with_best([cell(name, key) for key in keys], metric.larger_is_better))
        for name in sets
    ]
    if metric.metric in ("accuracy", "ece") and len(sets) > 1:
        means = [_mean_cell(results, key, metric, sets) for key in keys]
        rows.append(("mean", with_best(means, metric.larger_is_better)))
    return Table(metric.key, metric.title, metric.note, titles(keys), tuple(rows))


def _mean_cell(results: Results, key: str, metric: Metric, sets: list[str]) -> Cell:
    means = [results.mean(name, key, metric.metric) for name in sets]
    return Cell() if np.isnan(means).any() else Cell(float(np.mean(means)), digits=metric.digits)


def against_paper(
    found: list[float], theirs: Reported | None, digits: int, larger_is_better: bool
) -> Cell:
    paper = theirs.mean if theirs else None
    if not found:
        return Cell(paper=paper, digits=digits)
    mean, deviation = float(np.mean(found)), spread(found)
    standing = ""
    if theirs is not None:
        room = max(deviation, theirs.std or 0.0, 0.5 * 10.0**-digits)
        if theirs.std is None:
            room = max(room, LEVEL_SHARE * theirs.mean)
        standing = standing_of(mean - theirs.mean, room, larger_is_better)
    return Cell(mean, deviation, paper, digits, standing=standing)


def standing_of(ahead: float, room: float, larger_is_better: bool) -> str:
    if abs(ahead) <= room + 1e-12:
        return LEVEL
    return BETTER if (ahead > 0) == larger_is_better else WORSE


def with_best(cells: list[Cell], larger_is_better: bool) -> tuple[Cell, ...]:
    """Every mean that shows the best figure is marked."""
    shown = [None if cell.value is None else round(cell.value, cell.digits) for cell in cells]
    known = [value for value in shown if value is not None]
    if not known:
        return tuple(cells)
    best = (max if larger_is_better else min)(known)
    return tuple(
        replace(cell, best=value == best) for cell, value in zip(cells, shown, strict=True)
    )


ESTIMATOR, SCORER = "estimator", "scorer"
# What a pipeline or an estimator does with a row: checks, scaling, probabilities.
ESTIMATORS = ("estimator.predict_proba", "pipeline.predict_proba")


def one_row(results: Results, dataset: str, key: str, kind: str) -> tuple[str, float] | None:
    """The quickest path of a kind to one row, and its microseconds. A SCORER takes a row that is
    checked and scaled already, an ESTIMATOR takes it as the user has it."""
    found = results.metrics(dataset, key, LATENCY_SEED, "row_us ")
    kept = {path: us for path, us in found.items() if (path in ESTIMATORS) == (kind == ESTIMATOR)}
    return min(kept.items(), key=lambda item: item[1]) if kept else None


LATENCY_NOTES = {
    SCORER: "By the quickest path that takes a row which is checked and scaled already: geomix's "
    "scorer (which scales), a booster's own call, predict_proba of the classifier alone. ",
    ESTIMATOR: "By predict_proba of the estimator or the pipeline, with its checks. ",
}


def latency_table(results: Results, kind: str) -> Table:
    keys, paper = main_models(results), reported("latency_us")
    rows = []
    for name in results.datasets(data.names()):
        cells = []
        for key in keys:
            found = one_row(results, name, key, kind)
            theirs = paper.get((name, models.get(key).paper or ""))
            digits = 2 if found and found[1] < 10 else 0
            cells.append(against_paper([found[1]] if found else [], theirs, digits, False))
        cells = [replace(cell, spread=None) for cell in cells]
        rows.append((name, with_best(cells, False)))
    note = LATENCY_NOTES[kind] + (
        "Warmed up, up to 100,000 calls or a second, one thread. No library answers one row from "
        "Python in the time that the paper reports for it."
    )
    title = f"One row, microseconds: {kind}s against {kind}s"
    return Table(f"latency_{kind}", title, note, titles(keys), tuple(rows))


def paths_table(results: Results) -> Table:
    sets = results.datasets(data.names())
    rows = []
    for key in main_models(results):
        paths = sorted({
            path for name in sets for path in results.metrics(name, key, LATENCY_SEED, "row_us ")
        })  # fmt: skip
        for path in paths:
            found = [results.metrics(n, key, LATENCY_SEED, "row_us ").get(path) for n in sets]
            cells = [
                Cell(value, digits=2 if value is not None and value < 10 else 0) for value in found
            ]
            rows.append((f"{models.get(key).name}: {path}", tuple(cells)))
    note = "A typical call (median of blocks). Mean and number of calls are in results.csv."
    return Table("paths", "One row, by path, microseconds", note, tuple(sets), tuple(rows), "path")


def paired_table(results: Results) -> Table:
    keys = rivals(results)
    rows = []
    for name in results.datasets(data.names()):
        cells = []
        for key in keys:
            found = paired(results, name, "geomix", key, "accuracy")
            if found is None:
                cells.append(Cell())
                continue
            standing = LEVEL
            if not (found.not_ahead and found.not_behind):
                standing = BETTER if found.mean > 0 else WORSE
            half = None if np.isnan(found.half) else found.half
            cells.append(Cell(found.mean, half, signed=True, standing=standing))
        rows.append((name, tuple(cells)))
    note = (
        "Accuracy of geomix minus that of the rival on the same rows: mean ± half of the 95 % "
        "interval over the seeds (Student's t, wide with three). Coloured where the mean is "
        "further from zero than its standard error."
    )
    return Table("paired", "Paired differences in accuracy", note, titles(keys), tuple(rows))


def responsibility_table(
    results: Results, key: str, metric: str, title: str, larger: bool
) -> Table:
    ours, paper = ("geomix_paper", "geomix_linear", "geomix"), reported(metric)
    present = [model for model in ours if model in _model_keys(results)]
    rows = []
    for name in results.datasets(data.names()):
        cells = []
        for model in present:
            found = list(results.by_seed(name, model, metric).values())
            share = results.mean(name, model, "several_planes")
            cells.append(against_paper(found, paper.get((name, "GMC")), 3, larger))
            cells.append(Cell(_planes_per_class(results, name, model), digits=1))
            cells.append(Cell(None if np.isnan(share) else share, percent=True, digits=0))
        rows.append((name, tuple(cells)))
    heads = ("", ": planes per class", ": rows counted")
    columns = [f"{name}{head}" for name in titles(present) for head in heads]
    note = (
        "Over test rows of the classes that have several planes, within the row's own class: one "
        "plane alone always has all of the responsibility. – where no class has several."
    )
    return Table(key, title, note, tuple(columns), tuple(rows))


def _planes_per_class(results: Results, dataset: str, model: str) -> float | None:
    found = results.mean(dataset, model, "n_planes")
    return None if np.isnan(found) else found / len(data.load(dataset).classes)


def usage_table(results: Results, dataset: str) -> Table:
    """Shares of the recipe's planes, largest first, mean over the seeds, beside the paper's."""
    ours: dict[str, list[list[float]]] = {}
    seeds = sorted(results.by_seed(dataset, "geomix_paper", "n_planes"))
    for seed in seeds:
        shares: dict[str, list[float]] = {}
        for name, share in results.metrics(dataset, "geomix_paper", seed, "usage ").items():
            shares.setdefault(name.rsplit(" ", 1)[0], []).append(share)
        for label, own in shares.items():
            ours.setdefault(label, []).append(sorted(own, reverse=True))
    paper = reported_usage(dataset)
    most = [len(own) for found in ours.values() for own in found]
    width = max([*most, *(len(shares) for shares in paper.values())], default=0)
    rows = []
    for label, found in ours.items():
        theirs = sorted(paper.get(int(label), ()), reverse=True)
        pooled = np.array([own + [0.0] * (width - len(own)) for own in found])
        present = np.array([[place < len(own) for place in range(width)] for own in found])
        cells = [
            Cell(
                float(pooled[:, place].mean()) if present[:, place].any() else None,
                paper=theirs[place] if place < len(theirs) else None,
                percent=True,
                digits=0,
            )
            for place in range(width)
        ]
        planes = Cell(float(np.mean([len(own) for own in found])), digits=1)
        rows.append((label, (planes, *cells)))
    columns = ("planes", *(f"plane {place + 1}" for place in range(width)))
    note = (
        f"GMC recipe, mean over {len(seeds)} seeds; share of the class's test rows that the plane "
        "answers for, largest first; a seed without the plane counts as zero. The paper's shares "
        "are over all test rows, and its tables have up to six planes."
    )
    return Table(
        f"usage_{dataset}", f"Usage of planes, {dataset}", note, columns, tuple(rows), "class"
    )


def saliency_table(results: Results, dataset: str = "wdbc") -> Table:
    found = results.metrics(dataset, "geomix_linear", DETAIL_SEED, "weight ")
    usage = results.metrics(dataset, "geomix_linear", DETAIL_SEED, "usage ")
    known = data.load(dataset)
    names = {f"x{place}": column for place, column in enumerate(known.columns)}
    rows = []
    for plane, share in usage.items():
        weights = {
            name.removeprefix(f"{plane} "): weight
            for name, weight in found.items()
            if name.startswith(f"{plane} ")
        }
        if share > 0 and weights:
            code, number = plane.split(" ")
            words = ", ".join(f"{weight:+.2f} {names[one]}" for one, weight in weights.items())
            cells = (Cell(share, percent=True, digits=0), Cell(words=words))
            rows.append((f"{known.classes[int(code)]}, plane {int(number) + 1}", cells))
    note = (
        f"geomix linear, seed {DETAIL_SEED}: the five columns with the largest weight per standard "
        "deviation, with sign, of every plane that answers for a test row of its class."
    )
    columns = ("rows of the class", "strongest columns")
    return Table(
        "saliency", f"What each plane looks at, {dataset}", note, columns, tuple(rows), "plane"
    )


def glass_box_tables(results: Results) -> list[Table]:
    keys = [key for key in GLASS_BOX if key in _model_keys(results)]
    compared = (*data.APPENDIX, *data.GLASS_ONLY)
    sets = [name for name in results.datasets(data.every()) if name in compared]
    terms = (
        "Fewest terms that hold 90 % of the sum of absolute contributions to the score of the "
        "predicted class; mean over test rows. For geomix, columns of the one plane that answered; "
        "a Fourier plane is no sum over columns (–). An EBM's pairs count as one term each."
    )
    specs = (
        Metric(
            "glass_accuracy", "accuracy", "GMC, GAM, EBM: accuracy", "", 3, True, "gam_ebm_accuracy"
        ),
        Metric("glass_ece", "ece", "GMC, GAM, EBM: ECE after scaling", "15 equal bins.", 3, False),
        Metric("glass_terms", "terms", "GMC, GAM, EBM: terms of an explanation", terms, 1, False),
    )
    return [metric_table(results, spec, keys, sets) for spec in specs]


def settings_table(results: Results) -> Table:
    """What each rival's search chose, and in how many seeds."""
    keys = rivals(results)
    rows = []
    for name in results.datasets(data.names()):
        cells = []
        for key in keys:
            chosen = [
                made.chosen
                for run, made in sorted(results.runs.items(), key=lambda item: item[0])
                if (run.part, run.dataset, run.model) == ("models", name, key) and made.chosen
            ]
            counts = Counter(chosen).most_common()
            text = "; ".join(f"{one} ({n})" if n > 1 else one for one, n in counts)
            cells.append(Cell(words=text or "–"))
        rows.append((name, tuple(cells)))
    note = "Chosen on the validation rows; in brackets the number of seeds, where more than one."
    return Table("settings", "What each rival chose", note, titles(keys), tuple(rows))


def bayes_table(results: Results) -> Table:
    """How far every model is from the best possible one, on the same test rows."""
    keys = main_models(results)
    rows = []
    for name in (one for one in results.datasets(data.names()) if one in bayes.DENSITIES):
        cells = [Cell(bayes.RATE[name])]
        for key in keys:
            found = shortfall(results, name, key)
            value = None if found is None else found.mean
            error = None if found is None or found.n < 2 else found.error
            cells.append(Cell(value, error, signed=True))
        rows.append((name, (cells[0], *with_best(cells[1:], True))))
    note = (
        "Accuracy minus that of the best possible classifier on the same test rows: mean ± "
        "standard error over the seeds. First column: the best possible accuracy in the long run; "
        "on the test rows of a seed it differs."
    )
    columns = ("best possible", *titles(keys))
    return Table("bayes", "Distance to the best possible accuracy", note, columns, tuple(rows))


def shortfall(results: Results, dataset: str, key: str) -> Difference | None:
    """Accuracy minus the best possible one, paired by seed; None if nothing was measured."""
    found = results.by_seed(dataset, key, "accuracy")
    gaps = [value - bayes.accuracy(dataset, seed) for seed, value in found.items()]
    return difference(gaps) if gaps else None


def equal_rows_table(results: Results) -> Table:
    """The recipe beside its rivals, all of them fitted on the training rows alone."""
    keys = ["geomix_paper", *rivals(results)]
    rows = []
    for name in results.datasets(data.names()):
        cells = []
        for key in keys:
            metric = "accuracy" if key == "geomix_paper" else "accuracy_on_train"
            found = list(results.by_seed(name, key, metric).values())
            cells.append(against_paper(found, None, 3, True))
        rows.append((name, with_best(cells, True)))
    note = (
        "Everyone is fitted on the same 60 % of the rows, and the validation rows choose, stop and "
        "calibrate: the recipe cannot be refitted on both, so its rivals are not either."
    )
    return Table("equal_rows", "Accuracy on equal rows", note, titles(keys), tuple(rows))


def limit_tables(results: Results) -> list[Table]:
    """Few rows and a rare class: the models that were compared, by data set."""
    few = _limit_table(
        results, "limits_few", "Few rows", limits.FEW, "log_loss",
        "Log-loss after temperature scaling; mean ± deviation over the seeds.", False,
    )  # fmt: skip
    rare = _limit_table(
        results, "limits_rare", "A rare class", limits.RARE, "macro_f1",
        "Macro-F1 on test rows that are as frequent as before; mean ± deviation over the seeds.",
        True,
    )  # fmt: skip
    return [few, rare]


def _limit_table(
    results: Results,
    key: str,
    title: str,
    restrictions: Iterable[str],
    metric: str,
    note: str,
    larger: bool,
) -> Table:
    rows = []
    for name in results.datasets(limits.SETS, LIMITS):
        for restriction in restrictions:
            cells = []
            for model in limits.COMPARED:
                variant = limits.key(model, restriction)
                found = list(results.by_seed(name, variant, metric, LIMITS).values())
                cells.append(against_paper(found, None, 3, larger))
            if any(cell.value is not None for cell in cells):
                rows.append((f"{name}, {restriction}", with_best(cells, larger)))
    return Table(key, title, note, titles(limits.COMPARED), tuple(rows))


def choices_table(results: Results) -> Table:
    rows = []
    for run, made in sorted(results.runs.items(), key=lambda item: item[0]):
        if run.part == "models" and run.model in OURS and made.chosen:
            name = f"{run.dataset}, {models.get(run.model).name}, seed {run.seed}"
            rows.append((name, (Cell(words=made.chosen),)))
    return Table("choices", "What each geomix fit chose", "", ("choice",), tuple(rows), "fit")


Maker = Callable[[Results], list[Table]]


def comparison_tables(results: Results) -> list[Table]:
    keys = main_models(results)
    by_key = {metric.key: metric_table(results, metric, keys) for metric in METRICS}
    responsibilities = [
        responsibility_table(
            results, "responsibility", "max_responsibility", "Largest responsibility", True
        ),
        responsibility_table(
            results, "entropy", "responsibility_entropy", "Entropy of responsibilities", False
        ),
    ]
    detail = results.datasets(data.names())
    usage = [usage_table(results, name) for name in data.APPENDIX if name in detail]
    saliency = [saliency_table(results)] if "wdbc" in detail else []
    return [
        data_table(results),
        by_key["accuracy"],
        paired_table(results),
        equal_rows_table(results),
        bayes_table(results),
        by_key["macro_f1"],
        by_key["train_seconds"],
        by_key["search_seconds"],
        latency_table(results, SCORER),
        latency_table(results, ESTIMATOR),
        paths_table(results),
        by_key["ece"],
        by_key["ece_before"],
        by_key["log_loss"],
        *responsibilities,
        *usage,
        *saliency,
        *glass_box_tables(results),
        settings_table(results),
        choices_table(results),
    ]
