"""Counterfactuals: the nearest row for which the model predicts another class.

"Found" means that ``model.predict`` itself predicts the target for the row. ``distance`` is in
standard deviations of the training rows, a changed level counts one, and ``costs`` multiply both.
``lower_bound`` is proved: no row of the target class is nearer. "infeasible" is proved too; a
search that finds nothing without a proof returns "not found".

    categories and stepped numbers   branch and bound: exact unless there are too many values
    linear, continuous numbers       exact up to the log(M) / k between soft and hard regions,
                                     which is the gap between lower_bound and distance
    curves, continuous numbers       search over segments, then exact within those found
    Fourier, categories only         enumeration, if there are few combinations

Integer columns stay integers: steps are learnt from the lift or from rows (``steps.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.explain.additive_form import Additive, NoShapes, pairless
from geomix.explain.cells import class_code, decoded_row, encoded_row, model_schema
from geomix.geometry.bounds import bound_by_columns, plane_programs, soft_slack, straight_slopes
from geomix.geometry.branch_and_bound import cheapest_choice
from geomix.geometry.constraints import Constraints, read_constraints, unit_sizes
from geomix.geometry.moves import Moves, moves_of
from geomix.geometry.options import Options, column_options, on_grid, undominated
from geomix.geometry.refinement import best_change
from geomix.geometry.search import Aim
from geomix.geometry.steps import column_steps
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

NORMS = {"l1": 1.0, "l2": 2.0}
LEADS = (1e-9, 1e-7, 1e-5, 1e-3)  # of a score: larger ones where rounding exceeds the smaller
FEW = 3  # columns that change under sparse="auto"
FARTHEST = 4.0  # multiple of the nearest distance up to which few changes are preferred
FEWER_PRICE = 1.5  # multiple of the distance with three changes for which one or two are preferred
MOST_COMBINATIONS = 20_000  # rows that are enumerated for a Fourier model
FINE_VALUES = 512  # values of a stepped number that are compared at once


@dataclass(frozen=True)
class _Effort:
    """Limits of branch and bound: values of a number, and partial choices kept."""

    n_values: int
    n_states: int


# Few planes have tight bounds, which prune nearly everything. Bounds of many planes are loose, and
# continuous columns are refined anyway: more effort would prove nothing there.
EASY, HARD, CONTINUOUS = _Effort(256, 1_500), _Effort(64, 1_500), _Effort(64, 400)
FEW_PLANES = 4


@dataclass(frozen=True)
class Counterfactual:
    """status : "found", "infeasible" (proved) or "not found" (not proved)
    target : the class asked for;  label : the predicted class of the row
    before, after : the row as it is and as it would have to be, raw cells by column name
    distance : between them, in standard deviations and changed levels;  lower_bound : proved
    probability : of the target after the change
    """

    status: str
    target: Any
    label: Any
    norm: str
    before: dict[str, Any]
    after: dict[str, Any] | None
    distance: float
    lower_bound: float
    probability: float | None

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """(before, after) of the columns that change."""
        if self.after is None:
            return {}
        pairs = ((name, (cell, self.after[name])) for name, cell in self.before.items())
        return {name: pair for name, pair in pairs if pair[0] != pair[1]}

    @property
    def is_nearest(self) -> bool:
        """Whether it is proved, up to a relative error of 1e-6, that no nearer row exists."""
        return self.status == "found" and self.distance <= self.lower_bound * (1.0 + 1e-6) + 1e-7

    def to_frame(self) -> Any:
        """A pandas frame with a line for each column that changes."""
        return frame_of(self._records(), ["column", "before", "after"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an infinite bound is None."""
        facts: dict[str, Any] = plain(asdict(self))
        changes = plain({name: list(pair) for name, pair in self.changes.items()})
        return facts | {"changes": changes, "is_nearest": self.is_nearest}

    def to_html(self) -> str:
        """A table of the changes, everything escaped."""
        return html_of("counterfactual", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"column": name, "before": before, "after": after}
            for name, (before, after) in self.changes.items()
        ]

    def _table(self) -> SmallTable:
        lines = tuple((name, a, b) for name, (a, b) in self.changes.items())
        if self.status == "found":
            title = (
                f"{self.label} becomes {self.target} ({self.probability:.1%}) at distance "
                f"{self.distance:.4g} ({self.norm}); none is nearer than {self.lower_bound:.4g}"
            )
        elif self.status == "infeasible":
            title = f"{self.label} cannot become {self.target} by the changes allowed: proved"
        else:
            title = (
                f"No way from {self.label} to {self.target} was found; that none exists is not "
                f"proved. None is shorter than {self.lower_bound:.4g}"
            )
        return SmallTable(title, ("column", "before", "after"), lines)


