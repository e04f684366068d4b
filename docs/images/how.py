"""The picture of "How it works": from planes to probabilities, along one column.

python docs/images/how.py
"""

from __future__ import annotations

import numpy as np
from make import save  # beside this file
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
SHARPNESS, TEMPERATURE = 2.0, 1.0
# Weight and bias of each plane: the orange class lies on both sides of the blue one.
BLUE_PLANES = ((0.0, 1.2),)
ORANGE_PLANES = ((-1.4, -0.9), (1.1, -0.7))


def scores(planes: tuple[tuple[float, float], ...], x: np.ndarray) -> np.ndarray:
    return np.array([w * x + b for w, b in planes])


def soft_or(z: np.ndarray) -> np.ndarray:
    return np.log(np.exp(SHARPNESS * z).sum(axis=0)) / SHARPNESS


def titled(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=11, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8, colors=GREY)
    ax.set_xlabel("x", fontsize=9, color=GREY)


def main() -> None:
    x = np.linspace(-4.0, 4.0, 400)
    blue, orange = scores(BLUE_PLANES, x), scores(ORANGE_PLANES, x)
    s_blue, s_orange = soft_or(blue), soft_or(orange)
    shares = np.exp(SHARPNESS * (orange - s_orange))
    p_orange = 1 / (1 + np.exp((s_blue - s_orange) / TEMPERATURE))

    figure = Figure(figsize=(7.6, 5.2), layout="constrained")
    (planes, pooled), (shared, probable) = figure.subplots(2, 2)
    titled(planes, "1. plane scores")
    planes.plot(x, blue[0], color=BLUE)
    for line, style in zip(orange, ("-", "--"), strict=True):
        planes.plot(x, line, color=ORANGE, linestyle=style)

    titled(pooled, "2. soft-OR: class scores")
    for line in orange:
        pooled.plot(x, line, color=ORANGE, alpha=0.3, linewidth=1)
    pooled.plot(x, s_blue, color=BLUE, linewidth=2.2)
    pooled.plot(x, s_orange, color=ORANGE, linewidth=2.2)
    for ax in (planes, pooled):
        ax.set_ylim(-3.0, 5.0)

    titled(shared, "3. responsibilities")
    for line, style in zip(shares, ("-", "--"), strict=True):
        shared.plot(x, line, color=ORANGE, linestyle=style)

    titled(probable, "4. probabilities")
    probable.fill_between(x, p_orange, color=ORANGE, alpha=0.35, linewidth=0)
    probable.fill_between(x, p_orange, 1, color=BLUE, alpha=0.35, linewidth=0)
    probable.text(-3.8, 0.1, "orange", color=ORANGE)
    probable.text(2.2, 0.1, "orange", color=ORANGE)
    probable.text(-0.5, 0.8, "blue", color=BLUE)
    probable.margins(0)
    save(figure, "how.png")


if __name__ == "__main__":
    main()
