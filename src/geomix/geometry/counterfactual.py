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
from scipy.optimize import brentq

from geomix.additive import Additive, NoShapes, additive
from geomix.arrays import FloatArray, IntArray
from geomix.cells import class_code, decoded_row, encoded_row
from geomix.geometry.bounds import bound_by_columns, plane_programs, soft_slack, straight_slopes
from geomix.geometry.freedom import Freedom, freedom
from geomix.geometry.moves import Aim, Change, Moves, moves_of, search
from geomix.geometry.projection import nearest_point
from geomix.model import GeometricMixture
from geomix.small_tables import SmallTable, frame_of, html_of, plain

NORMS = {"l1": 1.0, "l2": 2.0}
LEADS = (1e-9, 1e-7, 1e-5, 1e-3)  # of a score: more where rounding has eaten the one before
POLISH_STEPS = 8
MOST_STARTS = 6
MOST_POLISHED = 3


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
        told: dict[str, Any] = plain(asdict(self))
        changes = plain({name: list(pair) for name, pair in self.changes.items()})
        return told | {"changes": changes, "is_nearest": self.is_nearest}

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
    free = freedom(model, form, row, **limits)
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


def pairless(model: GeometricMixture) -> Additive:
    """The additive form, for questions that a pair of columns makes too hard."""
    form = additive(model)
    if form.pairs:
        raise NoShapes("A spline lift with pairs of columns has no exact geometry; fit without.")
    return form


@dataclass(frozen=True, eq=False)
class _Task:
    model: GeometricMixture
    form: Additive
    row: FloatArray
    free: Freedom
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
        change = _best_change(moves, Aim(code, lead), task.norm)
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


# --- searching ---


def _best_change(moves: Moves, aim: Aim, norm: float) -> Change | None:
    """The cheapest of what several starts lead to, each made exact within its segments."""
    stay = moves.cheapest(np.zeros(len(moves.values)), 0.0, 2.0)
    if aim.is_met(moves.form, moves.scores(stay)):
        return stay
    best: Change | None = None
    cost = np.inf
    for start in _from_planes(moves, aim, norm):
        change = polished(moves, aim, norm, start)
        if moves.cost(change, norm) < cost:
            best, cost = change, moves.cost(change, norm)
    if best is not None:
        return best
    found = [
        search(moves, aim, metric, A) for A in _starts(moves, aim) for metric in sorted({2.0, norm})
    ]
    reached = sorted((one for one in found if one), key=lambda one: moves.cost(one, norm))
    for start in reached[:MOST_POLISHED]:
        change = polished(moves, aim, norm, start)
        if moves.cost(change, norm) < cost:
            best, cost = change, moves.cost(change, norm)
    return best


def _from_planes(moves: Moves, aim: Aim, norm: float) -> list[Change]:
    """Valid changes of a linear model's numbers: one convex program for each plane of the target.

    Where z_m leads every plane of the other classes by log(M) / k, the soft model agrees.
    """
    form = moves.form
    straight = straight_slopes(form)
    if straight is None or (moves.c0 > 0.0).any() or form.planes.n_members > 1:
        return []
    stay = moves.cheapest(np.zeros(len(moves.values)), 0.0, 2.0)
    slopes = moves.slopes(stay.segments)
    low, high = moves.cell_low[stay.segments], moves.cell_high[stay.segments]
    Z = moves.scores(stay) - stay.t @ slopes
    # A little more than is asked, so that the solver's rounding leaves a valid start.
    lead = aim.lead + 1e-7 * (1.0 + float(np.abs(Z).max()))
    lead += max(soft_slack(form, k) for k in range(form.planes.n_classes))
    found = plane_programs(form, Z, slopes.T, aim.target, norm, low, high, -lead)
    points = sorted(
        (one.point for one in found if one.point is not None),
        key=lambda t: float(np.linalg.norm(t, norm)),
    )
    changes = [
        _settled(moves, stay.segments, moves._columns, np.clip(t, low, high), stay)
        for t in points[:MOST_STARTS]
    ]
    return [one for one in changes if aim.is_met(form, moves.scores(one))]


def _starts(moves: Moves, aim: Aim) -> list[FloatArray]:
    """Responsibilities to set out with: those of the row, and each plane of the target alone."""
    form = moves.form
    planes = form.planes
    A = planes.pooled(moves.Z[None, :], form.sharpness)[1][0]
    own = np.flatnonzero(planes.class_of == aim.target)
    starts = [A]
    if len(own) == 1 or planes.n_members > 1:
        return starts
    for m in own[np.argsort(-moves.Z[own])][:MOST_STARTS]:
        alone = np.where(planes.class_of == aim.target, 0.0, A)
        alone[m] = 1.0
        starts.append(alone)
    return starts[1:] if len(own) <= MOST_STARTS else starts


