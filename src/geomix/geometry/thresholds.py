"""Thresholds: all values of one column at which the prediction changes, the rest of the row fixed.

Between two knots every plane's score is linear in the column, so every class's score is a mean of
soft-ORs of lines: convex. On an interval [a, b] a class's score lies below its chord and above its
tangents at both ends, and its slope lies between those at the ends. Two classes cannot cross where
these bounds keep them apart. They cross at most once where their difference is monotone; SciPy's
``brentq`` finds that root. Otherwise the interval is halved. Beyond the last knot of a straight
line the search continues in doubling steps until the winner's tangent rises at least as fast as
every rival's steepest plane.

With the rest of the row fixed, a pair of columns adds a constant between its thresholds: the
column is cut there too, and a threshold is itself a flip where the predictions beside it differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import (
    column_place,
    encoded_row,
    given_rows,
    model_schema,
    raw_row,
    readable_twice,
)
from geomix.explain.shapes import NumberShape
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

MOST_HALVINGS = 60
MOST_DOUBLINGS = 60


@dataclass(frozen=True)
class Stretch:
    """low, high : an interval of the column, or None and None for a category;  level : its level
    label : the predicted class there"""

    low: float | None
    high: float | None
    level: Any
    label: Any


@dataclass(frozen=True)
class Thresholds:
    """column, value : the column and the row's cell in it;  label : the predicted class
    stretches : the predictions along the column, in order (or by level)
    flips : the values at which the prediction changes
    missing : the prediction for a missing cell
    """

    column: str
    value: Any
    label: Any
    stretches: tuple[Stretch, ...]
    flips: tuple[float, ...]
    missing: Any

    def to_frame(self) -> Any:
        return frame_of([asdict(one) for one in self.stretches], ["low", "high", "level", "label"])

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = plain(asdict(self))
        return facts

    def to_html(self) -> str:
        return html_of("thresholds", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _table(self) -> SmallTable:
        rows = []
        for one in self.stretches:
            where = one.level if one.low is None else f"{one.low:.6g} to {one.high:.6g}"
            rows.append((where, one.label))
        rows.append(("missing", self.missing))
        return SmallTable(f"Answers along {self.column}", (self.column, "answer"), tuple(rows))


def thresholds(model: GeometricMixture, x: Any, column: Any) -> Thresholds:
    """Where the prediction changes along ``column`` while the rest of the row ``x`` is fixed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> len(thresholds(model, X[0], "x2").flips) >= 1
    True
    """
    x = readable_twice(x)
    form, row = additive(model), encoded_row(model, x)
    cells = given_rows(model, raw_row(model, x), row[None, :])[0]
    j = column_place(model, column)
    shape, labels = form.shapes[j], model.classes.tolist()

    def answer(cell: float) -> Any:
        moved = row.copy()
        moved[j] = cell
        return labels[int(model.answer("class_scores", moved[None, :])[0].argmax())]

    flips: tuple[float, ...] = ()
    if isinstance(shape, NumberShape):
        line = _Line(form, shape, row)
        flips, codes = line.flips()
        ends = [-np.inf, *flips, np.inf]
        pairs = zip(pairwise(ends), codes, strict=True)
        stretches = tuple(Stretch(a, b, None, labels[code]) for (a, b), code in pairs)
    else:
        levels = model_schema(model).columns[j].levels
        stretches = tuple(
            Stretch(None, None, level, answer(float(code))) for code, level in enumerate(levels)
        )
    name = model.columns[j]
    return Thresholds(name, cells[name], answer(row[j]), stretches, flips, answer(np.nan))


@dataclass(frozen=True, eq=False)
class _Line:
    """The classes' scores along one column, the rest of the row fixed."""

    form: Additive
    shape: NumberShape
    row: FloatArray

    @property
    def base(self) -> FloatArray:
        """(P,) scores without the column and its pairs."""
        Z = self.form.scores(self.row[None, :])[0]
        x = self.row[self.shape.column : self.shape.column + 1]
        rest: FloatArray = Z - self.shape(x)[0] - self._pairs(x)[0]
        return rest

    @property
    def cuts(self) -> FloatArray:
        """Thresholds of the column's pairs."""
        cells = self.form.grids.cells.get(self.shape.column)
        return np.empty(0) if cells is None or cells.cuts is None else cells.cuts

    def _pairs(self, x: FloatArray) -> FloatArray:
        """(n, P) what the column's pairs add at some of its values."""
        j, grids = self.shape.column, self.form.grids
        if j not in grids.cells:
            return np.zeros((len(x), self.form.planes.n_planes))
        return grids.along(j, self.row)[grids.cells[j].of(x)]

    def flips(self) -> tuple[tuple[float, ...], list[int]]:
        """Values where the prediction changes, and the predictions between them (codes)."""
        base, knots = self.base, self.shape.knots
        inner = self.cuts[(self.cuts > knots[0]) & (self.cuts < knots[-1])]
        points = np.union1d(knots, inner)
        roots = self.cuts.tolist()
        Z = base + self.shape(points) + self._pairs(points)
        for z, (a, b) in zip(Z, pairwise(points), strict=False):
            slope = self._slopes(int(np.searchsorted(knots, a, "right")))
            roots += self._piece(z, slope, a, a, b).roots()
        for side, at in ((0, 0), (1, -1)):
            slope = self.shape.outer[:, side]
            if slope.any():
                sign = 2 * side - 1
                start = base + self.shape.values[:, at] + self._pairs(knots[[at]])[0]
                roots += self._ray(start, slope, knots[at], sign)
        return self._true_flips(base, np.unique(roots))

    def _slopes(self, i: int) -> FloatArray:
        return self.shape.slopes[:, i]

    def _piece(self, Z: FloatArray, slope: FloatArray, at: float, a: float, b: float) -> _Piece:
        return _Piece(self.form, Z, slope, float(at), float(a), float(b))

    def _ray(self, Z: FloatArray, slope: FloatArray, start: float, sign: int) -> list[float]:
        """Roots from ``start`` outwards, until no further change is possible."""
        roots: list[float] = []
        step, near = self.shape.scale, 0.0
        for _ in range(MOST_DOUBLINGS):
            ends = sorted((start + sign * near, start + sign * (near + step)))
            roots += self._piece(Z, slope, start, *ends).roots()
            near, step = near + step, 2.0 * step
            if self._is_final(Z + sign * near * slope, sign * slope):
                break
        return roots

    def _is_final(self, Z: FloatArray, slope: FloatArray) -> bool:
        """Whether the winner's tangent rises at least as fast as every rival's steepest plane."""
        S, rate = _scores_and_slopes(self.form, Z, slope)
        winner = int(S.argmax())
        planes = self.form.planes
        steepest = np.maximum.reduceat(slope, planes.pool_starts[:-1])
        steepest = steepest.reshape(planes.n_classes, -1).mean(axis=1)
        others = np.delete(np.arange(planes.n_classes), winner)
        return bool((rate[winner] >= steepest[others]).all() and (S[winner] > S[others]).all())

    def _true_flips(
        self, base: FloatArray, roots: FloatArray
    ) -> tuple[tuple[float, ...], list[int]]:
        """The crossings where the winner changes, evaluated half-way between crossings."""
        probes = _between(roots, self.shape)
        Z = base + self.shape(probes) + self._pairs(probes)
        winners = [int(_scores(self.form, z).argmax()) for z in Z]
        flips = [
            float(root)
            for root, left, right in zip(roots, winners[:-1], winners[1:], strict=True)
            if left != right
        ]
        kept = [winners[0]]
        kept += [now for before, now in pairwise(winners) if now != before]
        return tuple(flips), kept


