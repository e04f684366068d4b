"""Planes: one affine score per plane, the planes of a class side by side.

    z_cm(x) = w_cm . phi(x) + b_cm

Shapes: ``weights`` (n_planes, n_inputs), ``biases`` (n_planes,), and ``class_start``
(n_classes + 1,), so that class c owns planes ``class_start[c]:class_start[c + 1]``.

An ensemble is several such models over the same features: the planes of a class are those of the
first member, then those of the second, and so on, equally many each. A class's score is the mean of
its members' soft-ORs, and a plane's responsibility its share of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix
from geomix.core.pooling import pool, soft_or


def class_starts(planes_per_class: Sequence[int] | IntArray) -> IntArray:
    """Offsets of each class's first plane, with the total at the end: [2, 1] -> [0, 2, 3]."""
    return np.concatenate([[0], np.cumsum(planes_per_class)]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Planes:
    """Every plane of every class. Frozen: training makes new planes, it never edits these."""

    weights: FloatArray
    biases: FloatArray
    class_start: IntArray
    n_members: int = 1

    @property
    def n_planes(self) -> int:
        return len(self.biases)

    @property
    def n_inputs(self) -> int:
        return int(self.weights.shape[1])

    @property
    def n_classes(self) -> int:
        return len(self.class_start) - 1

    @property
    def per_class(self) -> IntArray:
        """How many planes each class has."""
        return np.diff(self.class_start)

    @property
    def planes_per_member(self) -> IntArray:
        """How many planes each class has in one member of an ensemble, (n_classes,)."""
        return self.per_class // self.n_members

    @property
    def pool_starts(self) -> IntArray:
        """Offsets of the groups that are pooled: each class's planes, member by member."""
        return class_starts(np.repeat(self.planes_per_member, self.n_members))

    @property
    def class_of(self) -> IntArray:
        """The class of each plane."""
        return np.repeat(np.arange(self.n_classes), self.per_class)

    def pooled(self, Z: FloatArray, sharpness: float) -> tuple[FloatArray, FloatArray]:
        """Class scores (n_rows, n_classes) and responsibilities (n_rows, n_planes)."""
        if self.n_members == 1:
            return pool(Z, self.class_start, sharpness)
        S, A = pool(Z, self.pool_starts, sharpness)
        S = S.reshape(len(Z), self.n_classes, self.n_members).mean(axis=2)
        return S, A / self.n_members

    def class_scores(self, Z: FloatArray, sharpness: float) -> FloatArray:
        """The class scores of ``pooled`` alone, bit for bit."""
        S = soft_or(Z, self.pool_starts, sharpness)
        if self.n_members == 1:
            return S
        mean: FloatArray = S.reshape(len(Z), self.n_classes, self.n_members).mean(axis=2)
        return mean

    def scores(self, Phi: Matrix) -> FloatArray:
        """z = Phi W' + b, shape (n_rows, n_planes)."""
        Z: FloatArray = Phi @ self.weights.T
        Z += self.biases
        return Z

    def as_vector(self) -> FloatArray:
        """Weights and biases as one flat array, the form that solvers work on."""
        return np.concatenate([self.weights.ravel(), self.biases])

    def with_vector(self, vector: FloatArray) -> Planes:
        """The same layout of planes with the numbers of ``vector``."""
        split = self.weights.size
        weights = vector[:split].reshape(self.weights.shape)
        # A copy: biases that outlive the weights would keep all of the vector.
        return Planes(weights, vector[split:].copy(), self.class_start, self.n_members)

    def places_of(self, order: IntArray) -> IntArray:
        """(n_planes,) places of the planes, with the classes in ``order``."""
        return np.argsort(np.argsort(order)[self.class_of], kind="stable")

    def of_classes(self, order: IntArray) -> Planes:
        """The planes with the classes in another order: class ``order[c]`` becomes class c."""
        index = self.places_of(order)
        start = class_starts(self.per_class[order])
        return replace(
            self, weights=self.weights[index], biases=self.biases[index], class_start=start
        )

    def with_class_bias(self, shift: FloatArray) -> Planes:
        """Add ``shift[c]`` to every bias of class c, which adds it to that class's score."""
        biases = self.biases + shift[self.class_of]
        return Planes(self.weights, biases, self.class_start, self.n_members)

    def capped(self, largest: float | None) -> Planes:
        """Weight vectors longer than ``largest`` are scaled down to it; None for no cap."""
        if largest is None:
            return self
        norms = np.linalg.norm(self.weights, axis=1, keepdims=True)
        shrink = np.minimum(1.0, largest / np.maximum(norms, np.finfo(float).tiny))
        return replace(self, weights=self.weights * shrink)

    def through(self, matrix: FloatArray, offset: FloatArray) -> Planes:
        """The same scores read before an affine map: planes over x when u = matrix x + offset.

        w . (M x + o) + b = (M' w) . x + (b + w . o)
        """
        biases = self.biases + self.weights @ offset
        return replace(self, weights=self.weights @ matrix, biases=biases)


def ensemble(members: Sequence[Planes]) -> Planes:
    """The planes of several models over the same features, with equal numbers per class."""
    first = members[0]
    order = np.argsort(np.concatenate([one.class_of for one in members]), kind="stable")
    return Planes(
        np.concatenate([one.weights for one in members])[order],
        np.concatenate([one.biases for one in members])[order],
        first.class_start * len(members),
        len(members),
    )
