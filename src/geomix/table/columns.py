"""One column of a table as numbers or labels.

A column of any library (``table/frames.py``) is read as numbers, NaN where missing, or as
``Labels``.
Dates, nested records, bytes and columns that mix text with numbers are refused by name; integers
that a float64 cannot represent cause a warning.
"""

from __future__ import annotations

import datetime
import itertools
import reprlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import DataQualityWarning, SchemaError
from geomix.table.frames import cells_of, column_at, kind_of, names_and_types
from geomix.table.sparse_rows import is_sparse

LARGEST_EXACT_INTEGER = 2**53
MOST_COLUMNS_NAMED = 5

# Types of a column that NumPy cannot hold, by the first letters of their name: what, remedy.
REMEDIES_BY_TYPE_NAME = {
    "int128": ("128-bit integers", "cast it to Float64"),
    "uint128": ("128-bit integers", "cast it to Float64"),
    "run_end_encoded": ("run-end encoded cells", "decode it with pyarrow.compute.run_end_decode"),
}
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of labels: ``codes`` (n,) into ``levels``, -1 where missing.

    Levels are text, integers, booleans or floats, all different. Their order means something where
    ``is_ordered``: that of an ordered category.
    """

    codes: IntArray
    levels: list[Any]
    is_ordered: bool = False

    def __len__(self) -> int:
        return len(self.codes)


def check_integers(X: Any) -> None:
    """Warn of integers in a table of numbers that a float64 cannot represent."""
    if is_sparse(X):
        _check_sparse_integers(X)
    elif not isinstance(X, np.ndarray) or _largest_integer(X) > LARGEST_EXACT_INTEGER:
        for position, (name, dtype) in enumerate(names_and_types(X)):
            if kind_of(dtype) == "integers":
                _warn_inexact(name, _largest_integer(np.asarray(column_at(X, position))))


def _check_sparse_integers(X: Any) -> None:
    if X.dtype.kind in "iu":
        by_column = X.tocsc()
        for j, (start, stop) in enumerate(itertools.pairwise(by_column.indptr)):
            _warn_inexact(f"x{j}", _largest_integer(by_column.data[start:stop]))


def is_category(X: Any, position: int, name: Any, dtype: Any) -> bool:
    """Whether a column holds categories, by its type or, for objects, by its cells."""
    kind = kind_of(dtype)
    _refuse_kind(name, kind, dtype)
    if kind != "objects":
        return kind in ("categories", "text")
    return _objects_hold(name, cells_of(column_at(X, position))) == "text"


def number_column(X: Any, position: int, name: Any, dtype: Any) -> FloatArray:
    """A column as float64 numbers, NaN where missing."""
    kind, column = kind_of(dtype), column_at(X, position)
    _refuse_kind(name, kind, dtype)
    if kind in ("text", "categories"):
        raise SchemaError(_not_a_number(name, cells_of(column)))
    if kind == "objects":
        cells = cells_of(column)
        if _objects_hold(name, cells) == "text":
            raise SchemaError(_not_a_number(name, cells))
        sizes = (abs(cell) for cell in cells if isinstance(cell, int))
        # Integers beyond the range of float64 are refused by ``_as_floats``.
        _warn_inexact(name, max((size for size in sizes if size < 2**1023), default=0))
        return _as_floats(name, cells)
    if getattr(dtype, "kind", "") == "c":  # before pandas drops the imaginary part
        raise ValueError(f"Complex data not supported: column {name!r}.")
    if hasattr(column, "to_numpy") and hasattr(X, "iloc"):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.asarray(column)
    if kind == "integers":
        _warn_inexact(name, _largest_integer(np.asarray(column)))
    if values.dtype.kind == "O":
        return _as_floats(name, cells_of(column))
    with np.errstate(over="ignore"):  # the check for infinity reports it
        floats: FloatArray = values.astype(np.float64)
    return floats


def label_column(X: Any, position: int, name: Any, dtype: Any, *, declared: bool) -> Labels:
    """A column as labels. Unless ``declared`` categorical, text of an array that reads as numbers
    is refused, since it is most likely a table that was never parsed."""
    _refuse_kind(name, kind_of(dtype), dtype)
    column = column_at(X, position)
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):
        codes, levels = np.asarray(column.cat.codes), column.cat.categories.tolist()
        is_ordered = bool(column.cat.ordered)
    elif hasattr(column, "unify_dictionaries") and str(column.type).startswith("dictionary"):
        codes, levels = _arrow_codes(column)
        is_ordered = bool(column.type.ordered)
    else:
        cells = cells_of(column)
        _refuse_odd_types(name, {type(cell) for cell in cells})
        if not declared and kind_of(dtype) == "objects":
            _objects_hold(name, cells)
        order = _enum_levels(column)
        is_ordered = bool(order)
        codes, levels = _numbered(name, cells, order)
    labels = _tidied(name, codes, levels, is_ordered)
    if not declared and isinstance(X, np.ndarray) and labels.levels:
        _refuse_unparsed(name, cells_of(column), labels.levels)
    return labels


def labels_of(cells: list[Any]) -> Labels:
    """Labels of cells, None where missing."""
    levels = [cell for cell in dict.fromkeys(cells) if cell is not None]
    code_of = {level: code for code, level in enumerate(levels)}
    return Labels(np.array([code_of.get(cell, -1) for cell in cells], dtype=np.intp), levels)


def _arrow_codes(column: Any) -> tuple[IntArray, list[Any]]:
    """Codes and levels of an Arrow dictionary column, without an object for each cell."""
    parts = column.unify_dictionaries().chunks
    codes = [np.asarray(part.indices.fill_null(-1)).astype(np.intp) for part in parts]
    levels = parts[0].dictionary.to_pylist() if parts else []
    return np.concatenate([np.empty(0, dtype=np.intp), *codes]), levels


def _refuse_kind(name: Any, kind: str, dtype: Any) -> None:
    if kind == "dates":
        raise SchemaError(_holds_dates(name, dtype))
    if kind == "bytes":
        raise SchemaError(_holds_bytes(name, dtype))
    if kind == "records":
        raise SchemaError(
            f"Column {name!r} holds records ({reprlib.repr(str(dtype))}), expected numbers or "
            "categories. Split them into columns, or drop the column."
        )
    if kind == "unknown":
        raise SchemaError(_unknown_type(name, str(dtype)))


def _unknown_type(name: Any, type_name: str) -> str:
    for beginning, (what, remedy) in REMEDIES_BY_TYPE_NAME.items():
        if type_name.lower().startswith(beginning):
            return f"Column {name!r} has {what}; {remedy}."
    return (
        f"Column {name!r} has the type {reprlib.repr(type_name)}, which geomix does not know; cast "
        "it to numbers (float64) or text."
    )


def _refuse_odd_types(name: Any, types: set[type]) -> None:
    for kind in types:
        if issubclass(kind, bytes):
            raise SchemaError(_holds_bytes(name, kind.__name__))
        if issubclass(kind, DATES) and kind.__name__ != "NaTType":
            raise SchemaError(_holds_dates(name, kind.__name__))


def _objects_hold(name: Any, cells: list[Any]) -> str:
    """ "text" or "numbers"; "" if every cell is missing. Refuses a mixture."""
    types = {type(cell) for cell in cells} - {type(None)}
    _refuse_odd_types(name, types)
    if not any(issubclass(kind, str) for kind in types):
        return "numbers" if types else ""
    for row, cell in enumerate(cells):
        if not isinstance(cell, str) and not is_missing(cell):
            text_row, text = _first_text(cells)
            raise SchemaError(
                f"Column {name!r} mixes text with other types: row {text_row} is "
                f"{reprlib.repr(text)}, row {row} is {reprlib.repr(cell)}. Convert all cells to "
                "numbers, or all to text for categories."
            )
    return "text"


def _enum_levels(column: Any) -> list[Any]:
    """The levels of a polars Enum, in its order; none of another column."""
    dtype: Any = getattr(column, "dtype", None)
    return cells_of(dtype.categories) if str(dtype).startswith("Enum") else []


def _numbered(name: Any, cells: list[Any], order: list[Any]) -> tuple[IntArray, list[Any]]:
    """Codes by first appearance, after the levels of ``order``."""
    code_of: dict[Any, int] = {level: code for code, level in enumerate(order)}
    try:
        codes = [code_of.setdefault(cell, len(code_of)) for cell in cells]
    except TypeError as error:
        row = next(row for row, cell in enumerate(cells) if not _is_label(cell))
        raise _no_label(name, cells[row], row) from error
    return np.array(codes, dtype=np.intp), list(code_of)


def _tidied(name: Any, codes: IntArray, levels: list[Any], is_ordered: bool) -> Labels:
    """Distinct levels as Python objects; missing cells get code -1."""
    code_of: dict[Any, int] = {}
    renumbered = np.full(len(levels) + 1, -1, dtype=np.intp)  # the last entry is for code -1
    for code, level in enumerate(levels):
        if is_missing(level):
            continue
        if not _is_label(level):
            raise _no_label(name, level, int((codes == code).argmax()))
        if isinstance(level, (float, np.floating)) and np.isinf(level):
            raise infinity_error([f"{name}: {(codes == code).sum()} of {len(codes)}"], "X")
        renumbered[code] = code_of.setdefault(plain_label(level), len(code_of))
    return Labels(renumbered[codes], list(code_of), is_ordered)


def _is_label(cell: Any) -> bool:
    return isinstance(cell, (str, int, float, np.integer, np.floating, np.bool_)) or is_missing(
        cell
    )


def plain_label(cell: Any) -> Any:
    """A cell as a label; 2.0 becomes 2, since missing cells turn integers into floats."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return str(cell) if isinstance(cell, str) else cell


