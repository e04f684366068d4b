"""The smallest value of a sum of small tables over the cells of a few columns.

    min over a of  sum_j u_j(a_j) + sum_{j,k} w_jk(a_j, a_k)

Columns are eliminated one after another: all tables that contain a column are added up and
minimised over it, which leaves a table of its neighbours. This is exact. Where that table would
have more than ``MOST_ENTRIES`` entries, the tables are added up in several groups, each minimised
by itself. A sum of minima is at most the minimum of the sum, so the value is then a lower bound.

Every table has a leading axis: several sums are minimised at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from geomix.arrays import FloatArray, IntArray

# Entries of a table over several columns, without the leading axis. Three columns of 32 cells
# fit; a table of this size takes about a tenth of a millisecond.
MOST_ENTRIES = 40_000


@dataclass(frozen=True, eq=False)
class Table:
    """columns : ascending;  values : (B, n_cells of the first column, ...)."""

    columns: tuple[int, ...]
    values: FloatArray

    def at(self, cells: Mapping[int, IntArray]) -> FloatArray:
        """(n, B) values for n choices of cells, each (n,) by column."""
        found: FloatArray = np.moveaxis(self.values, 0, -1)[tuple(cells[j] for j in self.columns)]
        return found


@dataclass(frozen=True, eq=False)
class Smallest:
    """value : (B,), the minimum or a lower bound of it;  cells : by column, (B,) where it is
    reached (or nearly, if not ``is_exact``)."""

    value: FloatArray
    cells: dict[int, IntArray]
    is_exact: bool


def smallest(tables: Sequence[Table]) -> Smallest:
    """The minimum of the sum of ``tables`` over all cells, by elimination."""
    known = list(tables)
    steps, left = _plan(tuple((one.columns, one.values.shape[1:]) for one in tables), MOST_ENTRIES)
    for step in steps:
        for group in step.groups:
            known.append(_least(added([known[i] for i in group]), step.column))
    value: FloatArray = np.sum([known[i].values for i in left], axis=0)
    return Smallest(value, _where(steps, known, len(value)), all(one.is_exact for one in steps))


def eliminated(bucket: Sequence[Table], column: int) -> tuple[list[Table], bool]:
    """The minimum over one column of the tables that contain it, and whether it is exact."""
    scopes = [dict(zip(one.columns, one.values.shape[1:], strict=True)) for one in bucket]
    groups = _groups(range(len(bucket)), scopes, MOST_ENTRIES)
    made = [_least(added([bucket[i] for i in group]), column) for group in groups]
    return made, len(groups) == 1


def added(tables: Sequence[Table]) -> Table:
    """The sum of tables as one table of all their columns."""
    columns = tuple(sorted({j for one in tables for j in one.columns}))
    total: FloatArray | None = None
    for one in sorted(tables, key=lambda one: -one.values.ndim):
        values = one.values
        if one.columns != columns:
            size = dict(zip(one.columns, values.shape[1:], strict=True))
            values = values.reshape(len(values), *(size.get(j, 1) for j in columns))
        total = values if total is None else total + values
    assert total is not None
    return Table(columns, total)


def _least(table: Table, column: int) -> Table:
    axis = table.columns.index(column)
    rest = table.columns[:axis] + table.columns[axis + 1 :]
    return Table(rest, table.values.min(axis=1 + axis))


# --- the order of elimination ---


@dataclass(frozen=True)
class _Step:
    """A column, and the groups of tables that are added up and minimised over it."""

    column: int
    groups: tuple[tuple[int, ...], ...]

    @property
    def is_exact(self) -> bool:
        return len(self.groups) == 1

    @property
    def bucket(self) -> list[int]:
        return [i for group in self.groups for i in group]


@lru_cache(maxsize=1024)
def _plan(
    shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], most: int
) -> tuple[list[_Step], list[int]]:
    """Steps for tables of such columns and sizes, and the tables that are left at the end.

    The column whose sum of tables has the fewest entries comes first.
    """
    scopes = [dict(zip(columns, sizes, strict=True)) for columns, sizes in shapes]
    left = list(range(len(scopes)))
    steps = []
    while columns := sorted({j for i in left for j in scopes[i]}):
        buckets = {j: [i for i in left if j in scopes[i]] for j in columns}
        column = min(columns, key=lambda j: _entries(buckets[j], scopes))
        groups = _groups(buckets[column], scopes, most)
        left = [i for i in left if i not in buckets[column]]
        for group in groups:
            joined = {j: n for i in group for j, n in scopes[i].items() if j != column}
            left.append(len(scopes))
            scopes.append(joined)
        steps.append(_Step(column, tuple(map(tuple, groups))))
    return steps, left


def _entries(some: Iterable[int], scopes: Sequence[Mapping[int, int]]) -> int:
    """Entries of the sum of some tables."""
    sizes: dict[int, int] = {}
    for i in some:
        sizes.update(scopes[i])
    return prod(sizes.values())


def _groups(
    bucket: Iterable[int], scopes: Sequence[Mapping[int, int]], most: int
) -> list[list[int]]:
    """Groups whose sums have few enough entries; small tables go with larger ones."""
    groups: list[list[int]] = []
    for i in sorted(bucket, key=lambda i: -len(scopes[i])):
        fits = (one for one in groups if _entries([*one, i], scopes) <= most)
        group = next(fits, None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return groups


def _where(steps: list[_Step], known: list[Table], n: int) -> dict[int, IntArray]:
    """Cells of the minimum, found backwards from the column that was eliminated last."""
    cells: dict[int, IntArray] = {}
    rows = np.arange(n)
    for step in reversed(steps):
        total: FloatArray | float = 0.0
        for table in (known[i] for i in step.bucket):
            axis = table.columns.index(step.column)
            before = [cells[j] for j in table.columns[:axis]]
            after = [cells[j] for j in table.columns[axis + 1 :]]
            if after:  # indices apart would put their axis first
                values = np.moveaxis(table.values, 1 + axis, -1)
                total = total + values[(rows, *before, *after)]
            else:
                total = total + table.values[(rows, *before)]
        cells[step.column] = np.asarray(total).argmin(axis=1)
    return cells
