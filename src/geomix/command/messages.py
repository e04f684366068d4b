"""Notes and warnings on standard error, and whether it is a terminal."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from geomix.command.exit_codes import on_one_line, printable_text


def escape_unencodable() -> None:
    """Print characters that the terminal cannot encode as escapes instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def warnings_on_stderr(arguments: Any) -> Iterator[None]:
    """Print each warning as one line; with --strict the first one is raised."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        is_strict = getattr(arguments, "strict", False)
        warnings.simplefilter("error" if is_strict else "always", UserWarning)
        # --strict is about the data.
        warnings.filterwarnings("always", message="Training stopped at max_iter")
        warnings.showwarning = _show
        yield


def _show(message: Any, category: Any, *rest: Any, **named: Any) -> None:
    _line(f"warning: {on_one_line(message)}")


def warn(text: str) -> None:
    """Warn about the data; an error with --strict."""
    from geomix.errors import DataQualityWarning

    warnings.warn(text, DataQualityWarning, stacklevel=2)


def warn_of_unknown(alignment: Any) -> None:
    """Warn of the cells whose level is not in the training data."""
    for name, count in alignment.unknown.items():
        if count:
            warn(
                f"Column {name!r}: {count} cells hold levels that are not in the training data "
                f"({alignment.table.name})."
            )


def note(arguments: Any, texts: Iterable[str]) -> None:
    """Print notes, unless --quiet is set."""
    if not arguments.quiet:
        for text in texts:
            _line(f"note: {printable_text(text)}")


def is_interactive(arguments: Any) -> bool:
    """Whether standard error is a terminal and --quiet is not set."""
    return not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()


def _line(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)
