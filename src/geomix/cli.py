"""The command ``geomix``: arguments in, an exit code out, one line for every error.

    0    good                                   4    a bad model file
    1    an error of our own, or the answer     5    the system: no such file, a full disk
         "no" where a command documents it      6    a warning, with --strict
    2    bad usage                              130  Ctrl-C;  143  SIGTERM;  141  a closed pipe
    3    bad data

Results go to standard output, everything else to standard error. Nothing heavy is imported
before a command runs, so that help and completion answer at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geomix.command.exit_codes import Failure, Terminated, told
from geomix.command.messages import lenient_streams, speaking
from geomix.command.parser import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    lenient_streams()
    debug = "--debug" in (sys.argv if argv is None else argv)
    try:
        with _terminable():
            arguments = parser().parse_args(argv)
            with speaking(arguments):
                code: int | None = arguments.run(arguments)
            _flush()
        return code or 0
    except BrokenPipeError:
        _silence_output()
        return 141
    except SystemExit as stop:  # argparse: help, version, usage
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    except BaseException as error:
        failure = told(error)
        if debug and not isinstance(error, (KeyboardInterrupt, Terminated)):
            _print_traceback()
        _say(failure)
        return failure.code


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM as an exception, so that what was begun is undone; put back afterwards."""

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(failure: Failure) -> None:
    if sys.stderr is not None and failure.message:
        with contextlib.suppress(OSError):
            print(f"error: {failure.message}", file=sys.stderr, flush=True)


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _flushed(code: int) -> int:
    try:
        _flush()
    except BrokenPipeError:
        _silence_output()
        return 141
    except OSError as error:
        _silence_output()
        failure = told(error)
        _say(failure)
        return failure.code
    return code


def _silence_output() -> None:
    """Let nothing more be written where nobody reads: Python flushes once more at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
