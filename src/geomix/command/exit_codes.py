"""Errors of the command line: one line of text and an exit code each."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

INTERNAL, USAGE, DATA, MODEL, SYSTEM, WARNING = 1, 2, 3, 4, 5, 6
INTERRUPTED, TERMINATED = 130, 143


class CommandError(Exception):
    """An exit code and a message of one line."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Terminated(BaseException):
    """The process received SIGTERM."""


def usage_error(message: str) -> CommandError:
    return CommandError(USAGE, message)


@contextlib.contextmanager
def exit_code_for_bad_values(code: int) -> Iterator[None]:
    """Exit with ``code`` on a ValueError or TypeError in the block: DATA, or USAGE for options."""
    from geomix.errors import InvalidParameterError, ModelFileError

    try:
        yield
    except (ModelFileError, InvalidParameterError):
        raise
    except (ValueError, TypeError) as error:
        raise CommandError(code, on_one_line(error)) from error


def as_command_error(error: BaseException) -> CommandError:
    """Any exception as an exit code and a message."""
    if isinstance(error, CommandError):
        return CommandError(error.code, printable_text(error.message))
    if isinstance(error, KeyboardInterrupt):
        return CommandError(INTERRUPTED, "interrupted")
    if isinstance(error, Terminated):
        return CommandError(TERMINATED, "terminated")
    if isinstance(error, OSError):
        return CommandError(SYSTEM, _system_error(error))
    if isinstance(error, MemoryError):
        return CommandError(INTERNAL, "not enough memory")
    if isinstance(error, Warning):
        return CommandError(
            WARNING, f"{on_one_line(error)} (a warning; --strict makes it an error)"
        )
    return _by_type(error)


def _by_type(error: BaseException) -> CommandError:
    from geomix.errors import InvalidParameterError, ModelFileError, SchemaError, TableFileError

    for kind, code in (
        (ModelFileError, MODEL),
        (InvalidParameterError, USAGE),
        (SchemaError, DATA),
        (TableFileError, DATA),
    ):
        if isinstance(error, kind):
            return CommandError(code, on_one_line(error))
    if isinstance(error, ImportError):  # a missing extra; the message names it
        return CommandError(USAGE, on_one_line(error))
    report = report_id(error, error.__traceback__)
    kind_name = type(error).__name__
    return CommandError(
        INTERNAL,
        f"internal error {report} ({kind_name}: {on_one_line(error)[:200]}). Please report it with "
        "this number and the output of --debug.",
    )


def _system_error(error: OSError) -> str:
    what = error.strerror or on_one_line(error) or type(error).__name__
    if error.errno == errno.ENOSPC:
        what = "no space left on the device"
    where = error.filename
    if where is None:
        return printable_text(what)
    name = os.fsdecode(where) if isinstance(where, (str, bytes)) else str(where)
    return printable_text(f"{name}: {what}")


def report_id(error: BaseException, at: Any) -> str:
    """A hash of the exception type and the traceback: the same fault has the same id."""
    import hashlib
    import traceback

    frames = traceback.extract_tb(at)
    places = [f"{os.path.basename(one.filename)}:{one.name}:{one.lineno}" for one in frames]
    digest = hashlib.sha256("|".join([type(error).__name__, *places]).encode())
    return digest.hexdigest()[:8]


def on_one_line(error: BaseException) -> str:
    return printable_text(" ".join(str(error).split()))


def printable_text(text: str) -> str:
    """Text with control characters escaped, so that no cell can control the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode()
        for sign in text
    )
