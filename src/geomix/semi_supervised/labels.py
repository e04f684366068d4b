"""Which rows have a label: all but those whose ``y`` is the marker, -1 unless the user names one.

Text has its marker as text: NumPy makes "-1" of -1 in a list of words.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from geomix.arrays import IntArray
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
    labels = np.asarray(column_or_1d(plain_labels(y), warn=True))
    is_marker = _equals(labels, marker)
    labelled, unlabelled = np.flatnonzero(~is_marker), np.flatnonzero(is_marker)
    if len(labelled) == 0:
        raise ValueError(
            f"Every label in y is {marker!r}, the marker of unlabelled rows; expected labels of "
            "at least 2 classes."
        )
    known = labels[labelled]
    if known.dtype.kind == "O":  # words beside the marker, or numbers beside it
        known = np.array(known.tolist())
    classes, codes = read_labels(known)
    if len(unlabelled) == 0:
        warnings.warn(
            f"No label in y is {marker!r}, so every row has a label and the model is an ordinary "
            "supervised one; set unlabeled= if your rows have another marker.",
            UserWarning,
            stacklevel=4,
        )
    return PartlyLabelled(classes, labelled, unlabelled, codes)


def _equals(labels: Any, marker: Any) -> Any:
    if labels.dtype.kind in "US":
        return labels == str(marker)
    if labels.dtype.kind == "O":
        return np.array([_is(label, marker) for label in labels.tolist()], dtype=bool)
    if isinstance(marker, str):
        return np.zeros(len(labels), dtype=bool)
    return labels == marker


def _is(label: Any, marker: Any) -> bool:
    if isinstance(label, str) != isinstance(marker, str):
        return False
    return bool(label == marker)
