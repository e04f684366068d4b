"""Atomic writing: a reader finds the old file or the new one, never a part of it.

    temporary file beside the target  ->  write  ->  fsync  ->  rename over it  ->  fsync directory

A killed process leaves the target unchanged and a temporary file, which the next write to the same
target removes once it is an hour old. A new file has the permissions of the umask; a replaced file
keeps its permissions. A symbolic link is kept, and its target is replaced. Only regular files are
replaced: ``/dev/null`` stays a device.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

SECONDS_UNTIL_STALE = 3600.0
LONGEST_STEM = 200  # bytes; most systems allow file names of 255


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """A binary file that replaces ``path`` when the block ends without an error.

    An exception inside the block leaves ``path`` unchanged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(target) as file:
    ...     _ = file.write(b"1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    target = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(os.fsdecode(target))
    mode = _mode_of(target)
    stem = _stem(name)
    _remove_stale(folder, stem)
    temporary = os.path.join(folder, f".{stem}.{os.getpid()}.{secrets.token_hex(6)}.tmp")
    try:  # from here on, so that Ctrl-C right after the file was created removes it too
        # Private until it has the permissions of the file that it replaces.
        with _create(temporary, 0o666 if mode is None else 0o600) as file:
            yield file
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def write_bytes(path: Any, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically."""
    with replacing(path) as file:
        file.write(content)


def _mode_of(target: Any) -> int | None:
    """Permissions of the existing file, or None."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(target))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", os.fsdecode(target))
    return stat.S_IMODE(found.st_mode)


def _stem(name: str) -> str:
    encoded = os.fsencode(name)
    return name if len(encoded) <= LONGEST_STEM else hashlib.sha256(encoded).hexdigest()[:32]


def _create(path: str, mode: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):  # not on every system
        flags |= getattr(os, name, 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


def _remove_stale(folder: str, stem: str) -> None:
    pattern = re.compile(rf"\.{re.escape(stem)}\.[0-9]+\.[0-9a-f]{{12}}\.tmp")
    oldest = time.time() - SECONDS_UNTIL_STALE
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)


def _sync_folder(folder: str) -> None:
    """Make the rename durable, on systems that can sync folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
