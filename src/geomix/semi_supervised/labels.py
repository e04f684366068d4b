"""Which rows have a label: all but those whose ``y`` is the marker, -1 unless the user names one.

Text has its marker as text: NumPy makes "-1" of -1 in a list of words. A marker that is missing
(None, NaN, NA) stands for every missing label.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from geomix.arrays import IntArray
from geomix.table.columns import is_missing
from geomix.table.labels import plain_labels, read_labels


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """classes : in sorted order;  labelled, unlabelled : indices of rows;
    codes : classes of the labelled rows."""

    classes: Any
    labelled: IntArray
    unlabelled: IntArray
    codes: IntArray


def read_partly_labelled(y: Any, marker: Any) -> PartlyLabelled:
    """Split the rows by whether they have a label."""
    labels = np.asarray(column_or_1d(_with_missing_labels(plain_labels(y)), warn=True))
    is_marker = _equals(labels, marker)
    labelled, unlabelled = np.flatnonzero(~is_marker), np.flatnonzero(is_marker)
    if len(labelled) == 0:
        raise ValueError(
            f"Every label in y is {marker!r}, the marker of unlabelled rows; expected labels of "
            "at least 2 classes."
        )
    known = labels[labelled]
    if known.dtype.kind == "O":  # words beside the marker, or numbers beside it
        known = plain_labels(known.tolist())
    _refuse_missing(labels, is_marker, marker)
    classes, codes = read_labels(known)
    if len(unlabelled) == 0:
        warnings.warn(
            f"No label in y is {marker!r}, so every row has a label and the model is an ordinary "
            "supervised one; set unlabeled= if your rows have another marker.",
            UserWarning,
            stacklevel=4,
        )
    return PartlyLabelled(classes, labelled, unlabelled, codes)


def _with_missing_labels(y: Any) -> Any:
    """Labels with None in place of nulls, which would make floats of whole numbers."""
    if hasattr(getattr(y, "dtype", None), "numpy_dtype") and y.isna().any():  # pandas
        return y.to_numpy(dtype=object, na_value=None)
    if callable(getattr(y, "null_count", None)) and y.null_count():  # polars
        return _objects(y.to_list())
    if isinstance(getattr(y, "null_count", None), int) and y.null_count:  # Arrow
        return _objects(y.to_pylist())
    return y


def _objects(labels: list[Any]) -> Any:
    made = np.empty(len(labels), dtype=object)
    made[:] = labels
    return made


def _refuse_missing(labels: Any, is_marker: Any, marker: Any) -> None:
    """Raise if a label is missing where the marker is something else."""
    lost = np.flatnonzero(_missing(labels) & ~is_marker)
    if len(lost):
        raise ValueError(
            f"y has {len(lost)} missing labels (NaN, None or null), the first at row {lost[0]}, "
            f"but the marker of unlabelled rows is {marker!r}; drop those rows, or set "
            "unlabeled=None if they are the unlabelled ones."
        )


def _missing(labels: Any) -> Any:
    if labels.dtype.kind == "O":
        return np.array([is_missing(label) for label in labels.tolist()], dtype=bool)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    return np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), dtype=bool)


def _equals(labels: Any, marker: Any) -> Any:
    if labels.dtype.kind in "US":
        return labels == str(marker)
    if is_missing(marker):
        return _missing(labels)
    if labels.dtype.kind == "O":
        return np.array([_is(label, marker) for label in labels.tolist()], dtype=bool)
    if isinstance(marker, str):
        return np.zeros(len(labels), dtype=bool)
    return labels == marker


def _is(label: Any, marker: Any) -> bool:
    if is_missing(label) or isinstance(label, str) != isinstance(marker, str):
        return False
    return bool(label == marker)
