"""Soft labels of unlabelled rows, and the choice whether they help.

Sources of class probabilities for every row, from the labels of some rows:

    supervised               a model trained on the labelled rows
    neighbours               labels spread along a graph of nearest rows
    neighbours of the model  labels, and the model's probabilities where there is none, spread

Graphs join rows that are near in standardised columns, and, where all columns are complete numbers,
also rows that are near in the columns as they are (pixels, spectra: columns that share a unit).
Every labelled row is predicted by all sources in a fold that leaves its label out. Weights of the
sources (``stacking``) minimise the log-loss of these predictions. Unlabelled rows are used only if

    1. the stacked log-loss is lower than that of the supervised model alone by more than its
       standard error: fifty labels decide little, and a wrong graph harms
    2. a model that was trained on soft labels is better than the supervised one on the rows of
       ``CHECKED_FOLDS`` folds: soft labels may be better than what a model can learn from them
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.semi_supervised.neighbours import neighbour_graph, spread_labels
from geomix.semi_supervised.stacking import row_losses, source_weights, stacked
from geomix.table.row_views import all_rows
from geomix.table.schema import Schema
from geomix.training.preparation import prepare
from geomix.training.rows import Rows
from geomix.training.settings import Settings

# Standard errors by which soft labels must beat the supervised model.
ERRORS_TO_USE = 1.0
# Folds on which a model of soft labels is compared: each costs one more fit on all rows.
CHECKED_FOLDS = 2

# Probabilities of the supervised model for every row, from the positions of its labelled rows.
Supervised = Callable[[IntArray], FloatArray]
# The same of a model that is trained on soft labels, (n_rows, n_classes); labelled rows come first.
Student = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class SoftLabelChoice:
    """What was measured on labelled rows, each without its own label, and what was chosen.

    weights : by source;  supervised_log_loss, stacked_log_loss : held out, calibrated;
    gain, gain_error : mean difference of the two and its standard error;
    student_gain : log-loss of the supervised model minus that of a model of soft labels, on some
    folds, None where it was not measured.
    """

    uses_unlabelled: bool
    weights: dict[str, float]
    supervised_log_loss: float
    stacked_log_loss: float
    gain: float
    gain_error: float
    student_gain: float | None = None

    def __str__(self) -> str:
        used = "used" if self.uses_unlabelled else "not used"
        parts = ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items())
        return (
            f"Unlabelled rows are {used}: held-out log-loss {self.stacked_log_loss:.4f} with them, "
            f"{self.supervised_log_loss:.4f} without (gain {self.gain:.4f} "
            f"± {self.gain_error:.4f}). {self._of_student()}Sources: {parts}."
        )

    def _of_student(self) -> str:
        if self.student_gain is None:
            return ""
        return f"A model of the soft labels gains {self.student_gain:.4f}. "


def graphs_of(X: Any, schema: Schema, n_neighbors: int) -> dict[str, Any]:
    """Graphs of encoded rows by name."""
    rows = Rows(all_rows(X), np.zeros(len(X), dtype=np.intp), np.ones(len(X)))
    kinds = {"standardised": True}
    if not schema.has_categories and not np.isnan(X).any():
        kinds["as they are"] = False
    found = {}
    for name, standardize in kinds.items():
        settings = Settings(pca=None, standardize=standardize)
        V = np.asarray(prepare(rows, None, schema, 1, None, settings, 0).rows.X)
        if V.shape[1]:
            found[name] = neighbour_graph(np.ascontiguousarray(V), n_neighbors)
    return found


def fold_numbers(codes: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each labelled row: every class is dealt out in turn."""
    folds = np.empty(len(codes), dtype=np.intp)
    folds[np.lexsort((rng.random(len(codes)), codes))] = np.arange(len(codes)) % n_folds
    return folds


def folds_leave_two_classes(codes: IntArray, n_folds: int) -> bool:
    """Whether every fold of ``fold_numbers`` leaves rows of two classes to learn from."""
    in_turn, folds = np.sort(codes), np.arange(len(codes)) % n_folds
    return all(len(np.unique(in_turn[folds != fold])) > 1 for fold in range(n_folds))


def sources_of(
    P: FloatArray, graphs: dict[str, Any], rows: IntArray, codes: IntArray
) -> dict[str, FloatArray]:
    """Probabilities of every row by source; P : those of the supervised model."""
    known = np.eye(P.shape[1])[codes]
    alone, with_model = np.zeros_like(P), P.copy()
    alone[rows] = with_model[rows] = known
    found = {"supervised": P}
    for name, S in graphs.items():
        found[f"neighbours, {name}"] = spread_labels(S, alone)
        found[f"neighbours of the model, {name}"] = spread_labels(S, with_model)
    return found


def choose(
    supervised: Supervised,
    student: Student,
    graphs: dict[str, Any],
    codes: IntArray,
    folds: IntArray,
) -> SoftLabelChoice:
    """Weights of the sources, and whether to use them. Labelled rows are the first rows."""
    parts = [_sources_without(fold, supervised, graphs, codes, folds) for fold in np.unique(folds)]
    held_out: dict[str, FloatArray] = {
        name: np.zeros((len(codes), P.shape[1])) for name, P in parts[0].items()
    }
    for fold, part in enumerate(parts):
        for name, P in part.items():
            held_out[name][folds == fold] = P[: len(codes)][folds == fold]
    sources = list(held_out.values())
    weights = source_weights(sources, codes)
    with_all = row_losses(stacked(sources, weights), codes)
    alone = sources[:1]
    without = row_losses(stacked(alone, source_weights(alone, codes)), codes)
    gain = without - with_all
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    is_better = bool(gain.mean() > ERRORS_TO_USE * error)
    student_gain = None
    if is_better:
        student_gain = _student_gain(student, parts[:CHECKED_FOLDS], weights, codes, folds)
    return SoftLabelChoice(
        is_better and student_gain is not None and student_gain > 0.0,
        dict(zip(held_out, weights.tolist(), strict=True)),
        float(without.mean()),
        float(with_all.mean()),
        float(gain.mean()),
        error,
        student_gain,
    )


def _sources_without(
    fold: int, supervised: Supervised, graphs: dict[str, Any], codes: IntArray, folds: IntArray
) -> dict[str, FloatArray]:
    """Probabilities of every row by source, from the labels of the other folds."""
    known = np.flatnonzero(folds != fold)
    return sources_of(supervised(known), graphs, known, codes[known])


def _student_gain(
    student: Student,
    parts: list[dict[str, FloatArray]],
    weights: FloatArray,
    codes: IntArray,
    folds: IntArray,
) -> float:
    """Mean log-loss of the supervised model minus that of the student, on held-out labels."""
    gains = []
    for fold, sources in enumerate(parts):
        soft = stacked(list(sources.values()), weights)
        known, rest = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        soft[known] = np.eye(soft.shape[1])[codes[known]]
        of_student = row_losses(student(soft)[rest], codes[rest])
        gains.append(row_losses(sources["supervised"][rest], codes[rest]) - of_student)
    return float(np.concatenate(gains).mean())


def soft_labels(
    P: FloatArray, graphs: dict[str, Any], codes: IntArray, choice: SoftLabelChoice
) -> FloatArray:
    """Class probabilities of every row; labelled rows come first and have their own label."""
    labelled = np.arange(len(codes))
    sources = sources_of(P, graphs, labelled, codes)
    soft = stacked(list(sources.values()), np.array(list(choice.weights.values())))
    soft[labelled] = np.eye(P.shape[1])[codes]
    return soft
