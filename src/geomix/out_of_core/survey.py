"""Survey: one pass over all rows, for what must be known of a table before training.

A ``RowPart`` is some raw rows (an array, a frame, an Arrow table) with labels and weights. Its
``Survey`` holds moments and limits of the numbers, weights of the levels and of the classes, and
a sample. Surveys add, so parts can be read one after another or on different machines:

    survey of the table = survey(part 1) + survey(part 2) + ...

The sample (``out_of_core/sampling.py``) is the same for every way to cut the table into parts.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.moments import Moments, moments_of
from geomix.errors import SchemaError
from geomix.out_of_core.sampling import Sample, as_labels, chosen_rows, row_keys
from geomix.table.category_levels import learn_levels
from geomix.table.columns import Labels, infinity_error
from geomix.table.frames import names_and_types, taken
from geomix.table.labels import check_labels, check_weights, label_codes, plain_labels
from geomix.table.reader import is_single, read_columns
from geomix.table.schema import Column, Schema

# Above this many levels of a column the rarest are dropped during the pass; they would be part of
# "(other)" at most. This bounds the memory of a column of identifiers.
MOST_LEVELS_COUNTED = 100_000
LARGEST_WEIGHT = 1e100


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some raw rows. X : array, frame or Arrow table;  y : labels;  weight : or None."""

    X: Any
    y: Any
    weight: Any = None

    def __len__(self) -> int:
        return int(self.X.shape[0])


def with_factors(part: RowPart, factor_of: Mapping[Any, float] | None) -> RowPart:
    """The rows with their weights times the factor of their label; None: as they are."""
    if factor_of is None:
        return part
    labels = list(factor_of)
    factors = np.array([factor_of[label] for label in labels])
    y = column_or_1d(np.asarray(plain_labels(part.y)))
    weight = np.ones(len(y)) if part.weight is None else check_weights(part.weight, len(y))
    codes = _known_codes(y, np.array(labels, dtype=object))
    return RowPart(part.X, part.y, weight * factors[codes])


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """Levels of a category and the weight of each; ``total`` includes levels that were dropped.

    order : all levels of an ordered category, or None
    """

    weight: dict[Any, float]
    total: float
    forgot: bool = False
    order: tuple[Any, ...] | None = None

    def __add__(self, other: LevelWeights) -> LevelWeights:
        weight = dict(self.weight)
        for level, mass in other.weight.items():
            weight[level] = weight.get(level, 0.0) + mass
        total, forgot = self.total + other.total, self.forgot or other.forgot
        return _bounded(weight, total, forgot, self.order if self.order == other.order else None)


