"""Delimited text in blocks: Arrow parses each, and what it cannot take is looked up cell by cell.

Blocks are cut at ends of records before Arrow sees them, so every error has its physical line,
and memory is that of one block however long the file is. The careful second look, with Python's
csv module, happens only once Arrow has refused a block.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

from geomix.errors import TableFileError
from geomix.tablefile import byte_source, dialect, records
from geomix.tablefile.block import (
    LABEL,
    MISSING_NUMBERS,
    NUMBER,
    RAW,
    TEXT,
    Block,
    without_missing,
)
from geomix.tablefile.byte_source import ByteSource
from geomix.tablefile.records import LONGEST_CELL, Records, count_lines


class NotNumbers(TableFileError):
    """Cells that were to be numbers; ``columns`` : where, within one block."""

    def __init__(self, message: str, columns: tuple[str, ...]) -> None:
        super().__init__(message)
        self.columns = columns


@dataclass
class DelimitedFile:
    """A table of delimited text. ``reopened`` gives its blocks of records again."""

    name: str
    names: tuple[str, ...]
    delimiter: str
    options: Any
    notes: tuple[str, ...]
    reopened: Callable[[], Iterator[Records]]
    waiting: Iterator[Records] | None = None
    natural: Mapping[str, str] = field(default_factory=dict)

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        opened = self.reopened() if self.waiting is None else self.waiting
        self.waiting, first_row = None, 0
        for part in opened:
            if not part.data.strip(b"\r\n") and len(self.names) > 1:
                continue
            table = self._parsed(part, kinds)
            columns = {name: self._tidied(table[name], kind) for name, kind in kinds.items()}
            again = self._parsed(part, dict.fromkeys(raw, RAW)) if raw else {}
            texts = {name: again[name] for name in raw}
            block = Block(columns, table.num_rows, first_row, self._placer(part), texts)
            self._refuse_cells(block, kinds)
            first_row += table.num_rows
            yield block

    def _parsed(self, part: Records, kinds: Mapping[str, str]) -> Any:
        import pyarrow
        from pyarrow import csv

        wanted = kinds or {self.names[0]: RAW}
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        number = pyarrow.string() if self.options.thousands else pyarrow.float64()
        types = {NUMBER: number, TEXT: text, LABEL: text, RAW: pyarrow.string()}
        try:
            return csv.read_csv(
                pyarrow.BufferReader(_arrow_owned(part.data)),
                # A block is parsed as a whole, so threads gain nothing; and one of Arrow's that is
                # still tidying up while the interpreter ends may abort the process.
                read_options=csv.ReadOptions(
                    use_threads=False,
                    column_names=list(self.names),
                    block_size=max(len(part.data), 1024),
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=b'"' in part.data,
                    ignore_empty_lines=len(self.names) > 1,
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=list(wanted),
                    column_types={name: types[kind] for name, kind in wanted.items()},
                    null_values=[*MISSING_NUMBERS, *self.options.missing],
                    strings_can_be_null=False,
                    decimal_point=self.options.decimal,
                    check_utf8=False,  # the records were checked
                ),
            )
        except pyarrow.ArrowInvalid as error:
            self._explain(part, kinds, error)

    def _tidied(self, column: Any, kind: str) -> Any:
        if kind == TEXT:
            return without_missing(column, frozenset(("", *self.options.missing)))
        if kind == LABEL:
            return without_missing(column, frozenset(("",)))
        if kind == NUMBER and self.options.thousands:
            return self._ungrouped(column)
        return column

    def _ungrouped(self, column: Any) -> Any:
        """Numbers of text with a mark between thousands."""
        import pyarrow
        from pyarrow import compute

        missing = pyarrow.array([*MISSING_NUMBERS, *self.options.missing])
        column = compute.if_else(compute.is_in(column, missing), None, column)
        column = compute.replace_substring(column, self.options.thousands, "")
        column = compute.replace_substring(column, self.options.decimal, ".")
        try:
            return compute.cast(compute.utf8_trim_whitespace(column), pyarrow.float64())
        except pyarrow.ArrowInvalid:
            return column  # of text, which ``_refuse_cells`` sees

    def _refuse_cells(self, block: Block, kinds: Mapping[str, str]) -> None:
        """Infinite numbers, and cells that are too long."""
        import pyarrow
        from pyarrow import compute

        for name, kind in kinds.items():
            column = block.columns[name]
            if kind == NUMBER:
                if not pyarrow.types.is_floating(column.type):
                    raise self._odd_number(block, name)
                if compute.any(compute.is_inf(column)).as_py():
                    row = compute.index(compute.fill_null(compute.is_inf(column), False), True)
                    place = f"{self.name}, {block.place(row.as_py())}, column {name!r}"
                    raise TableFileError(
                        f"{place}: an infinite number. Replace it, or drop the row; infinity is "
                        "never taken as missing."
                    )
                continue
            texts = [part.dictionary if kind != RAW else part for part in column.chunks]
            longest = max(
                (compute.max(compute.binary_length(one)).as_py() or 0 for one in texts), default=0
            )
            if longest > LONGEST_CELL:
                raise TableFileError(
                    f"{self.name}, from {block.place(0)}, column {name!r}: a cell of "
                    f"{longest} bytes; at most {LONGEST_CELL} are read."
                )

    def _odd_number(self, block: Block, name: str) -> TableFileError:
        for row, cell in enumerate(block.columns[name].to_pylist()):
            if cell is not None and not dialect.IS_NUMBER.fullmatch(cell):
                return self._not_a_number(block.place(row), name, cell, (name,))
        return TableFileError(f"{self.name}, column {name!r}: not all are numbers.")

    def _placer(self, part: Records) -> Callable[[int], str]:
        def place(row: int) -> str:
            for count, (line, _) in enumerate(self._records(part)):
                if count == row:
                    return f"line {part.first_line + line}"
            return f"line {part.first_line}"

        return place

    def _records(self, part: Records) -> Iterator[tuple[int, list[str]]]:
        found = dialect.records_of(part.data.decode(), self.delimiter, blank=len(self.names) == 1)
        yield from found

    def _explain(self, part: Records, kinds: Mapping[str, str], error: Exception) -> NoReturn:
        """Say what Arrow refused, with its line and column."""
        numbers = [(j, name) for j, name in enumerate(self.names) if kinds.get(name) == NUMBER]
        odd: dict[str, TableFileError] = {}
        for line, cells in self._records(part):
            if len(cells) != len(self.names):
                raise self._ragged(part.first_line + line, len(cells))
            for j, name in numbers:
                if name not in odd and not self.reads_as_number(cells[j]):
                    place = f"line {part.first_line + line}"
                    odd[name] = self._not_a_number(place, name, cells[j], (name,))
        if odd:
            first = next(iter(odd.values()))
            raise NotNumbers(str(first), tuple(odd))
        raise TableFileError(f"{self.name}, from line {part.first_line}: {error}.") from error

    def reads_as_number(self, cell: str) -> bool:
        """Whether a cell is a number, or missing from a column of numbers."""
        if cell in MISSING_NUMBERS or cell in self.options.missing:
            return True
        if self.options.thousands:
            cell = cell.replace(self.options.thousands, "")
        if self.options.decimal != ".":
            cell = cell.replace(".", "x").replace(self.options.decimal, ".")
        return dialect.IS_NUMBER.fullmatch(cell) is not None

    def _not_a_number(
        self, place: str, name: str, cell: str, columns: tuple[str, ...]
    ) -> NotNumbers:
        held = cell[:80]
        return NotNumbers(
            f"{self.name}, {place}, column {name!r}: {held!r} is no number. If it means "
            f"missing, give --missing {held!r}.",
            columns,
        )

    def _ragged(self, line: int, n_fields: int) -> TableFileError:
        where = "the header has" if self.options.header else "the first line has"
        called = "names" if self.options.header else "fields"
        many = "a field" if n_fields == 1 else f"{n_fields} fields"
        return TableFileError(
            f"{self.name}: {where} {len(self.names)} {called}, line {line} has {many}."
        )


def _arrow_owned(data: bytes) -> Any:
    """A copy in Arrow's memory. One of Arrow's threads drops it when it likes; were it Python's,
    that thread would need the interpreter, which may be gone by then (and the process aborts)."""
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    stream.write(data)
    return stream.getvalue()


# --- opening ---


def opened(where: ByteSource, content: BinaryIO, form: str, options: Any) -> DelimitedFile:
    """The table of a stream whose compression is off already; ``form`` is how to take it off."""

    def reopened() -> BinaryIO:
        if where.once:
            raise OSError(29, "A pipe can be read only once", where.name)
        _, stream = byte_source.beginning(where.open())
        return byte_source.unfolded(stream, form, where.name, options.max_unfolded)

    pieces = _utf8(byte_source.chunks(content), options.encoding, where.name)
    first = next(pieces, b"")
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = dialect.found_delimiter(
            first[: dialect.SAMPLE].decode(errors="replace"), where.name
        )
    blocks = _blocks(_again(first, pieces), delimiter, where.name)
    head = next(blocks, None)
    if head is None:
        raise TableFileError(f"{where.name}: the file is empty.")
    names, head = _split_header(head, delimiter, options, where.name)

    def anew() -> Iterator[Records]:
        again = _blocks(
            _utf8(byte_source.chunks(reopened()), options.encoding, where.name),
            delimiter,
            where.name,
        )
        yield _split_header(next(again), delimiter, options, where.name)[1]
        yield from again

    notes: tuple[str, ...] = ()
    if options.delimiter is None and delimiter != "," and len(names) > 1:
        notes = (f"{where.name}: fields are separated by {dialect.shown_mark(delimiter)}",)
    return DelimitedFile(
        where.name, names, delimiter, options, notes, anew, _again_records(head, blocks)
    )


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _again_records(first: Records, rest: Iterator[Records]) -> Iterator[Records]:
    yield first
    yield from rest


def _blocks(pieces: Iterator[bytes], delimiter: str, name: str) -> Iterator[Records]:
    for part in records.cut(pieces, delimiter.encode(), name):
        _check_utf8(part, name)
        yield part


def _split_header(
    head: Records, delimiter: str, options: Any, name: str
) -> tuple[tuple[str, ...], Records]:
    """The names, and the records without the header (empty if there are no others)."""
    data = head.data.lstrip(b"\r\n")
    line = head.first_line + count_lines(head.data[: len(head.data) - len(data)])
    quotes = records.structural_quotes(data, delimiter.encode(), line, name)
    end = records.first_record_end(data, quotes)
    cells = next((cells for _, cells in dialect.records_of(data[:end].decode(), delimiter)), [])
    if not cells:
        raise TableFileError(f"{name}: the file is empty.")
    if not options.header:
        dialect.refuse_unsplit(cells, delimiter, name, line)
        dialect.check_width(len(cells), name)
        return tuple(f"x{j}" for j in range(len(cells))), Records(data, line)
    names = dialect.header_names(cells, delimiter, name, line)
    return names, Records(data[end:], line + count_lines(data[:end]))


def _utf8(chunks: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """The text as UTF-8 without a byte order mark."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        first = next(chunks, b"")
        if first.startswith(dialect.WIDE_MARKS):
            raise TableFileError(
                f"{name}: not UTF-8 (it begins with the mark of UTF-16); try --encoding utf-16."
            )
        yield from _again(first.removeprefix(dialect.UTF8_MARK), chunks)
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for chunk in chunks:
            text = decoder.decode(chunk)
            line += text.count("\n")
            yield text.removeprefix("\ufeff").encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise TableFileError(f"{name}, after line {line}: not {encoding}: {error}.") from error


def _check_utf8(part: Records, name: str) -> None:
    if part.data.isascii():
        return
    try:
        part.data.decode()
    except UnicodeDecodeError as error:
        line = part.first_line + count_lines(part.data[: error.start])
        octet = part.data[error.start]
        raise TableFileError(
            f"{name}: not UTF-8 (byte 0x{octet:02X} at line {line}); try --encoding latin-1."
        ) from None
