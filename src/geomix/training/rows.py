"""Labelled rows: their canonical order, and validation splits of them.

Before training, rows of zero weight are dropped, exact repeats are merged into one row with the sum
of their weights, and the rest is put into a canonical order (by a random projection of the rows,
rescaled to each column's range). So a row given twice *is* a row of weight two, the order of the
table changes nothing, and repeats of a row are never on both sides of a validation split. Levels of
a category enter the projection by what their rows hold, so their names change nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray, rounded
from geomix.core.kernel import TrainingRows, training_rows
from geomix.table.labels import unitless
from geomix.table.row_views import PickedRows, all_rows, blocks, is_dense, numbers

# A column whose values lie closer together than this cannot be scaled without overflow.
SMALLEST_SPREAD = 1e-300
# Shares and mean positions that agree to this many decimals count as equal: their last digits
# depend on the order of the rows.
DECIMALS = 9
# Sparse rows of one key that would take more numbers than this made dense stay as they are.
MOST_CELLS_TO_SORT = 2**24
# Arithmetic on fewer numbers than this takes little of the time of a fit.
FEWEST_NUMBERS_IN_SINGLE = 2**14


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with class codes and weights. y, weight : (n,)

    X : (n, d), a table's ``PickedRows`` or CSR, or an array of working features;
    is_single : whether planes are trained on dense rows in single precision (decision 100).
    """

    X: Any
    y: IntArray
    weight: FloatArray
    is_single: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Any) -> Rows:
        """Some of the rows, in the order of ``index``; picked ones are not copied."""
        return Rows(self.X[index], self.y[index], self.weight[index], self.is_single)

    def in_single_precision(self) -> Rows:
        """The same rows, trained on in single precision if they are dense and have many numbers."""
        is_small = self.X.shape[0] * self.X.shape[1] < FEWEST_NUMBERS_IN_SINGLE
        return self if is_small or not is_dense(self.X) else replace(self, is_single=True)

    @cached_property
    def prepared(self) -> TrainingRows:
        """The same rows, packed for the kernel once."""
        return training_rows(self.X, self.y, self.weight, is_single=self.is_single)

    def unpack(self) -> None:
        """Free the packed rows; ``prepared`` packs them again when they are needed."""
        vars(self).pop("prepared", None)


@dataclass(frozen=True, eq=False)
class ColumnRange:
    """Smallest and largest value of each column, which have missing cells, and which vary."""

    low: FloatArray
    high: FloatArray
    has_missing: BoolArray

    @property
    def half_spread(self) -> FloatArray:
        """Half of high - low, which unlike the whole cannot overflow."""
        return self.high / 2.0 - self.low / 2.0

    @property
    def all_missing(self) -> IntArray:
        return np.flatnonzero(self.low > self.high)

    @property
    def varying(self) -> IntArray:
        """Columns whose values vary, or are there in some rows and missing in others."""
        partly = self.has_missing & (self.low <= self.high)
        return np.flatnonzero(partly | (self.half_spread >= SMALLEST_SPREAD))

    @property
    def nearly_constant(self) -> IntArray:
        """Columns that vary by less than can be scaled, so count as constant."""
        return np.flatnonzero((self.high > self.low) & (self.half_spread < SMALLEST_SPREAD))


def column_range(X: Any) -> ColumnRange:
    if isinstance(X, PickedRows):
        low, high = X.limits
        return ColumnRange(low, high, X.has_missing)
    if isinstance(X, np.ndarray):
        return column_range(all_rows(X))
    low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    complete = np.zeros(X.shape[1], dtype=bool)
    return ColumnRange(low.astype(np.float64), high.astype(np.float64), complete)


def distinct_rows(rows: Rows, columns: ColumnRange, is_category: BoolArray | None = None) -> Rows:
    """Merge exact repeats of (row, class) into one weighted row; put rows in canonical order.

    is_category : (n_columns,) which columns hold codes of levels; None: none does
    """
    ranks: dict[int, FloatArray] = {}
    if is_category is not None and is_category.any():
        ranks = _level_ranks(rows, columns, is_category)
    keys = row_keys(rows.X, columns, ranks)
    order: IntArray = np.lexsort((rows.y, keys))
    keys, y = keys[order], rows.y[order]
    suspects = np.flatnonzero((keys[1:] == keys[:-1]) & (y[1:] == y[:-1])) + 1
    equal = _equals_before(rows.X, order, suspects)
    if not equal.all():  # beside a value of 1e30 a key has no digits left for the others
        order = _sorted_by_cells(rows.X, order, suspects, ranks)
        equal = _equals_before(rows.X, order, suspects)
    is_repeat = np.zeros(len(order), dtype=bool)
    is_repeat[suspects[equal]] = True
    starts = np.flatnonzero(~is_repeat)
    return Rows(rows.X[order[starts]], y[starts], np.add.reduceat(rows.weight[order], starts))


def relative_weights(weight: FloatArray) -> FloatArray:
    """Positive weights up to a common factor, rounded to 24 significant bits.

    Weights times any factor become the same bits, unless one of them lies on the border between
    two roundings. Whole numbers below 2^24 stay exact if one of them is a power of two.
    """
    if len(weight) == 0:
        return weight
    smallest, _ = np.frexp(weight.min())
    return unitless(rounded(weight / smallest))


