"""Block: consecutive rows of a file. TableFile: the interface of every file format.

A column is read as one of these kinds:

    number    float64, null where missing
    text      dictionary<int32, string>, null where missing
    label     like text, but no word is missing, since a class may be called NA
    raw       string, as it is in the file

In a text file an empty cell of text is missing. Parquet and Feather store null for that, and the
empty text is a level or a class there, unless the options name it among the missing cells. NaN
among numbers is missing in each of these kinds but ``raw``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

NUMBER, TEXT, LABEL, RAW = "number", "text", "label", "raw"
# Cells that mean missing in a column of numbers.
MISSING_NUMBERS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")


@dataclass(frozen=True)
class Block:
    """columns : Arrow columns by name;  first_row : position of the first row in the file, from 0
    place : the position of a row of this block for messages: "line 5" or "row 5"
    raw : columns as text, as they are in the file
    """

    columns: Mapping[str, Any]
    n_rows: int
    first_row: int
    place: Callable[[int], str]
    raw: Mapping[str, Any] = field(default_factory=dict)


class TableFile(Protocol):
    """A table in a file, which can be read in blocks any number of times.

    name : of the file, for messages;  names : of the columns
    stored_kinds : kinds by column if the file stores types (Parquet, Feather), else {}
    """

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def stored_kinds(self) -> Mapping[str, str]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

    def reads_as_number(self, cell: str) -> bool: ...

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        """All rows: columns of these kinds, and the columns ``raw`` as text."""
        ...


@dataclass(frozen=True)
class SameColumns:
    """A ``TableFile`` with the columns of another one; what it changes are the blocks."""

    table: TableFile

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def stored_kinds(self) -> Mapping[str, str]:
        return self.table.stored_kinds

    @property
    def notes(self) -> tuple[str, ...]:
        return self.table.notes

    def reads_as_number(self, cell: str) -> bool:
        return self.table.reads_as_number(cell)


def place_in(table: TableFile, row: int) -> str:
    """The position of a row, found by reading the file again up to that row."""
    for block in table.blocks({table.names[0]: RAW}):
        if row < block.first_row + block.n_rows:
            return block.place(row - block.first_row)
    return f"row {row + 1}"


def without_missing(column: Any, missing: frozenset[str]) -> Any:
    """A column of text with null for cells that are in ``missing``."""
    import pyarrow
    import pyarrow.compute

    parts = []
    for part in column.chunks:
        bad = [code for code, text in enumerate(part.dictionary.to_pylist()) if text in missing]
        if bad:
            gone = pyarrow.compute.is_in(part.indices, pyarrow.array(bad, part.indices.type))
            null = pyarrow.scalar(None, part.indices.type)
            indices = pyarrow.compute.if_else(gone, null, part.indices)
            part = pyarrow.DictionaryArray.from_arrays(
                indices, part.dictionary, ordered=part.type.ordered
            )
        parts.append(part)
    return pyarrow.chunked_array(parts, column.type)
