"""Draw the pictures of the page on effects again: python docs/images/effects.py

Effects, importances and the waterfall show eight columns of scikit-learn's tumours; the heat map
shows two noisy half-moons, whose two columns act together.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, make_moons

from geomix import GeometricMixtureClassifier
from geomix.plots import EffectDisplay, ImportanceDisplay, InteractionDisplay, WaterfallDisplay

HERE = Path(__file__).parent
DOTS_PER_INCH = 110


def save(display: Any, name: str) -> None:
    """As PNG with a palette, which is a third of the size and looks the same."""
    png = BytesIO()
    display.plot().figure_.savefig(png, format="png", dpi=DOTS_PER_INCH)
    palette = Image.open(png).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(HERE / name, optimize=True)


def main() -> None:
    X, codes = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:, :8], np.array(["malignant", "benign"])[codes]
    clf = GeometricMixtureClassifier(lift="spline", n_planes=1, max_interactions=0, random_state=0)
    found = clf.fit(X, y).effects(X)
    save(EffectDisplay.from_effects(found), "effects.png")
    save(ImportanceDisplay.from_effects(found), "importance.png")
    save(WaterfallDisplay.from_estimator(clf, X.iloc[[1]]), "waterfall.png")
    moons, codes = make_moons(600, noise=0.22, random_state=0)
    side = np.array(["upper moon", "lower moon"])[codes]
    several = GeometricMixtureClassifier(4, lift="linear", random_state=0).fit(moons, side)
    save(InteractionDisplay.from_estimator(several, moons), "interactions.png")


if __name__ == "__main__":
    main()
