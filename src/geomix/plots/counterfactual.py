"""CounterfactualDisplay: what would have to change, and the probabilities along the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_row, model_schema
from geomix.geometry.answers import Counterfactual
from geomix.geometry.constraints import unit_sizes
from geomix.geometry.counterfactual import counterfactual
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, model_of
from geomix.table.printing import both_ends, distinct_numbers

STEPS = 101
MOST_CHANGES = 8
NAME, LEVEL = 28, 24  # most letters of a column's name, and of a level


@dataclass(frozen=True, eq=False, repr=False)
class CounterfactualDisplay:
    """The straight line from a row to the nearest one of another class.

    Attributes
    ----------
    found : the result of ``model.counterfactual``
    classes : labels of the classes
    way : (n,) from 0, the row, to 1, the counterfactual. Numbers move evenly,
        levels change half-way
    probabilities : (n, n_classes) along the way
    changes : column, text and size of each change, in standard deviations, the largest first; a
        changed level counts one
    ax_, figure_ : where it was drawn, and ``changes_ax_`` below it; None before ``plot``
    """

    found: Counterfactual
    classes: tuple[Any, ...]
    way: FloatArray
    probabilities: FloatArray
    changes: tuple[tuple[str, str, float], ...]
    ax_: Any = None
    changes_ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls, model: GeometricMixture, x: Any, target: Any = None, **options: Any
    ) -> CounterfactualDisplay:
        """Look for the counterfactual of row ``x``; ``options`` as in ``model.counterfactual``."""
        check_model(model)
        found = counterfactual(model, x, target, **options)
        if found.after is None:
            raise ValueError(f"There is no way to draw: {found}")
        before, after = encoded_row(model, x), encoded_row(model, found.after)
        way = np.linspace(0.0, 1.0, STEPS)
        rows = before + way[:, None] * (after - before)
        is_category = model_schema(model).is_category
        rows[:, is_category] = np.where(way[:, None] < 0.5, before, after)[:, is_category]
        P = model.answer("predict_proba", rows)
        changes = _changes(model, found, before, after)
        return cls(found, tuple(model.classes.tolist()), way, P, changes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: Any, target: Any = None, **options: Any
    ) -> CounterfactualDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), x, target, **options)

    def frame(self) -> Any:
        """A line for each step of the way."""
        named = {str(label): self.probabilities[:, c] for c, label in enumerate(self.classes)}
        return frame({"way": self.way} | named)

    def plot(self, ax: Any = None) -> CounterfactualDisplay:
        """Draw the probabilities along the way, and the changes as bars below."""
        n_changes = min(len(self.changes), MOST_CHANGES)
        ax = look.own_axes(5.4, 3.4 + 0.26 * n_changes) if ax is None else ax
        below = look.panel_below(ax, (3.0, 0.5 + 0.3 * n_changes))
        for code, label in enumerate(self.classes):
            style = {"color": look.class_color(code), "linestyle": look.class_dash(code)}
            p, name = self.probabilities[:, code], look.plain(label)
            ax.plot(self.way, p, linewidth=1.7, label=name, **style)
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), ylabel="probability")
        ax.set_xticks([0.0, 1.0], ["the row", f"{self.found.distance:.3g} away"])
        for text, side in zip(ax.get_xticklabels(), ("left", "right"), strict=True):
            text.set_horizontalalignment(side)
        ax.yaxis.set_major_formatter(look.percent)
        look.quiet_frame(ax)
        look.legend_above(ax)
        self._draw_changes(below, n_changes)
        return replace(self, ax_=ax, changes_ax_=below, figure_=ax.figure)

    _repr_png_ = look.notebook_png

    def _draw_changes(self, ax: Any, n_changes: int) -> None:
        shown = self.changes[:n_changes]
        sizes = [size for _, _, size in shown]
        colors = [look.HUES[0] if size >= 0.0 else look.HUES[1] for size in sizes]
        ax.barh(range(n_changes), sizes, 0.6, color=colors)
        ax.axvline(0.0, color=look.QUIET, linewidth=0.7)
        names = [
            f"{look.plain(both_ends(name, NAME))}: {look.plain(text)}" for name, text, _ in shown
        ]
        ax.set_yticks(range(n_changes), names)
        left_out = len(self.changes) - n_changes
        more = f"; {left_out} smaller ones not shown" if left_out else ""
        cells = self.found.changes.values()
        has_levels = any(not isinstance(new, (int, float)) for _, new in cells)
        unit = "standard deviations" + ("; a level counts one" if has_levels else "")
        ax.set(ylim=(n_changes - 0.4, -0.6), xlabel=f"change in {unit}{more}")
        look.quiet_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)


def _changes(
    model: GeometricMixture, found: Counterfactual, before: FloatArray, after: FloatArray
) -> tuple[tuple[str, str, float], ...]:
    unit = unit_sizes(model, additive(model), None)
    made = []
    for name, (old, new) in found.changes.items():
        j = model.columns.index(name)
        is_category = bool(model_schema(model).is_category[j])
        size = 1.0 if is_category else float((after[j] - before[j]) / unit[j])
        texts = [both_ends(cell, LEVEL) for cell in (old, new)]
        text = " to ".join(texts if is_category else distinct_numbers([old, new]))
        made.append((name, text, size))
    return tuple(sorted(made, key=lambda one: -abs(one[2])))
