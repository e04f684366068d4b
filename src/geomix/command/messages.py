"""Notes and warnings on standard error, and whether anybody watches."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from geomix.command.exit_codes import one_line, printed


def lenient_streams() -> None:
    """What a terminal's encoding does not have is shown as an escape rather than as an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def speaking(arguments: Any) -> Iterator[None]:
    """Warnings as one line each; with --strict the first is an error."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        is_strict = getattr(arguments, "strict", False)
        warnings.simplefilter("error" if is_strict else "always", UserWarning)
        warnings.showwarning = _show
        yield


def _show(message: Any, category: Any, *rest: Any, **named: Any) -> None:
    _line(f"warning: {one_line(message)}")


def warn(text: str) -> None:
    """A concern about the data: shown, or an error with --strict."""
    from geomix.errors import DataQualityWarning

    warnings.warn(text, DataQualityWarning, stacklevel=2)


def note(arguments: Any, texts: Iterable[str]) -> None:
    """Something to know, which --quiet leaves out."""
    if not arguments.quiet:
        for text in texts:
            _line(f"note: {printed(text)}")


def is_watched(arguments: Any) -> bool:
    """Whether a person sees standard error."""
    return not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()


def _line(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)
