"""Rows of any table file as a source for a fit that never holds all of them.

The reader is that of the command line: it finds the kinds of text columns and names the place of a
bad cell. Rows are read once for the survey (twice with class weights) and once more for the scratch
file; ``cut`` reads them again.

A share of the rows can be held out: those whose key, a hash of the seed and the row's position,
is among the smallest. The first row of every class is always a training row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.row_sums import Sums
from geomix.errors import DataQualityWarning, TableFileError
from geomix.out_of_core.part_reader import PartReader
from geomix.out_of_core.sampling import row_keys
from geomix.out_of_core.scratch import scratch_rows
from geomix.out_of_core.survey import Classes, RowPart, Survey, survey_part, with_factors
from geomix.table.labels import MOST_CLASSES
from geomix.tablefile.block import LABEL, NUMBER, Block, TableFile
from geomix.tablefile.class_labels import (
    MOST_PLACES,
    are_integers,
    as_labels,
    check_classes,
    check_not_measurements,
    raise_unlabelled,
    texts_and_codes,
)
from geomix.tablefile.column_types import as_float32, checked_blocks, guess_kinds, with_text_columns
from geomix.tablefile.delimited import NotNumbers

Shown = Callable[[str, Iterator[Block]], Iterator[Block]]


@dataclass(frozen=True)
class HeldOut:
    """A share of the rows that is not trained on."""

    share: float
    seed: int

    def rows(self, first_row: int, n_rows: int) -> BoolArray:
        """Which of these rows are held out, (n_rows,)."""
        places = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
        held: BoolArray = row_keys(places, self.seed) < np.uint64(int(self.share * 2.0**64))
        return held


@dataclass(eq=False)
class TableSource:
    """The rows of a table file, in their order.

    learnt : columns to learn from;  fixed : kinds that are given, of whatever columns
    scratch : folder of the scratch file, None: where temporary files go; False: none
    single : numbers in float32;  drops_unlabelled : rows without a label are left out
    shown : is given the title and the blocks of every pass, and gives them on

    What a survey finds is kept: kinds, numbers of rows, whether labels are numbers.
    """

    table: TableFile
    target: str
    learnt: tuple[str, ...]
    fixed: Mapping[str, str] = field(default_factory=dict)
    weight: str | None = None
    scratch: Any = None
    single: bool = False
    drops_unlabelled: bool = False
    held_out: HeldOut | None = None
    shown: Shown = lambda title, blocks: blocks
    is_exact: bool = False  # files have one order, and float32 is twice as fast

    kinds: dict[str, str] = field(default_factory=dict, init=False)
    n_rows: int = field(default=0, init=False)
    n_held_out: int = field(default=0, init=False)
    labels_are_integers: bool = field(default=False, init=False)

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey:
        # Labels are text until all of them are known to be integers.
        factor_of = None if factor_of is None else {str(k): v for k, v in factor_of.items()}
        fixed = {**self.fixed, self.target: LABEL}
        fixed |= {} if self.weight is None else {self.weight: NUMBER}
        free = [name for name in self.learnt if name not in fixed]
        self.kinds = fixed | guess_kinds(self.table, free)
        while True:
            try:
                return self._surveyed(free, seed, categorical_features, factor_of)
            except NotNumbers as error:
                self.kinds = with_text_columns(self.kinds, error, fixed)

    def _surveyed(
        self,
        free: list[str],
        seed: int,
        categorical_features: Any,
        factor_of: Mapping[str, float] | None,
    ) -> Survey:
        import pyarrow

        total: Survey | None = None
        labels = _LabelsSeen()
        self.n_rows = self.n_held_out = 0
        self.labels_are_integers = False  # not known before all of them are
        blocks = checked_blocks(self.table, self.kinds, free)
        for learn, held in self._cut(self.shown("looking at the rows", blocks), labels):
            bar = None if total is None else total.sample.bar
            part = with_factors(learn, factor_of)
            one = survey_part(part, self.n_rows, seed, categorical_features, bar)
            total = one if total is None else total + one
            self.n_rows += len(learn)
            self.n_held_out += len(held)
        pyarrow.default_memory_pool().release_unused()
        if total is None or not (self.n_rows + self.n_held_out + labels.n_missing):
            raise TableFileError(f"{self.table.name}: no rows.")
        self._check_labels(labels, total)
        self.labels_are_integers = are_integers(labels.texts)
        return _with_integer_labels(total) if self.labels_are_integers else total

    def _check_labels(self, labels: _LabelsSeen, survey: Survey) -> None:
        if labels.n_missing:
            self._allow_unlabelled(labels)
        texts = sorted(labels.texts)
        check_classes(texts, self.n_rows + self.n_held_out, self._where)
        if self.held_out is not None and self.n_held_out == 0:
            share = self.held_out.share
            raise TableFileError(f"{self.n_rows} rows are too few to hold out a share of {share}.")
        self._refuse_weightless(texts, survey)

    def sums(self, reader: PartReader) -> AbstractContextManager[Sums]:
        return scratch_rows(self.parts, reader, self.scratch, self.n_rows)

    def parts(self) -> Iterator[RowPart]:
        """The rows to learn from, some at a time."""
        return (learn for learn, _ in self.cut("writing the scratch file"))

    def cut(self, title: str) -> Iterator[tuple[RowPart, RowPart]]:
        """Rows to learn from and rows held out, some at a time; when they have been surveyed."""
        return self._cut(self.shown(title, self.table.blocks(self.kinds)), _LabelsSeen())

    def _cut(
        self, blocks: Iterator[Block], labels: _LabelsSeen
    ) -> Iterator[tuple[RowPart, RowPart]]:
        for block in blocks:
            texts, codes = texts_and_codes(block.columns[self.target])
            labelled = codes >= 0
            labels.count_missing(block, labelled)
            new = labels.first_rows(texts, codes, self._where)
            held = np.zeros(block.n_rows, dtype=bool)
            if self.held_out is not None:
                held = self.held_out.rows(block.first_row, block.n_rows)
                held[new] = False
            X, weight = self._cells(block), self._weights(block)
            y = as_labels(texts, as_integers=self.labels_are_integers)
            yield (
                _part(X, y, codes, weight, labelled & ~held),
                _part(X, y, codes, weight, labelled & held),
            )

    def _cells(self, block: Block) -> Any:
        import pyarrow

        columns = {name: block.columns[name] for name in self.learnt}
        if self.single:
            columns = {name: as_float32(column) for name, column in columns.items()}
        return pyarrow.table(columns)

    def _weights(self, block: Block) -> FloatArray | None:
        if self.weight is None:
            return None
        weight = np.asarray(block.columns[self.weight].to_numpy(), dtype=np.float64)
        if np.isnan(weight).any():
            place = block.place(int(np.isnan(weight).argmax()))
            raise TableFileError(
                f"{self.table.name}, {place}, column {self.weight!r}: the weight is missing."
            )
        return weight

    @property
    def _where(self) -> str:
        return f"{self.table.name}, column {self.target!r}"

    def _allow_unlabelled(self, labels: _LabelsSeen) -> None:
        if not self.drops_unlabelled:
            n_rows = self.n_rows + self.n_held_out + labels.n_missing
            raise_unlabelled(labels.n_missing, n_rows, labels.places, self._where)
        text = f"{labels.n_missing} rows without a label are ignored."
        warnings.warn(text, DataQualityWarning, stacklevel=2)

    def _refuse_weightless(self, texts: list[str], survey: Survey) -> None:
        """Every class needs a training row of positive weight."""
        learnt = set(survey.classes.labels.tolist())
        if lost := [text for text in texts if text not in learnt]:
            raise TableFileError(
                f"{self._where}: no row of the class {lost[0][:80]!r} has a weight above 0; leave "
                "its rows out."
            )


@dataclass
class _LabelsSeen:
    """Labels of a pass so far, as text; how many are missing, and where the first of those are."""

    texts: set[str] = field(default_factory=set)
    n_missing: int = 0
    places: list[str] = field(default_factory=list)

    def count_missing(self, block: Block, labelled: BoolArray) -> None:
        rows = np.flatnonzero(~labelled)
        self.n_missing += len(rows)
        more = rows[: MOST_PLACES - len(self.places)]
        self.places += [block.place(int(row)) for row in more]

    def first_rows(self, texts: list[str], codes: IntArray, where: str) -> IntArray:
        """Rows of a block that are the first of their class in the table."""
        present, first = np.unique(codes, return_index=True)
        found = zip(present.tolist(), first.tolist(), strict=True)
        new = {texts[code]: row for code, row in found if code >= 0}
        new = {text: row for text, row in new.items() if text not in self.texts}
        self.texts |= set(new)
        if new:
            check_not_measurements(sorted(self.texts), where)
        if len(self.texts) > MOST_CLASSES:
            raise TableFileError(
                f"{where}: more than {MOST_CLASSES} different labels; this is an identifier or a "
                "quantity, not a class."
            )
        return np.array(list(new.values()), dtype=np.intp)


def _part(
    X: Any, labels: Any, codes: IntArray, weight: FloatArray | None, used: BoolArray
) -> RowPart:
    if used.all():
        return RowPart(X, labels[codes], weight)
    rows = np.flatnonzero(used)
    return RowPart(X.take(rows), labels[codes[rows]], None if weight is None else weight[rows])


def _with_integer_labels(survey: Survey) -> Survey:
    classes, sample = survey.classes, survey.sample
    labels = np.array([int(label) for label in classes.labels.tolist()])
    order = np.argsort(labels)
    return replace(
        survey,
        classes=Classes(labels[order], classes.n_rows[order], classes.weight[order]),
        sample=replace(sample, y=np.array([int(label) for label in sample.y.tolist()])),
    )