def polished(moves: Moves, aim: Aim, norm: float, change: Change) -> Change:
    """The nearest change within the linear pieces that ``change`` lies in.

    Levels stay. In turn the margins are replaced by their tangents (exact but for the curvature of
    the soft-OR), the nearest point that fulfils those is taken, and pulled back towards the last
    valid one as far as the soft model asks.
    """
    segments, form = change.segments, moves.form
    free = np.flatnonzero(moves.cell_high[segments] > moves.cell_low[segments])
    if not len(free):
        return change
    slopes = moves.slopes(segments)[free]
    low, high = moves.cell_low[segments][free], moves.cell_high[segments][free]
    base = moves.scores(change) - change.t[free] @ slopes
    t = change.t[free]
    for _ in range(POLISH_STEPS):
        target = _tangent_point(form, aim, base + t @ slopes, slopes, t, norm, low, high)
        if target is None:
            break
        moved = _pulled_back(form, aim, base, slopes, t, target)
        gain = np.linalg.norm(t, norm) - np.linalg.norm(moved, norm)
        if gain <= 0.0:
            break
        t = moved
        if gain <= 1e-9 * np.linalg.norm(t, norm):
            break
    return _settled(moves, segments, free, t, change)


def _settled(
    moves: Moves, segments: IntArray, free: IntArray, t: FloatArray, before: Change
) -> Change:
    """The change with t in its free columns, each in the segment that holds it."""
    whole = before.t.copy()
    whole[free] = t
    found = segments.copy()
    for j in free[
        (whole[free] < moves.t_a[segments[free]]) | (whole[free] > moves.t_b[segments[free]])
    ]:
        first, end = moves.column_start[j : j + 2]
        inside = np.flatnonzero(
            (moves.t_a[first:end] <= whole[j]) & (whole[j] <= moves.t_b[first:end])
        )
        found[j] = first + (inside[0] if len(inside) else 0)
    return Change(found, whole)


def _tangent_point(
    form: Additive,
    aim: Aim,
    Z: FloatArray,
    slopes: FloatArray,
    t: FloatArray,
    norm: float,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray | None:
    """The nearest t whose margins, by their tangents at the present t, are wide enough."""
    planes = form.planes
    margins = aim.margins(form, Z)
    A = planes.pooled(Z[None, :], form.sharpness)[1][0]
    rivals = [k for k in range(planes.n_classes) if k != aim.target]
    sign = (planes.class_of == aim.target) * 1.0
    D = np.stack([A * (sign - (planes.class_of == k)) for k in rivals])
    G = D @ slopes.T
    h = aim.lead - margins[rivals] + G @ t
    return _bounded_nearest(G, h, norm, low, high)


def _bounded_nearest(
    G: FloatArray, h: FloatArray, norm: float, low: FloatArray, high: FloatArray
) -> FloatArray | None:
    """The nearest point; limits are brought in only where a point without them breaks them."""
    if norm != 2.0:
        return nearest_point(G, h, norm, low, high).point
    held = (low > 0.0) | (high < 0.0)
    for _ in range(len(low) + 1):
        at_low, at_high = np.where(held, low, -np.inf), np.where(held, high, np.inf)
        point = nearest_point(G, h, norm, at_low, at_high).point
        if point is None:
            return None
        broken = (point < low - 1e-12) | (point > high + 1e-12)
        if not (broken & ~held).any():
            return np.clip(point, low, high)
        held = held | broken
    return None


def _pulled_back(
    form: Additive,
    aim: Aim,
    base: FloatArray,
    slopes: FloatArray,
    valid: FloatArray,
    to: FloatArray,
) -> FloatArray:
    """The point nearest to ``to`` on the way from a valid point that is valid still."""
    start, rise = base + valid @ slopes, (to - valid) @ slopes

    def excess(part: float) -> float:
        return float(aim.margins(form, start + part * rise).min()) - aim.lead

    if excess(1.0) >= 0.0:
        return to
    if excess(0.0) <= 0.0:
        return valid
    part = brentq(excess, 0.0, 1.0, xtol=1e-12)
    while excess(part) < 0.0:  # the root is one to rounding: a little to the valid side of it
        part -= 1e-12 + 1e-9 * part
    return valid + max(part, 0.0) * (to - valid)


def _column_sets(task: _Task, moves: Moves, code: int) -> list[IntArray | None]:
    """Which columns may change: all (None), or sets of at most ``sparse`` to try."""
    if task.sparse is None:
        return [None]
    change = _best_change(moves, Aim(code, LEADS[0]), task.norm)
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
        part = (change.t - moves.t_a[change.segments]) / moves._safe_width[change.segments]
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
