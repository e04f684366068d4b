"""The parts of a model as tensors, and back.

    planes.weights (P, d')   planes.biases (P,)   planes.class_start (C + 1,)
    standardize.mean, standardize.scale (k,)      standardize.kept (k,), absent if all are kept
    standardize.rotation (r, k)                   fourier.frequencies (r, D)
    expand.column_of, expand.shows (d,)
    spline.parts (n, 6)      a row for each part; the numbers of all parts stand one after another
                             in spline.knots, spline.values, spline.cuts and spline.mean

Rows of ``spline.parts``, whose first number tells the kind:

    0  curve    column, -1,     knots,   values,   has_missing
    1  levels   column, -1,     levels,  0,        has_missing
    2  pair     first,  second, n_first, n_second, 1 if the first is cut + 2 if the second is

An array without elements has no tensor. What comes back is checked in full, whatever the checksum
said: no index reaches outside its table, every number is finite and in a range where no finite row
can make a score overflow (weights within 1e100, against features within 1e150).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import ModelFileError
from geomix.expand import MISSING, Expand, expansion
from geomix.lift import FourierLift, IdentityLift, Lift, PassThrough, Standardize
from geomix.planes import Planes
from geomix.schema import Table
from geomix.spline import Curve, Levels, Pair, Part, SplineLift

LARGEST_WEIGHT = 1e100
LARGEST_FLOAT = float(np.finfo(np.float64).max)
MOST_BINS = 2**16
CURVE, LEVELS, PAIR = 0, 1, 2

# Every tensor there is, and how many dimensions it has.
RANKS = {
    "expand.column_of": 1,
    "expand.shows": 1,
    "fourier.frequencies": 2,
    "planes.biases": 1,
    "planes.class_start": 1,
    "planes.weights": 2,
    "spline.cuts": 1,
    "spline.knots": 1,
    "spline.mean": 1,
    "spline.parts": 2,
    "spline.values": 1,
    "standardize.kept": 1,
    "standardize.mean": 1,
    "standardize.rotation": 2,
    "standardize.scale": 1,
}


# --- to tensors ---


def planes_tensors(planes: Planes) -> dict[str, Any]:
    return {
        "planes.weights": planes.weights,
        "planes.biases": planes.biases,
        "planes.class_start": planes.class_start,
    }


def standardize_tensors(standardize: Standardize) -> dict[str, Any]:
    if isinstance(standardize, PassThrough):
        return {}
    tensors: dict[str, Any] = {
        "standardize.mean": standardize.mean,
        "standardize.scale": standardize.scale,
    }
    if not np.array_equal(standardize.kept, np.arange(standardize.n_columns)):
        tensors["standardize.kept"] = standardize.kept
    if standardize.rotation is not None:
        tensors["standardize.rotation"] = standardize.rotation
    return tensors


def lift_tensors(lift: Lift) -> dict[str, Any]:
    if isinstance(lift, FourierLift):
        return {"fourier.frequencies": lift.frequencies}
    return _spline_tensors(lift) if isinstance(lift, SplineLift) else {}


def expand_tensors(expand: Expand | None) -> dict[str, Any]:
    if expand is None:
        return {}
    return {"expand.column_of": expand.column_of, "expand.shows": expand.shows}


def _spline_tensors(lift: SplineLift) -> dict[str, Any]:
    curves = [part for part in lift.parts if isinstance(part, Curve)]
    pairs = [part for part in lift.parts if isinstance(part, Pair)]
    cuts = [cut for part in pairs for cut in (part.first, part.second) if cut is not None]
    rows = [_part_row(part) for part in lift.parts]
    return {
        "spline.parts": np.array(rows, dtype=np.int64).reshape(len(rows), 6),
        "spline.knots": _joined([part.knots for part in curves]),
        "spline.values": _joined([part.values for part in curves]),
        "spline.cuts": _joined(cuts),
        "spline.mean": _joined([part.mean for part in lift.parts]),
    }


def _part_row(part: Part) -> list[int]:
    if isinstance(part, Curve):
        sizes = len(part.knots), len(part.values)
        return [CURVE, part.column, -1, *sizes, int(part.has_missing)]
    if isinstance(part, Levels):
        return [LEVELS, part.column, -1, part.n_levels, 0, int(part.has_missing)]
    is_cut = (part.first is not None) + 2 * (part.second is not None)
    return [PAIR, *part.columns, part.n_first, part.n_second, is_cut]


def _joined(arrays: list[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *arrays])


# --- from tensors ---


@dataclass
class Shelf:
    """The tensors of a file; each is taken once, by the part that it belongs to."""

    arrays: dict[str, Any]
    taken: set[str] = field(default_factory=set)

    def numbers(self, name: str, *shape: int, most: float = LARGEST_FLOAT) -> FloatArray:
        """A float tensor of this shape, finite and within ``most``."""
        array = self._take(name, shape)
        if array.dtype != np.float64:
            raise ModelFileError(f"tensor {name} holds integers; expected floats")
        # Comparisons with NaN are false; minimum and maximum make no copy.
        if array.size and not (array.min() >= -most and array.max() <= most):
            raise ModelFileError(f"tensor {name} holds a number that is not within ±{most:g}")
        return array

    def integers(self, name: str, *shape: int) -> IntArray:
        array = self._take(name, shape)
        if array.size and array.dtype != np.int64:
            raise ModelFileError(f"tensor {name} holds floats; expected integers")
        return array.astype(np.intp, copy=False)

    def length(self, name: str) -> int:
        """Size of a tensor's first dimension; 0 if it is not there."""
        return len(self.arrays[name]) if name in self.arrays else 0

    def check_empty(self) -> None:
        left = sorted(set(self.arrays) - self.taken)
        if left:
            raise ModelFileError(f"tensor {left[0]} does not belong to a model like this")

    def _take(self, name: str, shape: tuple[int, ...]) -> Any:
        self.taken.add(name)
        array = self.arrays.get(name)
        if array is None:
            if 0 not in shape:
                raise ModelFileError(f"tensor {name} of shape {shape} is missing")
            return np.zeros(shape)
        if array.shape != shape:
            raise ModelFileError(f"tensor {name} has shape {array.shape}; expected {shape}")
        return array


