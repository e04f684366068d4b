"""The labels of a target column.

Labels are int if all of them are integers, else str. A column with one label, with a different
label in each row, or with fractions cannot be a target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from geomix.arrays import IntArray
from geomix.errors import TableFileError
from geomix.table.labels import plain_labels

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}", re.ASCII)
MOST_PLACES = 5
FRACTION = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+", re.ASCII)


def texts_and_codes(column: Any) -> tuple[list[str], IntArray]:
    """Distinct texts of an Arrow column of labels, and (n,) codes, -1 where missing."""
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return [], np.empty(0, dtype=np.intp)
    codes = [part.indices.fill_null(-1).to_numpy() for part in column.chunks]
    return column.chunk(0).dictionary.to_pylist(), np.concatenate(codes).astype(np.intp)


def are_integers(texts: Iterable[str]) -> bool:
    return all(WHOLE_NUMBER.fullmatch(text) for text in texts)


def as_labels(texts: list[str], *, as_integers: bool) -> Any:
    """An array of labels, from their texts."""
    return plain_labels([int(text) for text in texts] if as_integers else texts)


def raise_unlabelled(n_missing: int, n_rows: int, places: list[str], where: str) -> None:
    """Raise an error about missing labels; ``places`` : the first rows without one."""
    listed = ", ".join(places) + (", ..." if n_missing > len(places) else "")
    raise TableFileError(
        f"{where}: {n_missing} of {n_rows} labels are missing ({listed}). Ignore those rows "
        "with --drop-unlabelled."
    )


def check_classes(used: list[str], n_rows: int, where: str) -> None:
    """Raise unless there are at least two classes, and fewer classes than rows."""
    if len(used) == 0:
        raise TableFileError(f"{where}: no row has a label.")
    if len(used) == 1:
        raise TableFileError(
            f"{where}: all labels are {used[0][:80]!r}; at least two classes are needed."
        )
    check_not_measurements(used, where)
    if len(used) == n_rows and n_rows > 2:
        raise TableFileError(
            f"{where}: all {n_rows} labels are different; this is an identifier or a measurement, "
            "not a class."
        )


def check_not_measurements(used: list[str], where: str) -> None:
    odd = next((text for text in used if FRACTION.fullmatch(text)), None)
    if odd is not None and len(used) > 2:
        raise TableFileError(
            f"{where}: numbers such as {odd!r} are measurements, not classes; bin them into "
            "classes first."
        )
