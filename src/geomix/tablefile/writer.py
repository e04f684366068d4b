"""Rows out: delimited text or Parquet, block by block, onto a file or standard output.

Text is RFC 4180 with LF: a cell is quoted where it has to be, numbers are the shortest text that
reads back as the same bits. A text cell that a spreadsheet would run as a formula (it begins with
= + - @, tab or CR, and is no number) gets a leading apostrophe, unless ``raw`` is wanted.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, cast

from geomix.modelfile import atomic
from geomix.tablefile.byte_source import STANDARD_INPUT
from geomix.tablefile.dialect import NUMBER

STANDARD_OUTPUT = STANDARD_INPUT
FORMULA = r"^[=+\-@\t\r]"

Write = Callable[[Mapping[str, Any]], None]


@contextlib.contextmanager
def table_writer(path: Any, names: list[str], *, raw: bool = False) -> Iterator[Write]:
    """A function that takes Arrow columns by name, once for each block.

    The path's ending says what is written: .parquet, .tsv, or else CSV, both with .gz if wanted;
    "-" is CSV on standard output.
    """
    with output(path) as file:
        ending = os.fsdecode(path).lower()
        if ending.endswith(".parquet"):
            with _parquet(file) as write:
                yield write
        elif ending.endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=5) as inside:
                yield _delimited(inside, names, "\t" if ".tsv" in ending else ",", raw)
        else:
            yield _delimited(file, names, "\t" if ending.endswith(".tsv") else ",", raw)


@contextlib.contextmanager
def output(path: Any) -> Iterator[BinaryIO]:
    """A binary file to write to: whole at the end or not at all, but for pipes and devices."""
    if path == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError(9, "Standard output is closed")
        sys.stdout.flush()
        yield cast(BinaryIO, _Whole(sys.stdout.buffer))
        sys.stdout.buffer.flush()
        return
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode) or stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        is_regular = True
    with atomic.replacing(path) if is_regular else open(path, "wb") as file:
        yield file


class _Whole:
    """Standard output that takes all of what it is given; unbuffered it may take a part."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        rest = memoryview(content)
        while rest:
            rest = rest[self._stream.write(rest) or 0 :]
        return len(content)


def _delimited(file: Any, names: list[str], delimiter: str, raw: bool) -> Write:
    import pyarrow

    header = _cells(pyarrow.array(names, pyarrow.string()), delimiter, raw).to_pylist()
    waiting = [delimiter.join(header).encode() + b"\n"]  # until there are rows, or surely none

    def write(columns: Mapping[str, Any]) -> None:
        if waiting:
            file.write(waiting.pop())
        file.write(_lines([columns[name] for name in names], delimiter, raw))

    return write


def _lines(columns: list[Any], delimiter: str, raw: bool) -> bytes:
    import pyarrow
    from pyarrow import compute

    if not columns or len(columns[0]) == 0:
        return b""
    texts = [_cells(column, delimiter, raw) for column in columns]
    lines = compute.binary_join_element_wise(*texts, delimiter)
    all_lines = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, len(lines)], pyarrow.int32()), lines
    )
    whole = compute.binary_join(all_lines, "\n")[0]
    return bytes(whole.as_buffer()) + b"\n"


def _cells(column: Any, delimiter: str, raw: bool) -> Any:
    """A column as text, quoted where needed."""
    import pyarrow
    from pyarrow import compute

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if not pyarrow.types.is_string(column.type):
        return compute.fill_null(column.cast(pyarrow.string()), "")
    text = compute.fill_null(column, "")
    if not raw:
        looks_live = compute.match_substring_regex(text, FORMULA)
        if compute.any(looks_live).as_py():
            is_number = compute.match_substring_regex(text, f"^{NUMBER}$")
            live = compute.and_(looks_live, compute.invert(is_number))
            text = compute.if_else(live, compute.binary_join_element_wise("'", text, ""), text)
    special = compute.match_substring_regex(text, f'["\r\n{delimiter}]')
    if compute.any(special).as_py():
        doubled = compute.replace_substring(text, '"', '""')
        quoted = compute.binary_join_element_wise('"', doubled, '"', "")
        text = compute.if_else(special, quoted, text)
    return text


@contextlib.contextmanager
def _parquet(file: Any) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writers: list[Any] = []

    def write(columns: Mapping[str, Any]) -> None:
        table = pyarrow.table(dict(columns))
        if not writers:
            writers.append(parquet.ParquetWriter(file, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
