"""Rows to learn from, as ``geomix fit`` takes them: read, checked, split, learnt, judged."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.failures import DATA, Failure, blamed_on
from geomix.command.figures import Figures, figures_of, file_figures
from geomix.command.options import reading
from geomix.command.speaking import warn
from geomix.errors import SchemaError, TableFileError
from geomix.labels import plain_labels
from geomix.tablefile import open_table
from geomix.tablefile.block import LABEL, NUMBER, TEXT, place_in
from geomix.tablefile.kinds import read_whole
from geomix.tablefile.names import check_present

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}", re.ASCII)
FRACTION = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+", re.ASCII)
MOST_PLACES = 5


@dataclass(frozen=True, eq=False)
class TrainingData:
    """X : an Arrow table of raw cells;  y : (n,) labels;  weight : (n,) or None
    target, left_out : columns of the file that are not learnt from"""

    X: Any
    y: Any
    weight: FloatArray | None
    target: str
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray) -> TrainingData:
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=self.X.take(rows), y=self.y[rows], weight=weight)


def read_training(a: Any) -> TrainingData:
    """The rows of a file, with what is not to be learnt from left out."""
    import pyarrow

    table = open_table(a.data, reading(a))
    asked = [a.target, *a.id, *a.drop, *a.categorical, *([a.weight] if a.weight else [])]
    check_present(asked, table.names, table.name, "which was asked for")
    aside = {a.target, a.weight, *a.id, *a.drop}
    if both := [name for name in a.categorical if name in aside]:
        raise Failure(2, f"the column {both[0]!r} is categorical and left out at once")
    learnt = [name for name in table.names if name not in aside]
    if not learnt:
        raise SchemaError(f"{table.name}: no column is left to learn from.")
    if "" in learnt:
        raise SchemaError(
            f"{table.name}: column {table.names.index('') + 1} has no name. Name it, or leave it "
            "out with --drop '' (row numbers of another program, perhaps)."
        )
    fixed = {a.target: LABEL, **dict.fromkeys(a.categorical, TEXT)}
    fixed |= {a.weight: NUMBER} if a.weight else {}
    free = [name for name in learnt if name not in fixed]
    columns = read_whole(table, fixed, free, single=a.single)
    labels = columns.pop(a.target)
    if len(labels) == 0:
        raise TableFileError(f"{table.name}: no rows.")
    weight = np.asarray(columns.pop(a.weight).to_numpy(), dtype=float) if a.weight else None
    X = pyarrow.table({name: columns[name] for name in learnt})
    y, labelled = _labels(labels, table, a)
    if weight is not None and np.isnan(weight).any():
        place = place_in(table, int(np.isnan(weight).argmax()))
        raise TableFileError(f"{table.name}, {place}, column {a.weight!r}: no weight.")
    left_out = tuple(name for name in table.names if name in aside and name != a.target)
    data = TrainingData(X, y, weight, a.target, left_out, table.notes)
    return data if labelled.all() else data[np.flatnonzero(labelled)]


def _labels(column: Any, table: Any, a: Any) -> tuple[Any, Any]:
    """(n,) labels, and which rows have one. Whole numbers are numbers, all else is text."""
    texts = column.chunk(0).dictionary.to_pylist()
    codes = np.concatenate([part.indices.fill_null(-1).to_numpy() for part in column.chunks])
    labelled = codes >= 0
    where = f"{table.name}, column {a.target!r}"
    if not labelled.all():
        _allow_unlabelled(labelled, table, where, a)
    present = np.unique(codes[labelled])
    used = [texts[code] for code in present]
    _refuse_no_classes(used, int(labelled.sum()), where)
    whole = all(WHOLE_NUMBER.fullmatch(text) for text in used)
    labels = plain_labels([int(text) for text in used] if whole else used)
    # Rows without a label get any; they are dropped next.
    return labels[np.minimum(np.searchsorted(present, codes), len(used) - 1)], labelled


def _allow_unlabelled(labelled: Any, table: Any, where: str, a: Any) -> None:
    rows = np.flatnonzero(~labelled)
    if a.drop_unlabelled:
        warn(f"{len(rows)} rows without a label are left out.")
        return
    places = ", ".join(place_in(table, int(row)) for row in rows[:MOST_PLACES])
    more = ", ..." if len(rows) > MOST_PLACES else ""
    raise TableFileError(
        f"{where}: {len(rows)} of {len(labelled)} labels are missing ({places}{more}). Leave those "
        "rows out with --drop-unlabelled."
    )


def _refuse_no_classes(used: list[str], n_rows: int, where: str) -> None:
    """One class, a class for each row, or a quantity: nothing to classify."""
    if len(used) == 0:
        raise TableFileError(f"{where}: no row has a label.")
    if len(used) == 1:
        raise TableFileError(
            f"{where}: all labels are {used[0][:80]!r}; at least two classes are needed."
        )
    if any(FRACTION.fullmatch(text) for text in used) and len(used) > 2:
        odd = next(text for text in used if FRACTION.fullmatch(text))
        raise TableFileError(
            f"{where}: numbers such as {odd!r} are a quantity, not classes; make classes of them."
        )
    if len(used) == n_rows and n_rows > 2:
        raise TableFileError(
            f"{where}: all {n_rows} labels are different; this is an identifier or a quantity, not "
            "a class."
        )


# --- splitting and fitting ---


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


def fitted_model(estimator: Any, data: TrainingData) -> Any:
    """The model, which remembers how many rows each plane answers for (see ``geomix drift``)."""
    from geomix.drift import cell_counts

    model = estimator.fit(data.X, data.y, sample_weight=data.weight).model_
    answered = cell_counts(model, data.X)
    facts: dict[str, Any] = {
        "plane_rows": answered.rows.tolist(),
        "confidence": answered.confidence,
    }
    facts |= {"target": data.target, "left_out": list(data.left_out)}
    return replace(model, training={**(model.training or {}), **facts})


def figures_on_test(model: Any, a: Any, held_out: TrainingData | None) -> Figures | None:
    """How the model does on the rows of --test."""
    if held_out is not None:
        return figures_of(model, held_out.X, held_out.y, held_out.weight)
    if a.test is None:
        return None
    with blamed_on(DATA):
        return file_figures(model, a.test, a).figures
