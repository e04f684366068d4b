"""Names of columns that are asked for and may not be there. Nothing is matched by likeness: a near
name is only suggested."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

from geomix.errors import SchemaError

MOST_NAMED = 10


def near(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant."""
    folded = {_folded(one): one for one in known}
    if _folded(name) in folded:
        return folded[_folded(name)]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return close[0] if close else None


def check_present(wanted: Iterable[str], known: Sequence[str], file: str, what: str) -> None:
    """Raise SchemaError with all names of ``wanted`` that ``known`` does not have."""
    there = set(known)
    absent = [name for name in wanted if name not in there]
    if not absent:
        return
    shown = [_shown(name, near(name, known)) for name in absent[:MOST_NAMED]]
    more = len(absent) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more else "")
    columns = "column" if len(absent) == 1 else "columns"
    raise SchemaError(f"{file}: no {columns} {listed}, {what}.")


def _shown(name: str, meant: str | None) -> str:
    hint = "" if meant is None else f" (there is {meant!r})"
    return f"{name!r}{hint}"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip("\ufeff \t").casefold()