def _level_ranks(rows: Rows, columns: ColumnRange, is_category: BoolArray) -> dict[int, FloatArray]:
    """A rank in place of the code of each level, by column: the order of the levels by the mean of
    their rows over numbers and classes, which their names do not influence."""
    share = (np.bincount(rows.y, rows.weight) / rows.weight.sum()).round(DECIMALS)
    numeric = [j for j in columns.varying.tolist() if not is_category[j]]
    base = row_keys(rows.X, columns, {}, only=numeric) + share[rows.y]
    # Sorted first: the sum of a level then does not depend on the order of the table.
    by_base = np.lexsort((rows.weight, base))
    ranks = {}
    for column in np.flatnonzero(is_category).tolist():
        cells = np.concatenate([block[:, 0] for _, block in blocks(rows.X, np.array([column]))])
        present = by_base[~np.isnan(cells[by_base])]
        if not len(present):
            continue
        codes = cells[present].astype(np.uint16)  # few enough for a sort in linear time
        within = np.argsort(codes, kind="stable")
        order, sorted_codes = present[within], codes[within].astype(np.intp)
        weight = rows.weight[order]
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        mean = np.add.reduceat(weight * base[order], starts) / np.add.reduceat(weight, starts)
        found = sorted_codes[starts]
        rank = np.arange(found[-1] + 1, dtype=np.float64)
        by_mean = np.argsort(mean.round(DECIMALS), kind="stable")
        rank[found] = found[np.argsort(by_mean, kind="stable")]
        ranks[column] = rank
    return ranks


def row_keys(
    X: Any, columns: ColumnRange, ranks: dict[int, FloatArray], only: list[int] | None = None
) -> FloatArray:
    """One number per row that equal rows share and different rows, in practice, do not.

    ranks : by column, a number in place of each code;  only : the columns that count, None: all
    """
    kept = columns.varying
    direction = np.random.default_rng(20250917).uniform(0.5, 1.0, len(kept))
    spread = columns.half_spread[kept]
    step = direction / np.where(spread >= SMALLEST_SPREAD, spread, 1.0)
    half_low = columns.low[kept] / 2.0
    if not is_dense(X):
        keys: FloatArray = np.asarray(X[:, kept] @ (step / 2.0)) - half_low @ step
        return keys
    keys = np.zeros(len(X))
    for rows, block in blocks(X, kept):
        # Column by column, so that a row's key does not depend on where the row stands.
        key = keys[rows]
        for j, column in enumerate(kept.tolist()):
            if only is not None and column not in only:
                continue
            cells = block[:, j]
            if column in ranks:
                cells = np.append(ranks[column], np.nan)[_places(cells, len(ranks[column]))]
            part = (cells / 2.0 - half_low[j]) * step[j]
            if columns.has_missing[column]:  # a place beyond all values
                part = np.where(np.isnan(part), 2.0 * direction[j], part)
            key += part
    return keys


def _equals_before(X: Any, order: IntArray, places: IntArray) -> BoolArray:
    """Whether the row at each place of an order has the cells of the one before it."""
    return _rows_equal(X[order[places - 1]], X[order[places]])


def _sorted_by_cells(
    X: Any, order: IntArray, suspects: IntArray, ranks: dict[int, FloatArray]
) -> IntArray:
    """The order with rows of one key and class sorted by their cells, column after column.

    suspects : places whose row has the key and class of the row before
    """
    is_later = np.zeros(len(order), dtype=bool)
    is_later[suspects] = True
    places = np.flatnonzero(is_later | np.append(is_later[1:], False))
    run = np.cumsum(~is_later)[places]
    cells = numbers(X[order[places]])
    if not is_dense(X):
        used = np.unique(cells.indices)
        if len(places) * len(used) > MOST_CELLS_TO_SORT:
            return order
        cells = cells[:, used].toarray()
    for column, rank in ranks.items():
        cells[:, column] = np.append(rank, np.nan)[_places(cells[:, column], len(rank))]
    order = order.copy()
    order[places] = order[places][np.lexsort((*cells.T[::-1], run))]
    return order


def _places(codes: FloatArray, beyond: int) -> IntArray:
    """Codes as indices; ``beyond`` where they are missing."""
    return np.where(np.isnan(codes), beyond, codes).astype(np.intp)


def _rows_equal(first: Any, second: Any) -> BoolArray:
    if is_dense(first):
        equal = np.empty(len(first), dtype=bool)
        for (rows, one), (_, other) in zip(blocks(first), blocks(second), strict=True):
            same = one == other
            if not same.all():
                same |= np.isnan(one) & np.isnan(other)
            equal[rows] = same.all(axis=1)
        return equal
    differences = (first != second).sum(axis=1)
    return np.asarray(differences).ravel() == 0


def stratified_split(
    y: IntArray, fraction: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Indices of training and validation rows: ``fraction`` of every class, rounded.

    A class keeps at least one row for training, so a class of one row is never held out.
    """
    seed = int(rng.integers(2**32))
    held_out = np.zeros(len(y), dtype=bool)
    for code in np.unique(y):
        members = _shuffled_members(y, code, seed)
        n_out = min(round(fraction * len(members)), len(members) - 1)
        held_out[members[:n_out]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def stratified_folds(
    y: IntArray, n_folds: int, rng: np.random.Generator
) -> list[tuple[IntArray, IntArray]]:
    """``n_folds`` pairs of (training, validation) indices; every row of a class with at least
    two rows is held out once, a class of one row never is."""
    seed = int(rng.integers(2**32))
    fold = np.full(len(y), -1)
    for code in np.unique(y):
        members = _shuffled_members(y, code, seed)
        if len(members) > 1:
            fold[members] = np.arange(len(members)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _shuffled_members(y: IntArray, code: int, seed: int) -> IntArray:
    # Every class is shuffled by the same stream, so renaming the classes changes no split.
    return np.random.default_rng(seed).permutation(np.flatnonzero(y == code))


def class_weighted(rows: Rows, class_weight: FloatArray) -> Rows:
    """The rows with their weights times the factor of their class."""
    return replace(rows, weight=unitless(rows.weight * class_weight[rows.y]))
