"""Whether a class's probability only rises (or only falls) with a column: ``check_monotone``.

    d log p_c / dx_j = (1/T) (r_c - sum_k p_k r_k) = (1/T) sum_k p_k (r_c - r_k),
    r_c = sum_p A_cp f'_pj(x_j)      (responsibility-weighted mean slope of c's planes)

Responsibilities and probabilities are weights of means. Where the smallest slope of c's planes is
at least the largest slope of all other planes, every term is at least zero and p_c cannot fall:
proved for every row. Slopes are constant between knots, so this is a finite check. For an
ensemble, the means over members of the smallest and largest slopes are compared.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import pairless
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
        over all intervals of the column; proved where this is not negative
    row : the first row given at which the probability moves the wrong way
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
    form = pairless(model)
    encoded = None if X is None else encoded_rows(model, X)
    directions = read_directions(monotonic_cst, model_schema(model), model.classes)
    facts = []
    for one in directions:
        shape = form.shapes[one.column]
        assert isinstance(shape, NumberShape)
        slack = _slack(model, shape, one)
        row = None if slack >= 0.0 or encoded is None else _violating(model, encoded, shape, one)
        status = "proved" if slack >= 0.0 else "not proved" if row is None else "violated"
        label = model.classes.tolist()[one.code]
        facts.append(MonotoneFact(shape.name, label, one.sign, status, slack, row))
    return MonotoneCheck(tuple(facts))


def _slack(model: GeometricMixture, shape: NumberShape, one: Direction) -> float:
    planes = model.planes
    # Rises from knot to knot rather than slopes: knots may be neighbouring floats.
    inner, outer = np.diff(shape.values, axis=1), shape.outer
    rises = one.sign * np.column_stack([outer[:, 0], inner, outer[:, 1]]).T
    own = member_extreme(planes, rises, one.code, largest=False)
    others = [k for k in range(planes.n_classes) if k != one.code]
    rivals = np.stack([member_extreme(planes, rises, k, largest=True) for k in others])
    slack = float((own - rivals.max(axis=0)).min())
    # Rises are differences of sums: equal ones may come out a little apart.
    size = float(np.abs(shape.values).max(initial=0.0) + np.abs(outer).max(initial=0.0))
    return 0.0 if -1e-12 * size <= slack < 0.0 else slack


def _violating(
    model: GeometricMixture, encoded: FloatArray, shape: NumberShape, one: Direction
) -> int | None:
    """The first row where the slope of log p has the wrong sign."""
    x = encoded[:, shape.column]
    stretch = np.searchsorted(shape.knots, np.nan_to_num(x), "right")
    slopes = shape.slopes.T[stretch]
    A, P = model.answer("responsibilities", encoded), model.answer("predict_proba", encoded)
    rates = np.add.reduceat(A * slopes, model.planes.class_start[:-1], axis=1)
    rise = one.sign * (rates[:, one.code] - (P * rates).sum(axis=1))
    wrong = np.flatnonzero((rise < -1e-9 * (1.0 + np.abs(rates).max(axis=1))) & ~np.isnan(x))
    return int(wrong[0]) if len(wrong) else None
