"""The manifest of a model file: everything about a model except its arrays, as JSON.

    format, format_version, requires, written_by     the versions and features of the format
    classes      {"dtype": "int64", "values": [...]}; text, or exact numbers
    n_columns    the number of columns
    columns      null for numbers named x0, x1, ..., else for each column the name of a number or
                 {"name", "levels", "other"} of a category
    lift         {"kind": "linear"}, {"kind": "spline"} or {"kind": "fourier", "gamma": ...}, with
                 "precision": "float32" where its features are computed so
    standardize  whether columns are standardised
    n_members, sharpness, temperature, expand
    training     facts about the training, or null;  edits: changes of the model, in order

A version is [major, minor]. A reader loads every file of its major version if it knows all features
in ``requires``. It ignores keys that begin with ``x_`` and refuses other unknown keys. This module
checks single fields and their size; ``model_tensors`` checks them against the tensors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from geomix.errors import ModelFileError, ModelVersionError
from geomix.modelfile import canonical_json
from geomix.table.schema import Column, Schema, numeric_schema

FORMAT = "geomix-model"
VERSION = (1, 0)
FEATURES = ("core", "spline", "fourier", "expand", "committee", "float32")
KEYS = {
    "format", "format_version", "requires", "written_by", "classes", "n_columns", "columns",
    "lift", "standardize", "n_members", "sharpness", "temperature", "expand", "training", "edits",
}  # fmt: skip

# Each name or level is a Python object of some hundred bytes, however short. A file may hold at
# most size / 32 + 20,000 values, so that a small file cannot create many.
VALUES_PER_BYTE = 1 / 32
VALUES_ALWAYS = 20_000
RANGE = 1e-6, 1e6  # of sharpness and temperature
NUMBER_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip
# A fixed-width text array takes 4 bytes x labels x longest label; larger ones are object arrays.
LARGEST_TEXT_ARRAY = 2**20
LARGEST_EXACT = canonical_json.LARGEST_INTEGER
BIG_INTEGER = re.compile(r"-?[1-9][0-9]{15,999}")


def most_values(size: int) -> int:
    """The largest number of JSON values in a file of ``size`` bytes."""
    return int(size * VALUES_PER_BYTE) + VALUES_ALWAYS


def read(text: str, most: int) -> dict[str, Any]:
    """The manifest, with at most ``most`` values, of a version that this release can read."""
    manifest = canonical_json.read(text, most)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its manifest is not of the format {FORMAT!r}")
    check_version(manifest)
    unknown = {key for key in manifest if not key.startswith("x_")} ^ KEYS
    if unknown:
        key = min(unknown)
        fault = "has the unknown key" if key in manifest else "lacks the key"
        raise ModelFileError(f"its manifest {fault} {key[:80]!r}")
    return manifest


def check_version(manifest: Mapping[str, Any]) -> None:
    version, requires = manifest.get("format_version"), manifest.get("requires")
    if (
        not isinstance(version, list)
        or len(version) != 2
        or not all(type(part) is int and part >= 0 for part in version)
    ):
        raise ModelFileError(f"format_version is {_shortened(version)}; expected two whole numbers")
    if not isinstance(requires, list) or not all(isinstance(one, str) for one in requires):
        raise ModelFileError(f"requires is {_shortened(requires)}; expected a list of names")
    writer = _shortened(manifest.get("written_by"))
    written = f"written by {writer} in version {version[0]}.{version[1]} of the format"
    if version[0] != VERSION[0]:
        advice = "upgrade geomix" if version[0] > VERSION[0] else "no release wrote such files"
        raise ModelVersionError(
            f"{written}, and this release reads version {VERSION[0]}.x; {advice}"
        )
    unknown = sorted(set(requires) - set(FEATURES))
    if unknown:
        raise ModelVersionError(
            f"{written}, it needs the feature {_shortened(unknown[0])}; upgrade geomix"
        )


def field(manifest: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    """The value of a key, which must be of this type."""
    value = manifest[key]
    if type(value) is not kind:
        raise ModelFileError(f"{key} is {_shortened(value)}; expected {expected}")
    return value


def number(manifest: Mapping[str, Any], key: str) -> float:
    """A float of the manifest within RANGE."""
    value = field(manifest, key, float, "a number")
    if not RANGE[0] <= value <= RANGE[1]:
        raise ModelFileError(f"{key} is {value!r}; expected {RANGE[0]:g} to {RANGE[1]:g}")
    return float(value)


def count(manifest: Mapping[str, Any], key: str) -> int:
    """An integer of the manifest, at least 1."""
    value = field(manifest, key, int, "a whole number")
    if value < 1:
        raise ModelFileError(f"{key} is {value}; expected at least 1")
    return int(value)


def _shortened(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- classes ---


def classes_as_json(classes: Any) -> dict[str, Any]:
    """Labels and the dtype of their array, as JSON."""
    classes = np.asarray(classes)
    labels = classes.tolist()
    if classes.dtype.kind in "UOT" and all(isinstance(label, str) for label in labels):
        dtype = "str" if classes.dtype.kind == "U" and _fits(labels) else "object"
        return {"dtype": dtype, "values": [str(label) for label in labels]}
    if classes.dtype.name not in NUMBER_DTYPES:
        raise ModelFileError(
            f"labels of type {classes.dtype} cannot be saved; make them text, whole numbers or "
            "booleans before fit, for example with y.astype(str)"
        )
    return {"dtype": classes.dtype.name, "values": [level_as_json(label) for label in labels]}


def read_classes(described: Any) -> Any:
    """The array of labels."""
    if not isinstance(described, dict) or set(described) != {"dtype", "values"}:
        raise ModelFileError("classes: expected dtype and values")
    dtype, values = described["dtype"], described["values"]
    if not isinstance(values, list) or len(values) < 2:
        raise ModelFileError("classes: expected a list of at least two labels")
    if dtype in ("str", "object"):
        labels = values
        if not all(isinstance(label, str) for label in labels) or (
            dtype == "str" and not _fits(labels)
        ):
            raise ModelFileError("classes: expected text")
        array = np.array(labels, dtype=object if dtype == "object" else str)
    else:
        labels = [level_from_json(value) for value in values]
        array = _number_array(labels, dtype)
    if len(set(labels)) < len(labels):
        raise ModelFileError("classes: a label is repeated")
    return array


def _fits(labels: list[str]) -> bool:
    """Whether a fixed-width array holds the labels: it would drop trailing NULs, and takes the
    size of the longest label for each."""
    longest = max((len(label) for label in labels), default=0)
    kept = not any(label.endswith("\0") for label in labels)
    return kept and 4 * longest * len(labels) <= LARGEST_TEXT_ARRAY


def _number_array(labels: list[Any], dtype: Any) -> Any:
    if dtype not in NUMBER_DTYPES:
        raise ModelFileError(f"classes: dtype {_shortened(dtype)} is unknown")
    kind = {"b": bool, "i": int, "u": int, "f": float}[np.dtype(dtype).kind]
    if not all(type(label) is kind for label in labels):
        raise ModelFileError(f"classes: expected values of type {dtype}")
    if kind is int:
        limits = np.iinfo(dtype)
        if not all(limits.min <= label <= limits.max for label in labels):
            raise ModelFileError(f"classes: a label is out of the range of {dtype}")
    with np.errstate(over="ignore"):
        array = np.array(labels, dtype=dtype)
    if array.tolist() != labels:
        raise ModelFileError(f"classes: a label is not of type {dtype}")
    return array


# --- columns ---


def columns_as_json(schema: Schema) -> list[Any] | None:
    """Names of numbers and descriptions of categories; None if all are numbers named x0, x1, ..."""
    if not schema.has_categories and schema.names == _default_names(len(schema)):
        return None
    return [
        column.name
        if column.kind == "number"
        else {
            "name": column.name,
            "levels": [level_as_json(level) for level in column.levels],
            "other": bool(column.has_other),
        }
        for column in schema.columns
    ]


def read_columns(described: Any, n_columns: int, most: int) -> Schema:
    """The schema; without names at most ``most`` columns."""
    if described is None:
        if n_columns > most:
            raise ModelFileError(
                f"it has {n_columns} columns, more than the {most} allowed for a file of its size; "
                f"if that is right, load it with max_columns={n_columns}"
            )
        return numeric_schema(_default_names(n_columns))
    if not isinstance(described, list) or len(described) != n_columns:
        raise ModelFileError(f"columns: expected a list of n_columns={n_columns}")
    schema = Schema(tuple(_read_column(one) for one in described))
    if columns_as_json(schema) is None:
        raise ModelFileError("columns: default names are stored as null")
    if len(set(schema.names)) < len(schema):
        raise ModelFileError("columns: a name is repeated")
    return schema


def _default_names(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(n_columns))


def _read_column(described: Any) -> Column:
    if isinstance(described, str):
        return Column(described, "number")
    if not isinstance(described, dict) or set(described) != {"name", "levels", "other"}:
        raise ModelFileError("columns: expected a name, or name, levels and other")
    name, levels, other = described["name"], described["levels"], described["other"]
    if not isinstance(name, str) or not isinstance(levels, list) or not isinstance(other, bool):
        raise ModelFileError("columns: expected text, a list and true or false")
    read_levels = tuple(level_from_json(level) for level in levels)
    if len(set(read_levels)) < len(read_levels):
        raise ModelFileError(f"column {_shortened(name)}: a level is repeated")
    return Column(name, "category", read_levels, other)


def level_as_json(level: Any) -> Any:
    """A level or label as JSON: integers beyond 2**53 as {"int": digits}."""
    if type(level) is int and abs(level) > LARGEST_EXACT:
        return {"int": str(level)}
    if type(level) in (str, bool, int, float) and (
        not isinstance(level, float) or math.isfinite(level)
    ):
        return level
    raise ModelFileError(
        f"the level {_shortened(level)} cannot be saved; expected text, a number or a boolean"
    )


def level_from_json(value: Any) -> Any:
    if isinstance(value, dict):
        digits = value.get("int")
        if (
            set(value) != {"int"}
            or not isinstance(digits, str)
            or not BIG_INTEGER.fullmatch(digits)
        ):
            raise ModelFileError("a level is neither text nor a number")
        if abs(int(digits)) <= LARGEST_EXACT:
            raise ModelFileError(f"the level {digits} is not an integer beyond 2**53")
        return int(digits)
    if type(value) not in (str, bool, int, float):
        raise ModelFileError(f"the level {_shortened(value)} is neither text nor a number")
    return value


# --- training and edits ---


def facts_as_json(value: Any, what: str) -> Any:
    """``value`` as JSON returns it; raises for types that JSON does not have."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: facts_as_json(one, what) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [facts_as_json(one, what) for one in value]
    raise ModelFileError(
        f"{what} holds {_shortened(value)}; expected text, numbers, booleans, None, and lists or "
        "dicts of these"
    )


def read_training(training: Any) -> dict[str, Any] | None:
    if training is not None and not isinstance(training, dict):
        raise ModelFileError(f"training is {_shortened(training)}; expected an object or null")
    return training


def read_edits(edits: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(edits, list) or not all(isinstance(one, dict) for one in edits):
        raise ModelFileError(f"edits is {_shortened(edits)}; expected a list of objects")
    return tuple(edits)
