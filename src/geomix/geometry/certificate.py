"""Certified radii: how far a row may change before the prediction can change (``certify``).

Only numbers move, by up to r in units of ``scale`` (default: standard deviations of the training
rows). Categories and missing cells stay. For the predicted class c, with w the slopes per unit and
* the dual norm, two lower bounds of the radius hold for the soft model, and the larger is
reported:

    max_{p of c} min_{q of k != c} (z_p - z_q - log(M_k) / n) / ||w_p - w_q||_*    by planes
    min_{k != c} (s_c - s_k) / max_{p of c, q of k} ||w_p - w_q||_*                by scores

(n = sharpness). By planes: while z_p leads z_q by log(M_k) / n, s_c >= z_p >= s_k. By scores: a
soft-OR changes at most as fast as its fastest plane, so the margin falls by at most r times the
fastest difference. For curves and ensembles the fall of the margin is bounded by columns
(``column_radius.py``).

``method="exact"`` (linear models) also returns ``hard_radius``, the exact distance to the nearest
row where another class has the largest plane, from one convex program per plane of another class.
The same programs with log(M) / n subtracted give a larger certified radius.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.pooling import pool
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import encoded_rows
from geomix.geometry.bounds import ROUNDING, plane_programs, soft_slack, straight_slopes
from geomix.geometry.column_radius import LARGEST_RADIUS, radius_by_columns
from geomix.geometry.constraints import unit_sizes
from geomix.geometry.projection import DUAL
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

NORMS = {1: 1.0, 2: 2.0, np.inf: np.inf, "l1": 1.0, "l2": 2.0, "inf": np.inf}


@dataclass(frozen=True, eq=False)
class Certificates:
    """labels : (n,) predicted classes
    radius : (n,) within which no change of numbers changes the prediction; infinite (None in
        ``to_dict``) if it is proved that no change of numbers does, as for rows without numbers
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
            record = {"row": i, "label": label, "radius": float(self.radius[i])}
            if self.hard_radius is not None:
                record["hard_radius"] = float(self.hard_radius[i])
            records.append(record)
        return records

    def _table(self) -> SmallTable:
        headings = self._headings()
        rows = tuple(tuple(one[name] for name in headings) for one in self._records())
        title = f"No change of numbers within the radius ({self.unit}, norm {self.norm:g}) changes"
        return SmallTable(f"{title} the prediction", headings, rows)


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
    form, p = additive(model), NORMS[norm]
    encoded = encoded_rows(model, X)
    unit = unit_sizes(model, form, scale)
    labels = model.answer("class_scores", encoded).argmax(axis=1)
    straight = straight_slopes(form)
    hard = None
    if straight is None or form.planes.n_members > 1:
        if method == "exact":
            raise ValueError(
                "method='exact' needs a linear model with n_members=1; use method='fast', whose "
                "radii are proved lower bounds."
            )
        radius = np.array(
            [
                radius_by_columns(form, row, c, p, unit)
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
    radius = np.where(np.isinf(radius), np.inf, np.clip(radius, 0.0, LARGEST_RADIUS))
    named = "standard deviations" if scale is None else "units of scale"
    return Certificates(model.classes[labels], radius, hard, p, named)


def _can_move(form: Additive, encoded: FloatArray) -> BoolArray:
    """(n, n_columns) which cells are numbers and not missing."""
    is_number = np.array([shape.kind == "number" for shape in form.shapes])
    return is_number & ~np.isnan(encoded)


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
    if not slopes.shape[1]:  # no column moves; NumPy before 2.0 has no largest entry of none
        return np.zeros((len(slopes), len(slopes)))
    between: FloatArray = np.linalg.norm(slopes[:, None, :] - slopes[None], DUAL[norm], axis=2)
    return between


def _closed_forms(
    form: Additive, Z: FloatArray, S: FloatArray, code: int, rate: FloatArray
) -> FloatArray:
    class_of, per_class = form.planes.class_of, form.planes.per_class
    own, others = np.flatnonzero(class_of == code), np.flatnonzero(class_of != code)
    slack = np.log(per_class[class_of[others]]) / form.sharpness
    lead = Z[:, own, None] - (Z[:, others] + slack)[:, None, :]
    lead = lead - ROUNDING * (1.0 + np.abs(lead))
    by_plane = _quotient(lead, rate[np.ix_(own, others)]).min(axis=2).max(axis=1)
    by_rate = np.full(len(Z), np.inf)
    for k in range(len(per_class)):
        if k != code:
            fastest = rate[np.ix_(own, np.flatnonzero(class_of == k))].max()
            margin = S[:, code] - S[:, k]
            margin = margin - ROUNDING * (1.0 + np.abs(margin))
            by_rate = np.minimum(by_rate, _quotient(margin, fastest))
    return np.maximum(by_plane, by_rate)


def _quotient(lead: FloatArray, rate: Any) -> FloatArray:
    """lead / rate; infinite where the lead is positive and nothing can reduce it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        radius: FloatArray = np.where(rate > 0.0, lead / rate, np.where(lead > 0.0, np.inf, 0.0))
    return radius


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
