"""A table to learn from: which columns are numbers, which are text, and all rows in memory.

The first block tells; a column that later turns out to hold text is read again as such. Text that
is mostly numbers, numbers with a decimal comma, and dates are refused rather than learnt as
categories, since nobody means that.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from geomix.arrays import BoolArray
from geomix.errors import DataQualityWarning, TableFileError
from geomix.tablefile.block import NUMBER, TEXT, TableFile, place_in
from geomix.tablefile.columnar import DATES
from geomix.tablefile.delimited import NotNumbers

LARGEST_EXACT_INTEGER = 2**53
# From this share on a column is taken as meant to be what these cells are.
MOSTLY = 0.5
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
GROUPED = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d+)?\s*", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)( .*)?", re.ASCII)


def read_whole(
    table: TableFile, fixed: Mapping[str, str], free: Iterable[str], *, single: bool = False
) -> dict[str, Any]:
    """Arrow columns by name: those of ``fixed`` as they are to be, ``free`` ones as they are.

    single : numbers in float32, which takes half the memory
    """
    free = list(free)
    kinds = dict(fixed) | _guessed(table, free)
    while True:
        try:
            columns = _columns(table, kinds, single)
            break
        except NotNumbers as error:
            widened = [name for name in error.columns if name not in fixed]
            if len(widened) < len(error.columns):
                raise
            kinds |= dict.fromkeys(widened, TEXT)
    for name in free:
        if kinds[name] == NUMBER:
            _warn_inexact(name, columns[name])
        elif not table.natural:
            _refuse_meant_otherwise(table, name, columns[name])
    return columns


def _guessed(table: TableFile, free: list[str]) -> dict[str, str]:
    if table.natural:
        return {name: _natural(table, name) for name in free}
    first = next(table.blocks(dict.fromkeys(free, TEXT)), None)
    if first is None:
        return dict.fromkeys(free, NUMBER)
    return {name: _guess(first.columns[name], table) for name in free}


def _natural(table: TableFile, name: str) -> str:
    kind = table.natural[name]
    if kind == DATES:
        raise TableFileError(
            f"{table.name}, column {name!r}: dates or times; drop it (--drop), or make "
            "numbers of it (a year, an age in days)."
        )
    return kind


def _guess(column: Any, table: TableFile) -> str:
    texts = {text for part in column.chunks for text in part.dictionary.to_pylist()}
    return NUMBER if all(map(table.reads_as_number, texts)) else TEXT


def _columns(table: TableFile, kinds: Mapping[str, str], single: bool) -> dict[str, Any]:
    import pyarrow

    parts: dict[str, list[Any]] = {name: [] for name in kinds}
    for block in table.blocks(kinds):
        for name, kind in kinds.items():
            column = block.columns[name]
            if single and kind == NUMBER:
                column = column.cast(pyarrow.float32())
            parts[name].extend(column.chunks)
    return {name: _joined(made, kinds[name]) for name, made in parts.items()}


def _joined(parts: list[Any], kind: str) -> Any:
    import pyarrow

    if not parts:
        empty = pyarrow.float64() if kind == NUMBER else pyarrow.string()
        return pyarrow.chunked_array([], empty)
    column = pyarrow.chunked_array(parts)
    return column.unify_dictionaries() if kind != NUMBER else column


def _warn_inexact(name: str, column: Any) -> None:
    """Numbers that look like identifiers too long for a float64."""
    from pyarrow import compute

    limits = compute.min_max(column).as_py()
    largest = max(abs(limits["min"] or 0.0), abs(limits["max"] or 0.0))
    if LARGEST_EXACT_INTEGER < largest < 1e40:
        whole = compute.all(compute.equal(compute.floor(column), column)).as_py()
        if whole:
            warnings.warn(
                f"Column {name!r} holds integers up to {largest:.0f}, beyond 2**53: as "
                "float64 they lose their last digits. If it is an identifier, drop it (--drop).",
                DataQualityWarning,
                stacklevel=2,
            )


def _refuse_meant_otherwise(table: TableFile, name: str, column: Any) -> None:
    """Refuse a column of text that was probably meant to be something else."""
    if column.num_chunks == 0 or column.null_count == len(column):
        return
    texts = column.chunk(0).dictionary.to_pylist()
    codes = np.concatenate([part.indices.fill_null(-1).to_numpy() for part in column.chunks])
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))

    def share(of: BoolArray) -> float:
        return float(counts[of].sum() / counts.sum())

    def which(test: Callable[[str], Any]) -> BoolArray:
        return np.array([bool(test(text)) for text in texts], dtype=bool)

    numbers = which(table.reads_as_number)
    where = f"{table.name}, column {name!r}"
    for pattern, what, remedy in (
        (GROUPED, "marks between thousands", "--thousands ,"),
        (DECIMAL_COMMA, "a decimal comma", "--decimal ,"),
    ):
        like = which(pattern.fullmatch)
        if like.any() and share(like | numbers) >= MOSTLY:
            text, place = _first(table, codes, like, texts)
            raise TableFileError(
                f"{where}, {place}: {text} is a number with {what}; give {remedy}."
            )
    if share(numbers) >= MOSTLY:
        text, place = _first(table, codes, ~numbers, texts)
        raise TableFileError(
            f"{where}, {place}: {text}, where {share(numbers):.0%} of the cells are numbers. If it "
            f"means missing, give --missing {text}; if these are categories, --categorical."
        )
    if share(which(DATE.fullmatch)) >= MOSTLY:
        text, place = _first(table, codes, which(DATE.fullmatch), texts)
        raise TableFileError(
            f"{where}, {place}: dates such as {text}; drop the column (--drop), or make numbers of "
            "it (a year, an age in days)."
        )


def _first(table: TableFile, codes: Any, which: BoolArray, texts: list[str]) -> tuple[str, str]:
    """The first of the cells with these texts, and its place in the file."""
    row = int(np.append(which, False)[codes].argmax())
    return repr(texts[codes[row]][:80]), place_in(table, row)
