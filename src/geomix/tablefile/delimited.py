"""Delimited text in blocks, parsed by Arrow.

Blocks end where records end, so every error has its line number, and memory is that of one block.
If Arrow rejects a block, Python's csv module parses it again to find the line and the column.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    """Cells that are not numbers; ``columns`` : the columns of one block that hold them."""

    def __init__(self, message: str, columns: tuple[str, ...]) -> None:
        super().__init__(message)
        self.columns = columns


@dataclass
class DelimitedFile:
    """A ``TableFile`` of delimited text. ``reopen`` reads its blocks of records from the start."""

    name: str
    names: tuple[str, ...]
    delimiter: str
    options: Any
    notes: tuple[str, ...]
    reopen: Callable[[], Iterator[Records]]
    unread: Iterator[Records] | None = None
    stored_kinds: Mapping[str, str] = field(default_factory=dict)

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        opened = self.reopen() if self.unread is None else self.unread
        self.unread, first_row = None, 0
        for part in opened:
            if not part.data.strip(b"\r\n") and len(self.names) > 1:
                continue
            table = self._parsed(part, kinds)
            columns = {name: self._with_nulls(table[name], kind) for name, kind in kinds.items()}
            again = self._parsed(part, dict.fromkeys(raw, RAW)) if raw else {}
            texts = {name: again[name] for name in raw}
            block = Block(columns, table.num_rows, first_row, self._row_places(part), texts)
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
                # A block is parsed as a whole, so threads gain nothing, and an Arrow thread that
                # is still running while the interpreter exits may abort the process.
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

    def _with_nulls(self, column: Any, kind: str) -> Any:
        if kind == TEXT:
            return without_missing(column, frozenset(("", *self.options.missing)))
        if kind == LABEL:
            return without_missing(column, frozenset(("",)))
        if kind == NUMBER and self.options.thousands:
            return self._without_separators(column)
        return column

    def _without_separators(self, column: Any) -> Any:
        """Numbers from text with thousands separators; the text if some cell is not a number."""
        import pyarrow
        from pyarrow import compute

        missing = pyarrow.array([*MISSING_NUMBERS, *self.options.missing])
        column = compute.if_else(compute.is_in(column, missing), None, column)
        is_number = compute.match_substring_regex(column, f"^{self._number_pattern}$")
        if not compute.all(is_number).as_py():
            return column  # ``_refuse_cells`` raises with the line and the cell
        column = compute.replace_substring(column, self.options.thousands, "")
        column = compute.replace_substring(column, self.options.decimal, ".")
        return compute.cast(compute.utf8_trim_whitespace(column), pyarrow.float64())

    @property
    def _number_pattern(self) -> str:
        return dialect.number_pattern(self.options.decimal, self.options.thousands)

    def _refuse_cells(self, block: Block, kinds: Mapping[str, str]) -> None:
        """Raise if a number is infinite or a cell is too long."""
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
                        f"{place}: the number is infinite. Replace it, or drop the row; infinity "
                        "is never treated as missing."
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
            if cell is not None and not self.reads_as_number(cell):
                return self._not_a_number(block.place(row), name, cell, (name,))
        return TableFileError(f"{self.name}, column {name!r}: not all cells are numbers.")

    def _row_places(self, part: Records) -> Callable[[int], str]:
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
        """Raise an error with the line and column that Arrow could not parse."""
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
        """Whether a cell is a number, or means missing in a column of numbers."""
        if cell in MISSING_NUMBERS or cell in self.options.missing:
            return True
        return re.fullmatch(self._number_pattern, cell, re.ASCII) is not None

    def _not_a_number(
        self, place: str, name: str, cell: str, columns: tuple[str, ...]
    ) -> NotNumbers:
        held = cell[:80]
        return NotNumbers(
            f"{self.name}, {place}, column {name!r}: {held!r} is not a number. "
            f"{self._number_advice(held)}",
            columns,
        )

    def _number_advice(self, cell: str) -> str:
        if self.options.thousands and self.options.thousands in cell:
            separator = self.options.thousands
            return (
                f"A thousands separator stands between groups of three digits; if {separator!r} "
                f"is the decimal separator, use --decimal {separator}."
            )
        if self.options.decimal != "," and dialect.GROUPED.fullmatch(cell):
            return (
                "If the comma separates thousands, use --thousands ,; if it is the decimal "
                "separator, use --decimal ,."
            )
        if self.options.decimal != "," and dialect.DECIMAL_COMMA.fullmatch(cell):
            return "If the comma is the decimal separator, use --decimal ,."
        return f"If it means missing, use --missing {cell!r}."

    def _ragged(self, line: int, n_fields: int) -> TableFileError:
        where = "the header has" if self.options.header else "the first line has"
        called = "names" if self.options.header else "fields"
        many = "a field" if n_fields == 1 else f"{n_fields} fields"
        return TableFileError(
            f"{self.name}: {where} {len(self.names)} {called}, line {line} has {many}."
        )


def _arrow_owned(data: bytes) -> Any:
    """A copy in Arrow's memory. Python's memory would be released by an Arrow thread, which aborts
    the process if the interpreter has exited by then."""
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    stream.write(data)
    return stream.getvalue()


# --- opening ---


def opened(
    where: ByteSource,
    content: BinaryIO,
    form: str,
    options: Any,
    expected: Collection[str] = (),
) -> DelimitedFile:
    """The table of a decompressed stream; ``form`` is the compression, for reading it again."""

    def reopen() -> BinaryIO:
        if where.is_one_shot:
            raise OSError(29, "A pipe can be read only once", where.name)
        _, stream = byte_source.peek(where.open())
        return byte_source.decompressed(stream, form, where.name, options.max_decompressed)

    pieces = _utf8(byte_source.chunks(content), options.encoding, where.name)
    first = next(pieces, b"")
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = dialect.detect_delimiter(
            first[: dialect.SAMPLE].decode(errors="replace"), where.name
        )
    blocks = _blocks(_again(first, pieces), delimiter, where.name)
    head = next(blocks, None)
    if head is None:
        raise TableFileError(f"{where.name}: the file is empty.")
    names, head = _split_header(head, delimiter, options, where.name, expected)

    def reread() -> Iterator[Records]:
        again = _blocks(
            _utf8(byte_source.chunks(reopen()), options.encoding, where.name),
            delimiter,
            where.name,
        )
        yield _split_header(next(again), delimiter, options, where.name, expected)[1]
        yield from again

    notes: tuple[str, ...] = ()
    if options.delimiter is None and delimiter != "," and len(names) > 1:
        notes = (f"{where.name}: the delimiter is {dialect.quoted_delimiter(delimiter)}",)
    return DelimitedFile(
        where.name, names, delimiter, options, notes, reread, _again_records(head, blocks)
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
    head: Records, delimiter: str, options: Any, name: str, expected: Collection[str]
) -> tuple[tuple[str, ...], Records]:
    """The column names, and the records after the header (possibly empty)."""
    data = head.data.lstrip(b"\r\n")
    line = head.first_line + count_lines(head.data[: len(head.data) - len(data)])
    quotes = records.structural_quotes(data, delimiter.encode(), line, name)
    end = records.first_record_end(data, quotes)
    cells = next((cells for _, cells in dialect.records_of(data[:end].decode(), delimiter)), [])
    if not cells:
        raise TableFileError(f"{name}: the file is empty.")
    if not options.header:
        dialect.check_split(cells, delimiter, name, line)
        dialect.check_width(len(cells), name)
        return tuple(f"x{j}" for j in range(len(cells))), Records(data, line)
    names = dialect.header_names(cells, delimiter, name, line, expected)
    return names, Records(data[end:], line + count_lines(data[:end]))


def _utf8(chunks: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """The text re-encoded as UTF-8, without a byte order mark."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        first = next(chunks, b"")
        if first.startswith(dialect.WIDE_MARKS):
            raise TableFileError(
                f"{name}: not UTF-8 (it begins with a UTF-16 byte order mark); use --encoding "
                "utf-16."
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
