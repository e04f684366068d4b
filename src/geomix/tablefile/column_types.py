"""Which columns of a training table are numbers and which are text.

Kinds are guessed from the first block. If a later block has text in a column of numbers, the table
is read again with that column as text. ``read_columns`` reads a table into memory;
``checked_blocks`` reads it block by block. Both give the same kinds and the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from geomix.errors import TableFileError
from geomix.tablefile.block import NUMBER, TEXT, Block, TableFile
from geomix.tablefile.column_checks import ColumnChecks
from geomix.tablefile.columnar import DATES, NULL
from geomix.tablefile.delimited import NotNumbers


class TooManyCells(Exception):
    """A table has more cells than ``most_cells``."""


def read_columns(
    table: TableFile,
    fixed: Mapping[str, str],
    free: Iterable[str],
    *,
    single: bool = False,
    most_cells: int | None = None,
) -> dict[str, Any]:
    """Arrow columns by name: ``fixed`` gives the kinds of some, those of ``free`` are guessed.

    single : numbers as float32, in half the memory
    most_cells : above this ``TooManyCells`` is raised; None: no limit
    """
    free = list(free)
    kinds = dict(fixed) | guess_kinds(table, free)
    while True:
        try:
            return _columns(table, kinds, free, single, most_cells)
        except NotNumbers as error:
            kinds = with_text_columns(kinds, error, fixed)


def checked_blocks(
    table: TableFile, kinds: Mapping[str, str], free: Iterable[str]
) -> Iterator[Block]:
    """The blocks of a table; the ``free`` columns are checked after the last block."""
    checks = ColumnChecks(table, {name: kinds[name] for name in free})
    for block in table.blocks(kinds):
        checks.add(block)
        yield block
    checks.finish()


def guess_kinds(table: TableFile, free: list[str]) -> dict[str, str]:
    """Kinds of columns: from the types in the file, else from its first block."""
    if table.stored_kinds:
        return {name: _stored_kind(table, name) for name in free}
    first = next(table.blocks(dict.fromkeys(free, TEXT)), None)
    if first is None:
        return dict.fromkeys(free, NUMBER)
    return {name: _guess(first.columns[name], table) for name in free}


def with_text_columns(
    kinds: Mapping[str, str], error: NotNumbers, fixed: Mapping[str, str]
) -> dict[str, str]:
    """The kinds with text for the columns of ``error``; raises it if one of them is fixed."""
    if any(name in fixed for name in error.columns):
        raise error
    return dict(kinds) | dict.fromkeys(error.columns, TEXT)


def _stored_kind(table: TableFile, name: str) -> str:
    kind = table.stored_kinds[name]
    if kind == DATES:
        raise TableFileError(
            f"{table.name}, column {name!r}: the column holds dates or times; drop it (--drop), "
            "or convert it to numbers (a year, an age in days)."
        )
    return NUMBER if kind == NULL else kind


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
    for block in checked_blocks(table, kinds, free):
        n_cells = (block.first_row + block.n_rows) * len(kinds)
        if most_cells is not None and n_cells > most_cells:
            raise TooManyCells
        for name, column in block.columns.items():
            parts[name].extend((as_float32(column) if single else column).chunks)
    return {name: _joined(made, kinds[name]) for name, made in parts.items()}


def as_float32(column: Any) -> Any:
    """A column of numbers as float32; other columns unchanged."""
    import pyarrow

    return column.cast(pyarrow.float32()) if pyarrow.types.is_floating(column.type) else column


def _joined(parts: list[Any], kind: str) -> Any:
    import pyarrow

    if not parts:
        empty = pyarrow.float64() if kind == NUMBER else pyarrow.string()
        return pyarrow.chunked_array([], empty)
    column = pyarrow.chunked_array(parts)
    return column.unify_dictionaries() if kind != NUMBER else column
