"""Block: some consecutive rows of a file; TableFile: what every kind of file can do.

A column is asked for as one of

    number    float64, null where missing
    text      dictionary<int32, string>, null where missing
    label     the same, but only an empty cell is missing: a class may be called NA
    raw       string, as it stands in the file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

NUMBER, TEXT, LABEL, RAW = "number", "text", "label", "raw"
# Cells of a column of numbers that mean missing.
MISSING_NUMBERS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")


@dataclass(frozen=True)
class Block:
    """columns : Arrow columns by name;  first_row : place of the first row in the file, from 0
    place : where a row of this block stands, for messages: "line 5" or "row 5"
    raw : columns that were asked for a second time, as they stand in the file
    """

    columns: Mapping[str, Any]
    n_rows: int
    first_row: int
    place: Callable[[int], str]
    raw: Mapping[str, Any] = field(default_factory=dict)


class TableFile(Protocol):
    """A table in a file, read in blocks as often as is needed.

    name : for messages;  names : of the columns
    natural : kinds by column where the file tells them (Parquet, Feather), else {}
    """

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def natural(self) -> Mapping[str, str]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

    def reads_as_number(self, cell: str) -> bool: ...

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        """All rows, with the columns that ``kinds`` names, and those of ``raw`` besides."""
        ...


def place_in(table: TableFile, row: int) -> str:
    """Where a row of the file stands, found by reading again up to it."""
    for block in table.blocks({table.names[0]: RAW}):
        if row < block.first_row + block.n_rows:
            return block.place(row - block.first_row)
    return f"row {row + 1}"


def without_missing(column: Any, missing: frozenset[str]) -> Any:
    """A column of text with null for the cells that mean missing."""
    import pyarrow
    import pyarrow.compute

    parts = []
    for part in column.chunks:
        bad = [code for code, text in enumerate(part.dictionary.to_pylist()) if text in missing]
        if bad:
            gone = pyarrow.compute.is_in(part.indices, pyarrow.array(bad, part.indices.type))
            null = pyarrow.scalar(None, part.indices.type)
            indices = pyarrow.compute.if_else(gone, null, part.indices)
            part = pyarrow.DictionaryArray.from_arrays(indices, part.dictionary)
        parts.append(part)
    return pyarrow.chunked_array(parts, column.type)
