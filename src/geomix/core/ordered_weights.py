"""Planes whose weights keep an order, as numbers with bounds that a solver works on.

Of one column of the weight matrix, entries v_p of some planes (U) lie above all others, those of
others (L) below. It becomes bounds by writing

    v_p = t + e_p (p in U),   v_p = t - e_p (the rest)                   only U, or only L turned
    v_p = t + e_p (U),   v_p = t - g - e_p (L),   v_p = t - g e_p (the rest, e_p <= 1)      both

with e_p >= 0 and g >= 0. Floating-point sums keep the order exactly: t + e >= t. Native code has
the same formulas in ``native/solvers/ordered.h``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.core.planes import Planes

# The side of each ordered weight, as native code numbers them.
ABOVE, BELOW, LOWEST, MIDDLE = range(4)


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
        coordinates = OrderedWeights(self, planes)
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
        above = OrderedWeights(self, planes).sign > 0.0
        lowest = np.where(above, V, np.inf).min(axis=0)
        highest = np.where(above, -np.inf, V).max(axis=0)
        # Where all planes rise, or none, zero is moved to the nearest of them.
        lowest = np.where(np.isfinite(lowest), lowest, highest)
        highest = np.where(np.isfinite(highest), highest, lowest)
        weights[:, self.features] = V - (lowest / 2.0 + highest / 2.0)
        return replace(planes, weights=weights)


class OrderedWeights:
    """Planes as bounded numbers: the flat planes with e in place of the ordered weights, then t
    and g, (K,) each."""

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

    @property
    def sides(self) -> IntArray:
        """(P, K) the side of each ordered weight."""
        plain = np.where(self.sign > 0.0, ABOVE, BELOW)
        return np.where(self.middle, MIDDLE, np.where(self.below, LOWEST, plain)).astype(np.uint8)
