"""Errors for columns that a file has twice or not at all, with the nearest name suggested."""

from __future__ import annotations

import collections
import difflib
import unicodedata
from collections.abc import Iterable, Sequence

from geomix.errors import SchemaError, TableFileError

MOST_NAMED = 10


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that is most similar, or None."""
    folded = {_folded(one): one for one in known}
    if _folded(name) in folded:
        return folded[_folded(name)]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None


def check_unique(names: Sequence[str], file: str) -> None:
    repeated = [one for one, count in collections.Counter(names).items() if count > 1]
    if repeated:
        raise TableFileError(
            f"{file}: column names must be unique; repeated ones are {repeated[:5]!r}."
        )


def check_present(wanted: Iterable[str], known: Sequence[str], file: str, what: str) -> None:
    """Raise SchemaError if some ``wanted`` names are not ``known``; ``what`` describes them."""
    there = set(known)
    absent = [name for name in wanted if name not in there]
    if not absent:
        return
    shown = [_shown(name, nearest(name, known)) for name in absent[:MOST_NAMED]]
    more = len(absent) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more else "")
    columns = "column" if len(absent) == 1 else "columns"
    message = f"{file}: no {columns} {listed}, {what}"
    if all(nearest(name, known) is None for name in absent):
        message += f"; its columns are {first_few(known)}"
    raise SchemaError(f"{message}.")


def first_few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(map(repr, names[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def _shown(name: str, meant: str | None) -> str:
    hint = "" if meant is None else f" (did you mean {meant!r}?)"
    return f"{name!r}{hint}"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip("\ufeff \t").casefold()
