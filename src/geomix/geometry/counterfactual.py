"""The nearest row that the model gives to another class.

The *soft* model is asked: a row that is called found has been answered with the target class by
``model.predict`` itself. ``distance`` is measured in standard deviations of the training rows (a
changed level counts one), ``lower_bound`` is proved: no row of the target class is nearer, whatever
the search has missed. "infeasible" is said only where that is proved too; a search that came back
empty-handed without a proof says "not found".

    linear, only numbers change   exact up to the log(M) / k between soft and hard regions, which
                                  is what lies between lower_bound and distance
    categories, splines           found by search over segments, then exact within those found
    committees                    the same; the bound is by columns, and looser
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive, pairless
from geomix.explain.cells import class_code, decoded_row, encoded_row
from geomix.geometry.bounds import bound_by_columns, plane_programs, soft_slack, straight_slopes
from geomix.geometry.constraints import Constraints, read_constraints
from geomix.geometry.moves import Moves, moves_of
from geomix.geometry.refinement import best_change
from geomix.geometry.search import Aim
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

NORMS = {"l1": 1.0, "l2": 2.0}
LEADS = (1e-9, 1e-7, 1e-5, 1e-3)  # of a score: more where rounding has eaten the one before


@dataclass(frozen=True)
class Counterfactual:
    """status : "found", "infeasible" (proved) or "not found"
    target : the class that was asked for;  label : that of the row asked about
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
        """Whether it is proved that no nearer row exists, but for a millionth."""
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
            title = f"{self.label} cannot become {self.target} by the changes allowed"
        else:
            title = (
                f"No way from {self.label} to {self.target} was found; none is shorter than "
                f"{self.lower_bound:.4g}"
            )
        return SmallTable(title, ("column", "before", "after"), lines)


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
    sparse: int | None = None,
    scale: Mapping[Any, float] | None = None,
) -> Counterfactual:
    """The row nearest to ``x`` that the model gives to ``target`` (None: to any other class).

    immutable, increase_only, decrease_only : columns by name or position
    ranges : (lowest, highest) of a number, or the allowed levels of a category, by column
    norm : "l2" or "l1";  sparse : at most so many columns change
    scale : what counts as one unit of a number's change, where not its standard deviation

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
    if norm not in NORMS:
        raise ValueError(f"Got norm={norm!r}; expected one of {list(NORMS)}.")
    if sparse is not None and (not isinstance(sparse, (int, np.integer)) or sparse < 1):
        raise ValueError(f"Got sparse={sparse!r}; expected None or an integer of at least 1.")
    form = pairless(model)
    row = encoded_row(model, x)
    limits = {"immutable": immutable, "increase_only": increase_only}
    limits |= {"decrease_only": decrease_only, "ranges": ranges, "scale": scale}
    free = read_constraints(model, form, row, **limits)
    now = int(model.answer("class_scores", row[None, :])[0].argmax())
    wanted = [class_code(model, target)] if target is not None else None
    targets = wanted or [code for code in range(len(model.classes)) if code != now]
    task = _Task(model, form, row, free, NORMS[norm], sparse)
    answers = [_nearest(task, code) for code in targets]
    best = min(answers, key=lambda one: (one.distance, one.lower_bound))
    # Whichever class is nearest, none of them is nearer than the smallest bound.
    bound = min(one.lower_bound for one in answers)
    if best.row is None and any(one.status == "not found" for one in answers):
        best = replace(best, status="not found")
    return _told(task, best, bound, norm, now, target)


@dataclass(frozen=True, eq=False)
class _Task:
    model: GeometricMixture
    form: Additive
    row: FloatArray
    free: Constraints
    norm: float
    sparse: int | None


@dataclass(frozen=True, eq=False)
class _Answer:
    status: str
    code: int
    row: FloatArray | None
    distance: float
    lower_bound: float


def _told(
    task: _Task, best: _Answer, bound: float, norm: str, now: int, target: Any
) -> Counterfactual:
    labels = task.model.classes.tolist()
    after, probability = None, None
    if best.row is not None:
        after = decoded_row(task.model, best.row)
        P = task.model.answer("predict_proba", best.row[None, :])
        probability = float(P[0, best.code])
    return Counterfactual(
        best.status,
        labels[best.code] if best.row is not None or target is not None else None,
        labels[now],
        norm,
        decoded_row(task.model, task.row),
        after,
        best.distance,
        min(bound, best.distance),
        probability,
    )


def _nearest(task: _Task, code: int) -> _Answer:
    moves = moves_of(task.form, task.row, task.free)
    bound = _lower_bound(task, moves, code)
    if np.isinf(bound):
        return _Answer("infeasible", code, None, np.inf, np.inf)
    best: FloatArray | None = None
    distance = np.inf
    for some in _column_sets(task, moves, code):
        within = moves if some is None else _restricted(task, some)
        found = _with_lead(task, within, code)
        if found is not None and found[1] < distance:
            best, distance = found
    status = "not found" if best is None else "found"
    return _Answer(status, code, best, distance, bound)


def _restricted(task: _Task, columns: IntArray) -> Moves:
    return moves_of(task.form, task.row, task.free.only(task.row, columns.tolist()))


def _with_lead(task: _Task, moves: Moves, code: int) -> tuple[FloatArray, float] | None:
    """The changed row and its distance, once the model itself agrees with the answer."""
    for lead in LEADS:
        change = best_change(moves, Aim(code, lead), task.norm)
        if change is None:
            return None
        row = moves.changed_row(change)
        if int(task.model.answer("class_scores", row[None, :])[0].argmax()) == code:
            return row, _distance(task, row)
    return None


def _distance(task: _Task, row: FloatArray) -> float:
    """Between the rows themselves, as they would be written down."""
    is_level = np.isin(np.arange(len(row)), list(task.free.levels))
    with np.errstate(invalid="ignore"):
        t = np.where(is_level, row != task.row, (row - task.row) / task.free.scale)
    t = np.where(np.isnan(row) | np.isnan(task.row), 0.0, t)
    return float(np.linalg.norm(t, task.norm))


def _column_sets(task: _Task, moves: Moves, code: int) -> list[IntArray | None]:
    """Which columns may change: all (None), or sets of at most ``sparse`` to try."""
    if task.sparse is None:
        return [None]
    change = best_change(moves, Aim(code, LEADS[0]), task.norm)
    n_columns = len(task.row)
    if task.sparse == 1:
        return [np.array([j]) for j in range(n_columns)]
    sets: list[IntArray | None] = []
    form = task.form
    A = form.planes.pooled(moves.Z[None, :], form.sharpness)[1][0]
    rival = int(Aim(code, 0.0).margins(form, moves.Z).argmin())
    class_of = form.planes.class_of
    gain = moves.F @ (A * (class_of == code) - A * (class_of == rival))
    near = np.minimum(np.abs(moves.t_a), np.abs(moves.t_b)) <= 4.0
    ends = np.where(near, np.maximum(gain[moves.at_a], gain[moves.at_b]), 0.0)
    width = np.maximum(moves.width, 1.0)
    potential = np.maximum.reduceat(ends / width, moves.column_start[:-1])
    sets.append(np.argsort(-potential, kind="stable")[: task.sparse])
    if change is not None:
        a, b = moves.at_a[change.segments], moves.at_b[change.segments]
        part = (change.t - moves.t_a[change.segments]) / moves.safe_width[change.segments]
        gained = (1.0 - part) * gain[a] + part * gain[b]
        sets.append(np.argsort(-gained, kind="stable")[: task.sparse])
    return sets


def _lower_bound(task: _Task, moves: Moves, code: int) -> float:
    """The larger of what columns and planes prove."""
    aim = Aim(code, 0.0)
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
    slack = soft_slack(task.form, code)
    found = plane_programs(
        task.form, moves.Z, slopes[:, number] * unit, code, task.norm, low, high, slack
    )
    return max(bound, min(one.lower_bound for one in found))
