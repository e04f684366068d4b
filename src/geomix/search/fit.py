"""``fit_model``: from labelled rows and settings to a model, one named step per line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.search.assembly import FitResult, Target, assemble
from geomix.search.candidates import Candidate
from geomix.search.choosing import Chosen, choose
from geomix.search.finish import Members, decide, finish
from geomix.search.fitted import Fitted, Snapshot, Watch
from geomix.search.folds import Fold, train_on_fold
from geomix.search.parallel import in_order, n_threads
from geomix.search.several_fits import train_from_starts
from geomix.search.splits import Folds, Task, splits_of, task_of
from geomix.table.schema import Schema
from geomix.training.class_order import class_order, in_class_order
from geomix.training.deadline import Deadline
from geomix.training.history import Log, Record
from geomix.training.monotone import order_of
from geomix.training.rows import Rows, class_weighted
from geomix.training.run import Trained
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
) -> FitResult:
    """Train a model; hold out part of the rows, or use ``valid``, to choose and to calibrate.

    rows : encoded by ``table``; ``y`` holds codes into ``classes``, ``weight`` is positive.
    class_weight : (n_classes,) factors on the weights of each class, or None.
    deadline : trials and members that would start after it are left out, training stops at it.
    """
    log = Log()
    weighted = rows if class_weight is None else class_weighted(rows, class_weight)
    order = class_order(weighted, len(classes), schema.is_category)
    back = np.argsort(order)
    watch = watch_until(deadline, _with_classes_in(back, watch))
    rows = in_class_order(rows, order)
    valid = None if valid is None else in_class_order(valid, order)
    factors = None if class_weight is None else class_weight[order]
    task = task_of(rows, schema, classes[order], settings, seed, valid, factors)
    with kernel.keeping_buffers():
        folds, chosen = _searched(task, log, watch, deadline)
        task.give_back_memory()
        decided = decide(chosen, folds, watch)
        chosen = chosen.without_fits()
        folds.forget_finals()
        task.give_back_memory()
        needs_pairs = any(one.of.measured.n_pairs for one in decided.shares)
        members, state = _train_members(
            folds, chosen, log, watch, deadline, order, needs_pairs=needs_pairs
        )
        task.give_back_memory()
        feature_map, planes, temperature, state = finish(
            members, state, chosen, decided, folds, log
        )
    _note_fewer_planes(planes, task.wanted, classes[order], log)
    target = Target(classes, schema, settings, task.mass[back], class_weight)
    trained = _in_label_order(members.fits[0].trained, back)
    directed = order_of(task.directions, feature_map, len(classes))
    planes = planes if directed is None else directed.without_common_part(planes)
    return assemble(target, feature_map, planes.of_classes(back), temperature, trained, state, log)


def _with_classes_in(order: IntArray, watch: Watch | None) -> Watch | None:
    """A watcher that sees the planes of the classes in ``order``."""
    if watch is None:
        return None

    def look(record: Record, snapshot: Callable[[], Snapshot]) -> bool | None:
        def reordered() -> Snapshot:
            now = snapshot()
            return replace(now, planes=now.planes.of_classes(order))

        return watch(record, reordered)

    return look


def _in_label_order(trained: Trained, order: IntArray) -> Trained:
    """A run whose planes, and their usage in its records, are in the order of the labels."""
    places = trained.planes.places_of(order)
    records = [
        one
        if one.usage is None
        else replace(one, usage=tuple(np.array(one.usage)[places].tolist()))
        for one in trained.records
    ]
    return replace(trained, planes=trained.planes.of_classes(order), records=records)


def _searched(
    task: Task,
    log: Log,
    watch: Watch | None,
    deadline: Deadline | None,
    *,
    adds_others: bool = True,
) -> tuple[Folds, Chosen]:
    folds = Folds(task, splits_of(task, log))
    return folds, choose(folds, log, watch, deadline, adds_others=adds_others)


def _note_fewer_planes(planes: Planes, wanted: IntArray | None, classes: Any, log: Log) -> None:
    per_class = planes.planes_per_member
    if wanted is not None and (per_class < wanted).any():
        fewer = classes[per_class < wanted].tolist()
        log.notes.append(f"Fewer planes than requested in {fewer!r}: one per distinct row.")


def _train_members(
    folds: Folds,
    chosen: Chosen,
    log: Log,
    watch: Watch | None,
    deadline: Deadline | None,
    order: IntArray,
    *,
    needs_pairs: bool,
) -> tuple[Members, TrainingState]:
    """The final training: one model on all rows, or the members of an ensemble. needs_pairs : for
    models that are added to them."""
    final, settings = folds.final, folds.task.settings
    held_out = folds.members(chosen.n_members)
    if not held_out and settings.n_members not in ("auto", 1):
        log.notes.append(
            f"n_members={settings.n_members} had no effect: an ensemble is of spline planes, "
            "without X_val and with refit=True."
        )
    known = final.pairs if chosen.candidate.n_pairs or needs_pairs else None
    parts = [
        Fold(final.preparation, train, known_pairs=known, is_final=True) for train, _ in held_out
    ]
    fits: list[Fitted] = []
    until = watch_until(deadline, None)
    threads = n_threads(settings.n_jobs)
    # Members of an ensemble even out where each of them started.
    n_starts = 1 if parts else chosen.n_starts

    def train(fold: Fold) -> Fitted:
        rest = chosen.candidate, fold, settings, watch, chosen.n_iter, until
        return train_from_starts(n_starts, *rest, 1 if parts or watch else threads)

    trained = in_order(train, parts or [final], 1 if watch or deadline else threads)
    for fitted in trained:
        fits.append(fitted)
        if len(fits) < len(parts) and deadline is not None and deadline.is_past("fit"):
            log.notes.append(f"time_limit: {len(fits)} of {len(parts)} members trained.")
            break
    trained.close()
    state = _state_of(fits[0], chosen.candidate, final, log, order)
    if folds.task.holds_out_for_calibration and final.valid is not None:
        log.notes.append(
            f"{len(final.valid)} rows were held out of the final training and set the temperature."
        )
    n_made = len(fits)
    return Members(fits, parts[:n_made], [rows for _, rows in held_out[:n_made]]), state


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
    """The winner of a search on a sample, from which training on all rows starts.

    planes : over the lift's own features;  n_iter : iterations of its training;
    most_iter : limit of the training on all rows, None for the settings'.
    """

    feature_map: FeatureMap
    planes: Planes
    n_iter: int
    most_iter: int | None
    temperature: float
    state: TrainingState


def fit_sample(
    task: Task, log: Log, *, watch: Watch | None = None, deadline: Deadline | None = None
) -> SampleFit:
    """Choose lift, planes and penalty on the sample of a task, and train the winner there."""
    folds, chosen = _searched(task, log, watch, deadline, adds_others=False)
    fitted = train_on_fold(
        chosen.candidate, folds.final, task.settings, watch, "choose", chosen.n_iter
    )
    every_class = np.arange(task.n_classes)
    state = _state_of(fitted, chosen.candidate, folds.final, log, every_class)
    features, trained = fitted.features, fitted.trained
    return SampleFit(
        features.feature_map,
        features.expanded(trained.planes),
        max(trained.n_iter, 1),
        chosen.n_iter,
        chosen.temperature,
        state,
    )


def _state_of(
    fitted: Fitted, candidate: Candidate, final: Fold, log: Log, order: IntArray
) -> TrainingState:
    if candidate.n_planes != 1 and (
        unstable := final.preparation.clusters_of(candidate.n_planes).unstable
    ):
        codes = sorted(order[list(unstable)].tolist())
        log.notes.append(
            f"k-means did not repeat itself on class codes {codes}; "
            f"first planes came from init={fitted.init!r}."
        )
    n_iter = len(fitted.trained.records)
    penalty = (candidate.l2, candidate.shrink_to_mean)
    return TrainingState(*penalty, n_iter, fitted.init, fitted.features.units)
