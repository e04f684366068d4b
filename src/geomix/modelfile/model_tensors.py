"""The parts of a model as tensors, and back.

    planes.weights (P, d')   planes.biases (P,)   planes.class_start (C + 1,)
    standardize.mean, standardize.scale (k,)      standardize.kept (k,), absent if all are kept
    standardize.rotation (r, k)                   fourier.frequencies (r, D)
    expand.column_of, expand.shows (d,)
    spline...                                     see ``splineparts``

An array without elements has no tensor. What comes back is checked in full, whatever the checksum
said: no index reaches outside its table, every number is finite and in a range where no finite row
can make a score overflow (weights within 1e100, against features within 1e150).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import IntArray
from geomix.core.lifts import FourierLift, IdentityLift, Lift, Standardize, pass_through
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.errors import ModelFileError
from geomix.modelfile.spline_tensors import read_spline, spline_tensors
from geomix.modelfile.tensor_reader import LARGEST_WEIGHT, TensorReader
from geomix.table.one_hot import MISSING, Expand, expansion
from geomix.table.schema import Schema

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
    if standardize.passes:
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
    return spline_tensors(lift) if isinstance(lift, SplineLift) else {}


def expand_tensors(expand: Expand | None) -> dict[str, Any]:
    if expand is None:
        return {}
    return {"expand.column_of": expand.column_of, "expand.shows": expand.shows}


# --- from tensors ---


def read_planes(shelf: TensorReader, n_inputs: int, n_classes: int, n_members: int) -> Planes:
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


def read_standardize(shelf: TensorReader, n_columns: int, *, passes: bool) -> Standardize:
    if passes:
        return pass_through(n_columns)
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


def read_lift(shelf: TensorReader, described: Any, n_inputs: int, schema: Schema) -> Lift:
    """The lift over ``n_inputs`` standardised columns, or, of a spline, over the table's own."""
    kind = described.get("kind") if isinstance(described, dict) else None
    expected = {"kind", "gamma"} if kind == "fourier" else {"kind"}
    if kind not in ("linear", "spline", "fourier") or set(described) != expected:
        raise ModelFileError("lift: expected a kind (linear, spline, fourier), and its gamma")
    if kind == "linear":
        return IdentityLift(n_inputs)
    if kind == "spline":
        return read_spline(shelf, schema)
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


def read_expand(shelf: TensorReader, schema: Schema) -> Expand:
    n_outputs = shelf.length("expand.shows")
    column_of = shelf.integers("expand.column_of", n_outputs)
    shows = shelf.integers("expand.shows", n_outputs)
    _check_within(column_of, len(schema), "expand.column_of")
    has_missing = np.zeros(len(schema), dtype=bool)
    has_missing[column_of[shows == MISSING]] = True
    expected = expansion(schema, has_missing)
    if not (
        np.array_equal(column_of, expected.column_of) and np.array_equal(shows, expected.shows)
    ):
        raise ModelFileError("tensor expand.shows: not what the columns of the table expand to")
    return expected


def _check_within(positions: IntArray, end: int, name: str) -> None:
    if positions.size and not (positions.min() >= 0 and positions.max() < end):
        raise ModelFileError(f"tensor {name}: a position is not within 0 to {end - 1}")
