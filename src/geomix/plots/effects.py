"""EffectDisplay: what each column adds to the log-odds, one panel for each column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain.effect_facts import Effect, Effects
from geomix.explain.effects import effects
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.inputs import check_model, model_of
from geomix.table.printing import both_ends

N_COLUMNS = 6  # panels, if no columns are named
MOST_LEVELS = 10  # of a category in one panel; ``n_levels=None`` shows all
MOST_CURVES = 6  # classes in one panel, if none are named
PANEL_COLUMNS = 3
PANEL, ROW = (3.1, 2.3), 0.19  # inches: a panel, and a level more than fits into it
DENSITY_HEIGHT = 0.16  # of a panel, at its foot
# The scale of a panel shows the curve; a band may reach this many times as far before it is cut.
BAND_REACH = 2.5
LEVEL_NAME = 22
PANEL_NAME, SHORT_NAME = 28, 8  # letters of a name above its panel; with room for more beside it
SKEWED = 0.08  # of the range of a column: half of its knots in less are drawn on a log scale


@dataclass(frozen=True, eq=False, repr=False)
class EffectDisplay:
    """Effects of columns in log-odds against the average row.

    A curve, or points for levels, with the band of the estimate. The grey bars at the foot are the
    rows. Thin lines are the least and largest effect of single planes, where a class has several.

    Attributes
    ----------
    effects : what ``model.effects`` returned
    columns : names of the columns drawn;  curves : positions of the classes drawn
    ax_, figure_ : where it was drawn; None before ``plot``;  panels_ : the axes of the columns
    """

    effects: Effects
    columns: tuple[str, ...]
    curves: tuple[int, ...]
    ax_: Any = None
    figure_: Any = None
    panels_: tuple[Any, ...] = ()

    @classmethod
    def from_effects(
        cls, found: Effects, *, columns: Any = None, labels: Any = None
    ) -> EffectDisplay:
        """Of effects that are computed already.

        columns : names of columns; None: the six with the largest importance, without those that
            have no effect at all
        labels : classes to draw; None: all, or the six with the largest effects
        """
        if columns is None:
            strongest = found.strongest(N_COLUMNS)
            moving = [one.column for one in strongest if _ranges(one).max(initial=0.0) > 0.0]
            chosen = tuple(moving or [one.column for one in strongest])
        else:
            chosen = (columns,) if isinstance(columns, str) else tuple(columns)
        for column in chosen:
            found[column]  # an unknown name is refused here
        return cls(found, chosen, _curves(found, chosen, labels))

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        X: Any = None,
        *,
        columns: Any = None,
        labels: Any = None,
        confidence: float = 0.9,
    ) -> EffectDisplay:
        """Effects of a model; rows ``X`` give bands and densities."""
        check_model(model)
        found = effects(model, X, confidence=confidence, n_interactions=0)
        return cls.from_effects(found, columns=columns, labels=labels)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, **options: Any) -> EffectDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, **options)

    def frame(self) -> Any:
        """A line for each column, class, and value or level that is drawn."""
        table = self.effects.to_frame()
        labels = [self.effects.labels[c] for c in self.curves]
        kept = table["column"].isin(self.columns) & table["class"].isin(labels)
        return table[kept].reset_index(drop=True)

    def plot(
        self,
        ax: Any = None,
        *,
        share_scale: bool = False,
        n_levels: int | None = MOST_LEVELS,
        n_columns: int = PANEL_COLUMNS,
    ) -> EffectDisplay:
        """Draw one panel for each column.

        share_scale : the same scale in all panels; otherwise each has the scale that shows it
        n_levels : most levels of a category, the most frequent ones; None: all
        n_columns : panels in a row
        """
        shown = [self.effects[column] for column in self.columns]
        levels = [_levels_shown(one, n_levels) for one in shown]
        n_columns = min(n_columns, max(len(shown), 1))
        most = max((len(one) for one in levels if one is not None), default=0)
        height = max(PANEL[1], 0.7 + ROW * most)
        size = PANEL[0] * n_columns, height * -(-len(shown) // n_columns) + 0.5
        ax, panels = look.panel_grid(ax, len(shown), n_columns, size)
        limits = _limits(shown, self.curves) if share_scale else None
        for panel, one, order in zip(panels, shown, levels, strict=True):
            own = limits or _limits([one], self.curves)
            self._draw(panel, one, order, own)
        look.title_above(ax, self._title())
        if len(self.curves) > 1 and panels:
            handles = [look.class_handle(c, self.effects.labels[c]) for c in self.curves]
            look.legend_below(ax, handles)
        return replace(self, ax_=ax, figure_=ax.figure, panels_=tuple(panels))

    _repr_png_ = look.notebook_png

    def _title(self) -> str:
        found = self.effects
        what = f"Effects on the {found.unit(self.curves[0])}"
        if len(self.curves) > 1:
            what = "Effects on the log-odds of each class"
        band = f"; bands of {found.confidence:.0%}" if found.has_bands else ""
        return f"{what} ({found.method}{band})"

    def _draw(
        self, ax: Any, one: Effect, order: IntArray | None, limits: tuple[float, float]
    ) -> None:
        look.quiet_frame(ax)
        ax.tick_params(labelsize=7)
        hidden = 0 if order is None or one.levels is None else _n_hidden(one.levels, order)
        look.panel_title(ax, _panel_title(one.column, hidden))
        if one.levels is not None and order is not None:
            self._draw_levels(ax, one, order, limits)
        else:
            self._draw_curves(ax, one, limits)

    def _color(self, c: int) -> str:
        n_curves = len(self.effects.labels)
        return look.class_color(1 if n_curves == 1 else c)

    def _draw_curves(self, ax: Any, one: Effect, limits: tuple[float, float]) -> None:
        assert one.x is not None
        _draw_density(ax, one)
        ax.axhline(0.0, color=look.QUIET, linewidth=0.7, linestyle=(0, (4, 3)))
        for c in self.curves:
            color = self._color(c)
            if one.lower is not None and one.upper is not None:
                ax.fill_between(
                    one.x, one.lower[c], one.upper[c], color=color, alpha=0.22, linewidth=0
                )
            if one.planes_low is not None and one.planes_high is not None and len(self.curves) == 1:
                for edge in (one.planes_low[c], one.planes_high[c]):
                    ax.plot(one.x, edge, color=color, linewidth=0.6, linestyle=(0, (1, 1.5)))
            dash = look.class_dash(c) if len(self.curves) > 1 else "-"
            mark = {"marker": "o", "markersize": 4.0} if one.has_few_values else {}
            ax.plot(one.x, one.values[c], color=color, linewidth=1.6, linestyle=dash, **mark)
        _draw_missing(ax, one, self.curves, self._color)
        room = limits[1] - limits[0]
        foot = limits[0] - (DENSITY_HEIGHT * room if one.density is not None else 0.0)
        ax.set_ylim(foot, limits[1])
        if one.marks is not None:
            ax.set_xticks(one.marks, [f"{mark:.4g}" for mark in one.marks])
        elif not _is_skewed(one):
            ax.xaxis.set_major_locator(look.few_ticks())
            ax.xaxis.set_major_formatter(look.Numbers())
        unit = self.effects.unit(self.curves[0]) if len(self.curves) == 1 else "log-odds"
        look.axis_label(ax.set_ylabel, unit)

    def _draw_levels(
        self, ax: Any, one: Effect, order: IntArray, limits: tuple[float, float]
    ) -> None:
        assert one.levels is not None
        places = np.arange(len(order), dtype=np.float64)
        ax.axvline(0.0, color=look.QUIET, linewidth=0.7, linestyle=(0, (4, 3)))
        offsets = np.linspace(-0.28, 0.28, len(self.curves)) if len(self.curves) > 1 else [0.0]
        columns = [_with_missing(*pair) for pair in _drawn(one)]
        for c, offset in zip(self.curves, offsets, strict=True):
            values, lower, upper = (None if v is None else v[c][order] for v in columns)
            assert values is not None
            if lower is not None and upper is not None:
                ax.hlines(
                    places + offset, lower, upper, color=self._color(c), linewidth=3.2, alpha=0.3
                )
            marker = look.class_marker(c) if len(self.curves) > 1 else "o"
            style = {"color": self._color(c), "marker": marker, "markersize": 4, "linestyle": ""}
            ax.plot(values, places + offset, **style)
        _draw_shares(ax, one, order, places, limits)
        names = [*one.levels, "(missing)"]
        shown = [both_ends(names[level], LEVEL_NAME) for level in order]
        ax.set_yticks(places, shown, parse_math=False)
        ax.set(xlim=limits, ylim=(len(order) - 0.4, -0.6))
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        unit = self.effects.unit(self.curves[0]) if len(self.curves) == 1 else "log-odds"
        look.axis_label(ax.set_xlabel, unit)


def _panel_title(column: str, n_hidden: int) -> str:
    """A column's name, and how many levels are not drawn; on a line of its own if that is long."""
    name = both_ends(column, PANEL_NAME)
    if not n_hidden:
        return name
    line = " " if len(name) <= SHORT_NAME else "\n"
    return f"{name}{line}({n_hidden} rarer levels not shown)"


