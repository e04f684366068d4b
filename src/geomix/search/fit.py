"""``fit_model``: from labelled rows and settings to a model, one named step per line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes, ensemble
from geomix.model import GeometricMixture
from geomix.search.families import default_candidate
from geomix.search.folds import Candidate, Fitted, Fold, Snapshot, Watch, train_on_fold
from geomix.search.selection import choose_candidate
from geomix.search.splits import Folds, Task, splits_of, task_of
from geomix.table.row_views import is_dense
from geomix.table.schema import Schema
from geomix.training.deadline import Deadline
from geomix.training.history import History, Record
from geomix.training.preparation import Known
from geomix.training.rows import Rows
from geomix.training.settings import Settings
from geomix.training.state import TrainingState


@dataclass(frozen=True)
class _Choice:
    """The candidate to train for good. ``n_iter`` and ``temperature`` come from held-out rows."""

    candidate: Candidate
    n_iter: int | None = None
    temperature: float = 1.0


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
    choice = _choose(folds, task, history, watch, deadline)
    final = folds.final
    without = folds.without_each_part(choice.candidate)
    members: list[Fitted] = []
    for fold in [Fold(final.preparation, train) for train, _ in without] or [final]:
        if members and deadline is not None and deadline.is_past("fit"):
            history.notes.append(f"time_limit: {len(members)} of {len(without)} members trained.")
            break
        members.append(
            train_on_fold(choice.candidate, fold, task.settings, watch, "fit", choice.n_iter)
        )
    fitted = members[0]
    if task.spares_some and final.valid is not None:
        history.notes.append(
            f"{len(final.valid)} rows were left out of the final training and set the temperature."
        )
    state = _record(fitted, choice.candidate, final, history)
    if without and settings.calibrate:
        left_out = [rows for _, rows in without[: len(members)]]
        temperature = _temperature_of(members, left_out, settings)
    else:
        temperature = _temperature(fitted, choice, settings)
    planes = ensemble([one.features.expanded(one.trained.planes) for one in members])
    per_class = planes.planes_per_member
    if task.wanted is not None and (per_class < task.wanted).any():
        fewer = classes[per_class < task.wanted].tolist()
        history.notes.append(f"Fewer planes than asked for in {fewer!r}: one per distinct row.")
    if class_weight is not None and settings.correct_prior:
        # Weighting by w_c multiplies the posterior by w_c; taking log w_c off the calibrated
        # score s_c / T takes it back exactly.
        planes = planes.with_class_bias(-temperature * np.log(class_weight))
    sharpness = float(settings.sharpness)
    model = GeometricMixture(
        classes,
        schema.names,
        fitted.features.feature_map,
        planes,
        sharpness,
        temperature,
        schema,
        training={"class_shares": class_shares(task.mass, class_weight, settings)},
    )
    return model, history, state


def watch_until(deadline: Deadline | None, watch: Watch | None) -> Watch | None:
    """A watcher that also asks the training to stop at the deadline."""
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

    ``known`` is what the whole table says about its columns.
    """
    history = History()
    task = replace(task_of(rows, schema, classes, settings, seed, None, class_weight), known=known)
    folds = Folds(task, splits_of(task, history))
    choice = _choose(folds, task, history, watch, deadline)
    fitted = train_on_fold(
        choice.candidate, folds.final, task.settings, watch, "choose", choice.n_iter
    )
    state = _record(fitted, choice.candidate, folds.final, history)
    features, trained = fitted.features, fitted.trained
    return SampleFit(
        features.feature_map,
        features.expanded(trained.planes),
        max(trained.n_iter, 1),
        choice.n_iter,
        choice.temperature,
        history,
        state,
    )


def class_shares(
    mass: FloatArray, class_weight: FloatArray | None, settings: Settings
) -> list[float]:
    """Shares of the classes that the probabilities speak of; ``mass`` (n_classes,) is weighted."""
    if class_weight is not None and settings.correct_prior:
        mass = mass / class_weight
    return (mass / mass.sum()).tolist()


def _choose(
    folds: Folds,
    task: Task,
    history: History,
    watch: Watch | None,
    deadline: Deadline | None,
) -> _Choice:
    settings = task.settings
    lifts = _lifts(task, history)
    one_candidate = (
        len(lifts) == 1
        and settings.n_planes != "auto"
        and settings.l2 != "auto"
        and (settings.shrink_to_mean != "auto" or lifts[0] != "spline")
        and (lifts[0] != "fourier" or settings.gamma != "auto")
    )
    needs_temperature = task.refit and settings.calibrate
    needs_n_iter = task.refit and settings.early_stopping != "off"
    if not folds.can_measure or (one_candidate and not needs_temperature and not needs_n_iter):
        return _Choice(default_candidate(settings, lift=lifts[0]))
    choice = choose_candidate(
        folds.to_search_on(),
        folds.to_settle_on,
        settings,
        watch,
        lifts=lifts,
        handicap=task.hold_out.handicap,
        deadline=deadline,
    )
    winner = choice.winner
    history.trials.extend(one.as_trial(chosen=one is winner) for one in choice.measured)
    history.choice = choice.why
    # Without early stopping a trial ends by converging, which says nothing about when to stop,
    # or at its limit, which does: that is the model that was measured.
    ended_early = settings.early_stopping == "off" and not winner.is_cut_short
    n_iter = winner.n_iter if task.refit and not ended_early else None
    candidate = winner.candidate  # its penalty is the same prior beside the rows it has not seen
    if settings.l2 == "auto" and winner.n_rows < folds.n_train:
        candidate = candidate.for_rows(folds.n_train, winner.n_rows)
    return _Choice(candidate, n_iter, winner.temperature)


def _lifts(task: Task, history: History) -> tuple[str, ...]:
    lifts = task.settings.lifts
    if is_dense(task.rows.X) or lifts == ("linear",):
        return lifts
    history.notes.append("Sparse input: only the linear lift was considered.")
    return ("linear",)


def _temperature(fitted: Fitted, choice: _Choice, settings: Settings) -> float:
    """From the rows that judged the final planes; from the choice if none did."""
    if fitted.valid is None or not settings.calibrate:
        return choice.temperature
    scores = fitted.held_out_scores(settings.sharpness)
    return fit_temperature(scores, fitted.valid.y, fitted.valid.weight, PRIOR_SCALE)


def _temperature_of(members: list[Fitted], left_out: list[IntArray], settings: Settings) -> float:
    """From every row, judged by the member that has not seen it."""
    judged = [one.features.rows.take(rows) for one, rows in zip(members, left_out, strict=True)]
    S = np.concatenate(
        [
            rows.prepared.class_scores(one.trained.planes, settings.sharpness)
            for one, rows in zip(members, judged, strict=True)
        ]
    )
    y = np.concatenate([rows.y for rows in judged])
    return fit_temperature(S, y, np.concatenate([rows.weight for rows in judged]), PRIOR_SCALE)


def _record(fitted: Fitted, candidate: Candidate, final: Fold, history: History) -> TrainingState:
    history.records.extend(fitted.trained.records)
    history.stopped = fitted.trained.stopped
    history.l2, history.shrink_to_mean = candidate.l2, candidate.shrink_to_mean
    history.init = fitted.init
    if unstable := final.preparation.clusters_of(candidate.n_planes).unstable:
        history.notes.append(
            f"k-means did not repeat itself on class codes {list(unstable)}; "
            f"first planes came from init={fitted.init!r}."
        )
    return TrainingState(
        candidate.l2, candidate.shrink_to_mean, history.n_iter, fitted.init, fitted.features.units
    )
