"""A table whose numbers are to be stored as float32, in which the largest ones are infinite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from geomix.errors import TableFileError
from geomix.tablefile.block import NUMBER, Block, SameColumns
from geomix.tablefile.column_types import as_float32


class SinglePrecision(SameColumns):
    """A ``TableFile`` that refuses numbers beyond the range of float32; others are unchanged."""

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        for block in self.table.blocks(kinds, raw):
            for name, kind in kinds.items():
                if kind == NUMBER:
                    self._check(block.columns[name], name, block)
            yield block

    def _check(self, column: Any, name: str, block: Block) -> None:
        from pyarrow import compute

        row = compute.index(compute.is_inf(as_float32(column)), True).as_py()
        if row >= 0:
            raise TableFileError(
                f"{self.name}, {block.place(row)}, column {name!r}: {column[row].as_py():g} is too "
                "large for float32; leave out --single, or rescale the column."
            )
