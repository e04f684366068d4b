"""PartReader: from a part of the table to rows for training.

    part  ->  encode, expand, standardise (or find the bins)  ->  ``StoredRows``: small, kept
          ->  lift  ->  ``TrainingRows``: made block by block in every pass

Passes start from the stored rows, without the raw part: codes under a spline lift, standardised
numbers otherwise (Fourier features would take twenty times the memory, and are computed faster
than they are read). A reader is plain data and can be sent to other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap, linear_map
from geomix.core.kernel import TrainingRows, training_rows
from geomix.core.lifts import CELLS_FOR_SINGLE, Standardize
from geomix.core.moments import column_scale
from geomix.core.spline import Binned, SplineLift
from geomix.out_of_core.survey import Classes, RowPart, Survey, labels_and_weights
from geomix.table.frames import taken
from geomix.table.one_hot import NUMBER, make_expand
from geomix.table.row_views import all_rows, blocks
from geomix.table.schema import Schema
from geomix.training.preparation import Known
from geomix.training.rows import SMALLEST_SPREAD
from geomix.training.settings import Settings

# Features of one block: large enough to be worth a call, small enough to stay in the cache from
# their making to their use (a pass over a million rows of 50: 0.20 s, with 2**22 0.49 s).
FEATURES_PER_BLOCK = 2**18
# Codes are used in place: a larger block only saves calls.
CODES_PER_BLOCK = 2**22
SMALLEST_BLOCK = 256


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a part, ready for any number of passes. X : codes, or standardised numbers."""

    X: Any
    y: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class PartReader:
    """dtype : of the standardised numbers;  class_weight : (n_classes,) or None;
    exact : sums are computed in float64, so that they are the same (to 1e-15) however the rows are
    cut into parts. The codes of a spline lift are the exception: their kernel is float32.
    """

    schema: Schema
    classes: Classes
    feature_map: FeatureMap
    dtype: Any
    class_weight: FloatArray | None
    exact: bool

    def stored(self, part: RowPart) -> StoredRows:
        """The rows of positive weight of a part."""
        y, weight, used = labels_and_weights(part)
        codes = self.classes.codes(y)
        if self.class_weight is not None:
            weight = weight * self.class_weight[codes]
        rows = part.X if used is None else taken(part.X, used)
        return StoredRows(self._numbers(rows), codes, weight)

    def _numbers(self, X: Any) -> Any:
        is_array = isinstance(X, np.ndarray) and not self.schema.has_categories
        encoded = X if is_array and X.dtype.kind == "f" else self.schema.encode(X)
        lift, standardize = self.feature_map.lift, self.feature_map.standardize
        if isinstance(lift, SplineLift):
            return kernel.binned(lift, all_rows(encoded)).codes
        rows = self.feature_map.expanded(all_rows(encoded))
        V = np.empty((len(rows), standardize.n_outputs), dtype=self.dtype)
        for at, block in blocks(rows):
            V[at] = standardize(block)
        return V

    def blocks(self, stored: StoredRows) -> Iterator[TrainingRows]:
        """The stored rows, lifted and packed for the kernel, block by block.

        A block is used before the next one is made: they share their memory.
        """
        size = max(self._rows_per_block, SMALLEST_BLOCK)
        room: FloatArray = np.empty((0, 0))
        for start in range(0, len(stored), size):
            at = slice(start, start + size)
            Phi = self._lifted(stored.X[at])
            if self.exact and isinstance(Phi, np.ndarray) and Phi.dtype != np.float64:
                room = room if len(room) else np.empty(Phi.shape)
                np.copyto(room[: len(Phi)], Phi)
                Phi = room[: len(Phi)]
            yield training_rows(Phi, stored.y[at], stored.weight[at])

    @property
    def _rows_per_block(self) -> int:
        lift = self.feature_map.lift
        if isinstance(lift, SplineLift):
            return CODES_PER_BLOCK // max(len(lift.parts), 1)
        return FEATURES_PER_BLOCK // max(lift.n_outputs, 1)

    def _lifted(self, X: Any) -> Any:
        lift = self.feature_map.lift
        if isinstance(lift, SplineLift):
            return Binned(X, lift)
        return kernel.lifted(lift, X)


def part_reader_of(
    survey: Survey,
    feature_map: FeatureMap,
    class_weight: FloatArray | None,
    *,
    exact: bool,
) -> PartReader:
    """The reader of a chosen feature map. Numbers are float32 under the conditions for a table in
    memory: all columns are float32 and complete, there are many cells, and none is very large."""
    limits = np.stack([survey.moments.low, survey.moments.high])
    standardize = feature_map.standardize
    many = survey.n_rows * standardize.n_outputs >= CELLS_FOR_SINGLE
    single = (
        survey.is_single and many and feature_map.expand is None and standardize.fits_single(limits)
    )
    dtype = np.float32 if single else np.float64
    return PartReader(survey.schema, survey.classes, feature_map, dtype, class_weight, exact)


def known_from(survey: Survey, settings: Settings) -> Known:
    """Expansion, mean and scale of every column, exact over all rows that were surveyed."""
    schema, moments, total = survey.schema, survey.moments, survey.total_weight
    expand = make_expand(survey.has_missing, schema)
    column_of: IntArray = np.arange(len(schema))
    shows: IntArray = np.full(len(schema), NUMBER)
    if expand is not None:
        column_of, shows = expand.column_of, expand.shows
    mean, scale, varies = moments.location, _scale_of(survey), _varies(survey)
    means, scales, kept = mean[column_of], scale[column_of], varies[column_of]
    for i in np.flatnonzero(shows != NUMBER):
        mass = _mass_shown(survey, int(column_of[i]), int(shows[i]))
        means[i], scales[i], kept[i] = mass / total, 1.0, 0.0 < mass < total
    index = np.flatnonzero(kept)
    if not settings.standardize:
        means, scales = np.zeros_like(means), np.ones_like(scales)
    standardize = Standardize(index, means[index], scales[index], None, len(means))
    return Known(linear_map(standardize, expand), survey.has_missing)


def _scale_of(survey: Survey) -> FloatArray:
    moments = survey.moments
    scale = column_scale(moments.deviation, moments.high / 2.0 - moments.low / 2.0)
    return np.where(scale > 0.0, scale, 1.0)


def _varies(survey: Survey) -> Any:
    moments = survey.moments
    there = moments.low <= moments.high
    half_spread = np.where(there, moments.high / 2.0 - moments.low / 2.0, 0.0)
    return (there & survey.has_missing) | (half_spread >= SMALLEST_SPREAD)


def _mass_shown(survey: Survey, column: int, shown: int) -> float:
    """Weight of the rows where a 0/1 column is 1."""
    if shown < 0:
        return float(survey.missing[column])
    levels, described = survey.levels[column], survey.schema.columns[column]
    assert levels is not None
    if shown < len(described.levels):
        return levels.weight[described.levels[shown]]
    known = sum(levels.weight[level] for level in described.levels)
    return max(survey.total_weight - float(survey.missing[column]) - known, 0.0)
