"""Interactions: which columns act together, and how.

If each class has one plane, the model's pairs of columns are all its interactions, and their tables
(``explain/pair_tables.py``) are exact, also for rows with missing cells. Strength and H are those
of the cells that are present. Otherwise, soft-ORs of several planes let all columns interact. Then
the partial dependence of two columns on a grid, less its means along both sides, is their
interaction, with the shares a_s, b_t of the rows in the cells of either column:

    F(s, t)   = partial dependence, less its mean
    I(s, t)   = F(s, t) - sum_t b_t F(s, t) - sum_s a_s F(s, t)
    strength  = sqrt(sum_st a_s b_t I(s, t)^2)                     in log-odds
    H         = sqrt(sum_st a_s b_t I^2 / sum_st a_s b_t F^2)      Friedman and Popescu 2008

The background rows are evenly spaced among the rows given, so nothing is random.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.cells import model_schema
from geomix.explain.column_terms import PairTerm
from geomix.explain.effect_facts import Interaction
from geomix.explain.effect_reader import Reader
from geomix.explain.pair_tables import cell_shares
from geomix.explain.partial_dependence import Background, evenly, partial_dependence

MOST_CELLS = 8  # along one side of a partial dependence; of a category its most frequent levels
# All pairs of this many columns are compared, those with the largest importances.
MOST_COLUMNS = 12
MOST_SCORES = 2e7  # plane scores of all pairs: less than a second
BACKGROUND = (32, 256)
SMALLEST_STRENGTH = 1e-9  # below it, an interaction is rounding


def interactions(reader: Reader, most: int, importances: FloatArray) -> tuple[Interaction, ...]:
    """At most ``most`` interactions, strongest first; ``importances`` : (n_columns,)."""
    form = reader.form
    if form is not None and reader.has_one_plane:
        found = [_of_table(reader, pair) for pair in form.pairs]
    elif len(reader.background.rows):
        found = _of_partial_dependence(reader, importances)
    else:
        found = []
    found = [one for one in found if one.strength > SMALLEST_STRENGTH]
    return tuple(sorted(found, key=lambda one: -one.strength)[:most])


def _of_table(reader: Reader, term: PairTerm) -> Interaction:
    """The pure table of a pair; its last row and column are those of missing cells."""
    assert reader.form is not None
    table = _curves(reader, reader.class_means(term.values), term.shape)
    values = table[:, :-1, :-1]
    joint = cell_shares(term.part)
    a, b = joint.sum(axis=1), joint.sum(axis=0)
    first, second = (
        _cell_effects(reader, j, cut) for j, cut in zip(term.columns, term.cuts, strict=True)
    )
    whole = values + first[:, :, None] + second[:, None, :]
    strength, h = _measures(values, whole, a, b)
    sides = [_side(reader, j, cut) for j, cut in zip(term.columns, term.cuts, strict=True)]
    found = _interaction(reader, term.columns, sides, values, strength, h, joint)
    return replace(
        found,
        missing_first=table[:, -1, :-1],
        missing_second=table[:, :-1, -1],
        missing_both=table[:, -1, -1],
    )


def _cell_effects(reader: Reader, column: int, cuts: FloatArray | None) -> FloatArray:
    """(n_curves, n_cells) effects of a column in the cells of a pair, for the joint effect."""
    assert reader.form is not None
    shape = reader.form.shapes[column]
    if cuts is None:
        n_levels = model_schema(reader.model).columns[column].n_levels
        cells = np.arange(n_levels, dtype=np.float64)
    else:
        edges = _edges(reader, column, cuts)
        cells = (edges[1:] + edges[:-1]) / 2.0
    return reader.curves(reader.class_means(shape(cells))).T


def _of_partial_dependence(reader: Reader, importances: FloatArray) -> list[Interaction]:
    strongest = np.sort(np.argsort(-importances, kind="stable")[:MOST_COLUMNS])
    grids = {int(j): _cells(reader, int(j)) for j in strongest if _has_cells(reader, int(j))}
    pairs = list(combinations(grids, 2))
    if not pairs:
        return []
    n_planes = reader.model.planes.n_planes
    room = MOST_SCORES / (len(pairs) * MOST_CELLS**2 * n_planes)
    n_rows = len(reader.background.rows)
    background = reader.background[evenly(n_rows, int(np.clip(room, *BACKGROUND)))]
    return [_of_pair(reader, background, pair, grids) for pair in pairs]


def _of_pair(
    reader: Reader, background: Background, pair: tuple[int, int], grids: dict[int, Any]
) -> Interaction:
    (x, a, first), (y, b, second) = grids[pair[0]], grids[pair[1]]
    cells = np.column_stack([np.repeat(x, len(y)), np.tile(y, len(x))])
    found = partial_dependence(reader.model, reader.form, background, pair, cells, with_usage=False)
    whole = _curves(reader, found.scores, (len(x), len(y)))
    whole = whole - np.einsum("s,t,cst->c", a, b, whole)[:, None, None]
    along, across = np.einsum("t,cst->cs", b, whole), np.einsum("s,cst->ct", a, whole)
    values = whole - along[:, :, None] - across[:, None, :]
    strength, h = _measures(values, whole, a, b)
    return _interaction(reader, pair, [first, second], values, strength, h, None)


def _measures(
    values: FloatArray, whole: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[float, float]:
    """Strength and Friedman's H, over all curves together."""
    inner = float(np.einsum("s,t,cst->", a, b, values**2)) / len(values)
    whole = whole - np.einsum("s,t,cst->c", a, b, whole)[:, None, None]
    total = float(np.einsum("s,t,cst->", a, b, whole**2)) / len(values)
    return float(np.sqrt(inner)), float(np.sqrt(min(inner / total, 1.0))) if total > 0.0 else 0.0