def read_planes(shelf: Shelf, n_inputs: int, n_classes: int, n_members: int) -> Planes:
    start = shelf.integers("planes.class_start", n_classes + 1)
    # Compared before subtracted: the difference of hostile integers may wrap around.
    is_rising = start[0] == 0 and (start[1:] > start[:-1]).all()
    if not is_rising or (np.diff(start) % n_members).any():
        raise ModelFileError(
            f"tensor planes.class_start: expected 0, and {n_members} planes or a multiple of that "
            "for each class"
        )
    n_planes = int(start[-1])
    biases = shelf.numbers("planes.biases", n_planes, most=LARGEST_WEIGHT)
    weights = shelf.numbers("planes.weights", n_planes, n_inputs, most=LARGEST_WEIGHT)
    return Planes(weights, biases, start, n_members)


def read_standardize(shelf: Shelf, n_columns: int, *, passes: bool) -> Standardize:
    if passes:
        return PassThrough(n_columns)
    n_kept = shelf.length("standardize.mean")
    all_kept = n_kept == n_columns and "standardize.kept" not in shelf.arrays
    kept = np.arange(n_columns) if all_kept else shelf.integers("standardize.kept", n_kept)
    _check_within(kept, n_columns, "standardize.kept")
    if (np.diff(kept) < 1).any():
        raise ModelFileError("tensor standardize.kept: expected ascending positions")
    mean = shelf.numbers("standardize.mean", n_kept)
    scale = shelf.numbers("standardize.scale", n_kept)
    if (scale <= 0.0).any():
        raise ModelFileError("tensor standardize.scale holds a number that is not positive")
    rotation = None
    if "standardize.rotation" in shelf.arrays:
        n_axes = shelf.length("standardize.rotation")
        rotation = shelf.numbers("standardize.rotation", n_axes, n_kept, most=2.0)
    return Standardize(kept, mean, scale, rotation, n_columns)


def read_lift(shelf: Shelf, described: Any, n_inputs: int, table: Table) -> Lift:
    """The lift over ``n_inputs`` standardised columns, or, of a spline, over the table's own."""
    kind = described.get("kind") if isinstance(described, dict) else None
    expected = {"kind", "gamma"} if kind == "fourier" else {"kind"}
    if kind not in ("linear", "spline", "fourier") or set(described) != expected:
        raise ModelFileError("lift: expected a kind (linear, spline, fourier), and its gamma")
    if kind == "linear":
        return IdentityLift(n_inputs)
    if kind == "spline":
        return _read_spline(shelf, table)
    gamma = described["gamma"]
    if type(gamma) is not float or gamma <= 0.0:
        raise ModelFileError(
            f"gamma of the lift is {ascii(gamma)[:80]}; expected a positive number"
        )
    found = shelf.arrays.get("fourier.frequencies")
    n_frequencies = 0 if found is None else found.shape[1]
    if n_frequencies == 0:
        raise ModelFileError("tensor fourier.frequencies is missing")
    frequencies = shelf.numbers("fourier.frequencies", n_inputs, n_frequencies, most=LARGEST_WEIGHT)
    return FourierLift(frequencies, gamma)


