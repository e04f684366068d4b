"""Bytes of delimited text, cut into blocks of whole records, with physical lines counted.

A record ends at a line end outside quotes. Quotes count where RFC 4180 has them: a field that
begins with one ends with one, and a doubled one stands for itself; a quote in the midst of a
bare field is a character like any other. Most blocks are settled by a few vectorised checks; only
those with odd quotes are walked field by field.
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
    """Whole records, and the physical line (from 1) on which the first of them starts."""

    data: bytes
    first_line: int


def cut(chunks: Iterator[bytes], delimiter: bytes, name: str) -> Iterator[Records]:
    """The bytes in blocks of whole records. Refuses unclosed quotes, NUL and Ctrl-Z."""
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
    """Line ends: LF, CR LF, or CR alone."""
    if b"\r" not in data:
        return data.count(b"\n")
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def structural_quotes(data: bytes, delimiter: bytes, line: int, name: str) -> IntArray:
    """Positions of the quotes that open, close or double, in turns; odd in number if one is open
    at the end."""
    if b'"' not in data:
        return NO_QUOTES
    octets = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(octets == QUOTE)
    borders = np.zeros(256, dtype=bool)
    borders[[*delimiter, *b"\r\n"]] = True
    return quotes if _are_regular(octets, quotes, borders) else _walked(data, delimiter, line, name)


def _are_regular(octets: IntArray, quotes: IntArray, borders: IntArray) -> bool:
    """Whether quotes open at the start of a field and close at its end, all of them."""
    opening, closing = quotes[::2], quotes[1::2]
    before = borders[octets[opening - 1]] | (opening == 0)
    before[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    after = borders[octets[np.minimum(closing + 1, len(octets) - 1)]]
    after |= closing == len(octets) - 1
    n = len(opening) - 1
    after[:n] |= closing[:n] + 1 == opening[1:]
    return bool(before.all() and after.all())


def _walked(data: bytes, delimiter: bytes, line: int, name: str) -> IntArray:
    """The same, field by field; text after a closing quote is an error."""
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
                f"{name}, line {at}: text after a closing quote{since}; a quote within a field is "
                "written twice."
            )
        found.append(end - 1)
    return np.array(found, dtype=np.intp)


def last_record_end(data: bytes, quotes: IntArray) -> int:
    """The position after the last line end outside quotes; 0 if there is none.

    A CR that ends the data counts only with what follows it, which may be LF.
    """
    stop = len(data) - data.endswith(b"\r")
    while True:
        end = max(data.rfind(b"\n", 0, stop), data.rfind(b"\r", 0, stop)) + 1
        n_before = int(np.searchsorted(quotes, end))
        if end == 0 or n_before % 2 == 0:
            return end
        stop = int(quotes[n_before - 1])


def first_record_end(data: bytes, quotes: IntArray) -> int:
    """The position after the first record; all of the data if no line end follows it."""
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
                f"{name}, line {where}: a {called}, which no text table has. If the file is "
                "UTF-16, give --encoding utf-16."
            )


def _refuse_endless(data: bytes, end: int, quotes: IntArray, line: int, name: str) -> None:
    if len(quotes) % 2 and len(data) - quotes[-1] > LONGEST_CELL:
        raise _unclosed(data[end:], int(quotes[-1]) - end, line, name)
    if len(data) - end > LONGEST_LINE:
        raise TableFileError(
            f"{name}, line {line}: longer than {LONGEST_LINE} bytes; this is no table of rows."
        )


def _unclosed(data: bytes, at: int, line: int, name: str) -> TableFileError:
    where = line + count_lines(data[: max(at, 0)])
    return TableFileError(
        f"{name}, line {where}: a quote opens a field that does not end (within {LONGEST_CELL} "
        "bytes). Close it, or double it if it is part of the text."
    )