@dataclass(frozen=True)
class Counterfactuals:
    """Several counterfactuals of one row, nearest first, that change different sets of columns."""

    found: tuple[Counterfactual, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.found)

    def __getitem__(self, i: int) -> Counterfactual:
        return self.found[i]

    def to_frame(self) -> Any:
        """A pandas frame with a line for each change of each counterfactual."""
        records = [{"answer": i} | one for i, cf in enumerate(self.found) for one in cf._records()]
        return frame_of(records, ["answer", "column", "before", "after"])

    def to_dict(self) -> dict[str, Any]:
        return {"counterfactuals": [one.to_dict() for one in self.found]}

    def to_html(self) -> str:
        return html_of("counterfactual", [one._table() for one in self.found])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.found))


def counterfactual(
    model: GeometricMixture,
    x: Any,
    target: Any = None,
    *,
    immutable: Any = (),
    increase_only: Any = (),
    decrease_only: Any = (),
    ranges: Mapping[Any, Any] | None = None,
    norm: str = "l2",
    sparse: int | str | None = "auto",
    scale: Mapping[Any, float] | None = None,
    costs: Mapping[Any, float] | None = None,
    steps: Mapping[Any, float | None] | None = None,
    probability: float | None = None,
    X: Any = None,
) -> Counterfactual:
    """The row nearest to ``x`` for which the model predicts ``target`` (None: any other class).

    immutable, increase_only, decrease_only : columns by name or position
    ranges : (lowest, highest) of a number, or the allowed levels of a category, by column
    norm : "l2" or "l1"
    sparse : most columns that change; None: any number, for the nearest row. "auto": up to three
        columns, unless that is more than 4 times as far as the nearest row
    scale : the change of a number that counts as one unit; its standard deviation otherwise
    costs : factors of the cost of a change, by column
    steps : by column, the step of a number's changes, or None for a continuous column. Otherwise
        learnt from rows ``X`` or from a spline lift's knots: integers stay integers
    probability : least probability of the target

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> found = counterfactual(model, X[0], target=1)
    >>> found.status, bool(found.lower_bound <= found.distance)
    ('found', True)
    """
    limits = _Limits(immutable, increase_only, decrease_only, ranges, scale, costs, steps, X)
    return _asked(model, x, target, norm, sparse, probability, limits).best()


def counterfactuals(
    model: GeometricMixture,
    x: Any,
    target: Any = None,
    *,
    n: int = 3,
    immutable: Any = (),
    increase_only: Any = (),
    decrease_only: Any = (),
    ranges: Mapping[Any, Any] | None = None,
    norm: str = "l2",
    sparse: int | str | None = "auto",
    scale: Mapping[Any, float] | None = None,
    costs: Mapping[Any, float] | None = None,
    steps: Mapping[Any, float | None] | None = None,
    probability: float | None = None,
    X: Any = None,
) -> Counterfactuals:
    """Up to ``n`` counterfactuals that change different sets of columns, nearest first.

    The other parameters are those of ``counterfactual``.
    """
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"Got n={n!r}; expected an integer of at least 1.")
    limits = _Limits(immutable, increase_only, decrease_only, ranges, scale, costs, steps, X)
    question = _asked(model, x, target, norm, sparse, probability, limits)
    return Counterfactuals(_diverse(question, question.best(), n))


@dataclass(frozen=True, eq=False)
class _Limits:
    """The user's constraints, as given."""

    immutable: Any
    increase_only: Any
    decrease_only: Any
    ranges: Mapping[Any, Any] | None
    scale: Mapping[Any, float] | None
    costs: Mapping[Any, float] | None
    steps: Mapping[Any, float | None] | None
    X: Any


