"""Tables of the ablations and of the sweeps, one per data set, each against the recipe itself."""

from __future__ import annotations

from spread import spread

from paper import ablations, data, sensitivity
from paper.ablations import EITHER, FOURIER, LINEAR, RECIPE
from paper.differences import paired
from paper.results import ABLATIONS, SENSITIVITY, Results
from paper.tables import BETTER, LEVEL, WORSE, Cell, Table

FIGURES = {"accuracy": ("accuracy", True), "macro_f1": ("macro-F1", True), "ece": ("ECE", False)}
# The values of the sweeps that are the recipe itself.
CENTRES = {"final sharpness": "6", "lambda": "1e-04", "beta": "0.5", "planes": "auto, at most 4"}
NOTE = (
    "Mean ± deviation over the seeds. Coloured where the paired difference to the recipe of the "
    "same lift is larger than its standard error."
)


def ablation_tables(results: Results) -> list[Table]:
    return [ablation_table(results, name) for name in results.datasets(data.names(), ABLATIONS)]


def ablation_table(results: Results, dataset: str) -> Table:
    lifts = (EITHER, LINEAR)
    rows = [
        (change, tuple(c for lift in lifts for c in cells(results, dataset, change, lift)))
        for change in ablations.CHANGES
    ]
    fourier = cells(results, dataset, RECIPE, FOURIER)
    plain = cells(results, dataset, RECIPE, LINEAR, against=ablations.key(RECIPE, EITHER))
    empty = (Cell(),) * len(FIGURES)
    rows[1:1] = [("Fourier off", (*plain, *empty)), ("Fourier on", (*fourier, *empty))]
    columns = tuple(f"{title}, {lift}" for lift in lifts for title, _ in FIGURES.values())
    title = f"Ablations, {dataset}"
    return Table(
        f"ablations_{dataset}", title, NOTE, columns, tuple(rows), "change", "the recipe's"
    )


def cells(
    results: Results, dataset: str, change: str, lift: str, against: str | None = None
) -> tuple[Cell, ...]:
    base = against or ablations.key(RECIPE, EITHER if lift == FOURIER else lift)
    return variant_cells(results, dataset, ablations.key(change, lift), base, ABLATIONS)


def variant_cells(
    results: Results, dataset: str, key: str, base: str, part: str
) -> tuple[Cell, ...]:
    return tuple(
        variant_cell(results, dataset, key, base, part, metric, larger)
        for metric, (_, larger) in FIGURES.items()
    )


def variant_cell(
    results: Results, dataset: str, key: str, base: str, part: str, metric: str, larger: bool
) -> Cell:
    found = list(results.by_seed(dataset, key, metric, part).values())
    if not found:
        return Cell()
    change = paired(results, dataset, key, base, metric, part)
    standing = ""
    if change is not None and key != base:
        standing = LEVEL
        if not (change.not_ahead and change.not_behind):
            standing = BETTER if (change.mean > 0) == larger else WORSE
    return Cell(sum(found) / len(found), spread(found), standing=standing)


def sensitivity_tables(results: Results) -> list[Table]:
    return [
        sensitivity_table(results, name) for name in results.datasets(data.names(), SENSITIVITY)
    ]


def sensitivity_table(results: Results, dataset: str) -> Table:
    rows = []
    for sweep, values in sensitivity.SWEEPS.items():
        base = sensitivity.key(sweep, CENTRES[sweep])
        for value in values:
            key = sensitivity.key(sweep, value)
            rows.append((key, variant_cells(results, dataset, key, base, SENSITIVITY)))
    columns = tuple(title for title, _ in FIGURES.values())
    title = f"Sensitivity, {dataset}"
    return Table(
        f"sensitivity_{dataset}", title, NOTE, columns, tuple(rows), "setting", "the recipe's"
    )
