"""The parts of a spline lift as tensors, and back.

    spline.parts (n, 6)      a row for each part; the numbers of all parts are concatenated in
                             spline.knots, spline.values, spline.cuts and spline.mean

The first number of a row is the kind:

    0  curve    column, -1,     knots,   values,   has_missing
    1  levels   column, -1,     levels,  0,        has_missing
    2  pair     first,  second, n_first, n_second, 1 if the first is cut + 2 if the second is
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart, LevelPart, PairPart, SplinePart
from geomix.errors import ModelFileError
from geomix.modelfile.tensor_reader import LARGEST_FLOAT, LARGEST_WEIGHT, TensorReader
from geomix.table.schema import Schema

MOST_BINS = 2**16
CURVE, LEVELS, PAIR = 0, 1, 2


def spline_tensors(lift: SplineLift) -> dict[str, Any]:
    curves = [part for part in lift.parts if isinstance(part, CurvePart)]
    pairs = [part for part in lift.parts if isinstance(part, PairPart)]
    cuts = [cut for part in pairs for cut in (part.first, part.second) if cut is not None]
    rows = [_part_row(part) for part in lift.parts]
    return {
        "spline.parts": np.array(rows, dtype=np.int64).reshape(len(rows), 6),
        "spline.knots": _joined([part.knots for part in curves]),
        "spline.values": _joined([part.values for part in curves]),
        "spline.cuts": _joined(cuts),
        "spline.mean": _joined([part.mean for part in lift.parts]),
    }


def _part_row(part: SplinePart) -> list[int]:
    if isinstance(part, CurvePart):
        sizes = len(part.knots), len(part.values)
        return [CURVE, part.column, -1, *sizes, int(part.has_missing)]
    if isinstance(part, LevelPart):
        return [LEVELS, part.column, -1, part.n_levels, 0, int(part.has_missing)]
    is_cut = (part.first is not None) + 2 * (part.second is not None)
    return [PAIR, *part.columns, part.n_first, part.n_second, is_cut]


def _joined(arrays: list[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *arrays])


def read_spline(reader: TensorReader, schema: Schema) -> SplineLift:
    rows = reader.integers("spline.parts", reader.length("spline.parts"), 6).tolist()
    _check_part_rows(rows, schema)
    sizes = {
        "spline.knots": [row[3] for row in rows if row[0] == CURVE],
        "spline.values": [row[4] for row in rows if row[0] == CURVE],
        "spline.cuts": [n for row in rows if row[0] == PAIR for n in _cut_sizes(row) if n],
        "spline.mean": [_n_steps(row) for row in rows],
    }
    # Sizes are not negative and their sums must equal the tensors' sizes, so nothing overflows.
    pieces = {name: iter(_split(reader, name, each)) for name, each in sizes.items()}
    parts = tuple(_read_part(row, pieces) for row in rows)
    return SplineLift(parts, len(schema))


def _split(reader: TensorReader, name: str, sizes: list[int]) -> list[FloatArray]:
    most = LARGEST_WEIGHT if name == "spline.mean" else LARGEST_FLOAT
    whole = reader.numbers(name, sum(sizes), most=most)
    return np.split(whole, np.cumsum(sizes)[:-1]) if sizes else []


def _check_part_rows(rows: list[list[int]], schema: Schema) -> None:
    for number, (kind, first, second, *_) in enumerate(rows):
        row = rows[number]
        columns = (first, second) if kind == PAIR else (first,)
        if kind not in (CURVE, LEVELS, PAIR) or not all(0 <= one < len(schema) for one in columns):
            raise ModelFileError(f"spline.parts, row {number}: unknown kind or column")
        if not _is_valid(row, [int(schema.n_levels[one]) for one in columns]):
            raise ModelFileError(f"spline.parts, row {number}: {row} does not fit its columns")


def _is_valid(row: list[int], n_levels: list[int]) -> bool:
    """Whether the sizes of a part fit its columns; ``n_levels`` is 0 for a number."""
    kind, _, second, a, b, flag = row
    if kind == CURVE:
        sizes = n_levels == [0] and 2 <= a <= MOST_BINS and 1 <= b < MOST_BINS
        return sizes and second == -1 and flag in (0, 1)
    if kind == LEVELS:
        return 1 <= a == n_levels[0] < MOST_BINS and second == -1 and b == 0 and flag in (0, 1)
    cut = flag & 1, flag >> 1 & 1
    sides = all(
        n >= 2 if is_cut else n == levels + 1
        for n, levels, is_cut in zip((a, b), n_levels, cut, strict=True)
    )
    kinds = all((levels == 0) == bool(is_cut) for levels, is_cut in zip(n_levels, cut, strict=True))
    return 0 <= flag < 4 and sides and kinds and a * b <= MOST_BINS


def _n_steps(row: list[int]) -> int:
    kind, _, _, a, b, flag = row
    return (a - 1) * (b - 1) if kind == PAIR else a - (kind == CURVE) + flag


def _cut_sizes(row: list[int]) -> tuple[int, int]:
    """Number of thresholds on each side of a pair: n bins, one of them for missing, have n - 2."""
    _, _, _, a, b, flag = row
    return (a - 2) * (flag & 1), (b - 2) * (flag >> 1 & 1)


def _read_part(row: list[int], pieces: dict[str, Any]) -> SplinePart:
    kind, first, second, a, b, flag = row
    mean = next(pieces["spline.mean"])
    if kind == CURVE:
        knots = _ascending(next(pieces["spline.knots"]), "spline.knots")
        values = _ascending(next(pieces["spline.values"]), "spline.values")
        return CurvePart(first, knots, values, bool(flag), mean)
    if kind == LEVELS:
        return LevelPart(first, a, bool(flag), mean)
    cuts = [
        _ascending(next(pieces["spline.cuts"]) if n else np.zeros(0), "spline.cuts")
        if is_cut
        else None
        for n, is_cut in zip(_cut_sizes(row), (flag & 1, flag >> 1 & 1), strict=True)
    ]
    return PairPart((first, second), cuts[0], cuts[1], a, b, mean)


def _ascending(numbers: FloatArray, name: str) -> FloatArray:
    if (numbers[1:] <= numbers[:-1]).any():
        raise ModelFileError(f"tensor {name}: expected ascending numbers")
    return numbers
