"""``fit_model``: from labelled rows and a recipe to a model, one named step per line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.budget import wanted_planes
from geomix.calibration import PRIOR_SCALE, fit_temperature
from geomix.folds import (
    Candidate,
    Fitted,
    Fold,
    Watch,
    held_out_scores,
    prepare_fold,
    train_on_fold,
)
from geomix.history import History
from geomix.model import GeometricMixture
from geomix.recipe import Recipe
from geomix.rows import Rows, column_range, distinct_rows, stratified_folds, stratified_split
from geomix.selection import choose_candidate, default_candidate
from geomix.streams import stream

# Below the first number of distinct rows nothing is held out; below the second the choice is
# cross-validated, because one small validation part would choose at random.
FEWEST_ROWS_TO_HOLD_OUT = 50
FEWEST_ROWS_FOR_ONE_SPLIT = 1000
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class _Task:
    """What stays the same through one fit."""

    rows: Rows
    valid: Rows | None
    n_classes: int
    wanted: IntArray | None
    recipe: Recipe
    seed: int

    def fold(self, train: Rows, valid: Rows | None) -> Fold:
        return prepare_fold(train, valid, self.n_classes, self.wanted, self.recipe, self.seed)


@dataclass(frozen=True)
class _Choice:
    """The candidate to train for good. ``n_iter`` and ``temperature`` come from held-out rows."""

    candidate: Candidate
    n_iter: int | None = None
    temperature: float = 1.0


def fit_model(
    rows: Rows,
    classes: Any,
    columns: tuple[str, ...],
    recipe: Recipe,
    seed: int,
    *,
    valid: Rows | None = None,
    class_weight: FloatArray | None = None,
    watch: Watch = lambda record, snapshot: None,
) -> tuple[GeometricMixture, History]:
    """Train a model; hold out part of the rows, or use ``valid``, to choose and to calibrate.

    rows : ``y`` holds codes into ``classes``, ``weight`` is positive.
    class_weight : (n_classes,) factors on the weights of each class, or None.
    """
    history = History()
    task = _task(rows, classes, recipe, seed, valid, class_weight)
    folds = _held_out_folds(task, history)
    refit = valid is None and recipe.refit
    choice = _choose(folds, task, refit, history, watch)
    fold = folds[0] if folds and not refit else task.fold(task.rows, None)
    fitted = train_on_fold(choice.candidate, fold, recipe, seed, watch, "fit", choice.n_iter)
    temperature = choice.temperature
    if fold.valid is not None and recipe.calibrate:
        scores = held_out_scores(fitted, fold, recipe)
        temperature = fit_temperature(scores, fold.valid.y, fold.valid.weight, PRIOR_SCALE)
    _record(fitted, fold, history)
    planes = fitted.trained.planes
    if class_weight is not None and recipe.correct_prior:
        # Weighting by w_c multiplies the posterior by w_c; taking log w_c off the calibrated
        # score s_c / T takes it back exactly.
        planes = planes.with_class_bias(-temperature * np.log(class_weight))
    sharpness = float(recipe.sharpness)
    model = GeometricMixture(
        classes, columns, fold.standardize, fitted.lift, planes, sharpness, temperature
    )
    return model, history


def _task(
    rows: Rows,
    classes: Any,
    recipe: Recipe,
    seed: int,
    valid: Rows | None,
    class_weight: FloatArray | None,
) -> _Task:
    if class_weight is not None:
        rows = _class_weighted(rows, class_weight)
        valid = None if valid is None else _class_weighted(valid, class_weight)
    return _Task(
        distinct_rows(rows, column_range(rows.X)),
        valid,
        len(classes),
        wanted_planes(recipe.n_planes, classes),
        recipe,
        seed,
    )


def _class_weighted(rows: Rows, class_weight: FloatArray) -> Rows:
    weight = rows.weight * class_weight[rows.y]
    return replace(rows, weight=weight / weight.max())


def _held_out_folds(task: _Task, history: History) -> list[Fold]:
    """Pairs of training and held-out rows: the user's, one split, five folds, or none."""
    rows, recipe = task.rows, task.recipe
    if task.valid is not None:
        return [task.fold(rows, task.valid)]
    if len(rows) < FEWEST_ROWS_TO_HOLD_OUT:
        history.notes.append(
            f"Only {len(rows)} distinct rows: nothing was held out, so lift and penalty were not "
            "chosen by measurement and probabilities were not calibrated."
        )
        return []
    rng = stream(task.seed, "holdout")
    if recipe.refit and len(rows) < FEWEST_ROWS_FOR_ONE_SPLIT:
        parts = stratified_folds(rows.y, N_FOLDS, rng)
    else:
        parts = [stratified_split(rows.y, recipe.validation_fraction, rng)]
    return [task.fold(rows.take(train), rows.take(valid)) for train, valid in parts if len(valid)]


def _choose(folds: list[Fold], task: _Task, refit: bool, history: History, watch: Watch) -> _Choice:
    recipe = task.recipe
    lifts = _lifts(task, history)
    nothing_to_choose = (
        len(lifts) == 1 and recipe.l2 != "auto" and (lifts[0] == "linear" or recipe.gamma != "auto")
    )
    nothing_to_learn = not recipe.calibrate and recipe.early_stopping == "off"
    if not folds or (nothing_to_choose and (not refit or nothing_to_learn)):
        return _Choice(default_candidate(recipe, lift=lifts[0]))
    winner, measured = choose_candidate(folds, recipe, task.seed, watch, lifts=lifts)
    history.trials.extend(one.as_trial(chosen=one is winner) for one in measured)
    n_iter = winner.n_iter if refit else None
    return _Choice(winner.candidate, n_iter, winner.temperature)


def _lifts(task: _Task, history: History) -> tuple[str, ...]:
    if task.recipe.lift != "auto":
        return (task.recipe.lift,)
    if not isinstance(task.rows.X, np.ndarray):
        history.notes.append("Sparse input: only the linear lift was considered.")
        return ("linear",)
    return ("linear", "fourier")


def _record(fitted: Fitted, fold: Fold, history: History) -> None:
    history.records.extend(fitted.trained.records)
    history.stopped = fitted.trained.stopped
    history.init = fitted.init
    if fold.clusters.unstable:
        history.notes.append(
            f"k-means did not repeat itself on class codes {list(fold.clusters.unstable)}; "
            f"first planes came from init={fitted.init!r}."
        )
