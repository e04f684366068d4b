"""Predictions: whole tables in blocks, and one row at a time.

This module has the NumPy versions and the interface that the native ones share. Rows are
processed in blocks of one fixed size, the last one padded with zeros. Every row then goes through
the same operations in the same order whatever the size of its batch, so its prediction depends on
that row alone, to the last bit, and memory stays bounded.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.core.pooling import softmax
from geomix.core.spline import SplineLift
from geomix.table.one_hot import Expand
from geomix.table.schema import Schema

ROWS_PER_BLOCK = 128


@dataclass(frozen=True, eq=False)
class RowExplanation:
    """Explanation of one prediction.

    label : the winning class;  plane : its plane of largest responsibility, within the class;
    probability : of the winning class;  score : z of that plane;
    contributions : (n_columns,) what each column adds to ``score``; they and the bias sum to it.
    Half the value of a pair (spline lift) goes to each of its columns. None for a Fourier lift,
    whose planes are not sums over columns.
    """

    label: Any
    plane: int
    probability: float
    score: float
    contributions: FloatArray | None


class Predictor(Protocol):
    """Predictions for (n_rows, n_columns) rows: float64 arrays, or CSR matrices."""

    def predict_proba(self, X: Any) -> FloatArray: ...
    def class_scores(self, X: Any) -> FloatArray: ...
    def plane_scores(self, X: Any) -> FloatArray: ...
    def responsibilities(self, X: Any) -> FloatArray: ...


class Scorer(Protocol):
    """Predictions for one row: a 1-d array, a list or a tuple of numbers. Thread-safe."""

    def __call__(self, row: Any, *, out: FloatArray | None = None) -> FloatArray: ...
    def predict(self, row: Any) -> Any: ...
    def explain(self, row: Any) -> RowExplanation: ...


@dataclass(frozen=True, eq=False)
class NumpyPredictor:
    """From expanded rows to probabilities, by the reference functions."""

    feature_map: FeatureMap
    planes: Planes
    sharpness: float
    temperature: float

    def predict_proba(self, X: Any) -> FloatArray:
        return _in_blocks(lambda block: softmax(self._scores(block)), X, self.planes.n_classes)

    def class_scores(self, X: Any) -> FloatArray:
        return _in_blocks(self._scores, X, self.planes.n_classes)

    def plane_scores(self, X: Any) -> FloatArray:
        return _in_blocks(self._plane_scores, X, self.planes.n_planes)

    def responsibilities(self, X: Any) -> FloatArray:
        return _in_blocks(lambda block: self._pool(block)[1], X, self.planes.n_planes)

    def _plane_scores(self, block: Any) -> FloatArray:
        return self.planes.scores(self.feature_map.of_expanded(block))

    def _pool(self, block: Any) -> tuple[FloatArray, FloatArray]:
        return self.planes.pooled(self._plane_scores(block), self.sharpness)

    def _scores(self, block: Any) -> FloatArray:
        return self._pool(block)[0] / self.temperature


def _in_blocks(answer: Callable[[Any], FloatArray], X: Any, n_outputs: int) -> FloatArray:
    """``answer`` (rows, columns) -> (rows, n_outputs) applied to ``X`` block by block."""
    n_rows, n_columns = X.shape
    out = np.empty((n_rows, n_outputs))
    dense = isinstance(X, np.ndarray)
    for start in range(0, n_rows, ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK]
        n_in_block = block.shape[0]
        if dense and (n_in_block < ROWS_PER_BLOCK or not block.flags.c_contiguous):
            padded = np.zeros((ROWS_PER_BLOCK, n_columns))
            padded[:n_in_block] = block
            block = padded
        out[start : start + n_in_block] = answer(block)[:n_in_block]
    return out


@dataclass(frozen=True, eq=False)
class NumpyScorer:
    """One row at a time, by the reference functions.

    contributions : (n_planes, n_kept) weights over the standardised columns; None unless the lift
    is linear.
    """

    predictor: NumpyPredictor
    labels: tuple[Any, ...]
    contributions: FloatArray | None

    def __call__(self, row: Any, *, out: FloatArray | None = None) -> FloatArray:
        probabilities = self.predictor.predict_proba(self._table(row))[0]
        if out is None:
            return probabilities
        _check_out(out, len(self.labels))
        out[:] = probabilities
        return out

    def predict(self, row: Any) -> Any:
        return self.labels[int(self.predictor.class_scores(self._table(row))[0].argmax())]

    def explain(self, row: Any) -> RowExplanation:
        table, planes = self._table(row), self.predictor.planes
        code = int(self.predictor.class_scores(table)[0].argmax())
        first, end = planes.class_start[code : code + 2]
        own = int(self.predictor.responsibilities(table)[0, first:end].argmax())
        return RowExplanation(
            self.labels[code],
            own,
            float(self.predictor.predict_proba(table)[0, code]),
            float(self.predictor.plane_scores(table)[0, first + own]),
            self._contributions(table[0], int(first) + own),
        )

    def _contributions(self, row: FloatArray, plane: int) -> FloatArray | None:
        lift, standardize = self.predictor.feature_map.lift, self.predictor.feature_map.standardize
        if isinstance(lift, SplineLift):
            return lift.contributions(row, self.predictor.planes.weights[plane])
        if self.contributions is None:
            return None
        u = standardize.scaled(row[None, standardize.kept])[0]
        by_column = np.zeros(standardize.n_columns)
        by_column[standardize.kept] = self.contributions[plane] * u
        return by_column

    def _table(self, row: Any) -> FloatArray:
        if not isinstance(row, (np.ndarray, list, tuple)) or hasattr(row, "mask"):
            raise TypeError(
                f"Got a row of type {type(row).__name__}; expected a 1-d array, a list or a tuple."
            )
        if isinstance(row, np.ndarray) and row.dtype.kind not in "fiub":
            raise TypeError(f"Got a row of {row.dtype!r}; expected plain real numbers.")
        numbers = row if isinstance(row, np.ndarray) else np.array([_number(x) for x in row])
        if numbers.ndim != 1:
            raise ValueError(f"Got a row with {numbers.ndim} dimensions; expected 1.")
        n_columns = self.predictor.feature_map.standardize.n_columns
        if len(numbers) != n_columns:
            raise ValueError(
                f"Got a row of {len(numbers)} numbers; expected {n_columns}, one for each column."
            )
        return numbers[None, :].astype(np.float64)


def _number(cell: Any) -> float:
    if isinstance(cell, (str, bytes)):
        raise TypeError(f"Got a row with {reprlib.repr(cell)}; expected plain real numbers.")
    return float(cell)


def _check_out(out: Any, n_classes: int) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise TypeError("out must be an array of float64.")
    if out.shape != (n_classes,) or not out.flags.carray:
        raise ValueError(f"out must be a writeable, contiguous array of shape ({n_classes},).")


@dataclass(frozen=True, eq=False)
class CellReader:
    """One row of raw cells as the numbers that a model reads.

    The row is a list, a tuple, an array, or a dict by column name.
    """

    schema: Schema
    expand: Expand | None

    def __call__(self, row: Any) -> FloatArray:
        encoded = self.schema.encode_row(row)
        return encoded if self.expand is None else self.expand(encoded[None, :])[0]

    def explanation(
        self,
        label: Any,
        plane: int,
        probability: float,
        score: float,
        contributions: FloatArray | None,
    ) -> RowExplanation:
        """With contributions of the raw columns: sums over the 0/1 columns made of each."""
        if contributions is not None and self.expand is not None:
            contributions = self.expand.by_column(contributions)
        return RowExplanation(label, plane, probability, score, contributions)


@dataclass(frozen=True, eq=False)
class TableScorer:
    """One row of raw cells at a time, by the reference functions."""

    reader: CellReader
    scorer: Scorer

    def __call__(self, row: Any, *, out: FloatArray | None = None) -> FloatArray:
        return self.scorer(self.reader(row), out=out)

    def predict(self, row: Any) -> Any:
        return self.scorer.predict(self.reader(row))

    def explain(self, row: Any) -> RowExplanation:
        return self.reader.explanation(**vars(self.scorer.explain(self.reader(row))))
