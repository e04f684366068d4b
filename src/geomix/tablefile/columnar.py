"""Parquet and Feather files in blocks, with columns as numbers or text."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from geomix.errors import TableFileError
from geomix.table.printing import printable
from geomix.tablefile import byte_source, dialect
from geomix.tablefile.block import LABEL, NUMBER, RAW, TEXT, Block, without_missing
from geomix.tablefile.byte_source import ByteSource
from geomix.tablefile.column_names import check_unique
from geomix.tablefile.records import LONGEST_CELL

ROWS_PER_BLOCK = 2**16
DATES = "dates"
NULL = "null"  # a column without any value, as one file of several may have


@dataclass
class ColumnarFile:
    """A ``TableFile``; ``batches`` gives record batches with the named columns."""

    name: str
    names: tuple[str, ...]
    stored_kinds: Mapping[str, str]
    batches: Callable[[list[str]], Iterator[Any]]
    form: str
    options: Any
    notes: tuple[str, ...] = field(default=())

    def blocks(self, kinds: Mapping[str, str], raw: Sequence[str] = ()) -> Iterator[Block]:
        import pyarrow

        for name in (*kinds, *raw):
            _refuse_nested(self.stored_kinds[name], name, self.name)
        first_row, n_bytes = 0, 0
        wanted = list(dict.fromkeys((*kinds, *raw))) or [self.names[0]]
        with arrow_errors(self.form, self.name):
            for batch in self.batches(wanted):
                n_bytes += batch.nbytes
                if n_bytes > self.options.max_decompressed:
                    raise byte_source.too_large(self.name, self.options.max_decompressed)
                place = _row_places(first_row)
                cells = {name: pyarrow.chunked_array([batch.column(name)]) for name in wanted}
                made = {
                    name: self._column(cells[name], name, kind, place)
                    for name, kind in kinds.items()
                }
                texts = {name: self._text(cells[name], name) for name in raw}
                yield Block(made, batch.num_rows, first_row, place, texts)
                first_row += batch.num_rows

    def reads_as_number(self, cell: str) -> bool:
        return dialect.IS_NUMBER.fullmatch(cell) is not None

    def _column(self, column: Any, name: str, kind: str, place: Callable[[int], str]) -> Any:
        if kind == NUMBER:
            return self._number(column, name, place)
        text = self._text(column, name)
        if kind == RAW:
            return text
        missing = missing_labels(self.options) if kind == LABEL else self.options.missing
        text = _null_where_nan(text, column).dictionary_encode()
        return without_missing(text, frozenset(missing))

    def _number(self, column: Any, name: str, place: Callable[[int], str]) -> Any:
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            if pyarrow.types.is_boolean(column.type):
                column = column.cast(pyarrow.uint8())
            numbers = column.cast(pyarrow.float64(), safe=False)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            raise self._not_a_number(column, name, place) from None
        odd = compute.fill_null(compute.is_inf(numbers), False)
        if compute.any(odd).as_py():
            at = place(compute.index(odd, True).as_py())
            raise TableFileError(
                f"{self.name}, {at}, column {name!r}: the number is infinite. Replace it, "
                "or drop the row; infinity is never treated as missing."
            )
        return numbers

    def _not_a_number(self, column: Any, name: str, place: Callable[[int], str]) -> TableFileError:
        for row, cell in enumerate(column.to_pylist()):
            if isinstance(cell, str) and not dialect.IS_NUMBER.fullmatch(cell):
                return TableFileError(
                    f"{self.name}, {place(row)}, column {name!r}: {cell[:80]!r} is not a number."
                )
        return TableFileError(f"{self.name}, column {name!r}: {column.type}, expected numbers.")

    def _text(self, column: Any, name: str) -> Any:
        import pyarrow
        from pyarrow import compute

        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            text = column.cast(pyarrow.string())
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise TableFileError(
                f"{self.name}, column {name!r}: {column.type} cannot be read as text."
            ) from error
        if (compute.max(compute.binary_length(text)).as_py() or 0) > LONGEST_CELL:
            raise TableFileError(
                f"{self.name}, column {name!r}: a cell is longer than {LONGEST_CELL} bytes."
            )
        return text


def opened(where: ByteSource, stream: BinaryIO, form: str, options: Any) -> ColumnarFile:
    """Open a Parquet or Feather file and check its size, names and types."""
    if where.is_one_shot:
        where = byte_source.buffered_source(stream, where.name)
    else:
        byte_source.close_stream(stream)
    reader = _parquet if form == byte_source.PARQUET else _feather
    with arrow_errors(form, where.name):
        schema, batches = reader(where, options)
    names = tuple(schema.names)
    dialect.check_width(len(names), where.name)
    check_unique(names, where.name)
    if not names:
        raise TableFileError(f"{where.name}: the file has no columns.")
    stored_kinds = {name: kind_of_type(schema.field(name).type) for name in names}
    return ColumnarFile(where.name, names, stored_kinds, batches, form, options)


Batches = Callable[[list[str]], Iterator[Any]]


def _parquet(where: ByteSource, options: Any) -> tuple[Any, Batches]:
    """The schema of a Parquet file, and a function for its record batches."""
    from pyarrow import parquet

    with _opened(where) as stream:
        file = parquet.ParquetFile(stream)
        meta, schema = file.metadata, file.schema_arrow
    sizes = (meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    if sum(sizes) > options.max_decompressed:
        raise byte_source.too_large(where.name, options.max_decompressed)

    def batches(columns: list[str]) -> Iterator[Any]:
        with _opened(where) as stream:
            # Without threads, since an Arrow thread that outlives the interpreter aborts.
            yield from parquet_batches(stream, columns, ROWS_PER_BLOCK, use_threads=False)

    return schema, batches


def parquet_batches(
    file: Any, columns: list[str], n_rows: int, *, use_threads: bool = True
) -> Iterator[Any]:
    """Record batches of at most ``n_rows`` rows with these columns, in this order.

    Neither a whole row group nor a whole column of it is ever in memory.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(file, buffer_size=2**17, pre_buffer=False) as opened_file:
        for batch in opened_file.iter_batches(n_rows, columns=columns, use_threads=use_threads):
            yield batch.select(columns)