@dataclass(frozen=True, eq=False)
class _Question:
    """A task, the classes that may be reached, and what its answer repeats."""

    task: _Task
    targets: list[int]
    norm: str
    now: int
    target: Any

    def best(self) -> Counterfactual:
        return _best(self.task, self.targets, self.norm, self.now, self.target)


def _asked(
    model: GeometricMixture,
    x: Any,
    target: Any,
    norm: str,
    sparse: int | str | None,
    probability: float | None,
    limits: _Limits,
) -> _Question:
    _check_settings(norm, sparse, probability)
    form = _form(model)
    row = encoded_row(model, x)
    free = read_constraints(
        model,
        unit_sizes(model, form, limits.scale),
        row,
        immutable=limits.immutable,
        increase_only=limits.increase_only,
        decrease_only=limits.decrease_only,
        ranges=limits.ranges,
        costs=limits.costs,
        steps=column_steps(model, row, limits.X, limits.steps),
    )
    now = int(model.answer("class_scores", row[None, :])[0].argmax())
    wanted = [class_code(model, target)] if target is not None else None
    targets = wanted or [code for code in range(len(model.classes)) if code != now]
    task = _Task(model, form, row, free, NORMS[norm], sparse, probability)
    return _Question(task, targets, norm, now, target)


def _check_settings(norm: str, sparse: Any, probability: Any) -> None:
    if norm not in NORMS:
        raise ValueError(f"Got norm={norm!r}; expected one of {list(NORMS)}.")
    is_count = isinstance(sparse, (int, np.integer)) and sparse >= 1
    if sparse is not None and sparse != "auto" and not is_count:
        raise ValueError(
            f"Got sparse={sparse!r}; expected 'auto', None or an integer of at least 1."
        )
    if probability is not None and not 0.0 < probability < 1.0:
        raise ValueError(f"Got probability={probability!r}; expected one between 0 and 1.")


def _form(model: GeometricMixture) -> Additive | None:
    """The additive form; None for a model without one whose columns are all categories."""
    try:
        return pairless(model)
    except NoShapes:
        if model_schema(model).is_category.all():
            return None
        raise


@dataclass(frozen=True, eq=False)
class _Task:
    model: GeometricMixture
    form: Additive | None
    row: FloatArray
    free: Constraints
    norm: float
    sparse: int | str | None
    probability: float | None

    @cached_property
    def options(self) -> list[Options]:
        assert self.form is not None
        n_values = self.effort.n_values
        return column_options(self.form, self.row, self.free, self.norm, n_values)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether every column that may change has levels or steps."""
        free, cells = self.free, enumerate(self.row.tolist())
        return all(
            j in free.levels or free.steps[j] is not None or free.is_fixed(j, x) for j, x in cells
        )

    @property
    def effort(self) -> _Effort:
        few = self.form is not None and self.form.planes.n_planes <= FEW_PLANES
        return CONTINUOUS if not self.is_discrete else EASY if few else HARD

    @property
    def log_odds(self) -> float | None:
        p = self.probability
        return None if p is None else float(np.log(p) - np.log1p(-p))

    @property
    def leads(self) -> tuple[float, ...]:
        """Leads of the target's score over each rival to try in turn. A probability p needs a lead
        of T log(p / (1 - p)), and T log((C - 1) p / (1 - p)) is always enough."""
        if self.log_odds is None:
            return LEADS
        T, n_rivals = self.model.temperature, len(self.model.classes) - 1
        least, enough = T * self.log_odds, T * (self.log_odds + float(np.log(n_rivals)))
        parts = np.linspace(least, enough, 4 if n_rivals > 1 else 1)
        return tuple(max(float(parts[min(i, len(parts) - 1)]), 0.0) + LEADS[i] for i in range(4))

    def is_valid(self, rows: FloatArray, code: int) -> BoolArray:
        """(n,) whether the model predicts the class, with the wanted probability."""
        valid = self.model.answer("class_scores", rows).argmax(axis=1) == code
        if self.probability is not None:
            valid &= self.model.answer("predict_proba", rows)[:, code] >= self.probability
        return np.asarray(valid)

    def distances(self, rows: FloatArray) -> FloatArray:
        """(n,) between the row and others, as they would be written down."""
        return np.asarray(np.linalg.norm(self._costs(rows), self.norm, axis=1))

    def distances_by_column(self, row: FloatArray) -> FloatArray:
        """(n_columns,) cost of each column's change."""
        return self._costs(row[None, :])[0]

    def n_changes(self, row: FloatArray | None) -> int:
        return 0 if row is None else int((self.distances_by_column(row) > 0.0).sum())

    def _costs(self, rows: FloatArray) -> FloatArray:
        costs = np.zeros(rows.shape)
        for j, x in enumerate(self.row.tolist()):
            if not np.isnan(x):
                costs[:, j] = self.free.change_cost(j, rows[:, j], x)
        return costs


