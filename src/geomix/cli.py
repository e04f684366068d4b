"""The command ``geomix``: run one command, print errors as one line, return an exit code.

    0    success                                4    a bad model file
    1    an internal error, or a negative       5    the system: no such file, a full disk
         result (drift, no counterfactual)      6    a warning, with --strict
    2    bad usage                              130  Ctrl-C;  143  SIGTERM;  141  a closed pipe
    3    bad data

Results go to standard output, everything else to standard error. NumPy and the
like are imported only when a command runs, so that help and completion are fast.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from geomix.command.exit_codes import CommandError, Terminated, as_command_error
from geomix.command.messages import escape_unencodable, warnings_on_stderr
from geomix.command.parser import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    escape_unencodable()
    debug = "--debug" in (sys.argv if argv is None else argv)
    try:
        with _terminable():
            arguments = parser().parse_args(argv)
            with warnings_on_stderr(arguments):
                code: int | None = arguments.run(arguments)
            _flush()
        return code or 0
    except BrokenPipeError:
        _discard_output()
        return 141
    except SystemExit as stop:  # argparse: help, version, usage
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    except BaseException as error:
        failure = as_command_error(error)
        if debug and not isinstance(error, (KeyboardInterrupt, Terminated)):
            _print_traceback()
        _print_error(failure)
        return failure.code


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Raise ``Terminated`` on SIGTERM, so that temporary files are removed."""

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


def _print_error(failure: CommandError) -> None:
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
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        failure = as_command_error(error)
        _print_error(failure)
        return failure.code
    return code


def _discard_output() -> None:
    """Point standard output at /dev/null, since Python flushes it once more at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
