"""The price of readability, measured: every preset cross-validated on the same folds.

A result has the held-out log-loss and accuracy of a preset, with standard errors over the folds,
beside the size of its models: planes per class, pairs, and numbers to read.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from geomix.table.labels import plain_labels, read_labels
from geomix.table.printing import SmallTable, frame_of, html_of
from geomix.training.labelled_rows import check_y_is_there

PRESETS = ("fast", "readable", "accurate")  # from the smallest models to the largest
HEADINGS = (
    "preset", "log-loss", "accuracy", "planes per class", "pairs", "numbers", "seconds per fit",
)  # fmt: skip


@dataclass(frozen=True)
class PresetResult:
    """Means over the folds; errors are standard errors of the mean, NaN for a single fold."""

    preset: str
    log_loss: float
    log_loss_error: float
    accuracy: float
    accuracy_error: float
    n_planes: float
    n_pairs: float
    n_numbers: float
    seconds: float


@dataclass(frozen=True)
class PresetComparison:
    """One result for each preset."""

    results: tuple[PresetResult, ...]
    n_folds: int

    def __str__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return html_of("presets", [self._table()])

    def to_frame(self) -> Any:
        """A pandas frame with a row for each preset."""
        names = list(PresetResult.__dataclass_fields__)
        return frame_of([asdict(one) for one in self.results], names)

    def _table(self) -> SmallTable:
        rows = tuple(
            (
                one.preset,
                _with_error(one.log_loss, one.log_loss_error),
                _with_error(one.accuracy, one.accuracy_error),
                f"{one.n_planes:.1f}",
                f"{one.n_pairs:.1f}",
                f"{one.n_numbers:.0f}",
                f"{one.seconds:.2f}",
            )
            for one in self.results
        )
        folds = "1 fold" if self.n_folds == 1 else f"{self.n_folds} folds"
        return SmallTable(f"Presets, {folds}", HEADINGS, rows)


def _with_error(mean: float, error: float) -> str:
    return f"{mean:.4f}" if np.isnan(error) else f"{mean:.4f} ± {error:.4f}"


def compare_presets(estimator: Any, X: Any, y: Any, cv: Any = 5) -> PresetComparison:
    """Cross-validate the estimator with every preset; its other parameters stay as they are."""
    check_y_is_there(estimator, y)
    y = column_or_1d(plain_labels(y), warn=True)
    classes, _ = read_labels(y)
    folds = list(check_cv(cv, y, classifier=True).split(X, y))
    _check_every_class_is_trained(y, classes, folds)
    results = [_result(estimator, preset, X, y, folds) for preset in PRESETS]
    return PresetComparison(tuple(results), len(folds))


def _check_every_class_is_trained(y: Any, classes: Any, folds: list[Any]) -> None:
    for train, _ in folds:
        missing = np.setdiff1d(classes, y[train])
        if len(missing):
            raise ValueError(
                f"The class {missing.tolist()[0]!r} has no row outside one of the {len(folds)} "
                "folds; use fewer folds, or drop the class."
            )


def _result(estimator: Any, preset: str, X: Any, y: Any, folds: list[Any]) -> PresetResult:
    measured = [_measured(estimator, preset, X, y, *fold) for fold in folds]
    columns = np.array(measured)
    means = columns.mean(axis=0).tolist()
    errors = [np.nan] * 2
    if len(folds) > 1:
        errors = (columns.std(axis=0, ddof=1) / np.sqrt(len(folds))).tolist()
    return PresetResult(preset, means[0], errors[0], means[1], errors[1], *means[2:])


def _measured(
    estimator: Any, preset: str, X: Any, y: Any, train: Any, test: Any
) -> tuple[float, ...]:
    """Log-loss, accuracy, planes, pairs, numbers and seconds of one fold."""
    # An ensemble is only for "accurate", so a number of members is not carried to the others.
    changed: dict[str, Any] = {"preset": preset}
    if preset != "accurate":
        changed["n_members"] = "auto"
    began = time.process_time()
    fitted = clone(estimator).set_params(**changed)
    fitted.fit(_safe_indexing(X, train), y[train])
    seconds = time.process_time() - began
    labels = y[test]
    P = fitted.predict_proba(_safe_indexing(X, test))
    model = fitted.model_
    return (
        log_loss(labels, P, labels=fitted.classes_),
        float(np.mean(fitted.classes_[P.argmax(axis=1)] == labels)),
        float(fitted.n_planes_.max()),
        float(model.lift.n_pairs),
        float(model.planes.weights.size + model.planes.biases.size),
        seconds,
    )
