"""A table to learn from: which columns are numbers, which are text.

The first block tells; a column that later turns out to hold text is read again as such. Rows may
then be held in memory (``read_whole``) or go by block by block (``looked_at``): the kinds are the
same, and so is what ``looks`` refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from geomix.errors import TableFileError
from geomix.tablefile.block import NUMBER, TEXT, Block, TableFile
from geomix.tablefile.column_checks import Looks
from geomix.tablefile.columnar import DATES, NOTHING
from geomix.tablefile.delimited import NotNumbers


class TooManyCells(Exception):
    """A table has more cells than were to be held in memory."""


def read_whole(
    table: TableFile,
    fixed: Mapping[str, str],
    free: Iterable[str],
    *,
    single: bool = False,
    most_cells: int | None = None,
) -> dict[str, Any]:
    """Arrow columns by name: those of ``fixed`` as they are to be, ``free`` ones as they are.

    single : numbers in float32, which takes half the memory
    most_cells : above this ``TooManyCells`` is raised; None: any number
    """
    free = list(free)
    kinds = dict(fixed) | guessed(table, free)
    while True:
        try:
            return _columns(table, kinds, free, single, most_cells)
        except NotNumbers as error:
            kinds = widened(kinds, error, fixed)


def looked_at(table: TableFile, kinds: Mapping[str, str], free: Iterable[str]) -> Iterator[Block]:
    """The blocks of a table, once: what the ``free`` columns look like is told after the last."""
    looks = Looks(table, {name: kinds[name] for name in free})
    for block in table.blocks(kinds):
        looks.add(block)
        yield block
    looks.tell()


def guessed(table: TableFile, free: list[str]) -> dict[str, str]:
    """Kinds of columns, by what the file says of them or by its first block."""
    if table.natural:
        return {name: _natural(table, name) for name in free}
    first = next(table.blocks(dict.fromkeys(free, TEXT)), None)
    if first is None:
        return dict.fromkeys(free, NUMBER)
    return {name: _guess(first.columns[name], table) for name in free}


def widened(
    kinds: Mapping[str, str], error: NotNumbers, fixed: Mapping[str, str]
) -> dict[str, str]:
    """The kinds with columns of text where numbers were expected; raises where they must be."""
    if any(name in fixed for name in error.columns):
        raise error
    return dict(kinds) | dict.fromkeys(error.columns, TEXT)


def _natural(table: TableFile, name: str) -> str:
    kind = table.natural[name]
    if kind == DATES:
        raise TableFileError(
            f"{table.name}, column {name!r}: dates or times; drop it (--drop), or make "
            "numbers of it (a year, an age in days)."
        )
    return NUMBER if kind == NOTHING else kind


def _guess(column: Any, table: TableFile) -> str:
    texts = {text for part in column.chunks for text in part.dictionary.to_pylist()}
    return NUMBER if all(map(table.reads_as_number, texts)) else TEXT


def _columns(
    table: TableFile,
    kinds: Mapping[str, str],
    free: list[str],
    single: bool,
    most_cells: int | None,
) -> dict[str, Any]:
    parts: dict[str, list[Any]] = {name: [] for name in kinds}
    for block in looked_at(table, kinds, free):
        n_cells = (block.first_row + block.n_rows) * len(kinds)
        if most_cells is not None and n_cells > most_cells:
            raise TooManyCells
        for name, column in block.columns.items():
            parts[name].extend((as_single(column) if single else column).chunks)
    return {name: _joined(made, kinds[name]) for name, made in parts.items()}


def as_single(column: Any) -> Any:
    """A column of numbers in float32; another as it is."""
    import pyarrow

    return column.cast(pyarrow.float32()) if pyarrow.types.is_floating(column.type) else column


def _joined(parts: list[Any], kind: str) -> Any:
    import pyarrow

    if not parts:
        empty = pyarrow.float64() if kind == NUMBER else pyarrow.string()
        return pyarrow.chunked_array([], empty)
    column = pyarrow.chunked_array(parts)
    return column.unify_dictionaries() if kind != NUMBER else column