def _no_label(name: Any, cell: Any, row: int) -> Exception:
    return SchemaError(
        f"Column {name!r}, row {row} holds {reprlib.repr(cell)}, which is not a category; expected "
        "text, a whole number or a boolean."
    )


def _refuse_unparsed(name: Any, cells: list[Any], levels: list[Any]) -> None:
    if all(isinstance(level, str) and _reads_as_number(level) for level in levels):
        row, text = _first_text(cells)
        raise SchemaError(
            f"Column {name!r} holds text: row {row} is {reprlib.repr(text)}, expected a number. "
            "Convert it with astype(float), or name the column in categorical_features."
        )


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_floats(name: Any, cells: list[Any]) -> FloatArray:
    try:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    except (TypeError, OverflowError, ValueError) as error:
        raise _odd_cell(name, cells) or error from None


def _odd_cell(name: Any, cells: list[Any]) -> Exception | None:
    """An error that names the first cell that cannot be a float."""
    for row, cell in enumerate(cells):
        place = f"Column {name!r}, row {row} holds {reprlib.repr(cell)}"
        try:
            float(cell) if not is_missing(cell) else None
        except OverflowError:
            return ValueError(f"{place}, too large for a float64.")
        except (TypeError, ValueError) as reason:
            return TypeError(f"{place}: {reason}.")
    return None


