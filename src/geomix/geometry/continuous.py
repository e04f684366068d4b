"""A valid row by search over segments, with its stepped numbers rounded to their grids."""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.geometry.moves import Moves
from geomix.geometry.options import on_grid
from geomix.geometry.refinement import best_change
from geomix.geometry.search import Aim
from geomix.geometry.task import Task

ROUNDING = 1e-6  # of a step: a value this close to the grid may be the other side of a threshold


def continuous_row(task: Task, moves: Moves, code: int) -> FloatArray | None:
    """A row by search over segments, its stepped numbers rounded to their grids."""
    for lead in task.leads:
        change = best_change(moves, Aim(code, lead), task.norm)
        if change is None:
            return None
        row = _stepped(task, moves.changed_row(change), code)
        if task.is_valid(row[None, :], code)[0]:
            return row
    return None


def _stepped(task: Task, row: FloatArray, code: int) -> FloatArray:
    """The row with stepped numbers on their grids, each rounded by itself: to the cheapest value
    that does not lower the margin of the class, or else to the one with the largest margin."""
    near = [(j, value) for j in range(len(row)) for value in _grid_values(task, j, row[j])]
    if not near:
        return row
    columns, values = np.array([j for j, _ in near]), np.array([value for _, value in near])
    rows = np.repeat(row[None, :], len(near) + 1, axis=0)
    rows[np.arange(len(near)), columns] = values
    S = task.model.answer("class_scores", rows)
    margins = S[:, code] - np.delete(S, code, axis=1).max(axis=1)
    margins, least = margins[:-1], margins[-1]
    cost = np.abs(values - task.row[columns])
    worst_first = np.lexsort((-cost, np.minimum(margins, least)))
    stepped = row.copy()
    for at in worst_first:  # the last value of a column is its best
        stepped[columns[at]] = values[at]
    return stepped


def _grid_values(task: Task, j: int, value: float) -> list[float]:
    """The neighbours of a changed, stepped number on its grid, within the limits.

    A value beside a threshold of a pair differs from the grid by rounding only, and both sides of
    it count.
    """
    x, step, free = task.row[j], task.free.steps[j], task.free
    if step is None or value == x or np.isnan(value):
        return []
    k = (value - x) / step
    ends = np.unique([np.floor(k - ROUNDING), np.floor(k), np.ceil(k), np.ceil(k + ROUNDING)])
    grid = on_grid(x, ends, step)
    return [one for one in grid.tolist() if free.low[j] <= one <= free.high[j]]