def _between(roots: FloatArray, shape: NumberShape) -> FloatArray:
    if not len(roots):
        return shape.knots[:1]
    reach = max(shape.scale, float(np.ptp(shape.knots)))
    left = min(roots[0], shape.knots[0]) - reach
    right = max(roots[-1], shape.knots[-1]) + reach
    return np.concatenate([[left], roots[:-1] / 2.0 + roots[1:] / 2.0, [right]])


@dataclass(frozen=True, eq=False)
class _Piece:
    """Scores Z + slope (x - at) on [a, b]."""

    form: Additive
    Z: FloatArray
    slope: FloatArray
    at: float
    a: float
    b: float

    def values(self, x: float) -> tuple[FloatArray, FloatArray]:
        return _scores_and_slopes(self.form, self.Z + self.slope * (x - self.at), self.slope)

    def roots(self) -> list[float]:
        """Crossings of any two classes that may both win somewhere on the piece."""
        found: list[float] = []
        start, end = self.values(self.a), self.values(self.b)
        self._find(self.a, self.b, start, end, None, 0, found)
        return found

    def _find(
        self, a: float, b: float, at_a: Any, at_b: Any, pairs: Any, depth: int, found: list[float]
    ) -> None:
        if not b > a:
            return
        (S_a, rate_a), (S_b, rate_b) = at_a, at_b
        if pairs is None:
            low = np.maximum(
                np.minimum(S_a, S_a + rate_a * (b - a)), np.minimum(S_b, S_b - rate_b * (b - a))
            )
            may_win = np.flatnonzero(np.maximum(S_a, S_b) >= low.max())
            pairs = [(c, k) for i, c in enumerate(may_win) for k in may_win[i + 1 :]]
        open_pairs = []
        for c, k in pairs:
            ends = S_a[c] - S_a[k], S_b[c] - S_b[k]
            if (ends[0] > 0.0) == (ends[1] > 0.0) and _kept_apart(c, k, a, b, at_a, at_b):
                continue
            slowest, fastest = rate_a[c] - rate_b[k], rate_b[c] - rate_a[k]
            if slowest >= 0.0 or fastest <= 0.0:  # the difference only rises, or only falls
                if ends[0] * ends[1] <= 0.0 and ends[0] != ends[1]:
                    found.append(self._root(self._difference(c, k), a, b))
                continue
            open_pairs.append((c, k))
        if not open_pairs:
            return
        middle = a / 2.0 + b / 2.0
        if depth >= MOST_HALVINGS or not a < middle < b:
            found.append(middle)  # a touch, or two crossings closer than the precision
            return
        at_middle = self.values(middle)
        self._find(a, middle, at_a, at_middle, open_pairs, depth + 1, found)
        self._find(middle, b, at_middle, at_b, open_pairs, depth + 1, found)

    def _difference(self, c: int, k: int) -> Callable[[float], float]:
        def difference(x: float) -> float:
            S = _scores(self.form, self.Z + self.slope * (x - self.at))
            return float(S[c] - S[k])

        return difference

    @staticmethod
    def _root(difference: Callable[[float], float], a: float, b: float) -> float:
        if difference(a) == 0.0:
            return a
        if difference(b) == 0.0:
            return b
        if (difference(a) > 0.0) == (difference(b) > 0.0):
            return b  # one end is zero up to rounding
        return float(brentq(difference, a, b, xtol=1e-15 * max(abs(a), abs(b), 1e-300), rtol=1e-14))


def _kept_apart(c: int, k: int, a: float, b: float, at_a: Any, at_b: Any) -> bool:
    """Whether chord and tangents prove that two classes do not meet on [a, b]."""
    (S_a, rate_a), (S_b, rate_b) = at_a, at_b
    if S_a[c] < S_a[k]:
        c, k = k, c
    # c is above: its tangents against k's chord, whose differences are linear in x.
    for S, rate, far in ((S_a, rate_a, b - a), (S_b, rate_b, a - b)):
        near_gap = S[c] - S[k]
        other = S_b if far > 0.0 else S_a
        far_gap = S[c] + rate[c] * far - other[k]
        if near_gap > 0.0 and far_gap > 0.0:
            return True
    return False


def _scores(form: Additive, Z: FloatArray) -> FloatArray:
    return _scores_and_slopes(form, Z, np.zeros_like(Z))[0]


def _scores_and_slopes(
    form: Additive, Z: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """s_c and its slope along the column, both (C,)."""
    planes = form.planes
    S, A = planes.pooled(Z[None, :], form.sharpness)
    rate = np.add.reduceat(A[0] * slope, planes.class_start[:-1])
    return S[0], rate
