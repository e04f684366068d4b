"""``fit_model``: from labelled rows and settings to a model, one named step per line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.model import GeometricMixture
from geomix.search.candidates import Candidate
from geomix.search.choosing import Chosen, choose
from geomix.search.finish import Members, decide, finish
from geomix.search.folds import Fitted, Fold, Snapshot, Watch, train_on_fold
from geomix.search.splits import Folds, splits_of, task_of
from geomix.table.schema import Schema
from geomix.training.deadline import Deadline
from geomix.training.history import History, Record
from geomix.training.preparation import Known
from geomix.training.rows import Rows
from geomix.training.settings import Settings
from geomix.training.state import TrainingState


def fit_model(
    rows: Rows,
    classes: Any,
    schema: Schema,
    settings: Settings,
    seed: int,
    *,
    valid: Rows | None = None,
    class_weight: FloatArray | None = None,
    watch: Watch | None = None,
    deadline: Deadline | None = None,
) -> tuple[GeometricMixture, History, TrainingState]:
    """Train a model; hold out part of the rows, or use ``valid``, to choose and to calibrate.

    rows : encoded by ``table``; ``y`` holds codes into ``classes``, ``weight`` is positive.
    class_weight : (n_classes,) factors on the weights of each class, or None.
    deadline : trials and members that would start after it are left out, training stops at it.
    """
    history = History()
    watch = watch_until(deadline, watch)
    task = task_of(rows, schema, classes, settings, seed, valid, class_weight)
    folds = Folds(task, splits_of(task, history))
    chosen = choose(folds, history, watch, deadline)
    decided = decide(chosen, folds, watch)
    members, state = _train_members(folds, chosen, history, watch, deadline)
    planes, temperature = finish(members, chosen, decided, folds, history)
    per_class = planes.planes_per_member
    if task.wanted is not None and (per_class < task.wanted).any():
        fewer = classes[per_class < task.wanted].tolist()
        history.notes.append(f"Fewer planes than asked for in {fewer!r}: one per distinct row.")
    if class_weight is not None and settings.correct_prior:
        # Weighting by w_c multiplies the posterior by w_c; taking log w_c off the calibrated
        # score s_c / T takes it back exactly.
        planes = planes.with_class_bias(-temperature * np.log(class_weight))
    features = members.fits[0].features
    model = GeometricMixture(
        classes,
        schema.names,
        features.feature_map,
        planes,
        float(settings.sharpness),
        temperature,
        schema,
        training={"class_shares": class_shares(task.mass, class_weight, settings)},
    )
    return model, history, state


def _train_members(
    folds: Folds, chosen: Chosen, history: History, watch: Watch | None, deadline: Deadline | None
) -> tuple[Members, TrainingState]:
    """The final training: one model on all rows, or the members of an ensemble."""
    final, settings = folds.final, folds.task.settings
    held_out = folds.members(chosen.candidate)
    known = final.pairs if chosen.candidate.n_pairs else None
    parts = [Fold(final.preparation, train, known_pairs=known) for train, _ in held_out]
    fits: list[Fitted] = []
    for fold in parts or [final]:
        if fits and deadline is not None and deadline.is_past("fit"):
            history.notes.append(f"time_limit: {len(fits)} of {len(parts)} members trained.")
            break
        fits.append(train_on_fold(chosen.candidate, fold, settings, watch, "fit", chosen.n_iter))
    state = _record(fits[0], chosen.candidate, final, history)
    if folds.task.holds_out_for_calibration and final.valid is not None:
        history.notes.append(
            f"{len(final.valid)} rows were held out of the final training and set the temperature."
        )
    return Members(fits, [rows for _, rows in held_out[: len(fits)]]), state


def watch_until(deadline: Deadline | None, watch: Watch | None) -> Watch | None:
    """A watcher that also ends the training at the deadline."""
    if deadline is None:
        return watch

    def look(record: Record, snapshot: Callable[[], Snapshot]) -> bool:
        asked = watch is not None and bool(watch(record, snapshot))
        return asked or deadline.is_past(record.phase)

    return look


@dataclass(frozen=True, eq=False)
class SampleFit:
    """A model of a sample, from which training on all rows goes on; planes over the lift.

    n_iter : what it took;  most_iter : how long training may go on, None for the settings'.
    """

    feature_map: FeatureMap
    planes: Planes
    n_iter: int
    most_iter: int | None
    temperature: float
    history: History
    state: TrainingState


def fit_sample(
    rows: Rows,
    classes: Any,
    schema: Schema,
    settings: Settings,
    seed: int,
    known: Known,
    *,
    class_weight: FloatArray | None = None,
    watch: Watch | None = None,
    deadline: Deadline | None = None,
) -> SampleFit:
    """Choose lift, planes and penalty on a sample, and train the winner there.

    ``known`` holds what is known of all rows: how columns are expanded and standardised.
    """
    history = History()
    task = replace(task_of(rows, schema, classes, settings, seed, None, class_weight), known=known)
    folds = Folds(task, splits_of(task, history))
    chosen = choose(folds, history, watch, deadline)
    fitted = train_on_fold(
        chosen.candidate, folds.final, task.settings, watch, "choose", chosen.n_iter
    )
    state = _record(fitted, chosen.candidate, folds.final, history)
    features, trained = fitted.features, fitted.trained
    return SampleFit(
        features.feature_map,
        features.expanded(trained.planes),
        max(trained.n_iter, 1),
        chosen.n_iter,
        chosen.temperature,
        history,
        state,
    )


def class_shares(
    mass: FloatArray, class_weight: FloatArray | None, settings: Settings
) -> list[float]:
    """Class shares under which the probabilities hold; ``mass`` (n_classes,) is weighted."""
    if class_weight is not None and settings.correct_prior:
        mass = mass / class_weight
    return (mass / mass.sum()).tolist()


def _record(fitted: Fitted, candidate: Candidate, final: Fold, history: History) -> TrainingState:
    history.records.extend(fitted.trained.records)
    history.stopped = fitted.trained.stopped
    history.l2, history.shrink_to_mean = candidate.l2, candidate.shrink_to_mean
    history.init = fitted.init
    if candidate.n_planes != 1 and (
        unstable := final.preparation.clusters_of(candidate.n_planes).unstable
    ):
        history.notes.append(
            f"k-means did not repeat itself on class codes {list(unstable)}; "
            f"first planes came from init={fitted.init!r}."
        )
    return TrainingState(
        candidate.l2, candidate.shrink_to_mean, history.n_iter, fitted.init, fitted.features.units
    )
