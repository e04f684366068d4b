"""PlaneCardDisplay: what moves one plane's score: signed bars, or a curve for each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from geomix.explain.cells import class_code
from geomix.explain.global_explanation import ColumnCurves, explain_global
from geomix.explain.plane_cards import ColumnStrength, PlaneCard
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, model_of
from geomix.table.printing import both_ends

N_COLUMNS = 6
NAME, DIRECTION, PLANE, PANEL_NAME = 26, 34, 30, 24  # most letters of each
WIDTH, ROOM_FOR_NAMES, LETTER = 6.2, 26, 0.07  # inches; letters that fit, and inches of one more
PANEL_COLUMNS = 3
MOST_LEVELS = 8


@dataclass(frozen=True, eq=False, repr=False)
class PlaneCardDisplay:
    """The strongest columns of one plane.

    Attributes
    ----------
    card : the plane card of ``model.explain_global``
    place, code : the plane's place among all planes, and its class's among the classes
    curves : of the card's columns, in its order; empty where the planes are straight (bars)
    ax_, figure_ : where it was drawn; None before ``plot``
    panels_ : the small axes of the curves
    """

    card: PlaneCard
    place: int
    code: int
    curves: tuple[ColumnCurves, ...]
    ax_: Any = None
    figure_: Any = None
    panels_: tuple[Any, ...] = ()

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        label: Any,
        plane: int = 0,
        X: Any = None,
        y: Any = None,
        *,
        member: int = 0,
        n_columns: int = N_COLUMNS,
    ) -> PlaneCardDisplay:
        """The card of plane ``plane`` of class ``label`` (and of an ensemble's ``member``).

        X, y : rows and labels as in ``model.explain_global``
        """
        check_model(model)
        code = class_code(model, label)
        explained = explain_global(model, X, y, n_columns=n_columns)
        label = explained.classes[code]
        wanted = [
            place
            for place, card in enumerate(explained.cards)
            if (card.label, card.plane, card.member) == (label, plane, member)
        ]
        if not wanted:
            n_planes = int(model.planes.planes_per_member[code])
            raise ValueError(
                f"Got plane={plane!r}, member={member!r}; class {label!r} has {n_planes} planes in "
                f"each of {model.planes.n_members} members, counted from 0."
            )
        card = explained.cards[wanted[0]]
        curves: tuple[ColumnCurves, ...] = ()
        if model.lift.reads_cells:
            curves = tuple(explained.curve(one.column) for one in card.columns)
        return cls(card, wanted[0], code, curves)

    @classmethod
    def from_estimator(
        cls, estimator: Any, label: Any, plane: int = 0, *rows: Any, **options: Any
    ) -> PlaneCardDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), label, plane, *rows, **options)

    def frame(self) -> Any:
        """A line for each column of the card."""
        names = ("column", "strength", "direction")
        return frame({key: [getattr(one, key) for one in self.card.columns] for key in names})

    def plot(self, ax: Any = None) -> PlaneCardDisplay:
        """Draw bars, to the left where the score falls with the column, or the curves."""
        n_columns = max(len(self.card.columns), 1)
        height = 1.0 + 0.32 * n_columns
        if self.curves:
            height = 0.6 + 1.35 * -(-n_columns // PANEL_COLUMNS)
        ax = look.own_axes(self._width(), height) if ax is None else ax
        panels = self._draw_curves(ax) if self.curves else self._draw_bars(ax)
        room = 22 if panels else 10  # the panels have titles of their own
        ax.set_title(look.plain(self._title()), fontsize=9, color=look.INK, loc="left", pad=room)
        return replace(self, ax_=ax, figure_=ax.figure, panels_=tuple(panels))

    _repr_png_ = look.notebook_png

    def _width(self) -> float:
        """Inches of the figure: long names need room left of the bars."""
        if self.curves:
            return WIDTH
        longest = max((len(_bar_name(one)) for one in self.card.columns), default=0)
        return WIDTH + LETTER * max(longest - ROOM_FOR_NAMES, 0)

    def _title(self) -> str:
        name = both_ends(self.card.name, PLANE)
        if self.card.usage is None:
            return f"Plane {name}"
        right = "" if self.card.purity is None else f", {self.card.purity:.0%} of them correct"
        return f"Plane {name} answers for {self.card.usage:.0%} of the rows{right}"

    def _draw_bars(self, ax: Any) -> list[Any]:
        columns = self.card.columns
        places = range(len(columns))
        sizes = [-one.strength if one.direction == "falls" else one.strength for one in columns]
        hatches = ["" if _is_straight(one) else "///" for one in columns]
        color, style = look.class_color(self.code), {"edgecolor": "white", "height": 0.66}
        ax.barh(places, sizes, color=color, hatch=hatches, **style)
        ax.axvline(0.0, color=look.QUIET, linewidth=0.7)
        ax.set_yticks(places, [look.plain(_bar_name(one)) for one in columns])
        ax.set(ylim=(len(columns) - 0.4, -0.6), xlabel="moves the plane's score by (deviation)")
        look.quiet_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return []

    def _draw_curves(self, ax: Any) -> list[Any]:
        most = max(float(np.abs(one.values[self.place]).max()) for one in self.curves) * 1.1
        n_columns = min(PANEL_COLUMNS, len(self.curves))
        panels = look.panels(ax, len(self.curves), n_columns, (0.09, 0.42))
        for panel, curve in zip(panels, self.curves, strict=True):
            _draw_curve(panel, curve, self.place, look.class_color(self.code))
            panel.set_ylim(-most, most)
            name = look.plain(both_ends(curve.column, PANEL_NAME))
            panel.set_title(name, fontsize=8, color=look.INK, loc="left", pad=3)
            look.quiet_frame(panel)
            panel.tick_params(labelsize=7)
        return panels


def _bar_name(one: ColumnStrength) -> str:
    name = both_ends(one.column, NAME)
    return name if _is_straight(one) else f"{name} ({both_ends(one.direction, DIRECTION)})"


def _is_straight(one: ColumnStrength) -> bool:
    return one.direction in ("rises", "falls")


def _draw_curve(ax: Any, curve: ColumnCurves, place: int, color: str) -> None:
    ax.axhline(0.0, color=look.QUIET, linewidth=0.7, linestyle=(0, (4, 3)))
    values = curve.values[place]
    if curve.levels is None:
        ax.plot(curve.x, values, color=color, linewidth=1.6)
        ax.xaxis.set_major_formatter(look.Numbers())
        ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
        return
    strongest = np.sort(np.argsort(-np.abs(values), kind="stable")[:MOST_LEVELS])
    ax.bar(range(len(strongest)), values[strongest], 0.7, color=color)
    names = [str(curve.levels[level]) for level in strongest]
    cut = [look.plain(both_ends(name, 10)) for name in names]
    ax.set_xticks(range(len(strongest)), cut, rotation=30, ha="right")
