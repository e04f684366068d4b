"""One table, three lifts: python docs/images/lifts.py"""

from __future__ import annotations

from make import moons, save  # beside this file
from matplotlib.figure import Figure

from geomix import GeometricMixtureClassifier
from geomix.plots import RegionDisplay

LIFTS = {
    "linear, three planes per class": {"lift": "linear", "n_planes": 3},
    "spline, one plane per class": {"lift": "spline", "n_planes": 1},
    "Fourier, one plane per class": {"lift": "fourier", "n_planes": 1},
}


def main() -> None:
    X, y = moons(600, seed=0)
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    for ax, (title, settings) in zip(
        figure.subplots(1, 3, sharey=True), LIFTS.items(), strict=True
    ):
        clf = GeometricMixtureClassifier(**settings, random_state=0).fit(X, y)
        RegionDisplay.from_estimator(clf, X, y, resolution=300).plot(ax)
        ax.set_title(title, fontsize=11)
        ax.get_legend() and ax.get_legend().remove()
        ax.set_ylabel("")
    save(figure, "lifts.png")


if __name__ == "__main__":
    main()
