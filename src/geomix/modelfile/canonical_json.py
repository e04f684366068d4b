"""JSON with one text for one value, read without surprises.

Written: keys sorted, no spaces, ASCII alone, no NaN. Read: exactly that text and no other, at most
``DEEPEST`` levels deep, no key twice, integers within 2**53, finite floats, and no more values than
the caller says, which is checked before the first of them is made. Whatever else a text holds is a
``ModelFileError``.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from geomix.errors import ModelFileError

DEEPEST = 8
LARGEST_INTEGER = 2**53
LONGEST_NUMBER = 40  # characters; repr of a float has at most 24


def canonical(value: Any) -> str:
    """The one text of a value.

    Examples
    --------
    >>> canonical({"b": [1.5, None], "a": "é"})
    '{"a":"\\\\u00e9","b":[1.5,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read(text: str, most_values: int) -> Any:
    """The value of a canonical text; ModelFileError for any other text."""
    check_structure(text, most_values)
    value = parse(text)
    if canonical(value) != text:
        raise ModelFileError("the JSON is not in canonical form")
    return value


def parse(text: str) -> Any:
    """The value of a text that is known to be shallow and short."""
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
    """Refuse what is too deep or has too many values, without making any of them."""
    # With escapes gone every quote opens or closes a string.
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


# Outside its strings a JSON text is ASCII; of anything else json.loads says what it is.
_BRACKETS_ALONE = {code: None for code in range(128) if chr(code) not in "[]{}"}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ModelFileError(f"the JSON has the key {twice[:80]!r} twice")
    return value


def _integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER or abs(int(text)) > LARGEST_INTEGER:
        raise ModelFileError(f"the JSON has an integer beyond 2**53: {text[:40]}")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= LONGEST_NUMBER else math.inf
    if not math.isfinite(value):
        raise ModelFileError(f"the JSON has a number that no float holds: {text[:40]}")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ModelFileError(f"the JSON has {text}, which is no number")
