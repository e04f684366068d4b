"""Whether a class's probability only rises (or only falls) with a column: ``check_monotone``.

    d log p_c / dx_j = (1/T) (r_c - sum_k p_k r_k) = (1/T) sum_k p_k (r_c - r_k),
    r_c = sum_p A_cp f'_pj(x_j)      (responsibility-weighted mean slope of c's planes)

Responsibilities and probabilities are weights of means. Where the smallest slope of c's planes is
at least the largest slope of all other planes, every term is at least zero and p_c cannot fall:
proved for every row. Slopes are constant between knots, so this is a finite check. For an
ensemble, the means over members of the smallest and largest slopes are compared.

A pair of columns adds a step at each of its thresholds, whose height depends on the cell of the
other column. The same comparison of heights, in every cell of every partner, proves that p_c does
not fall at a step.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import encoded_rows, model_schema
from geomix.explain.shapes import NumberShape
from geomix.geometry.bounds import member_extreme
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain
from geomix.training.monotone import Direction, read_directions


@dataclass(frozen=True)
class MonotoneFact:
    """column, label, direction (1 or -1) : the statement that was checked
    status : "proved" for every row; "violated" at a row given; "not proved" otherwise
    slack : smallest rise of the class's planes less the largest of the others' (negated for -1),
        over all intervals of the column and all steps of its pairs; proved where this is not
        negative
    row : the first row given at which, or at a step of a pair beside which, the probability moves
        the wrong way
    """

    column: str
    label: Any
    direction: int
    status: str
    slack: float
    row: int | None = None


@dataclass(frozen=True)
class MonotoneCheck:
    """One fact per column and class; true if all are proved."""

    facts: tuple[MonotoneFact, ...]

    def __bool__(self) -> bool:
        return all(one.status == "proved" for one in self.facts)

    def to_frame(self) -> Any:
        return frame_of([asdict(one) for one in self.facts], HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        return {"holds": bool(self), "facts": plain([asdict(one) for one in self.facts])}

    def to_html(self) -> str:
        return html_of("monotone", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _table(self) -> SmallTable:
        rows = tuple(tuple(asdict(one).values()) for one in self.facts)
        return SmallTable("Monotone probabilities", HEADINGS, rows)


HEADINGS = ("column", "label", "direction", "status", "slack", "row")


def check_monotone(model: GeometricMixture, monotonic_cst: Any, X: Any = None) -> MonotoneCheck:
    """Check ``{"dose": {"toxic": +1}}``: prove it for all rows, or find a violation in ``X``."""
    form = additive(model)
    encoded = None if X is None else encoded_rows(model, X)
    directions = read_directions(monotonic_cst, model_schema(model), model.classes)
    facts = []
    for one in directions:
        shape = form.shapes[one.column]
        assert isinstance(shape, NumberShape)
        slack = _slack(form, shape, one)
        row = (
            None
            if slack >= 0.0 or encoded is None
            else _violating(model, form, encoded, shape, one)
        )
        status = "proved" if slack >= 0.0 else "not proved" if row is None else "violated"
        label = model.classes.tolist()[one.code]
        facts.append(MonotoneFact(shape.name, label, one.sign, status, slack, row))
    return MonotoneCheck(tuple(facts))


def _slack(form: Additive, shape: NumberShape, one: Direction) -> float:
    # Rises from knot to knot rather than slopes: knots may be neighbouring floats.
    inner, outer = np.diff(shape.values, axis=1), shape.outer
    slack = _least_lead(form, np.column_stack([outer[:, 0], inner, outer[:, 1]]).T, one)
    size = float(np.abs(shape.values).max(initial=0.0) + np.abs(outer).max(initial=0.0))
    if shape.column in form.grids.cells:
        partners = form.grids.partners(shape.column)
        slack = min(slack, *_step_leads(form, partners, one))
        size += max(float(np.abs(values).max()) for _, values in partners)
    # Rises are differences of sums: equal ones may come out a little apart.
    return 0.0 if -1e-12 * size <= slack < 0.0 else slack


def _least_lead(form: Additive, rises: FloatArray, one: Direction) -> float:
    """The smallest rise of the class's planes less the largest of the others'; rises : (n, P)."""
    return float(_leads(form, rises, one).min(initial=np.inf))


def _leads(form: Additive, rises: FloatArray, one: Direction) -> FloatArray:
    """(n,) the same for each of several rises, (n, P)."""
    planes, rises = form.planes, one.sign * rises
    own = member_extreme(planes, rises, one.code, largest=False)
    others = [k for k in range(planes.n_classes) if k != one.code]
    rivals = np.stack([member_extreme(planes, rises, k, largest=True) for k in others])
    leads: FloatArray = own - rivals.max(axis=0)
    return leads


def _step_leads(
    form: Additive, partners: list[tuple[int, FloatArray]], one: Direction
) -> list[float]:
    """The smallest lead at each threshold of the column's pairs.

    Partners are different columns, so each may be in its worst cell: the least of their sum is the
    sum of what each has at least. (With several planes per class that is a lower bound.)
    """
    total: FloatArray = np.zeros(1)
    for _, values in partners:
        steps = np.diff(values[:-1], axis=0)  # the last cell is for missing values
        n_steps, n_cells, n_planes = steps.shape
        leads = _leads(form, steps.reshape(-1, n_planes), one).reshape(n_steps, n_cells)
        total = total + leads.min(axis=1)
    return np.atleast_1d(total).tolist()


def _violating(
    model: GeometricMixture,
    form: Additive,
    encoded: FloatArray,
    shape: NumberShape,
    one: Direction,
) -> int | None:
    """The first row where log p has a slope of the wrong sign, or falls at a step beside it."""
    x = encoded[:, shape.column]
    stretch = np.searchsorted(shape.knots, np.nan_to_num(x), "right")
    slopes = shape.slopes.T[stretch]
    A, P = model.answer("responsibilities", encoded), model.answer("predict_proba", encoded)
    rates = np.add.reduceat(A * slopes, model.planes.class_start[:-1], axis=1)
    rise = one.sign * (rates[:, one.code] - (P * rates).sum(axis=1))
    is_wrong = rise < -1e-9 * (1.0 + np.abs(rates).max(axis=1))
    is_wrong |= _falls_beside(model, form, encoded, shape, one)
    wrong = np.flatnonzero(is_wrong & ~np.isnan(x))
    return int(wrong[0]) if len(wrong) else None


def _falls_beside(
    model: GeometricMixture,
    form: Additive,
    encoded: FloatArray,
    shape: NumberShape,
    one: Direction,
) -> BoolArray:
    """(n,) whether p moves the wrong way at the threshold of a pair below or above each cell."""
    j = shape.column
    falls = np.zeros(len(encoded), dtype=bool)
    cuts = form.grids.cells[j].cuts if j in form.grids.cells else None
    if cuts is None or not len(cuts):
        return falls
    at = np.searchsorted(cuts, np.nan_to_num(encoded[:, j]), "right")
    for cut in (cuts[np.maximum(at - 1, 0)], cuts[np.minimum(at, len(cuts) - 1)]):
        before, after = encoded.copy(), encoded.copy()
        before[:, j], after[:, j] = np.nextafter(cut, -np.inf), cut
        p, q = (model.answer("predict_proba", rows)[:, one.code] for rows in (before, after))
        falls |= one.sign * (q - p) < -1e-9
    return falls
