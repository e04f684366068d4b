"""Tables in Markdown: first column to the left, figures to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [row(header), row(rule), *(row(line) for line in body)]


def bold(text: str, yes: bool) -> str:
    return f"**{text}**" if yes else text
