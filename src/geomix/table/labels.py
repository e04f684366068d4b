"""Class labels as codes, and row and class weights as floats.

Labels keep their type. Row weights are divided by a power of two, so that only their ratios matter.
Invalid labels and weights are errors that name the row. The two functions that need scikit-learn
import it: a process that only loads a model does without.
"""

from __future__ import annotations

import decimal
import numbers
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import InvalidParameterError
from geomix.table.columns import is_missing
from geomix.table.frames import as_column, refuse_masked

# More labels than this are identifiers or quantities, and every pass computes a score for each.
MOST_CLASSES = 10_000
SMALLEST_RATIO = 1e-300  # of two class weights; times a row's weight, a smaller one would be zero


def plain_labels(y: Any) -> Any:
    """Labels with their original types, where NumPy or scikit-learn would change them.

    A list that mixes text with numbers or NaN becomes an object array, so that it can be refused
    (NumPy converts 1 to '1' and NaN to 'nan'). Text keeps a trailing NUL. pandas' nullable integers
    and booleans become NumPy's (scikit-learn converts them to floats). A table of one column, of a
    library that has no columns of its own, is that column.
    """
    refuse_masked(y, "y", "drop the masked rows")
    y = as_column(y, "y")
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
    """Distinct labels in sorted order, and the code of each row."""
    from sklearn.utils.multiclass import check_classification_targets

    check_labels(y, "y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"y has {len(classes)} different labels; expected at most {MOST_CLASSES} classes. If y "
            "is a quantity, cut it into ranges; if it is an identifier, it is the wrong column."
        )
    return classes, codes.astype(np.intp)


def label_codes(y: Any, classes: Any) -> IntArray:
    """(n,) position of each label among ``classes``; -1 for a label that is not among them."""
    y = np.asarray(y)
    if y.dtype.kind == classes.dtype.kind == "M":  # in one unit, as the same moments
        y = y.astype(classes.dtype)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    if y.dtype.kind == "O":  # objects may have no order
        return np.array([code_of.get(label, -1) for label in y.tolist()], dtype=np.intp)
    found, position = np.unique(y, return_inverse=True)
    codes = np.array([code_of.get(label, -1) for label in found.tolist()], dtype=np.intp)
    return codes[position]


def codes_by_text(classes: Any) -> dict[str, int]:
    """Codes of classes by the text that names them in files and options; booleans in lower case."""
    labels = classes.tolist()
    if all(isinstance(label, bool) for label in labels):
        texts = {False: ("false", "0"), True: ("true", "1")}
        return {text: code for code, label in enumerate(labels) for text in texts[label]}
    return {str(label): code for code, label in enumerate(labels)}


def codes_of(y: Any, classes: Any, name: str, known_as: str = "the labels of y") -> IntArray:
    """Codes of labels among known ``classes``; an unknown label is an error."""
    refuse_masked(y, name, "drop the masked rows")
    y = np.asarray(y)
    _check_labels_known(y, name)
    codes = label_codes(y, classes)
    if (codes < 0).any():
        row = int((codes < 0).argmax())
        raise ValueError(
            f"{name} holds the label {reprlib.repr(y.tolist()[row])} (row {row}), which is not "
            f"among {known_as}: {reprlib.repr(classes.tolist())}."
        )
    return codes


def class_weight_factors(
    class_weight: Any, classes: Any, weight_by_class: FloatArray, total: float
) -> FloatArray | None:
    """(n_classes,) factors on the row weights of each class; None for ``class_weight=None``.

    "balanced" : total / (n_classes * weight of the class), and 1 for a class without rows
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        has_rows = weight_by_class > 0
        shares = len(classes) * np.where(has_rows, weight_by_class, 1.0)
        return np.where(has_rows, total / shares, 1.0)
    if not isinstance(class_weight, Mapping):
        raise InvalidParameterError(
            "The 'class_weight' parameter must be None, 'balanced' or a dict with the weight of "
            f"each class. Got {reprlib.repr(class_weight)} instead."
        )
    given = {plain_value(label): factor for label, factor in class_weight.items()}
    known = classes.tolist()
    left_out = [label for label in known if label not in given]
    if left_out and len(known) - len(left_out) != len(given):
        raise InvalidParameterError(
            f"The classes, {left_out!r}, are not in class_weight={reprlib.repr(class_weight)}; "
            "name all of them, or labels of y alone."
        )
    factors = np.array([_factor(class_weight, label, given.get(label, 1.0)) for label in known])
    if factors.max() * SMALLEST_RATIO > factors.min():
        raise InvalidParameterError(
            f"Got class_weight={reprlib.repr(class_weight)}; expected weights within a factor of "
            "1e300 of each other."
        )
    return factors


def plain_value(label: Any) -> Any:
    """A label as Python has it, and not as NumPy."""
    return label.item() if isinstance(label, np.generic) else label


def _factor(class_weight: Any, label: Any, factor: Any) -> float:
    is_number = isinstance(factor, (numbers.Real, decimal.Decimal))
    if is_number and 0.0 < float(factor) < np.inf:
        return float(factor)
    raise InvalidParameterError(
        f"Got class_weight={class_weight!r}; expected a positive number for class {label!r}. To "
        "leave a class out, drop its rows."
    )


def check_labels(y: Any, name: str) -> None:
    """Raise if labels are missing, or mix text with numbers."""
    _check_labels_known(y, name)
    _check_labels_alike(y, name)


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


def _check_labels_alike(y: Any, name: str) -> None:
    if y.dtype.kind != "O":
        return
    kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in y})
    if len(kinds) > 1 and any(isinstance(label, str) for label in y):
        raise ValueError(
            f"Unknown label type: {name} mixes {' and '.join(kinds)}, which cannot be sorted. "
            f"Convert the labels to one type, for example with {name}.astype(str)."
        )


def read_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> FloatArray:
    """Weights divided by a power of two near the largest, which is exact; ones if all are equal or
    ``sample_weight`` is None."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = check_weights(sample_weight, n_rows, name)
    largest = weight.max(initial=0.0)
    if largest == 0.0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return np.ones(n_rows) if weight.min() == largest else unitless(weight)


def unitless(weight: FloatArray) -> FloatArray:
    """Weights divided by a power of two near the largest, which is exact."""
    return np.ldexp(weight, -np.frexp(weight.max())[1])


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> FloatArray:
    """Weights as floats; raises unless there is a finite number of at least 0 for each row."""
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
    refuse_masked(sample_weight, name, "use .filled(0)")
    given = np.asarray(as_column(sample_weight, name))
    if given.dtype.kind in "biuf":
        return given.astype(np.float64)
    cells = given.ravel().tolist()
    if given.dtype.kind != "O" or any(isinstance(cell, (str, bytes)) for cell in cells):
        raise ValueError(f"{name} must hold numbers; got {reprlib.repr(cells[0])}.")
    return np.reshape([_as_number(cell, name) for cell in cells], given.shape)


def _as_number(cell: Any, name: str) -> float:
    try:
        return np.nan if is_missing(cell) else float(cell)
    except (TypeError, OverflowError):
        raise ValueError(f"{name} must hold numbers; got {reprlib.repr(cell)}.") from None
