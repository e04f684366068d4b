"""The nearest row of one class, or the proof that there is none.

categories and stepped numbers   branch and bound: exact unless there are too many values
linear, continuous numbers       exact up to the log(M) / k between soft and hard regions,
                                 which is the gap between lower_bound and distance
curves, continuous numbers       search over segments, then exact within those found
Fourier, categories only         enumeration, if there are few combinations

With sparse="auto" the nearest row sets a limit of the distance, within which the fewest changed
columns are searched for: few of them by branch and bound, and more by ``few_columns.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.errors import NoShapes
from geomix.geometry.bounds import (
    ROUNDING,
    bound_by_columns,
    is_out_of_reach,
    plane_programs,
    reach_by_columns,
    soft_slack,
    straight_slopes,
)
from geomix.geometry.branch_and_bound import cheapest_choice
from geomix.geometry.continuous import continuous_row
from geomix.geometry.few_columns import ranking
from geomix.geometry.moves import Moves
from geomix.geometry.options import affordable, promising, undominated
from geomix.geometry.search import Aim
from geomix.geometry.segments import moves_of
from geomix.geometry.task import EASY, LEADS, Answer, Task
from geomix.geometry.tightening import refined_row, tightened

FEW = 3  # columns that change under sparse="auto", or more if these are not enough
FARTHEST = 4.0  # multiple of the nearest distance up to which few changes are preferred
MOST_TRIES = 5  # numbers of columns that are searched: nearly always the first or the second does
LOOSE = 1.5  # a distance beyond this multiple of its bound is searched again
MOST_COLUMNS = 12  # of continuous columns, in which a few changes are searched for
FEWER_PRICE = 1.5  # multiple of the distance with three changes for which one or two are preferred
# The first reach that is searched where columns are linked by pairs, and the factor to the next.
NEAREST, WIDER = 1e-3, 2.0
MOST_CLIMBS = 3  # passes over all columns and pairs
MOST_COMBINATIONS = 20_000  # rows that are enumerated for a Fourier model


def nearest_row(task: Task, code: int) -> Answer:
    if bool(task.is_valid(task.row[None, :], code)[0]) and not _is_forced(task):
        return Answer("found", code, task.row, 0.0, 0.0)
    if task.form is None:
        return _enumerated(task, code)
    moves = moves_of(task.form, task.row, task.free, task.norm, task.plane_scores)
    return _nearest(task, moves, code, _lower_bound(task, moves, code))


def nearest_rows(task: Task, codes: list[int]) -> list[Answer]:
    """The nearest row of each class that may have the nearest one of all.

    Classes come in the order of their bounds. One whose rows are all proved to be farther away
    than a row already found is skipped.
    """
    if task.form is None or len(codes) == 1:
        return [nearest_row(task, code) for code in codes]
    moves = moves_of(task.form, task.row, task.free, task.norm, task.plane_scores)
    bounds = {code: _lower_bound(task, moves, code) for code in codes}
    S = task.form.class_scores(task.row[None, :])[0]
    found: dict[int, Answer] = {}
    for code in sorted(codes, key=lambda code: (bounds[code], -S[code])):
        limit = min((one.distance for one in found.values()), default=np.inf)
        limit *= 1.0 + ROUNDING
        bound = bounds[code]
        if bound <= limit and np.isfinite(limit):
            bound = max(bound, _bound_within(task, moves, code, limit))
        if bound <= limit:
            answer = _nearest(task, moves, code, bounds[code], limit)
            found[code] = replace(answer, lower_bound=max(bound, answer.lower_bound))
    return [found[code] for code in codes if code in found]


def _nearest(task: Task, moves: Moves, code: int, bound: float, limit: float = np.inf) -> Answer:
    """The nearest row of a class. Beyond the limit, where it is not wanted, there may be nearer
    ones."""
    if np.isinf(bound) or task.has_empty_column:
        return Answer("infeasible", code, None, np.inf, np.inf)
    most = None if task.sparse == "auto" else task.sparse
    answer = _searched(task, moves, code, bound, most, limit)
    if most is None:
        answer = _nearer_by_few(task, moves, code, answer)
    if answer.distance > limit and not task.has_only_numbers:  # those are tightened at the end
        return answer
    if task.sparse == "auto" and answer.row is not None:
        answer = _sparser(task, moves, code, answer)
    elif task.sparse is None and answer.row is not None and not task.has_only_numbers:
        # Where levels or steps make the search inexact, few changes may turn out to be nearer.
        is_proved = answer.distance <= answer.lower_bound * (1.0 + 1e-9)
        few = answer if is_proved else _sparser(task, moves, code, answer)
        answer = few if few.distance < answer.distance else answer
    return _tightened(task, answer) if task.has_only_numbers else answer


def _nearer_by_few(task: Task, moves: Moves, code: int, answer: Answer) -> Answer:
    """The answer, or a nearer one with few changes. The search over all columns may miss a
    class that is predicted only in a narrow range between two others."""
    is_close = answer.distance <= LOOSE * answer.lower_bound
    if answer.row is None or is_close or task.is_discrete:
        return answer
    best = answer
    for n in range(1, min(FEW, len(task.row)) + 1):
        rows = _with_columns(task, moves, code, [n], best.distance)
        few = _answer(task, code, rows, answer.lower_bound, None, np.inf, False)
        best = few if few.distance < best.distance else best
    return best


def _tightened(task: Task, answer: Answer) -> Answer:
    if answer.row is None:
        return answer
    row = tightened(task, answer.row, answer.code)
    distance = task.distance(row)
    bound = min(answer.lower_bound, distance)
    return replace(answer, row=row, distance=distance, lower_bound=bound)


def _is_forced(task: Task) -> bool:
    """Whether the present row breaks the constraints."""
    return not task.free.allows(task.row).all()


def _levels(task: Task) -> list[tuple[int, list[float]]]:
    return list(task.free.levels.items())


def _sparser(task: Task, moves: Moves, code: int, nearest: Answer) -> Answer:
    """An answer with few changes, if it is not much further away."""
    assert nearest.row is not None
    best = nearest
    if task.n_changes(nearest.row) > FEW:
        best = _few_changes(task, moves, code, nearest)
        if best is nearest:
            return nearest
    # Continuous columns take a convex program per try, and gain little from it.
    for most in range(1, task.n_changes(best.row) if task.is_discrete else 1):
        limit = FEWER_PRICE * best.distance
        found = _searched(task, moves, code, nearest.lower_bound, most, limit)
        if found.row is not None and found.distance <= limit:
            return replace(found, lower_bound=nearest.lower_bound)
    return replace(best, lower_bound=nearest.lower_bound)


def _few_changes(task: Task, moves: Moves, code: int, nearest: Answer) -> Answer:
    """The fewest changed columns, FEW or more, that are not much further away."""
    limit = FARTHEST * nearest.distance
    if not task.has_only_numbers:
        found = _searched(task, moves, code, nearest.lower_bound, FEW, limit)
        if found.distance <= limit:
            return found
    counts = range(FEW, task.n_changes(nearest.row))
    rows = _with_columns(task, moves, code, counts, limit)
    return _answer(task, code, rows, nearest.lower_bound, FEW, limit, False) if rows else nearest


def _with_columns(
    task: Task, moves: Moves, code: int, counts: Iterable[int], limit: float
) -> list[FloatArray]:
    """Rows within the limit that change the fewest columns, of some counts."""
    ranks = ranking(moves, Aim(code, task.leads[0]), task.norm)
    for n in [n for n in counts if ranks.distance[n - 1] <= limit][:MOST_TRIES]:
        found = (continuous_row(task, moves.only(some), code) for some in ranks.sets(n))
        rows = [row for row in found if row is not None and task.n_changes(row) <= n]
        rows = [row for row in rows if task.distance(row) <= limit]
        if rows:
            return rows
    return []


def _searched(
    task: Task,
    moves: Moves,
    code: int,
    bound: float,
    most_changes: Any,
    limit: float = np.inf,
) -> Answer:
    """The best row of a class with at most ``most_changes`` changed columns."""
    assert task.form is not None
    if task.has_only_numbers:
        some = _by_columns(task, moves, code, most_changes, limit)
        if some:
            found = _answer(task, code, some, bound, most_changes, limit, False)
            return _bounded(task, moves, code, found, most_changes) if moves.pairs else found
    if task.form.pairs:
        return _searched_by_reach(task, moves, code, bound, most_changes, limit)
    rows: list[FloatArray] = []
    is_exact = False
    if task.is_discrete and task.effort is not EASY:
        row, is_exact = _chosen(task, task.options_for(code), code, most_changes, limit)
        rows += [] if row is None else [row]
    if not is_exact:
        # Bounds prune more if a distance is known to be enough.
        near = _by_columns(task, moves, code, most_changes, limit)
        rows += [tightened(task, row, code) for row in near]
        limit = min([limit, *map(task.distance, rows)])
        row, is_exact = _chosen(task, task.options_for(code), code, most_changes, limit)
        if row is not None and not task.is_discrete:
            row = refined_row(task, row, code)
        rows += [] if row is None else [row]
    is_proved = is_exact and task.is_discrete and all(one.is_complete for one in task.options)
    return _answer(task, code, rows, bound, most_changes, limit, is_proved)


def _by_columns(
    task: Task, moves: Moves, code: int, most_changes: Any, limit: float
) -> list[FloatArray]:
    """Rows by search over segments."""
    if most_changes is not None:
        return _with_columns(task, moves, code, [min(most_changes, len(task.row))], limit)
    row = continuous_row(task, moves, code)
    return [] if row is None else [row]


def _searched_by_reach(
    task: Task, moves: Moves, code: int, bound: float, most_changes: Any, limit: float
) -> Answer:
    """As ``_searched``, for pairs: branch and bound among the changes of at most r, for growing r.

    Bounds are tight where columns have few cells to move to, and few values need no thinning.
    """
    assert task.form is not None
    rows: list[FloatArray] = []
    is_exact, is_complete = False, False
    # Below both ends, so that changes are searched even if the bound is as far as they reach.
    r = WIDER * min(max(bound, NEAREST), 0.999 * min(limit, task.farthest))
    while not rows and r / WIDER < min(limit, task.farthest):
        r = min(r, limit) if r < task.farthest else limit
        options = task.options_within(r) if np.isfinite(r) else task.options
        row, is_exact = None, True
        if all(map(len, options)):
            some = [undominated(one, task.form.planes, code) for one in options]
            row, is_exact = _chosen(task, some, code, most_changes, r)
        is_complete = all(one.is_complete for one in options)
        rows += [] if row is None else [row]
        r = WIDER * r
    if most_changes is None and not (task.is_discrete and (rows or is_exact)):
        near = moves.within(task.distance(rows[0]), task.norm) if rows else moves
        change = continuous_row(task, near, code)
        change = _climbed(task, code) if change is None and not rows else change
        rows += [] if change is None else [change]
    if not task.is_discrete and rows:
        rows.append(refined_row(task, rows[0], code))
    is_proved = is_exact and task.is_discrete and is_complete
    found = _answer(task, code, rows, bound, most_changes, limit, is_proved)
    return found if is_proved else _bounded(task, moves, code, found, most_changes)


def _bounded(task: Task, moves: Moves, code: int, found: Answer, most_changes: Any) -> Answer:
    """The answer with a tighter bound: a nearer row is among the changes of its distance."""
    if found.row is None or most_changes is not None:
        return found
    proved = _bound_within(task, moves, code, found.distance)
    return replace(found, lower_bound=min(max(found.lower_bound, proved), found.distance))


def _bound_within(task: Task, moves: Moves, code: int, distance: float) -> float:
    """A lower bound of the distance of rows of a class, for rows within a distance."""
    aim = Aim(code, max(task.leads[0] - LEADS[0], 0.0))
    return bound_by_columns(moves.within(distance, task.norm), aim, task.norm)


def _climbed(task: Task, code: int) -> FloatArray | None:
    """A valid row by coordinate ascent: single columns, then pairs of them, take the options with
    the largest margin until the row is valid. It is a starting point for ``tightened``."""
    assert task.form is not None
    options, margin = task.options, -np.inf
    if not all(map(len, options)):
        return None
    row = task.row.copy()
    for one in options:  # a cell that is not allowed changes in any case
        row[one.column] = one.values[one.cost.argmin()]
    linked = [set(grid.columns) for grid in task.form.grids.grids]
    together = [pair for pair in combinations(options, 2) if {one.column for one in pair} in linked]
    for _ in range(MOST_CLIMBS):
        for columns in (*((one,) for one in options), *together):
            rows = np.repeat(row[None, :], prod(map(len, columns)), axis=0)
            places = np.indices([len(one) for one in columns]).reshape(len(columns), -1)
            for one, at in zip(columns, places, strict=True):
                rows[:, one.column] = one.values[at]
            S = task.form.class_scores(rows)
            margins = S[:, code] - np.delete(S, code, axis=1).max(axis=1)
            if margins.max() > margin:
                row, margin = rows[int(margins.argmax())], float(margins.max())
            if margin > 0.0 and task.is_valid(row[None, :], code)[0]:
                return row
    return None


def _answer(
    task: Task,
    code: int,
    rows: list[FloatArray],
    bound: float,
    most_changes: Any,
    limit: float,
    is_proved: bool,
) -> Answer:
    """The nearest of some rows; is_proved : whether no other row within the limit is nearer."""
    if not task.has_only_numbers:  # their row is tightened at the end
        rows = [tightened(task, one, code) for one in rows]
    best = min(rows, key=task.distance, default=None)
    if best is None:
        # With few changes, a row with more of them may be nearer than what was searched.
        at_least = max(bound, limit) if is_proved and most_changes is None else bound
        status = "infeasible" if is_proved and not np.isfinite(limit) else "not found"
        return Answer(status, code, None, np.inf, at_least)
    distance = task.distance(best)
    if is_proved and most_changes is None:
        bound = max(bound, distance * (1.0 - 1e-12))
    return Answer("found", code, best, distance, min(bound, distance))


def _chosen(
    task: Task, options: Any, code: int, most_changes: Any, limit: float
) -> tuple[FloatArray | None, bool]:
    """The cheapest combination of options, of which none dominates another, and whether that is
    proved."""
    assert task.form is not None
    most_cost = limit**task.norm * (1.0 + 1e-9)
    options = affordable(options, most_cost)
    if any(not len(one) for one in options):
        return None, True
    if most_changes is not None and not task.is_discrete:
        options = promising(options, task.form.planes, code, task.norm, MOST_COLUMNS)
    is_exact = True
    base = task.leads[0] - LEADS[0]
    for lead in LEADS:
        choice = cheapest_choice(
            options,
            task.form,
            task.row,
            Aim(code, base + lead),
            most_cost=most_cost,
            most_changes=most_changes,
            log_odds=None if task.log_odds is None else task.log_odds + lead,
            most_states=task.effort.n_states,
            Z=task.plane_scores,
        )
        is_exact = is_exact and choice.is_exact
        if choice.picked is None:
            return None, is_exact
        row = task.row.copy()
        for one, at in zip(options, choice.picked, strict=True):
            row[one.column] = one.values[at]
        if task.is_valid(row[None, :], code)[0]:
            return row, is_exact
    return None, False


def _enumerated(task: Task, code: int) -> Answer:
    """The nearest of all combinations of levels, for a model without shapes. The bound counts
    those too that change more columns than wanted."""
    columns = [j for j, codes in _levels(task) if not task.free.is_fixed(j, task.row[j])]
    sizes = [len(task.free.levels[j]) for j in columns]
    if np.prod(sizes, dtype=float) > MOST_COMBINATIONS:
        raise NoShapes(
            f"A Fourier model's counterfactuals are found by enumeration, and there are "
            f"{np.prod(sizes, dtype=float):.3g} combinations of levels; fix some columns with "
            "immutable or ranges, or fit with lift='spline'."
        )
    grid = np.indices(sizes).reshape(len(sizes), prod(sizes)).T
    rows = np.repeat(task.row[None, :], len(grid), axis=0)
    for at, j in enumerate(columns):
        rows[:, j] = np.array(task.free.levels[j])[grid[:, at]]
    rows = rows[task.is_valid(rows, code)]
    bound = float(task.distances(rows).min(initial=np.inf))
    if isinstance(task.sparse, (int, np.integer)):
        rows = rows[task.counts(rows) <= task.sparse]
    if not len(rows):
        return Answer("infeasible", code, None, np.inf, bound)
    row = rows[int(task.distances(rows).argmin())]
    return Answer("found", code, row, task.distance(row), bound)


def _lower_bound(task: Task, moves: Moves, code: int) -> float:
    """The larger of what columns and planes prove."""
    assert task.form is not None
    aim = Aim(code, max(task.leads[0] - LEADS[0], 0.0))
    stay = moves.unchanged
    if aim.is_met(task.form, moves.scores(stay)):
        return moves.cost(stay, task.norm) if moves.cost(stay, task.norm) > 0.0 else 0.0
    if moves.pairs and task.has_only_numbers and task.sparse in (None, "auto"):
        return np.inf if is_out_of_reach(moves, aim) else 0.0  # the rest: _bounded
    if moves.pairs:
        return reach_by_columns(moves, aim, task.norm)
    bound = bound_by_columns(moves, aim, task.norm)
    slopes = straight_slopes(task.form)
    if slopes is None or task.free.moves_levels or task.form.planes.n_members > 1:
        return bound
    number = np.array([shape.kind == "number" for shape in task.form.shapes]) & ~np.isnan(task.row)
    unit, at = task.free.scale[number], task.row[number]
    low, high = ((end[number] - at) / unit for end in (task.free.low, task.free.high))
    slack = soft_slack(task.form, code) - aim.lead
    # A level that is not allowed changes in any case.
    Z = moves.Z + moves.F[moves.at_a[stay.segments[~number]]].sum(axis=0)
    found = plane_programs(
        task.form, Z, slopes[:, number] * unit, code, task.norm, low, high, slack
    )
    return max(bound, min(one.lower_bound for one in found))