def _curves(found: Effects, columns: Iterable[str], labels: Any) -> tuple[int, ...]:
    if labels is None:
        sizes = sum(_ranges(found[column]) for column in columns)
        order = np.argsort(-np.asarray(sizes), kind="stable")[:MOST_CURVES]
        return tuple(sorted(order.tolist()))
    given = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
    for label in given:
        if label not in found.labels:
            raise ValueError(f"Got labels={labels!r}; expected some of {list(found.labels)!r}.")
    return tuple(found.labels.index(label) for label in given)


def _drawn(one: Effect) -> list[tuple[FloatArray | None, FloatArray | None]]:
    """Values and the limits of their bands, each with that of a missing cell."""
    return [
        (one.values, one.missing),
        (one.lower, one.missing_lower),
        (one.upper, one.missing_upper),
    ]


def _with_missing(values: FloatArray | None, missing: FloatArray | None) -> FloatArray | None:
    if values is None or missing is None:
        return values
    return np.column_stack([values, missing])


def _levels_shown(one: Effect, most: int | None) -> IntArray | None:
    """Positions of the levels drawn, by falling effect, a missing cell among them."""
    if one.levels is None:
        return None
    shares = np.ones(len(one.levels)) if one.shares is None else one.shares
    kept = np.argsort(-shares, kind="stable")[:most]
    values = one.values
    if one.missing is not None:
        values = np.column_stack([values, one.missing])
        kept = np.append(kept, len(one.levels))
    sizes = np.abs(values).max(axis=1, initial=0.0)
    key = values[sizes.argmax()]
    return np.asarray(kept[np.argsort(-key[kept], kind="stable")])


