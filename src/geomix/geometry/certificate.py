"""How far a row may change, in any direction, before the answer can: ``certify``.

Only numbers move (by up to r in units of ``scale``, by default deviations of the training rows);
categories and missing cells stay. For the winning class c, with w the slopes per unit and * the
dual norm, two lower bounds of the radius hold for the soft model, and the larger is reported:

    max_{p of c} min_{q of k != c} (z_p - z_q - log(M_k) / n) / ||w_p - w_q||_*    a plane's region
    min_{k != c} (s_c - s_k) / max_{p of c, q of k} ||w_p - w_q||_*                a soft-OR's rate

(n = sharpness). The first: while z_p leads z_q by log(M_k) / n, s_c >= z_p >= s_k. The second: a
soft-OR changes by no more than its fastest plane, so the margin falls by no more than r times the
fastest difference. For curves, and for committees, the margin's fall is bounded by columns as in
``bounds.py``, and the largest r for which that bound leaves a margin is found by halving.

``method="exact"`` (linear) also gives ``hard_radius``, the exact distance to the nearest row where
another class has the largest plane, by one convex program for each plane of another class; and the
same programs with log(M) / n taken off give a larger certified radius.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.additive import Additive, NumberShape
from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.cells import column_place, encoded_rows
from geomix.geometry.bounds import member_extreme, plane_programs, soft_slack, straight_slopes
from geomix.geometry.counterfactual import pairless
from geomix.geometry.freedom import unit_sizes
from geomix.geometry.moves import class_scores
from geomix.geometry.projection import DUAL
from geomix.model import GeometricMixture
from geomix.pooling import pool
from geomix.small_tables import SmallTable, frame_of, html_of, plain

NORMS = {1: 1.0, 2: 2.0, np.inf: np.inf, "l1": 1.0, "l2": 2.0, "inf": np.inf}
LARGEST_RADIUS = 1e6
HALVINGS = 50
ROUNDING = 1e-9  # taken off every radius, relative to the sizes it was made from


@dataclass(frozen=True, eq=False)
class Certificates:
    """labels : (n,) the answers;  radius : (n,) within which no change of numbers alters them
    hard_radius : (n,) exact distance to another class's largest plane (``method="exact"``)
    norm : 1, 2 or inf;  unit : what the radius counts
    """

    labels: Any
    radius: FloatArray
    hard_radius: FloatArray | None
    norm: float
    unit: str

    def __len__(self) -> int:
        return len(self.radius)

    def to_frame(self) -> Any:
        return frame_of(self._records(), self._headings())

    def to_dict(self) -> dict[str, Any]:
        return {"norm": str(self.norm), "unit": self.unit, "rows": plain(self._records())}

    def to_html(self) -> str:
        return html_of("certificates", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _headings(self) -> tuple[str, ...]:
        return ("row", "label", "radius", *(() if self.hard_radius is None else ("hard_radius",)))

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for i, label in enumerate(self.labels.tolist()):
            told = {"row": i, "label": label, "radius": float(self.radius[i])}
            if self.hard_radius is not None:
                told["hard_radius"] = float(self.hard_radius[i])
            records.append(told)
        return records

    def _table(self) -> SmallTable:
        headings = self._headings()
        rows = tuple(tuple(one[name] for name in headings) for one in self._records())
        title = f"No change of numbers within the radius ({self.unit}, norm {self.norm:g}) alters"
        return SmallTable(f"{title} the answer", headings, rows)


def certify(
    model: GeometricMixture,
    X: Any,
    norm: Any = 2,
    *,
    method: str = "fast",
    scale: Mapping[Any, float] | None = None,
) -> Certificates:
    """Certified radii of rows ``X``, in norm 1, 2 or inf; the formulas are at the top."""
    if norm not in NORMS:
        raise ValueError(f"Got norm={norm!r}; expected 1, 2 or inf.")
    if method not in ("fast", "exact"):
        raise ValueError(f"Got method={method!r}; expected 'fast' or 'exact'.")
    form, p = pairless(model), NORMS[norm]
    encoded = encoded_rows(model, X)
    unit = unit_sizes(model, form, scale)
    labels = model.answer("class_scores", encoded).argmax(axis=1)
    straight = straight_slopes(form)
    hard = None
    if straight is None or form.planes.n_members > 1:
        if method == "exact":
            raise ValueError(
                "method='exact' needs a linear model without committee; this one has proved lower "
                "bounds: method='fast'."
            )
        radius = np.array(
            [
                _radius_by_columns(form, row, c, p, unit)
                for row, c in zip(encoded, labels, strict=True)
            ]
        )
    else:
        slopes, moves = straight * unit, _can_move(form, encoded)
        radius = _radius_by_planes(form, encoded, labels, slopes, moves, p)
        if method == "exact":
            each = zip(encoded, labels, moves, strict=True)
            exact = [_exact_radii(form, row, int(c), slopes[:, free], p) for row, c, free in each]
            soft, hard = np.transpose(exact) if exact else np.zeros((2, 0))
            radius = np.maximum(radius, soft)
    radius = np.clip(radius, 0.0, LARGEST_RADIUS)
    named = "standard deviations" if scale is None else "units of scale"
    return Certificates(model.classes[labels], radius, hard, p, named)


def _can_move(form: Additive, encoded: FloatArray) -> BoolArray:
    """(n, n_columns) which cells are numbers that are there."""
    is_number = np.array([shape.kind == "number" for shape in form.shapes])
    return is_number & ~np.isnan(encoded)


# --- lines: closed forms ---


def _radius_by_planes(
    form: Additive,
    encoded: FloatArray,
    labels: IntArray,
    slopes: FloatArray,
    moves: BoolArray,
    norm: float,
) -> FloatArray:
    radius = np.empty(len(encoded))
    Z = form.scores(encoded)
    S = pool(Z, form.planes.class_start, form.sharpness)[0]
    patterns, which = np.unique(moves, axis=0, return_inverse=True)
    for i, free in enumerate(patterns):
        rate = _rates(slopes[:, free], norm)
        rows = np.flatnonzero(which.ravel() == i)
        for code in np.unique(labels[rows]):
            own = rows[labels[rows] == code]
            radius[own] = _closed_forms(form, Z[own], S[own], int(code), rate)
    return radius


def _rates(slopes: FloatArray, norm: float) -> FloatArray:
    """||w_p - w_q||_* of every two planes, (P, P)."""
    between: FloatArray = np.linalg.norm(slopes[:, None, :] - slopes[None], DUAL[norm], axis=2)
    return between


def _closed_forms(
    form: Additive, Z: FloatArray, S: FloatArray, code: int, rate: FloatArray
) -> FloatArray:
    class_of, per_class = form.planes.class_of, form.planes.per_class
    own, others = np.flatnonzero(class_of == code), np.flatnonzero(class_of != code)
    slack = np.log(per_class[class_of[others]]) / form.sharpness
    tiny = np.finfo(float).tiny
    lead = Z[:, own, None] - (Z[:, others] + slack)[:, None, :]
    lead = lead - ROUNDING * (1.0 + np.abs(lead))
    by_plane = (lead / np.maximum(rate[np.ix_(own, others)], tiny)).min(axis=2).max(axis=1)
    by_rate = np.full(len(Z), np.inf)
    for k in range(len(per_class)):
        if k != code:
            fastest = rate[np.ix_(own, np.flatnonzero(class_of == k))].max()
            margin = S[:, code] - S[:, k]
            margin = margin - ROUNDING * (1.0 + np.abs(margin))
            by_rate = np.minimum(by_rate, margin / max(fastest, tiny))
    return np.maximum(by_plane, by_rate)


def _exact_radii(
    form: Additive, row: FloatArray, code: int, slopes: FloatArray, norm: float
) -> tuple[float, float]:
    """Certified soft radius and exact hard one, by convex programs."""
    Z = form.scores(row[None, :])[0]
    limit = np.full(slopes.shape[1], np.inf)
    soft = hard = np.inf
    for k in range(form.planes.n_classes):
        if k == code:
            continue
        for slack, is_soft in ((soft_slack(form, k), True), (0.0, False)):
            found = plane_programs(form, Z, slopes, k, norm, -limit, limit, slack)
            for one in found:
                if is_soft:
                    soft = min(soft, one.lower_bound)
                elif one.point is not None:
                    hard = min(hard, float(np.linalg.norm(one.point, norm)))
    return soft * (1.0 - ROUNDING), hard


# --- curves: the margin's fall by columns ---


def _radius_by_columns(
    form: Additive, row: FloatArray, code: int, norm: float, unit: FloatArray
) -> float:
    S = class_scores(form, form.scores(row[None, :])[0])
    radius = LARGEST_RADIUS
    for k in range(form.planes.n_classes):
        if k != code:
            margin = float(S[code] - S[k])
            margin -= ROUNDING * (1.0 + abs(margin))
            falls = _falls(form, row, code, k, unit)
            radius = min(radius, _largest_radius(falls, margin, norm, radius))
    return radius


@dataclass(frozen=True, eq=False)
class _Falls:
    """How much moving one column by t, to one side, may take off the margin: linear between the
    points t (ascending from 0) and after the last at slope ``after``."""

    t: FloatArray
    fall: FloatArray
    after: float

    def at(self, r: float) -> float:
        """At the distance r itself."""
        if r > self.t[-1]:
            return float(self.fall[-1] + self.after * (r - self.t[-1]))
        return float(np.interp(r, self.t, self.fall))

    def largest(self, r: float) -> float:
        """Within the distance r."""
        inside = self.fall[self.t <= r]
        return max(float(inside.max()), self.at(r), 0.0)

    def rate(self, r: float) -> float:
        """Largest fall per distance within r: of chords, at their ends."""
        inside = (self.t <= r) & (self.t > 0.0)
        rates = self.fall[inside] / self.t[inside]
        return max(float(rates.max(initial=0.0)), self.at(r) / r if r > 0.0 else 0.0)


def _falls(
    form: Additive, row: FloatArray, code: int, rival: int, unit: FloatArray
) -> list[list[_Falls]]:
    """Both sides of every number that is there."""
    made = []
    for j, shape in enumerate(form.shapes):
        if isinstance(shape, NumberShape) and not np.isnan(row[j]):
            sides = [_side(form, shape, row[j], code, rival, unit[j], s) for s in (-1, 1)]
            made.append(sides)
    return made


def _side(
    form: Additive, shape: NumberShape, x: float, code: int, rival: int, unit: float, sign: int
) -> _Falls:
    knots = shape.knots[sign * shape.knots > sign * x]
    points = np.concatenate([[x], knots[::sign]])
    F = shape(points)
    F -= F[0]
    slope = sign * shape.outer[:, (sign + 1) // 2] * unit
    both = np.vstack([F, slope])
    fall = member_extreme(form.planes, both, rival, largest=True)
    fall = fall - member_extreme(form.planes, both, code, largest=False)
    return _Falls(sign * (points - x) / unit, fall[:-1], float(fall[-1]))


def _largest_radius(falls: list[list[_Falls]], margin: float, norm: float, most: float) -> float:
    """The largest r whose fall leaves a margin; that fall only grows with r."""
    if margin <= 0.0:
        return 0.0

    def fall(r: float) -> float:
        if norm == np.inf:
            return sum(max(side.largest(r) for side in sides) for sides in falls)
        rates = np.array([max(side.rate(r) for side in sides) for sides in falls])
        return r * float(np.linalg.norm(rates, DUAL[norm])) if len(rates) else 0.0

    if fall(most) < margin:
        return most
    low, high = 0.0, most
    for _ in range(HALVINGS):
        # In proportion first: radii lie many powers of ten below ``most``.
        middle = np.sqrt(low * high) if low > 0.0 else high / 16.0
        low, high = (middle, high) if fall(middle) < margin else (low, middle)
        if high - low <= 1e-6 * high:
            break
    return low


# --- probabilities under measurement error ---


@dataclass(frozen=True, eq=False)
class ProbabilityIntervals:
    """low, probability, high : (n, C). Whatever rows within the stated errors are asked, the
    model's probabilities stay between ``low`` and ``high``."""

    classes: tuple[Any, ...]
    low: FloatArray
    probability: FloatArray
    high: FloatArray

    @property
    def is_certain(self) -> BoolArray:
        """(n,) rows whose answer no error within the stated ones changes."""
        best = self.probability.argmax(axis=1)
        rows = np.arange(len(best))
        others = self.high.copy()
        others[rows, best] = -np.inf
        certain: BoolArray = self.low[rows, best] > others.max(axis=1)
        return certain

    def to_frame(self) -> Any:
        return frame_of(self._records(), HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": plain(self._records())}

    def to_html(self) -> str:
        return html_of("intervals", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _records(self) -> list[dict[str, Any]]:
        parts = (self.low, self.probability, self.high)
        return [
            dict(zip(HEADINGS, (i, label, *(float(part[i, c]) for part in parts)), strict=True))
            for i in range(len(self.low))
            for c, label in enumerate(self.classes)
        ]

    def _table(self) -> SmallTable:
        rows = tuple(tuple(one.values()) for one in self._records())
        return SmallTable("Probabilities under the stated errors", HEADINGS, rows)


HEADINGS = ("row", "label", "low", "probability", "high")


def probability_intervals(
    model: GeometricMixture, X: Any, errors: Mapping[Any, float]
) -> ProbabilityIntervals:
    """Bounds of every probability when each named column may be off by up to its error, in its
    own units, all at once.

    p_c = 1 / (1 + sum_k exp(S_k - S_c)), and S_k - S_c grows by no more than, over the planes of
    both, sum_j max over |d_j| <= e_j of the difference: exact for one plane per class.
    """
    form = pairless(model)
    encoded = encoded_rows(model, X)
    box = _box(model, form, errors)
    P = model.answer("predict_proba", encoded)
    low, high = np.empty_like(P), np.empty_like(P)
    for i, row in enumerate(encoded):
        grow = _growth(form, row, box) / form.temperature
        S = class_scores(form, form.scores(row[None, :])[0]) / form.temperature
        gap = S[None, :] - S[:, None]  # [c, k] = S_k - S_c
        most, least = gap + grow, gap - grow.T
        np.fill_diagonal(most, 0.0)
        np.fill_diagonal(least, 0.0)
        with np.errstate(over="ignore"):
            low[i] = 1.0 / np.exp(most).sum(axis=1)
            high[i] = 1.0 / np.exp(least).sum(axis=1)
    return ProbabilityIntervals(
        tuple(model.classes.tolist()),
        np.minimum(low * (1.0 - ROUNDING), P),
        P,
        np.maximum(np.minimum(high * (1.0 + ROUNDING), 1.0), P),
    )


def _box(model: GeometricMixture, form: Additive, errors: Mapping[Any, float]) -> FloatArray:
    """(n_columns,) half-widths."""
    box = np.zeros(len(form.shapes))
    for column, error in errors.items():
        j = column_place(model, column)
        if form.shapes[j].kind == "category":
            raise ValueError(f"Column {column!r} is a category; errors are of numbers.")
        if not 0.0 <= float(error) < np.inf:
            raise ValueError(f"Got error {error!r} of {column!r}; expected a number of at least 0.")
        box[j] = float(error)
    return box


def _growth(form: Additive, row: FloatArray, box: FloatArray) -> FloatArray:
    """[c, k]: by how much s_k - s_c may grow within the box, (C, C)."""
    planes = form.planes
    straight = straight_slopes(form)
    n_classes = planes.n_classes
    grow = np.zeros((n_classes, n_classes))
    if straight is not None and planes.n_members == 1:
        reach = straight * np.where(np.isnan(row), 0.0, box)
        between = np.abs(reach[None] - reach[:, None]).sum(axis=2)
        starts = planes.class_start[:-1]
        by_row = np.maximum.reduceat(between, starts, axis=0)
        most: FloatArray = np.maximum.reduceat(by_row, starts, axis=1)
        return most
    for j in np.flatnonzero((box > 0.0) & ~np.isnan(row)):
        shape = form.shapes[j]
        assert isinstance(shape, NumberShape)
        inner = shape.knots[np.abs(shape.knots - row[j]) < box[j]]
        F = shape(np.concatenate([[row[j]], inner, [row[j] - box[j], row[j] + box[j]]]))
        F -= F[0]
        up = np.stack([member_extreme(planes, F, c, largest=True) for c in range(n_classes)])
        down = np.stack([member_extreme(planes, F, c, largest=False) for c in range(n_classes)])
        # The value at the row itself is zero, so the largest is never below.
        grow += (up[None] - down[:, None]).max(axis=2)
    return grow
