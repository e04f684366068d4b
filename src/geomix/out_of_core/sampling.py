"""A uniform sample of a table that comes in parts, the same however it is cut.

The sample is the rows with the smallest keys, where a row's key is a hash of the seed and of its
place in the whole table. It has at least ``FEWEST_OF_A_CLASS`` rows of every class; weights
correct for that (``Survey.sample_weights``). The sample of two parts is the sum of their samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray

# Two thirds are enough for the search (16,000 training and 4,000 validation rows), and few enough
# that Fourier features, the widest of all, fit into half a gigabyte. A third is held out for the
# calibration (``held_out.py``).
ROWS_IN_SAMPLE = 30_000
FEWEST_OF_A_CLASS = 200


def row_keys(places: Any, seed: int) -> Any:
    """One pseudo-random uint64 for each row, of its place in the table (splitmix64)."""
    with np.errstate(over="ignore"):
        z = (places + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows by the smallest of their ``keys``; columns of numbers, or of labels with None for
    missing. y : labels."""

    keys: Any
    columns: list[Any]
    y: Any
    weight: FloatArray

    def __add__(self, other: Sample) -> Sample:
        if len(other.keys) == 0 or len(self.keys) == 0:
            return self if len(other.keys) == 0 else other
        pairs = zip(self.columns, other.columns, strict=True)
        return Sample(
            np.concatenate([self.keys, other.keys]),
            [_joined(one, two) for one, two in pairs],
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weight, other.weight]),
        ).kept()

    def is_whole_below(self, bar: Any) -> bool:
        """Whether parts that left out rows above ``bar`` have the sample of all rows."""
        return bar is None or int((self.keys <= bar).sum()) >= ROWS_IN_SAMPLE

    @property
    def bar(self) -> Any:
        """The largest key that enters the sample whatever its class; None while it is not full."""
        return self.keys[ROWS_IN_SAMPLE - 1] if len(self.keys) >= ROWS_IN_SAMPLE else None

    def kept(self) -> Sample:
        """The rows that belong to the sample, ordered by key."""
        chosen = chosen_rows(self.keys, self.y)
        columns = [column[chosen] for column in self.columns]
        return Sample(self.keys[chosen], columns, self.y[chosen], self.weight[chosen])


def likely_bar(n_rows: int) -> Any:
    """A key that more than ``ROWS_IN_SAMPLE`` of so many rows are below, unless by a chance of ten
    standard deviations; None where all rows may be needed."""
    share = (ROWS_IN_SAMPLE + 10.0 * np.sqrt(ROWS_IN_SAMPLE)) / max(n_rows, 1)
    return np.uint64(share * 2.0**64) if share < 1.0 else None


def rows_to_search() -> int:
    return ROWS_IN_SAMPLE * 2 // 3


def chosen_rows(keys: Any, y: Any, bar: Any = None, n_rows: int | None = None) -> IntArray:
    """Rows with the smallest keys of all, and of every class; by key. Rows with a key above
    ``bar`` are known not to be among the smallest of all. n_rows : None: those of the sample."""
    order = np.argsort(keys)
    smallest = order[: ROWS_IN_SAMPLE if n_rows is None else n_rows]
    if bar is not None:
        smallest = smallest[keys[smallest] <= bar]
    chosen = np.zeros(len(keys), dtype=bool)
    chosen[smallest] = True
    if len(smallest) < len(keys):
        for label in np.unique(y):
            chosen[order[np.flatnonzero(y[order] == label)[:FEWEST_OF_A_CLASS]]] = True
    return order[chosen[order]]


def _joined(one: Any, two: Any) -> Any:
    if one.dtype == object or two.dtype == object:
        one, two = (as_labels(column) for column in (one, two))
    return np.concatenate([one, two])


def as_labels(column: Any) -> Any:
    """A column of nothing but missing cells is a column of labels as well."""
    return column if column.dtype == object else np.full(len(column), None, dtype=object)