def _n_hidden(levels: tuple[str, ...], order: IntArray) -> int:
    """How many levels are not drawn; the missing cell, behind the last level, is none of them."""
    return len(levels) - int((order < len(levels)).sum())


def _ranges(one: Effect) -> FloatArray:
    """(n_curves,) from the least to the largest effect, a missing cell included."""
    values = _with_missing(one.values, one.missing)
    assert values is not None
    return np.asarray(np.ptp(values, axis=1)) if values.size else np.zeros(len(values))


def _limits(shown: list[Effect], curves: tuple[int, ...]) -> tuple[float, float]:
    """A scale for the curves and missing cells, and for as much of their bands as leaves the
    curves readable."""
    low, high = 0.0, 0.0
    for one in shown:
        values, lower, upper = (_with_missing(*pair) for pair in _drawn(one))
        if values is None or not values.size:  # a column without any cell has no levels
            continue
        values = values[list(curves)]
        least, most = float(values.min()), float(values.max())
        reach = max(BAND_REACH * max(most - least, 1e-6) / 2.0, 1e-6)
        middle = (least + most) / 2.0
        if lower is not None and upper is not None:
            least = max(float(lower[list(curves)].min()), min(middle - reach, least))
            most = min(float(upper[list(curves)].max()), max(middle + reach, most))
        low, high = min(low, least), max(high, most)
    room = 0.06 * max(high - low, 1e-6)
    return low - room, high + room


def _is_skewed(one: Effect) -> bool:
    """Whether half of the curve's knots lie in a small part of its range, at zero and above."""
    assert one.x is not None
    if len(one.x) < 8 or one.x[0] < 0.0:
        return False
    return bool(np.median(one.x) - one.x[0] < SKEWED * (one.x[-1] - one.x[0]))


def _draw_density(ax: Any, one: Effect) -> None:
    if _is_skewed(one):
        assert one.x is not None
        ax.set_xscale("symlog", linthresh=float(one.x[one.x > 0.0][0]), linscale=0.4)
    if one.density is None or one.density_edges is None or one.shares is None:
        return
    strip = ax.inset_axes((0.0, 0.0, 1.0, DENSITY_HEIGHT * 0.8), sharex=ax)
    if _is_skewed(one):
        heights = np.sqrt(one.shares / max(float(one.shares.max()), 1e-300))
        strip.vlines(one.x, 0.0, heights, color=look.BARS, linewidth=2.0)
    else:
        heights = one.density / max(float(one.density.max()), 1e-300)
        edges = one.density_edges
        strip.bar(edges[:-1], heights, np.diff(edges), align="edge", color=look.BARS)
    strip.set(ylim=(0.0, 1.0))
    strip.set_axis_off()


def _draw_shares(
    ax: Any, one: Effect, order: IntArray, places: FloatArray, limits: tuple[float, float]
) -> None:
    if one.shares is None:
        return
    shares = np.append(one.shares, one.missing_share or 0.0)[order]
    widths = shares / max(float(shares.max(initial=0.0)), 1e-300) * 0.2 * (limits[1] - limits[0])
    ax.barh(places, widths, 0.82, left=limits[0], color=look.BARS, zorder=0)


def _draw_missing(ax: Any, one: Effect, curves: tuple[int, ...], color: Any) -> None:
    """A missing number: a mark beyond the right end of the curve."""
    if one.missing is None or one.x is None:
        return
    at = one.x[-1] + 0.07 * (one.x[-1] - one.x[0])
    for c in curves:
        if one.missing_lower is not None and one.missing_upper is not None:
            ax.vlines(
                at,
                one.missing_lower[c],
                one.missing_upper[c],
                color=color(c),
                linewidth=3,
                alpha=0.3,
            )
        ax.plot([at], [one.missing[c]], marker="D", markersize=4, color=color(c), linestyle="")
    ax.annotate(
        "missing",
        (at, float(one.missing[curves[0]])),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        fontsize=6.5,
        color=look.QUIET,
    )
