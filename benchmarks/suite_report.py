"""The suite's tables, in Markdown, from the facts in ``suite_ranks``."""

from __future__ import annotations

import numpy as np
from apart import OUT_OF_TIME
from markdown_table import bold, table
from suite_fit import CPU_SECONDS
from suite_ranks import (
    LARGER_IS_BETTER,
    Ground,
    common_ground,
    critical_difference,
    duel,
    duel_by_mean,
    gap_to_best,
    mean_ranks,
    place,
)
from suite_rows import Results

OURS = "geomix"
LINEAR = ("logistic", "linear_svm")
TITLES = {"log_loss": "log-loss", "accuracy": "accuracy", "macro_f1": "macro-F1", "ece": "ECE"}
ECE_ROWS = 1000


def render(results: Results, names: dict[str, str], picture: str) -> str:
    """``names`` maps the models' keys to what tables call them; ``picture`` shows the ranks."""
    ground = common_ground(results, list(names))
    if not ground.tables:
        return "No table is measured by all of the selected models yet.\n"
    sections = [
        heading(ground, names),
        rank_table(ground, names, picture),
        duels(ground, names),
        by_table(ground, names, "log_loss"),
        by_table(ground, names, "accuracy"),
        linear_gaps(ground, names),
        calibration(ground, names),
        costs(ground, names),
        costs_by_table(ground, names, "fit_cpu_seconds", "Processor seconds of a fit", 1.0),
        costs_by_table(ground, names, "peak_bytes", "Peak memory of a fit's process, MB", 1e6),
        endings(ground, names),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def heading(ground: Ground, names: dict[str, str]) -> str:
    unfinished = len({run.table for run in ground.results} - set(ground.tables))
    fits = sum(map(len, ground.seeds.values())) * len(ground.models)
    parts = {p for made in ground.results.values() for p in made.versions.split(", ") if p}
    return "\n".join(
        [
            "# The suite",
            "",
            "Made by `python benchmarks/suite.py`, which describes the protocol; more is in",
            "`benchmarks/README.md`.",
            "",
            f"Models: {len(ground.models)}. Tables: {len(ground.tables)}"
            + (f" ({unfinished} more are not measured by all models yet)" if unfinished else "")
            + f". Seeds: {ground.seeds_per_table}. Fits: {fits:,}.",
            "",
            f"Conditions: one thread; {', '.join(sorted(parts))}.",
        ]
    )


def rank_table(ground: Ground, names: dict[str, str], picture: str) -> str:
    found = {metric: mean_ranks(ground, metric) for metric in TITLES}
    order = np.argsort(found["log_loss"], kind="stable")
    body = []
    for i in order:
        model = ground.models[i]
        lost = sum(not ground.figures(name, model, "log_loss") for name in ground.tables)
        cells = [f"{found[metric][i]:.2f}" for metric in TITLES]
        body.append([bold(names[model], model == OURS), *cells, str(lost or "")])
    lines = ["## Mean ranks", ""]
    lines += table(["model", *TITLES.values(), "tables not finished"], body)
    lines += ["", "1 is best; a model that failed or ran out of time is last on that table."]
    if len(ground.models) > 1:
        apart = critical_difference(len(ground.models), len(ground.tables))
        lines[-1] += f" Ranks further apart than {apart:.2f} differ at the 5 % level (Nemenyi)."
        lines += ["", f"![Mean ranks]({picture})"]
    return "\n".join(lines)


def duels(ground: Ground, names: dict[str, str]) -> str:
    if OURS not in ground.models:
        return ""
    body = [duel_row(ground, names, peer) for peer in ground.models if peer != OURS]
    lines = ["## geomix against each peer: tables won / tied / lost", ""]
    head = ["peer", "tables", "seeds", *TITLES.values(), "log-loss by mean, won : lost"]
    lines += table(head, body)
    lines += [
        "",
        "Each pair is compared on the tables and seeds that both were measured on. Tied: the mean "
        "difference is within one standard error of the paired seeds, which a single seed always "
        "is. By mean: whatever the noise.",
    ]
    return "\n".join(lines)


def duel_row(ground: Ground, names: dict[str, str], peer: str) -> list[str]:
    both = common_ground(ground.results, [OURS, peer])
    won, lost = duel_by_mean(ground, OURS, peer, "log_loss")
    return [
        names[peer],
        str(len(both.tables)),
        both.seeds_per_table,
        *(" / ".join(map(str, duel(ground, OURS, peer, metric))) for metric in TITLES),
        f"{won} : {lost}",
    ]


def by_table(ground: Ground, names: dict[str, str], metric: str) -> str:
    """Means over the seeds, the best in bold, and the place of geomix."""
    with_ours = OURS in ground.models
    body = []
    for name in ground.tables:
        means = [round(ground.mean(name, model, metric), 4) for model in ground.models]
        best = (np.nanmax if LARGER_IS_BETTER[metric] else np.nanmin)(
            [*means, best_of_none(metric)]
        )
        cells = ["–" if np.isnan(one) else bold(f"{one:.4f}", one == best) for one in means]
        body.append([name, *cells, *([place_cell(ground, name, metric)] if with_ours else [])])
    header = ["table", *(names[model] for model in ground.models)]
    lines = [f"## {TITLES[metric].capitalize()}, mean over the seeds", ""]
    return "\n".join([*lines, *table([*header, *(["place"] if with_ours else [])], body)])


def best_of_none(metric: str) -> float:
    return -np.inf if LARGER_IS_BETTER[metric] else np.inf


def place_cell(ground: Ground, name: str, metric: str) -> str:
    found = place(ground, name, OURS, metric)
    return "–" if found is None else str(found)


def linear_gaps(ground: Ground, names: dict[str, str]) -> str:
    others = [model for model in LINEAR if model in ground.models]
    if OURS not in ground.models or not others:
        return ""
    gaps = {name: gap_to_best(ground, name, OURS, others) for name in ground.tables}
    known = {name: gap for name, gap in gaps.items() if not np.isnan(gap)}
    body = [[name, f"{gap:+.2f}"] for name, gap in sorted(known.items(), key=lambda item: -item[1])]
    titles = " and ".join(names[model] for model in others)
    lines = [f"## How far geomix is behind the better of {titles}, in accuracy points", ""]
    return "\n".join([*lines, *table(["table", "behind"], body)])


def calibration(ground: Ground, names: dict[str, str]) -> str:
    """Mean ECE where the test part is large enough for it to mean something."""
    large = [
        name
        for name in ground.tables
        if any(ground.mean(name, model, "n_test") >= ECE_ROWS for model in ground.models)
    ]
    if not large:
        return ""
    found = np.array([[ground.mean(name, m, "ece") for m in ground.models] for name in large])
    by_all = ~np.isnan(found).any(axis=1)
    body = []
    for i, model in enumerate(ground.models):
        own = found[~np.isnan(found[:, i]), i]
        cells = [f"{own.mean():.4f} ({len(own)})" if len(own) else "–"]
        cells += [f"{found[by_all, i].mean():.4f}" if by_all.any() else "–"]
        body.append([names[model], *cells])
    lines = [f"## Mean ECE over the {len(large)} tables with {ECE_ROWS:,} test rows or more", ""]
    header = ["model", "tables it finished (how many)", f"the {by_all.sum()} that all finished"]
    return "\n".join([*lines, *table(header, body)])


def costs(ground: Ground, names: dict[str, str]) -> str:
    body = []
    for model in ground.models:
        runs = [run for name in ground.tables for run in ground.runs(name, model)]
        made = [ground.results[run] for run in runs]
        good = [one.values for one in made if one.ok]
        late = sum(one.status == OUT_OF_TIME for one in made)
        total = sum(values["fit_cpu_seconds"] for values in good) + CPU_SECONDS * late
        medians = [
            f"{np.median([values[metric] for values in good]) / unit:,.4g}" if good else "–"
            for metric, unit in (("row_us", 1), ("batch_us", 1), ("size_bytes", 1e3))
        ]
        body.append([names[model], f"{total:,.0f}", *medians])
    header = ["model", "fit, processor s in total", "one row, us", "batch, us per row", "kB"]
    lines = ["## Cost", "", *table(header, body), ""]
    lines += [
        "Fits include inner splits and searches; one out of time counts "
        f"{CPU_SECONDS} s, a failed one nothing. One row, batch (both `predict_proba` of raw "
        "frames) and the size of the pickle are medians over tables and seeds."
    ]
    return "\n".join(lines)


def costs_by_table(
    ground: Ground, names: dict[str, str], metric: str, title: str, unit: float
) -> str:
    """Means over the seeds."""
    body = [
        [name, *(amount(one / unit) for one in row)]
        for name, row in zip(ground.tables, ground.means(metric), strict=True)
    ]
    header = ["table", *(names[model] for model in ground.models)]
    return "\n".join([f"## {title}", "", *table(header, body)])


def amount(number: float) -> str:
    """Three digits, or as many as a whole number has."""
    if np.isnan(number):
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def endings(ground: Ground, names: dict[str, str]) -> str:
    """What failed or ran out of time, a line per table and model."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in ground.tables:
        for model in ground.models:
            for run in ground.runs(name, model):
                made = ground.results[run]
                if not made.ok:
                    found.setdefault((name, model, made.status), []).append(str(run.seed))
    lines = [
        f"- {name}, {names[model]}, seed {', '.join(seeds)}: {status}"
        for (name, model, status), seeds in found.items()
    ]
    return "\n".join(["## Not finished", "", *lines]) if lines else ""
