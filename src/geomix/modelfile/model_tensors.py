"""The parts of a model as tensors, and back.

    planes.weights (P, d')   planes.biases (P,)   planes.class_start (C + 1,)
    standardize.mean, standardize.scale (k,)      standardize.kept (k,), absent if all are kept
    standardize.rotation (r, k)                   fourier.frequencies (r, D)
    expand.column_of, expand.shows (d,)
    spline...                                     see ``spline_tensors``

An empty array has no tensor. Reading checks everything, even if the checksum is right: indices are
in range, numbers are finite, and weights are within 1e100, so that no score of a row with features
within 1e150 overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import IntArray
from geomix.core.lifts import FourierLift, IdentityLift, Lift, Precision, Standardize, pass_through
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.errors import ModelFileError
from geomix.modelfile.spline_tensors import read_spline, spline_tensors
from geomix.modelfile.tensor_reader import LARGEST_WEIGHT, TensorReader
from geomix.table.one_hot import MISSING, Expand, expansion
from geomix.table.schema import Schema

# All tensors and their number of dimensions.
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


def read_planes(reader: TensorReader, n_inputs: int, n_classes: int, n_members: int) -> Planes:
    start = reader.integers("planes.class_start", n_classes + 1)
    # Compared before subtracted: the difference of hostile integers may wrap around.
    is_rising = start[0] == 0 and (start[1:] > start[:-1]).all()
    if not is_rising or (np.diff(start) % n_members).any():
        raise ModelFileError(
            f"tensor planes.class_start: expected 0, then for each class "
            f"a multiple of {n_members} planes"
        )
    n_planes = int(start[-1])
    biases = reader.numbers("planes.biases", n_planes, most=LARGEST_WEIGHT)
    weights = reader.numbers("planes.weights", n_planes, n_inputs, most=LARGEST_WEIGHT)
    return Planes(weights, biases, start, n_members)


def read_standardize(reader: TensorReader, n_columns: int, *, passes: bool) -> Standardize:
    if passes:
        return pass_through(n_columns)
    n_kept = reader.length("standardize.mean")
    all_kept = n_kept == n_columns and "standardize.kept" not in reader.arrays
    kept = np.arange(n_columns) if all_kept else reader.integers("standardize.kept", n_kept)
    _check_within(kept, n_columns, "standardize.kept")
    if n_kept == n_columns and not all_kept:
        raise ModelFileError("tensor standardize.kept: not stored if all columns are kept")
    if (np.diff(kept) < 1).any():
        raise ModelFileError("tensor standardize.kept: expected ascending positions")
    mean = reader.numbers("standardize.mean", n_kept)
    scale = reader.numbers("standardize.scale", n_kept)
    if (scale <= 0.0).any():
        raise ModelFileError("tensor standardize.scale holds a number that is not positive")
    rotation = None
    if "standardize.rotation" in reader.arrays:
        n_axes = reader.length("standardize.rotation")
        rotation = reader.numbers("standardize.rotation", n_axes, n_kept, most=2.0)
    return Standardize(kept, mean, scale, rotation, n_columns)


def read_lift(reader: TensorReader, described: Any, n_inputs: int, schema: Schema) -> Lift:
    """The lift over ``n_inputs`` standardised columns; a spline lift reads the raw columns."""
    kind = described.get("kind") if isinstance(described, dict) else None
    expected = {"kind", "gamma"} if kind == "fourier" else {"kind"}
    precision = _precision(described) if kind == "fourier" else "float64"
    expected |= {"precision"} if precision != "float64" else set()
    if kind not in ("linear", "spline", "fourier") or set(described) != expected:
        raise ModelFileError("lift: expected a kind (linear, spline, fourier), and its gamma")
    if kind == "linear":
        return IdentityLift(n_inputs)
    if kind == "spline":
        return read_spline(reader, schema)
    gamma = described["gamma"]
    if type(gamma) is not float or gamma <= 0.0:
        raise ModelFileError(
            f"gamma of the lift is {ascii(gamma)[:80]}; expected a positive number"
        )
    found = reader.arrays.get("fourier.frequencies")
    n_frequencies = 0 if found is None else found.shape[1]
    if n_frequencies == 0:
        raise ModelFileError("tensor fourier.frequencies is missing")
    frequencies = reader.numbers(
        "fourier.frequencies", n_inputs, n_frequencies, most=LARGEST_WEIGHT
    )
    return FourierLift(frequencies, gamma, precision)


def _precision(described: dict[str, Any]) -> Precision:
    found = described.get("precision", "float64")
    if "precision" in described and found != "float32":  # float64 is not written
        raise ModelFileError(f"precision of the lift is {ascii(found)[:80]}; expected 'float32'")
    return "float32" if found == "float32" else "float64"


def read_expand(reader: TensorReader, schema: Schema) -> Expand:
    n_outputs = reader.length("expand.shows")
    column_of = reader.integers("expand.column_of", n_outputs)
    shows = reader.integers("expand.shows", n_outputs)
    _check_within(column_of, len(schema), "expand.column_of")
    has_missing = np.zeros(len(schema), dtype=bool)
    has_missing[column_of[shows == MISSING]] = True
    expected = expansion(schema, has_missing)
    if not (
        np.array_equal(column_of, expected.column_of) and np.array_equal(shows, expected.shows)
    ):
        raise ModelFileError("tensor expand.shows: does not match the columns")
    return expected


def _check_within(positions: IntArray, end: int, name: str) -> None:
    if positions.size and not (positions.min() >= 0 and positions.max() < end):
        raise ModelFileError(f"tensor {name}: a position is not within 0 to {end - 1}")
