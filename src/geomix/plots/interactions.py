"""InteractionDisplay: heat maps of what two columns add together, beyond their own effects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from geomix.arrays import FloatArray
from geomix.explain.effect_facts import Effects, Interaction, edge_text
from geomix.explain.effects import effects
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, model_of
from geomix.table.printing import both_ends, distinct_numbers

N_PAIRS = 4
PANEL = (3.6, 3.0)
MOST_TICKS = 8  # along one side of a heat map
LEVEL_NAME = 14
# Blue below, white at zero, vermilion above: apart under colour blindness and in grey.
COLOURS = LinearSegmentedColormap.from_list("effects", [look.HUES[0], "#F7F7F7", look.HUES[1]])


@dataclass(frozen=True, eq=False, repr=False)
class InteractionDisplay:
    """The strongest interactions of two columns, one heat map each.

    Hatched cells have no training rows.

    Attributes
    ----------
    effects : what ``model.effects`` returned;  pairs : positions of the interactions drawn
    curve : position of the class drawn
    ax_, figure_ : where it was drawn; None before ``plot``;  panels_ : the axes of the heat maps
    """

    effects: Effects
    pairs: tuple[int, ...]
    curve: int = 0
    ax_: Any = None
    figure_: Any = None
    panels_: tuple[Any, ...] = ()

    @classmethod
    def from_effects(
        cls, found: Effects, *, pairs: Any = None, label: Any = None
    ) -> InteractionDisplay:
        """Of effects that are computed already.

        pairs : (first, second) column names; None: the four strongest interactions
        label : the class drawn; None: the second of two, or that with the strongest interactions
        """
        known = [one.columns for one in found.interactions]
        places = list(range(min(N_PAIRS, len(known))))
        if pairs is not None:
            places = [_place(known, pair) for pair in pairs]
        return cls(found, tuple(places), _curve(found, places, label))

    @classmethod
    def from_model(
        cls, model: GeometricMixture, X: Any = None, *, pairs: Any = None, label: Any = None
    ) -> InteractionDisplay:
        """Interactions of a model. One with several planes per class needs rows ``X``."""
        check_model(model)
        found = effects(model, X, n_interactions=10 if pairs is None else model.n_features**2)
        return cls.from_effects(found, pairs=pairs, label=label)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, **options: Any) -> InteractionDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, **options)

    def frame(self) -> Any:
        """A line for each interaction, the strongest first."""
        found = self.effects.interactions
        return frame(
            {
                "first": [one.columns[0] for one in found],
                "second": [one.columns[1] for one in found],
                "strength": [one.strength for one in found],
                "h": [one.h for one in found],
            }
        )

    def plot(self, ax: Any = None, *, share_scale: bool = False) -> InteractionDisplay:
        """Draw one heat map for each pair.

        share_scale : the same colours in all of them; otherwise each has the scale that shows it
        """
        shown = [self.effects.interactions[place] for place in self.pairs]
        n_columns = min(2, max(len(shown), 1))
        n_rows = -(-max(len(shown), 1) // n_columns)
        size = PANEL[0] * n_columns + 0.6, PANEL[1] * n_rows + 0.5
        ax, panels = look.panel_grid(ax, len(shown), n_columns, size)
        most = max((_largest(one.values[self.curve]) for one in shown), default=1.0)
        for panel, one in zip(panels, shown, strict=True):
            values = one.values[self.curve]
            self._draw(panel, one, most if share_scale else _largest(values))
        if shown:
            look.title_above(ax, self._title())
        else:
            text = "This model has no interactions of columns."
            ax.text(0.5, 0.5, text, ha="center", va="center", color=look.QUIET)
        return replace(self, ax_=ax, figure_=ax.figure, panels_=tuple(panels))

    _repr_png_ = look.notebook_png

    def _title(self) -> str:
        return f"Interactions: {self.effects.unit(self.curve)}, beyond both effects"

    def _draw(self, ax: Any, one: Interaction, most: float) -> None:
        values = one.values[self.curve].T
        drawn = ax.pcolormesh(values, cmap=COLOURS, vmin=-most, vmax=most)
        if one.shares is not None and (one.shares == 0.0).any():
            _hatch(ax, one.shares.T == 0.0)
        _ticks(ax.set_xticks, one.x_edges, one.x_levels, rotation=35)
        _ticks(ax.set_yticks, one.y_edges, one.y_levels, rotation=0)
        look.quiet_frame(ax, box=True)
        ax.tick_params(labelsize=7)
        look.axis_label(ax.set_xlabel, one.columns[0])
        look.axis_label(ax.set_ylabel, one.columns[1])
        look.panel_title(ax, f"{look.cut(one.name, 40)}   H {one.h:.2f}")
        bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, fraction=0.06)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, color=look.QUIET, length=2)


def _place(known: list[tuple[str, str]], pair: Any) -> int:
    for place, names in enumerate(known):
        if set(names) == set(pair):
            return place
    raise ValueError(f"Got the pair {pair!r}; there are interactions of {known!r}.")


def _curve(found: Effects, places: list[int], label: Any) -> int:
    if label is not None:
        if label not in found.labels:
            raise ValueError(f"Got label={label!r}; expected one of {list(found.labels)!r}.")
        return found.labels.index(label)
    if not places:
        return 0
    sizes = sum((found.interactions[place].values ** 2).mean(axis=(1, 2)) for place in places)
    return int(np.argmax(sizes))


def _largest(values: FloatArray) -> float:
    return max(float(np.abs(values).max(initial=0.0)), 1e-9)


def _hatch(ax: Any, empty: Any) -> None:
    cells = np.ma.masked_where(~empty, np.ones(empty.shape))
    ax.pcolor(cells, hatch="////", alpha=0.0, edgecolor=look.QUIET, linewidth=0.0)


def _ticks(set_ticks: Any, edges: Any, levels: Any, rotation: float) -> None:
    """Levels in the middle of their cells, the numbers of edges between them."""
    style: dict[str, Any] = {"parse_math": False, "rotation": rotation}
    if rotation:
        style |= {"ha": "right", "rotation_mode": "anchor"}
    if levels is not None:
        step = -(-len(levels) // MOST_TICKS) if len(levels) > 2 * MOST_TICKS else 1
        places = np.arange(0, len(levels), step)
        set_ticks(places + 0.5, [both_ends(levels[k], LEVEL_NAME) for k in places], **style)
        return
    places = np.unique(np.linspace(0, len(edges) - 1, min(MOST_TICKS, len(edges))).round())
    shown = [edges[int(k)] for k in places]
    texts = list(map(edge_text, shown))
    if len(set(texts)) < len(texts):
        texts = distinct_numbers(shown)
    set_ticks(places, texts, **style)
