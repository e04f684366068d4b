"""A candidate trained on one fold: some of the prepared rows train it, others validate it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.lifts import FourierLift
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.search.candidates import Candidate
from geomix.search.constants import ITERATIONS_OF_FIRST_PLANES
from geomix.search.fitted import Fitted, Start, Watch, snapshot, unpack_rows
from geomix.table.row_views import is_dense
from geomix.training.adaptive_penalty import pair_units, part_strengths, step_units, units_of
from geomix.training.features import Features, in_units, make_features
from geomix.training.history import Record
from geomix.training.initial_planes import flat_planes, initial_planes, split_planes
from geomix.training.interactions import Pairs, strongest_pairs
from geomix.training.learnt_lift import learnt_lift
from geomix.training.loop import train_planes, uses_lbfgs
from geomix.training.many_classes import MANY_CLASSES, affordable
from geomix.training.monotone import order_of
from geomix.training.plane_counts import Clusters
from geomix.training.preparation import Preparation, standardised
from geomix.training.random_streams import stream
from geomix.training.rows import Rows
from geomix.training.run import Trained
from geomix.training.settings import Settings

# The model that measures the importance of columns, and on whose residuals pairs are screened.
PROBE = Candidate("spline", 1e-3, n_planes=1, n_knots=32)


@dataclass(frozen=True, eq=False)
class Fold:
    """Which of the prepared rows train (None: all) and which validate (None: those held out).

    known_pairs : the pairs of columns to use, strongest first; None: screened on these rows;
    is_final : whether planes of the model are trained here, in double precision;
    trained, wholes, from_rows : what later trials start from.
    """

    preparation: Preparation
    train_index: IntArray | None = None
    valid_index: IntArray | None = None
    known_pairs: Pairs | None = None
    is_final: bool = False
    trained: dict[Candidate, Start] = field(default_factory=dict)
    wholes: dict[Candidate, Planes] = field(default_factory=dict)
    from_rows: dict[tuple[Any, ...], Start] = field(default_factory=dict)
    _parts: dict[Features, tuple[Rows, Rows | None]] = field(default_factory=dict)
    _scaled: dict[tuple[Any, ...], Features] = field(default_factory=dict)
    _lifts: dict[tuple[Any, ...], FourierLift] = field(default_factory=dict)

    @property
    def valid(self) -> Rows | None:
        """The validation rows, encoded."""
        return self._validation(self.preparation.encoded, self.preparation.encoded_held_out)

    @property
    def n_train(self) -> int:
        rows, index = self.preparation.encoded, self.train_index
        return len(rows) if index is None else len(index)

    @property
    def is_alone(self) -> bool:
        """Whether no other fold has the same preparation, as those of a cross-validation have."""
        return self.train_index is None

    @property
    def is_quick_to_make(self) -> bool:
        """Whether features of these rows are made again in a few milliseconds."""
        return self.is_alone and is_dense(self.preparation.encoded.X)

    def features(self, candidate: Candidate) -> Features:
        """Features of a candidate's lift; under an adaptive penalty scaled by column importance.
        Adaptive steps of curves are scaled later, by the planes themselves."""
        if candidate.lift == "fourier" and candidate.learn_lift != "off":
            return self._learnt(candidate)
        return self._drawn(candidate)

    def _learnt(self, candidate: Candidate) -> Features:
        """Features of a Fourier lift that is learnt on the training rows of this fold."""
        key = candidate.learn_lift, candidate.gamma_factor, candidate.adaptive
        if key not in self._scaled:
            drawn = self._drawn(candidate).feature_map
            if not isinstance(drawn.lift, FourierLift):
                return self._drawn(candidate)
            rows = standardised(self.preparation.encoded, drawn)
            held_out = self.preparation.encoded_held_out
            held_out = None if held_out is None else standardised(held_out, drawn)
            lift = self._learnt_lift(key, drawn.lift, rows, candidate)
            self._parts.clear()
            self._scaled.clear()
            self._scaled[key] = make_features(drawn.with_lift(lift), rows, held_out)
        return self._scaled[key]

    def _learnt_lift(
        self, key: tuple[Any, ...], drawn: FourierLift, rows: Rows, candidate: Candidate
    ) -> FourierLift:
        # The penalty changes the lift little, and a race tries many: learn once for a width.
        if key not in self._lifts:
            settings, seed = self.preparation.settings, self.preparation.seed
            train = rows if self.train_index is None else rows.take(self.train_index)
            self._lifts[key] = learnt_lift(
                drawn,
                train,
                self.preparation.n_classes,
                settings.sharpness,
                candidate.l2,
                candidate.learn_lift,
                stream(seed, "learnt lift"),
            )
        return self._lifts[key]

    def _drawn(self, candidate: Candidate) -> Features:
        """Features of a lift that is not learnt."""
        pairs = self.pairs[: candidate.n_pairs] if candidate.n_pairs else ()
        key = candidate.lift, candidate.gamma_factor, candidate.n_knots, pairs
        if candidate.adaptive and not candidate.has_adaptive_steps:
            if key not in self._scaled:
                units = self._column_units
                self._parts.clear()
                self._scaled.clear()
                self._scaled[key] = self.preparation.weighed_features(*key[:2], units)
            return self._scaled[key]
        if not self.preparation.has_made(*key):
            self._parts.clear()  # before the new ones are made: both at once may be too many
            self._scaled.clear()
        features = self.preparation.features(*key)
        if not pairs or candidate.pair_penalty == 1.0:
            return features
        if (key, candidate.pair_penalty) not in self._scaled:
            lift = features.feature_map.lift
            assert isinstance(lift, SplineLift)
            units = pair_units(lift, candidate.pair_penalty)
            self._scaled[key, candidate.pair_penalty] = features.with_units(units)
        return self._scaled[key, candidate.pair_penalty]

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of columns that interact most on the training rows, strongest first."""
        if self.known_pairs is not None:
            return self.known_pairs
        planes, rows = self._probed
        # A pair of a monotone column would have to keep the order in every cell of its partner.
        monotone = {one.column for one in self.preparation.directions}
        return strongest_pairs(planes, rows, self.preparation.settings.most_pairs, monotone)

    @cached_property
    def _probed(self) -> tuple[Planes, Rows]:
        settings = self.preparation.settings
        found = train_on_fold(PROBE, self, settings, None, "choose", ITERATIONS_OF_FIRST_PLANES)
        return found.trained.planes, self.parts(found.features)[0]

    @cached_property
    def _column_units(self) -> FloatArray:
        """(n_columns,) unit of each encoded column by its importance on the training rows; one for
        a constant column, which changes no other unit."""
        planes, rows = self._probed
        units = np.ones(self.preparation.encoded.X.shape[1])
        units[rows.X.lift.column_of] = units_of(part_strengths(planes, rows))
        return units

    def parts(self, features: Features) -> tuple[Rows, Rows | None]:
        """Features of the training rows and of the validation rows."""
        if features not in self._parts:
            rows, index, held_out = features.rows, self.train_index, features.held_out
            if not self.is_final:
                rows = rows.in_single_precision()
            train = rows if index is None else rows.take(index)
            self._parts.clear()  # the candidates of one lift come one after another
            self._parts[features] = train, self._validation(rows, held_out)
        return self._parts[features]

    def forget(self) -> None:
        """Free the features that were made here; a later fit makes them again. Folds of a
        cross-validation share those of their preparation, which stay."""
        self._parts.clear()
        self._scaled.clear()
        if self.is_alone:
            self.preparation.forget()

    def unpack(self) -> None:
        """Free the packed rows of all features, unless they are few."""
        self.preparation.unpack()
        for features in (*self._scaled.values(), *self._parts):
            features.unpack()
        for features, parts in self._parts.items():
            if not features.is_tiny:
                unpack_rows(*parts)

    def state(self) -> dict[str, Any]:
        """Everything that fits on this fold leave behind, for ``restore``."""
        copied = ("trained", "wholes", "from_rows")
        return self.__dict__ | {name: dict(self.__dict__[name]) for name in copied}

    def restore(self, state: dict[str, Any]) -> None:
        self.__dict__.clear()
        self.__dict__.update(state)

    def _validation(self, rows: Rows, held_out: Rows | None) -> Rows | None:
        return held_out if self.valid_index is None else rows.take(self.valid_index)


