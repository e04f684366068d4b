"""The model as a picture: a row goes to all planes, planes pool into classes, classes compete."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from geomix.plots import look

PLANES = (3, 2, 2)  # of each class that is shown
GAP, CLASS_GAP = 0.62, 0.45
COLUMNS = {"row": 0.0, "lift": 1.9, "plane": 4.3, "class": 7.3, "posterior": 10.2}
TITLES = {
    "row": "row",
    "lift": "working features",
    "plane": "plane scores",
    "class": "soft-OR in the class",
    "posterior": "softmax over classes",
}
FORMULAS = {
    "row": r"$x$",
    "lift": r"$\phi(x)$",
    "plane": r"$z_{cm} = w_{cm}\cdot\phi(x) + b_{cm}$",
    "class": r"$s_c = \frac{1}{k}\,\log\sum_m e^{k z_{cm}}$",
    "posterior": r"$p_c = \mathrm{softmax}_c(s_c / T)$",
}


def draw_diagram() -> Figure:
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    ax = figure.subplots()
    heights = plane_heights()
    middle = sum(heights[0] + heights[-1]) / len(heights[0] + heights[-1])
    box(ax, COLUMNS["row"], middle, "x", look.FAINT)
    box(ax, COLUMNS["lift"], middle, r"$\phi$", look.FAINT)
    arrow(ax, (COLUMNS["row"], middle), (COLUMNS["lift"], middle))
    for code, planes in enumerate(heights):
        draw_class(ax, code, planes, middle)
    top = heights[0][0] + 0.75
    for column, x in COLUMNS.items():
        ax.text(x, top + 0.36, TITLES[column], ha="center", fontsize=10, color=look.INK)
        ax.text(x, top - 0.02, FORMULAS[column], ha="center", fontsize=10, color=look.QUIET)
    note = (
        r"Line width: responsibility $a_{cm} = e^{k z_{cm}} / \sum_j e^{k z_{cj}}$, "
        "the share of plane m in its class's score. The winner is explained by its class and plane."
    )
    ax.text(5.1, heights[-1][-1] - 0.85, note, ha="center", fontsize=9, color=look.QUIET)
    ax.set(xlim=(-0.7, 11.1), ylim=(heights[-1][-1] - 1.05, top + 0.75))
    ax.axis("off")
    return figure


def plane_heights() -> list[list[float]]:
    heights, y = [], 0.0
    for count in PLANES:
        heights.append([y - GAP * place for place in range(count)])
        y -= GAP * count + CLASS_GAP
    return heights


def draw_class(ax: Any, code: int, heights: list[float], middle: float) -> None:
    color, shades = look.class_color(code), look.plane_shades(code, len(heights))
    centre = sum(heights) / len(heights)
    widths = (4.0, 1.4, 0.6) if code == 0 else (2.6, 1.0, 0.6)
    for plane, y in enumerate(heights):
        arrow(ax, (COLUMNS["lift"], middle), (COLUMNS["plane"], y), look.QUIET, 0.7)
        arrow(ax, (COLUMNS["plane"], y), (COLUMNS["class"], centre), color, widths[plane])
        box(ax, COLUMNS["plane"], y, rf"$z_{{{code + 1}{plane + 1}}}$", shades[plane])
    arrow(ax, (COLUMNS["class"], centre), (COLUMNS["posterior"], centre), color, 1.2)
    box(ax, COLUMNS["class"], centre, rf"$s_{code + 1}$", shades[0])
    box(ax, COLUMNS["posterior"], centre, rf"$p_{code + 1}$", shades[0])


def box(ax: Any, x: float, y: float, text: str, color: Any) -> None:
    shape = FancyBboxPatch((x - 0.3, y - 0.17), 0.6, 0.34, boxstyle="round,pad=0.05",
                           facecolor=color, edgecolor="white", zorder=3)  # fmt: skip
    ax.add_patch(shape)
    ax.text(x, y, text, ha="center", va="center", fontsize=11, color=look.INK, zorder=4)


def arrow(ax: Any, start: Any, end: Any, color: str = look.QUIET, width: float = 1.0) -> None:
    style = {"arrowstyle": "-", "color": color, "linewidth": width, "alpha": 0.75}
    (x, y), (to_x, to_y) = start, end
    ax.annotate("", (to_x - 0.36, to_y), (x + 0.36, y), arrowprops=style, zorder=1)
