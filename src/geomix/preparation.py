"""Rows made ready for training once, for every candidate and every fold that trains on them.

Columns are standardised and rotated, classes split into clusters, and the working features of
each lift made when a candidate first asks for them. Nothing here looks at how well a label is
predicted, so the folds of a cross-validation share it; rows that only judge (``held_out``)
are carried along and teach it nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import CenteredSparse, IntArray
from geomix.budget import Clusters, find_clusters
from geomix.expand import Expand, expanded, fit_expand
from geomix.features import Features, make_features
from geomix.lift import (
    IdentityLift,
    Lift,
    Standardize,
    draw_fourier,
    fit_standardize,
    median_gamma,
    with_rotation,
)
from geomix.picked import is_dense
from geomix.recipe import Recipe
from geomix.rows import Rows, column_range
from geomix.schema import Table
from geomix.streams import stream

# ``pca="auto"``: above this many columns of numbers, keep the axes that hold this share of the
# variance.
COLUMNS_FOR_PCA = 50
VARIANCE_KEPT = 0.95
# Features of up to this many numbers wait for the next candidate of their lift.
MOST_NUMBERS_TO_KEEP = 2**22
# ``n_frequencies="auto"``: more inputs need more frequencies for as good a kernel.
FREQUENCIES_PER_INPUT = 16
FREQUENCIES_RANGE = (128, 512)


@dataclass(frozen=True, eq=False)
class Preparation:
    """``rows.X`` and ``held_out.X`` are standardised (and rotated).

    encoded, encoded_held_out : the same rows as numbers and codes of levels (or sparse), as
    ``table`` describes them.
    """

    table: Table
    encoded: Rows
    encoded_held_out: Rows | None
    expand: Expand | None
    standardize: Standardize
    rows: Rows
    held_out: Rows | None
    clusters: Clusters
    recipe: Recipe
    seed: int
    _made: dict[tuple[str, float | None], Features] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return len(self.clusters.planes_per_class)

    @cached_property
    def typical_gamma(self) -> float:
        """One over the median squared distance between rows."""
        if isinstance(self.rows.X, CenteredSparse):
            return 1.0
        return median_gamma(self.rows.X, stream(self.seed, "gamma"))

    def features(self, lift: str, gamma_factor: float | None) -> Features:
        """Features of a lift; made once while they are small."""
        key = lift, gamma_factor
        if key not in self._made:
            features = make_features(self._lift(*key), self.rows, self.held_out)
            if features.rows.X.shape[0] * features.rows.X.shape[1] > MOST_NUMBERS_TO_KEEP:
                return features
            self._made[key] = features
        return self._made[key]

    def _lift(self, lift: str, gamma_factor: float | None) -> Lift:
        recipe, n_inputs = self.recipe, self.standardize.n_outputs
        if lift == "linear" or n_inputs == 0:
            return IdentityLift(n_inputs)
        typical = self.typical_gamma if recipe.gamma == "auto" else float(recipe.gamma)
        gamma = typical * (gamma_factor or 1.0)
        n_frequencies = recipe.n_frequencies
        if n_frequencies == "auto":
            n_frequencies = int(np.clip(FREQUENCIES_PER_INPUT * n_inputs, *FREQUENCIES_RANGE))
        rng = stream(self.seed, "fourier")
        return draw_fourier(n_inputs, n_frequencies, gamma, recipe.orthogonal, rng)


def prepare(
    rows: Rows,
    held_out: Rows | None,
    table: Table,
    n_classes: int,
    wanted: IntArray | None,
    recipe: Recipe,
    seed: int,
) -> Preparation:
    """Expand, standardise, rotate and cluster ``rows``; carry ``held_out`` along."""
    expand = fit_expand(rows.X, table) if is_dense(rows.X) else None
    X = expanded(rows.X, expand)
    # A column that is constant in these rows has nothing to teach, whatever it does elsewhere.
    varying = column_range(X).varying
    standardize = fit_standardize(
        X,
        rows.weight,
        varying,
        center_and_scale=recipe.standardize,
        keep_unit=None if expand is None else expand.is_indicator,
    )
    keep = _axes_to_keep(recipe.pca, standardize.n_outputs, _n_numbers(standardize, expand))
    if keep is not None and is_dense(X):
        standardize = with_rotation(standardize, X, rows.weight, keep)
    ready = Rows(standardize(X), rows.y, rows.weight)
    judges = None
    if held_out is not None:
        V = standardize(expanded(held_out.X, expand))
        judges = Rows(V, held_out.y, held_out.weight)
    clusters = find_clusters(ready, n_classes, wanted, recipe, seed)
    return Preparation(
        table, rows, held_out, expand, standardize, ready, judges, clusters, recipe, seed
    )


def _n_numbers(standardize: Standardize, expand: Expand | None) -> int:
    if expand is None:
        return standardize.n_outputs
    return int((~expand.is_indicator[standardize.kept]).sum())


def _axes_to_keep(pca: Any, n_columns: int, n_numbers: int) -> Any:
    if n_columns == 0:
        return None
    if pca == "auto":
        return VARIANCE_KEPT if n_numbers > COLUMNS_FOR_PCA else None
    return float(pca) if isinstance(pca, float) else pca
