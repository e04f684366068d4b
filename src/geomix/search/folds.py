"""A candidate trained on one fold: some of the prepared rows teach, others judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.training.adaptive_penalty import part_strengths, step_units, units_of
from geomix.training.features import Features, in_units
from geomix.training.history import Record
from geomix.training.initial_planes import initial_planes, split_planes
from geomix.training.loop import train_planes
from geomix.training.monotone import order_of
from geomix.training.preparation import Preparation
from geomix.training.random_streams import stream
from geomix.training.rows import Rows
from geomix.training.run import Trained
from geomix.training.settings import Settings

# Planes that others will start from, or that tell how much columns or steps say, need not have
# converged.
ITERATIONS_ALONE = 50


@dataclass(frozen=True)
class Candidate:
    """One way to build the model: a lift, a penalty, and a number of planes.

    gamma_factor : multiplies the kernel width that the user gave or the median distance
    suggests;  n_planes : per class, or None for what the budget or the user says;
    shrink_to_mean : share of the penalty that a class's mean plane is spared;
    n_knots : most knots of a curve, under a spline lift;  adaptive : whether features are in units
    of what their columns or steps say (``training/adaptive_penalty.py``).
    """

    lift: str
    l2: float
    gamma_factor: float | None = None
    n_planes: int | None = None
    shrink_to_mean: float = 0.0
    n_knots: int | None = None
    adaptive: bool = False

    def for_rows(self, n_rows: int, n_before: int) -> Candidate:
        """The same prior beside so many rows: cross-entropy is a mean over them."""
        return replace(self, l2=self.l2 * n_before / n_rows)

    @property
    def weighs_steps(self) -> bool:
        """Whether units belong to the steps of curves, and not to columns."""
        return self.adaptive and self.lift == "spline"

    @property
    def alone(self) -> Candidate:
        """The same with one plane per class, which then has the penalty of the mean plane."""
        l2 = self.l2 * (1.0 - self.shrink_to_mean)
        return replace(self, l2=l2, n_planes=1, shrink_to_mean=0.0)

    @property
    def alike(self) -> Candidate:
        """The same with all steps alike: what tells how much each says."""
        return replace(self, adaptive=False)


# The model that tells how much each column says.
IMPORTANCE_PROBE = Candidate("spline", 1e-3, n_planes=1, n_knots=32)


@dataclass(frozen=True, eq=False)
class Fold:
    """Which of the prepared rows train (None: all) and which judge (None: those held out).

    is_subsample : whether the rows are some of many, for which trials are short and few.
    """

    preparation: Preparation
    train_index: IntArray | None = None
    valid_index: IntArray | None = None
    is_subsample: bool = False
    trained: dict[Candidate, Start] = field(default_factory=dict)
    _parts: dict[Features, tuple[Rows, Rows | None]] = field(default_factory=dict)
    _weighed: dict[tuple[Any, ...], Features] = field(default_factory=dict)

    @property
    def valid(self) -> Rows | None:
        """The rows that judge, encoded."""
        return self._judges(self.preparation.encoded, self.preparation.encoded_held_out)

    @property
    def n_train(self) -> int:
        rows, index = self.preparation.encoded, self.train_index
        return len(rows) if index is None else len(index)

    def thinned(self, n_rows: int, n_frequencies: int) -> Fold:
        """At most so many of the rows that train, and of those that judge, evenly spread; and
        fewer frequencies. Only of a fold that has its preparation to itself."""
        assert self.train_index is None
        return Fold(self.preparation.thinned(n_rows, n_frequencies), is_subsample=True)

    def features(self, candidate: Candidate) -> Features:
        """The features of a candidate's lift, whose columns may be adaptive but not its steps."""
        key = candidate.lift, candidate.gamma_factor, candidate.n_knots
        if candidate.adaptive and not candidate.weighs_steps:
            if key not in self._weighed:
                units = units_of(self._column_strengths)
                self._parts.clear()
                self._weighed.clear()
                self._weighed[key] = self.preparation.weighed_features(*key[:2], units)
            return self._weighed[key]
        if not self.preparation.has_made(*key):
            self._parts.clear()  # before the new ones are made: both at once may be too many
            self._weighed.clear()
        return self.preparation.features(*key)

    @cached_property
    def _column_strengths(self) -> FloatArray:
        """(n_columns,) how much each encoded column says, to the rows that train; zero for one
        that is constant."""
        settings = self.preparation.settings
        told = train_on_fold(IMPORTANCE_PROBE, self, settings, None, "choose", ITERATIONS_ALONE)
        rows = self.parts(told.features)[0]
        strengths = np.zeros(self.preparation.encoded.X.shape[1])
        strengths[rows.X.lift.column_of] = part_strengths(told.trained.planes, rows)
        return strengths

    def parts(self, features: Features) -> tuple[Rows, Rows | None]:
        """Features of the rows that train and of those that judge."""
        if features not in self._parts:
            rows, index = features.rows, self.train_index
            train = rows if index is None else rows.take(index)
            self._parts.clear()  # the candidates of one lift come one after another
            self._parts[features] = train, self._judges(rows, features.held_out)
        return self._parts[features]

    def _judges(self, rows: Rows, held_out: Rows | None) -> Rows | None:
        return held_out if self.valid_index is None else rows.take(self.valid_index)