def _bounded(
    weight: dict[Any, float], total: float, forgot: bool, ordered: tuple[Any, ...] | None
) -> LevelWeights:
    if len(weight) <= MOST_LEVELS_COUNTED:
        return LevelWeights(weight, total, forgot, ordered)
    order = sorted(weight, key=lambda level: (-weight[level], str(level)))
    heaviest = {level: weight[level] for level in order[: MOST_LEVELS_COUNTED // 2]}
    return LevelWeights(heaviest, total, True, ordered)


@dataclass(frozen=True, eq=False)
class Classes:
    """Distinct labels in sorted order, with the rows and the weight of each."""

    labels: Any
    n_rows: IntArray
    weight: FloatArray

    def __add__(self, other: Classes) -> Classes:
        if len(other.labels) == 0 or len(self.labels) == 0:
            return self if len(other.labels) == 0 else other
        for one in (self, other):
            if (one.labels.dtype.kind in "OUST") != (self.labels.dtype.kind in "OUST"):
                raise ValueError(
                    "Unknown label type: y holds text in one part and numbers in another "
                    f"({reprlib.repr(self.labels[0])}, {reprlib.repr(other.labels[0])}). Convert "
                    "the labels to one type."
                )
        both = np.concatenate([self.labels, other.labels])
        labels, place = np.unique(both, return_inverse=True)
        n_rows = np.bincount(place, np.concatenate([self.n_rows, other.n_rows]), len(labels))
        weight = np.bincount(place, np.concatenate([self.weight, other.weight]), len(labels))
        return Classes(labels, n_rows.astype(np.intp), weight.astype(np.float64))

    def codes(self, y: Any) -> IntArray:
        """Codes of labels; raises an error for a label that is not among these."""
        return _known_codes(y, self.labels)


def _known_codes(y: Any, labels: Any) -> IntArray:
    codes = label_codes(y, labels)
    if (codes < 0).any():
        label = np.asarray(y).tolist()[int((codes < 0).argmax())]
        raise ValueError(
            f"y holds the label {reprlib.repr(label)}, which was not there when the table was "
            "first read. Fit again on a table that does not change."
        )
    return codes


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of some rows, or of all. Rows of zero weight are ignored.

    levels : for each column the ``LevelWeights`` of a category, or None for a number;
    is_single : whether every column is float32.
    """

    names: tuple[str, ...]
    has_names: bool
    n_rows: int
    moments: Moments
    levels: tuple[LevelWeights | None, ...]
    classes: Classes
    sample: Sample
    least_weight: float
    is_single: bool

    def __add__(self, other: Survey) -> Survey:
        if self.names != other.names:
            raise SchemaError(
                f"The parts of the table have different columns: {reprlib.repr(self.names)} and "
                f"{reprlib.repr(other.names)}."
            )
        if self.n_rows == 0 or other.n_rows == 0:
            return self if other.n_rows == 0 else other
        levels = [self._joined_levels(other, j) for j in range(len(self.names))]
        return Survey(
            self.names,
            self.has_names,
            self.n_rows + other.n_rows,
            self.moments + other.moments,
            tuple(levels),
            self.classes + other.classes,
            self.sample + other.sample,
            min(self.least_weight, other.least_weight),
            self.is_single and other.is_single,
        )

    def _joined_levels(self, other: Survey, j: int) -> LevelWeights | None:
        mine, its = self.levels[j], other.levels[j]
        if mine is not None and its is not None:
            return mine + its
        if mine is None and its is None:
            return None
        of_numbers = self if mine is None else other
        if of_numbers.moments.weight[j] > 0.0:
            raise SchemaError(
                f"Column {self.names[j]!r} holds numbers in one part of the table and text or "
                "categories in another. Make it one or the other, or name it in "
                "categorical_features."
            )
        return mine or its  # every cell is missing there: it may be either

    @cached_property
    def schema(self) -> Schema:
        """The columns with the levels that are learnt."""
        least = self.least_weight
        return Schema(
            tuple(
                Column(name, "number") if levels is None else _learnt(name, levels, least)
                for name, levels in zip(self.names, self.levels, strict=True)
            )
        )

    @property
    def total_weight(self) -> float:
        return float(self.classes.weight.sum())

    @cached_property
    def missing(self) -> FloatArray:
        """(n_columns,) weight of the missing cells."""
        there = [0.0 if levels is None else levels.total for levels in self.levels]
        of_levels = np.maximum(self.total_weight - np.array(there), 0.0)
        is_category = self.schema.is_category
        return np.where(is_category & (self.moments.n_missing > 0), of_levels, self.moments.missing)

    @property
    def has_missing(self) -> BoolArray:
        """(n_columns,) which columns have a missing cell."""
        return self.moments.has_missing

    def sample_cells(self) -> FloatArray:
        """The sample's cells as numbers and codes, (n_rows, n_columns)."""
        rows = np.empty((len(self.sample.keys), len(self.names)))
        for j, (column, cells) in enumerate(
            zip(self.schema.columns, self.sample.columns, strict=True)
        ):
            if column.kind == "number":
                rows[:, j] = cells
            else:
                labels = as_labels(cells).tolist()
                rows[:, j] = [np.nan if cell is None else column.code(cell) for cell in labels]
        return rows

    @property
    def n_sampled(self) -> int:
        return len(self.sample.keys)

    @property
    def sample_share(self) -> float:
        return self.n_sampled / self.n_rows

    def sample_weights(self, codes: IntArray) -> FloatArray:
        """Weights of the sample's rows that give every class its weight in the table."""
        n_classes = len(self.classes.labels)
        found = np.bincount(codes, self.sample.weight, n_classes)
        factor = self.classes.weight / np.where(found > 0.0, found, 1.0)
        if self.sample_share == 1.0:
            return self.sample.weight
        return self.sample.weight * factor[codes]


def _learnt(name: str, levels: LevelWeights, least: float) -> Column:
    known = levels.weight if levels.order is None else levels.order
    found = [level for level in known if level in levels.weight]
    mass = np.array([levels.weight[level] for level in found])
    column = learn_levels(name, found, mass, mass / least, levels.order is not None)
    return replace(column, has_other=True) if levels.forgot else column


def survey_part(
    part: RowPart, offset: int, seed: int, categorical_features: Any = None, bar: Any = None
) -> Survey:
    """The survey of one part, whose first row is row ``offset`` of the whole table; ``bar`` is
    that of the sample so far."""
    names = tuple(str(name) for name, _ in names_and_types(part.X))
    y, weight, used = labels_and_weights(part)
    X = part.X if used is None else taken(part.X, used)
    place = np.arange(len(part), dtype=np.uint64) if used is None else used.astype(np.uint64)
    keys = row_keys(place + np.uint64(offset), seed)
    columns = read_columns(X, categorical_features)
    _check_finite(columns, names)
    moments = moments_of(_numbers_of(columns, len(y)), weight)
    chosen = chosen_rows(keys, y, bar)
    by_column = list(columns.T) if isinstance(columns, np.ndarray) else columns
    picked = [_picked(column, chosen) for column in by_column]
    return Survey(
        names,
        not isinstance(part.X, np.ndarray),
        len(y),
        _with_missing_labels(moments, columns),
        tuple(_levels_of(column, weight) for column in by_column),
        _classes_of(y, weight),
        Sample(keys[chosen], picked, y[chosen], weight[chosen]),
        float(weight.min(initial=np.inf)),
        is_single(part.X),
    )


def labels_and_weights(part: RowPart) -> tuple[Any, FloatArray, IntArray | None]:
    """Labels and weights of the rows of positive weight, and which they are (None: all)."""
    y = column_or_1d(np.asarray(plain_labels(part.y)))
    if len(y) != len(part):
        raise ValueError(f"Found a part with {len(part)} rows but {len(y)} labels.")
    if part.weight is None:
        check_labels(y, "y")
        return y, np.ones(len(y)), None
    weight = check_weights(part.weight, len(y))
    if weight.max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"sample_weight holds {weight.max()!r}; expected at most 1e100.")
    used = np.flatnonzero(weight > 0.0)
    y, weight = y[used], weight[used]
    check_labels(y, "y")
    return y, weight, used


def _numbers_of(columns: Any, n_rows: int) -> FloatArray:
    """The columns of numbers as an array; those of labels are zero there."""
    if isinstance(columns, np.ndarray):
        return np.asarray(columns, dtype=np.float64)
    out = np.zeros((n_rows, len(columns)))
    for j, column in enumerate(columns):
        if not isinstance(column, Labels):
            out[:, j] = column
    return out


def _with_missing_labels(moments: Moments, columns: Any) -> Moments:
    if isinstance(columns, np.ndarray):
        return moments
    n_missing = moments.n_missing.copy()
    for j, column in enumerate(columns):
        if isinstance(column, Labels):
            n_missing[j] = int((column.codes < 0).sum())
    return replace(moments, n_missing=n_missing)


def _check_finite(columns: Any, names: tuple[str, ...]) -> None:
    by_column = columns.T if isinstance(columns, np.ndarray) else columns
    where = []
    for name, column in zip(names, by_column, strict=True):
        if not isinstance(column, Labels) and (n := int(np.isinf(column).sum())):
            where.append(f"{name}: {n} of {len(column)}")
    if where:
        raise infinity_error(where, "X")


def _picked(column: Any, rows: IntArray) -> Any:
    if not isinstance(column, Labels):
        return np.asarray(column[rows], dtype=np.float64)
    cells = np.empty(len(column.levels) + 1, dtype=object)
    cells[:-1] = column.levels  # the last stays None: it stands for -1, missing
    return cells[column.codes[rows]]


def _levels_of(column: Any, weight: FloatArray) -> LevelWeights | None:
    if not isinstance(column, Labels):
        return None
    there = column.codes >= 0
    mass = np.bincount(column.codes[there], weight[there], len(column.levels))
    seen = np.flatnonzero(mass > 0.0)
    weights = {column.levels[code]: float(mass[code]) for code in seen}
    order = tuple(column.levels) if column.is_ordered else None
    return _bounded(weights, float(mass.sum()), False, order)


def _classes_of(y: Any, weight: FloatArray) -> Classes:
    check_classification_targets(y) if len(y) else None
    labels, codes = np.unique(y, return_inverse=True)
    n_rows = np.bincount(codes, minlength=len(labels))
    return Classes(labels, n_rows, np.bincount(codes, weight, len(labels)).astype(np.float64))
