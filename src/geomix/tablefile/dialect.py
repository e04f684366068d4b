"""Delimiter, header and number format of delimited text.

A delimiter is detected if it is the only candidate that splits the header, or the only one that
splits the first records into as many fields as the header. Otherwise an error names the candidates.
"""

from __future__ import annotations

import codecs
import collections
import csv
import io
import re
from collections.abc import Collection, Iterator

from geomix.errors import TableFileError

CANDIDATES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MOST_COLUMNS = 100_000
RECORDS_LOOKED_AT = 50
SAMPLE = 2**16
UTF8_MARK = codecs.BOM_UTF8
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# A number with a decimal comma, and one with commas between groups of three digits.
DECIMAL_COMMA = re.compile(r"[ \t]*[+-]?\d+,\d+[ \t]*", re.ASCII)
GROUPED = re.compile(r"[ \t]*[+-]?\d{1,3}(,\d{3})+(\.\d+)?[ \t]*", re.ASCII)


def number_pattern(decimal: str, thousands: str | None) -> str:
    """A regular expression, of Python and of Arrow, for numbers with these separators."""
    point, separator = re.escape(decimal), re.escape(thousands or "")
    digits = rf"(\d{{1,3}}({separator}\d{{3}})+|\d+)" if thousands else r"\d+"
    finite = rf"({digits}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    return rf"[ \t]*[+-]?({finite}|(?i:inf|infinity|nan))[ \t]*"


IS_NUMBER = re.compile(number_pattern(".", None), re.ASCII)


def records_of(
    text: str, delimiter: str, *, blank: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """(line from 0, cells) of every record. With ``blank`` an empty line is a record of one empty
    cell."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 0
    for cells in reader:
        if cells or blank:
            yield line, cells or [""]
        line = reader.line_num


def detect_delimiter(sample: str, name: str) -> str:
    """Detect the delimiter from the beginning of a text."""
    whole = _whole_records(sample)
    counts = {mark: _field_counts(whole, mark) for mark in CANDIDATES}
    splitting = [mark for mark, n_fields in counts.items() if n_fields and n_fields[0] > 1]
    if len(splitting) <= 1:
        return splitting[0] if splitting else ","
    even = [mark for mark in splitting if len(set(counts[mark])) == 1 and len(counts[mark]) > 1]
    if len(even) == 1:
        return even[0]
    named = " or ".join(f"--delimiter {quoted_delimiter(mark)}" for mark in (even or splitting))
    raise TableFileError(f"{name}, line 1: the delimiter is ambiguous; use {named}.")


def quoted_delimiter(mark: str) -> str:
    """A delimiter as typed in a shell."""
    return "'\\t'" if mark == "\t" else f"'{mark}'"


def _whole_records(sample: str) -> str:
    """The sample without its last record, which may be incomplete."""
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


def header_names(
    cells: list[str], delimiter: str, name: str, line: int, expected: Collection[str] = ()
) -> tuple[str, ...]:
    """The names of a header; raises if they repeat or are too many, or are all numbers without
    being the ``expected`` ones."""
    check_width(len(cells), name)
    is_expected = bool(expected) and set(expected) <= set(cells)
    if not is_expected and all(IS_NUMBER.fullmatch(cell) for cell in cells):
        raise TableFileError(
            f"{name}, line {line}: all names in the header are numbers ({cells[0]!r}, "
            "...). If the file has no header, use --no-header."
        )
    repeated = [one for one, count in collections.Counter(cells).items() if count > 1]
    if "" in repeated:
        places = [str(at + 1) for at, cell in enumerate(cells) if cell == ""]
        listed = ", ".join(places[:5]) + (", ..." if len(places) > 5 else "")
        raise TableFileError(
            f"{name}, line {line}: columns {listed} have no name. Name them, or remove the "
            "delimiters at the ends of the lines if there are no such columns."
        )
    if repeated:
        raise TableFileError(
            f"{name}, line {line}: column names must be unique; repeated names are "
            f"{repeated[:5]!r}."
        )
    check_split(cells, delimiter, name, line)
    return tuple(cells)


def check_split(cells: list[str], delimiter: str, name: str, line: int) -> None:
    """Raise if there is one column and its name holds another delimiter."""
    marks = [mark for mark in CANDIDATES if mark != delimiter and mark in cells[0]]
    if len(cells) == 1 and marks:
        raise TableFileError(
            f"{name}, line {line}: only one column, named {cells[0][:80]!r}; use "
            f"--delimiter {quoted_delimiter(marks[0])}."
        )


def check_width(n_columns: int, name: str) -> None:
    if n_columns > MOST_COLUMNS:
        raise TableFileError(f"{name}: {n_columns} columns; at most {MOST_COLUMNS} are read.")
