"""The pair terms of a model on common cells: at most one grid for each two columns.

    z_p(x) = b_p + sum_j f_pj(x_j) + sum_{j < k} g_pjk(cell_j(x_j), cell_k(x_k))

Pairs may cut one number at different thresholds, and a merged model may have several terms of the
same two columns. Here a column has one set of cells, between all of its thresholds, and the terms
of the same two columns are added up. Within a cell of every column, pairs are constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline_parts import cell_of
from geomix.explain.column_terms import PairTerm


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column. cuts : ascending thresholds of a number, None for a category;
    n : how many cells there are, the last for missing and unseen values."""

    cuts: FloatArray | None
    n: int

    def of(self, x: FloatArray) -> IntArray:
        """(n,) encoded cells -> (n,) positions; a number's is the count of cuts at or below it."""
        return cell_of(x, self.cuts, self.n)

    @cached_property
    def examples(self) -> FloatArray:
        """(n,) a value in each cell; NaN for the last."""
        if self.cuts is None:
            return np.append(np.arange(self.n - 1, dtype=float), np.nan)
        first = self.cuts[:1] - 1.0 - np.abs(self.cuts[:1]) if len(self.cuts) else np.zeros(1)
        return np.concatenate([first, self.cuts, [np.nan]])


@dataclass(frozen=True, eq=False)
class Grid:
    """columns : two, ascending;  values : (n_first, n_second, P)."""

    columns: tuple[int, int]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class PairGrids:
    """cells : by column, for columns in some pair;  grids : one for each two columns."""

    cells: dict[int, Cells]
    grids: tuple[Grid, ...]

    def partners(self, column: int) -> list[tuple[int, FloatArray]]:
        """The columns paired with one, each with the grid's values, (n_own, n_partner, P)."""
        found = []
        for grid in self.grids:
            j, k = grid.columns
            if column == j:
                found.append((k, grid.values))
            elif column == k:
                found.append((j, grid.values.swapaxes(0, 1)))
        return found

    def along(self, column: int, row: FloatArray) -> FloatArray:
        """(n_cells, P) what the pairs of one column add in each of its cells, the rest of an
        encoded row fixed. The column must be in a pair."""
        return np.sum(
            [values[:, self.cells[k].of(row[k : k + 1])[0]] for k, values in self.partners(column)],
            axis=0,
        )


def pair_grids(terms: Sequence[PairTerm]) -> PairGrids:
    """Common cells and summed grids of pair terms."""
    cells = {j: _cells(terms, j) for j in sorted({j for one in terms for j in one.columns})}
    values: dict[tuple[int, int], FloatArray] = {}
    for term in terms:
        first, second = (
            cell_of(cells[j].examples, cut, n)
            for j, cut, n in zip(term.columns, term.cuts, term.shape, strict=True)
        )
        table = term.values.reshape(*term.shape, -1)[np.ix_(first, second)]
        j, k = term.columns
        if j > k:
            j, k, table = k, j, table.swapaxes(0, 1)
        values[j, k] = values[j, k] + table if (j, k) in values else table
    return PairGrids(cells, tuple(Grid(pair, one) for pair, one in sorted(values.items())))


def _cells(terms: Iterable[PairTerm], column: int) -> Cells:
    sides = [
        (cut, n)
        for term in terms
        for j, cut, n in zip(term.columns, term.cuts, term.shape, strict=True)
        if j == column
    ]
    if sides[0][0] is None:
        return Cells(None, max(n for _, n in sides))
    cuts = np.unique(np.concatenate([cut for cut, _ in sides if cut is not None]))
    return Cells(cuts, len(cuts) + 2)
