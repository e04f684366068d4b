"""Bytes of a table's file, from wherever they come: a file, a pipe, standard input, compressed.

A format is told by a file's first bytes, never by its name. Compressed bytes are counted as they
unfold: a few kilobytes can hold terabytes, and nobody means that.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from geomix.errors import TableFileError
from geomix.table.printing import printable

CHUNK = 2**23  # bytes read at a time
KEPT_IN_MEMORY = 2**26  # of what cannot be read twice; more goes to an unnamed temporary file
STANDARD_INPUT = "-"

# What a file is, by its first bytes; None: nothing that holds a table.
PARQUET, FEATHER = "Parquet", "Feather"
MAGIC = {
    b"PAR1": PARQUET,
    b"ARROW1": FEATHER,
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
NO_TABLE = {
    b"PK\x03\x04": "a zip archive or a spreadsheet; save it as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save it as CSV or Parquet",
    b"\x89HDF": "an HDF5 file; save it as CSV or Parquet",
    b"FEA1": "a Feather file of version 1; write it again with a current version",
    b"SQLite format 3": "an SQLite database; export the table as CSV",
    b"%PDF": "a PDF",
    b"\x80\x04\x95": "a pickle, which is never opened",
    b"\x80\x05\x95": "a pickle, which is never opened",
}


@dataclass(frozen=True)
class ByteSource:
    """Bytes under a name. ``open`` gives them from the beginning; where ``once`` is true it can be
    called one time only. path : of a regular file, else None"""

    name: str
    open: Callable[[], BinaryIO]
    once: bool
    path: str | None = None


def source_of(path: Any, *, rereadable: bool) -> ByteSource:
    """The bytes at a path, "-" being standard input. ``rereadable`` ones may be opened again,
    for which those of a pipe are kept (an unnamed temporary file above 64 MB)."""
    if path == STANDARD_INPUT:
        return _from_stream(_standard_input(), "standard input", rereadable)
    name = shown(path)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", name)
    if stat.S_ISREG(mode):
        return ByteSource(name, lambda: open(path, "rb"), once=False, path=os.fsdecode(path))
    return _from_stream(open(path, "rb"), name, rereadable)


def shown(path: Any) -> str:
    """A path for messages, without control characters."""
    return printable(os.fsdecode(path).encode("utf-8", "backslashreplace").decode())


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise OSError(9, "Standard input is closed")
    return cast(BinaryIO, sys.stdin.buffer)


def _from_stream(stream: BinaryIO, name: str, rereadable: bool) -> ByteSource:
    if not rereadable:
        return ByteSource(name, lambda: stream, once=True)
    return kept_source(stream, name)


def kept_source(stream: BinaryIO, name: str) -> ByteSource:
    """All that a stream still has, to be read as often as is needed."""
    kept = tempfile.SpooledTemporaryFile(max_size=KEPT_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(stream, kept, CHUNK)

    def again() -> BinaryIO:
        kept.seek(0)
        return cast(BinaryIO, kept)

    return ByteSource(name, again, once=False)


def beginning(stream: BinaryIO, size: int = 16) -> tuple[bytes, BinaryIO]:
    """The first bytes of a stream, and a stream that still has them."""
    if hasattr(stream, "peek"):
        first = bytes(stream.peek(size)[:size])
        if len(first) == size:
            return first, stream
    if stream.seekable():
        first = stream.read(size)
        stream.seek(0)
        return first, stream
    first = _read_fully(stream, size)
    return first, cast(BinaryIO, _Prepended(first, stream))


def form_of(first: bytes, name: str) -> str:
    """What a file's first bytes say it is: a key of ``MAGIC``'s values, or "" for text."""
    for magic, described in NO_TABLE.items():
        if first.startswith(magic):
            raise TableFileError(f"{name}: no table, but {described}.")
    return next((form for magic, form in MAGIC.items() if first.startswith(magic)), "")


def unfolded(stream: BinaryIO, form: str, name: str, budget: int) -> BinaryIO:
    """The stream without its compression, within the budget of bytes."""
    if form == "":
        return stream
    if form == "zstd":
        import pyarrow

        inside = pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd")
    else:
        openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        inside = openers[form](stream, "rb")
    return cast(BinaryIO, _Budgeted(inside, stream, form, name, budget))


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, a few megabytes at a time; it is let go at the end."""
    try:
        while chunk := _read_fully(stream, CHUNK):
            yield chunk
    finally:
        let_go(stream)


def let_go(stream: BinaryIO) -> None:
    """Close a stream, unless it is ours to read again or not ours at all."""
    is_ours = not isinstance(stream, tempfile.SpooledTemporaryFile)
    if is_ours and (sys.stdin is None or stream is not sys.stdin.buffer):
        stream.close()


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes, or what is left: a pipe gives less than it is asked for."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class _Prepended:
    """A stream that cannot go back, with the bytes that were read from it already."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        return self._stream.read(size)

    def close(self) -> None:
        let_go(self._stream)


class _Budgeted:
    """Unfolded bytes, counted: more than the budget is an error, and so is damage."""

    def __init__(self, stream: Any, below: BinaryIO, form: str, name: str, budget: int) -> None:
        self._stream, self._below, self._form, self._name = stream, below, form, name
        self._budget, self._n_read = budget, 0

    def read(self, size: int = -1) -> bytes:
        with damage_named(self._form, self._name):
            part: bytes = self._stream.read(size)
        self._n_read += len(part)
        if self._n_read > self._budget:
            raise over_budget(self._name, self._budget)
        return part

    def close(self) -> None:
        let_go(self._below)


@contextlib.contextmanager
def damage_named(form: str, name: str) -> Iterator[None]:
    """Errors of a decompressor in our words. (Those of the system have a number, and pass.)"""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TableFileError(f"{name}: damaged or truncated {form} data: {error}.") from error


def over_budget(name: str, budget: int) -> TableFileError:
    return TableFileError(
        f"{name}: unfolds to more than {budget} bytes; if that is meant, allow more with "
        "--max-unfolded."
    )