def train_on_fold(
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    watch: Watch | None,
    phase: str = "fit",
    max_iter: int | None = None,
    *,
    start: int = 0,
) -> Fitted:
    """Take the features, make the first planes and train them. ``start`` numbers the random
    draws of the first planes."""
    if candidate.has_adaptive_steps:
        return _train_in_units(candidate, fold, settings, watch, phase, max_iter, start)
    features = fold.features(candidate)
    train, valid = fold.parts(features)
    first = _start(candidate, fold, settings, train, phase, start)
    trained = _train(
        candidate, fold, settings, features, train, valid, first, watch, phase, max_iter
    )
    if phase == "choose" and trained.planes.n_planes == trained.planes.n_classes:
        fold.trained[candidate.any_penalty] = Start(trained.planes, first.init, trained.n_iter)
    return Fitted(features, train, valid, trained, first.init)


def train_further(
    fitted: Fitted,
    planes: Planes,
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    phase: str,
) -> Fitted:
    """Train planes over the features of a fit further, at the final sharpness."""
    start = Start(planes, fitted.init, max(fitted.trained.n_iter, 1))
    rest = candidate, fold, settings, fitted.features, fitted.train, fitted.valid
    trained = _train(*rest, start, None, phase, ITERATIONS_OF_FIRST_PLANES)
    return replace(fitted, trained=replace(fitted.trained, planes=trained.planes))


