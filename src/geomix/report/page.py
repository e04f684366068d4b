"""Facts become one HTML file that needs nothing else, and that trusts nothing in them.

Names and labels reach the page in two ways: through the template, where Jinja2 escapes them, and
as JSON in a block that no browser runs, with ``<`` written as ``\\u003c`` (so ``>`` and ``&``), so
that no text in it can end the block. The page's policy (Content-Security-Policy) lets exactly the
one script and the one style sheet in it take effect, by their hashes, and forbids the network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

from geomix.report.words import listed, percent
from geomix.table.printing import both_ends, left_to_right, printable, shown

SCRIPTS = (
    "score.js",
    "contributions.js",
    "thresholds.js",
    "certificate.js",
    "draw.js",
    "effects.js",
    "ui.js",
)
MOST_NAMES = 24  # columns named in a line below pictures: a table may have thousands
TEMPLATES = resources.files(__package__).joinpath("templates")


def page(facts: dict[str, Any], live: dict[str, Any] | None) -> str:
    """The HTML of a report; ``live``: what its JavaScript works with, or None for none."""
    script = "" if live is None else script_text()
    style = text_of("report.css")
    template = _environment().get_template("report.html")
    html: str = template.render(
        facts,
        policy=policy(script, style),
        script=script,
        style=style,
        live_json=None if live is None else embedded_json(live),
    )
    return html


def script_text() -> str:
    """All scripts as one, in the order of their use."""
    return "\n".join(['"use strict";', *map(text_of, SCRIPTS)])


def text_of(name: str) -> str:
    return TEMPLATES.joinpath(name).read_text(encoding="utf-8")


def embedded_json(value: Any) -> str:
    """JSON that can stand inside an HTML element: ASCII without markup.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def policy(script: str, style: str) -> str:
    """Nothing may be loaded, and nothing run but this script and this style sheet."""
    scripts = f"'sha256-{_digest(script)}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'sha256-{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "A report is written with Jinja2, which is not installed: pip install 'geomix[report]'"
        ) from error
    loader = jinja2.FunctionLoader(text_of)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["text"] = lambda cell: printable(shown(cell))
    environment.filters["listed"] = lambda names: listed(names, MOST_NAMES)
    environment.filters["percent"] = lambda share: "" if share is None else percent(share)
    environment.filters["interval"] = _interval
    environment.filters["signed"] = _signed
    environment.filters["unbroken"] = _unbroken
    environment.filters["short"] = _shortened
    environment.filters["both_ends"] = both_ends
    environment.filters["figure"] = _figure
    return environment


def _written(value: Any) -> Any:
    """What the template writes; markup stays as it is."""
    return left_to_right(value) if type(value) is str else value


def _interval(ends: tuple[float, float]) -> str:
    """An interval of shares; one text where both ends read the same."""
    low, high = map(percent, ends)
    return low if low == high else f"{low} – {high}"


def _signed(number: float, decimals: int = 2) -> str:
    """With a sign as long as a digit; zero has none."""
    text = f"{number:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")


def _unbroken(condition: str) -> str:
    """A condition whose comparisons stay on one line."""
    text = printable(condition)
    for sign in ("<=", ">=", "<", ">"):
        text = text.replace(f" {sign} ", f"\xa0{sign}\xa0")
    return text


def _shortened(name: Any, most: int = 22) -> str:
    text = printable(str(name))
    return text if len(text) <= most else text[: most - 1] + "…"


def _figure(cell: Any) -> str:
    """A cell as text; numbers with four digits, and without an exponent up to ten million."""
    if not isinstance(cell, float):
        return printable(shown(cell))
    text = f"{cell:.4g}"
    if abs(cell) < 1e7 and (cell == round(cell) or abs(cell) >= 1e4):
        text = f"{cell:.0f}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return text.replace("-", "−")
