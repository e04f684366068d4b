"""Facts as Markdown and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import markdown_table

from paper.claims import Verdict
from paper.tables import Cell, Table

MINUS = "−"


def number(value: float, cell: Cell) -> str:
    if cell.percent:
        return f"{value:.{cell.digits}%}"
    if value >= 1000 and not cell.digits:
        return f"{value:,.0f}"
    return f"{value:{'+' if cell.signed else ''}.{cell.digits}f}".replace("-", MINUS)


def figure(cell: Cell) -> str:
    """Value and spread, or words; "–" where there is nothing."""
    if cell.words:
        return cell.words
    if cell.value is None:
        return "–"
    text = number(cell.value, cell)
    if cell.spread is not None:
        text += f" ± {cell.spread:.{cell.digits}f}"
    return text


def paper_figure(cell: Cell) -> str:
    """The paper's figure, with a decimal where ours is rounded to none: its latencies are small."""
    if cell.paper is None:
        return ""
    return number(cell.paper, cell if cell.percent else replace(cell, digits=max(cell.digits, 1)))


def as_markdown(table: Table) -> str:
    def text(cell: Cell) -> str:
        shown = markdown_table.bold(figure(cell), cell.best)
        return f"{shown} ({paper_figure(cell)})" if cell.paper is not None else shown

    body = [[name, *map(text, cells)] for name, cells in table.rows]
    lines = [f"## {table.title}", ""]
    if table.note:
        lines += [table.note, ""]
    return "\n".join([*lines, *markdown_table.table([table.head, *table.columns], body)]) + "\n"


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", MINUS: "$-$", "–": "--",
}  # fmt: skip
SPECIAL = re.compile("|".join(map(re.escape, LATEX)))


def escaped(text: str) -> str:
    return SPECIAL.sub(lambda found: LATEX[found[0]], text)


def as_latex(table: Table) -> str:
    def text(cell: Cell) -> str:
        shown = escaped(figure(cell))
        shown = rf"\textbf{{{shown}}}" if cell.best else shown
        return (
            rf"{shown} {{\scriptsize ({escaped(paper_figure(cell))})}}"
            if cell.paper is not None
            else shown
        )

    words = any(cell.words for _, cells in table.rows for cell in cells)
    columns = "l" + ("l" if words else "r") * len(table.columns)
    lines = [
        "% Needs the package booktabs.",
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\caption{{{escaped(' '.join([table.title + '.', table.note]).strip())}}}",
        rf"\label{{tab:{table.key}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        latex_row(escaped(name) for name in (table.head, *table.columns)),
        r"\midrule",
        *(latex_row([escaped(name), *map(text, cells)]) for name, cells in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_row(cells: object) -> str:
    return " & ".join(cells) + r" \\"  # type: ignore[call-overload]


RENDERERS: dict[str, Callable[[Table], str]] = {".md": as_markdown, ".tex": as_latex}


def verdicts_as_markdown(heading: str, verdicts: list[Verdict]) -> str:
    lines = [f"## {heading}", ""]
    for one in verdicts:
        lines.append(f"- **{one.outcome}**: {one.claim} ({one.source}) {one.evidence}")
    return "\n".join(lines) + "\n"