def _curves(reader: Reader, S: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Class scores (n_cells, C) -> (n_curves, K, L)."""
    curves = reader.curves(S)
    return curves.T.reshape(curves.shape[1], *shape)


# A side of a heat map: edges of a number's cells, or names of levels.
Side = tuple["FloatArray | None", "tuple[str, ...] | None"]


def _interaction(
    reader: Reader,
    pair: tuple[int, int],
    sides: list[Side],
    values: FloatArray,
    strength: float,
    h: float,
    shares: FloatArray | None,
) -> Interaction:
    (x_edges, x_levels), (y_edges, y_levels) = sides
    names = reader.model.columns
    columns = names[pair[0]], names[pair[1]]
    return Interaction(columns, x_edges, y_edges, x_levels, y_levels, values, strength, h, shares)


def _side(reader: Reader, column: int, cuts: FloatArray | None) -> Side:
    if cuts is None:
        return None, tuple(model_schema(reader.model).columns[column].level_names)
    return _edges(reader, column, cuts), None


def _edges(reader: Reader, column: int, cuts: FloatArray) -> FloatArray:
    """Edges of the cells between ``cuts``, the outer ones those of the column's curve."""
    assert reader.form is not None
    knots = reader.form.shapes[column].knots  # type: ignore[union-attr]
    inside = cuts if len(cuts) else knots[:1]
    low, high = min(knots[0], inside[0]), max(knots[-1], inside[-1])
    step = max(high - low, 1.0) * 1e-3
    low = low if low < inside[0] else inside[0] - step
    high = high if high > inside[-1] else inside[-1] + step
    return np.concatenate([[low], cuts, [high]])


def _has_cells(reader: Reader, column: int) -> bool:
    """Whether a column can be set: not a category of which training had no cell."""
    schema = model_schema(reader.model).columns[column]
    return schema.kind != "category" or schema.n_levels > 0


def _cells(reader: Reader, column: int) -> tuple[FloatArray, FloatArray, Side]:
    """Cells of a column to set, their shares, and the side of a heat map that they make."""
    x = reader.sample[:, column]
    x = x[~np.isnan(x)]
    schema = model_schema(reader.model).columns[column]
    if schema.kind == "category":
        counts = np.bincount(x[x >= 0].astype(np.intp), minlength=schema.n_levels)
        levels = np.sort(np.argsort(-counts, kind="stable")[:MOST_CELLS])
        names = tuple(schema.level_names[level] for level in levels)
        return levels.astype(np.float64), _normal(counts[levels]), (None, names)
    if not len(x):
        return np.zeros(1), np.ones(1), (np.array([-0.5, 0.5]), None)
    values, masses = _quantile_cells(x)
    middle = values[:-1] / 2.0 + values[1:] / 2.0
    edges = np.concatenate([[min(x.min(), values[0])], middle, [max(x.max(), values[-1])]])
    if edges[0] == edges[-1] or (np.diff(edges) <= 0.0).any():
        edges = np.concatenate([[values[0] - 0.5], middle, [values[-1] + 0.5]])
    return values, _normal(masses), (edges, None)


def _quantile_cells(x: FloatArray) -> tuple[FloatArray, IntArray]:
    """At most ``MOST_CELLS`` values that stand for a column, and how many cells each stands for."""
    distinct, counts = np.unique(x, return_counts=True)
    if len(distinct) <= MOST_CELLS:
        return distinct, counts
    ranks = (np.arange(MOST_CELLS) + 0.5) / MOST_CELLS
    values = np.unique(np.quantile(x, ranks, method="nearest"))
    nearest = np.searchsorted(values[:-1] / 2.0 + values[1:] / 2.0, x, "left")
    return values, np.bincount(nearest, minlength=len(values))


def _normal(counts: Any) -> FloatArray:
    total = counts.sum()
    return np.asarray(counts / total if total else np.full(len(counts), 1.0 / len(counts)))
