"""Labels and row weights: as they come in, and as codes and plain numbers.

Labels keep the type they came with; weights lose their unit. What cannot be told apart or
added up is refused with the place where it stands.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from geomix.arrays import FloatArray, IntArray
from geomix.table.columns import is_missing


def plain_labels(y: Any) -> Any:
    """Labels with the types they came with, where NumPy or scikit-learn would change them.

    A list that mixes text with numbers or NaN stays mixed, so that it can be refused (NumPy
    makes '1' of 1 and 'nan' of NaN); text that ends in NUL keeps it; pandas' nullable integers
    and booleans become NumPy's (scikit-learn makes floats of them).
    """
    if isinstance(y, (list, tuple)):
        labels = np.asarray(y)
        if labels.dtype.kind in "US" and not all(_survives_fixed_width(label) for label in y):
            labels = np.asarray(y, dtype=object)
        return labels
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is not None and hasattr(y, "isna") and not y.isna().any():
        return y.to_numpy(dtype=numpy_dtype)
    return y


def _survives_fixed_width(label: Any) -> bool:
    return isinstance(label, str) and not label.endswith("\0")


def read_labels(y: Any) -> tuple[Any, IntArray]:
    """Distinct labels in sorted order, and each row's code among them."""
    check_labels(y, "y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.intp)


def codes_of(y: Any, classes: Any, name: str, known_as: str = "the labels of y") -> IntArray:
    """Codes of labels among known ``classes``; an unknown label is an error."""
    y = np.asarray(y)
    _check_labels_known(y, name)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    labels = y.tolist()
    for row, label in enumerate(labels):
        if label not in code_of:
            raise ValueError(
                f"{name} holds the label {reprlib.repr(label)} (row {row}), which is not among "
                f"{known_as}: {reprlib.repr(classes.tolist())}."
            )
    return np.array([code_of[label] for label in labels], dtype=np.intp)


def check_labels(y: Any, name: str) -> None:
    """Refuse labels that are missing, or that mix text with numbers."""
    _check_labels_known(y, name)
    _check_labels_alike(y)


def _check_labels_known(y: Any, name: str) -> None:
    if y.dtype.kind == "f":
        unknown = ~np.isfinite(y)
    elif y.dtype.kind in "mM":
        unknown = np.isnat(y)
    elif y.dtype.kind == "O":
        unknown = np.array([is_missing(label) for label in y], dtype=bool)
    else:
        return
    if unknown.any():
        first = int(unknown.argmax())
        raise ValueError(
            f"Input {name} contains NaN, None or infinity: {int(unknown.sum())} of {len(y)} "
            f"labels, the first at row {first}. Drop those rows."
        )


def _check_labels_alike(y: Any) -> None:
    if y.dtype.kind != "O":
        return
    kinds = sorted({type(label).__name__ for label in y})
    if len(kinds) > 1 and any(isinstance(label, str) for label in y):
        raise ValueError(
            f"Unknown label type: y mixes {' and '.join(kinds)}, which cannot be put in order. "
            "Convert the labels to one type, for example with y.astype(str)."
        )


def read_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> FloatArray:
    """Weights without their unit: equal ones are 1, others are divided by a power of two near
    the largest. That rounds nothing, so weights 1, 2 and 3 stay exactly in proportion. None
    is ones."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = check_weights(sample_weight, n_rows, name)
    largest = weight.max(initial=0.0)
    if largest == 0.0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return np.ones(n_rows) if weight.min() == largest else unitless(weight)


def unitless(weight: FloatArray) -> FloatArray:
    """Weights divided by a power of two near the largest, which rounds nothing."""
    return np.ldexp(weight, -np.frexp(weight.max())[1])


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> FloatArray:
    """Weights as they came, once they are finite numbers of at least zero, one for each row."""
    weight = _as_numbers(sample_weight, name)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"{name} must be a 1D array; got shape {weight.shape}.")
    if len(weight) != n_rows:
        raise ValueError(f"{name}.shape == {weight.shape}, expected ({n_rows},)!")
    for problem, mask in {
        "NaN": np.isnan(weight),
        "infinity": np.isinf(weight),
        "a negative value": weight < 0,
    }.items():
        if mask.any():
            first = int(mask.argmax())
            raise ValueError(
                f"{name} contains {problem}: {name}[{first}] = {float(weight[first])!r}; "
                "expected finite numbers of at least 0."
            )
    return weight


def _as_numbers(sample_weight: Any, name: str) -> FloatArray:
    if isinstance(sample_weight, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be ignored; use .filled(0).")
    given = np.asarray(sample_weight)
    if given.dtype.kind in "biuf":
        return given.astype(np.float64)
    cells = given.ravel().tolist()
    if given.dtype.kind != "O" or any(isinstance(cell, (str, bytes)) for cell in cells):
        raise ValueError(f"{name} must hold numbers; got {reprlib.repr(cells[0])}.")
    return np.reshape([np.nan if is_missing(cell) else float(cell) for cell in cells], given.shape)
