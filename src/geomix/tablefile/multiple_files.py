"""Several files as one table: their rows in the order of the files, columns matched by name.

A file is open only while its rows are read, so there may be thousands of files. A file that
changes between or during passes is refused.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from geomix.errors import SchemaError
from geomix.tablefile.block import Block, SameColumns, TableFile
from geomix.tablefile.byte_source import STANDARD_INPUT
from geomix.tablefile.column_names import first_few
from geomix.tablefile.columnar import NULL
from geomix.tablefile.reader import ReadOptions, open_table
from geomix.tablefile.unchanged import UnchangedFile


def expand_paths(paths: Any) -> list[Any]:
    """The files of a path, of a pattern such as "data/*.csv", or of a list of both.

    Files of a pattern are sorted by name. A path that is not a pattern is not checked.
    """
    given = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    found: list[Any] = []
    for path in given:
        one = os.fsdecode(path)
        if not glob.has_magic(one) or os.path.exists(one):
            found.append(path)
            continue
        matches = sorted(glob.glob(one))
        if not matches:
            raise FileNotFoundError(f"No file matches {one!r}.")
        found += matches
    if not found:
        raise FileNotFoundError("Got no path; expected a file, a pattern, or a list of both.")
    return found


def open_tables(paths: Sequence[Any], options: ReadOptions | None = None) -> TableFile:
    """Open one or more files as one table, which can be read any number of times.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for k in range(3):
    ...     _ = (folder / f"{k}.csv").write_text(f"age,city\\n{k},Bern\\n")
    >>> table = open_tables(expand_paths(folder / "*.csv"))
    >>> [block.columns["age"].to_pylist() for block in table.blocks({"age": "number"})]
    [[0.0], [1.0], [2.0]]
    """
    options = ReadOptions() if options is None else options
    watched = tuple(map(UnchangedFile, paths))
    first = open_table(paths[0], options)
    if len(paths) == 1:
        return OneFile(first, watched[0])
    if STANDARD_INPUT in paths:
        raise SchemaError("Standard input cannot be one of several files.")
    names, stored_kinds, notes = first.names, dict(first.stored_kinds), list(first.notes)
    for path in paths[1:]:
        table = open_table(path, options)
        _check_same_names(table, first)
        stored_kinds = _common_kinds(stored_kinds, table, first.name)
        notes += table.notes
    name = f"{first.name} and {len(paths) - 1} more"
    return MultipleFiles(
        name,
        names,
        stored_kinds,
        tuple(notes),
        tuple(paths),
        options,
        first.reads_as_number,
        watched,
    )


@dataclass(frozen=True)
class OneFile(SameColumns):
    """A ``TableFile`` that has to stay as it was when it was opened."""

    watched: UnchangedFile

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        return self.watched.read(lambda: self.table.blocks(kinds, raw), _n_rows)


@dataclass(frozen=True)
class MultipleFiles:
    """A ``TableFile`` of several files; positions in messages include the file name."""

    name: str
    names: tuple[str, ...]
    stored_kinds: Mapping[str, str]
    notes: tuple[str, ...]
    paths: tuple[Any, ...]
    options: ReadOptions
    reads: Callable[[str], bool]
    watched: tuple[UnchangedFile, ...]

    def reads_as_number(self, cell: str) -> bool:
        return self.reads(cell)

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        n_before = n_rows = 0
        for path, watched in zip(self.paths, self.watched, strict=True):
            for block in watched.read(partial(self._of, path, kinds, raw), _n_rows):
                n_rows = n_before + block.first_row + block.n_rows
                yield replace(block, first_row=n_before + block.first_row)
            n_before = n_rows

    def _of(self, path: Any, kinds: Mapping[str, str], raw: Sequence[str]) -> Iterator[Block]:
        table = open_table(path, self.options)
        for block in table.blocks(kinds, raw):
            yield replace(block, place=_with_file(table.name, block.place))


def _n_rows(block: Block) -> int:
    return block.n_rows


def _with_file(name: str, place: Callable[[int], str]) -> Callable[[int], str]:
    return lambda row: f"{place(row)} of {name}"


def _check_same_names(table: TableFile, first: TableFile) -> None:
    for one, other in ((first, table), (table, first)):
        if lost := [name for name in one.names if name not in other.names]:
            listed = first_few(lost)
            raise SchemaError(f"{other.name}: no column {listed}, which {one.name} has.")


def _common_kinds(stored_kinds: dict[str, str], table: TableFile, first: str) -> dict[str, str]:
    """Kinds that all files agree on; {} if some file stores no types."""
    if not stored_kinds or not table.stored_kinds:
        return {}
    for name, kind in table.stored_kinds.items():
        known = stored_kinds[name]
        if known == NULL:
            stored_kinds[name] = kind
        elif kind not in (known, NULL):
            raise SchemaError(
                f"The column {name!r} is {known} in {first} and {kind} in {table.name}; convert "
                "one of the files."
            )
    return stored_kinds
