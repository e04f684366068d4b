"""Small tables as text, HTML and pandas frames.

A table is a title, headings and rows of cells. Names and labels come from the user's data, so
markup is escaped in HTML and control characters are escaped in text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CELL = 40  # longest text of a cell in a terminal, except in the last column
EXPONENT_ON_AXES = 1e8
READ_WITHIN = 0.01  # of the distance of two ticks: where a text may say that its tick is
EXPONENT_FROM = 1e12  # smaller numbers with five digits and more are written out
# Letters of Hebrew, Arabic and their neighbours, with what stands between them.
_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
RIGHT_TO_LEFT = re.compile(f"{_LETTER}(?:[\\s_-]*{_LETTER})*")


@dataclass(frozen=True)
class SmallTable:
    """A title, headings and rows of cells."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        lines = [self.headings, *(tuple(map(shown, row)) for row in self.rows)]
        cut = [[*map(_short, line[:-1]), printable(line[-1])] for line in lines]
        widths = [max(_width(line[j]) for line in cut) for j in range(len(self.headings))]
        pairs = [zip(line, widths, strict=True) for line in cut]
        body = ["  ".join(_padded(cell, width) for cell, width in pair).rstrip() for pair in pairs]
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
    """A cell as text: numbers with four digits, or all of those before the point; "" for None."""
    if cell is None:
        return ""
    if isinstance(cell, (float, np.floating)):
        return "missing" if np.isnan(cell) else _number(float(cell))
    return str(cell)


def _number(x: float) -> str:
    if not 9999.5 <= abs(x) < EXPONENT_FROM:  # four digits would be 1e+04
        return f"{x:.4g}"
    return f"{x:.2f}".rstrip("0").rstrip(".") if abs(x) < 1e9 else f"{x:.0f}"


def distinct_numbers(places: Sequence[float]) -> list[str]:
    """Numbers as texts for an axis: as short as they can be while each stands where it says."""
    gaps = np.diff(np.unique(np.asarray(places, dtype=np.float64)))
    most_off = READ_WITHIN * float(gaps.min(initial=np.inf))
    has_exponents = any(abs(place) >= EXPONENT_ON_AXES for place in places)
    for digits in range(4, 17):
        texts = [_axis_number(place, digits, has_exponents) for place in places]
        off = [abs(_number_of(text) - place) for text, place in zip(texts, places, strict=True)]
        if not len(gaps) or max(off) <= most_off:
            return texts
    return list(map(str, places))


def _number_of(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _axis_number(x: float, digits: int, has_exponents: bool) -> str:
    """A number of an axis; whole ones of less than five digits, such as years, have no comma."""
    size = abs(x)
    if (has_exponents and size > 0) or 0 < size < 1e-3:
        text = f"{x:.{digits - 1}g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    elif size >= 1000:
        n_decimals = max(digits - len(f"{size:.0f}"), 0) if digits > 4 else 0
        text = f"{x:,.{n_decimals}f}"
        text = text.rstrip("0").rstrip(".") if n_decimals else text
        text = text.replace(",", "") if size < 1e4 or digits > 4 else text
    else:
        text = f"{x:.{digits}g}"
    return text.replace("-", "−")


def both_ends(name: Any, most: int) -> str:
    """A long name without its middle: names that begin alike often differ at their ends."""
    text = printable(str(name))
    first = most // 2
    return text if len(text) <= most else f"{text[:first]}…{text[first + 1 - most :]}"


def left_to_right(text: str) -> str:
    """Text in which a name of a right-to-left script moves no sign or number that follows it.

    Without the mark, "name >= 2" would be shown with its sign and its number before the name.
    """
    return RIGHT_TO_LEFT.sub("\\g<0>\u200e", text)


def printable(text: str) -> str:
    """Text with control characters escaped, so that no name can control the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def _short(text: str) -> str:
    return shortened(printable(text), CELL)


def _width(text: str) -> int:
    """Places of a terminal that a text takes: two for a Chinese letter or an emoji."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


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
