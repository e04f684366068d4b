"""One training part with its held-out part, prepared once and trained on as often as needed.

Everything that is learnt before the planes (column means and scales, PCA, clusters, a typical
distance) is learnt on the training part alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geomix.arrays import CenteredSparse, FloatArray, IntArray
from geomix.budget import Clusters, find_clusters
from geomix.features import Features, make_features
from geomix.history import Record
from geomix.initial import initial_planes
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
from geomix.planes import Planes
from geomix.recipe import Recipe
from geomix.rows import Rows, column_range
from geomix.streams import stream
from geomix.training import Trained, train_planes

# ``pca="auto"``: above this many columns, keep the axes that hold this share of the variance.
COLUMNS_FOR_PCA = 50
VARIANCE_KEPT = 0.95
# Features of up to this many numbers wait on their fold for the next candidate of their lift.
MOST_NUMBERS_TO_KEEP = 2**22
# ``n_frequencies="auto"``: more inputs need more frequencies for as good a kernel.
FREQUENCIES_PER_INPUT = 16
FREQUENCIES_RANGE = (128, 512)


@dataclass(frozen=True)
class Candidate:
    """One way to build the model: a lift, a penalty, and one plane per class or the budget's.

    ``gamma_factor`` multiplies the kernel width that the user gave or the median distance
    suggests.
    """

    lift: str
    l2: float
    gamma_factor: float | None = None
    one_plane: bool = False


@dataclass(frozen=True, eq=False)
class Fold:
    """A prepared training part: ``train.X`` and ``valid.X`` are standardised (and rotated)."""

    standardize: Standardize
    train: Rows
    valid: Rows | None
    clusters: Clusters
    seed: int
    seen: dict[Any, Features] = field(default_factory=dict)
    trained: dict[Candidate, Start] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return len(self.clusters.planes_per_class)

    @cached_property
    def typical_gamma(self) -> float:
        """One over the median squared distance between rows."""
        if isinstance(self.train.X, CenteredSparse):
            return 1.0
        return median_gamma(self.train.X, stream(self.seed, "gamma"))


class Start(NamedTuple):
    """Where training on a fold ended, for a relative to start from. It holds no features: those
    of every width at once would take more room than all else."""

    planes: Planes
    init: str
    n_iter: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model in the making: everything that answers a row, as it stands at one iteration."""

    standardize: Standardize
    lift: Lift
    planes: Planes


# Told of every iteration; may ask for the model so far, and answers True to end training.
Watch: TypeAlias = "Callable[[Record, Callable[[], Snapshot]], bool | None]"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate trained on a fold; ``compact`` are its planes over ``features``."""

    lift: Lift
    trained: Trained
    init: str
    features: Features
    compact: Planes


def prepare_fold(
    train: Rows,
    valid: Rows | None,
    n_classes: int,
    wanted: IntArray | None,
    recipe: Recipe,
    seed: int,
) -> Fold:
    """Standardise, rotate and cluster ``train``; carry ``valid`` along."""
    # A column that is constant in this part has nothing to teach, whatever it does elsewhere.
    varying = column_range(train.X).varying
    standardize = fit_standardize(
        train.X, train.weight, varying, center_and_scale=recipe.standardize
    )
    keep = _axes_to_keep(recipe.pca, standardize.n_outputs)
    if keep is not None and is_dense(train.X):
        standardize = with_rotation(standardize, train.X, train.weight, keep)
    prepared = Rows(standardize(train.X), train.y, train.weight)
    held_out = None
    if valid is not None:
        held_out = Rows(standardize(valid.X), valid.y, valid.weight)
    clusters = find_clusters(prepared, n_classes, wanted, recipe, seed)
    return Fold(standardize, prepared, held_out, clusters, seed)


def _axes_to_keep(pca: Any, n_columns: int) -> Any:
    if n_columns == 0:
        return None
    if pca == "auto":
        return VARIANCE_KEPT if n_columns > COLUMNS_FOR_PCA else None
    return float(pca) if isinstance(pca, float) else pca


def make_lift(candidate: Candidate, fold: Fold, recipe: Recipe, seed: int) -> Lift:
    n_inputs = fold.standardize.n_outputs
    if candidate.lift == "linear" or n_inputs == 0:
        return IdentityLift(n_inputs)
    typical = fold.typical_gamma if recipe.gamma == "auto" else float(recipe.gamma)
    gamma = typical * (candidate.gamma_factor or 1.0)
    n_frequencies = recipe.n_frequencies
    if n_frequencies == "auto":
        n_frequencies = int(np.clip(FREQUENCIES_PER_INPUT * n_inputs, *FREQUENCIES_RANGE))
    rng = stream(seed, "fourier")
    return draw_fourier(n_inputs, n_frequencies, gamma, recipe.orthogonal, rng)


def train_on_fold(
    candidate: Candidate,
    fold: Fold,
    recipe: Recipe,
    seed: int,
    watch: Watch,
    phase: str = "fit",
    max_iter: int | None = None,
) -> Fitted:
    """Lift the rows, make the first planes and train them."""
    features = _features(candidate, fold, recipe, seed)
    clusters = fold.clusters.merged() if candidate.one_plane else fold.clusters
    # With one plane per class there is one optimum, and a neighbour that differs by the penalty
    # alone is near it. Several planes could inherit what a stronger penalty has pruned.
    relatives = replace(candidate, l2=0.0)
    may_inherit = phase == "choose" and clusters.planes_per_class.max() == 1
    neighbour = fold.trained.get(relatives) if may_inherit else None
    if neighbour is None:
        planes, init = initial_planes(
            features.train,
            clusters,
            recipe.init,
            recipe.sharpness_start,
            recipe.label_smoothing,
            stream(seed, "initial"),
        )
    else:
        planes, init = neighbour.planes, neighbour.init

    def watch_planes(record: Record, now: Planes) -> bool | None:
        return watch(
            record, lambda: Snapshot(fold.standardize, features.lift, features.expanded(now))
        )

    rng = stream(seed, "batches")
    trained = train_planes(
        planes,
        features.train,
        features.valid,
        recipe,
        candidate.l2,
        rng,
        watch_planes,
        phase,
        max_iter,
        n_before=0 if neighbour is None else neighbour.n_iter,
    )
    full = replace(trained, planes=features.expanded(trained.planes))
    fitted = Fitted(features.lift, full, init, features, trained.planes)
    if phase == "choose":
        fold.trained[relatives] = Start(trained.planes, init, trained.n_iter)
    return fitted


def _features(candidate: Candidate, fold: Fold, recipe: Recipe, seed: int) -> Features:
    """Features of the candidate's lift; made once per fold while they are small."""
    key = candidate.lift, candidate.gamma_factor
    if key not in fold.seen:
        lift = make_lift(candidate, fold, recipe, seed)
        features = make_features(lift, fold.train, fold.valid)
        if features.train.X.shape[0] * features.train.X.shape[1] > MOST_NUMBERS_TO_KEEP:
            return features
        fold.seen[key] = features
    return fold.seen[key]


def held_out_scores(fitted: Fitted, fold: Fold, recipe: Recipe) -> FloatArray:
    """Class scores of the held-out rows, uncalibrated."""
    valid = fitted.features.valid
    assert valid is not None
    return valid.prepared.class_scores(fitted.compact, recipe.sharpness)


def pooled(folds: list[Fold]) -> tuple[IntArray, FloatArray]:
    """Class codes and weights of all held-out rows, fold after fold."""
    parts = [fold.valid for fold in folds if fold.valid is not None]
    y = np.concatenate([part.y for part in parts])
    return y, np.concatenate([part.weight for part in parts])
