"""WaterfallDisplay: from the average row to the log-odds of one row, column by column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.explain.local_explanation import LocalExplanation, explain_local
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, model_of
from geomix.table.printing import both_ends, shown

N_COLUMNS = 10
NAME, ROOM, MOST_WHOLE = 36, 0.12, 1e12
SMALLEST_POOLING = 5e-3  # log-odds below which several planes add nothing worth a bar


@dataclass(frozen=True, eq=False, repr=False)
class WaterfallDisplay:
    """What each column of one row adds to the log-odds between two classes.

    Attributes
    ----------
    explanation : of one row, as ``model.explain_local`` returned it
    n_columns : columns with a bar of their own; the others share one
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    explanation: LocalExplanation
    n_columns: int = N_COLUMNS
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_explanation(
        cls, explanation: LocalExplanation, row: int = 0, *, n_columns: int = N_COLUMNS
    ) -> WaterfallDisplay:
        """Of one row of an explanation that is computed already."""
        return cls(explanation[row], n_columns)

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        x: Any,
        *,
        label: Any = None,
        against: Any = None,
        n_columns: int = N_COLUMNS,
    ) -> WaterfallDisplay:
        """Of the first row of ``x``: a frame, an array or a dict by column.

        label, against : the class explained and the class it is compared with; None: the two most
            probable ones
        """
        check_model(model)
        found = explain_local(model, _one_row(x), label=label, against=against)
        return cls.from_explanation(found, n_columns=n_columns)

    @classmethod
    def from_estimator(cls, estimator: Any, x: Any, **options: Any) -> WaterfallDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), x, **options)

    def frame(self) -> Any:
        """A line for each bar, from the average row to the log-odds of this row."""
        bars = self._bars()
        return frame({"name": [name for name, _ in bars], "value": [value for _, value in bars]})

    def plot(self, ax: Any = None) -> WaterfallDisplay:
        """Draw the bars from top to bottom."""
        bars = self._bars()
        ax = look.own_axes(6.4, 1.2 + 0.3 * len(bars)) if ax is None else ax
        ends = np.cumsum([value for _, value in bars[:-1]]).tolist()
        for place, (_, value) in enumerate(bars):
            is_total = place in (0, len(bars) - 1)
            start = 0.0 if is_total else ends[place - 1]
            color = look.QUIET if is_total else look.class_color(0 if value >= 0.0 else 1)
            ax.barh(place, value, 0.66, start, color=color)
            _write(ax, place, start, value)
            if place < len(bars) - 1:
                style = {"color": look.QUIET, "linewidth": 0.6}
                ax.plot([start + value] * 2, [place - 0.33, place + 1.33], **style)
        ax.axvline(0.0, color=look.QUIET, linewidth=0.7, linestyle=(0, (4, 3)))
        names = [_bar_name(name) for name, _ in bars]
        ax.set_yticks(range(len(bars)), names, parse_math=False)
        ax.set(ylim=(len(bars) - 0.4, -0.6))
        low, high = min(0.0, *ends), max(0.0, *ends)
        room = ROOM * max(high - low, 1e-6)  # for the numbers beside the bars
        ax.set_xlim(low - (room if low < 0.0 else 0.0), high + room)
        one = self.explanation
        label, against = one.classes[one.labels[0]], one.classes[one.against[0]]
        ax.set_xlabel(f"log-odds of {label} against {against}", parse_math=False)
        look.quiet_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_title(self._title(), **look.TITLE)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png

    def _title(self) -> str:
        one = self.explanation
        P, label, against = one.probabilities[0], one.labels[0], one.against[0]
        kind = "" if one.is_exact else f" ({one.method}: approximation)"
        return (
            f"Why {one.classes[label]} ({look.chance(P[label])}) and not {one.classes[against]} "
            f"({look.chance(P[against])}){kind}"
        )

    def _bars(self) -> list[tuple[str, float]]:
        """Average row, strongest columns, the others together, several planes, and the sum."""
        one = self.explanation
        parts, cells = one.contributions[0], one.cells[0]
        order = np.argsort(-np.abs(parts), kind="stable")
        bars = [("average row", float(one.bias[0]))]
        n_shown = self.n_columns + (len(order) == self.n_columns + 1)  # no line for "1 other"
        for j in order[:n_shown]:
            name = one.columns[j]
            bars.append((f"{name} = {_cell(cells[name])}", float(parts[j])))
        rest = order[n_shown:]
        if len(rest):
            bars.append((f"{len(rest)} other columns", float(parts[rest].sum())))
        if abs(float(one.pooling[0])) >= SMALLEST_POOLING:
            bars.append(("several planes together", float(one.pooling[0])))
        return [*bars, ("log-odds of this row", float(one.margin[0]))]


def _bar_name(name: str) -> str:
    """A bar's name in the room that it has; of "column = cell" both are cut, neither is lost."""
    column, sign, cell = name.rpartition(" = ")
    if not sign or len(name) <= NAME:
        return look.reading_on(look.cut(name, NAME))
    cell = both_ends(cell, NAME // 2)
    return look.reading_on(f"{both_ends(column, NAME - len(cell) - len(sign))}{sign}{cell}")


def _cell(cell: Any) -> str:
    """A whole number with all its digits, others with four; a year has no comma."""
    if cell is None:
        return "missing"
    if isinstance(cell, float) and _has_no_fraction(cell):
        return f"{cell:,.0f}" if abs(cell) >= 1e4 else f"{cell:.0f}"
    return shown(cell)


def _has_no_fraction(cell: float) -> bool:
    """Whether a number is whole, or so large that its fraction says nothing."""
    return abs(cell) < MOST_WHOLE and (cell.is_integer() or abs(cell) >= 1e9)


def _one_row(x: Any) -> Any:
    """One row as ``explain_local`` takes rows."""
    if hasattr(x, "to_dict") and getattr(x, "ndim", 2) == 1:  # a pandas Series
        return {str(name): cell for name, cell in x.to_dict().items()}
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return x[None, :]
    return x


def _write(ax: Any, place: int, start: float, value: float) -> None:
    end = start + value
    right = value >= 0.0
    ax.annotate(
        f"{value:+.2f}",
        (end, place),
        xytext=(3 if right else -3, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=7.5,
        color=look.INK,
    )
