"""The rows of one fit: how many are held out, which teach a candidate and which judge it.

A ``Task`` is what stays the same through a fit. Its rows are split once or folded, as
``hold_out_plan`` says of their number; ``Folds`` are where candidates are measured and where the
winner is trained for good, alone or as the members of a committee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.search.folds import Candidate, Fold
from geomix.table.row_views import is_dense
from geomix.table.schema import Schema
from geomix.training.history import History
from geomix.training.monotone import Direction, read_directions
from geomix.training.plane_counts import wanted_planes
from geomix.training.preparation import Known, Preparation, prepare
from geomix.training.random_streams import stream
from geomix.training.rows import (
    Rows,
    class_weighted,
    column_range,
    distinct_rows,
    stratified_folds,
    stratified_split,
)
from geomix.training.settings import Settings

# With fewer distinct rows than this nothing is held out.
FEWEST_ROWS_TO_HOLD_OUT = 50
# More rows than this, to train on or held out, make the search slower but seldom better; what it
# found may be settled on some more.
ROWS_TO_SEARCH = 10_000
ROWS_TO_SETTLE = 20_000
# Of more rows than this the final planes leave this share out, at most so many, which calibrate
# them: a temperature found on fewer rows would make too little of what they have learnt.
ROWS_TO_SPARE_SOME = 50_000
SHARE_TO_SPARE = 0.05
MOST_ROWS_TO_SPARE = 10_000
# A committee evens out which of many good optima training fell into; many rows leave few.
MEMBERS = 8
MOST_ROWS_FOR_COMMITTEE = 20_000


@dataclass(frozen=True)
class HoldOut:
    """How rows are held out: one split or so many folds, and the handicap of a richer model
    (in standard errors of the comparison; see ``selection``)."""

    n_folds: int
    handicap: float


def hold_out_plan(n_rows: int, *, refit: bool) -> HoldOut:
    """One small validation part would choose at random, so few rows are cross-validated."""
    if n_rows >= 1000 or not refit:
        return HoldOut(1, 0.0)
    return HoldOut(5, 0.25) if n_rows >= 300 else HoldOut(10, 0.5)


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
    def spares_some(self) -> bool:
        """Whether some rows are left out of the final training, to calibrate it."""
        settings = self.settings
        alone = settings.n_members in ("auto", 1) and settings.early_stopping == "off"
        return self.refit and settings.calibrate and alone and len(self.rows) > ROWS_TO_SPARE_SOME

    @property
    def hold_out(self) -> HoldOut:
        return hold_out_plan(len(self.rows), refit=self.refit)

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
    """The task of fitting ``rows`` by ``settings``: repeats merged, what is "auto" settled."""
    if class_weight is not None:
        rows = class_weighted(rows, class_weight)
        valid = None if valid is None else class_weighted(valid, class_weight)
    if settings.early_stopping == "auto":
        judged = valid is not None or not settings.refit or settings.solver == "adam"
        settings = replace(settings, early_stopping="calibrated" if judged else "off")
    if not is_dense(rows.X):  # no curve of a column can tell how much it says
        settings = replace(settings, adaptive_penalty=False)
    return Task(
        distinct_rows(rows, column_range(rows.X)),
        valid,
        schema,
        len(classes),
        wanted_planes(settings.n_planes, classes),
        settings,
        seed,
        read_directions(settings.monotonic_cst, schema, classes),
    )


def splits_of(task: Task, history: History) -> list[tuple[IntArray, IntArray]]:
    """Indices of training and held-out rows: one split or several folds; none where the user
    brought rows to judge by, or has too few."""
    rows = task.rows
    if task.valid is not None:
        return []
    if len(rows) < FEWEST_ROWS_TO_HOLD_OUT:
        history.notes.append(
            f"Only {len(rows)} distinct rows: nothing was held out, so lift and penalty were not "
            "chosen by measurement and probabilities were not calibrated."
        )
        return []
    rng = stream(task.seed, "holdout")
    if task.hold_out.n_folds > 1:
        splits = stratified_folds(rows.y, task.hold_out.n_folds, rng)
    else:
        splits = [stratified_split(rows.y, task.settings.validation_fraction, rng)]
    return [(train, valid) for train, valid in splits if len(valid)]


@dataclass(eq=False)
class Folds:
    """Where candidates are measured, and where the winner is trained for good.

    The folds of a cross-validation share the preparation of the final training, which knows
    all rows but looks at no label's prediction. Rows of a single split are worth more: there
    the training part is prepared by itself.
    """

    task: Task
    splits: list[tuple[IntArray, IntArray]]

    @property
    def can_measure(self) -> bool:
        return bool(self.splits) or self.task.valid is not None

    @property
    def n_train(self) -> int:
        """Rows that a candidate would be trained on if all of them were measured on."""
        return len(self.splits[0][0]) if self.splits else len(self.task.rows)

    @property
    def has_many_rows(self) -> bool:
        return self.n_train > ROWS_TO_SEARCH

    @cached_property
    def final(self) -> Fold:
        task = self.task
        if task.spares_some:
            share = min(SHARE_TO_SPARE, MOST_ROWS_TO_SPARE / len(task.rows))
            train, valid = stratified_split(task.rows.y, share, stream(task.seed, "spared"))
        elif task.refit or not self.splits:
            return Fold(task.prepared(task.rows, task.valid))
        else:
            train, valid = self.splits[0]
        return Fold(task.prepared(task.rows.take(train), task.rows.take(valid)))

    def to_search_on(self) -> list[Fold]:
        """All rows, or some of them where they are many."""
        if len(self.splits) > 1:
            return [Fold(self.final.preparation, *split) for split in self.splits]
        apart = self.task.refit or self.has_many_rows
        return [self._sample(ROWS_TO_SEARCH) if apart else self.final]

    def to_settle_on(self) -> Fold | None:
        """More rows than were searched on; None where there are none."""
        return self._sample(ROWS_TO_SETTLE) if self.has_many_rows else None

    def _sample(self, n_rows: int) -> Fold:
        """At most so many rows of the single split, to train on and to judge by."""
        task = self.task
        train, valid = self.splits[0] if self.splits else (np.arange(len(task.rows)), None)
        judge = task.valid if valid is None else task.rows.take(self._sampled(valid, n_rows))
        rows = task.rows.take(self._sampled(train, n_rows))
        return Fold(task.prepared(rows, judge), is_subsample=self.has_many_rows)

    def without_each_part(self, candidate: Candidate) -> list[tuple[IntArray, IntArray]]:
        """Rows of each member of a committee, and those left out; none for a single model."""
        task, preparation = self.task, self.final.preparation
        wanted = task.settings.n_members
        if wanted == "auto":
            wanted = MEMBERS if len(task.rows) <= MOST_ROWS_FOR_COMMITTEE else 1
        several = preparation.clusters_of(candidate.n_planes).planes_per_class.max() > 1
        if candidate.lift != "spline" or not several or not task.refit or wanted == 1:
            return []
        return stratified_folds(task.rows.y, wanted, stream(task.seed, "members"))

    def _sampled(self, index: IntArray, n_rows: int) -> IntArray:
        if len(index) <= n_rows:
            return index
        share, rng = n_rows / len(index), stream(self.task.seed, "sample")
        return index[stratified_split(self.task.rows.y[index], share, rng)[1]]
