"""Draw the pictures of the README and of the first page again: python docs/images/make.py

All show one model: 600 rows of two noisy half-moons, lift="linear", seed 0. Reliability is
measured on 20,000 new rows.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import make_moons

from geomix import GeometricMixtureClassifier
from geomix.plots import RegionDisplay, ReliabilityDisplay

HERE = Path(__file__).parent
DOTS_PER_INCH = 150


def moons(n_rows: int, seed: int) -> tuple[Any, Any]:
    X, codes = make_moons(n_rows, noise=0.22, random_state=seed)
    return X, np.array(["upper moon", "lower moon"])[codes]


def save(figure: Figure, name: str) -> None:
    """As PNG with a palette, which is a third of the size and looks the same."""
    png = BytesIO()
    figure.savefig(png, format="png", dpi=DOTS_PER_INCH)
    palette = Image.open(png).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(HERE / name, optimize=True)


def main() -> None:
    X, y = moons(600, seed=0)
    model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    regions = RegionDisplay.from_model(model, X, y, resolution=400)
    regions.plot(left)
    regions.plot(right, by_plane=True)
    right.set_ylabel("")
    save(figure, "moons.png")

    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    regions.plot(figure.subplots(), by_plane=True)
    save(figure, "hero.png")

    figure = Figure(figsize=(4.4, 4.4), layout="constrained")
    ReliabilityDisplay.from_model(model, *moons(20_000, seed=1), before=True).plot(
        figure.subplots()
    )
    save(figure, "reliability.png")


if __name__ == "__main__":
    main()
