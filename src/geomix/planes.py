"""Planes: one affine score per plane, the planes of a class side by side.

    z_cm(x) = w_cm . phi(x) + b_cm

Shapes: ``weights`` (n_planes, n_inputs), ``biases`` (n_planes,), and ``class_start``
(n_classes + 1,), so that class c owns planes ``class_start[c]:class_start[c + 1]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix


def class_starts(planes_per_class: Sequence[int] | IntArray) -> IntArray:
    """Offsets of each class's first plane, with the total at the end: [2, 1] -> [0, 2, 3]."""
    return np.concatenate([[0], np.cumsum(planes_per_class)]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Planes:
    """Every plane of every class. Frozen: training makes new planes, it never edits these."""

    weights: FloatArray
    biases: FloatArray
    class_start: IntArray

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
    def class_of(self) -> IntArray:
        """The class of each plane."""
        return np.repeat(np.arange(self.n_classes), self.per_class)

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
        return Planes(vector[:split].reshape(self.weights.shape), vector[split:], self.class_start)

    def with_class_bias(self, shift: FloatArray) -> Planes:
        """Add ``shift[c]`` to every bias of class c, which adds it to that class's score."""
        return Planes(self.weights, self.biases + shift[self.class_of], self.class_start)

    def through(self, matrix: FloatArray, offset: FloatArray) -> Planes:
        """The same scores read before an affine map: planes over x when u = matrix x + offset.

        w . (M x + o) + b = (M' w) . x + (b + w . o)
        """
        return Planes(self.weights @ matrix, self.biases + self.weights @ offset, self.class_start)
