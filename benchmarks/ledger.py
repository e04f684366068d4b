"""A CSV that grows line by line and survives being stopped at any moment.

``append`` adds whole lines in one write and first drops what an interruption left of a line;
``replace`` swaps the file in one step; ``read`` sees complete lines only.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, str]]:
    """The complete lines, each as a dict by the header; none if there is no file."""
    if not path.exists():
        return []
    complete = path.read_text().rpartition("\n")[0]
    return list(csv.DictReader(io.StringIO(complete)))


def append(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(map(as_line, rows))
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            text = as_line(header) + text
        else:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                _drop_last_line(file)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    new.write_text(as_line(header) + "".join(map(as_line, rows)))
    os.replace(new, path)


def as_line(values: Iterable[Any]) -> str:
    """One line of CSV; line breaks in a message become spaces, so that lines stay lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([" ".join(str(v).split()) for v in values])
    return text.getvalue()


def _drop_last_line(file: Any) -> None:
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
