"""JSON with exactly one text per value.

Written: keys sorted, no spaces, ASCII, no NaN. Read: exactly that text, at most ``DEEPEST`` levels
deep, no repeated key, integers within 2**53, finite floats, and at most ``most_values`` values,
which is checked before any value is created. Anything else is a ``ModelFileError``.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from geomix.errors import ModelFileError

DEEPEST = 8
LARGEST_INTEGER = 2**53
LONGEST_NUMBER = 40  # characters; repr of a float has at most 24


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """The canonical text of a value.

    Examples
    --------
    >>> canonical({"b": [1.5, None], "a": "é"})
    '{"a":"\\\\u00e9","b":[1.5,null]}'
    """
    return _ENCODER.encode(value)


def read(text: str, most_values: int) -> Any:
    """The value of a canonical text; ModelFileError for any other text."""
    check_structure(text, most_values)
    value = parse(text)
    if not _is_canonical(value, text):
        raise ModelFileError("the JSON is not in canonical form")
    return value


def _is_canonical(value: Any, text: str) -> bool:
    """Whether ``canonical(value) == text``, chunk by chunk: a whole copy of a manifest of 16 MB
    would exceed the memory that loading may take."""
    position = 0
    for chunk in _ENCODER.iterencode(value):
        if not text.startswith(chunk, position):
            return False
        position += len(chunk)
    return position == len(text)


def parse(text: str) -> Any:
    """The value of a text whose depth and length have been checked."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"the JSON cannot be read: {error}") from None


def check_structure(text: str, most_values: int) -> None:
    """Raise if a text is too deep or has too many values, before any value is created."""
    # Without escapes every quote opens or closes a string.
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') > 4 * most_values:
        raise ModelFileError(f"the JSON has more than {most_values} values")
    outside = "".join(bare.split('"')[::2])
    if sum(outside.count(mark) for mark in ",[{") > most_values:
        raise ModelFileError(f"the JSON has more than {most_values} values")
    depth = 0
    for mark in outside.translate(_BRACKETS_ALONE):
        depth += 1 if mark in "[{" else -1
        if depth > DEEPEST:
            raise ModelFileError(f"the JSON is more than {DEEPEST} levels deep")


# Other characters outside strings are errors that json.loads reports.
_BRACKETS_ALONE = {code: None for code in range(128) if chr(code) not in "[]{}"}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ModelFileError(f"the JSON repeats the key {repeated[:80]!r}")
    return value


def _integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER or abs(int(text)) > LARGEST_INTEGER:
        raise ModelFileError(f"the JSON has an integer beyond 2**53: {text[:40]}")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= LONGEST_NUMBER else math.inf
    if not math.isfinite(value):
        raise ModelFileError(f"the JSON has a number that is too large for a float: {text[:40]}")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ModelFileError(f"the JSON has {text}, which is not a number")
