"""Monotone probabilities by an order of the planes' weights, kept while training.

``monotonic_cst={"dose": {"toxic": +1}}`` requires that p(toxic) never falls as dose rises, for any
values of the other columns. With f'_p the slope of plane p along the column,

    d log p_c / dx = (1/T) sum_k p_k (r_c - r_k),     r_c = sum_p a_cp f'_p,

a mean of differences of means; so it is enough that, between any two knots,

    f'_p >= f'_q     for every plane p of class c and every plane q of another class.       (*)

Slopes are weights, up to a positive factor that all planes share: those of the standardised
column (linear), or of each step between knots (spline). So (*) is an order of the entries v_p of
one column of the weight matrix: classes that rise (U) above all others, classes that fall (L)
below. It becomes bounds by writing

    v_p = t + e_p (p in U),   v_p = t - e_p (the rest)                   only U, or only L turned
    v_p = t + e_p (U),   v_p = t - g - e_p (L),   v_p = t - g e_p (the rest, e_p <= 1)      both

with e_p >= 0 and g >= 0, and SciPy's L-BFGS-B takes the place of ours. Floating-point sums keep
the order exactly: t + e >= t. Where two classes are both to rise, (*) asks their planes to be
equal there: e = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.descent import Descended, Descent, descend
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums
from geomix.errors import InvalidParameterError
from geomix.table.schema import Schema
from geomix.training.parameter_checks import checked, is_sign


@dataclass(frozen=True)
class Direction:
    """The probability of class ``code`` only rises (sign 1) or falls (-1) with a column."""

    column: int
    code: int
    sign: int


def read_directions(monotonic_cst: Any, schema: Schema, classes: Any) -> tuple[Direction, ...]:
    """The parameter ``monotonic_cst`` in positions and codes.

    monotonic_cst : None; {column: {label: sign}}; with two classes also {column: sign} or one sign
        for each column, about the second class. A sign is 1 (rises), -1 (falls) or 0 (free).
    """
    labels = classes.tolist()
    made: dict[tuple[int, int], Direction] = {}
    for column, wanted in _by_column(monotonic_cst, schema).items():
        j = _column(column, schema)
        for label, sign in _by_label(column, wanted, labels).items():
            one = Direction(j, _code(label, labels), _sign(column, label, sign))
            if (one.column, one.code) in made:
                raise InvalidParameterError(
                    f"monotonic_cst names the column {column!r} twice, by name and by position."
                )
            made[one.column, one.code] = one
    bound = tuple(one for one in made.values() if one.sign != 0)
    for one in bound:
        _refuse_category(one.column, schema)
    return bound


def is_about_two_classes(monotonic_cst: Any) -> bool:
    """Whether the parameter has signs without a class, which only two classes allow."""
    if monotonic_cst is None or isinstance(monotonic_cst, str):
        return False
    is_mapping = isinstance(monotonic_cst, Mapping)
    signs = monotonic_cst.values() if is_mapping else np.ravel(np.asarray(monotonic_cst, object))
    return any(is_sign(sign) and sign != 0 for sign in signs)


def _refuse_category(column: int, schema: Schema) -> None:
    if schema.is_category[column]:
        raise InvalidParameterError(
            f"monotonic_cst names the column {schema.names[column]!r}, which is a category; its "
            "levels have no order."
        )


def _by_column(monotonic_cst: Any, schema: Schema) -> Mapping[Any, Any]:
    wanted = checked({"monotonic_cst": monotonic_cst})["monotonic_cst"]
    if wanted is None or isinstance(wanted, Mapping):
        return wanted or {}
    if len(wanted) != len(schema):
        raise InvalidParameterError(
            f"Got monotonic_cst with {len(wanted)} entries; expected {len(schema)}, one for each "
            "column of X."
        )
    return {j: sign for j, sign in enumerate(wanted) if sign != 0}


def _by_label(column: Any, wanted: Any, labels: list[Any]) -> Mapping[Any, Any]:
    """The signs of a column by class; a plain sign is about the second of two classes."""
    if isinstance(wanted, Mapping):
        return wanted
    if is_sign(wanted) and wanted == 0:
        return {}
    if len(labels) != 2:
        raise InvalidParameterError(
            f"Only binary classification is supported by monotonic_cst[{column!r}]={wanted!r}, "
            f"which names no class; got {len(labels)} classes. Pass a dict by class, such as "
            f"{{{column!r}: {{{labels[-1]!r}: 1}}}}."
        )
    return {max(labels): wanted}  # training has an order of classes of its own


def _code(label: Any, labels: list[Any]) -> int:
    if label not in labels:
        raise InvalidParameterError(
            f"monotonic_cst names the class {label!r}, which is not among {labels!r}."
        )
    return labels.index(label)


def _sign(column: Any, label: Any, sign: Any) -> int:
    if not is_sign(sign):
        raise InvalidParameterError(
            f"Got monotonic_cst[{column!r}][{label!r}]={sign!r}; expected 1, -1 or 0."
        )
    return int(sign)


def _column(column: Any, schema: Schema) -> int:
    is_place = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if isinstance(column, str) and column in schema.names:
        j = schema.names.index(column)
    elif is_place and 0 <= column < len(schema):
        j = int(column)
    else:
        raise InvalidParameterError(
            f"monotonic_cst names the column {column!r}, which X does not have: "
            f"{list(schema.names)!r}."
        )
    return j


@dataclass(frozen=True, eq=False)
class Order:
    """Which entries of the weights are ordered.

    features : (K,) working features;  up, down : (K, C) classes that rise or fall with each
    """

    features: IntArray
    up: BoolArray
    down: BoolArray

    def feasible(self, planes: Planes) -> Planes:
        """Planes moved as little as need be for the order to hold; those that keep it stay."""
        if not len(self.features):
            return planes
        coordinates = _Coordinates(self, planes)
        return coordinates.planes_at(coordinates.start)

    def without_common_part(self, planes: Planes) -> Planes:
        """The same probabilities from planes that lie on their own side of zero.

        One number subtracted from all planes changes no probability. A number between those of the
        rising planes and the rest makes them at least and at most zero, exactly. Where the order
        holds with equality all are zero, so a flat curve is flat to the last bit.
        """
        if not len(self.features):
            return planes
        weights = planes.weights.copy()
        V = weights[:, self.features]
        above = _Coordinates(self, planes).sign > 0.0
        lowest = np.where(above, V, np.inf).min(axis=0)
        highest = np.where(above, -np.inf, V).max(axis=0)
        weights[:, self.features] = V - (lowest / 2.0 + highest / 2.0)
        return replace(planes, weights=weights)


def order_of(
    directions: tuple[Direction, ...], feature_map: FeatureMap, n_classes: int
) -> Order | None:
    """The order of the weights that the directions require; None without directions."""
    if not directions:
        return None
    places: dict[int, tuple[BoolArray, BoolArray]] = {}
    for one in directions:
        for feature in feature_map.slopes_along(one.column):
            none = np.zeros(n_classes, dtype=bool)
            up, down = places.setdefault(int(feature), (none, none.copy()))
            (up if one.sign > 0 else down)[one.code] = True
    features = np.array(sorted(places), dtype=np.intp)
    shape = len(features), n_classes
    up = np.array([places[f][0] for f in features.tolist()], dtype=bool).reshape(shape)
    down = np.array([places[f][1] for f in features.tolist()], dtype=bool).reshape(shape)
    return Order(features, up, down)


class _Coordinates:
    """Planes as the bounded numbers that L-BFGS-B works on: the flat planes with e in place of the
    ordered weights, then t and g, (K,) each."""

    def __init__(self, order: Order, planes: Planes) -> None:
        self.planes, self.features = planes, order.features
        class_of = planes.class_of
        up, down = order.up[:, class_of].T, order.down[:, class_of].T  # (P, K)
        self.both = order.up.any(axis=1) & order.down.any(axis=1)  # (K,)
        only_down = order.down.any(axis=1) & ~self.both
        # With L alone the signs are reversed: the rest lies above L.
        self.sign = np.where(up | (only_down & ~down), 1.0, -1.0)
        self.middle = self.both & ~up & ~down
        self.below = self.both & down
        crowded_up = up & (order.up.sum(axis=1) > 1)
        crowded_down = down & (order.down.sum(axis=1) > 1)
        self.tied = crowded_up | crowded_down
        self.start = self._start()

    def _start(self) -> FloatArray:
        V = self.planes.weights[:, self.features]
        above = self.sign > 0.0
        lowest = np.where(above, V, np.inf).min(axis=0)
        highest = np.where(above, -np.inf, V).max(axis=0)
        t = np.where(
            np.isfinite(lowest),
            np.where(np.isfinite(highest), (lowest + highest) / 2.0, lowest),
            highest,
        )
        V = np.where(above, np.maximum(V, t), np.minimum(V, t))
        lower = np.where(self.below, V, -np.inf).max(axis=0)
        between = np.where(self.middle, V, np.inf).min(axis=0)
        between = np.where(np.isfinite(between), between, t)
        ends = np.where(self.both, (np.where(self.both, lower, 0.0) + between) / 2.0, t)
        g = np.where(self.both, np.maximum(t - ends, 0.0), 0.0)
        e = np.where(self.below, t - g - V, np.where(above, V - t, t - V))
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(g > 0.0, (t - V) / g, 0.0)
        e = np.where(self.middle, np.clip(part, 0.0, 1.0), np.maximum(e, 0.0))
        e = np.where(self.tied, 0.0, e)
        weights = self.planes.weights.copy()
        weights[:, self.features] = e
        return np.concatenate([replace(self.planes, weights=weights).as_vector(), t, g])

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        low = np.full(self.start.shape, -np.inf)
        high = np.full(self.start.shape, np.inf)
        weights_low, weights_high = self._as_weights(low), self._as_weights(high)
        weights_low[:, self.features] = 0.0
        weights_high[:, self.features] = np.where(
            self.tied, 0.0, np.where(self.middle, 1.0, np.inf)
        )
        n = len(self.features)
        low[-n:] = 0.0
        high[-n:] = np.where(self.both, np.inf, 0.0)
        return low, high

    def _as_weights(self, vector: FloatArray) -> FloatArray:
        """A view of the weights' part of a vector."""
        return vector[: self.planes.weights.size].reshape(self.planes.weights.shape)

    def _split(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        n = len(self.features)
        inner = vector[: -2 * n]
        e = self._as_weights(vector)[:, self.features]
        return inner, e, vector[-2 * n : -n], vector[-n:]

    def planes_at(self, vector: FloatArray) -> Planes:
        inner, e, t, g = self._split(vector)
        V = np.where(self.middle, t - g * e, np.where(self.below, (t - g) - e, t + self.sign * e))
        planes = self.planes.with_vector(inner.copy())
        planes.weights[:, self.features] = V
        return planes

    def gradient(self, vector: FloatArray, of_planes: FloatArray) -> FloatArray:
        """The chain rule, from the gradient over the flat planes."""
        _, e, _, g = self._split(vector)
        out = of_planes.copy()
        weights = self._as_weights(out)
        V = weights[:, self.features].copy()
        weights[:, self.features] = np.where(self.middle, -g * V, self.sign * V)
        by_t = V.sum(axis=0)
        by_g = -np.where(self.below, V, 0.0).sum(axis=0) - np.where(self.middle, e * V, 0.0).sum(
            axis=0
        )
        return np.concatenate([out, by_t, by_g])


def minimize(rows: Sums, descent: Descent, order: Order) -> Descended:
    """``kernel.minimize`` under an order: SciPy's bounded L-BFGS over the native loss."""
    return descend(rows, descent, _Coordinates(order, descent.planes))
