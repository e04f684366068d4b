"""From a task to answers: the nearest row of the wanted classes, and others that differ from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from geomix.arrays import FloatArray
from geomix.explain.cells import decoded_row
from geomix.geometry.answers import Counterfactual
from geomix.geometry.nearest import nearest_rows
from geomix.geometry.task import Answer, Task


@dataclass(frozen=True, eq=False)
class Question:
    """A task, the classes that may be reached, and what its answer repeats."""

    task: Task
    targets: list[int]
    norm: str
    now: int
    target: Any

    def best(self) -> Counterfactual:
        return _best(self.task, self.targets, self.norm, self.now, self.target)


def _best(task: Task, targets: list[int], norm: str, now: int, target: Any) -> Counterfactual:
    answers = nearest_rows(task, targets)
    best = min(answers, key=lambda one: (one.distance, one.lower_bound))
    # Whichever class is nearest, none of them is nearer than the smallest bound. Classes that were
    # skipped are proved to be farther away than the best answer.
    bound = min(one.lower_bound for one in answers)
    if best.row is None and any(one.status == "not found" for one in answers):
        best = replace(best, status="not found")
    return _result(task, best, bound, norm, now, target)


def _result(
    task: Task, best: Answer, bound: float, norm: str, now: int, target: Any
) -> Counterfactual:
    labels = task.model.classes.tolist()
    after, probability = None, None
    if best.row is not None:
        after = _cells(task, best.row)
        P = task.model.answer("predict_proba", best.row[None, :])
        probability = float(P[0, best.code])
    return Counterfactual(
        best.status,
        labels[best.code] if best.row is not None or target is not None else None,
        labels[now],
        norm,
        _cells(task, task.row),
        after,
        best.distance,
        min(bound, best.distance),
        probability,
    )


def _cells(task: Task, row: FloatArray) -> dict[str, Any]:
    """Raw cells by column name, unchanged ones as they were given; integers where the column's
    step is an integer."""
    cells = decoded_row(task.model, row)
    for name, is_same in zip(list(cells), (row == task.row).tolist(), strict=True):
        if is_same:
            cells[name] = task.given[name]
    for (name, cell), step in zip(list(cells.items()), task.free.steps, strict=True):
        if step is not None and step == round(step) and cell is not None and cell == round(cell):
            cells[name] = int(cell)
    return cells


def diverse(question: Question, first: Counterfactual, n: int) -> tuple[Counterfactual, ...]:
    """Up to n answers: each next one may not change a column that an earlier one needs. A column
    whose own cell is not allowed changes in all of them."""
    task = question.task
    may_stay = dict(zip(task.model.columns, task.free.allows(task.row).tolist(), strict=True))
    found, barred = [first], [frozenset(first.changes)]
    names = list(task.model.columns)
    tried: list[frozenset[str]] = []
    while len(found) < n and barred:
        changed = barred.pop(0)
        for name in (one for one in names if one in changed and may_stay[one]):
            fixed = frozenset({name}) | (tried[0] if tried else frozenset())
            if len(found) == n or fixed in tried:
                continue
            tried.append(fixed)
            free = task.free.only(task.row, [j for j, one in enumerate(names) if one not in fixed])
            other = replace(question, task=replace(task, free=free)).best()
            is_new = all(set(other.changes) != set(one.changes) for one in found)
            if other.status == "found" and is_new:
                # Its own bound is that of rows that leave the barred columns as they are.
                bound = min(first.lower_bound, other.distance)
                found.append(replace(other, lower_bound=bound))
                barred.append(frozenset(other.changes))
    return tuple(sorted(found, key=lambda one: one.distance))
