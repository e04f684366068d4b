"""The bytes of a file, a pipe or standard input, decompressed.

The format is detected from the first bytes, never from the name. The decompressed size is limited,
since a few kilobytes can decompress to terabytes.
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
BUFFER_IN_MEMORY = 2**26  # bytes of a pipe; more are buffered in an unnamed temporary file
STANDARD_INPUT = "-"

# Formats by their first bytes.
PARQUET, FEATHER = "Parquet", "Feather"
MAGIC = {
    b"PAR1": PARQUET,
    b"ARROW1": FEATHER,
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}
NOT_A_TABLE = {
    b"PK\x03\x04": "a zip archive or a spreadsheet; save it as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save it as CSV or Parquet",
    b"\x89HDF": "an HDF5 file; save it as CSV or Parquet",
    b"FEA1": "a Feather file of version 1; save it as version 2",
    b"SQLite format 3": "an SQLite database; export the table as CSV",
    b"%PDF": "a PDF",
    b"\x80\x04\x95": "a pickle, which is never loaded for safety",
    b"\x80\x05\x95": "a pickle, which is never loaded for safety",
}


@dataclass(frozen=True)
class ByteSource:
    """Bytes with a name for messages. ``open`` starts at the first byte; if ``is_one_shot`` it can
    be called only once. path : of a regular file, else None"""

    name: str
    open: Callable[[], BinaryIO]
    is_one_shot: bool
    path: str | None = None


def open_source(path: Any, *, rereadable: bool) -> ByteSource:
    """The bytes of a path; "-" is standard input. With ``rereadable`` a pipe is buffered, above
    64 MB in an unnamed temporary file, so that it can be opened again."""
    if path == STANDARD_INPUT:
        return _from_stream(_standard_input(), "standard input", rereadable)
    name = display_path(path)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", name)
    if stat.S_ISREG(mode):
        return ByteSource(name, lambda: open(path, "rb"), is_one_shot=False, path=os.fsdecode(path))
    return _from_stream(open(path, "rb"), name, rereadable)


def display_path(path: Any) -> str:
    """A path for messages, with control characters escaped."""
    return printable(os.fsdecode(path).encode("utf-8", "backslashreplace").decode())


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise OSError(9, "Standard input is closed")
    return cast(BinaryIO, sys.stdin.buffer)


def _from_stream(stream: BinaryIO, name: str, rereadable: bool) -> ByteSource:
    if not rereadable:
        return ByteSource(name, lambda: stream, is_one_shot=True)
    return buffered_source(stream, name)


def buffered_source(stream: BinaryIO, name: str) -> ByteSource:
    """The rest of a stream, buffered so that it can be read any number of times."""
    kept = tempfile.SpooledTemporaryFile(max_size=BUFFER_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(stream, kept, CHUNK)

    def again() -> BinaryIO:
        kept.seek(0)
        return cast(BinaryIO, kept)

    return ByteSource(name, again, is_one_shot=False)


def peek(stream: BinaryIO, size: int = 16) -> tuple[bytes, BinaryIO]:
    """The first bytes of a stream, and a stream that starts with them."""
    if hasattr(stream, "peek"):
        first = bytes(stream.peek(size)[:size])
        if len(first) == size:
            return first, stream
    if stream.seekable():
        first = stream.read(size)
        stream.seek(0)
        return first, stream
    first = _read_exactly(stream, size)
    return first, cast(BinaryIO, _Prepended(first, stream))


def detect_format(first: bytes, name: str) -> str:
    """The format of a file from its first bytes: a value of ``MAGIC``, or "" for text."""
    for magic, described in NOT_A_TABLE.items():
        if first.startswith(magic):
            raise TableFileError(f"{name}: not a table, but {described}.")
    return next((form for magic, form in MAGIC.items() if first.startswith(magic)), "")


def form_of(path: Any) -> str:
    """The format of a file: a value of ``MAGIC``, or "" for text."""
    with open(path, "rb") as file:
        return detect_format(file.read(16), display_path(path))


def decompressed(stream: BinaryIO, form: str, name: str, budget: int) -> BinaryIO:
    """The decompressed stream, limited to ``budget`` bytes."""
    if form == "":
        return stream
    if form == "zstd":
        import pyarrow

        inside = pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), "zstd")
    else:
        openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        inside = openers[form](stream, "rb")
    return cast(BinaryIO, _SizeLimited(inside, stream, form, name, budget))


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, a few megabytes at a time; closes the stream at the end."""
    try:
        while chunk := _read_exactly(stream, CHUNK):
            yield chunk
    finally:
        close_stream(stream)


def close_stream(stream: BinaryIO) -> None:
    """Close a stream, unless it is a buffer that is read again, or standard input."""
    is_ours = not isinstance(stream, tempfile.SpooledTemporaryFile)
    if is_ours and (sys.stdin is None or stream is not sys.stdin.buffer):
        stream.close()


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes, or fewer at the end; one read of a pipe may return fewer."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class _Prepended:
    """A stream that cannot seek, preceded by the bytes that were already read from it."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        return self._stream.read(size)

    def close(self) -> None:
        close_stream(self._stream)


class _SizeLimited:
    """A decompressed stream that raises if it is damaged or larger than the budget."""

    def __init__(self, stream: Any, below: BinaryIO, form: str, name: str, budget: int) -> None:
        self._stream, self._below, self._form, self._name = stream, below, form, name
        self._budget, self._n_read = budget, 0

    def read(self, size: int = -1) -> bytes:
        with decompression_errors(self._form, self._name):
            part: bytes = self._stream.read(size)
        self._n_read += len(part)
        if self._n_read > self._budget:
            raise too_large(self._name, self._budget)
        return part

    def close(self) -> None:
        close_stream(self._below)


@contextlib.contextmanager
def decompression_errors(form: str, name: str) -> Iterator[None]:
    """Raise decompression errors as ``TableFileError``; errors of the system (with errno) pass."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TableFileError(f"{name}: damaged or truncated {form} data: {error}.") from error


def too_large(name: str, budget: int) -> TableFileError:
    return TableFileError(
        f"{name}: decompresses to more than {budget} bytes; allow more with --max-decompressed."
    )