def _train_in_units(
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    watch: Watch | None,
    phase: str,
    max_iter: int | None,
    start: int,
) -> Fitted:
    """Train with a uniform penalty first, measure the importance of each step, and go on with a
    penalty divided by it. Iterations are counted from there."""
    first = phase if phase == "choose" else "adapt"
    most = min(ITERATIONS_OF_FIRST_PLANES, settings.max_iter)
    found = train_on_fold(candidate.uniform, fold, settings, watch, first, most, start=start)
    lift = found.features.feature_map.lift
    assert isinstance(lift, SplineLift)
    over_the_lift = found.features.expanded(found.trained.planes)
    units = step_units(over_the_lift, lift)
    if found.features.units is not None:
        units *= found.features.units
    features = found.features.with_units(units)
    train, valid = fold.parts(found.features)
    train, valid = in_units(train, units), None if valid is None else in_units(valid, units)
    init, n_first, n_done = found.init, found.trained.n_iter, found.trained.n_done
    begun = Start(features.working(over_the_lift), init, n_first)
    fold.unpack()  # the same rows in other units
    del found, over_the_lift
    trained = _train(
        candidate, fold, settings, features, train, valid, begun, watch, phase, max_iter
    )
    n_done += trained.n_done
    trained = replace(trained, n_iter=trained.n_iter - n_first, n_done=n_done)
    return Fitted(features, train, valid, trained, init)


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
        return watch(record, lambda: snapshot(features, now))

    return train_planes(
        start.planes,
        train,
        valid,
        settings,
        candidate.l2,
        candidate.shrink_to_mean,
        lambda: stream(preparation.seed, "batches"),
        None if watch is None else watch_planes,
        phase,
        affordable(max_iter or settings.max_iter, train, start.planes),
        n_before=start.n_iter,
        order=order_of(preparation.directions, features.feature_map, preparation.n_classes),
    )


def _start(
    candidate: Candidate, fold: Fold, settings: Settings, train: Rows, phase: str, number: int
) -> Start:
    """First planes.

    With one plane per class there is one optimum, and that of a neighbour with another penalty is
    near it. Several planes could inherit what a stronger penalty has pruned, so they start
    anew: under a spline lift as copies of one trained plane, split towards the clusters; else from
    the clusters.
    """
    preparation, seed = fold.preparation, fold.preparation.seed
    clusters = preparation.clusters_of(candidate.n_planes)
    several = clusters.planes_per_class.max() > 1
    neighbour = fold.trained.get(candidate.any_penalty)
    if neighbour is not None and not several and phase == "choose":
        return neighbour
    if not several and settings.init == "auto" and _is_solved(settings, train, preparation):
        planes = flat_planes(train, preparation.n_classes, settings.label_smoothing)
        return Start(planes, "flat", 0)
    clusters = clusters.of(fold.train_index)
    if several and candidate.lift == "spline" and settings.init == "auto":
        rng = _draws_of_start(seed, number)
        whole = _whole(candidate.one_plane, fold, settings)
        planes = split_planes(whole, train, clusters, settings.sharpness_start, rng)
        return Start(planes, "split", 0)
    if candidate.lift != "linear":
        return _from_rows(train, clusters, settings, seed, number)
    # Lines have one set of features, and their first planes do not depend on the penalty.
    key = candidate.n_planes, candidate.adaptive, number
    if key not in fold.from_rows:
        fold.from_rows[key] = _from_rows(train, clusters, settings, seed, number)
    return fold.from_rows[key]


def _from_rows(
    train: Rows, clusters: Clusters, settings: Settings, seed: int, number: int
) -> Start:
    """First planes from the clusters of the rows, or as the settings say."""
    planes, init = initial_planes(
        train,
        clusters,
        settings.init,
        settings.sharpness_start,
        settings.label_smoothing,
        _draws_of_start(seed, number),
        smooth_scale=settings.solver == "adam",
    )
    return Start(planes, init, 0)


def _draws_of_start(seed: int, number: int) -> np.random.Generator:
    return stream(seed, "initial", *([number] if number else []))


def _is_solved(settings: Settings, train: Rows, preparation: Preparation) -> bool:
    """Whether one plane per class is trained until it converges: its start then only costs time."""
    n_classes = preparation.n_classes
    return n_classes <= MANY_CLASSES and uses_lbfgs(settings, train, n_classes)


def _whole(candidate: Candidate, fold: Fold, settings: Settings) -> Planes:
    """The one plane of each class that several are split from, trained once for a fold."""
    if candidate not in fold.wholes:
        found = train_on_fold(candidate, fold, settings, None, "choose", ITERATIONS_OF_FIRST_PLANES)
        fold.wholes[candidate] = found.trained.planes
    return fold.wholes[candidate]


def pooled(folds: list[Fold]) -> tuple[IntArray, FloatArray]:
    """Class codes and weights of all validation rows, fold after fold."""
    parts = [valid for fold in folds if (valid := fold.valid) is not None]
    if len(parts) == 1:
        return parts[0].y, parts[0].weight
    y = np.concatenate([part.y for part in parts])
    return y, np.concatenate([part.weight for part in parts])
