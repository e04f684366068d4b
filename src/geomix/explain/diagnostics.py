"""The paper's diagnostics of a trained model, as plain data.

    concentration   E[max_m a_ym(x)] and E[-sum_m a_ym log a_ym] over rows x of class y
    plane usage     share of a class's rows whose strongest plane is m
    top columns     the columns with the largest |w_cm|, with sign, per plane

The planes of class c are evaluated on the rows of class c only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture


@dataclass(frozen=True)
class Concentration:
    """Mean largest responsibility (1: one plane explains each row) and mean entropy in nats."""

    max_responsibility: float
    entropy: float


@dataclass(frozen=True)
class PlaneColumns:
    """The columns that move a plane's score most, strongest first, with their signed weights.

    Weights are per standard deviation of a column, so that they compare across columns.
    """

    label: Any
    plane: int
    columns: tuple[str, ...]
    weights: tuple[float, ...]


def responsibility_concentration(model: GeometricMixture, X: Any, y: Any) -> Concentration:
    """How much of each row's own class ``y`` its strongest plane carries."""
    A, own = _own_responsibilities(model, X, y)
    largest = np.where(own, A, 0.0).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.where(own & (A > 0.0), -A * np.log(A), 0.0)
    return Concentration(float(largest.mean()), float(surprise.sum(axis=1).mean()))


def plane_usage(model: GeometricMixture, X: Any, y: Any) -> FloatArray:
    """Share of each class's rows whose strongest plane is this one, (n_planes,).

    Sums to one over the planes of a class; NaN for a class without rows in ``y``.
    """
    A, own = _own_responsibilities(model, X, y)
    winner = np.where(own, A, -1.0).argmax(axis=1)
    wins = np.bincount(winner, minlength=model.planes.n_planes)
    rows_of_class = np.add.reduceat(wins, model.planes.class_start[:-1])
    with np.errstate(invalid="ignore"):
        usage: FloatArray = wins / np.repeat(rows_of_class, model.planes.per_class)
    return usage


def top_columns(model: GeometricMixture, k: int = 5) -> list[PlaneColumns]:
    """The ``k`` strongest columns of every plane (linear lift only), in plane order."""
    standardize = model.standardize
    scale = np.zeros(standardize.n_columns)
    scale[standardize.kept] = standardize.scale
    weights = model.folded.weights * scale
    report = []
    for plane, (code, row) in enumerate(zip(model.planes.class_of, weights, strict=True)):
        strongest = np.argsort(-np.abs(row), kind="stable")[:k]
        strongest = strongest[row[strongest] != 0.0]
        report.append(
            PlaneColumns(
                model.classes.tolist()[code],
                plane - int(model.planes.class_start[code]),
                tuple(model.expanded_names[j] for j in strongest),
                tuple(float(row[j]) for j in strongest),
            )
        )
    return report


def _own_responsibilities(model: GeometricMixture, X: Any, y: Any) -> tuple[FloatArray, IntArray]:
    """Responsibilities (n_rows, n_planes), and which of them belong to the row's own class."""
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"Got y of shape {y.shape}; expected {X.shape[:1]}, one label per row.")
    if not len(y) or not np.isin(y, model.classes).all():
        known = model.classes.tolist()
        raise ValueError(f"y must hold at least one label, all of them among {known!r}.")
    codes = np.searchsorted(model.classes, y)
    return model.responsibilities(X), codes[:, None] == model.planes.class_of