def _feather(where: ByteSource, options: Any) -> tuple[Any, Batches]:
    """The same for a Feather file (version 2, the Arrow IPC format)."""
    from pyarrow import ipc

    with _opened(where) as stream:
        schema = ipc.open_file(stream).schema

    def batches(columns: list[str]) -> Iterator[Any]:
        with _opened(where) as stream:
            yield from _feather_batches(stream, columns, ROWS_PER_BLOCK)

    return schema, batches


def _feather_batches(stream: Any, columns: list[str], n_rows: int) -> Iterator[Any]:
    from pyarrow import ipc

    reader = ipc.open_file(stream, options=ipc.IpcReadOptions(use_threads=False))
    for i in range(reader.num_record_batches):
        batch = reader.get_batch(i)
        for start in range(0, batch.num_rows, n_rows):
            yield batch.slice(start, n_rows).select(columns)


# --- columns with their stored types ---


def stored_names(path: str) -> list[str]:
    """The names of the columns of a Parquet or Feather file."""
    from pyarrow import ipc, parquet

    if _is_feather(path):
        with _opened(byte_source.open_source(path, rereadable=False)) as stream:
            names = ipc.open_file(stream).schema.names
    else:
        names = parquet.read_schema(path).names
    check_unique(names, byte_source.display_path(path))
    return list(names)


def stored_batches(path: str, columns: list[str], n_rows: int) -> Iterator[Any]:
    """``parquet_batches`` of a Parquet or Feather file."""
    if not _is_feather(path):
        yield from parquet_batches(path, columns, n_rows)
        return
    with _opened(byte_source.open_source(path, rereadable=False)) as stream:
        yield from _feather_batches(stream, columns, n_rows)


def _is_feather(path: str) -> bool:
    return byte_source.form_of(path) == byte_source.FEATHER


def _null_where_nan(text: Any, column: Any) -> Any:
    """The text of a column with null for NaN: a number that is missing is no text."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not types.is_floating(kind):
        return text
    is_nan = compute.is_nan(column.cast(kind).cast(pyarrow.float64()))
    return compute.if_else(compute.fill_null(is_nan, False), None, text)


def without_texts(column: Any, missing: Collection[str]) -> Any:
    """A column of any type, with null for the texts that are in ``missing``."""
    import pyarrow
    from pyarrow import compute

    if not missing or kind_of_type(column.type) != TEXT:
        return column
    if pyarrow.types.is_dictionary(column.type):
        return without_missing(column, frozenset(missing))
    gone = compute.is_in(column, value_set=pyarrow.array(sorted(missing), column.type))
    return compute.if_else(gone, None, column)


def missing_labels(options: Any) -> tuple[str, ...]:
    """Texts that are no label: the empty one if the options say so, and no word ever."""
    return tuple(text for text in options.missing if text == "")


@contextlib.contextmanager
def _opened(where: ByteSource) -> Iterator[Any]:
    """The file opened by Arrow where possible: a Python file that an Arrow thread releases while
    the interpreter exits aborts the process."""
    import pyarrow

    if where.path is not None and where.path.isprintable():
        with pyarrow.OSFile(where.path) as file:
            yield file
        return
    content = pyarrow.BufferOutputStream()
    stream = where.open()
    shutil.copyfileobj(stream, content, byte_source.CHUNK)
    byte_source.close_stream(stream)
    yield pyarrow.BufferReader(content.getvalue())


def kind_of_type(kind: Any) -> str:
    """The kind of an Arrow type: number, text, dates, null, or the name of the type."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return TEXT if kind_of_type(kind.value_type) in (TEXT, NUMBER) else str(kind)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return NUMBER
    if types.is_decimal(kind):
        return NUMBER
    if types.is_null(kind):
        return NULL
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return TEXT
    return DATES if types.is_temporal(kind) else str(kind)


def _refuse_nested(kind: str, name: str, file: str) -> None:
    if kind not in (NUMBER, TEXT, DATES, NULL):
        raise TableFileError(
            f"{file}, column {name!r}: {printable(kind)[:80]}, expected numbers or "
            "text. Drop it, or split it into columns."
        )


def _row_places(first_row: int) -> Callable[[int], str]:
    return lambda row: f"row {first_row + row + 1}"


@contextlib.contextmanager
def arrow_errors(form: str, name: str) -> Iterator[None]:
    """Raise Arrow's errors as ``TableFileError``; errors of the system (with errno) pass."""
    import pyarrow

    try:
        yield
    except TableFileError:
        raise
    except (pyarrow.ArrowException, KeyError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = printable(str(error)).rstrip(".")[:200]
        raise TableFileError(f"{name}: damaged or unreadable {form} file: {reason}.") from error
