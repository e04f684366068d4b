"""The common look: a class is a hue, a plane is a shade of its class, and frames stay quiet.

Hues follow Okabe and Ito, so that they stay apart under colour blindness; classes differ in their
marker as well, so that colour is never the only cue.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Formatter, MaxNLocator

from geomix.arrays import FloatArray
from geomix.table.printing import distinct_numbers, left_to_right, printable, shortened

HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B", "#B8A800")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 2, 2)), (0, (1, 1)))
HATCHES = ("//", "\\\\", "||", "--", "..", "xx", "++", "oo")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
INK = "#262626"
QUIET = "#8A8A8A"
FAINT = "#EBEBEB"
BARS = "#DADADA"  # densities of rows behind a curve
# How much of the hue the darkest and the lightest plane of a class carry; the rest is white.
SHADES = (0.58, 0.32)
DOTS_PER_INCH = 150
# Text as it is: names and labels come from the user's data, and may hold a $.
TITLE: dict[str, Any] = {"fontsize": 10, "color": INK, "loc": "left", "pad": 8, "parse_math": False}
# In characters: the room of a mark with its gap, and of a whole line of legend.
LEGEND_MARK, LEGEND_LINE = 6, 72
LETTERS_PER_INCH, TITLE_LETTERS_PER_INCH = 12, 13  # of a legend, and of a title
# A legend of more entries stands beside the axes, in columns of at most this many.
MOST_ABOVE, MOST_IN_A_COLUMN = 12, 27
LONGEST_LABEL = 36


def class_color(code: int) -> str:
    return HUES[code % len(HUES)]


def class_marker(code: int) -> str:
    # 8 hues and 7 markers: no two of the first 56 classes have the same pair.
    return MARKERS[code % len(MARKERS)]


def class_dash(code: int) -> Any:
    return DASHES[code % len(DASHES)]


def plane_shades(code: int, n_planes: int) -> FloatArray:
    """One RGB shade of the class's hue per plane, dark to light, (n_planes, 3)."""
    depth = np.linspace(*SHADES, n_planes) if n_planes > 1 else np.array([np.mean(SHADES)])
    return 1.0 - depth[:, None] * (1.0 - np.array(to_rgb(class_color(code))))


def plain(text: Any) -> str:
    """Names of columns, classes and levels as text: matplotlib reads $ as mathematics, and leaves
    labels that begin with _ out of legends."""
    escaped = reading_on(str(text)).replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def reading_on(text: str) -> str:
    """Text that reads from left to right, whatever script its first letter is of."""
    marked = left_to_right(text)
    return text if marked == text else f"\u200e{marked}"


def own_axes(width: float, height: float) -> Any:
    """Axes on a new figure that pyplot does not know of."""
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained").subplots()


def quiet_frame(ax: Any, *, box: bool = False) -> None:
    """Thin grey axes: left and bottom only, or all around a map."""
    for side, spine in ax.spines.items():
        spine.set_visible(box or side in ("left", "bottom"))
        spine.set_color(QUIET)
        spine.set_linewidth(0.7)
    ax.tick_params(color=QUIET, labelcolor=INK, width=0.7, length=3, labelsize=8)
    ax.xaxis.label.set(color=INK, size=9)
    ax.yaxis.label.set(color=INK, size=9)


def strips_below(ax: Any, ylabels: list[str]) -> list[Any]:
    """Cut low panels off the foot of ``ax``; they share its x axis, the last has its labels."""
    place, n = ax.get_subplotspec(), len(ylabels)
    if place is None:
        left, bottom, width, height = ax.get_position().bounds
        each = 0.27 * height
        ax.set_position((left, bottom + n * each, width, height - n * each))
        feet = [bottom + (n - 1 - i) * each for i in range(n)]
        strips = [ax.figure.add_axes((left, foot, width, 0.2 * height), sharex=ax) for foot in feet]
    else:
        cells = place.subgridspec(1 + n, 1, height_ratios=(4, *[1] * n), hspace=0.08)
        ax.set_subplotspec(cells[0])
        strips = [ax.figure.add_subplot(cell, sharex=ax) for cell in list(cells)[1:]]
    for strip, ylabel in zip(strips, ylabels, strict=True):
        strip.set_ylabel(ylabel)
        strip.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        quiet_frame(strip)
        strip.yaxis.label.set_size(8)
    for upper in (ax, *strips[:-1]):
        upper.tick_params(labelbottom=False)
    return strips


def panel_below(ax: Any, heights: tuple[float, float]) -> Any:
    """A panel under ``ax`` with an x axis of its own; ``heights`` in proportion."""
    place = ax.get_subplotspec()
    if place is None:
        left, bottom, width, height = ax.get_position().bounds
        lower = 0.8 * height * heights[1] / sum(heights)
        upper = height * heights[0] / sum(heights)
        ax.set_position((left, bottom + height - upper, width, upper))
        return ax.figure.add_axes((left, bottom, width, lower))
    first, second = place.subgridspec(2, 1, height_ratios=heights, hspace=0.25)
    ax.set_subplotspec(first)
    return ax.figure.add_subplot(second)


