"""Partial dependence: mean scores over background rows while one or two columns are set.

    s_c(v) = mean over rows i of s_c(x_i with x_ij = v)

For classes of several planes, this is a mean over responsibilities: the slope of s_c is
sum_p a_p(v) f'_pj(v), with a_p(v) the mean responsibility of plane p over the same rows. Background
rows are evenly spaced among the rows given, so nothing is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.model import GeometricMixture

MOST_ROWS = 512  # background rows: standard errors of a mean below 5 % of a deviation
MOST_NUMBERS = 2**18  # plane scores at once: 2 MB, which a processor's cache holds


@dataclass(frozen=True, eq=False)
class Background:
    """rows : (n, n_columns), encoded;  scores : (n, P) of the planes, None for a Fourier model."""

    rows: FloatArray
    scores: FloatArray | None

    def __getitem__(self, some: IntArray) -> Background:
        return Background(self.rows[some], None if self.scores is None else self.scores[some])


def background_of(form: Additive | None, rows: FloatArray) -> Background:
    return Background(rows, None if form is None else form.scores(rows))


@dataclass(frozen=True, eq=False)
class Averages:
    """scores : (n_cells, C) mean class scores divided by T;  usage : (n_cells, P) mean
    responsibilities, None for a Fourier model and where they are not asked for."""

    scores: FloatArray
    usage: FloatArray | None


def evenly(n_rows: int, most: int) -> IntArray:
    """Positions of at most ``most`` evenly spaced rows."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).round().astype(np.intp)


def partial_dependence(
    model: GeometricMixture,
    form: Additive | None,
    background: Background,
    columns: Sequence[int],
    cells: FloatArray,
    *,
    with_usage: bool = True,
) -> Averages:
    """Mean scores at ``cells`` (n_cells, len(columns)), encoded, over the background rows.

    form : of the model; None for a Fourier model, which is evaluated row by row.
    """
    n_planes = model.planes.n_planes
    at_once = max(MOST_NUMBERS // max(len(background.rows) * n_planes, 1), 1)
    parts = [
        _of_cells(
            model, form, background, list(columns), cells[start : start + at_once], with_usage
        )
        for start in range(0, len(cells), at_once)
    ]
    scores = np.concatenate([one.scores for one in parts])
    if form is None or not with_usage:
        return Averages(scores, None)
    return Averages(scores, np.concatenate([one.usage for one in parts if one.usage is not None]))


def _of_cells(
    model: GeometricMixture,
    form: Additive | None,
    background: Background,
    columns: list[int],
    cells: FloatArray,
    with_usage: bool,
) -> Averages:
    n_cells, n_rows = len(cells), len(background.rows)
    if form is None:
        rows = _set(background.rows, columns, cells)
        S = model.answer("class_scores", rows)
        return Averages(S.reshape(n_cells, n_rows, -1).mean(axis=1), None)
    Z = _plane_scores(form, background, columns, cells).reshape(n_cells * n_rows, -1)
    if with_usage:
        S, A = form.planes.pooled(Z, form.sharpness)
        usage = A.reshape(n_cells, n_rows, -1).mean(axis=1)
    else:
        S, usage = form.planes.class_scores(Z, form.sharpness), None
    return Averages(S.reshape(n_cells, n_rows, -1).mean(axis=1) / form.temperature, usage)


def _plane_scores(
    form: Additive, background: Background, columns: list[int], cells: FloatArray
) -> FloatArray:
    """(n_cells, n_rows, P): only the terms of the columns that are set change."""
    assert background.scores is not None
    Z = background.scores.copy()
    for j in columns:
        Z -= form.shapes[j](background.rows[:, j])
    touched = [pair for pair in form.pairs if set(pair.columns) & set(columns)]
    for pair in touched:
        Z -= pair(background.rows)
    added = sum(form.shapes[j](cells[:, at]) for at, j in enumerate(columns))
    out: FloatArray = Z[None, :, :] + np.asarray(added)[:, None, :]
    if touched:
        rows = _set(background.rows, columns, cells)
        for pair in touched:
            out += pair(rows).reshape(out.shape)
    return out


def _set(background: FloatArray, columns: list[int], cells: FloatArray) -> FloatArray:
    """Every background row with the columns set to each of the cells."""
    rows = np.tile(background, (len(cells), 1))
    rows[:, columns] = np.repeat(cells, len(background), axis=0)
    return rows
