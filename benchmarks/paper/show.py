"""Results into files: each table as Markdown and LaTeX, all as ``paper.md`` and ``report.html``."""

from __future__ import annotations

from pathlib import Path

import markdown_table
import numpy as np
from spread import spread

from geomix.paper import reported
from paper import claims, data, goals, models, render
from paper.concepts import concept_table
from paper.figures import FIGURES
from paper.report import Page, as_html
from paper.results import MODELS, Results
from paper.tables import METRICS, Table, comparison_tables, limit_tables, rivals
from paper.variants import ablation_tables, sensitivity_tables

HEADINGS = {
    "Accuracy": ("data", "accuracy", "paired", "equal_rows", "bayes", "macro_f1"),
    "Calibration": ("ece", "ece_before", "log_loss"),
    "Cost": ("train_seconds", "search_seconds", "latency_scorer", "latency_estimator", "paths"),
    "Planes": (
        "responsibility",
        "entropy",
        *(f"usage_{name}" for name in data.APPENDIX),
        "saliency",
    ),
    "Glass boxes": ("glass_accuracy", "glass_ece", "glass_terms"),
    "Ablations": tuple(f"ablations_{name}" for name in data.ABLATED),
    "Sensitivity": tuple(f"sensitivity_{name}" for name in data.ABLATED),
    "Limits": ("limits_few", "limits_rare"),
    "Families": ("concepts",),
    "Choices": ("settings", "choices"),
}
TABLE_KEYS = tuple(key for keys in HEADINGS.values() for key in keys)
assert {metric.key for metric in METRICS} <= set(TABLE_KEYS)
START, END = "<!-- results:start -->", "<!-- results:end -->"


def write(results: Results, output: Path, only: tuple[str, ...] | None) -> str:
    """Write every table (or ``only`` some) and both pages; answers with what was found."""
    tables = all_tables(results)
    folder = output / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for key, table in tables.items():
        if only is None or key in only:
            for suffix, rendered in render.RENDERERS.items():
                (folder / f"{key}{suffix}").write_text(rendered(table))
    page = page_of(results, tables, output)
    (output / "report.html").write_text(as_html(page))
    (output / "paper.md").write_text(as_markdown(page))
    shown = [render.as_markdown(tables[key]) for key in only or ("accuracy",) if key in tables]
    return "\n".join([*shown, verdicts(page), f"All of it: {output / 'report.html'}"])


def all_tables(results: Results) -> dict[str, Table]:
    """Tables that have rows, by key."""
    found = ablation_tables(results) + sensitivity_tables(results) + limit_tables(results)
    if results.datasets(data.names()):
        found = [*comparison_tables(results), *found, concept_table(results)]
    return {table.key: table for table in found if table.rows and table.columns}


def page_of(results: Results, tables: dict[str, Table], output: Path) -> Page:
    pictures = {name: output / "figures" / f"{name}.png" for name in FIGURES}
    compared = bool(results.datasets(data.names()))
    return Page(
        conditions(results),
        goals.judge(results) if compared else [],
        claims.judge(results) if compared else [],
        {
            heading: [tables[key] for key in keys if key in tables]
            for heading, keys in HEADINGS.items()
        },
        {name: path for name, path in pictures.items() if path.exists()},
    )


def conditions(results: Results) -> list[str]:
    made = list(results.runs.values())
    timed = [
        one.values
        for run, one in results.runs.items()
        if run.part == MODELS and "total_seconds" in one.values
    ]
    wall, cpu = (sum(values[key] for values in timed)
                 for key in ("total_seconds", "total_cpu_seconds"))  # fmt: skip
    versions = sorted({part for one in made for part in one.versions.split(", ") if part})
    kernels = sorted({"native" if one.is_native else "NumPy" for one in made})
    counts = {part: len({run.seed for run in results.runs if run.part == part})
              for part in dict.fromkeys(run.part for run in results.runs)}  # fmt: skip
    lines = [
        f"Processor: {'; '.join(sorted({one.cpu for one in made}))}. One thread for every fit.",
        f"Kernel of geomix: {', '.join(kernels)}. {', '.join(versions)}.",
        f"Fits: {len(made):,}. Seeds: "
        + ", ".join(f"{part} {count}" for part, count in counts.items())
        + ".",
        f"Times are of {len(timed):,} fits, which took {cpu:,.0f} s of the processor and "
        f"{wall:,.0f} s on the wall"
        + (": the machine was shared" if wall > 1.1 * cpu else "")
        + ". Tables of training time show processor time.",
    ]
    return lines + [
        f"Not finished: {run.part}, {run.dataset}, {run.model}, seed {run.seed}: {one.status}"
        for run, one in results.runs.items()
        if not one.ok
    ]


def verdicts(page: Page) -> str:
    return "\n".join(
        render.verdicts_as_markdown(heading, found)
        for heading, found in {"Goals": page.goals, "The paper's claims": page.claims}.items()
        if found
    )


def as_markdown(page: Page) -> str:
    parts = [
        "# The paper's experiments, made again\n",
        "Made by `python benchmarks/paper`, which describes the protocol; the same with colours\n"
        "and figures is `report.html`. Mean ± standard deviation over the seeds, best of the row\n"
        "in bold, the paper's figure in brackets.\n",
        "\n".join(f"- {line}" for line in page.conditions) + "\n",
        verdicts(page),
        *(render.as_markdown(table) for tables in page.groups.values() for table in tables),
        *(f"![{FIGURES[name].caption}](figures/{name}.png)\n" for name in page.pictures),
    ]
    return "\n".join(parts)


def renew_readme(path: Path, results: Results) -> None:
    """Put the summary between the markers."""
    text = path.read_text()
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"Got {path} without the markers {START} and {END}; expected both.")
    path.write_text(f"{before}{START}\n{summary(results)}\n{END}{after}")


def summary(results: Results) -> str:
    """Accuracy of ours, of the best rival and of the paper's GMC, and how we stand."""
    paper = reported("accuracy")
    body = []
    for name in results.datasets(data.names()):
        means = {key: results.mean(name, key, "accuracy") for key in rivals(results)}
        best = max((key for key in means if not np.isnan(means[key])), key=means.__getitem__)
        theirs = paper.get((name, "GMC"))
        keys = ("geomix", "geomix_paper", best)
        shown = [mean_and_spread(results, name, key) for key in keys]
        top = max(results.mean(name, key, "accuracy") for key in keys)
        shown = [
            markdown_table.bold(text, round(results.mean(name, key, "accuracy") - top, 4) == 0)
            for key, text in zip(keys, shown, strict=True)
        ]
        shown[2] += f" {models.get(best).name}"
        body.append(
            [name, *shown, "" if theirs is None else f"{theirs.mean:.3f} ± {theirs.std:.3f}"]
        )
    header = [
        "data",
        "geomix",
        "GMC recipe",
        f"best of {len(rivals(results))} rivals",
        "the paper's GMC",
    ]
    lines = [
        "Accuracy (best measured in bold; the last column is what the paper reports):",
        "",
        *markdown_table.table(header, body),
        "",
        *(f"- {one.claim} **{one.outcome.capitalize()}**: {one.evidence}"
          for one in goals.judge(results)[:5]),
    ]  # fmt: skip
    return "\n".join(lines)


def mean_and_spread(results: Results, dataset: str, key: str) -> str:
    found = list(results.by_seed(dataset, key, "accuracy").values())
    return f"{np.mean(found):.4f} ± {spread(found):.4f}" if found else "–"
