"""Answers as columns of an output table, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.exit_codes import usage
from geomix.command.metrics import Tally, codes_of
from geomix.command.summary import figures_line
from geomix.explain.cells import encoded_rows
from geomix.tablefile.alignment import Alignment

REASONS = 3
ROWS_AT_A_TIME = 4096  # of explanations, which take more memory than answers


class Answering:
    """The output's columns: those passed through, prediction, probability and plane (the one that
    answers for the row, counted within its class), and what else was asked for.

    n_empty : rows without any value, counted as blocks go by
    """

    def __init__(
        self,
        alignment: Alignment,
        passed: list[str],
        *,
        proba: bool,
        explain: bool,
        target: str | None,
    ) -> None:
        model = alignment.model
        self.alignment, self.passed = alignment, passed
        self.explain, self.target, self.n_empty = explain, target, 0
        self._tally = Tally(model)
        labels = [f"p_{label}" for label in model.classes.tolist()]
        self.shares = labels if proba else []
        reasons = ["against", "reasons"] if explain else []
        self.names = [*passed, "prediction", "probability", "plane", *self.shares, *reasons]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise usage(f"the output would have two columns {twice!r}; rename the one in the input")

    def blocks(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        """(columns by name, rows) of every block; at least one, which may be empty."""
        is_first = True
        for rows in self.alignment.rows(target=self.target, raw=self.passed):
            yield {**rows.raw, **self._answers(rows.X, rows.labels)}, rows.block.n_rows
            is_first = False
        if is_first:
            yield self._nothing(), 0

    def _answers(self, X: Any, labels: Any) -> dict[str, Any]:
        import pyarrow

        model = self.alignment.model
        encoded = encoded_rows(model, X)
        self.n_empty += int(np.isnan(encoded).all(axis=1).sum())
        code = model.answer("class_scores", encoded).argmax(axis=1)
        P = model.answer("predict_proba", encoded)
        if labels is not None:
            self._tally.add(P, codes_of(model, labels))
        made: dict[str, Any] = {
            "prediction": pyarrow.array(model.classes.tolist()).take(pyarrow.array(code)),
            "probability": pyarrow.array(P[np.arange(len(P)), code]),
            "plane": pyarrow.array(self._planes(encoded, code)),
        }
        made |= {
            name: pyarrow.array(np.ascontiguousarray(P[:, c])) for c, name in enumerate(self.shares)
        }
        return made | (self._reasons(X) if self.explain else {})

    def figures(self) -> list[str]:
        """How good the answers were, if there were labels: a line, or none."""
        return [figures_line(self._tally.figures())] if self._tally.n_rows else []

    def _planes(self, encoded: FloatArray, code: IntArray) -> IntArray:
        model = self.alignment.model
        A = model.answer("responsibilities", encoded)
        own = np.where(model.planes.class_of == code[:, None], A, -1.0)
        return own.argmax(axis=1) - model.planes.class_start[code]

    def _reasons(self, X: Any) -> dict[str, Any]:
        import pyarrow

        against: list[str] = []
        reasons: list[str] = []
        for start in range(0, X.num_rows, ROWS_AT_A_TIME):
            told = self.alignment.model.explain_local(X.slice(start, ROWS_AT_A_TIME))
            against.extend(str(told.classes[code]) for code in told.against)
            strongest = np.argsort(-np.abs(told.contributions), axis=1, kind="stable")[:, :REASONS]
            for row, columns in zip(told.contributions, strongest, strict=True):
                reasons.append("; ".join(f"{told.columns[j]} {row[j]:+.3g}" for j in columns))
        text = pyarrow.string()
        return {"against": pyarrow.array(against, text), "reasons": pyarrow.array(reasons, text)}

    def _nothing(self) -> dict[str, Any]:
        import pyarrow

        text = pyarrow.array([], pyarrow.string())
        labels = pyarrow.array(self.alignment.model.classes.tolist()).slice(0, 0)
        numbers = pyarrow.array([], pyarrow.float64())
        known = {"prediction": labels, "plane": pyarrow.array([], pyarrow.int64())}
        known |= dict.fromkeys(["probability", *self.shares], numbers)
        return {name: known.get(name, text) for name in self.names}
