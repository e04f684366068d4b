"""Drift by columns: which columns changed, and how much of the change in class scores each causes.

A column's own change is the largest difference of the two distributions (Kolmogorov-Smirnov) for
numbers, and half the sum of absolute differences of shares for categories and missing cells; both
lie between 0 and 1. A class's mean score is a sum over columns (``explain/contributions.py``),

    mean s_c / T = bias + pooling + sum_j  mean of  sum_p A_cp f_pj(x_j) / T,

so its change from one table to another is a sum over columns too. With one plane per class this is
exact. Differences are taken less their mean over the classes, which changes no probability; the
effect reported is that against the mean of the other classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, kolmogorov

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture
from geomix.table.row_views import blocks


@dataclass(frozen=True)
class ColumnDrift:
    """distance : between the two distributions of the column, 0 to 1
    p_value : that both tables come from one population (KS test, or G-test of the levels)
    missing_reference, missing_new : shares of missing cells
    effect : change of the mean log-odds of ``label`` against the other classes' mean score that
        this column causes;  label : the class whose score it changes most, of two the second
    share : its part of the change over all columns and classes, 0 to 1. None for Fourier models
    """

    column: str
    distance: float
    p_value: float
    missing_reference: float
    missing_new: float
    label: Any = None
    effect: float | None = None
    share: float | None = None


def column_drift(
    model: GeometricMixture, reference: FloatArray, new: FloatArray
) -> tuple[ColumnDrift, ...]:
    """All columns of two tables of encoded rows, the largest part of the change first."""
    is_category = model_schema(model).is_category.tolist()
    effects = _effects(model, reference, new)
    made = []
    for j, name in enumerate(model.columns):
        a, b = reference[:, j], new[:, j]
        distance, p_value = (_level_change if is_category[j] else _number_change)(a, b)
        missing = float(np.isnan(a).mean()), float(np.isnan(b).mean())
        caused = {} if effects is None else _caused(model, effects, j)
        made.append(ColumnDrift(name, distance, p_value, *missing, **caused))
    return tuple(sorted(made, key=lambda one: (-(one.share or 0.0), -one.distance)))


def _caused(model: GeometricMixture, effects: FloatArray, j: int) -> dict[str, Any]:
    total = float(np.abs(effects).sum())
    labels = model.classes.tolist()
    code = 1 if len(labels) == 2 else int(np.abs(effects[:, j]).argmax())
    # Less the mean of all classes, a change is (C - 1) / C of that less the mean of the others.
    factor = len(labels) / (len(labels) - 1.0)
    share = float(np.abs(effects[:, j]).sum()) / total if total > 0.0 else 0.0
    return {"label": labels[code], "effect": factor * float(effects[code, j]), "share": share}


def _effects(model: GeometricMixture, reference: FloatArray, new: FloatArray) -> FloatArray | None:
    """(C, n_columns) changes of the mean class scores, zero in sum over the classes."""
    if not model.lift.is_additive:
        return None
    form = additive(model)
    change = _mean_parts(model, form, new) - _mean_parts(model, form, reference)
    centred: FloatArray = change - change.mean(axis=0)
    return centred


def _mean_parts(model: GeometricMixture, form: Additive, encoded: FloatArray) -> FloatArray:
    """(C, n_columns) mean contributions of the columns to s_c / T."""
    planes = form.planes
    by_plane = np.zeros((planes.n_planes, encoded.shape[1]))
    for _, block in blocks(encoded):
        A = model.answer("responsibilities", block)
        for j, shape in enumerate(form.shapes):
            by_plane[:, j] += shape.weighted_sums(block[:, j], A)
        for pair in form.pairs:
            half = pair.weighted_sums(block, A) / 2.0
            for j in pair.columns:
                by_plane[:, j] += half
    total: FloatArray = np.add.reduceat(by_plane, planes.class_start[:-1], axis=0)
    return total / form.temperature / len(encoded)


def _number_change(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Kolmogorov-Smirnov distance and p-value, or those of the missing shares if larger."""
    x, y = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    missing = _level_change(np.isnan(a) * 1.0, np.isnan(b) * 1.0)
    if not len(x) or not len(y):
        return missing
    points = np.concatenate([x, y])
    gaps = np.searchsorted(x, points, "right") / len(x) - np.searchsorted(y, points, "right") / len(
        y
    )
    distance = float(np.abs(gaps).max())
    p_value = float(kolmogorov(distance * np.sqrt(len(x) * len(y) / (len(x) + len(y)))))
    return (distance, p_value) if distance >= missing[0] else missing


def _level_change(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Half the sum of differences of shares, and the p-value of the G-test; missing is a level."""
    levels = np.unique(np.nan_to_num(np.concatenate([a, b]), nan=-2.0))
    counts = np.array(
        [[(np.nan_to_num(x, nan=-2.0) == level).sum() for level in levels] for x in (a, b)]
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        g = 2.0 * np.where(counts > 0, counts * np.log(counts / expected), 0.0).sum()
    degrees = len(levels) - 1
    p_value = float(chdtrc(degrees, max(g, 0.0))) if degrees else 1.0
    return float(np.abs(shares[0] - shares[1]).sum() / 2.0), p_value
