"""SQL identifiers and literals, written so that no name or value can become code."""

from __future__ import annotations

from typing import Any


def quoted(name: str) -> str:
    """A name as a quoted identifier.

    >>> print(quoted('a"b c'))
    "a""b c"
    """
    if "\0" in name or not name:
        raise ValueError(f"Got the name {name!r}; SQL has no empty names and none with NUL.")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A label or level as a literal."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if "\0" in value:
        raise ValueError(f"Got the text {value!r}; SQL has no text with NUL.")
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """A double: with an exponent, so that no database takes it for a decimal."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text