class Start(NamedTuple):
    """Where training on a fold ended, for a relative to start from. It holds no features: those
    of every width at once would take more room than all else."""

    planes: Planes
    init: str
    n_iter: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model in the making: everything that answers a row, as it stands at one iteration."""

    feature_map: FeatureMap
    planes: Planes


def _snapshot(features: Features, planes: Planes) -> Snapshot:
    return Snapshot(features.feature_map, features.expanded(planes))


# Told of every iteration; may ask for the model so far, and answers True to end training.
Watch: TypeAlias = "Callable[[Record, Callable[[], Snapshot]], bool | None]"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate trained on a fold; ``trained.planes`` are over ``features``."""

    features: Features
    valid: Rows | None
    trained: Trained
    init: str

    def held_out_scores(self, sharpness: float) -> FloatArray:
        """Class scores of the rows that judge, uncalibrated."""
        assert self.valid is not None
        return self.valid.prepared.class_scores(self.trained.planes, sharpness)


def train_on_fold(
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    watch: Watch | None,
    phase: str = "fit",
    max_iter: int | None = None,
) -> Fitted:
    """Take the features, make the first planes and train them."""
    if candidate.weighs_steps:
        return _train_in_units(candidate, fold, settings, watch, phase, max_iter)
    features = fold.features(candidate)
    train, valid = fold.parts(features)
    start = _start(candidate, fold, settings, train, phase)
    trained = _train(
        candidate, fold, settings, features, train, valid, start, watch, phase, max_iter
    )
    if phase == "choose" and trained.planes.n_planes == trained.planes.n_classes:
        fold.trained[replace(candidate, l2=0.0)] = Start(trained.planes, start.init, trained.n_iter)
    return Fitted(features, valid, trained, start.init)


def _train_in_units(
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    watch: Watch | None,
    phase: str,
    max_iter: int | None,
) -> Fitted:
    """The same planes with all steps alike tell what each step says, and go on in units of that;
    only then their iterations count."""
    first = phase if phase == "choose" else "weigh"
    most = min(ITERATIONS_ALONE, settings.max_iter)
    told = train_on_fold(candidate.alike, fold, settings, watch, first, most)
    lift = told.features.feature_map.lift
    assert isinstance(lift, SplineLift)
    units = step_units(told.trained.planes, lift)
    features = told.features.with_units(units)
    train, valid = fold.parts(told.features)
    train, valid = in_units(train, units), None if valid is None else in_units(valid, units)
    n_told = told.trained.n_iter
    start = Start(features.working(told.trained.planes), told.init, n_told)
    trained = _train(
        candidate, fold, settings, features, train, valid, start, watch, phase, max_iter
    )
    return Fitted(features, valid, replace(trained, n_iter=trained.n_iter - n_told), told.init)


def _train(
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    features: Features,
    train: Rows,
    valid: Rows | None,
    start: Start,
    watch: Watch | None,
    phase: str,
    max_iter: int | None,
) -> Trained:
    preparation = fold.preparation

    def watch_planes(record: Record, now: Planes) -> bool | None:
        assert watch is not None
        return watch(record, lambda: _snapshot(features, now))

    return train_planes(
        start.planes,
        train,
        valid,
        settings,
        candidate.l2,
        candidate.shrink_to_mean,
        stream(preparation.seed, "batches"),
        None if watch is None else watch_planes,
        phase,
        max_iter,
        n_before=start.n_iter,
        order=order_of(preparation.directions, features.feature_map, preparation.n_classes),
    )


def _start(candidate: Candidate, fold: Fold, settings: Settings, train: Rows, phase: str) -> Start:
    """First planes.

    With one plane per class there is one optimum, and a neighbour that differs by the penalty
    alone is near it. Several planes could inherit what a stronger penalty has pruned, so they
    start anew: under a spline lift as one trained plane, drawn apart; else from clusters.
    """
    preparation, seed = fold.preparation, fold.preparation.seed
    clusters = preparation.clusters_of(candidate.n_planes)
    several = clusters.planes_per_class.max() > 1
    neighbour = fold.trained.get(replace(candidate, l2=0.0))
    if neighbour is not None and not several and phase == "choose":
        return neighbour
    clusters = clusters.of(fold.train_index)
    rng = stream(seed, "initial")
    if several and candidate.lift == "spline" and settings.init == "auto":
        whole = train_on_fold(candidate.alone, fold, settings, None, "choose", ITERATIONS_ALONE)
        planes = split_planes(whole.trained.planes, train, clusters, settings.sharpness_start, rng)
        return Start(planes, "drawn apart", 0)
    planes, init = initial_planes(
        train, clusters, settings.init, settings.sharpness_start, settings.label_smoothing, rng
    )
    return Start(planes, init, 0)


def pooled(folds: list[Fold]) -> tuple[IntArray, FloatArray]:
    """Class codes and weights of all rows that judge, fold after fold."""
    parts = [valid for fold in folds if (valid := fold.valid) is not None]
    y = np.concatenate([part.y for part in parts])
    return y, np.concatenate([part.weight for part in parts])
