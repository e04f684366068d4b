"""How good a model's answers are: accuracy, macro-F1, log-loss, Brier score, calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.calibration import brier_score, expected_calibration_error, negative_log_likelihood
from geomix.command.options import reading
from geomix.errors import TableFileError
from geomix.tablefile import open_table
from geomix.tablefile.aligned import Alignment, Rows, align


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
    answered: list[tuple[FloatArray, IntArray, FloatArray]] = []
    for rows in alignment.rows(target=a.target, weight=a.weight):
        P = model.predict_proba(rows.X)
        weight = np.ones(len(P)) if rows.weight is None else rows.weight
        answered.append((P, codes_of(model, rows.labels), weight))
    if not any(len(P) for P, _, _ in answered):
        raise TableFileError(f"{table.name}: no rows.")
    P, codes, weight = (np.concatenate(parts) for parts in zip(*answered, strict=True))
    return FileFigures(figures_from(model, P, codes, weight), alignment)


def figures_of(model: Any, X: Any, y: Any, weight: FloatArray | None) -> Figures:
    """Figures of rows in memory."""
    P = model.predict_proba(X)
    return figures_from(model, P, codes_of(model, y), np.ones(len(P)) if weight is None else weight)


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


def figures_from(model: Any, P: FloatArray, codes: IntArray, weight: FloatArray) -> Figures:
    predicted = P.argmax(axis=1)
    n = len(model.classes)
    confusion = np.bincount(codes * n + predicted, weight, minlength=n * n).reshape(n, n)
    right, actual, called = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    present = (actual + called) > 0
    f1 = 2.0 * right[present] / (actual + called)[present]
    return Figures(
        len(codes),
        float(right.sum() / confusion.sum()),
        float(f1.mean()),
        negative_log_likelihood(P, codes, weight),
        brier_score(P, codes, weight),
        expected_calibration_error(P, codes, sample_weight=weight),
        tuple(
            {
                "label": label,
                "n_rows": int((codes == c).sum()),
                "recall": float(right[c] / actual[c]) if actual[c] else None,
                "precision": float(right[c] / called[c]) if called[c] else None,
            }
            for c, label in enumerate(model.classes.tolist())
        ),
    )
