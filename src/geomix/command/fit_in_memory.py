"""``geomix fit`` with all rows in memory: read, split, learn, judge.

A file's columns have roles: the target, a weight, those left out, those learnt from. ``Fitted`` is
what comes out, of rows in memory or of streamed ones (``streaming``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.exit_codes import DATA, Failure, blamed_on
from geomix.command.messages import warn
from geomix.command.metrics import Figures, figures_of, file_figures
from geomix.command.options import reading
from geomix.errors import SchemaError, TableFileError
from geomix.tablefile.block import LABEL, NUMBER, TEXT, TableFile, place_in
from geomix.tablefile.class_labels import (
    MOST_PLACES,
    are_whole,
    coded,
    labels_of,
    refuse_no_classes,
    refuse_unlabelled,
)
from geomix.tablefile.column_names import check_present
from geomix.tablefile.column_types import read_whole
from geomix.tablefile.multiple_files import open_tables


@dataclass(frozen=True, eq=False)
class Roles:
    """What each column of a table is for.

    learnt : to learn from;  categorical : those of them that are categories whatever they hold
    left_out : neither learnt from nor the target
    """

    table: TableFile
    target: str
    weight: str | None
    learnt: tuple[str, ...]
    categorical: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """X : an Arrow table of raw cells;  y : (n,) labels;  weight : (n,) or None"""

    X: Any
    y: Any
    weight: FloatArray | None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray) -> TrainingData:
        weight = None if self.weight is None else self.weight[rows]
        return TrainingData(self.X.take(rows), self.y[rows], weight)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model and how it came to be.

    class_rows : rows of each class that it learnt from;  n_held_out : rows that it did not
    figures : on the rows of --test, if there are some
    """

    model: Any
    class_rows: dict[str, int]
    n_held_out: int
    figures: Figures | None
    seconds: float
    streamed: bool


def roles_of(a: Any) -> Roles:
    """The table of the options, with its columns told apart."""
    table = open_tables(a.data, reading(a))
    asked = [a.target, *a.id, *a.drop, *a.categorical, *([a.weight] if a.weight else [])]
    check_present(asked, table.names, table.name, "which was asked for")
    aside = {a.target, a.weight, *a.id, *a.drop}
    if both := [name for name in a.categorical if name in aside]:
        raise Failure(2, f"the column {both[0]!r} is categorical and left out at once")
    learnt = tuple(name for name in table.names if name not in aside)
    if not learnt:
        raise SchemaError(f"{table.name}: no column is left to learn from.")
    if "" in learnt:
        raise SchemaError(
            f"{table.name}: column {table.names.index('') + 1} has no name. Name it, or leave it "
            "out with --drop '' (row numbers of another program, perhaps)."
        )
    left_out = tuple(name for name in table.names if name in aside and name != a.target)
    return Roles(table, a.target, a.weight or None, learnt, tuple(a.categorical), left_out)


def read_training(roles: Roles, a: Any, most_cells: int | None) -> TrainingData:
    """The rows of a table; raises ``TooManyCells`` if they are not to be held."""
    import pyarrow

    table = roles.table
    fixed = {roles.target: LABEL, **dict.fromkeys(roles.categorical, TEXT)}
    fixed |= {roles.weight: NUMBER} if roles.weight else {}
    free = [name for name in roles.learnt if name not in fixed]
    columns = read_whole(table, fixed, free, single=a.single, most_cells=most_cells)
    labels = columns.pop(roles.target)
    if len(labels) == 0:
        raise TableFileError(f"{table.name}: no rows.")
    weight = None
    if roles.weight:
        weight = np.asarray(columns.pop(roles.weight).to_numpy(), dtype=float)
    X = pyarrow.table({name: columns[name] for name in roles.learnt})
    y, labelled = _labels(labels, table, a)
    if weight is not None and np.isnan(weight).any():
        place = place_in(table, int(np.isnan(weight).argmax()))
        raise TableFileError(f"{table.name}, {place}, column {roles.weight!r}: no weight.")
    data = TrainingData(X, y, weight)
    return data if labelled.all() else data[np.flatnonzero(labelled)]


def _labels(column: Any, table: TableFile, a: Any) -> tuple[Any, Any]:
    """(n,) labels, and which rows have one. Whole numbers are numbers, all else is text."""
    texts, codes = coded(column)
    labelled = codes >= 0
    where = f"{table.name}, column {a.target!r}"
    if not labelled.all():
        _allow_unlabelled(labelled, table, where, a)
    present = np.unique(codes[labelled])
    used = [texts[code] for code in present]
    refuse_no_classes(used, int(labelled.sum()), where)
    labels = labels_of(used, as_integers=are_whole(used))
    # Rows without a label get any; they are dropped next.
    return labels[np.minimum(np.searchsorted(present, codes), len(used) - 1)], labelled


def _allow_unlabelled(labelled: Any, table: TableFile, where: str, a: Any) -> None:
    rows = np.flatnonzero(~labelled)
    if a.drop_unlabelled:
        warn(f"{len(rows)} rows without a label are left out.")
        return
    places = [place_in(table, int(row)) for row in rows[:MOST_PLACES]]
    refuse_unlabelled(len(rows), len(labelled), places, where)


# --- splitting and fitting ---


def fit_in_memory(
    a: Any, estimator: Any, roles: Roles, data: TrainingData, share: float | None
) -> Fitted:
    from geomix.explain.drift import cell_counts

    learn, held_out = split(data, share, a.seed)
    started = time.perf_counter()
    with blamed_on(DATA):
        model = estimator.fit(learn.X, learn.y, sample_weight=learn.weight).model_
        model = remembering(model, roles, cell_counts(model, learn.X))
    seconds = time.perf_counter() - started
    labels, counts = np.unique(learn.y, return_counts=True)
    if held_out is not None:
        figures: Figures | None = figures_of(model, held_out.X, held_out.y, held_out.weight)
    else:
        figures = figures_on_file(model, a)
    class_rows = dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True))
    return Fitted(model, class_rows, len(data) - len(learn), figures, seconds, streamed=False)


def split(
    data: TrainingData, share: float | None, seed: int
) -> tuple[TrainingData, TrainingData | None]:
    """Rows to learn from, and a share of each class held out; a class keeps at least one row."""
    if share is None:
        return data, None
    rng = np.random.default_rng(seed)
    held: list[IntArray] = []
    for label in np.unique(data.y):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        held.append(rows[: min(round(share * len(rows)), len(rows) - 1)])
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.concatenate(held)] = True
    if not chosen.any():
        raise Failure(DATA, f"{len(data)} rows are too few to hold out a share of {share}")
    return data[np.flatnonzero(~chosen)], data[np.flatnonzero(chosen)]


def remembering(model: Any, roles: Roles, answered: Any) -> Any:
    """The model, with how many rows each plane answers for (see ``geomix drift``)."""
    facts: dict[str, Any] = {
        "plane_rows": answered.rows.tolist(),
        "confidence": answered.confidence,
    }
    facts |= {"target": roles.target, "left_out": list(roles.left_out)}
    return replace(model, training={**(model.training or {}), **facts})


def figures_on_file(model: Any, a: Any) -> Figures | None:
    """How the model does on the file of --test, if one is given."""
    if a.test is None:
        return None
    with blamed_on(DATA):
        return file_figures(model, a.test, a).figures