class Numbers(Formatter):  # type: ignore[misc, unused-ignore]
    """Ticks of a column's numbers: each complete, with no factor or offset beside the axis."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return distinct_numbers([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return distinct_numbers([float(f"{value:.12g}") for value in values])


def panels(ax: Any, n_panels: int, n_columns: int, gap: tuple[float, float]) -> list[Any]:
    """Small axes in a grid inside ``ax``, whose own frame goes; ``gap`` in parts of ``ax``."""
    n_rows = -(-n_panels // n_columns)
    width = (1.0 - gap[0] * (n_columns - 1)) / n_columns
    height = (1.0 - gap[1] * (n_rows - 1)) / n_rows
    made = []
    for i in range(n_panels):
        row, column = divmod(i, n_columns)
        left, bottom = column * (width + gap[0]), 1.0 - height - row * (height + gap[1])
        made.append(ax.inset_axes((left, bottom, width, height)))
    ax.set_axis_off()
    return made


def percent(share: float, _: Any = None) -> str:
    """Tick text of a share."""
    return f"{share:.0%}"


def chance(share: float) -> str:
    """A probability in a sentence: 100% and 0% only where it is exactly that."""
    text = f"{share:.0%}"
    if text == "100%" and share < 1.0:
        return "over 99%"
    return "under 1%" if text == "0%" and share > 0.0 else text


def legend_above(ax: Any, n_columns: int | None = None, handles: Sequence[Any] = ()) -> None:
    """A legend over the axes, where it covers nothing; None: in as few lines as it fits.

    Many entries stand beside the axes instead. handles : of what has no label on the axes; they
    come first.
    """
    shown = [*handles, *ax.get_legend_handles_labels()[0]]
    if len(shown) > MOST_ABOVE:
        legend_beside(ax, shown)
        return
    labels = [one.get_label() for one in shown]
    room = min(LEGEND_LINE, int(LETTERS_PER_INCH * ax.figure.get_figwidth()))
    n_lines = -(-sum(len(label) + LEGEND_MARK for label in labels) // room)
    ax.legend(
        handles=shown,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        ncols=n_columns or -(-len(labels) // n_lines),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        borderaxespad=0.0,
        borderpad=0.2,
        columnspacing=1.4,
        handletextpad=0.5,
    )


def legend_beside(ax: Any, handles: Sequence[Any], title: str | None = None) -> None:
    """A legend to the right of the axes, for many classes; long names are cut."""
    legend = ax.legend(
        handles=handles,
        labels=[shortened(one.get_label(), LONGEST_LABEL) for one in handles],
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        ncols=-(-len(handles) // MOST_IN_A_COLUMN),
        frameon=False,
        fontsize=7,
        labelcolor=INK,
        borderaxespad=0.0,
        labelspacing=0.3,
        columnspacing=1.0,
        handletextpad=0.4,
    )
    legend.get_title().set_fontsize(7)


def notebook_png(display: Any) -> bytes | None:
    """PNG of a display that drew on its own figure; pyplot shows its figures itself."""
    figure = display.figure_
    if figure is None or getattr(figure.canvas, "manager", None) is not None:
        return None
    png = BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()


def panel_grid(
    ax: Any, n_panels: int, n_columns: int, size: tuple[float, float]
) -> tuple[Any, list[Any]]:
    """Axes in a grid with room for their labels: on a new figure, or in the place of ``ax``."""
    if ax is None:
        ax = own_axes(*size)
    place = ax.get_subplotspec()
    ax.set_axis_off()
    n_rows = -(-max(n_panels, 1) // n_columns)
    if place is None or ax.figure.get_layout_engine() is None:
        return ax, panels(ax, n_panels, n_columns, (0.16, 0.5 / n_rows))
    grid = place.subgridspec(n_rows, n_columns)
    return ax, [ax.figure.add_subplot(cell) for cell in list(grid)[:n_panels]]


def title_above(ax: Any, text: str) -> None:
    """The title of a whole grid of panels."""
    whole = ax.get_subplotspec()
    if whole is not None and whole.get_gridspec().get_geometry() == (1, 1):
        text = textwrap.fill(text, int(TITLE_LETTERS_PER_INCH * ax.figure.get_figwidth()))
        ax.figure.suptitle(text, fontsize=10, color=INK, x=0.01, ha="left", parse_math=False)
    else:
        ax.set_title(text, fontsize=10, color=INK, loc="left", pad=18, parse_math=False)


def panel_title(ax: Any, text: str) -> None:
    """The title of one panel; text is drawn as it is, a $ included."""
    ax.set_title(text, fontsize=8.5, color=INK, loc="left", pad=4, parse_math=False)


def axis_label(set_label: Any, text: str) -> None:
    set_label(text, fontsize=7.5, color=INK, parse_math=False)


def cut(text: str, n: int) -> str:
    """Text of at most ``n`` characters, printable."""
    return printable(text if len(text) <= n else text[: n - 1] + "…")


def few_ticks() -> Any:
    return MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])


def class_handle(code: int, label: Any) -> Any:
    """A mark of a class for a legend."""
    style = {"color": class_color(code), "linestyle": class_dash(code), "linewidth": 1.6}
    # A label that starts with "_" would be left out of a legend.
    return Line2D([], [], marker=class_marker(code), markersize=4, label=f"\u200b{label}", **style)


def legend_below(ax: Any, handles: Sequence[Any]) -> None:
    """A legend of the whole figure below all panels."""
    n_columns = max(min(len(handles), 6), 1)
    place = {"loc": "outside lower left", "ncols": n_columns, "frameon": False, "fontsize": 8}
    whole = ax.get_subplotspec()
    if whole is None or ax.figure.get_layout_engine() is None:
        place |= {"loc": "lower left"}
    legend = ax.figure.legend(handles=list(handles), labelcolor=INK, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
