"""Metrics on labelled rows: accuracy, macro-F1, log-loss, Brier score, calibration error."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.options import read_options
from geomix.core.calibration import brier_score, negative_log_likelihood, reliability_curve
from geomix.errors import TableFileError
from geomix.table.labels import label_codes
from geomix.tablefile import open_table
from geomix.tablefile.alignment import (
    Alignment,
    align,
    check_labelled,
    match_columns,
    row_weights,
)
from geomix.tablefile.block import LABEL, NUMBER, TableFile


@dataclass(frozen=True)
class Metrics:
    """Metrics of predicted classes (accuracy, macro_f1) and of probabilities (the others).

    classes : label, number of rows, recall and precision of each class
    """

    n_rows: int
    accuracy: float
    macro_f1: float
    log_loss: float
    brier: float
    calibration_error: float
    classes: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FileMetrics:
    """Metrics on the rows of a file, and how its columns were matched with the model's."""

    metrics: Metrics
    alignment: Alignment


def open_test_rows(args: Any, features: tuple[str, ...]) -> TableFile:
    """The file of --test, checked as far as it can be before there is a model."""
    table = open_table(args.test, read_options(args), expected=features)
    weight = args.weight or None
    match_columns(table, features, [args.target, weight])
    kinds = {args.target: LABEL} | ({} if weight is None else {weight: NUMBER})
    n_rows = 0
    for block in table.blocks(kinds):
        check_labelled(block, args.target, table.name)
        if weight is not None:
            row_weights(block, weight, table.name)
        n_rows += block.n_rows
    if not n_rows:
        raise TableFileError(f"{table.name}: no rows.")
    return table


def file_metrics(model: Any, path: Any, args: Any) -> FileMetrics:
    """Metrics on a file whose labels are in the column ``args.target``, block by block."""
    table = open_table(path, read_options(args), rereadable=False, expected=model.columns)
    return table_metrics(model, table, args)


def table_metrics(model: Any, table: TableFile, args: Any) -> FileMetrics:
    weight = args.weight or None
    alignment = align(table, model, others=[args.target, weight])
    sums = MetricSums(model)
    for rows in alignment.rows(target=args.target, weight=weight):
        if rows.block.n_rows:
            sums.add(
                model.predict_proba(rows.X), label_codes(rows.labels, model.classes), rows.weight
            )
    if not sums.n_rows:
        raise TableFileError(f"{table.name}: no rows.")
    return FileMetrics(sums.metrics(), alignment)


def row_metrics(model: Any, X: Any, y: Any, weight: FloatArray | None) -> Metrics:
    """Metrics on rows in memory."""
    sums = MetricSums(model)
    sums.add(model.predict_proba(X), label_codes(y, model.classes), weight)
    return sums.metrics()


@dataclass
class MetricSums:
    """Sums over blocks of rows, from which all metrics are computed.

    confusion : (C, C) total weight by true and predicted class;  rows : (C,) rows by true class
    losses : sums of weight * log-loss and weight * Brier score
    gaps : (bins,) sum of weight * (correct - confidence) in each bin of confidence
    """

    model: Any
    confusion: FloatArray = field(init=False)
    rows: IntArray = field(init=False)
    losses: FloatArray = field(default_factory=lambda: np.zeros(2))
    gaps: Any = 0.0

    def __post_init__(self) -> None:
        n = len(self.model.classes)
        self.confusion, self.rows = np.zeros((n, n)), np.zeros(n, dtype=np.intp)

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    def add(self, P: FloatArray, codes: IntArray, weight: FloatArray | None = None) -> None:
        n = len(self.rows)
        weight = np.ones(len(P)) if weight is None else weight
        self.rows += np.bincount(codes, minlength=n)
        total = float(weight.sum())
        if total == 0.0:
            return
        key_value_pairs = codes * n + P.argmax(axis=1)
        self.confusion += np.bincount(key_value_pairs, weight, minlength=n * n).reshape(n, n)
        nll, brier = negative_log_likelihood(P, codes, weight), brier_score(P, codes, weight)
        self.losses += total * np.array([nll, brier])
        curve = reliability_curve(P, codes, sample_weight=weight)
        gap = total * curve.share * (curve.accuracy - curve.confidence)
        self.gaps = self.gaps + np.where(curve.share > 0, gap, 0.0)

    def metrics(self) -> Metrics:
        total = self.confusion.sum()
        if not total > 0.0:
            raise TableFileError("No labelled row has a weight above 0.")
        correct = self.confusion.diagonal()
        actual, predicted = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        present = (actual + predicted) > 0
        f1 = 2.0 * correct[present] / (actual + predicted)[present]
        return Metrics(
            self.n_rows,
            float(correct.sum() / total),
            float(f1.mean()),
            float(self.losses[0] / total),
            float(self.losses[1] / total),
            float(np.abs(self.gaps).sum() / total),
            tuple(
                {
                    "label": label,
                    "n_rows": int(self.rows[c]),
                    "recall": float(correct[c] / actual[c]) if actual[c] else None,
                    "precision": float(correct[c] / predicted[c]) if predicted[c] else None,
                }
                for c, label in enumerate(self.model.classes.tolist())
            ),
        )
