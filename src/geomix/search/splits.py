"""The rows of one fit: which train a candidate, which validate it, and the rungs of the race.

A ``Task`` is what stays the same through a fit. Its rows are split once, or folded where they are
few. ``Folds`` are where candidates are measured and where the winner is trained on all rows, alone
or as the members of an ensemble. ``Rungs`` are folds with more and more training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core import kernel
from geomix.search.candidates import Candidate
from geomix.search.constants import (
    CALIBRATION,
    ENSEMBLE,
    FEWEST_ROWS,
    FOLDS_UP_TO,
    OPERATIONS,
    ROWS_PER_RUNG,
)
from geomix.search.families import racing
from geomix.search.folds import Fold
from geomix.table.row_views import is_dense
from geomix.table.schema import Schema
from geomix.training.history import Log
from geomix.training.monotone import Direction, read_directions
from geomix.training.plane_counts import wanted_planes
from geomix.training.preparation import (
    CELLS_TO_ROTATE,
    MOST_COLUMNS_TO_ROTATE,
    Known,
    Preparation,
    prepare,
)
from geomix.training.random_streams import stream
from geomix.training.rows import (
    Rows,
    class_weighted,
    column_range,
    distinct_rows,
    relative_weights,
    stratified_folds,
    stratified_split,
)
from geomix.training.settings import Settings

# A fit of a table with fewer cells leaves too little in the heap to be worth a millisecond.
CELLS_TO_GIVE_BACK = 2**16


def n_folds_of(n_rows: int, *, refit: bool) -> int:
    """Few rows are cross-validated; above, or without a refit, one split is enough."""
    if not refit:
        return 1
    return next((folds for most, folds in FOLDS_UP_TO.items() if n_rows < most), 1)


@dataclass(frozen=True, eq=False)
class Task:
    """What stays the same through one fit."""

    rows: Rows
    valid: Rows | None
    schema: Schema
    n_classes: int
    wanted: IntArray | None
    settings: Settings
    seed: int
    directions: tuple[Direction, ...]
    known: Known | None = None

    @property
    def mass(self) -> FloatArray:
        """(n_classes,) weight of the rows of each class, with its factor."""
        return np.bincount(self.rows.y, self.rows.weight, self.n_classes) * 1.0

    @property
    def refit(self) -> bool:
        """Whether the final planes learn from all rows, rather than from a part of them."""
        return self.valid is None and self.settings.refit

    @property
    def holds_out_for_calibration(self) -> bool:
        """Whether some rows are held out of the final training, to calibrate it."""
        settings = self.settings
        alone = settings.n_members in ("auto", 1) and settings.early_stopping == "off"
        is_large = len(self.rows) > CALIBRATION.from_rows
        return self.refit and settings.calibrate and alone and is_large

    def give_back_memory(self) -> None:
        """Between the parts of a fit, give free memory back, where it pays: arrays of one part
        leave gaps in the heap that those of the next do not fit."""
        n_rows, n_columns = self.rows.X.shape
        kernel.give_back_memory(heap=n_rows * n_columns >= CELLS_TO_GIVE_BACK)

    @property
    def n_folds(self) -> int:
        return n_folds_of(len(self.rows), refit=self.refit)

    def prepared(self, rows: Rows, held_out: Rows | None = None) -> Preparation:
        return prepare(
            rows,
            held_out,
            self.schema,
            self.n_classes,
            self.wanted,
            self.settings,
            self.seed,
            self.directions,
            self.known,
            may_read_labels=self.n_folds == 1,
        )


def task_of(
    rows: Rows,
    schema: Schema,
    classes: Any,
    settings: Settings,
    seed: int,
    valid: Rows | None,
    class_weight: FloatArray | None,
) -> Task:
    """The task of fitting ``rows``: repeats merged, ``early_stopping="auto"`` decided."""
    if class_weight is not None:
        rows = class_weighted(rows, class_weight)
        valid = None if valid is None else class_weighted(valid, class_weight)
    if settings.early_stopping == "auto":
        validated = valid is not None or not settings.refit or settings.solver == "adam"
        settings = replace(settings, early_stopping="calibrated" if validated else "off")
    if settings.pca == "auto" and not _is_rotated(rows, settings):
        settings = replace(settings, pca=None)
    if not is_dense(rows.X):  # the importance of a column needs a spline, which is dense
        settings = replace(settings, adaptive_penalty=False)
    return Task(
        canonical_rows(rows, schema.is_category),
        valid,
        schema,
        len(classes),
        wanted_planes(settings.n_planes, classes),
        settings,
        seed,
        read_directions(settings.monotonic_cst, schema, classes),
    )


def canonical_rows(rows: Rows, is_category: BoolArray) -> Rows:
    """Repeats merged, rows in canonical order, and weights up to a common factor."""
    merged = distinct_rows(rows, column_range(rows.X), is_category)
    return replace(merged, weight=relative_weights(merged.weight))


def _is_rotated(rows: Rows, settings: Settings) -> bool:
    """Whether columns may be rotated: where a kernel may win, and where it saves time."""
    n_rows, n_columns = rows.X.shape
    if any(one.lift == "fourier" for one in racing(settings, settings.lifts)):
        return True
    return n_rows * n_columns > CELLS_TO_ROTATE and n_columns <= MOST_COLUMNS_TO_ROTATE


def splits_of(task: Task, log: Log) -> list[tuple[IntArray, IntArray]]:
    """Indices of training and validation rows: one split or several folds; none where the user
    brought validation rows, or has too few."""
    rows = task.rows
    if task.valid is not None:
        return []
    if len(rows) < FEWEST_ROWS.to_hold_out:
        log.notes.append(
            f"Only {len(rows)} distinct rows: nothing was held out, so lift and penalty were not "
            "chosen by measurement and probabilities were not calibrated."
        )
        return []
    rng = stream(task.seed, "holdout")
    if task.n_folds > 1:
        splits = stratified_folds(rows.y, task.n_folds, rng)
    else:
        splits = [stratified_split(rows.y, task.settings.validation_fraction, rng)]
    return [(train, valid) for train, valid in splits if len(valid)]


@dataclass(eq=False)
class Folds:
    """Where candidates are measured, and where the winner is trained for good.

    The folds of a cross-validation share the preparation of the final training, which knows
    all rows but looks at no label's prediction. Rows of a single split are worth more: there
    the training part is prepared by itself.

    is_decided : whether one candidate is left, which only needs its temperature.
    """

    task: Task
    splits: list[tuple[IntArray, IntArray]]
    is_decided: bool = False

    @property
    def can_measure(self) -> bool:
        return bool(self.splits) or self.task.valid is not None

    @property
    def n_train(self) -> int:
        """Rows that a candidate would be trained on if all of them were measured on."""
        return len(self.splits[0][0]) if self.splits else len(self.task.rows)

    @cached_property
    def final(self) -> Fold:
        """The rows of the final training."""
        task = self.task
        if task.holds_out_for_calibration:
            share = min(CALIBRATION.share, CALIBRATION.most / len(task.rows))
            train, valid = stratified_split(task.rows.y, share, stream(task.seed, "spared"))
        elif task.refit or not self.splits:
            return Fold(task.prepared(task.rows, task.valid), is_final=True)
        else:
            train, valid = self.splits[0]
        prepared = task.prepared(task.rows.take(train), task.rows.take(valid))
        return Fold(prepared, is_final=True)

    def cross_validation(self, n_folds: int) -> list[Fold]:
        return [Fold(self.final.preparation, *split) for split in self.splits[:n_folds]]

    def sample(self, n_rows: int) -> Fold:
        """At most ``n_rows`` training rows of the single split, validated by as many rows as the
        largest rung trains on."""
        task = self.task
        if len(self.final.preparation.encoded) <= n_rows and not task.refit:
            return self.final
        train, valid = self.splits[0] if self.splits else (np.arange(len(task.rows)), None)
        held_out = task.valid
        if valid is not None:
            held_out = task.rows.take(self._sampled(valid, ROWS_PER_RUNG[-1]))
        rows = task.rows.take(self._sampled(train, n_rows))
        return Fold(task.prepared(rows, held_out))

    @property
    def n_folds(self) -> int:
        """Folds of a cross-validation: all of them, or as many as calibrate a candidate that is
        decided."""
        n_valid = [len(valid) for _, valid in self.splits]
        return min(_n_enough(n_valid), len(n_valid)) if self.is_decided else len(n_valid)

    def n_to_check(self, operations: float) -> int:
        """Folds that decide the temperature of the winner: the folds of few rows, or as many of
        five as have enough validation rows. The last rung alone where training on five would take
        more than a twentieth of the budget, or where rows are many."""
        task = self.task
        if not self.splits or not task.refit:
            return 0
        if len(self.splits) > 1:
            return self.n_folds
        if self.is_decided:
            return max(len(self.finals), 1)
        most = OPERATIONS.most[task.settings.preset] / 20.0
        if not self.has_finals or min(FOLDS_UP_TO.values()) * operations > most:
            return 1
        n_valid = [len(valid) for fold in self.finals if (valid := fold.valid) is not None]
        return min(_n_enough(n_valid), len(self.finals))

    def to_check(self, operations: float) -> list[Fold]:
        """The folds on which the winner is trained again, where its fits were not kept."""
        n_folds = self.n_to_check(operations)
        if len(self.splits) > 1:
            return self.cross_validation(n_folds)
        if self.is_decided and self.finals:
            return self.finals
        return self.finals[:n_folds] if n_folds > 1 else [self.sample(ROWS_PER_RUNG[-1])][:n_folds]

    @property
    def has_finals(self) -> bool:
        """Whether a race ends with a comparison on folds."""
        return self._is_folded_later and not self.is_decided

    @property
    def _is_folded_later(self) -> bool:
        task = self.task
        return len(self.splits) == 1 and task.refit and len(task.rows) <= ROWS_PER_RUNG[-1]

    @cached_property
    def finals(self) -> list[Fold]:
        """Folds that compare the families at the end of a race on a single split, or as many of
        them as calibrate a candidate that is decided; none where rows are many, or where every
        rung has folds."""
        task = self.task
        if not self._is_folded_later:
            return []
        splits = stratified_folds(
            task.rows.y, min(FOLDS_UP_TO.values()), stream(task.seed, "check")
        )
        if self.is_decided:
            splits = splits[: _n_enough([len(valid) for _, valid in splits])]
        return [
            Fold(task.prepared(task.rows.take(train), task.rows.take(valid)))
            for train, valid in splits
            if len(valid)
        ]

    def forget_finals(self) -> None:
        """Free the folds that compare the families, which the final training does not need."""
        vars(self).pop("finals", None)

    def n_members(self, candidate: Candidate) -> int:
        """Members of an ensemble of the candidate that the settings ask for; 1: a single model."""
        task, settings = self.task, self.task.settings
        wanted = settings.n_members
        if wanted == "auto":
            few = len(task.rows) <= ENSEMBLE.most_rows
            wanted = ENSEMBLE.members if settings.preset == "accurate" and few else 1
        if candidate.lift != "spline" or not task.refit:
            return 1
        if settings.n_members == "auto" and self.final.preparation.is_one_plane(candidate.n_planes):
            return 1
        return int(wanted)

    def members(self, n_members: int) -> list[tuple[IntArray, IntArray]]:
        """Rows of each member of an ensemble, and those held out of it; none for a single model."""
        if n_members == 1:
            return []
        return stratified_folds(self.task.rows.y, n_members, stream(self.task.seed, "members"))

    def _sampled(self, index: IntArray, n_rows: int) -> IntArray:
        if len(index) <= n_rows:
            return index
        y = self.task.rows.y[index]
        found = stratified_split(y, n_rows / len(index), stream(self.task.seed, "sample"))[1]
        if len(found) < n_rows / 2:  # very many small classes, whose shares round to no row
            found = np.union1d(found, np.unique(y, return_index=True)[1])
        return index[found]


def _n_enough(n_valid: list[int]) -> int:
    """How many of the folds, the first ones, have enough validation rows for a temperature."""
    return 1 + sum(n < CALIBRATION.enough for n in accumulate(n_valid))


def rows_of_rungs(n_train: int) -> tuple[int, ...]:
    """Training rows of each rung. One with less than twice the rows of the last takes its place:
    it would repeat the same walks for little that is new.

    >>> rows_of_rungs(4_000), rows_of_rungs(8_000), rows_of_rungs(100_000)
    ((4000,), (2500, 8000), (2500, 10000, 20000))
    """
    sizes: list[int] = []
    for size in (min(n_rows, n_train) for n_rows in ROWS_PER_RUNG):
        if sizes and size < 2 * sizes[-1]:
            sizes.pop()
        sizes.append(size)
    return tuple(sizes)


@dataclass(frozen=True, eq=False)
class Rungs:
    """The rungs of a race: more training rows on each; one rung of folds where rows are few, and
    one where a single candidate only needs its temperature."""

    all_folds: Folds

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Training rows of each rung, or folds."""
        if len(self.all_folds.splits) > 1:
            return (self.all_folds.n_folds,)
        sizes = rows_of_rungs(self.all_folds.n_train)
        return sizes[-1:] if self.all_folds.is_decided else sizes

    def give_back_memory(self) -> None:
        self.all_folds.task.give_back_memory()

    @property
    def finals(self) -> list[Fold]:
        """The folds that compare the families at the end."""
        return [] if self.all_folds.is_decided else self.all_folds.finals

    def folds(self, rung: int) -> list[Fold]:
        size = self.sizes[rung]
        if len(self.all_folds.splits) > 1:
            return self.all_folds.cross_validation(size)
        if self.all_folds.is_decided and self.all_folds.finals:
            return self.all_folds.finals
        return [self.all_folds.sample(size)]