def _first_text(cells: list[Any]) -> tuple[int, Any]:
    texts = ((row, cell) for row, cell in enumerate(cells) if isinstance(cell, str))
    return next(texts, (0, None))


def _not_a_number(name: Any, cells: list[Any]) -> str:
    row, cell = _first_text(cells)
    held = f"text: row {row} is {reprlib.repr(cell)}" if cell is not None else "categories"
    return f"Column {name!r} holds {held}, expected a number as in training."


def _holds_dates(name: Any, type_name: Any) -> str:
    return (
        f"Column {name!r} holds dates or times ({type_name}); drop it, or convert it to numbers "
        "(a year, an age in days)."
    )


def _holds_bytes(name: Any, type_name: Any) -> str:
    return f"Column {name!r} holds bytes ({type_name}); decode them to text or numbers first."


def _largest_integer(values: Any) -> int:
    """Largest absolute value of an integer array; 0 for other arrays."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _warn_inexact(name: Any, largest: int) -> None:
    if largest > LARGEST_EXACT_INTEGER:
        warnings.warn(
            f"Column {name!r} holds integers up to {largest}, beyond 2**53: as float64 they lose "
            "their last digits. If it is an identifier, drop it.",
            DataQualityWarning,
            stacklevel=5,
        )


# --- missing and infinite cells ---


def is_missing(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    # pandas' NA and NaT compare with nothing; recognised by name, without importing pandas.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def missing_error(found: dict[Any, tuple[int, int]], table: str) -> ValueError:
    """``found`` : name of a column -> (missing cells, rows)."""
    where = [
        f"{name}: {count} of {n_rows}" + (", 100 % missing" if count == n_rows else "")
        for name, (count, n_rows) in found.items()
    ]
    return ValueError(
        f"Input {table} contains NaN ({first_few(where)}). Impute or drop them, for example with "
        "SimpleImputer."
    )


def infinity_error(where: list[str], table: str) -> ValueError:
    return ValueError(
        f"Input {table} contains infinity or a value too large for float64 "
        f"({first_few(where)}). Replace or drop them; an infinite value is never treated as "
        "missing."
    )


def first_few(where: list[str]) -> str:
    more = len(where) - MOST_COLUMNS_NAMED
    listed = ", ".join(where[:MOST_COLUMNS_NAMED])
    return listed if more <= 0 else f"{listed}, and {more} more columns"
