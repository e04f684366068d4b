"""Everything on one HTML page that needs no other file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from paper import render
from paper.claims import Verdict
from paper.figures import FIGURES
from paper.tables import Table

TEMPLATES = Path(__file__).parent / "templates"
# Which words colour a verdict: good, half, bad, unknown.
TONES = {
    "held": "good",
    "reached": "good",
    "partly held": "half",
    "did not hold": "bad",
    "not reached": "bad",
    "not measured": "none",
}


@dataclass(frozen=True)
class Page:
    """``conditions``: what was measured with what; ``groups``: headings and their tables."""

    conditions: list[str]
    goals: list[Verdict]
    claims: list[Verdict]
    groups: dict[str, list[Table]]
    pictures: dict[str, Path]


def as_html(page: Page) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pictures = [
        (name, FIGURES[name].caption, embedded(path)) for name, path in page.pictures.items()
    ]
    return environment.get_template("report.html").render(
        page=page,
        pictures=pictures,
        tones=TONES,
        figure=render.figure,
        paper_figure=render.paper_figure,
    )


def embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