@dataclass(frozen=True, eq=False)
class _Answer:
    status: str
    code: int
    row: FloatArray | None
    distance: float
    lower_bound: float


def _best(task: _Task, targets: list[int], norm: str, now: int, target: Any) -> Counterfactual:
    answers = [_nearest(task, code) for code in targets]
    best = min(answers, key=lambda one: (one.distance, one.lower_bound))
    # Whichever class is nearest, none of them is nearer than the smallest bound.
    bound = min(one.lower_bound for one in answers)
    if best.row is None and any(one.status == "not found" for one in answers):
        best = replace(best, status="not found")
    return _result(task, best, bound, norm, now, target)


def _result(
    task: _Task, best: _Answer, bound: float, norm: str, now: int, target: Any
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


def _cells(task: _Task, row: FloatArray) -> dict[str, Any]:
    """Raw cells by column name; integers where the column's step is an integer."""
    cells = decoded_row(task.model, row)
    for (name, cell), step in zip(list(cells.items()), task.free.steps, strict=True):
        if step is not None and step == round(step) and cell is not None and cell == round(cell):
            cells[name] = int(cell)
    return cells


def _diverse(question: _Question, first: Counterfactual, n: int) -> tuple[Counterfactual, ...]:
    """Up to n answers: each next one may not change a column that an earlier one needs."""
    task = question.task
    found, barred = [first], [frozenset(first.changes)]
    names = list(task.model.columns)
    tried: list[frozenset[str]] = []
    while len(found) < n and barred:
        changed = barred.pop(0)
        for name in sorted(changed, key=lambda one: names.index(one)):
            fixed = frozenset({name}) | (tried[0] if tried else frozenset())
            if len(found) == n or fixed in tried:
                continue
            tried.append(fixed)
            free = task.free.only(task.row, [j for j, one in enumerate(names) if one not in fixed])
            other = replace(question, task=replace(task, free=free)).best()
            is_new = all(set(other.changes) != set(one.changes) for one in found)
            if other.status == "found" and is_new:
                found.append(other)
                barred.append(frozenset(other.changes))
    return tuple(sorted(found, key=lambda one: one.distance))


# --- the nearest row of one class ---


def _nearest(task: _Task, code: int) -> _Answer:
    if bool(task.is_valid(task.row[None, :], code)[0]) and not _is_forced(task):
        return _Answer("found", code, task.row, 0.0, 0.0)
    if task.form is None:
        return _enumerated(task, code)
    moves = moves_of(task.form, task.row, task.free, task.norm)
    bound = _lower_bound(task, moves, code)
    if np.isinf(bound):
        return _Answer("infeasible", code, None, np.inf, np.inf)
    most = None if task.sparse == "auto" else task.sparse
    answer = _searched(task, moves, code, bound, most)
    if task.sparse == "auto" and answer.row is not None:
        answer = _sparser(task, moves, code, answer)
    return answer


def _is_forced(task: _Task) -> bool:
    """Whether the present row breaks the constraints."""
    limits = (task.row < task.free.low) | (task.row > task.free.high)
    allowed = all(task.row[j] in codes or np.isnan(task.row[j]) for j, codes in _levels(task))
    return bool(limits.any()) or not allowed


def _levels(task: _Task) -> list[tuple[int, list[float]]]:
    return list(task.free.levels.items())


def _sparser(task: _Task, moves: Moves, code: int, nearest: _Answer) -> _Answer:
    """An answer with few changes, if it is not much further away."""
    assert nearest.row is not None
    best = nearest
    if task.n_changes(nearest.row) > FEW:
        limit = FARTHEST * nearest.distance
        best = _searched(task, moves, code, nearest.lower_bound, FEW, limit)
        if best.row is None or best.distance > limit:
            return nearest
    # Continuous columns take a convex program per try, and gain little from it.
    for most in range(1, task.n_changes(best.row) if task.is_discrete else 1):
        limit = FEWER_PRICE * best.distance
        found = _searched(task, moves, code, nearest.lower_bound, most, limit)
        if found.row is not None and found.distance <= limit:
            return replace(found, lower_bound=nearest.lower_bound)
    return replace(best, lower_bound=nearest.lower_bound)


def _searched(
    task: _Task,
    moves: Moves,
    code: int,
    bound: float,
    most_changes: Any,
    limit: float = np.inf,
) -> _Answer:
    """The best row of a class with at most ``most_changes`` changed columns."""
    assert task.form is not None
    options = task.options
    if any(not len(one) for one in options):
        return _Answer("infeasible", code, None, np.inf, np.inf)
    is_discrete = task.is_discrete
    rows, is_exact = [], False
    is_hard = task.effort is not EASY
    if most_changes is None and is_hard:
        change = _continuous(task, moves, code)
        rows += [] if change is None else [change]
        limit = min([limit, *task.distances(np.array(rows)).tolist()]) if rows else limit
    if is_discrete or most_changes is not None or not _is_convex(task):
        row, is_exact = _chosen(task, options, code, most_changes, limit)
        if row is not None and not is_discrete:
            row = _refined(task, row, code)
        rows += [] if row is None else [row]
    if not rows and most_changes is None and not is_hard and not is_exact:
        change = _continuous(task, moves, code)
        rows += [] if change is None else [change]
    rows = [_tightened(task, one, code) for one in rows]
    best = min(rows, key=lambda one: float(task.distances(one[None, :])[0]), default=None)
    is_proved = is_exact and is_discrete and all(one.is_complete for one in options)
    if best is None:
        proved = is_proved and not np.isfinite(limit)  # no row was found that sets a limit
        status, at_least = ("infeasible", np.inf) if proved else ("not found", bound)
        return _Answer(status, code, None, np.inf, at_least)
    distance = float(task.distances(best[None, :])[0])
    if is_proved and most_changes is None:
        bound = max(bound, distance * (1.0 - 1e-12))
    return _Answer("found", code, best, distance, min(bound, distance))


def _is_convex(task: _Task) -> bool:
    """Whether only numbers of a linear model move, for which convex programs are exact."""
    assert task.form is not None
    is_straight = straight_slopes(task.form) is not None and task.form.planes.n_members == 1
    return is_straight and not task.free.moves_levels


def _chosen(
    task: _Task, options: Any, code: int, most_changes: Any, limit: float
) -> tuple[FloatArray | None, bool]:
    """The cheapest combination of options, and whether that is proved."""
    assert task.form is not None
    Z = task.form.scores(task.row[None, :])[0]
    kept = [undominated(one, task.form.planes, code) for one in options]
    most_cost = limit**task.norm * (1.0 + 1e-9)
    is_exact = True
    base = task.leads[0] - LEADS[0]
    for lead in LEADS:
        choice = cheapest_choice(
            kept,
            task.form,
            Z,
            Aim(code, base + lead),
            most_cost=most_cost,
            most_changes=most_changes,
            log_odds=None if task.log_odds is None else task.log_odds + lead,
            most_states=task.effort.n_states,
        )
        is_exact = is_exact and choice.is_exact
        if choice.picked is None:
            return None, is_exact
        row = task.row.copy()
        for one, at in zip(kept, choice.picked, strict=True):
            row[one.column] = one.values[at]
        if task.is_valid(row[None, :], code)[0]:
            return row, is_exact
    return None, False


def _continuous(task: _Task, moves: Moves, code: int) -> FloatArray | None:
    """A row by search over segments, its stepped numbers rounded away from the present row."""
    for lead in task.leads:
        change = best_change(moves, Aim(code, lead), task.norm)
        if change is None:
            return None
        row = _stepped(task, moves.changed_row(change))
        if task.is_valid(row[None, :], code)[0]:
            return row
    return None


def _stepped(task: _Task, row: FloatArray) -> FloatArray:
    """The row with stepped numbers on their grids, rounded away from the present cell."""
    row = row.copy()
    for j, step in enumerate(task.free.steps):
        if step is not None and row[j] != task.row[j] and not np.isnan(row[j]):
            k = (row[j] - task.row[j]) / step
            k = np.sign(k) * np.ceil(np.abs(k) - 1e-9)
            value = float(on_grid(task.row[j], np.array([k]), step)[0])
            if task.free.low[j] <= value <= task.free.high[j]:
                row[j] = value
    return row


def _refined(task: _Task, row: FloatArray, code: int) -> FloatArray | None:
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
    moves = moves_of(task.form, task.row, fixed, task.norm)
    for lead in task.leads:
        change = best_change(moves, Aim(code, lead), task.norm)
        if change is None:
            return row
        better = moves.changed_row(change)
        if task.is_valid(better[None, :], code)[0]:
            both = np.stack([row, better])
            return both[int(task.distances(both).argmin())]
    return row


def _tightened(task: _Task, row: FloatArray, code: int) -> FloatArray:
    """Every changed column in turn takes its cheapest value that leaves the row valid."""
    for _ in range(2):
        before = row
        for j in np.flatnonzero(task.distances_by_column(row) > 0.0):
            row = _cheapest_value(task, row, int(j), code)
        if np.array_equal(before, row, equal_nan=True):
            break
    return row


def _cheapest_value(task: _Task, row: FloatArray, j: int, code: int) -> FloatArray:
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


def _cheaper_values(task: _Task, row: FloatArray, j: int) -> FloatArray:
    """Values of column j that cost less than its present one, cheapest first."""
    free, x = task.free, task.row[j]
    step = free.steps[j]
    if j in free.levels:
        values = np.array(free.levels[j])
    elif step is None:
        values = np.array([x])
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


def _enumerated(task: _Task, code: int) -> _Answer:
    """All combinations of levels in the order of their distances, for a model without shapes."""
    columns = [j for j, codes in _levels(task) if not task.free.is_fixed(j, task.row[j])]
    sizes = [len(task.free.levels[j]) for j in columns]
    if np.prod(sizes, dtype=float) > MOST_COMBINATIONS:
        raise NoShapes(
            f"A Fourier model's counterfactuals are found by enumeration, and there are "
            f"{np.prod(sizes, dtype=float):.3g} combinations of levels; fix some columns with "
            "immutable or ranges, or fit with lift='spline'."
        )
    grid = np.indices(sizes).reshape(len(sizes), -1).T
    rows = np.repeat(task.row[None, :], len(grid), axis=0)
    for at, j in enumerate(columns):
        rows[:, j] = np.array(task.free.levels[j])[grid[:, at]]
    distances = task.distances(rows)
    if isinstance(task.sparse, (int, np.integer)):
        few = (rows != task.row).sum(axis=1) <= task.sparse
        rows, distances = rows[few], distances[few]
    order = np.argsort(distances, kind="stable")
    valid = task.is_valid(rows[order], code)
    if not valid.any():
        return _Answer("infeasible", code, None, np.inf, np.inf)
    at = order[int(valid.argmax())]
    return _Answer("found", code, rows[at], float(distances[at]), float(distances[at]))


def _lower_bound(task: _Task, moves: Moves, code: int) -> float:
    """The larger of what columns and planes prove."""
    assert task.form is not None
    aim = Aim(code, max(task.leads[0] - LEADS[0], 0.0))
    stay = moves.cheapest(np.zeros(len(moves.values)), 0.0, 2.0)
    if aim.is_met(task.form, moves.scores(stay)):
        return moves.cost(stay, task.norm) if moves.cost(stay, task.norm) > 0.0 else 0.0
    bound = bound_by_columns(moves, aim, task.norm)
    slopes = straight_slopes(task.form)
    if slopes is None or task.free.moves_levels or task.form.planes.n_members > 1:
        return bound
    number = np.array([shape.kind == "number" for shape in task.form.shapes]) & ~np.isnan(task.row)
    unit, at = task.free.scale[number], task.row[number]
    low, high = ((end[number] - at) / unit for end in (task.free.low, task.free.high))
    slack = soft_slack(task.form, code) - aim.lead
    found = plane_programs(
        task.form, moves.Z, slopes[:, number] * unit, code, task.norm, low, high, slack
    )
    return max(bound, min(one.lower_bound for one in found))
