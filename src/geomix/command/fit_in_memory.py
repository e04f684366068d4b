"""``geomix fit`` with all rows in memory: read, split, train, test.

``ColumnRoles`` names the target, the weights, the features and the excluded columns of a file.
``FitResult`` is shared with fits out of core (``fit_streaming``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.exit_codes import DATA, CommandError, exit_code_for_bad_values, usage_error
from geomix.command.messages import warn
from geomix.command.metrics import Metrics, open_test_rows, row_metrics, table_metrics
from geomix.command.options import read_options
from geomix.errors import SchemaError, TableFileError
from geomix.tablefile.block import LABEL, NUMBER, TEXT, TableFile, place_in
from geomix.tablefile.class_labels import (
    MOST_PLACES,
    are_integers,
    as_labels,
    check_classes,
    raise_unlabelled,
    texts_and_codes,
)
from geomix.tablefile.column_names import check_present
from geomix.tablefile.column_types import read_columns
from geomix.tablefile.multiple_files import open_tables
from geomix.tablefile.single_precision import SinglePrecision


@dataclass(frozen=True, eq=False)
class ColumnRoles:
    """Which column is the target, which hold features, and which are ignored.

    categorical : features that are categories even if their cells look like numbers
    excluded : neither features nor the target
    """

    table: TableFile
    target: str
    weight: str | None
    features: tuple[str, ...]
    categorical: tuple[str, ...]
    excluded: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """X : Arrow table of features;  y : (n,) labels;  weight : (n,) or None"""

    X: Any
    y: Any
    weight: FloatArray | None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray) -> TrainingData:
        weight = None if self.weight is None else self.weight[rows]
        return TrainingData(self.X.take(rows), self.y[rows], weight)


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model and facts about its training.

    class_rows : training rows of each class;  n_held_out : rows held out for testing
    metrics : on the rows of --test, or None
    """

    model: Any
    class_rows: dict[str, int]
    n_held_out: int
    metrics: Metrics | None
    seconds: float
    streamed: bool


@dataclass(frozen=True, eq=False)
class TestRows:
    """The rows of --test: a share of the training rows, a file, or none."""

    share: float | None = None
    table: TableFile | None = None

    @classmethod
    def of(cls, args: Any, roles: ColumnRoles, share: float | None) -> TestRows:
        """A file is opened and checked here, before the training that it would fail after."""
        if share is not None or args.test is None:
            return cls(share)
        with exit_code_for_bad_values(DATA):
            return cls(table=open_test_rows(args, roles.features))

    def file_metrics(self, model: Any, args: Any) -> Metrics | None:
        """Metrics on the file, or None."""
        if self.table is None:
            return None
        with exit_code_for_bad_values(DATA):
            return table_metrics(model, self.table, args).metrics


def column_roles(args: Any) -> ColumnRoles:
    """Open the files of training rows and assign a role to each column."""
    table = open_tables(args.data, read_options(args))
    if args.single:
        table = SinglePrecision(table)
    named = [
        args.target,
        *args.id,
        *args.drop,
        *args.categorical,
        *([args.weight] if args.weight else []),
    ]
    check_present(named, table.names, table.name, "which the options name")
    not_features = {args.target, args.weight, *args.id, *args.drop}
    if both := [name for name in args.categorical if name in not_features]:
        raise usage_error(f"the column {both[0]!r} is both categorical and excluded")
    features = tuple(name for name in table.names if name not in not_features)
    if not features:
        raise SchemaError(f"{table.name}: no column is left as a feature.")
    if "" in features:
        raise SchemaError(
            f"{table.name}: column {table.names.index('') + 1} has no name. Name it, or drop "
            "it with --drop '' (it may hold row numbers of another program)."
        )
    excluded = tuple(name for name in table.names if name in not_features and name != args.target)
    return ColumnRoles(
        table, args.target, args.weight or None, features, tuple(args.categorical), excluded
    )


