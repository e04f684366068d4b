"""Tables of the suite, and the one way in which all models see them.

A table is a Parquet file: the column ``target`` holds the class as text, categories are pandas
``category``, everything else is a number, missing is NaN. ``split`` cuts it into

    train   80 % of the rows, stratified, then at most ``most_train`` of them
    test    the other 20 %, then at most ``most_test`` of them

Both cuts are ``take``: every class gets its share of the rows by largest remainders, but at
least ``at_least`` of them or all it has. So training keeps every class, down to a class of one
row; the test part may miss a class, and the metrics know that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TARGET = "target"
TEST_SHARE = 0.2
# A capped training part keeps ten rows of a rare class, enough for inner folds to see it.
RARE_ROWS = 10


@dataclass(frozen=True)
class Table:
    """A table on disk; ``size`` is its number of cells."""

    name: str
    path: Path
    size: int


@dataclass(frozen=True)
class Caps:
    """The most rows that a model learns from and is tested on; None: all."""

    train: int | None = 10_000
    test: int | None = 20_000


@dataclass(frozen=True, eq=False)
class Split:
    """Frames in raw form, classes as codes 0 .. n_classes - 1, all of them in ``y_train``."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    n_classes: int


def find_tables(folder: Path) -> list[Table]:
    """The Parquet tables of a folder, smallest first."""
    from pyarrow.parquet import read_metadata

    if not folder.is_dir():
        raise SystemExit(
            f"Got --data {folder}; expected a folder of Parquet tables, each with a column "
            f"'{TARGET}'. Name such a folder, or fetch public tables with --openml ID."
        )
    found = []
    for path in sorted(folder.glob("*.parquet")):
        about = read_metadata(path)
        found.append(Table(path.stem, path, about.num_rows * about.num_columns))
    if not found:
        raise SystemExit(f"Got --data {folder}; expected Parquet tables in it, found none.")
    return sorted(found, key=lambda table: (table.size, table.name))


def read_table(path: Path) -> tuple[Any, Any]:
    """The columns as a frame, and the classes as codes in the order of their names."""
    frame = pd.read_parquet(path)
    y = np.unique(frame.pop(TARGET).astype(str), return_inverse=True)[1]
    return frame, y


def fetch_openml_table(number: int, folder: Path) -> Path:
    """Save the OpenML data set with that id as a table in ``folder``, unless it is there."""
    saved = sorted(folder.glob(f"*_{number}.parquet"))
    if saved:
        return saved[0]
    from sklearn.datasets import fetch_openml

    data = fetch_openml(data_id=number, as_frame=True, parser="auto")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{data.details['name']}_{number}.parquet"
    as_table(data.data, data.target).to_parquet(path, index=False)
    return path


def as_table(frame: Any, target: Any) -> Any:
    """A frame and its classes in the form above: text and truth values become categories."""
    known = np.asarray(target.notna())
    frame = frame.loc[known].reset_index(drop=True)
    columns = {str(name): _number_or_category(frame[name]) for name in frame.columns}
    names = target[known].astype(str).to_numpy(dtype=object)
    return pd.DataFrame(columns).assign(**{TARGET: names})


def _number_or_category(column: Any) -> Any:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column
    text = column.astype(object).where(column.notna(), None)
    return text.map(str, na_action="ignore").astype("category")


def split(X: Any, y: Any, seed: int, caps: Caps) -> Split:
    rng = np.random.default_rng(seed)
    train = take(y, round((1 - TEST_SHARE) * len(y)), 1, rng)
    test = np.setdiff1d(np.arange(len(y)), train)
    if caps.train is not None and len(train) > caps.train:
        train = train[take(y[train], caps.train, RARE_ROWS, rng)]
    if caps.test is not None and len(test) > caps.test:
        test = test[take(y[test], caps.test, 0, rng)]
    rows = (rng.permutation(train), rng.permutation(test))
    (X_train, y_train), (X_test, y_test) = (
        (X.iloc[chosen].reset_index(drop=True), y[chosen]) for chosen in rows
    )
    return Split(X_train, y_train, X_test, y_test, int(y.max()) + 1)


def take(y: Any, n_rows: int, at_least: int, rng: Any) -> Any:
    """``n_rows`` row numbers, ascending, with every class at its share (see the top)."""
    chosen = [
        rng.choice(np.flatnonzero(y == code), count, replace=False)
        for code, count in enumerate(shares(np.bincount(y), n_rows, at_least))
        if count
    ]
    return np.sort(np.concatenate(chosen))


def shares(counts: Any, n_rows: int, at_least: int) -> Any:
    """How many rows each class gives, by largest remainders above the least that it must give."""
    exact = counts * (n_rows / counts.sum())
    least = np.minimum(counts, at_least)
    given = np.maximum(np.floor(exact).astype(int), least)
    while given.sum() < n_rows:
        given[np.argmax(np.where(given < counts, exact - given, -np.inf))] += 1
    while given.sum() > n_rows and (given > least).any():
        given[np.argmax(np.where(given > least, given - exact, -np.inf))] -= 1
    return given
