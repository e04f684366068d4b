"""Labels of a file: what a column of text says about classes.

Labels that are all whole numbers are numbers, all others are text. A column with one label, with
a label for each row, or with fractions is nothing to classify by.
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


def coded(column: Any) -> tuple[list[str], IntArray]:
    """Texts and codes of an Arrow column of labels; -1 where there is none."""
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return [], np.empty(0, dtype=np.intp)
    codes = [part.indices.fill_null(-1).to_numpy() for part in column.chunks]
    return column.chunk(0).dictionary.to_pylist(), np.concatenate(codes).astype(np.intp)


def are_whole(texts: Iterable[str]) -> bool:
    return all(WHOLE_NUMBER.fullmatch(text) for text in texts)


def labels_of(texts: list[str], *, as_integers: bool) -> Any:
    """An array of the labels that these texts are."""
    return plain_labels([int(text) for text in texts] if as_integers else texts)


def refuse_unlabelled(n_missing: int, n_rows: int, places: list[str], where: str) -> None:
    """``places`` : of the first rows without a label"""
    listed = ", ".join(places) + (", ..." if n_missing > len(places) else "")
    raise TableFileError(
        f"{where}: {n_missing} of {n_rows} labels are missing ({listed}). Leave those rows out "
        "with --drop-unlabelled."
    )


def refuse_no_classes(used: list[str], n_rows: int, where: str) -> None:
    """One class, a class for each row, or a quantity: nothing to classify."""
    if len(used) == 0:
        raise TableFileError(f"{where}: no row has a label.")
    if len(used) == 1:
        raise TableFileError(
            f"{where}: all labels are {used[0][:80]!r}; at least two classes are needed."
        )
    refuse_quantity(used, where)
    if len(used) == n_rows and n_rows > 2:
        raise TableFileError(
            f"{where}: all {n_rows} labels are different; this is an identifier or a quantity, not "
            "a class."
        )


def refuse_quantity(used: list[str], where: str) -> None:
    odd = next((text for text in used if FRACTION.fullmatch(text)), None)
    if odd is not None and len(used) > 2:
        raise TableFileError(
            f"{where}: numbers such as {odd!r} are a quantity, not classes; make classes of them."
        )
