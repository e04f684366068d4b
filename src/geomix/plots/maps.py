"""Drawing on a map of two columns: shaded regions, their names, rows, and the frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from geomix.arrays import FloatArray
from geomix.plots import look
from geomix.plots.grid import Grid

MOST_POINTS = 2000


def draw_shades(ax: Any, grid: Grid, colors: FloatArray, strength: FloatArray) -> None:
    """Colours (n_y, n_x, 3), faded to white where ``strength`` (n_y, n_x) falls to zero."""
    image = 1.0 - strength[..., None] * (1.0 - colors)
    ax.imshow(
        image,
        origin="lower",
        extent=grid.extent,
        aspect="auto",
        interpolation="bilinear",
        zorder=0,
    )


def draw_points(ax: Any, X: FloatArray, code: int, label: str, *, faint: bool = False) -> None:
    """The rows of one class; of many rows an even selection, so that regions stay visible.

    faint : they lie before or behind the map, not on it.
    """
    X = X[:: -(-len(X) // MOST_POINTS)]
    ax.scatter(
        *X.T,
        s=13,
        alpha=0.4 if faint else None,
        color=look.class_color(code),
        marker=look.class_marker(code),
        edgecolor="white",
        linewidth=0.4,
        label=look.plain(label),
        zorder=3,
    )


def draw_name(ax: Any, grid: Grid, region: FloatArray, name: str, code: int) -> None:
    """``name`` deep inside ``region``, a map of booleans."""
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    ax.annotate(
        look.plain(name),
        grid.deepest_point(region),
        ha="center",
        va="center",
        fontsize=8,
        color=look.class_color(code),
        bbox=box,
        zorder=4,
    )


def frame_map(ax: Any, grid: Grid, columns: tuple[str, ...]) -> None:
    (left, bottom), (right, top) = grid.low, grid.high
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.set(xlabel=look.plain(columns[0]), ylabel=look.plain(columns[1]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(look.Numbers())
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    look.quiet_frame(ax, box=True)


def lead_over_next(P: FloatArray) -> FloatArray:
    """Largest minus second largest along the last axis; one where there is only one."""
    if P.shape[-1] == 1:
        return np.ones(P.shape[:-1])
    ranked = np.sort(P, axis=-1)
    return ranked[..., -1] - ranked[..., -2]