def read_expand(shelf: Shelf, table: Table) -> Expand:
    n_outputs = shelf.length("expand.shows")
    column_of = shelf.integers("expand.column_of", n_outputs)
    shows = shelf.integers("expand.shows", n_outputs)
    _check_within(column_of, len(table), "expand.column_of")
    has_missing = np.zeros(len(table), dtype=bool)
    has_missing[column_of[shows == MISSING]] = True
    expected = expansion(table, has_missing)
    if not (
        np.array_equal(column_of, expected.column_of) and np.array_equal(shows, expected.shows)
    ):
        raise ModelFileError("tensor expand.shows: not what the columns of the table expand to")
    return expected


def _check_within(positions: IntArray, end: int, name: str) -> None:
    if positions.size and not (positions.min() >= 0 and positions.max() < end):
        raise ModelFileError(f"tensor {name}: a position is not within 0 to {end - 1}")


# --- the spline lift ---


def _read_spline(shelf: Shelf, table: Table) -> SplineLift:
    rows = shelf.integers("spline.parts", shelf.length("spline.parts"), 6).tolist()
    _check_part_rows(rows, table)
    sizes = {
        "spline.knots": [row[3] for row in rows if row[0] == CURVE],
        "spline.values": [row[4] for row in rows if row[0] == CURVE],
        "spline.cuts": [n for row in rows if row[0] == PAIR for n in _cut_sizes(row) if n],
        "spline.mean": [_n_steps(row) for row in rows],
    }
    # Every size was at least zero; the totals are those of the tensors, so nothing overflows.
    pieces = {name: iter(_split(shelf, name, each)) for name, each in sizes.items()}
    parts = tuple(_read_part(row, pieces) for row in rows)
    return SplineLift(parts, len(table))


def _split(shelf: Shelf, name: str, sizes: list[int]) -> list[FloatArray]:
    most = LARGEST_WEIGHT if name == "spline.mean" else LARGEST_FLOAT
    whole = shelf.numbers(name, sum(sizes), most=most)
    return np.split(whole, np.cumsum(sizes)[:-1]) if sizes else []


def _check_part_rows(rows: list[list[int]], table: Table) -> None:
    for number, (kind, first, second, *_) in enumerate(rows):
        row = rows[number]
        columns = (first, second) if kind == PAIR else (first,)
        if kind not in (CURVE, LEVELS, PAIR) or not all(0 <= one < len(table) for one in columns):
            raise ModelFileError(f"spline.parts, row {number}: unknown kind, or no such column")
        if not _is_sound(row, [int(table.n_levels[one]) for one in columns]):
            raise ModelFileError(
                f"spline.parts, row {number}: {row} does not fit the columns it is about"
            )


def _is_sound(row: list[int], n_levels: list[int]) -> bool:
    """Whether the sizes of a part fit its columns, of so many levels (0: a number)."""
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
    """Thresholds of a pair's sides: n - 2 cut n - 1 cells apart, and one more is for missing."""
    _, _, _, a, b, flag = row
    return (a - 2) * (flag & 1), (b - 2) * (flag >> 1 & 1)


def _read_part(row: list[int], pieces: dict[str, Any]) -> Part:
    kind, first, second, a, b, flag = row
    mean = next(pieces["spline.mean"])
    if kind == CURVE:
        knots = _ascending(next(pieces["spline.knots"]), "spline.knots")
        values = _ascending(next(pieces["spline.values"]), "spline.values")
        return Curve(first, knots, values, bool(flag), mean)
    if kind == LEVELS:
        return Levels(first, a, bool(flag), mean)
    cuts = [
        _ascending(next(pieces["spline.cuts"]) if n else np.zeros(0), "spline.cuts")
        if is_cut
        else None
        for n, is_cut in zip(_cut_sizes(row), (flag & 1, flag >> 1 & 1), strict=True)
    ]
    return Pair((first, second), cuts[0], cuts[1], a, b, mean)


def _ascending(numbers: FloatArray, name: str) -> FloatArray:
    if (numbers[1:] <= numbers[:-1]).any():
        raise ModelFileError(f"tensor {name}: expected ascending numbers")
    return numbers