def read_training(roles: ColumnRoles, args: Any, most_cells: int | None) -> TrainingData:
    """The rows of a table; raises ``TooManyCells`` above ``most_cells``."""
    import pyarrow

    table = roles.table
    fixed = {roles.target: LABEL, **dict.fromkeys(roles.categorical, TEXT)}
    fixed |= {roles.weight: NUMBER} if roles.weight else {}
    free = [name for name in roles.features if name not in fixed]
    columns = read_columns(table, fixed, free, single=args.single, most_cells=most_cells)
    labels = columns.pop(roles.target)
    if len(labels) == 0:
        raise TableFileError(f"{table.name}: no rows.")
    weight = None
    if roles.weight:
        weight = np.asarray(columns.pop(roles.weight).to_numpy(), dtype=float)
    X = pyarrow.table({name: columns[name] for name in roles.features})
    y, labelled = _labels(labels, table, args)
    if weight is not None and np.isnan(weight).any():
        place = place_in(table, int(np.isnan(weight).argmax()))
        raise TableFileError(
            f"{table.name}, {place}, column {roles.weight!r}: the weight is missing."
        )
    data = TrainingData(X, y, weight)
    return data if labelled.all() else data[np.flatnonzero(labelled)]


def _labels(column: Any, table: TableFile, args: Any) -> tuple[Any, Any]:
    """(n,) labels and (n,) whether a row has one. Labels are int if all of them are, else str."""
    texts, codes = texts_and_codes(column)
    labelled = codes >= 0
    where = f"{table.name}, column {args.target!r}"
    if not labelled.all():
        _allow_unlabelled(labelled, table, where, args)
    present = np.unique(codes[labelled])
    used = [texts[code] for code in present]
    check_classes(used, int(labelled.sum()), where)
    labels = as_labels(used, as_integers=are_integers(used))
    # Rows without a label get an arbitrary one here; the caller drops them.
    return labels[np.minimum(np.searchsorted(present, codes), len(used) - 1)], labelled


def _allow_unlabelled(labelled: Any, table: TableFile, where: str, args: Any) -> None:
    rows = np.flatnonzero(~labelled)
    if args.drop_unlabelled:
        warn(f"{len(rows)} rows without a label are ignored.")
        return
    places = [place_in(table, int(row)) for row in rows[:MOST_PLACES]]
    raise_unlabelled(len(rows), len(labelled), places, where)


# --- splitting and fitting ---


def fit_in_memory(
    args: Any, estimator: Any, roles: ColumnRoles, data: TrainingData, test: TestRows
) -> FitResult:
    from geomix.explain.drift import cell_counts

    train, held_out = split(data, test.share, args.seed)
    started = time.perf_counter()
    with exit_code_for_bad_values(DATA):
        model = estimator.fit(train.X, train.y, sample_weight=train.weight).model_
        model = with_training_facts(model, roles, cell_counts(model, train.X))
    seconds = time.perf_counter() - started
    labels, counts = np.unique(train.y, return_counts=True)
    if held_out is not None:
        metrics: Metrics | None = row_metrics(model, held_out.X, held_out.y, held_out.weight)
    else:
        metrics = test.file_metrics(model, args)
    class_rows = dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True))
    return FitResult(model, class_rows, len(data) - len(train), metrics, seconds, streamed=False)


def split(
    data: TrainingData, share: float | None, seed: int
) -> tuple[TrainingData, TrainingData | None]:
    """Training rows, and test rows: a share of each class, which keeps at least one row."""
    if share is None:
        return data, None
    rng = np.random.default_rng(seed)
    held_out: list[IntArray] = []
    for label in np.unique(data.y):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        held_out.append(rows[: min(round(share * len(rows)), len(rows) - 1)])
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.concatenate(held_out)] = True
    if not chosen.any():
        raise CommandError(DATA, f"{len(data)} rows are too few to hold out a share of {share}")
    return data[np.flatnonzero(~chosen)], data[np.flatnonzero(chosen)]


def with_training_facts(model: Any, roles: ColumnRoles, counts: Any) -> Any:
    """The model with the counts that ``geomix drift`` compares new rows with."""
    facts: dict[str, Any] = {
        "plane_rows": counts.rows.tolist(),
        "confidence": counts.confidence,
    }
    facts |= {"target": roles.target, "left_out": list(roles.excluded)}
    return replace(model, training={**(model.training or {}), **facts})
