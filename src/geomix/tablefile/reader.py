"""Open a file of rows: ``open_table`` and its options."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from geomix.errors import InvalidParameterError, TableFileError
from geomix.tablefile import columnar, delimited
from geomix.tablefile.block import TableFile
from geomix.tablefile.byte_source import (
    FEATHER,
    PARQUET,
    close_stream,
    decompressed,
    detect_format,
    open_source,
    peek,
)

MOST_DECOMPRESSED_BYTES = 8 * 2**30


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file.

    delimiter, header, encoding, decimal, thousands : of delimited text; delimiter None: detected
    missing : cells that mean missing, besides empty cells (and NA and the like among numbers); in
        Parquet and Feather texts that mean missing besides null, such as ""
    max_decompressed : limit on the decompressed size in bytes
    """

    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    missing: tuple[str, ...] = ()
    max_decompressed: int = MOST_DECOMPRESSED_BYTES

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal", "thousands"):
            mark = getattr(self, name)
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
                raise InvalidParameterError(
                    f"Got {name}={mark!r}; expected one ASCII character, and no quote."
                )
        for name in ("decimal", "thousands"):
            mark = getattr(self, name)
            if mark is not None and (mark.isalnum() or mark in "+-"):
                raise InvalidParameterError(
                    f"Got {name}={mark!r}, which may be part of a number; expected a separator "
                    "such as '.' or ','."
                )
        if len({self.delimiter, self.decimal, self.thousands}) < 3 - (
            self.delimiter is None and self.thousands is None
        ):
            raise InvalidParameterError(
                f"Got delimiter={self.delimiter!r}, decimal={self.decimal!r} and "
                f"thousands={self.thousands!r}; expected three different characters."
            )
        try:
            "".encode(self.encoding)
        except (LookupError, UnicodeError):
            raise InvalidParameterError(
                f"Got encoding={self.encoding!r}, which is no encoding of text; expected a "
                "name such as utf-8, latin-1, cp1252 or utf-16."
            ) from None


def open_table(
    path: Any,
    options: ReadOptions | None = None,
    *,
    rereadable: bool = True,
    expected: Collection[str] = (),
) -> TableFile:
    """Open the table in a file; "-" is standard input.

    With ``rereadable=False`` a pipe is not buffered, and ``blocks`` can be called only once.
    ``expected`` : names of columns to look for, which may all be numbers. A header of numbers is
    refused otherwise, since it is probably a row.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("age;city\\n31;Bern\\n;Rome\\n")
    >>> table = open_table(path)
    >>> table.names
    ('age', 'city')
    >>> [block.columns["age"].to_pylist() for block in table.blocks({"age": "number"})]
    [[31.0, None]]
    """
    options = ReadOptions() if options is None else options
    source = open_source(path, rereadable=rereadable)
    first, stream = peek(source.open())
    try:
        form = detect_format(first, source.name)
    except TableFileError:
        close_stream(stream)
        raise
    if form in (PARQUET, FEATHER):
        return columnar.opened(source, stream, form, options)
    content = decompressed(stream, form, source.name, options.max_decompressed)
    return delimited.opened(source, content, form, options, expected)
