"""Facts about a table before a model is fitted: ``check_table(X, y)``.

Each finding is one sentence that names the column and the remedy. Serious findings make a model
wrong or worthless (an identifier, a copy of the label, money read as categories, dates, a class
of a few rows); ``fit`` warns about them. The others cost time or clarity (constant and duplicated
columns, repeated rows). The tests themselves are in ``table/suspicions.py``.

Above ``MOST_ROWS`` rows a sample is looked at, so that a check takes a small part of a fit, and so
that files larger than memory are checked by the sample that a fit out of core draws anyway.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from geomix.arrays import IntArray
from geomix.table.columns import Labels, is_category, label_column, number_column
from geomix.table.frames import as_table, kind_of, names_and_types, taken
from geomix.table.labels import plain_labels, read_labels
from geomix.table.printing import plain, printable
from geomix.table.reader import declared_categories
from geomix.table.sparse_rows import is_sparse
from geomix.table.suspicions import (
    Cells,
    Finding,
    about_classes,
    about_constants,
    about_copies,
    about_rows,
    cells_of_labels,
    cells_of_numbers,
    in_one_column,
    typed_dates,
)

# As large as the sample of a fit out of core (``out_of_core.sampling``); 1 ms for each column.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class TableCheck:
    """What ``check_table`` found.

    n_rows, n_columns : of the table
    n_checked : rows that were looked at, ``n_rows`` up to 20,000 rows
    classes : rows by label
    findings : serious ones first
    """

    n_rows: int
    n_columns: int
    n_checked: int
    classes: dict[str, int]
    findings: tuple[Finding, ...]

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that ``fit`` warns about."""
        return tuple(finding for finding in self.findings if finding.is_serious)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The findings that a fit passes over in silence."""
        return tuple(finding for finding in self.findings if not finding.is_serious)

    @property
    def title(self) -> str:
        """The size of the table and the number of findings."""
        looked = "" if self.n_checked == self.n_rows else f" ({self.n_checked} rows looked at)"
        found = f"{len(self.findings)} findings" if len(self.findings) != 1 else "1 finding"
        return (
            f"{self.n_rows} rows{looked}, {self.n_columns} columns, {len(self.classes)} classes: "
            f"{found if self.findings else 'no findings'}"
        )

    def __str__(self) -> str:
        lines = (f"  {'!' if one.is_serious else '-'} {one.sentence}" for one in self.findings)
        return "\n".join(map(printable, [self.title, *lines]))

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li>{'<b>!</b> ' if one.is_serious else ''}{html.escape(one.sentence)}</li>"
            for one in self.findings
        )
        return f'<div class="geomix-check"><p>{html.escape(self.title)}</p><ul>{items}</ul></div>'

    def to_dict(self) -> dict[str, Any]:
        """The facts for JSON."""
        facts: dict[str, Any] = plain(vars(self) | {"findings": list(map(vars, self.findings))})
        return facts


def check_table(X: Any, y: Any, categorical_features: Any = None) -> TableCheck:
    """Look at a table before fitting: what a model would learn wrongly, or could do without.

    Parameters
    ----------
    X : a frame, an array or a sparse matrix, as for ``fit``.
    y : (n_rows,) labels.
    categorical_features : columns that are categories although their cells are numbers.

    Returns
    -------
    A ``TableCheck`` that prints one sentence for each finding. Findings of sparse matrices are
    about the classes alone.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.arange(1000, 1200), rng.normal(size=200)])
    >>> print(check_table(X, rng.integers(0, 2, 200)))  # doctest: +ELLIPSIS
    200 rows, 2 columns, 2 classes: 1 finding
      ! Column 'x0' has another whole number in every row, as an identifier has; drop it...
    """
    X = as_table(X, "X")
    _check_is_table(X)
    if y is None:
        raise ValueError("Got y=None; expected one label for each row of X.")
    labels, codes = read_labels(column_or_1d(plain_labels(y)))
    check_consistent_length(X, codes)
    chosen = rows_to_check(len(codes))
    class_rows = np.bincount(codes)
    if is_sparse(X):
        return _checked([], [], codes[chosen], labels, class_rows, X.shape[1])
    part = X if len(chosen) == len(codes) else taken(X, chosen)
    names, cells, dated = _cells(part, declared_categories(categorical_features, X))
    return _checked(names, cells, codes[chosen], labels, class_rows, X.shape[1], dated)


def _check_is_table(X: Any) -> None:
    if isinstance(X, (list, tuple)):
        raise ValueError("X holds rows of different lengths; pass one cell for each column.")
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got X of shape {tuple(X.shape)} instead; use X.reshape(-1, 1) for "
            "one column, or X.reshape(1, -1) for one row."
        )


def check_read_columns(
    names: Sequence[str], X: Any, codes: IntArray, labels: Any, used: IntArray
) -> TableCheck:
    """The check of a table that has been read: an array, CSR, or a list of numbers and ``Labels``.

    used : the rows that count, in their order
    """
    chosen = used[rows_to_check(len(used))]
    columns = list(X.T) if isinstance(X, np.ndarray) else X
    cells = [] if is_sparse(X) else [_cells_of(one, chosen) for one in columns]
    class_rows = np.bincount(codes[used], minlength=len(labels))
    known = names if cells else []
    return _checked(known, cells, codes[chosen], labels, class_rows, len(names))


def check_sample(
    names: Sequence[str], columns: list[Any], codes: IntArray, labels: Any, class_rows: IntArray
) -> TableCheck:
    """The check of a table by a sample of its rows, in any order.

    class_rows : rows of each class in the whole table
    """
    cells = [_cells_of(column, np.arange(len(codes))) for column in columns]
    return _checked(names, cells, codes, labels, class_rows, len(names))


def rows_to_check(n_rows: int) -> IntArray:
    """All rows, or a uniform sample of ``MOST_ROWS`` in their order."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))


