"""Boxes inside a class's region: "x between a and b, colour red or white, anything else whatever".

Every row in the box is given to the class by the soft model, proved: from an anchor row with
margins s_c - s_k, a column that stays within its interval takes off at most

    max over the interval of  (largest rise of k's planes) - (smallest rise of c's planes),

as in ``bounds.py``, and a box is valid while the sums over columns stay below the margins. The
anchor is the row of the plane with the widest margin; columns are set free in the order of what
they cost, then the others are widened knot by knot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.additive import Additive
from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.cells import table_of
from geomix.geometry.bounds import member_extreme
from geomix.geometry.search import class_scores
from geomix.model import GeometricMixture
from geomix.plane_cards import leads
from geomix.shapes import LevelShape

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Box:
    """conditions : as texts;  inside : (n,) which rows lie in it."""

    conditions: tuple[str, ...]
    inside: BoolArray


@dataclass(frozen=True, eq=False)
class _Column:
    """The places of one column in order (knots and the anchor's cell, or levels) and what each of
    them takes off the margins against the rivals, (n_places, n_rivals)."""

    values: FloatArray
    cost: FloatArray
    anchor: int
    is_category: bool
    outer_is_flat: tuple[bool, bool]

    @property
    def total(self) -> FloatArray:
        """Cost of leaving the column free, (n_rivals,); infinite where a line goes on."""
        if not self.is_category and not all(self.outer_is_flat):
            return np.full(self.cost.shape[1], np.inf)
        return np.maximum(self.cost.max(axis=0), 0.0)


def proved_boxes(
    model: GeometricMixture,
    form: Additive,
    p: int,
    code: int,
    encoded: FloatArray,
    max_columns: int | None,
    digits: int,
) -> Box | None:
    """The box around the row that plane ``p`` of class ``code`` is surest of; None without one."""
    S = model.answer("class_scores", encoded)
    answered = leads(model, model.answer("responsibilities", encoded))[:, p]
    answered &= S.argmax(axis=1) == code
    if not answered.any():
        return None
    others = S.copy()
    others[:, code] = -np.inf
    lead = np.where(answered, S[:, code] - others.max(axis=1), -np.inf)
    anchor = encoded[int(lead.argmax())]
    rivals = np.array([k for k in range(len(model.classes)) if k != code])
    scores = class_scores(form, form.scores(anchor[None, :])[0])
    budget = (scores[code] - scores[rivals]) * (1.0 - ROUNDING) - ROUNDING
    columns = [_column(form, shape, anchor[shape.column], code, rivals) for shape in form.shapes]
    spans, free = _widened(columns, budget, encoded, max_columns)
    return _told(model, columns, spans, free, encoded, digits)


def _column(form: Additive, shape: Any, cell: float, code: int, rivals: IntArray) -> _Column:
    if isinstance(shape, LevelShape) or np.isnan(cell):
        n_levels = len(shape.levels) if isinstance(shape, LevelShape) else 0
        values = np.arange(n_levels, dtype=float)
        if not (0 <= cell < n_levels):
            values = np.append(values, cell)
        anchor = int(np.flatnonzero((values == cell) | (np.isnan(values) & np.isnan(cell)))[0])
        flat = (True, True)
    else:
        values = np.unique(np.append(shape.knots, cell))
        anchor = int(np.searchsorted(values, cell))
        flat = (not shape.outer[:, 0].any(), not shape.outer[:, 1].any())
    F = shape(values)
    F = F - F[anchor]
    down = member_extreme(form.planes, F, code, largest=False)
    cost = np.column_stack(
        [member_extreme(form.planes, F, int(k), largest=True) - down for k in rivals]
    )
    return _Column(
        values, cost, anchor, isinstance(shape, LevelShape) or bool(np.isnan(cell)), flat
    )


def _widened(
    columns: list[_Column], budget: FloatArray, encoded: FloatArray, max_columns: int | None
) -> tuple[list[set[int]], set[int]]:
    """Places of each column in the box, and the columns that are free."""
    left = budget.copy()
    spans = [{one.anchor} for one in columns]
    free: set[int] = set()
    tightness = [float((one.total / np.maximum(budget, 1e-300)).max()) for one in columns]
    # A missing cell, or a level never seen, is no place of a column: it is never in a box's side,
    # so only columns without such rows are set free.
    for j in np.argsort(tightness, kind="stable").tolist():
        if (
            (columns[j].total <= left).all()
            and tightness[j] < np.inf
            and _is_complete(columns[j], encoded[:, j])
        ):
            left = left - columns[j].total
            free.add(j)
    spent = [np.zeros(len(budget)) for _ in columns]
    moved = True
    while moved:
        moved = False
        for j, one in enumerate(columns):
            if j in free:
                continue
            for place in _neighbours(one, spans[j]):
                now = np.maximum(spent[j], one.cost[place])
                if (left - (now - spent[j]) >= 0.0).all():
                    left, spent[j] = left - (now - spent[j]), now
                    spans[j].add(place)
                    moved = True
    return spans, free


def _is_complete(one: _Column, cells: FloatArray) -> bool:
    if one.is_category:
        return bool(np.isin(cells, one.values).all())
    return not np.isnan(cells).any()


def _neighbours(one: _Column, span: set[int]) -> list[int]:
    if one.is_category:
        return [k for k in range(len(one.values)) if k not in span]
    return [k for k in (min(span) - 1, max(span) + 1) if 0 <= k < len(one.values)]


def _told(
    model: GeometricMixture,
    columns: list[_Column],
    spans: list[set[int]],
    free: set[int],
    encoded: FloatArray,
    digits: int,
) -> Box:
    inside = np.ones(len(encoded), dtype=bool)
    texts = []
    for j, one in enumerate(columns):
        if j in free:
            continue
        column = table_of(model).columns[j]
        x = encoded[:, j]
        if one.is_category:
            places = one.values[sorted(spans[j])]
            inside &= np.isin(x, places) | (np.isnan(x) & np.isnan(places).any())
            names = [_level_name(column, value) for value in places]
            texts.append(f"{column.name} is {' or '.join(names)}")
            continue
        low, high = one.values[min(spans[j])], one.values[max(spans[j])]
        open_low = min(spans[j]) == 0 and one.outer_is_flat[0]
        open_high = max(spans[j]) == len(one.values) - 1 and one.outer_is_flat[1]
        inside &= ~np.isnan(x) & ((x >= low) | open_low) & ((x <= high) | open_high)
        texts.append(_between(column.name, low, high, open_low, open_high, digits))
    return Box(tuple(text for text in texts if text) or ("always",), inside)


def _level_name(column: Any, value: float) -> str:
    if np.isnan(value):
        return "missing"
    names = column.level_names if column.kind == "category" else []
    return names[int(value)] if 0 <= value < len(names) else "a level never seen"


def _between(
    name: str, low: float, high: float, open_low: bool, open_high: bool, digits: int
) -> str:
    """Rounded inwards, so that what is written is proved too."""
    if open_low and open_high:
        return f"{name} is not missing"
    a, b = _inwards(low, digits, up=True, most=high), _inwards(high, digits, up=False, most=low)
    if open_low:
        return f"{name} <= {b}"
    return f"{name} >= {a}" if open_high else f"{a} <= {name} <= {b}"


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
