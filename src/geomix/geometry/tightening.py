"""Improving a valid row: cheaper values of the columns that it changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray
from geomix.geometry.options import on_grid
from geomix.geometry.refinement import best_change
from geomix.geometry.search import Aim
from geomix.geometry.segments import moves_of
from geomix.geometry.task import Task

FINE_VALUES = 512  # values of a stepped number that are compared at once


def refined_row(task: Task, row: FloatArray, code: int) -> FloatArray:
    """The best continuous values of the changed columns, levels and stepped numbers fixed."""
    free = task.free
    low, high = free.low.copy(), free.high.copy()
    for j in range(len(row)):
        is_continuous = j not in free.levels and free.steps[j] is None
        if row[j] == task.row[j] or (not is_continuous and j not in free.levels):
            low[j] = high[j] = row[j]
    levels = {j: [row[j]] for j in free.levels}
    assert task.form is not None
    fixed = replace(free, low=low, high=high, levels=levels)
    moves = moves_of(task.form, task.row, fixed, task.norm, task.plane_scores)
    for lead in task.leads:
        change = best_change(moves, Aim(code, lead), task.norm)
        if change is None:
            return row
        better = moves.changed_row(change)
        if task.is_valid(better[None, :], code)[0]:
            both = np.stack([row, better])
            return both[int(task.distances(both).argmin())]
    return row


def tightened(task: Task, row: FloatArray, code: int) -> FloatArray:
    """Every changed column in turn takes its cheapest value that leaves the row valid."""
    for _ in range(2):
        before = row
        for j in np.flatnonzero(task.distances_by_column(row) > 0.0):
            row = _cheapest_value(task, row, int(j), code)
        if np.array_equal(before, row, equal_nan=True):
            break
    return row


def _cheapest_value(task: Task, row: FloatArray, j: int, code: int) -> FloatArray:
    values = _cheaper_values(task, row, j)
    for _ in range(2):
        if not len(values):
            return row
        rows = np.repeat(row[None, :], len(values), axis=0)
        rows[:, j] = values
        valid = task.is_valid(rows, code)
        if not valid.any():
            return row
        row = rows[int(valid.argmax())]
        values = _cheaper_values(task, row, j)
    return row


def _cheaper_values(task: Task, row: FloatArray, j: int) -> FloatArray:
    """Values of column j that cost less than its present one, cheapest first."""
    free, x = task.free, task.row[j]
    step = free.steps[j]
    if j in free.levels:
        values = np.array(free.levels[j])
    elif step is None:
        values = np.clip([x], free.low[j], free.high[j])  # its own one may be out of range
    else:
        last = round((row[j] - x) / step)
        count = min(abs(last), FINE_VALUES)
        k = np.unique(np.round(np.linspace(0, last, count + 1)))
        values = on_grid(x, k, step)
        values = values[(values >= free.low[j]) & (values <= free.high[j])]
    cost = free.change_cost(j, values, x)
    now = float(free.change_cost(j, row[j : j + 1], x)[0])
    order = np.argsort(cost, kind="stable")
    return values[order][cost[order] < now * (1.0 - 1e-12)]
