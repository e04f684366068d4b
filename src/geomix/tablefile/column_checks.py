"""What the cells of free columns look like, added up block by block.

Text that is mostly numbers, numbers with a decimal comma, and dates are refused rather than learnt
as categories, since nobody means that. Whole numbers that a float64 cannot hold are warned about.
"""

from __future__ import annotations

import collections
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomix.errors import DataQualityWarning, TableFileError
from geomix.tablefile.block import NUMBER, Block, TableFile, place_in

LARGEST_EXACT_INTEGER = 2**53
# From this share on a column is taken as meant to be what these cells are.
MOSTLY = 0.5
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
GROUPED = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d+)?\s*", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)( .*)?", re.ASCII)


class Looks:
    """The looks of a table's columns, of which ``kinds`` says what each is read as."""

    def __init__(self, table: TableFile, kinds: Mapping[str, str]) -> None:
        self.table = table
        numbers = [name for name, kind in kinds.items() if kind == NUMBER]
        # A file that tells the kinds of its columns means them.
        texts = [] if table.natural else [name for name in kinds if name not in numbers]
        self.numbers = {name: NumberLook() for name in numbers}
        self.texts = {name: TextLook(table.reads_as_number) for name in texts}

    def add(self, block: Block) -> None:
        for name, number in self.numbers.items():
            number.add(block.columns[name])
        for name, text in self.texts.items():
            text.add(block.columns[name], block.first_row)

    def tell(self) -> None:
        """Warn of numbers that lose digits, and refuse text that was meant otherwise."""
        for name, number in self.numbers.items():
            if number.is_inexact:
                warnings.warn(
                    f"Column {name!r} holds integers up to {number.largest:.0f}, beyond 2**53: as "
                    "float64 they lose their last digits. If it is an identifier, drop it "
                    "(--drop).",
                    DataQualityWarning,
                    stacklevel=2,
                )
        for name, text in self.texts.items():
            text.refuse_meant_otherwise(self.table, name)


@dataclass
class NumberLook:
    """largest : absolute value;  is_whole : whether all are whole numbers"""

    largest: float = 0.0
    is_whole: bool = True

    def add(self, column: Any) -> None:
        from pyarrow import compute

        limits = compute.min_max(column).as_py()
        self.largest = max(self.largest, abs(limits["min"] or 0.0), abs(limits["max"] or 0.0))
        if self.is_whole:
            equal = compute.all(compute.equal(compute.floor(column), column)).as_py()
            self.is_whole = equal is not False

    @property
    def is_inexact(self) -> bool:
        """Numbers that look like identifiers too long for a float64."""
        return self.is_whole and LARGEST_EXACT_INTEGER < self.largest < 1e40


@dataclass
class TextLook:
    """Cells by what they look like (number, grouped, comma, date, word): how many, and the row and
    text of the first."""

    is_number: Callable[[str], bool]
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, column: Any, first_row: int) -> None:
        for part in column.chunks:
            self._add(part, first_row)
            first_row += len(part)

    def _add(self, part: Any, first_row: int) -> None:
        codes = part.indices.fill_null(-1).to_numpy()
        texts = part.dictionary.to_pylist()
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        looks = [self._look(text) for text in texts]
        for look, count in zip(looks, counts, strict=True):
            if count:
                self.counts[look] += count
        for look in set(looks) - set(self.first):
            alike = np.array([one == look for one in looks] + [False])[codes]
            if alike.any():
                row = int(alike.argmax())
                self.first[look] = (first_row + row, texts[codes[row]])

    def _look(self, text: str) -> str:
        if self.is_number(text):
            return "number"
        for look, pattern in (("grouped", GROUPED), ("comma", DECIMAL_COMMA), ("date", DATE)):
            if pattern.fullmatch(text):
                return look
        return "word"

    def refuse_meant_otherwise(self, table: TableFile, name: str) -> None:
        """Refuse a column of text that was probably meant to be something else."""
        where = f"{table.name}, column {name!r}"
        for looks, what, remedy in (
            (("grouped",), "marks between thousands", "--thousands ,"),
            (("comma", "grouped"), "a decimal comma", "--decimal ,"),
        ):
            if self._share(*looks) > 0.0 and self._share("number", *looks) >= MOSTLY:
                text, place = self._first(table, *looks)
                raise TableFileError(
                    f"{where}, {place}: {text} is a number with {what}; give {remedy}."
                )
        if (share := self._share("number")) >= MOSTLY:
            text, place = self._first(table, "grouped", "comma", "date", "word")
            raise TableFileError(
                f"{where}, {place}: {text}, where {share:.0%} of the cells are numbers. If it "
                f"means missing, give --missing {text}; if these are categories, --categorical."
            )
        if self._share("date") >= MOSTLY:
            text, place = self._first(table, "date")
            raise TableFileError(
                f"{where}, {place}: dates such as {text}; drop the column (--drop), or make "
                "numbers of it (a year, an age in days)."
            )

    def _share(self, *looks: str) -> float:
        return sum(self.counts[look] for look in looks) / max(self.counts.total(), 1)

    def _first(self, table: TableFile, *looks: str) -> tuple[str, str]:
        """The first of the cells that look so, and its place in the file."""
        row, text = min(self.first[look] for look in looks if look in self.first)
        return repr(text[:80]), place_in(table, row)
