"""Write tables of predictions block by block: CSV, TSV or Parquet.

Text follows RFC 4180 with LF: cells are quoted where needed, and numbers are the shortest text
that reads back as the same float. With ``escape_formulas`` a text cell that a spreadsheet would run
as a formula (it begins with = + - @, tab or CR, and is not a number) gets a leading apostrophe.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, cast

from geomix.errors import InvalidParameterError
from geomix.modelfile import atomic
from geomix.tablefile.byte_source import STANDARD_INPUT, display_path
from geomix.tablefile.dialect import NUMBER

STANDARD_OUTPUT = STANDARD_INPUT
# Endings of known formats that would be misleading for CSV.
NOT_WRITTEN = (
    *(".feather", ".arrow", ".orc", ".avro", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls"),
    *(".zst", ".bz2", ".xz", ".zip", ".lz4", ".snappy", ".tgz"),
)
FORMULA = r"^[=+\-@\t\r]"

Write = Callable[[Mapping[str, Any]], None]


@contextlib.contextmanager
def table_writer(path: Any, names: list[str], *, escape_formulas: bool = False) -> Iterator[Write]:
    """A function that writes one block of Arrow columns, by name.

    The end of the path is the format: .parquet, .tsv, .tsv.gz, .csv.gz; CSV otherwise. "-" is CSV
    on standard output.
    """
    form, is_gzip = output_form(path)
    with output(path) as file:
        if form == "parquet":
            with _parquet(file) as write:
                yield write
            return
        delimiter = "\t" if form == "tsv" else ","
        if is_gzip:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=5) as inside:
                yield _delimited(inside, names, delimiter, escape_formulas)
        else:
            yield _delimited(file, names, delimiter, escape_formulas)


def output_form(path: Any) -> tuple[str, bool]:
    """The format that the end of a path names ("parquet", "tsv" or "csv"), and whether it is
    compressed by gzip; raises for the ending of a format that is not written."""
    name = os.fsdecode(path).lower()
    inside = name.removesuffix(".gz")
    is_gzip = inside != name
    if is_gzip and inside.endswith(".parquet"):
        raise _not_written(path, ".parquet.gz")
    if odd := next((ending for ending in NOT_WRITTEN if inside.endswith(ending)), None):
        raise _not_written(path, odd)
    if inside.endswith(".parquet"):
        return "parquet", False
    return "tsv" if inside.endswith(".tsv") else "csv", is_gzip


def _not_written(path: Any, ending: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"Got the output {display_path(path)!r}, but {ending} is not written; expected .csv, "
        ".tsv (also with .gz) or .parquet."
    )


@contextlib.contextmanager
def output(path: Any) -> Iterator[BinaryIO]:
    """A binary file that appears complete at the end or not at all; pipes are written directly."""
    if path == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError(9, "Standard output is closed")
        sys.stdout.flush()
        yield cast(BinaryIO, _WriteAll(sys.stdout.buffer))
        sys.stdout.buffer.flush()
        return
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode) or stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        is_regular = True
    with atomic.replacing(path) if is_regular else open(path, "wb") as file:
        yield file


class _WriteAll:
    """Standard output that writes all bytes; an unbuffered one may write only a part."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        rest = memoryview(content)
        while rest:
            rest = rest[self._stream.write(rest) or 0 :]
        return len(content)


def _delimited(file: Any, names: list[str], delimiter: str, escape_formulas: bool) -> Write:
    import pyarrow

    header = _cells(pyarrow.array(names, pyarrow.string()), delimiter, escape_formulas).to_pylist()
    # The header is written with the first block, so that an error before it leaves no output.
    pending = [delimiter.join(header).encode() + b"\n"]

    def write(columns: Mapping[str, Any]) -> None:
        if pending:
            file.write(pending.pop())
        file.write(_lines([columns[name] for name in names], delimiter, escape_formulas))

    return write


def _lines(columns: list[Any], delimiter: str, escape_formulas: bool) -> bytes:
    import pyarrow
    from pyarrow import compute

    if not columns or len(columns[0]) == 0:
        return b""
    texts = [_cells(column, delimiter, escape_formulas) for column in columns]
    lines = compute.binary_join_element_wise(*texts, delimiter)
    all_lines = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, len(lines)], pyarrow.int32()), lines
    )
    whole = compute.binary_join(all_lines, "\n")[0]
    return bytes(whole.as_buffer()) + b"\n"


def _cells(column: Any, delimiter: str, escape_formulas: bool) -> Any:
    """A column as text, escaped and quoted where needed."""
    import pyarrow
    from pyarrow import compute

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if not pyarrow.types.is_string(column.type):
        return compute.fill_null(column.cast(pyarrow.string()), "")
    text = compute.fill_null(column, "")
    if escape_formulas:
        may_be_formula = compute.match_substring_regex(text, FORMULA)
        if compute.any(may_be_formula).as_py():
            is_number = compute.match_substring_regex(text, f"^{NUMBER}$")
            is_formula = compute.and_(may_be_formula, compute.invert(is_number))
            text = compute.if_else(
                is_formula, compute.binary_join_element_wise("'", text, ""), text
            )
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
