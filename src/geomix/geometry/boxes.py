"""Boxes inside a class's region: "x between a and b, colour red or white, anything else".

For every row in the box the soft model predicts the class, proved. From an anchor row with margins
s_c - s_k, a column that stays within its interval takes off at most

    max over the interval of  (largest rise of k's planes) - (rise of c's tangent),

as in ``bounds.py``, and a pair of columns takes off at most the same maximum over the cells of both
intervals. A box is valid while the sums over columns and pairs stay below the margins. Boxes
grow from a few rows that the plane answers, confident and ordinary ones. Each step widens the box
where the ratio of added rows (counted in that column) to used-up margin is largest. The box with
most rows is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.explain.cells import model_schema
from geomix.explain.plane_cards import leads
from geomix.explain.shapes import LevelShape
from geomix.geometry.bounds import member_extreme
from geomix.geometry.search import class_scores
from geomix.model import GeometricMixture

ROUNDING = 1e-9
ANCHORS = (1.0, 0.8, 0.5)  # quantiles of the margin at which boxes start
STRIDES = 16  # steps from one end of a curve to the other


@dataclass(frozen=True, eq=False)
class Box:
    """conditions : texts;  holds : (n_conditions, n) which rows satisfy each, as printed."""

    conditions: tuple[str, ...]
    holds: BoolArray

    @property
    def n_conditions(self) -> int:
        return len(self.conditions)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.conditions or ("always",)

    @property
    def inside(self) -> BoolArray:
        """(n,) rows that satisfy all conditions."""
        inside: BoolArray = np.asarray(self.holds.all(axis=0))
        return inside

    def shortened(self, most: int) -> Box:
        """The conditions that exclude most rows, in their order."""
        order = np.argsort(self.holds.sum(axis=1), kind="stable")[:most]
        chosen = sorted(order.tolist())
        return Box(tuple(self.conditions[i] for i in chosen), self.holds[chosen])


@dataclass(frozen=True, eq=False)
class _Column:
    """The values of one column in order (knots and the anchor's cell, or levels).

    cost : (n_values, n_rivals) what each takes off the margins against the rivals
    cells : (n_values,) cells of the pairs' grids, zero for a column without pairs
    """

    values: FloatArray
    cost: FloatArray
    cells: IntArray
    anchor: int
    is_category: bool
    outer_is_flat: tuple[bool, bool]

    @property
    def anchor_cell(self) -> int:
        return int(self.cells[self.anchor])


def proved_boxes(
    model: GeometricMixture, form: Additive, p: int, code: int, encoded: FloatArray, digits: int
) -> Box | None:
    """The box with most rows around rows that plane ``p`` of class ``code`` answers; None if it
    answers none."""
    S = model.answer("class_scores", encoded)
    answered = leads(model, model.answer("responsibilities", encoded))[:, p]
    answered &= S.argmax(axis=1) == code
    if not answered.any():
        return None
    others = S.copy()
    others[:, code] = -np.inf
    lead = S[:, code] - others.max(axis=1)
    rows = np.flatnonzero(answered)
    rows = rows[np.argsort(lead[rows], kind="stable")]
    anchors = {int(rows[int(part * (len(rows) - 1))]) for part in ANCHORS}
    boxes = [_box_around(model, form, encoded[i], code, encoded, digits) for i in sorted(anchors)]
    return max(boxes, key=lambda box: int(box.inside.sum()))


def _box_around(
    model: GeometricMixture,
    form: Additive,
    anchor: FloatArray,
    code: int,
    encoded: FloatArray,
    digits: int,
) -> Box:
    rivals = np.array([k for k in range(len(model.classes)) if k != code])
    scores = class_scores(form, form.scores(anchor[None, :])[0])
    budget = (scores[code] - scores[rivals]) * (1.0 - ROUNDING) - ROUNDING
    falls = _Falls(form, anchor, code, rivals)
    columns = [_column(falls, shape, anchor[shape.column]) for shape in form.shapes]
    sides = [_Side(one, encoded[:, j]) for j, one in enumerate(columns)]
    _widen(sides, _pairs(falls, sides), np.maximum(budget, 0.0))
    return _described(model, columns, [side.span for side in sides], encoded, digits)


@dataclass(frozen=True, eq=False)
class _Falls:
    """What changes of the planes' scores take off the margins of class ``code`` at an anchor."""

    form: Additive
    anchor: FloatArray
    code: int
    rivals: IntArray

    @cached_property
    def tangent(self) -> FloatArray:
        """(P,) weights of the tangent of the class's score."""
        planes = self.form.planes
        Z = self.form.scores(self.anchor[None, :])
        A = planes.pooled(Z, self.form.sharpness)[1][0]
        return A * (planes.class_of == self.code)

    def __call__(self, F: FloatArray) -> FloatArray:
        """(n, P) changes of the scores -> (n, n_rivals)."""
        planes, kept = self.form.planes, F @ self.tangent
        return np.column_stack(
            [member_extreme(planes, F, int(k), largest=True) - kept for k in self.rivals]
        )


def _column(falls: _Falls, shape: Any, cell: float) -> _Column:
    cells = falls.form.grids.cells.get(shape.column)
    if isinstance(shape, LevelShape) or np.isnan(cell):
        n_levels = len(shape.levels) if isinstance(shape, LevelShape) else 0
        values = np.arange(n_levels, dtype=float)
        if not (0 <= cell < n_levels):
            values = np.append(values, cell)
        anchor = int(np.flatnonzero((values == cell) | (np.isnan(values) & np.isnan(cell)))[0])
        flat = (True, True)
    else:
        cuts = np.empty(0) if cells is None or cells.cuts is None else cells.cuts
        both_sides = np.append(cuts, np.nextafter(cuts, -np.inf))
        values = np.unique(np.concatenate([shape.knots, both_sides, [cell]]))
        anchor = int(np.searchsorted(values, cell))
        flat = (not shape.outer[:, 0].any(), not shape.outer[:, 1].any())
    F = shape(values)
    return _Column(
        values,
        falls(F - F[anchor]),
        np.zeros(len(values), dtype=np.intp) if cells is None else cells.of(values),
        anchor,
        isinstance(shape, LevelShape) or bool(np.isnan(cell)),
        flat,
    )


def _pairs(falls: _Falls, sides: list[_Side]) -> list[_PairCost]:
    made = []
    for grid in falls.form.grids.grids:
        j, k = grid.columns
        now = (sides[j].column.anchor_cell, sides[k].column.anchor_cell)
        F = grid.values - grid.values[now]
        cost = falls(F.reshape(-1, F.shape[-1])).reshape(*F.shape[:2], -1)
        made.append(_PairCost((j, k), cost))
    return made


@dataclass(eq=False)
class _PairCost:
    """What a pair takes off the margins: cost (n_first, n_second, n_rivals) by cells, and the
    most over the cells of a growing box."""

    columns: tuple[int, int]
    cost: FloatArray
    spent: FloatArray | float = 0.0

    def cost_with(self, j: int, places: list[int], sides: list[_Side]) -> FloatArray:
        """The most over the box with more values of column j."""
        cells = []
        for column in self.columns:
            side = sides[column]
            more = places if column == j else []
            cells.append(np.unique(side.column.cells[[*side.span, *more]]))
        most: FloatArray = self.cost[np.ix_(*cells)].max(axis=(0, 1))
        return np.maximum(self.spent, most)


class _Side:
    """One column's part of a growing box: its values, their cost, and how many rows have them."""

    def __init__(self, column: _Column, cells: FloatArray) -> None:
        self.column = column
        self.span = {column.anchor}
        self.spent: FloatArray = np.zeros(column.cost.shape[1])
        n_places = len(column.values)
        self.stride = 1 if column.is_category else max(n_places // STRIDES, 1)
        if column.is_category:
            counts = [float((cells == value).sum()) for value in column.values]
        else:
            # Rows at a place, and between it and the next one towards the anchor.
            at = np.searchsorted(column.values, cells[~np.isnan(cells)])
            left = np.searchsorted(column.values, cells[~np.isnan(cells)], "right") - 1
            place = np.where(at <= column.anchor, left, at)
            counts = np.bincount(np.clip(place, 0, n_places - 1), minlength=n_places).tolist()
        self.counts = counts
        self.n_rows = max(sum(counts[k] for k in self.span), 0.5)

    @property
    def most_steps(self) -> int:
        return len(self.column.values) if self.column.is_category else 4

    def steps(self) -> list[list[int]]:
        """Sets of values that could be added next."""
        n_places = len(self.column.values)
        if self.column.is_category:
            return [[k] for k in range(n_places) if k not in self.span]
        low, high = min(self.span), max(self.span)
        wanted = []
        for stride in {self.stride, 1}:
            wanted.append(list(range(max(low - stride, 0), low)))
            wanted.append(list(range(high + 1, min(high + 1 + stride, n_places))))
        return [places for places in wanted if places]

    def cost_with(self, places: list[int]) -> FloatArray:
        cost: FloatArray = np.maximum(self.spent, self.column.cost[places].max(axis=0))
        return cost

    def gain_with(self, places: list[int]) -> float:
        return float(np.log1p(sum(self.counts[k] for k in places) / self.n_rows))

    def take(self, places: list[int], spent: FloatArray) -> None:
        self.n_rows += sum(self.counts[k] for k in places)
        self.span.update(places)
        self.spent = spent


def _widen(sides: list[_Side], pairs: list[_PairCost], left: FloatArray) -> None:
    """Add values step by step, most rows per cost first, until none fits."""
    own: list[list[_PairCost]] = [[] for _ in sides]
    for one in pairs:
        for j in one.columns:
            own[j].append(one)
    offers = _Offers(sides, own, len(left))
    while (choice := offers.best(left)) is not None:
        j, places, extra = choice
        for one in own[j]:
            one.spent = one.cost_with(j, places, sides)
        sides[j].take(places, sides[j].cost_with(places))
        left = left - extra
        for k in {j, *(k for one in own[j] for k in one.columns)}:
            offers.renew(k)


class _Offers:
    """What could be added to each column next, side by side in arrays.

    extra : (n_offers, n_rivals) costs in margins, infinite where a column has fewer offers than
    room;  gain : (n_offers,) of rows.
    """

    def __init__(self, sides: list[_Side], pairs: list[list[_PairCost]], n_rivals: int) -> None:
        self.sides, self.pairs = sides, pairs
        self.column = np.repeat(np.arange(len(sides)), [side.most_steps for side in sides])
        self.start = np.searchsorted(self.column, np.arange(len(sides) + 1))
        self.extra = np.full((len(self.column), n_rivals), np.inf)
        self.gain = np.zeros(len(self.column))
        self.places: list[list[int]] = [[] for _ in self.column]
        for j in range(len(sides)):
            self.renew(j)

    def renew(self, j: int) -> None:
        """The offers of a column, whose part of the box or that of a pair has changed."""
        side, at = self.sides[j], self.start[j]
        self.extra[at : self.start[j + 1]] = np.inf
        for i, places in enumerate(side.steps(), at):
            extra = side.cost_with(places) - side.spent
            for one in self.pairs[j]:
                extra = extra + one.cost_with(j, places, self.sides) - one.spent
            self.extra[i], self.gain[i], self.places[i] = extra, side.gain_with(places), places

    def best(self, left: FloatArray) -> tuple[int, list[int], FloatArray] | None:
        """The column, values and cost with most rows per share of what is left; None: none fits."""
        fits = np.flatnonzero((self.extra <= left).all(axis=1))
        if not len(fits):
            return None
        shares = (self.extra[fits] / (left + 1e-300)).max(axis=1)
        i = int(fits[np.argmax((self.gain[fits] + 1e-9) / (shares + 1e-9))])
        return int(self.column[i]), self.places[i], self.extra[i].copy()


def _is_complete(one: _Column, cells: FloatArray) -> bool:
    """Whether the values of a column are all that its rows can hold."""
    if one.is_category:
        return bool(np.isin(cells[~np.isnan(cells)], one.values).all()) and (
            not np.isnan(cells).any() or bool(np.isnan(one.values).any())
        )
    return all(one.outer_is_flat) and not np.isnan(cells).any()


def _described(
    model: GeometricMixture,
    columns: list[_Column],
    spans: list[set[int]],
    encoded: FloatArray,
    digits: int,
) -> Box:
    texts, holds = [], []
    for j, one in enumerate(columns):
        column = model_schema(model).columns[j]
        x = encoded[:, j]
        if len(spans[j]) == len(one.values) and _is_complete(one, x):
            continue  # every possible cell
        if one.is_category:
            places = one.values[sorted(spans[j])]
            holds.append(np.isin(x, places) | (np.isnan(x) & np.isnan(places).any()))
            texts.append(_one_of(column, places))
            continue
        low, high = one.values[min(spans[j])], one.values[max(spans[j])]
        open_low = min(spans[j]) == 0 and one.outer_is_flat[0]
        open_high = max(spans[j]) == len(one.values) - 1 and one.outer_is_flat[1]
        a, b = _rounded_inwards(low, high, x, digits)
        holds.append(~np.isnan(x) & ((x >= float(a)) | open_low) & ((x <= float(b)) | open_high))
        texts.append(_between(column.name, a, b, open_low, open_high))
    return Box(tuple(texts), np.array(holds, dtype=bool).reshape(len(texts), len(encoded)))


def _one_of(column: Any, places: FloatArray) -> str:
    """The levels of a box, or the excluded ones if they are fewer."""
    others = [code for code in range(column.n_levels) if code not in places]
    if len(others) < len(places) and (places >= 0.0).all():
        names = [_level_name(column, float(code)) for code in others]
        but = f" and not {' or '.join(names)}" if names else ""
        return f"{column.name} is known{but}"
    return f"{column.name} is {' or '.join(_level_name(column, value) for value in places)}"


def _level_name(column: Any, value: float) -> str:
    if np.isnan(value):
        return "missing"
    names = column.level_names if column.kind == "category" else []
    return names[int(value)] if 0 <= value < len(names) else "a level never seen"


def _between(name: str, a: str, b: str, open_low: bool, open_high: bool) -> str:
    if open_low and open_high:
        return f"{name} is not missing"
    if open_low:
        return f"{name} <= {b}"
    return f"{name} >= {a}" if open_high else f"{a} <= {name} <= {b}"


def _rounded_inwards(low: float, high: float, x: FloatArray, digits: int) -> tuple[str, str]:
    """Ends rounded inwards, so that the printed condition is proved too; with more digits where
    rounding would exclude rows."""
    n_inside = int(((x >= low) & (x <= high)).sum())
    for more in range(digits, 18):
        a = _inwards(low, more, up=True, most=high)
        b = _inwards(high, more, up=False, most=low)
        if int(((x >= float(a)) & (x <= float(b))).sum()) == n_inside:
            return a, b
    return repr(low), repr(high)


def _inwards(value: float, digits: int, *, up: bool, most: float) -> str:
    for more in range(digits, 18):
        text = f"{value:.{more}g}"
        off = float(text) - value
        steps = 10.0 ** (np.floor(np.log10(abs(value))) - more + 1) if value else 0.0
        if (off < 0.0) if up else (off > 0.0):
            text = f"{float(text) + (steps if up else -steps):.{more}g}"
        inside = value <= float(text) <= most if up else most <= float(text) <= value
        if inside:
            return text
    return repr(value)
