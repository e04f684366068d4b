"""Sums over a model's standardised columns, as sums over the columns that the user has.

Before a linear plane, or a Fourier angle, raw columns are expanded (a number, 0/1 columns for its
levels or for "missing"), some are left out, the rest is standardised and perhaps rotated. All of
it is affine, so m sums w . v over standardised rows are, exactly but for rounding,

    sum_i weights_i (x_i - mean_i) / scale_i         i over the expanded columns

and the expanded columns of one raw column stand side by side. What reads a model
(``explain/additive_form.py``) and what writes it down elsewhere (``export/terms.py``) both begin
here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.table.one_hot import MISSING, NUMBER


class Places(NamedTuple):
    """Where the expanded columns of one raw column are: its number, its levels, "missing"."""

    number: IntArray
    levels: IntArray
    flags: IntArray


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """weights : (m, n_expanded), zero for columns that are left out;  mean, scale : (n_expanded,);
    column_of, shows : (n_expanded,) as in ``Expand``."""

    weights: FloatArray
    mean: FloatArray
    scale: FloatArray
    column_of: IntArray
    shows: IntArray

    @property
    def per_unit(self) -> FloatArray:
        """(m, n_expanded): what one unit of an expanded column adds."""
        return self.weights / self.scale

    def places(self, column: int) -> Places:
        """The expanded columns of a raw one."""
        every = np.flatnonzero(self.column_of == column)
        shows = self.shows[every]
        return Places(every[shows == NUMBER], every[shows >= 0], every[shows == MISSING])

    def added(self, X: FloatArray, some: IntArray) -> FloatArray:
        """What some of the columns of expanded rows add, (n_rows, m); NaN adds nothing."""
        U = (X[:, some] - self.mean[some]) / self.scale[some]
        added: FloatArray = np.where(np.isnan(U), 0.0, U) @ self.weights[:, some].T
        return added


def column_sums(model: GeometricMixture, weights: FloatArray) -> ColumnSums:
    """Sums of weights (m, n_standardised) over what the model's ``standardize`` gives."""
    standardize, expand = model.standardize, model.expand
    n_columns, kept = standardize.n_columns, standardize.kept
    whole = np.zeros((len(weights), n_columns))
    mean, scale = np.zeros(n_columns), np.ones(n_columns)
    whole[:, kept] = standardize.unrotated(weights)
    mean[kept], scale[kept] = standardize.mean, standardize.scale
    if expand is None:
        return ColumnSums(whole, mean, scale, np.arange(n_columns), np.full(n_columns, NUMBER))
    return ColumnSums(whole, mean, scale, expand.column_of, expand.shows)
