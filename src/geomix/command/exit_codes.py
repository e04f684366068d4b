"""What can go wrong, in one line and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

OURS, USAGE, DATA, MODEL, SYSTEM, STRICT = 1, 2, 3, 4, 5, 6
INTERRUPTED, TERMINATED = 130, 143


class Failure(Exception):
    """An exit code, and one line about why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Terminated(BaseException):
    """SIGTERM came."""


def usage(message: str) -> Failure:
    return Failure(USAGE, message)


@contextlib.contextmanager
def blamed_on(code: int) -> Iterator[None]:
    """Errors of value inside the block are those of the data (3) or of the options (2)."""
    from geomix.errors import InvalidParameterError, ModelFileError

    try:
        yield
    except (ModelFileError, InvalidParameterError):
        raise
    except (ValueError, TypeError) as error:
        raise Failure(code, one_line(error)) from error


def told(error: BaseException) -> Failure:
    """Any error as an exit code and a line."""
    if isinstance(error, Failure):
        return Failure(error.code, printed(error.message))
    if isinstance(error, KeyboardInterrupt):
        return Failure(INTERRUPTED, "interrupted")
    if isinstance(error, Terminated):
        return Failure(TERMINATED, "terminated")
    if isinstance(error, OSError):
        return Failure(SYSTEM, _system(error))
    if isinstance(error, MemoryError):
        return Failure(OURS, "not enough memory")
    if isinstance(error, Warning):
        return Failure(STRICT, f"{one_line(error)} (a warning; --strict makes it an error)")
    return _of_ours(error)


def _of_ours(error: BaseException) -> Failure:
    from geomix.errors import InvalidParameterError, ModelFileError, SchemaError, TableFileError

    for kind, code in (
        (ModelFileError, MODEL),
        (InvalidParameterError, USAGE),
        (SchemaError, DATA),
        (TableFileError, DATA),
    ):
        if isinstance(error, kind):
            return Failure(code, one_line(error))
    if isinstance(error, ImportError):  # of an extra that is not installed, and says so
        return Failure(USAGE, one_line(error))
    report = report_id(error, error.__traceback__)
    kind_name = type(error).__name__
    return Failure(
        OURS,
        f"internal error {report} ({kind_name}: {one_line(error)[:200]}). Please report it with "
        "this number and what --debug prints.",
    )


def _system(error: OSError) -> str:
    what = error.strerror or one_line(error) or type(error).__name__
    if error.errno == errno.ENOSPC:
        what = "no space left on the device"
    where = error.filename
    if where is None:
        return printed(what)
    name = os.fsdecode(where) if isinstance(where, (str, bytes)) else str(where)
    return printed(f"{name}: {what}")


def report_id(error: BaseException, at: Any) -> str:
    """The same short text for the same fault: of its kind and the lines that it came through."""
    import hashlib
    import traceback

    frames = traceback.extract_tb(at)
    trail = [f"{os.path.basename(one.filename)}:{one.name}:{one.lineno}" for one in frames]
    digest = hashlib.sha256("|".join([type(error).__name__, *trail]).encode())
    return digest.hexdigest()[:8]


def one_line(error: BaseException) -> str:
    return printed(" ".join(str(error).split()))


def printed(text: str) -> str:
    """Without control characters: a terminal must not obey a file's content."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )
