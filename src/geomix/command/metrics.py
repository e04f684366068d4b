"""How good a model's answers are: accuracy, macro-F1, log-loss, Brier score, calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.command.options import reading
from geomix.core.calibration import brier_score, negative_log_likelihood, reliability_curve
from geomix.errors import TableFileError
from geomix.tablefile import open_table
from geomix.tablefile.alignment import Alignment, Rows, align


@dataclass(frozen=True)
class Figures:
    """Of the most probable class (accuracy, macro_f1) and of the probabilities (the others).

    classes : label, rows, recall and precision of each class
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
class FileFigures:
    """Figures of a file's rows, and how its columns were matched."""

    figures: Figures
    alignment: Alignment


def file_figures(model: Any, path: Any, a: Any) -> FileFigures:
    """Figures of the rows of a file with labels in ``a.target``, block by block."""
    table = open_table(path, reading(a), rereadable=False)
    alignment = align(table, model, others=[a.target, a.weight])
    tally = Tally(model)
    for rows in alignment.rows(target=a.target, weight=a.weight):
        if rows.block.n_rows:
            tally.add(model.predict_proba(rows.X), codes_of(model, rows.labels), rows.weight)
    if not tally.n_rows:
        raise TableFileError(f"{table.name}: no rows.")
    return FileFigures(tally.figures(), alignment)


def figures_of(model: Any, X: Any, y: Any, weight: FloatArray | None) -> Figures:
    """Figures of rows in memory."""
    tally = Tally(model)
    tally.add(model.predict_proba(X), codes_of(model, y), weight)
    return tally.figures()


def whole_file(alignment: Alignment, target: str | None = None) -> tuple[Any, Any]:
    """All rows of a file as an Arrow table, and their labels if a target is given."""
    import pyarrow

    parts: list[Rows] = list(_filled(alignment.rows(target=target)))
    if not parts:
        raise TableFileError(f"{alignment.table.name}: no rows.")
    X = pyarrow.concat_tables([rows.X for rows in parts]).unify_dictionaries()
    return X, np.concatenate([rows.labels for rows in parts]) if target else None


def _filled(parts: Iterator[Rows]) -> Iterator[Rows]:
    return (rows for rows in parts if rows.block.n_rows)


def codes_of(model: Any, y: Any) -> IntArray:
    return np.searchsorted(model.classes, y).astype(np.intp)


@dataclass
class Tally:
    """Sums over rows, from which all figures follow; rows are added some at a time.

    confusion : (C, C) weight by true and by predicted class;  rows : (C,) by true class
    losses : log-loss and Brier score, times weight
    gaps : (bins,) weight right minus confidence, of each bin of confidence
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
        pairs = codes * n + P.argmax(axis=1)
        self.confusion += np.bincount(pairs, weight, minlength=n * n).reshape(n, n)
        nll, brier = negative_log_likelihood(P, codes, weight), brier_score(P, codes, weight)
        self.losses += total * np.array([nll, brier])
        curve = reliability_curve(P, codes, sample_weight=weight)
        gap = total * curve.share * (curve.accuracy - curve.confidence)
        self.gaps = self.gaps + np.where(curve.share > 0, gap, 0.0)

    def figures(self) -> Figures:
        total = self.confusion.sum()
        if not total > 0.0:
            raise TableFileError("No row to judge the model by has a weight above 0.")
        right = self.confusion.diagonal()
        actual, called = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        present = (actual + called) > 0
        f1 = 2.0 * right[present] / (actual + called)[present]
        return Figures(
            self.n_rows,
            float(right.sum() / total),
            float(f1.mean()),
            float(self.losses[0] / total),
            float(self.losses[1] / total),
            float(np.abs(self.gaps).sum() / total),
            tuple(
                {
                    "label": label,
                    "n_rows": int(self.rows[c]),
                    "recall": float(right[c] / actual[c]) if actual[c] else None,
                    "precision": float(right[c] / called[c]) if called[c] else None,
                }
                for c, label in enumerate(self.model.classes.tolist())
            ),
        )
