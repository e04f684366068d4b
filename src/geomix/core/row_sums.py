"""Sums over rows at given planes: loss, gradients and usage, all that L-BFGS needs.

They are sums (``objective.BatchTerms``), so the solver works the same whether the rows are in an
array, in blocks on a disk, in partitions on a cluster or on another device: it needs a method
``terms``.

Sums of parts are added in a tree whose shape depends on the number of parts alone, so equal
parts give equal bits, in whatever order and on whatever machine they were computed.

``NumpyRows`` are rows in an array, by the reference functions; ``NativeRows`` is in ``native``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from geomix.arrays import CenteredSparse, FloatArray, IntArray, Matrix
from geomix.core.objective import BatchTerms, batch_terms, cross_entropy
from geomix.core.planes import Planes
from geomix.core.pooling import pool
from geomix.core.spline import Binned
from geomix.table.row_views import blocks

Addable = TypeVar("Addable", bound=Any)


class Sums(Protocol):
    """Rows, in memory or elsewhere, that return their sums."""

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        """Loss, gradients and usage at ``planes``, as weighted sums over all rows."""
        ...


class NumpyRows:
    """Rows with codes and weights, by the reference functions; dense ones block by block, so that
    the scores of all rows by all planes are never in memory at once."""

    def __init__(self, X: Matrix, y: IntArray, weight: FloatArray) -> None:
        self._rows = X, y, weight

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        first, *rest = (
            batch_terms(planes, sharpness, *block, label_smoothing) for block in self._blocks()
        )
        return sum(rest, first)

    def cross_entropy(self, planes: Planes, sharpness: float) -> float:
        found = [
            (cross_entropy(planes, sharpness, *block), block[2].sum()) for block in self._blocks()
        ]
        losses, masses = np.transpose(found)
        return float(np.average(losses, weights=masses))

    def class_scores(self, planes: Planes, sharpness: float) -> FloatArray:
        """s_c before calibration, (n_rows, n_classes)."""
        return np.concatenate(
            [pool(planes.scores(X), planes.class_start, sharpness)[0] for X, _, _ in self._blocks()]
        )

    def _blocks(self) -> Iterator[tuple[Matrix, IntArray, FloatArray]]:
        X, y, weight = self._rows
        if isinstance(X, (CenteredSparse, Binned)) or len(X) == 0:
            yield X, y, weight
            return
        for rows, block in blocks(X):
            yield block, y[rows], weight[rows]


def tree_sum(parts: Iterable[Addable]) -> Addable:
    """Neighbours first, then neighbouring pairs, and so on; about log2(n) sums are held at once.

    Examples
    --------
    >>> tree_sum(["a", "b", "c"])
    'abc'
    """
    waiting: list[tuple[int, Addable]] = []
    for one in parts:
        height = 0
        while waiting and waiting[-1][0] == height:
            one = waiting.pop()[1] + one
            height += 1
        waiting.append((height, one))
    if not waiting:
        raise ValueError("There is nothing to add: expected at least one part with rows.")
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total


@dataclass(frozen=True, eq=False)
class PartSums:
    """The sums of parts that come one after another, once for every pass."""

    parts: Callable[[], Iterable[Sums]]

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        return tree_sum(part.terms(planes, sharpness, label_smoothing) for part in self.parts())


@dataclass(eq=False)
class Remembered:
    """The same sums, computed once where the same planes come twice in a row.

    A stage of L-BFGS begins at the planes whose usage was just computed, and a pass over rows out
    of core is expensive.
    """

    sums: Sums
    n_passes: int = 0
    _vector: FloatArray | None = None
    _settings: tuple[float, float] = (0.0, 0.0)
    _terms: BatchTerms | None = None

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        vector, settings = planes.as_vector(), (sharpness, label_smoothing)
        same = self._settings == settings and np.array_equal(vector, self._vector)  # type: ignore[arg-type]
        if self._terms is None or not same:
            self._terms = self.sums.terms(planes, sharpness, label_smoothing)
            self._vector, self._settings = vector, settings
            self.n_passes += 1
        return self._terms
