"""Fits on arrays on a device: torch, CuPy, JAX, or any array of the array API standard.

The survey and the search on a sample run on the host. Every pass of the final training runs on
the device (``array_api.terms``); only parameters and sums are copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from geomix.core.array_api import CELLS_PER_BLOCK, Like, features, slices, terms, to_numpy
from geomix.core.objective import BatchTerms
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums, tree_sum
from geomix.out_of_core.part_reader import PartReader
from geomix.out_of_core.survey import (
    RowPart,
    Survey,
    labels_and_weights,
    survey_part,
    with_factors,
)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Rows of an array on a device: surveyed on the host, trained on the device."""

    X: Any
    y: Any
    weight: Any = None
    is_exact: bool = True

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey:
        part = with_factors(RowPart(to_numpy(self.X), self.y, self.weight), factor_of)
        return survey_part(part, 0, seed, categorical_features)

    def sums(self, reader: PartReader) -> AbstractContextManager[Sums]:
        return nullcontext(_ArraySums(self, reader))


class _ArraySums:
    """Sums of rows, computed on their device."""

    def __init__(self, source: ArraySource, reader: PartReader) -> None:
        X, like = source.X, Like(source.X)
        y, weight, used = labels_and_weights(RowPart(source.X, source.y, source.weight))
        codes = reader.classes.codes(y)
        if reader.class_weight is not None:
            weight = weight * reader.class_weight[codes]
        if used is not None:
            X = like.xp.take(X, like.integers(used), axis=0)
        self._reader, self._X = reader, X
        self._y, self._weight = like.integers(codes), like.floats(weight)

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        return tree_sum(
            terms(planes, sharpness, Phi, y, weight, label_smoothing)
            for Phi, y, weight in self._blocks()
        )

    def _blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        reader = self._reader
        size = max(CELLS_PER_BLOCK // max(reader.feature_map.n_outputs, 1), 256)
        for at in slices(self._X.shape[0], size):
            Phi = features(self._X[at, :], reader.feature_map)
            yield Phi, self._y[at], self._weight[at]