def _cells(X: Any, declared: Any) -> tuple[list[str], list[Cells], list[Finding]]:
    """Names and cells of the columns that hold numbers or categories, and findings of dates."""
    names: list[str] = []
    cells: list[Cells] = []
    dated: list[Finding] = []
    for j, (name, dtype) in enumerate(names_and_types(X)):
        if kind_of(dtype) == "dates":
            dated.append(typed_dates(str(name)))
            continue
        names.append(str(name))
        if declared[j] or is_category(X, j, name, dtype):
            column = label_column(X, j, name, dtype, declared=bool(declared[j]))
            cells.append(cells_of_labels(column))
        else:
            cells.append(cells_of_numbers(number_column(X, j, name, dtype)))
    return names, cells, dated


def _cells_of(column: Any, rows: IntArray) -> Cells:
    if isinstance(column, Labels):
        return cells_of_labels(Labels(column.codes[rows], column.levels))
    return cells_of_numbers(np.asarray(column[rows], dtype=np.float64))


def _checked(
    names: Sequence[str],
    cells: list[Cells],
    codes: IntArray,
    labels: Any,
    class_rows: IntArray,
    n_columns: int,
    dated: Sequence[Finding] = (),
) -> TableCheck:
    counts = dict(zip(map(str, labels.tolist()), class_rows.tolist(), strict=True))
    found = [*dated, *about_classes(counts)]
    share = len(codes) / max(int(class_rows.sum()), 1)
    for name, column in zip(names, cells, strict=True):
        found += in_one_column(name, column, codes, len(labels), share)
    named = {finding.columns for finding in found if finding.columns}
    others = [pair for pair in zip(names, cells, strict=True) if (pair[0],) not in named]
    found += about_constants(others) + about_copies(others)
    found += about_rows(cells, codes)
    ordered = sorted(found, key=lambda finding: not finding.is_serious)
    return TableCheck(int(class_rows.sum()), n_columns, len(codes), counts, tuple(ordered))
