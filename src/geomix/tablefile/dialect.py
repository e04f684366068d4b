"""Delimiter and header of delimited text: given, or found where only one reading is possible.

A delimiter is found when it alone splits the header, or it alone splits the first records into
as many fields as the header has; otherwise the file is refused and the candidates are named.
"""

from __future__ import annotations

import codecs
import collections
import csv
import io
import re
from collections.abc import Iterator

from geomix.errors import TableFileError

CANDIDATES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MOST_COLUMNS = 100_000
RECORDS_LOOKED_AT = 50
SAMPLE = 2**16
UTF8_MARK = codecs.BOM_UTF8
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
IS_NUMBER = re.compile(rf"\s*({NUMBER}|[+-]?(inf|infinity|nan))\s*", re.IGNORECASE | re.ASCII)


def records_of(
    text: str, delimiter: str, *, blank: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """(line within the text from 0, cells) of every record; an empty line is one where ``blank``
    is true, with a single empty cell."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 0
    for cells in reader:
        if cells or blank:
            yield line, cells or [""]
        line = reader.line_num


def found_delimiter(sample: str, name: str) -> str:
    """The delimiter of a text that begins like this."""
    whole = _whole_records(sample)
    counts = {mark: _field_counts(whole, mark) for mark in CANDIDATES}
    splitting = [mark for mark, n_fields in counts.items() if n_fields and n_fields[0] > 1]
    if len(splitting) <= 1:
        return splitting[0] if splitting else ","
    even = [mark for mark in splitting if len(set(counts[mark])) == 1 and len(counts[mark]) > 1]
    if len(even) == 1:
        return even[0]
    named = " or ".join(f"--delimiter {shown_mark(mark)}" for mark in (even or splitting))
    raise TableFileError(f"{name}, line 1: the delimiter is not clear; give {named}.")


def shown_mark(mark: str) -> str:
    """A delimiter as it is typed in a shell."""
    return "'\\t'" if mark == "\t" else f"'{mark}'"


def _whole_records(sample: str) -> str:
    """Without the last, which the sample may have cut."""
    if len(sample) < SAMPLE:
        return sample
    return sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample


def _field_counts(sample: str, delimiter: str) -> list[int]:
    counts: list[int] = []
    try:
        for _, cells in records_of(sample, delimiter):
            counts.append(len(cells))
            if len(counts) == RECORDS_LOOKED_AT:
                break
    except csv.Error:
        return counts[:1]
    return counts


def header_names(cells: list[str], delimiter: str, name: str, line: int) -> tuple[str, ...]:
    """The names of a header; refuses repeated ones, too many, and what is no header."""
    check_width(len(cells), name)
    if all(IS_NUMBER.fullmatch(cell) for cell in cells):
        raise TableFileError(
            f"{name}, line {line}: the header has nothing but numbers ({cells[0]!r}, "
            "...). If the file has no header, give --no-header."
        )
    repeated = [one for one, count in collections.Counter(cells).items() if count > 1]
    if repeated:
        raise TableFileError(
            f"{name}, line {line}: column names must be unique; repeated ones are {repeated[:5]!r}."
        )
    refuse_unsplit(cells, delimiter, name, line)
    return tuple(cells)


def refuse_unsplit(cells: list[str], delimiter: str, name: str, line: int) -> None:
    """A single column whose name holds another delimiter is no column."""
    marks = [mark for mark in CANDIDATES if mark != delimiter and mark in cells[0]]
    if len(cells) == 1 and marks:
        raise TableFileError(
            f"{name}, line {line}: one column, with the name {cells[0][:80]!r}; give "
            f"--delimiter {shown_mark(marks[0])}."
        )


def check_width(n_columns: int, name: str) -> None:
    if n_columns > MOST_COLUMNS:
        raise TableFileError(f"{name}: {n_columns} columns; at most {MOST_COLUMNS} are read.")
