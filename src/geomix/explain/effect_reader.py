"""Reader: what all effects of a model are made from, and the effect of one column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart, PairPart
from geomix.errors import NoShapes
from geomix.explain import effect_bands
from geomix.explain.additive_form import Additive
from geomix.explain.cells import encoded_rows, model_schema
from geomix.explain.effect_bands import Covariance
from geomix.explain.effect_facts import AVERAGE, EXACT, PLAIN_MEAN, Effect
from geomix.explain.pair_tables import pure
from geomix.explain.partial_dependence import (
    MOST_ROWS,
    Background,
    background_of,
    evenly,
    partial_dependence,
)
from geomix.explain.shapes import NumberShape
from geomix.model import GeometricMixture
from geomix.table.one_hot import MISSING

# Rows that bands and importances are computed from: more change neither by a percent.
MOST_ROWS_READ = 20_000
MOST_POINTS = 64  # of a curve that is a partial dependence
LINE_REACH = 2.0  # a straight line without rows: mean - 2 to mean + 2 standard deviations
N_DENSITY_BINS = 40
MOST_VALUES = 12  # a number with at most so many different values is shown at these alone


class Grid(NamedTuple):
    """Encoded cells of a column at which its effect is evaluated, the names of the levels of a
    category, and whether the cells are all values that a number has in the rows."""

    cells: FloatArray
    levels: tuple[str, ...] | None = None
    has_few_values: bool = False


@dataclass(frozen=True, eq=False)
class Reader:
    """What all effects of a model are made from.

    form : the model as sums over columns, None for a Fourier model;  rows : all rows given;
    sample, background : evenly spaced ones of them;  scale_error : (n_curves,) of
    ``effect_bands.py``;  z : quantile of the bands
    """

    model: GeometricMixture
    form: Additive | None
    rows: FloatArray
    sample: FloatArray
    background: Background
    responsibilities: FloatArray | None
    covariance: Covariance | None
    scale_error: FloatArray
    z: float

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def has_one_plane(self) -> bool:
        planes = self.model.planes
        return self.form is not None and planes.n_planes == planes.n_classes

    @property
    def labels(self) -> tuple[Any, ...]:
        classes = self.model.classes.tolist()
        return tuple(classes[1:]) if len(classes) == 2 else tuple(classes)

    @property
    def method(self) -> str:
        if self.has_one_plane:
            return EXACT
        return AVERAGE if self.n_rows else PLAIN_MEAN

    @property
    def bands(self) -> str:
        if self.covariance is not None:
            kind = "" if self.covariance.is_joint else ", columns apart"
            return f"Laplace approximation{kind}"
        if not self.n_rows:
            return "none: pass rows X"
        if self.form is None:
            return "none: a Fourier model has no curve of its own for a column"
        return "none: the model does not know its penalty; fit it again"

    @property
    def intercept(self) -> FloatArray:
        if self.form is not None and self.has_one_plane:
            return self.curves(self.form.planes.biases[None, :] / self.model.temperature)[0]
        if not len(self.background.rows):
            assert self.form is not None
            S = self.form.planes.pooled(self.form.planes.biases[None, :], self.form.sharpness)[0]
            return self.curves(S / self.model.temperature)[0]
        return self.curves(self.model.answer("class_scores", self.background.rows)).mean(axis=0)

    def curves(self, S: FloatArray) -> FloatArray:
        """Class scores over T, (n, C), as values of the curves, (n, n_curves)."""
        return effect_bands.curves(S)

    def effect(self, column: int) -> Effect:
        """The effect of one column."""
        grid, levels, has_few_values = self._grid(column)
        has_missing = self._has_missing(column)
        cells = np.append(grid, np.nan) if has_missing else grid
        values, usage = self._values(column, cells)
        x, n = self.rows[:, column], len(grid)
        shares, missing_share = self._shares(column, grid, levels is not None)
        if self.method == AVERAGE:
            weights = np.append(shares, missing_share)[: len(cells)]  # type: ignore[arg-type]
            values = values - weights @ values / max(weights.sum(), np.finfo(float).tiny)
        low, high = self._plane_range(column, grid)
        made = Effect(
            self.model.columns[column],
            "number" if levels is None else "category",
            grid if levels is None else None,
            levels,
            values[:n].T,
            has_few_values=has_few_values,
            missing=values[n] if has_missing else None,
            planes_low=low,
            planes_high=high,
            shares=shares,
            missing_share=missing_share,
            importance=self._importance(column, values[:n], shares),
        )
        if len(x) and levels is None:
            density, edges = _histogram(x[~np.isnan(x)], is_centred=has_few_values)
            made = replace(made, density=density / max(len(x), 1), density_edges=edges)
        return self._with_bands(made, column, cells, usage)

    def _grid(self, column: int) -> Grid:
        schema = model_schema(self.model).columns[column]
        if schema.kind == "category":
            return Grid(np.arange(schema.n_levels, dtype=np.float64), tuple(schema.level_names))
        present = self.rows[:, column]
        present = present[~np.isnan(present)]
        few = np.unique(present)
        if 1 < len(few) <= MOST_VALUES:  # no curve lies between 0 and 1 of a flag
            return Grid(few, has_few_values=True)
        return Grid(self._places(column, present))

    def _places(self, column: int, present: FloatArray) -> FloatArray:
        """Where the effect of a number with many values is evaluated."""
        if self.form is None:
            return _quantiles(present)
        shape = self.form.shapes[column]
        assert isinstance(shape, NumberShape)
        if len(shape.knots) > 1:
            every = slice(None) if self.has_one_plane else evenly(len(shape.knots), MOST_POINTS)
            return shape.knots[every]
        if not len(present):
            return shape.knots[0] + LINE_REACH * shape.scale * np.array([-1.0, 0.0, 1.0])
        if self.has_one_plane:  # a line and its band bend at the mean alone
            ends = np.array([present.min(), present.max()])
            return np.union1d(ends, np.clip(shape.knots, *ends))
        return _quantiles(present)

    def _has_missing(self, column: int) -> bool:
        if self.form is None:
            return bool(np.isnan(self.rows[:, column]).any())
        return bool(np.any(self.form.shapes[column].missing != 0.0))

    def _values(self, column: int, cells: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """(n_cells, n_curves) effects, and the mean responsibilities of the planes there."""
        if not len(cells):  # training had no cell of this category
            return np.empty((0, len(self.labels))), None
        if self.method == AVERAGE:
            found = partial_dependence(
                self.model, self.form, self.background, [column], cells[:, None]
            )
            return self.curves(found.scores), found.usage
        assert self.form is not None
        return self.curves(self.class_means(self.form.shapes[column](cells))), None

    def class_means(self, F: FloatArray) -> FloatArray:
        """(n, P) -> (n, C): mean over the planes of each class, over T."""
        planes = self.model.planes
        sums = np.add.reduceat(F, planes.class_start[:-1], axis=1)
        means: FloatArray = sums / planes.per_class / self.model.temperature
        return means

    def _shares(
        self, column: int, grid: FloatArray, is_category: bool
    ) -> tuple[FloatArray, float] | tuple[None, None]:
        """Share of the rows at each value of the grid, and of missing cells."""
        if self.n_rows:
            x = self.rows[:, column]
            return cell_shares(x, np.ones(len(x)), grid, is_category)
        known = known_cells(self.model, column)
        return (None, None) if known is None else cell_shares(*known, grid, is_category)

    def _plane_range(self, column: int, grid: FloatArray) -> Any:
        """Least and largest effect of single planes, (n_curves, K); None for one plane."""
        if self.form is None or self.has_one_plane:
            return None, None
        planes = self.model.planes
        F = self.form.shapes[column](grid) / self.model.temperature
        means = self.class_means(F * self.model.temperature)
        ends = []
        for extreme in (np.minimum, np.maximum):
            own = extreme.reduceat(F, planes.class_start[:-1], axis=1)
            if planes.n_classes == 2:
                other = (np.maximum if extreme is np.minimum else np.minimum).reduceat(
                    F, planes.class_start[:-1], axis=1
                )
                ends.append((own[:, 1:] - other[:, :1]).T)
            else:
                ends.append((own - means.mean(axis=1, keepdims=True)).T)
        return ends[0], ends[1]

    def _importance(
        self, column: int, values: FloatArray, shares: FloatArray | None
    ) -> FloatArray | None:
        """(n_curves,) mean size of what the column adds in each row."""
        if shares is None:
            return None
        if self.form is None or not self.n_rows:
            return np.asarray(shares @ np.abs(values))
        F = self.form.shapes[column](self.sample[:, column])
        if self.responsibilities is None:
            added = self.class_means(F)
        else:
            starts = self.model.planes.class_start[:-1]
            added = np.add.reduceat(F * self.responsibilities, starts, axis=1)
            added = added / self.model.temperature
        return np.abs(self.curves(added)).mean(axis=0)

    def _with_bands(
        self, made: Effect, column: int, cells: FloatArray, usage: FloatArray | None
    ) -> Effect:
        if self.covariance is None:
            return made
        features, design = self._design(made, column, cells, usage)
        variances = self.covariance.variances(features, design)
        n = made.values.shape[1]
        values = made.values.T if made.missing is None else np.vstack([made.values.T, made.missing])
        half = self._half_width(variances, values)
        made = replace(made, lower=made.values - half[:n].T, upper=made.values + half[:n].T)
        if made.missing is not None:
            lower, upper = made.missing - half[n], made.missing + half[n]
            made = replace(made, missing_lower=lower, missing_upper=upper)
        return self._with_importance_interval(made, features, design[:, :n])

    def _design(
        self, made: Effect, column: int, cells: FloatArray, usage: FloatArray | None
    ) -> tuple[IntArray, FloatArray]:
        """Features, and how the effect moves with them, (P or 1, n_cells, n_features)."""
        assert self.covariance is not None
        if usage is None:
            features, design = effect_bands.column_design(self.model, column, cells)
            return features, design[None]
        if not self.covariance.is_joint:
            features, design = effect_bands.column_design(self.model, column, cells)
            return features, usage.T[:, :, None] * design
        features = self.covariance.features
        design = effect_bands.average_design(
            self.model, self.background.rows, column, cells, features
        )
        weights = np.append(made.shares, made.missing_share)[: len(cells)]  # type: ignore[arg-type]
        weights = weights / max(weights.sum(), np.finfo(float).tiny)
        return features, design - np.einsum("k,pkf->pf", weights, design)[:, None]

    def _half_width(self, variances: FloatArray, values: FloatArray) -> FloatArray:
        """(n, n_curves) half the width of a band, from variances (P, n) and values."""
        deviations = effect_bands.curve_deviations(self.model, variances)
        return np.asarray(self.z * np.hypot(deviations, self.scale_error * values))

    def _with_importance_interval(
        self, made: Effect, features: IntArray, design: FloatArray
    ) -> Effect:
        """The importance is mean |effect|; around the estimate it moves with mean(sign effect)."""
        assert self.covariance is not None
        if made.shares is None or made.importance is None:
            return made
        signs = made.shares * np.sign(made.values)
        if len(signs) > 1:  # a plane moves the curve of its own class
            signs = signs[self.model.planes.class_of]
        variances = self.covariance.variances(features, signs[:, None, :] @ design)
        half = self._half_width(variances, made.importance[None])[0]
        return replace(
            made,
            importance_lower=np.maximum(made.importance - half, 0.0),
            importance_upper=made.importance + half,
        )


def reader_of(model: GeometricMixture, X: Any, confidence: float) -> Reader:
    rows = np.empty((0, model.n_features)) if X is None else encoded_rows(model, X)
    form = pure(model) if model.lift.is_additive else None
    if form is None and not len(rows):
        raise NoShapes(
            "A Fourier model has no curve of its own for a column; pass rows X, and the effects "
            "are partial dependences over them."
        )
    sample = rows[evenly(len(rows), MOST_ROWS_READ)]
    responsibilities = None
    if form is not None and model.planes.n_planes > model.planes.n_classes and len(sample):
        responsibilities = model.answer("responsibilities", sample)
    background = background_of(form, rows[evenly(len(rows), MOST_ROWS)])
    found = effect_bands.covariance(model, sample)
    return Reader(
        model,
        form,
        rows,
        sample,
        background,
        responsibilities,
        found,
        np.zeros(0) if found is None else effect_bands.scale_error(model, background.rows, found),
        NormalDist().inv_cdf(0.5 + confidence / 2.0),
    )


def _histogram(present: FloatArray, *, is_centred: bool) -> tuple[IntArray, FloatArray]:
    """Counts and edges of equal bins; ``is_centred``: the ends lie in the middle of their bins."""
    if not is_centred:
        return np.histogram(present, N_DENSITY_BINS)
    low, high = present.min(), present.max()
    half = (high - low) / (N_DENSITY_BINS - 1) / 2.0
    return np.histogram(present, N_DENSITY_BINS, range=(low - half, high + half))


def _quantiles(present: FloatArray) -> FloatArray:
    """Values of a column, half of them quantiles and half evenly spaced."""
    if not len(present):
        return np.zeros(1)
    distinct = np.unique(present)
    if len(distinct) <= MOST_POINTS:
        return distinct
    half = MOST_POINTS // 2
    of_rows = np.sort(present)[evenly(len(present), half)]
    return np.union1d(of_rows, np.linspace(distinct[0], distinct[-1], half))


def known_cells(model: GeometricMixture, column: int) -> tuple[FloatArray, FloatArray] | None:
    """Cells of a column and their shares of the training rows, as far as the model has them.

    The steps of a curve have the means E[clip((x - t_k-1) / (t_k - t_k-1), 0, 1)], and their
    differences are the shares of the rows near each knot. Levels have their shares.
    """
    lift = model.lift
    if isinstance(lift, SplineLift):
        own = [part for part in lift.parts if part.columns == (column,)]
        if len(own) != 1:
            return None
        part = own[0]
        if isinstance(part, CurvePart):
            above = np.concatenate([[1.0], part.mean[: part.n_ordered], [0.0]])
            return part.knots, np.maximum(above[:-1] - above[1:], 0.0)
        n_levels = part.n_steps if isinstance(part, PairPart) else part.n_levels
        cells = np.arange(n_levels, dtype=np.float64)
        if part.n_steps > n_levels:
            cells = np.append(cells, np.nan)
        return cells, np.asarray(part.mean)
    if model.expand is None or model_schema(model).columns[column].kind != "category":
        return None
    kept = model.standardize.kept
    own_columns = np.flatnonzero(model.expand.column_of[kept] == column)
    shows = model.expand.shows[kept][own_columns]
    cells = np.where(shows == MISSING, np.nan, shows)
    return cells, model.standardize.mean[own_columns]


def cell_shares(
    x: FloatArray, weight: FloatArray, grid: FloatArray, is_category: bool
) -> tuple[FloatArray, float]:
    """Share of cells at each value of the grid, and of missing ones.

    A number between two values counts for both, in proportion to how near it is.
    """
    missing, total = np.isnan(x), max(weight.sum(), np.finfo(float).tiny)
    there, mass = x[~missing], weight[~missing]
    missing_share = float(weight[missing].sum() / total)
    if is_category:
        known = (there >= 0) & (there < len(grid))
        counts = np.bincount(there[known].astype(np.intp), mass[known], len(grid))
        return counts / total, missing_share
    if len(grid) == 1:
        return np.array([mass.sum() / total]), missing_share
    there = np.clip(there, grid[0], grid[-1])
    left = np.clip(np.searchsorted(grid, there, "right") - 1, 0, len(grid) - 2)
    part = (there - grid[left]) / (grid[left + 1] - grid[left])
    counts = np.bincount(left, mass * (1.0 - part), len(grid))
    counts = counts + np.bincount(left + 1, mass * part, len(grid))
    return counts / total, missing_share
