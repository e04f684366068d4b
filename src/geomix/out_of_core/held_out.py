"""Rows held out of a fit out of core, which set the temperature of the final planes.

A temperature of rows that were trained on is too low: planes fit their own rows best. So a third of
the sample is held out of the search and of the training: the rows with the largest keys, which do
not depend on how the table is cut into parts.

Passes are sums over all rows, wherever those are. The held-out rows are in memory, so training has

    sums over the training rows = sums over all rows - sums over the held-out rows
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.objective import BatchTerms
from geomix.core.planes import Planes
from geomix.core.row_sums import PartSums, Sums
from geomix.out_of_core.part_reader import PartReader, StoredRows
from geomix.out_of_core.sampling import chosen_rows, rows_to_search
from geomix.out_of_core.survey import RowPart, Survey
from geomix.search.constants import CALIBRATION

# A sample of a larger share of the rows chooses a temperature that suits the final planes: they see
# few more rows than those of the search.
LARGEST_SAMPLE_SHARE = 0.6
# Of a class that the search would have all sampled rows of, at most this share is held out.
SHARE_OF_RARE = 1 / 3
# Of the weight of a class. Where few rows have most of it, a difference of sums would be rounding.
MOST_WEIGHT = 0.25


@dataclass(frozen=True, eq=False)
class Division:
    """Rows of the sample that are searched, and that are held out; some may be neither."""

    searched: BoolArray
    held_out: BoolArray


def divide(survey: Survey) -> Division:
    """The rows of smallest keys are searched, those of largest keys held out, class by class.

    At most ``CALIBRATION.share`` of the rows of a class are held out, and none where the sample is
    most of the table.
    """
    sample, classes = survey.sample, survey.classes
    searched: BoolArray = np.ones(survey.n_sampled, dtype=bool)
    held: BoolArray = np.zeros(survey.n_sampled, dtype=bool)
    if survey.sample_share == 1.0:
        return Division(searched, held)
    searched[:] = False
    searched[chosen_rows(sample.keys, sample.y, n_rows=rows_to_search())] = True
    if survey.sample_share > LARGEST_SAMPLE_SHARE:
        return Division(searched, held)
    codes = classes.codes(sample.y)
    for code, n_rows in enumerate(classes.n_rows.tolist()):
        own = np.flatnonzero(codes == code)  # by key, as the sample is
        n_over = int((~searched[own]).sum()) or int(SHARE_OF_RARE * len(own))
        last = own[len(own) - min(n_over, int(CALIBRATION.share * n_rows)) :]
        if sample.weight[last].sum() <= MOST_WEIGHT * classes.weight[code]:
            held[last], searched[last] = True, False
    return Division(searched, held)


def with_sample(survey: Survey, rows: BoolArray) -> Survey:
    """The survey with these rows of its sample."""
    sample = survey.sample
    columns = [column[rows] for column in sample.columns]
    part = replace(
        sample,
        keys=sample.keys[rows],
        columns=columns,
        y=sample.y[rows],
        weight=sample.weight[rows],
    )
    return replace(survey, sample=part)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out rows. survey : its sample is these rows;  reader : of all rows."""

    survey: Survey
    reader: PartReader

    def __len__(self) -> int:
        return len(self.survey.sample.keys)

    def left_out_of(self, sums: Sums) -> Sums:
        """Sums over all other rows."""
        stored = self._stored(self.survey.sample.weight)
        return Difference(sums, PartSums(lambda: self.reader.blocks(stored)))

    def temperature(self, planes: Planes, sharpness: float) -> float:
        """The temperature of ``planes``, where every class has its weight in the table."""
        codes = self.reader.classes.codes(self.survey.sample.y)
        rows = self._stored(self.survey.sample_weights(codes))
        scores = [block.class_scores(planes, sharpness) for block in self.reader.blocks(rows)]
        return fit_temperature(np.concatenate(scores), rows.y, rows.weight, PRIOR_SCALE)

    def _stored(self, weight: Any) -> StoredRows:
        part = RowPart(self.survey.sample_cells(), self.survey.sample.y, weight)
        # Cells of the sample are encoded, and weights have the factors of the classes.
        schema = self.reader.schema
        columns = tuple(replace(column, kind="number") for column in schema.columns)
        plain = replace(schema, columns=columns)
        return replace(self.reader, schema=plain, class_weight=None).stored(part)


@dataclass(frozen=True, eq=False)
class Difference:
    """Sums over the rows of ``whole`` without those of ``part``."""

    whole: Sums
    part: Sums

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        whole, part = (
            sums.terms(planes, sharpness, label_smoothing) for sums in (self.whole, self.part)
        )
        return BatchTerms(
            whole.row_weight - part.row_weight,
            whole.loss - part.loss,
            whole.weights_gradient - part.weights_gradient,
            whole.biases_gradient - part.biases_gradient,
            np.maximum(whole.usage - part.usage, 0.0),  # rounding may leave less than nothing
        )
