"""The output of ``geomix predict``: columns of predictions, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.exit_codes import usage_error
from geomix.command.metrics import MetricSums
from geomix.command.summary import metrics_line
from geomix.explain.cells import encoded_rows
from geomix.table.labels import label_codes
from geomix.tablefile.alignment import Alignment

N_COLUMNS_EXPLAINED = 3  # columns with the largest contributions, in the column "reasons"
ROWS_EXPLAINED_AT_ONCE = 4096  # explanations take more memory than predictions


class PredictionTable:
    """The columns of the output, and the blocks of rows that fill them.

    kept : input columns that are copied
    prediction, probability : the predicted class and its probability
    plane : the plane of that class with the largest responsibility, counted from 1
    n_empty_rows : rows without any value so far
    """

    def __init__(
        self,
        alignment: Alignment,
        kept: list[str],
        *,
        proba: bool,
        explain: bool,
        target: str | None,
    ) -> None:
        model = alignment.model
        self.alignment, self.kept = alignment, kept
        self.explain, self.target, self.n_empty_rows = explain, target, 0
        self._sums = MetricSums(model)
        labels = [f"p_{label}" for label in model.classes.tolist()]
        self.probability_names = labels if proba else []
        reasons = ["against", "reasons"] if explain else []
        self.names = [
            *kept,
            "prediction",
            "probability",
            "plane",
            *self.probability_names,
            *reasons,
        ]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise usage_error(
                f"the output would have two columns {twice!r}; rename the one in the input"
            )

    def blocks(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        """(columns by name, number of rows) per block; one empty block if there are no rows."""
        is_empty = True
        for rows in self.alignment.rows(target=self.target, raw=self.kept):
            yield {**rows.raw, **self._predictions(rows.X, rows.labels)}, rows.block.n_rows
            is_empty = False
        if is_empty:
            yield self._no_rows(), 0

    def _predictions(self, X: Any, labels: Any) -> dict[str, Any]:
        import pyarrow

        model = self.alignment.model
        encoded = encoded_rows(model, X)
        self.n_empty_rows += int(np.isnan(encoded).all(axis=1).sum())
        code = model.answer("class_scores", encoded).argmax(axis=1)
        P = model.answer("predict_proba", encoded)
        if labels is not None:
            self._sums.add(P, label_codes(labels, model.classes))
        made: dict[str, Any] = {
            "prediction": pyarrow.array(model.classes.tolist()).take(pyarrow.array(code)),
            "probability": pyarrow.array(P[np.arange(len(P)), code]),
            "plane": pyarrow.array(self._planes(encoded, code)),
        }
        made |= {
            name: pyarrow.array(np.ascontiguousarray(P[:, c]))
            for c, name in enumerate(self.probability_names)
        }
        return made | (self._explanations(X) if self.explain else {})

    def metrics(self) -> list[str]:
        """One line of metrics if the rows have labels, else an empty list."""
        return [metrics_line(self._sums.metrics())] if self._sums.n_rows else []

    def _planes(self, encoded: FloatArray, code: IntArray) -> IntArray:
        model = self.alignment.model
        A = model.answer("responsibilities", encoded)
        own = np.where(model.planes.class_of == code[:, None], A, -1.0)
        return own.argmax(axis=1) - model.planes.class_start[code] + 1

    def _explanations(self, X: Any) -> dict[str, Any]:
        import pyarrow

        against: list[str] = []
        reasons: list[str] = []
        for start in range(0, X.num_rows, ROWS_EXPLAINED_AT_ONCE):
            found = self.alignment.model.explain_local(X.slice(start, ROWS_EXPLAINED_AT_ONCE))
            against.extend(str(found.classes[code]) for code in found.against)
            order = np.argsort(-np.abs(found.contributions), axis=1, kind="stable")
            strongest = order[:, :N_COLUMNS_EXPLAINED]
            for row, columns in zip(found.contributions, strongest, strict=True):
                reasons.append("; ".join(f"{found.columns[j]} {row[j]:+.3g}" for j in columns))
        text = pyarrow.string()
        return {"against": pyarrow.array(against, text), "reasons": pyarrow.array(reasons, text)}

    def _no_rows(self) -> dict[str, Any]:
        import pyarrow

        text = pyarrow.array([], pyarrow.string())
        labels = pyarrow.array(self.alignment.model.classes.tolist()).slice(0, 0)
        numbers = pyarrow.array([], pyarrow.float64())
        known = {"prediction": labels, "plane": pyarrow.array([], pyarrow.int64())}
        known |= dict.fromkeys(["probability", *self.probability_names], numbers)
        return {name: known.get(name, text) for name in self.names}
