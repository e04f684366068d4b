"""From encoded rows to the features phi that the planes are linear in.

    encoded row x  ->  expand (one-hot)  ->  standardise, rotate  ->  lift  ->  phi(x)

An encoded row holds numbers, the codes of levels, and NaN for missing cells. A spline lift reads
these cells as they are. The other lifts read standardised numbers, so categories and missing
cells are expanded to 0/1 columns first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix
from geomix.core.lifts import IdentityLift, Lift, Standardize, pass_through
from geomix.core.spline import SplineLift
from geomix.table.one_hot import NUMBER, Expand, expanded
from geomix.table.row_views import PickedRows


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi(x) = lift(standardize(expand(x))); ``expand`` is None where no column needs it."""

    standardize: Standardize
    lift: Lift
    expand: Expand | None = None

    @property
    def n_outputs(self) -> int:
        """Length of phi."""
        return self.lift.n_outputs

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may stay a sparse matrix: numbers alone, without curves and rotation."""
        is_linear = self.expand is None and self.lift.kind == "linear"
        return is_linear and self.standardize.rotation is None

    def __call__(self, X: Any) -> Matrix:
        """phi of encoded rows, (n_rows, n_outputs): the reference, and for few rows."""
        return self.of_expanded(self.expanded(X))

    def of_expanded(self, X: Any) -> Matrix:
        """phi of rows that are expanded already."""
        return self.lift(self.standardize(X))

    def standardized(self, X: Any) -> Matrix:
        """Encoded rows as the lift reads them."""
        return self.standardize(self.expanded(X))

    def expanded(self, X: Any) -> Any:
        """Encoded rows with their 0/1 columns.

        The blocks of ``PickedRows`` are expanded when they are read. Sparse rows have neither
        categories nor missing cells.
        """
        if self.expand is None:
            return X
        return expanded(X, self.expand) if isinstance(X, PickedRows) else self.expand(X)

    @property
    def column_of(self) -> IntArray:
        """(n_kept,) the encoded column behind each standardised one, before any rotation."""
        kept = self.standardize.kept
        return kept if self.expand is None else self.expand.column_of[kept]

    @property
    def keeps_sparse(self) -> bool:
        """Whether the features of a sparse row are sparse: linear lift, no rotation."""
        return self.lift.kind == "linear" and self.standardize.rotation is None

    def column_weights(self, weights: FloatArray) -> FloatArray | None:
        """Weights (m, n_outputs) as weights over the scaled columns, (m, n_kept); None unless
        the lift is linear."""
        return self.standardize.unrotated(weights) if self.lift.kind == "linear" else None

    @property
    def n_numbers(self) -> int:
        """How many of the standardised columns are numbers, and not 0/1 columns."""
        if self.expand is None:
            return self.standardize.n_outputs
        return int((~self.expand.is_indicator[self.standardize.kept]).sum())

    def slopes_along(self, column: int) -> IntArray:
        """Features whose weight is, up to a positive factor, the slope along an encoded column."""
        if isinstance(self.lift, SplineLift):
            return self.lift.slopes_along(column)
        if self.expand is not None:
            is_number = (self.expand.column_of == column) & (self.expand.shows == NUMBER)
            column = int(np.flatnonzero(is_number)[0])
        return np.flatnonzero(self.standardize.kept == column)

    def with_column_units(self, units: FloatArray) -> FeatureMap:
        """The same map with each standardised column times the unit of its encoded column,
        (n_columns,): a column with a larger unit has a weaker penalty."""
        scale = self.standardize.scale / units[self.column_of]
        return replace(self, standardize=replace(self.standardize, scale=scale))

    def with_lift(self, lift: Lift) -> FeatureMap:
        return replace(self, lift=lift)


def linear_map(standardize: Standardize, expand: Expand | None) -> FeatureMap:
    """The map of the linear lift: expanded and standardised columns."""
    return FeatureMap(standardize, IdentityLift(standardize.n_outputs), expand)


def spline_map(lift: Lift, n_columns: int) -> FeatureMap:
    """The map of a spline lift, which reads the encoded cells themselves."""
    return FeatureMap(pass_through(n_columns), lift)
