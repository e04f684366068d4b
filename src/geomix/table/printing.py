"""Small tables as text, HTML and pandas frames.

A table is a title, headings and rows of cells. Names and labels come from the user's data, so
markup is escaped in HTML and control characters are escaped in text.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CELL = 40  # longest text of a cell in a terminal, except in the last column


@dataclass(frozen=True)
class SmallTable:
    """A title, headings and rows of cells."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        lines = [self.headings, *(tuple(map(shown, row)) for row in self.rows)]
        cut = [[*map(_short, line[:-1]), printable(line[-1])] for line in lines]
        widths = [max(len(line[j]) for line in cut) for j in range(len(self.headings))]
        pairs = [zip(line, widths, strict=True) for line in cut]
        body = ["  ".join(cell.ljust(width) for cell, width in pair).rstrip() for pair in pairs]
        return "\n".join([printable(self.title), *("  " + line for line in body)])

    def to_html(self) -> str:
        """A ``<table>`` with everything escaped."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(shown(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Facts:
    """A title and a few named facts: what an object shows of itself."""

    title: str
    facts: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        lines = (f"  {name}: {printable(shown(fact))}" for name, fact in self.facts)
        return "\n".join([printable(self.title), *lines])

    def to_html(self) -> str:
        """A ``<table>`` with everything escaped."""
        caption = f"<caption>{html.escape(self.title)}</caption>"
        body = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(shown(fact))}</td></tr>"
            for name, fact in self.facts
        )
        return f'<div class="geomix-facts"><table>{caption}<tbody>{body}</tbody></table></div>'


def some(names: Sequence[Any], n: int = 5) -> str:
    """The first of many names, and how many more there are."""
    first = ", ".join(shortened(str(name), CELL) for name in names[:n])
    return first if len(names) <= n else f"{first} and {len(names) - n} more"


def shortened(text: str, n: int) -> str:
    """Text of at most ``n`` characters."""
    return text if len(text) <= n else text[: n - 3] + "..."


def shown(cell: Any) -> str:
    """A cell as text: numbers with four digits, "" for None."""
    if cell is None:
        return ""
    if isinstance(cell, (float, np.floating)):
        return "missing" if np.isnan(cell) else f"{cell:.4g}"
    return str(cell)


def printable(text: str) -> str:
    """Text with control characters escaped, so that no name can control the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def _short(text: str) -> str:
    return shortened(printable(text), CELL)


def html_of(name: str, tables: Sequence[SmallTable]) -> str:
    """Several tables as one HTML fragment."""
    inside = "".join(table.to_html() for table in tables)
    return f'<div class="geomix-{name}">{inside}</div>'


def frame_of(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> Any:
    """Records as a pandas frame with these columns."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_frame() makes a pandas frame, and pandas is not installed: pip install pandas. "
            "to_dict() has the same facts."
        ) from error
    return pandas.DataFrame(list(records), columns=list(columns))


def plain(value: Any) -> Any:
    """A value for JSON: NumPy numbers and arrays as Python objects, NaN as None."""
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
