"""Rows made ready for training once, for every candidate and every fold that trains on them.

Columns are standardised and rotated, and classes are split into clusters. The features of a lift
are made when a candidate first needs them; those of a spline lift come from the encoded columns.
No step uses how well labels are predicted, so the folds of a cross-validation share the result.
Validation rows (``held_out``) are transformed in the same way and influence nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from geomix.arrays import BoolArray, CenteredSparse, FloatArray, IntArray, round_in_place
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap, linear_map, spline_map
from geomix.core.lifts import (
    IdentityLift,
    Lift,
    draw_fourier,
    fit_standardize,
    median_gamma,
    with_rotation,
)
from geomix.core.spline import MOST_KNOTS, SplineLift, fit_pairs, fit_spline, sampled
from geomix.core.spline_parts import SplinePart
from geomix.table.one_hot import expanded, fit_expand
from geomix.table.row_views import PickedRows, few_at_once, is_dense
from geomix.table.schema import Schema
from geomix.training.features import Features, make_features, with_codes
from geomix.training.monotone import Direction
from geomix.training.plane_counts import MOST_CLUSTERS, Clusters, find_clusters, whole_classes
from geomix.training.random_streams import stream
from geomix.training.rows import Rows, column_range
from geomix.training.settings import Settings
from geomix.training.step_knots import step_knots

# ``pca="auto"``: above this many columns of numbers, keep the axes that hold this share of the
# variance.
COLUMNS_FOR_PCA = 50
# Without a kernel, only columns of a table with more cells than this are rotated, which saves time.
# The planes of smaller ones are better without: axes that are left out separate some classes.
CELLS_TO_ROTATE = 2**21
# To find the axes of more columns than this takes longer than they save (decision 68).
MOST_COLUMNS_TO_ROTATE = 1_000
VARIANCE_KEPT = 0.95
# For clustering, rows of more numbers than this are standardised block by block.
MOST_NUMBERS_AT_ONCE = 2**22
# For training, rows of up to this many numbers are standardised once for all candidates.
MOST_NUMBERS_TO_KEEP = 2**19
# ``n_frequencies="auto"``: more inputs need more frequencies for as good a kernel.
FREQUENCIES_PER_INPUT = 16
FREQUENCIES_RANGE = (128, 512)
# A column has at most one knot for so many rows. In models to be read, where the race chooses the
# number of knots, the first ``FIRST_KNOTS`` of them may be closer (decision 75).
ROWS_PER_KNOT, ROWS_PER_FIRST_KNOT, FIRST_KNOTS = 16, 8, 64
FEWEST_KNOTS = 8
# A class gets several planes only with this many rows for each.
ROWS_PER_PLANE = 10


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of all rows, where the rows in memory are a sample of them.

    linear : the map of the linear lift, without a rotation;
    has_missing : (n_columns,) which encoded columns have missing cells.
    """

    linear: FeatureMap
    has_missing: BoolArray


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """What ``standardised`` makes of a block of encoded rows."""

    linear: FeatureMap

    @property
    def n_outputs(self) -> int:
        return self.linear.n_outputs

    def __call__(self, X: FloatArray) -> FloatArray:
        out = np.empty((len(X), self.n_outputs))
        for rows in few_at_once(out.shape):
            out[rows] = np.asarray(self.linear(X[rows]))
        return round_in_place(out)


class PairTable(NamedTuple):
    """A table over a pair of columns, and the bin of each row and each validation row in it."""

    part: SplinePart
    codes: IntArray
    held_out: IntArray | None


