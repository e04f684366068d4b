"""Delimited text split into blocks of whole records, with line numbers.

A record ends at a line end outside quotes. Quotes follow RFC 4180: a field that begins with a quote
ends with one, and two quotes in it mean one; a quote inside an unquoted field is a plain character.
Most blocks pass a vectorised check; only blocks with irregular quotes are scanned field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geomix.arrays import IntArray
from geomix.errors import TableFileError

QUOTE = ord('"')
LONGEST_CELL = 2**20
LONGEST_LINE = 2**26
NO_QUOTES = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Records:
    """Whole records, and the line number (from 1) of the first."""

    data: bytes
    first_line: int


def cut(chunks: Iterator[bytes], delimiter: bytes, name: str) -> Iterator[Records]:
    """Blocks of whole records; raises for unclosed quotes, NUL and Ctrl-Z."""
    rest, line = b"", 1
    for chunk in chunks:
        data = rest + chunk
        _refuse_controls(data, line, name)
        quotes = structural_quotes(data, delimiter, line, name)
        end = last_record_end(data, quotes)
        if end:
            yield Records(data[:end], line)
            line += count_lines(data[:end])
        rest = data[end:]
        _refuse_endless(data, end, quotes, line, name)
    if rest:
        quotes = structural_quotes(rest, delimiter, line, name)
        if len(quotes) % 2:
            raise _unclosed(rest, int(quotes[-1]), line, name)
        yield Records(rest, line)


def count_lines(data: bytes) -> int:
    """The number of line ends: LF, CR LF or CR."""
    if b"\r" not in data:
        return data.count(b"\n")
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def structural_quotes(data: bytes, delimiter: bytes, line: int, name: str) -> IntArray:
    """Positions of quotes that open and close fields, in turn; an odd number if the last field is
    open."""
    if b'"' not in data:
        return NO_QUOTES
    octets = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(octets == QUOTE)
    borders = np.zeros(256, dtype=bool)
    borders[[*delimiter, *b"\r\n"]] = True
    return (
        quotes
        if _are_regular(octets, quotes, borders)
        else _scan_quotes(data, delimiter, line, name)
    )


def _are_regular(octets: IntArray, quotes: IntArray, borders: IntArray) -> bool:
    """Whether every quote is at the start or the end of a field, or doubled."""
    opening, closing = quotes[::2], quotes[1::2]
    before = borders[octets[opening - 1]] | (opening == 0)
    before[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    after = borders[octets[np.minimum(closing + 1, len(octets) - 1)]]
    after |= closing == len(octets) - 1
    n = len(opening) - 1
    after[:n] |= closing[:n] + 1 == opening[1:]
    return bool(before.all() and after.all())


def _scan_quotes(data: bytes, delimiter: bytes, line: int, name: str) -> IntArray:
    """Like ``structural_quotes``, field by field; raises for text after a closing quote."""
    border = re.escape(delimiter) + rb"\r\n"
    quoted = re.compile(rb"(?:\A|(?<=[" + border + rb']))"[^"]*(?:""[^"]*)*("|\Z)')
    found: list[int] = []
    for match in quoted.finditer(data):
        found.append(match.start())
        if not match.group(1):
            break  # open to the end
        end = match.end()
        if end < len(data) and data[end : end + 1] not in (delimiter, b"\r", b"\n"):
            at = line + count_lines(data[:end])
            opened = line + count_lines(data[: match.start()])
            since = "" if at == opened else f", in a field that opens at line {opened}"
            raise TableFileError(
                f"{name}, line {at}: text after a closing quote{since}; write a quote "
                "inside a field twice."
            )
        found.append(end - 1)
    return np.array(found, dtype=np.intp)


def last_record_end(data: bytes, quotes: IntArray) -> int:
    """The position after the last line end outside quotes; 0 if there is none.

    A CR at the end of the data does not count yet, since an LF may follow.
    """
    stop = len(data) - data.endswith(b"\r")
    while True:
        end = max(data.rfind(b"\n", 0, stop), data.rfind(b"\r", 0, stop)) + 1
        n_before = int(np.searchsorted(quotes, end))
        if end == 0 or n_before % 2 == 0:
            return end
        stop = int(quotes[n_before - 1])


def first_record_end(data: bytes, quotes: IntArray) -> int:
    """The position after the first record; the length of the data if it has no line end."""
    start = 0
    while True:
        ends = [at for at in (data.find(b"\n", start), data.find(b"\r", start)) if at >= 0]
        if not ends:
            return len(data)
        start = min(ends) + 1
        if np.searchsorted(quotes, start) % 2 == 0:
            is_pair = data[start - 1 : start + 1] == b"\r\n"
            return start + is_pair


def _refuse_controls(data: bytes, line: int, name: str) -> None:
    for octet, called in ((b"\0", "NUL byte"), (b"\x1a", "Ctrl-Z")):
        at = data.find(octet)
        if at >= 0:
            where = line + count_lines(data[:at])
            raise TableFileError(
                f"{name}, line {where}: a {called}, which is not text. If the file is "
                "UTF-16, use --encoding utf-16."
            )


def _refuse_endless(data: bytes, end: int, quotes: IntArray, line: int, name: str) -> None:
    if len(quotes) % 2 and len(data) - quotes[-1] > LONGEST_CELL:
        raise _unclosed(data[end:], int(quotes[-1]) - end, line, name)
    if len(data) - end > LONGEST_LINE:
        raise TableFileError(
            f"{name}, line {line}: longer than {LONGEST_LINE} bytes; this is not a table."
        )


def _unclosed(data: bytes, at: int, line: int, name: str) -> TableFileError:
    where = line + count_lines(data[: max(at, 0)])
    return TableFileError(
        f"{name}, line {where}: a quoted field has no closing quote (within {LONGEST_CELL} "
        "bytes). Close it, or write the quote twice if it is part of the text."
    )
