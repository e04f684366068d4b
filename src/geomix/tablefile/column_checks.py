"""Checks of columns whose kind was guessed, from counts over all blocks.

Text that is mostly numbers, numbers with decimal commas, and dates are errors, since they were
probably not meant as categories. Integers that float64 cannot represent cause a warning.
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
from geomix.tablefile.dialect import DECIMAL_COMMA, GROUPED

LARGEST_EXACT_INTEGER = 2**53
# A column in which this share of the cells are numbers (or dates) was meant as numbers (or dates).
MOSTLY = 0.5
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)( .*)?", re.ASCII)


class ColumnChecks:
    """Counts over the cells of a table's columns, which are read as ``kinds``."""

    def __init__(self, table: TableFile, kinds: Mapping[str, str]) -> None:
        self.table = table
        numbers = [name for name, kind in kinds.items() if kind == NUMBER]
        # Text in a file that stores types is meant as text.
        texts = [] if table.stored_kinds else [name for name in kinds if name not in numbers]
        self.numbers = {name: NumberSummary() for name in numbers}
        self.texts = {name: TextSummary(table.reads_as_number) for name in texts}

    def add(self, block: Block) -> None:
        for name, number in self.numbers.items():
            number.add(block.columns[name])
        for name, text in self.texts.items():
            text.add(block.columns[name], block.first_row)

    def finish(self) -> None:
        """Warn of integers that lose digits; raise for text that was meant as something else."""
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
            text.check_meaning(self.table, name)


@dataclass
class NumberSummary:
    """largest : largest absolute value;  is_whole : whether all values are integers"""

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
        """Whether these are integers above 2**53, such as long identifiers."""
        return self.is_whole and LARGEST_EXACT_INTEGER < self.largest < 1e40


@dataclass
class TextSummary:
    """Counts of cells by pattern (number, grouped, comma, date, word), and the row and text of the
    first cell of each."""

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
        patterns = [self._pattern(text) for text in texts]
        for pattern, count in zip(patterns, counts, strict=True):
            if count:
                self.counts[pattern] += count
        for pattern in set(patterns) - set(self.first):
            matches = np.array([one == pattern for one in patterns] + [False])[codes]
            if matches.any():
                row = int(matches.argmax())
                self.first[pattern] = (first_row + row, texts[codes[row]])

    def _pattern(self, text: str) -> str:
        if self.is_number(text):
            return "number"
        for pattern, regex in (("grouped", GROUPED), ("comma", DECIMAL_COMMA), ("date", DATE)):
            if regex.fullmatch(text):
                return pattern
        return "word"

    def check_meaning(self, table: TableFile, name: str) -> None:
        """Raise if a column of text was probably meant as numbers or dates."""
        where = f"{table.name}, column {name!r}"
        for patterns, what, remedy in (
            (("grouped",), "thousands separators", "--thousands ,"),
            (("comma", "grouped"), "a decimal comma", "--decimal ,"),
        ):
            if self._share(*patterns) > 0.0 and self._share("number", *patterns) >= MOSTLY:
                text, place = self._first(table, *patterns)
                raise TableFileError(
                    f"{where}, {place}: {text} is a number with {what}; use {remedy}."
                )
        if (share := self._share("number")) >= MOSTLY:
            text, place = self._first(table, "grouped", "comma", "date", "word")
            raise TableFileError(
                f"{where}, {place}: {text} is not a number, but {share:.0%} of the cells are. "
                f"If it means missing, use --missing {text}; if the column is categorical, "
                "use --categorical."
            )
        if self._share("date") >= MOSTLY:
            text, place = self._first(table, "date")
            raise TableFileError(
                f"{where}, {place}: the column holds dates such as {text}; drop it (--drop), or "
                "convert it to numbers (a year, an age in days)."
            )

    def _share(self, *patterns: str) -> float:
        return sum(self.counts[pattern] for pattern in patterns) / max(self.counts.total(), 1)

    def _first(self, table: TableFile, *patterns: str) -> tuple[str, str]:
        """The first cell with one of these patterns, and its position in the file."""
        row, text = min(self.first[pattern] for pattern in patterns if pattern in self.first)
        return repr(text[:80]), place_in(table, row)