@dataclass(frozen=True, eq=False)
class Preparation:
    """Rows, their linear feature map, and the features and clusters made so far.

    encoded, encoded_held_out : the rows as numbers and codes of levels (or sparse), as ``table``
    describes them;  wanted : planes per class, None for the silhouette's;  may_read_labels :
    whether every row that is read here trains, so that its label may place knots.
    """

    schema: Schema
    encoded: Rows
    encoded_held_out: Rows | None
    n_classes: int
    wanted: IntArray | None
    linear: FeatureMap
    settings: Settings
    seed: int
    directions: tuple[Direction, ...] = ()
    known: Known | None = None
    may_read_labels: bool = False
    _made: dict[tuple[Any, ...], Features] = field(default_factory=dict)
    _tables: dict[tuple[int, int], PairTable] = field(default_factory=dict)
    _split: dict[int, Clusters] = field(default_factory=dict)
    _turn: RLock = field(default_factory=RLock)

    @cached_property
    def rows(self) -> Rows:
        """The rows standardised (and rotated)."""
        return standardised(self.encoded, self.linear)

    @cached_property
    def held_out(self) -> Rows | None:
        """The validation rows, standardised."""
        valid = self.encoded_held_out
        return None if valid is None else standardised(valid, self.linear)

    @cached_property
    def clusters(self) -> Clusters:
        """``wanted`` clusters of each class, or the number with the best silhouette."""
        return self._clusters(self.wanted)

    def _clusters(self, wanted: IntArray | None) -> Clusters:
        return find_clusters(
            self._rows_to_cluster, self.n_classes, wanted, self.settings, self.seed
        )

    @property
    def _rows_to_cluster(self) -> Rows:
        """The rows standardised; large ones block by block, in every pass again."""
        X = self.encoded.X
        n_numbers = X.shape[0] * self.linear.n_outputs
        expand: Any = self.linear
        if not isinstance(X, PickedRows) or n_numbers <= MOST_NUMBERS_AT_ONCE:
            kept: Rows | None = vars(self).get("rows")
            if kept is not None:
                return kept
            if not is_alike_by_block(X, self.linear):
                return standardised(self.encoded, self.linear)
            # Of a table with categories they would be its widest array, and a race has six.
            expand = RoundedRows(self.linear)
        return by_block(self.encoded, expand)

    def clusters_of(self, n_planes: int | None) -> Clusters:
        """At most ``n_planes`` clusters of each class, fewer of a small one; None: ``clusters``."""
        if n_planes is None:
            return self.clusters
        if n_planes == 1:
            return self._whole_classes
        with self._turn:
            if n_planes not in self._split:
                self._split[n_planes] = self._clusters(self._counts(n_planes))
        return self._split[n_planes]

    def n_planes_of(self, n_planes: int | None) -> int:
        """How many planes all classes have together, at most, without splitting any class."""
        if n_planes is None:
            wanted = self.wanted if self.wanted is not None else np.array([MOST_CLUSTERS])
            return int(np.broadcast_to(wanted, self.n_classes).sum())
        return int(self._counts(n_planes).sum())

    def is_one_plane(self, n_planes: int | None) -> bool:
        """Whether every class has one plane."""
        return n_planes == 1 or bool(self.clusters_of(n_planes).planes_per_class.max() == 1)

    def _counts(self, n_planes: int) -> IntArray:
        return np.minimum(self._most_planes, n_planes)

    @cached_property
    def _most_planes(self) -> IntArray:
        """(n_classes,) planes that the rows of each class are enough for."""
        counts = np.bincount(self.encoded.y, minlength=self.n_classes)
        return np.maximum(counts // ROWS_PER_PLANE, 1)

    @cached_property
    def _whole_classes(self) -> Clusters:
        return whole_classes(self.encoded.y, self.n_classes)

    @cached_property
    def _gamma_of_rows(self) -> float:
        return self._median_gamma(self.rows)

    def _typical_gamma(self, rows: Rows) -> float:
        """One over the median squared distance between rows, standardised."""
        return self._gamma_of_rows if rows is self.rows else self._median_gamma(rows)

    def _median_gamma(self, rows: Rows) -> float:
        if isinstance(rows.X, CenteredSparse):
            return 1.0
        return median_gamma(rows.X, stream(self.seed, "gamma"))

    @property
    def most_knots(self) -> int:
        """The most knots of a column for this number of rows."""
        most = max(len(self.encoded) // ROWS_PER_KNOT, FEWEST_KNOTS)
        if self.settings.preset == "readable":
            most = max(most, min(len(self.encoded) // ROWS_PER_FIRST_KNOT, FIRST_KNOTS))
        return min(most, MOST_KNOTS)

    def unpack(self) -> None:
        """Free the packed rows of the features, unless they are few."""
        with self._turn:
            for features in self._made.values():
                features.unpack()

    def forget(self) -> None:
        """Free the features and the standardised rows, which are made again when needed."""
        with self._turn:
            self._made.clear()
            self._tables.clear()
            for name in ("rows", "held_out"):
                vars(self).pop(name, None)

    def has_made(self, *asked: Any) -> bool:
        return self._key(*asked) in self._made

    def _key(
        self, lift: str, gamma_factor: float | None, n_knots: int | None, pairs: Any
    ) -> tuple[Any, ...]:
        """The same for every number of knots that gives the same curves."""
        n_knots = min(n_knots or MOST_KNOTS, self.most_knots) if lift == "spline" else None
        return lift, gamma_factor, n_knots, pairs

    def features(
        self,
        lift: str,
        gamma_factor: float | None = None,
        n_knots: int | None = None,
        pairs: tuple[tuple[int, int], ...] = (),
    ) -> Features:
        """Features of a lift; made once while they are small. Folds that are trained side by side
        take turns."""
        with self._turn:
            return self._features(lift, gamma_factor, n_knots, pairs)

    def _features(
        self,
        lift: str,
        gamma_factor: float | None,
        n_knots: int | None,
        pairs: tuple[tuple[int, int], ...],
    ) -> Features:
        key = self._key(lift, gamma_factor, n_knots, pairs)
        if key not in self._made:
            if lift == "spline":
                _, _, allowed, _ = key
                features = self._spline_features(allowed, pairs)
            elif lift == "linear":
                features = self.linear_features(self.linear)
            else:
                made = self._lift(lift, gamma_factor, self.rows)
                features = make_features(self.linear.with_lift(made), self.rows, self.held_out)
            if not features.is_small:
                return features
            self._made[key] = features
        return self._made[key]

    def linear_features(self, linear: FeatureMap) -> Features:
        """Features of a linear lift. Many rows are standardised when they are packed, block by
        block: as one array they would be the largest one of a fit."""
        valid = self.encoded_held_out
        held_out = None if valid is None else self._standardised(valid, linear)
        return make_features(linear, self._standardised(self.encoded, linear), held_out)

    def _standardised(self, encoded: Rows, linear: FeatureMap) -> Rows:
        is_large = len(self.encoded) * linear.n_outputs > MOST_NUMBERS_TO_KEEP
        if is_large and is_alike_by_block(encoded.X, linear):
            return by_block(encoded, RoundedRows(linear))
        if linear is not self.linear:
            return standardised(encoded, linear)
        held_out = self.held_out
        return self.rows if encoded is self.encoded or held_out is None else held_out

    def weighed_features(
        self, lift: str, gamma_factor: float | None, units: FloatArray
    ) -> Features:
        """Features of a lift over standardised columns, each times its unit (n_columns,)."""
        scaled = self.linear.with_column_units(units)
        rows, valid = standardised(self.encoded, scaled), self.encoded_held_out
        valid = None if valid is None else standardised(valid, scaled)
        made = self._lift(lift, gamma_factor, rows)
        return make_features(scaled.with_lift(made), rows, valid)

    def _spline_features(self, n_knots: int, pairs: tuple[tuple[int, int], ...]) -> Features:
        if pairs:
            return self._with_pairs(self.features("spline", None, n_knots), pairs)
        rows, n_levels = self.encoded, self.schema.n_levels
        has_missing = None if self.known is None else self.known.has_missing
        table = rows.X, rows.weight, n_levels
        more = self._step_knots
        return self.features_of(fit_spline(*table, n_knots, (), has_missing, kernel.binned, more))

    @cached_property
    def _step_knots(self) -> dict[int, FloatArray]:
        """More knots of each column of numbers, where its classes change."""
        if not self.may_read_labels or self.settings.n_knots != "auto":
            return {}
        X, y, weight = sampled(self.encoded.X, self.encoded.y, self.encoded.weight)
        columns = np.flatnonzero(self.schema.n_levels == 0)
        return {j: step_knots(X[:, j], y, weight, self.n_classes) for j in columns.tolist()}

    def features_of(self, lift: SplineLift) -> Features:
        """Features of a spline lift that was fitted on these rows."""
        feature_map = spline_map(lift, len(self.schema.n_levels))
        return make_features(feature_map, self.encoded, self.encoded_held_out)

    def again(self, kept: Features) -> Features:
        """Features that were kept without their rows, with them."""
        feature_map, units = kept.feature_map, kept.units
        if not isinstance(feature_map.lift, SplineLift):
            return self.linear_features(feature_map)
        made = make_features(feature_map, self.encoded, self.encoded_held_out)
        return made if units is None else made.with_units(units)

    def _with_pairs(self, curves: Features, pairs: tuple[tuple[int, int], ...]) -> Features:
        """Features of a spline lift without pairs, and those of tables over pairs behind them."""
        tables = self._pair_tables(pairs, keep=curves.is_small)
        lift = curves.feature_map.lift
        assert isinstance(lift, SplineLift)
        both = SplineLift(lift.parts + tuple(one.part for one in tables), lift.n_columns)
        held_out = None
        if curves.held_out is not None:
            codes = [one.held_out for one in tables if one.held_out is not None]
            held_out = with_codes(curves.held_out, codes, both)
        ready = with_codes(curves.rows, [one.codes for one in tables], both)
        return Features(spline_map(both, len(self.schema.n_levels)), ready, held_out, None)

    def _pair_tables(self, pairs: tuple[tuple[int, int], ...], *, keep: bool) -> list[PairTable]:
        """Folds of a cross-validation screen pairs for themselves, and most find the same ones:
        small tables are kept."""
        known = self._tables if keep else {}
        new = tuple(pair for pair in pairs if pair not in known)
        if new:
            rows, valid = self.encoded, self.encoded_held_out
            lift = fit_pairs(rows.X, rows.weight, self.schema.n_levels, new, kernel.binned)
            codes = kernel.binned(lift, rows.X).codes
            held_out = None if valid is None else kernel.binned(lift, valid.X).codes
            for j, (pair, part) in enumerate(zip(new, lift.parts, strict=True)):
                of_valid = None if held_out is None else held_out[:, j : j + 1]
                known[pair] = PairTable(part, codes[:, j : j + 1], of_valid)
        return [known[pair] for pair in pairs]

    def _lift(self, lift: str, gamma_factor: float | None, rows: Rows) -> Lift:
        settings, n_inputs = self.settings, self.linear.n_outputs
        if lift == "linear" or n_inputs == 0:
            return IdentityLift(n_inputs)
        gamma = self._typical_gamma(rows) if settings.gamma == "auto" else float(settings.gamma)
        gamma *= gamma_factor or 1.0
        rng = stream(self.seed, "fourier")
        drawn = draw_fourier(n_inputs, self.n_frequencies, gamma, settings.orthogonal, rng)
        frequencies = np.empty_like(drawn.frequencies)
        frequencies[_name_free_order(self.linear)] = drawn.frequencies
        return replace(drawn, frequencies=frequencies)

    @property
    def n_frequencies(self) -> int:
        if self.settings.n_frequencies != "auto":
            return int(self.settings.n_frequencies)
        wanted = FREQUENCIES_PER_INPUT * self.linear.n_outputs
        return int(np.clip(wanted, *FREQUENCIES_RANGE))


def prepare(
    rows: Rows,
    held_out: Rows | None,
    schema: Schema,
    n_classes: int,
    wanted: IntArray | None,
    settings: Settings,
    seed: int,
    directions: tuple[Direction, ...] = (),
    known: Known | None = None,
    *,
    may_read_labels: bool = False,
) -> Preparation:
    """Learn how ``rows`` are to be expanded, standardised and rotated; carry ``held_out`` along.

    ``directions`` are the monotone columns: with any, columns are not rotated.
    ``may_read_labels`` : see ``Preparation``.
    """
    linear = _learnt_from(rows, schema, settings) if known is None else known.linear
    keep = _axes_to_keep(settings.pca, linear.n_outputs, linear.n_numbers)
    if keep is not None and is_dense(rows.X) and not directions:
        X = linear.expanded(rows.X)
        rotated = with_rotation(linear.standardize, X, rows.weight, keep)
        linear = linear_map(rotated, linear.expand)
    return Preparation(
        schema,
        rows,
        held_out,
        n_classes,
        wanted,
        linear,
        settings,
        seed,
        directions,
        known,
        may_read_labels,
    )


def standardised(rows: Rows, linear: FeatureMap) -> Rows:
    """Encoded rows as standardised inputs of a lift."""
    X = linear.standardized(rows.X)
    if isinstance(rows.X, PickedRows) and isinstance(X, np.ndarray) and X.dtype == np.float64:
        X = round_in_place(X)
    return Rows(X, rows.y, rows.weight)


def is_alike_by_block(X: Any, linear: FeatureMap) -> bool:
    """Whether rows standardised block by block have the bits of all at once: a rotation may round
    by the size of a block."""
    is_rotated = linear.standardize.rotation is not None
    return isinstance(X, PickedRows) and X.dtype == np.float64 and not is_rotated


def by_block(rows: Rows, expand: Any) -> Rows:
    """Picked rows that ``expand`` makes other columns of, when they are read."""
    return Rows(PickedRows(rows.X.table, rows.X.index, expand), rows.y, rows.weight)


def _learnt_from(rows: Rows, schema: Schema, settings: Settings) -> FeatureMap:
    expand = fit_expand(rows.X, schema) if is_dense(rows.X) else None
    X = expanded(rows.X, expand)
    # A column that is constant in these rows is dropped, even if it varies elsewhere.
    varying = column_range(X).varying
    standardize = fit_standardize(
        X,
        rows.weight,
        varying,
        center_and_scale=settings.standardize,
        keep_unit=None if expand is None else expand.is_indicator,
    )
    return linear_map(standardize, expand)


def _name_free_order(linear: FeatureMap) -> IntArray:
    """The inputs of a lift in an order that no name of a level influences: the levels of a column
    by their share of the rows. Rotated inputs stay as they are."""
    standardize, expand = linear.standardize, linear.expand
    if standardize.rotation is not None or expand is None:
        return np.arange(linear.n_outputs)
    column, shows = expand.column_of[standardize.kept], expand.shows[standardize.kept]
    # Number, missing and levels in this order, as in a table without categories.
    kind = np.minimum(shows, 0)
    return np.lexsort((np.where(shows >= 0, standardize.mean, 0.0), kind, column))


def _axes_to_keep(pca: Any, n_columns: int, n_numbers: int) -> Any:
    if n_columns == 0:
        return None
    if pca == "auto":
        return VARIANCE_KEPT if n_numbers > COLUMNS_FOR_PCA else None
    return float(pca) if isinstance(pca, float) else pca
