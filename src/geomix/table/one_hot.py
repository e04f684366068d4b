"""Encoded cells as numbers and 0/1 columns, for lifts that read numbers.

    number              itself, and 1{missing} if it was missing in training
    category            1{level} for each level, and 1{missing} if it was missing in training

A cell is NaN in all its columns if training has no data for it: a missing number, an unseen level,
or a missing category if none was missing in training. ``Standardize`` maps NaN to 0, the mean of
the training rows, so such a cell contributes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.table.row_views import PickedRows, few_at_once
from geomix.table.schema import Schema

NUMBER, MISSING = -2, -1


@dataclass(frozen=True, eq=False)
class Expand:
    """column_of : (n_outputs,) the encoded column that each output comes from;
    shows : (n_outputs,) the level that it indicates, or NUMBER or MISSING;
    n_columns : number of encoded columns.
    """

    column_of: IntArray
    shows: IntArray
    n_columns: int

    @property
    def n_outputs(self) -> int:
        return len(self.shows)

    @property
    def is_indicator(self) -> BoolArray:
        """(n_outputs,) which outputs are 0 or 1."""
        return self.shows != NUMBER

    def __call__(self, X: FloatArray) -> FloatArray:
        """(n_rows, n_columns) -> (n_rows, n_outputs), C-ordered."""
        out = np.zeros((len(X), self.n_outputs))
        for rows in few_at_once(X.shape):
            self._fill(X[rows], out[rows])
        return out

    def _fill(self, X: FloatArray, out: FloatArray) -> None:
        """Put numbers and indicators in place of the zeros in ``out``."""
        numbers, missing = self._numbers, self._missing
        if len(numbers):
            out[:, numbers] = X[:, self.column_of[numbers]]
        if len(missing):
            out[:, missing] = np.isnan(X[:, self.column_of[missing]])
        codes = X[:, self._categories]
        is_known = codes >= 0.0
        rows, which = np.nonzero(is_known)
        out[rows, self._first_level[which] + codes[is_known].astype(np.intp)] = 1.0
        if len(rows) < codes.size:
            self._hide_unknown(codes, out)

    def _hide_unknown(self, codes: FloatArray, out: FloatArray) -> None:
        """NaN for categories without data in training; only unseen levels have negative codes."""
        unknown = (codes < 0.0) | (np.isnan(codes) & ~self._knows_missing)
        for k in np.flatnonzero(unknown.any(axis=0)).tolist():
            outputs = np.flatnonzero(self.column_of == self._categories[k])
            out[np.ix_(unknown[:, k], outputs)] = np.nan

    @cached_property
    def _numbers(self) -> IntArray:
        return np.flatnonzero(self.shows == NUMBER)

    @cached_property
    def _missing(self) -> IntArray:
        return np.flatnonzero(self.shows == MISSING)

    @cached_property
    def _categories(self) -> IntArray:
        """Columns with an output for each level, the levels in order."""
        return np.setdiff1d(self.column_of, self.column_of[self._numbers])

    @cached_property
    def _first_level(self) -> IntArray:
        return np.searchsorted(self.column_of, self._categories)

    @cached_property
    def _knows_missing(self) -> BoolArray:
        return np.isin(self._categories, self.column_of[self._missing])

    def names(self, schema: Schema) -> tuple[str, ...]:
        """ "age", "age missing", "colour=red", "colour=(other)"."""
        made = []
        for j, shown in zip(self.column_of.tolist(), self.shows.tolist(), strict=True):
            column = schema.columns[j]
            tail = {NUMBER: "", MISSING: " missing"}.get(shown)
            made.append(column.name + (f"={column.level_names[shown]}" if tail is None else tail))
        return tuple(made)

    def by_column(self, outputs: FloatArray) -> FloatArray:
        """Sums over the outputs of each encoded column: (n_outputs,) -> (n_columns,)."""
        sums = np.zeros(self.n_columns)
        np.add.at(sums, self.column_of, outputs)
        return sums


def fit_expand(X: PickedRows, schema: Schema) -> Expand | None:
    """The outputs for encoded rows like X; None if all cells are numbers and none is missing."""
    return make_expand(X.has_missing, schema)


def make_expand(has_missing: BoolArray, schema: Schema) -> Expand | None:
    """Like ``fit_expand``; ``has_missing`` (n_columns,) : columns with missing cells."""
    if not has_missing.any() and not schema.has_categories:
        return None
    return expansion(schema, has_missing)


def expansion(schema: Schema, has_missing: BoolArray) -> Expand:
    """The outputs for a schema; ``has_missing`` (n_columns,) : columns with missing cells."""
    column_of: list[int] = []
    shows: list[int] = []
    for j, column in enumerate(schema.columns):
        parts = list(range(column.n_levels)) if column.kind == "category" else [NUMBER]
        parts += [MISSING] if has_missing[j] else []
        column_of += [j] * len(parts)
        shows += parts
    return Expand(np.array(column_of, dtype=np.intp), np.array(shows, dtype=np.intp), len(schema))


def expanded(X: PickedRows, expand: Expand | None) -> PickedRows:
    """The same rows, with expanded blocks."""
    return X if expand is None else PickedRows(X.table, X.index, expand)
