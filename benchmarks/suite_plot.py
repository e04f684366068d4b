"""The mean ranks as a picture: a dot per model, and Nemenyi's critical difference around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from suite_ranks import Ground, common_ground, critical_difference, mean_ranks
from suite_rows import Results

OURS = "geomix"
PANELS = {"log_loss": "log-loss", "accuracy": "accuracy"}
INK, OWN, BAND = "#4d4d4d", "#c1440e", "#efefef"


def draw_ranks(results: Results, names: dict[str, str], path: Path) -> list[Path]:
    """Write ``path`` as PNG and SVG; nothing with fewer than two models or no common table."""
    ground = common_ground(results, list(names))
    if len(ground.models) < 2 or not ground.tables:
        return []
    import matplotlib
    from matplotlib.figure import Figure

    height = 1.3 + 0.3 * len(ground.models)
    with matplotlib.rc_context({"svg.hashsalt": "suite", "font.size": 9}):
        figure = Figure(figsize=(9.0, height), layout="constrained")
        axes = figure.subplots(1, len(PANELS))
        for ax, (metric, title) in zip(axes, PANELS.items(), strict=True):
            draw_panel(ax, ground, names, metric)
            ax.set_title(title, loc="left", fontweight="bold")
        apart = critical_difference(len(ground.models), len(ground.tables))
        figure.supxlabel(
            f"mean rank over {len(ground.tables)} tables, 1 is best; bars that do not overlap "
            f"differ at the 5 % level (Nemenyi, {apart:.2f})",
            fontsize=8.5,
        )
        paths = [path.with_suffix(kind) for kind in (".png", ".svg")]
        figure.savefig(paths[0], dpi=160)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def draw_panel(ax: Any, ground: Ground, names: dict[str, str], metric: str) -> None:
    found = mean_ranks(ground, metric)
    order = np.argsort(found, kind="stable")
    half = critical_difference(len(ground.models), len(ground.tables)) / 2
    best = found[order[0]]
    ax.axvspan(best - half, best + half, color=BAND, zorder=0)
    for height, i in enumerate(order):
        own = ground.models[i] == OURS
        color = OWN if own else INK
        ax.plot([found[i] - half, found[i] + half], [height] * 2, color=color, lw=2, alpha=0.45)
        ax.plot(found[i], height, "o", color=color, ms=6)
        ax.annotate(
            f"{found[i]:.1f}",
            (found[i], height),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=color,
        )
    ax.set_yticks(range(len(order)), [names[ground.models[i]] for i in order])
    for label, i in zip(ax.get_yticklabels(), order, strict=True):
        if ground.models[i] == OURS:
            label.set(color=OWN, fontweight="bold")
    ax.invert_yaxis()
    ax.set_ylim(len(order) - 0.4, -0.8)
    ax.set_xlim(0.5, len(order) + 0.5)  # no rank lies outside, whatever the bars of few tables do
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
