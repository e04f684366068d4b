"""Files that have to stay the same while several passes read them.

The first look at a file remembers its size, time of change, inode and a digest. Every pass compares
them before its first row and after its last, and the number of rows with that of the first
complete pass. The digest is of the whole file up to 4 MiB, and of 64 parts of a larger one: the
size and the time give most changes away, the digest those that keep both.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from geomix.errors import TableFileError
from geomix.tablefile.byte_source import STANDARD_INPUT, display_path

# 64 parts of 64 KiB take about 5 ms; the last part holds the footer of most Parquet files.
N_PARTS, PART = 64, 2**16

T = TypeVar("T")


class FileState(NamedTuple):
    """size in bytes;  modified : nanoseconds;  inode;  digest of the content, or of parts of it"""

    size: int
    modified: int
    inode: int
    digest: bytes


def file_state(path: Any) -> FileState | None:
    """The state of a regular file; None for pipes and standard input, which are read once."""
    if path == STANDARD_INPUT or not stat.S_ISREG(os.stat(path).st_mode):
        return None
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        digest = hashlib.blake2b(digest_size=16)
        for place in _places(found.st_size):
            file.seek(place)
            digest.update(file.read(PART))
    return FileState(found.st_size, found.st_mtime_ns, found.st_ino, digest.digest())


def _places(size: int) -> list[int]:
    """Where the parts of the digest begin: all of the file, or evenly spaced with both ends."""
    if size <= N_PARTS * PART:
        return list(range(0, size, PART))
    return [k * (size - PART) // (N_PARTS - 1) for k in range(N_PARTS)]


class UnchangedFile:
    """A file as it was at the first look, and the number of its rows once a pass has seen them."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._state = file_state(path)
        self._n_rows: int | None = None

    def read(self, parts: Callable[[], Iterator[T]], n_rows: Callable[[T], int]) -> Iterator[T]:
        """The parts of one pass over the file; ``n_rows`` counts those of a part.

        Raises ``TableFileError`` if the file is not what it was at the first look. An error of
        the reader is most likely a consequence of the change, so the change is reported instead.
        """
        seen = 0
        try:
            self._check()
            for part in parts():
                seen += n_rows(part)
                yield part
        except Exception as error:
            self._check(error)
            raise
        self._check()
        self._count(seen)

    def _check(self, cause: Exception | None = None) -> None:
        if self._state is None:
            return
        try:
            now = file_state(self._path)
        except OSError as gone:
            raise self._changed("it cannot be opened any more") from gone
        if now == self._state:
            return
        if now is not None and now.size != self._state.size:
            what = f"it had {self._state.size} bytes and now has {now.size}"
        else:
            what = "its content or its time of change is another one"
        raise self._changed(what) from cause

    def _count(self, seen: int) -> None:
        if self._n_rows not in (None, seen):
            raise self._changed(f"it had {self._n_rows} rows and now has {seen}")
        self._n_rows = seen

    def _changed(self, what: str) -> TableFileError:
        return TableFileError(
            f"{display_path(self._path)} changed while it was being read: {what}. Fit again on a "
            "file that nothing writes to, such as a copy."
        )
