"""The door: a path and how to read it become a table of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geomix.errors import InvalidParameterError, TableFileError
from geomix.tablefile import columnar, delimited
from geomix.tablefile.block import TableFile
from geomix.tablefile.byte_source import (
    FEATHER,
    PARQUET,
    beginning,
    form_of,
    let_go,
    source_of,
    unfolded,
)

LARGEST_UNFOLDED = 8 * 2**30


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read; None: found from the file.

    delimiter, header, encoding, decimal, thousands : of delimited text
    missing : cells that mean missing besides empty ones (and NA and the like among numbers)
    max_unfolded : most bytes of compressed content
    """

    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    missing: tuple[str, ...] = ()
    max_unfolded: int = LARGEST_UNFOLDED

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal", "thousands"):
            mark = getattr(self, name)
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
                raise InvalidParameterError(
                    f"Got {name}={mark!r}; expected one ASCII character other than a quote."
                )
        if len({self.delimiter, self.decimal, self.thousands}) < 3 - (
            self.delimiter is None and self.thousands is None
        ):
            raise InvalidParameterError(
                f"Got delimiter={self.delimiter!r}, decimal={self.decimal!r} and "
                f"thousands={self.thousands!r}; expected different characters."
            )
        try:
            "".encode(self.encoding)
        except LookupError:
            raise InvalidParameterError(
                f"Got encoding={self.encoding!r}, which Python does not know; expected utf-8, "
                "latin-1, cp1252, utf-16 or the like."
            ) from None


def open_table(
    path: Any, options: ReadOptions | None = None, *, rereadable: bool = True
) -> TableFile:
    """The table in a file, or on standard input for "-".

    Where ``rereadable`` is false a pipe is read as it comes, and ``blocks`` can be asked for once.

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
    source = source_of(path, rereadable=rereadable)
    first, stream = beginning(source.open())
    try:
        form = form_of(first, source.name)
    except TableFileError:
        let_go(stream)
        raise
    if form in (PARQUET, FEATHER):
        return columnar.opened(source, stream, form, options)
    content = unfolded(stream, form, source.name, options.max_unfolded)
    return delimited.opened(source, content, form, options)
