"""A report and every plot, for a look: python examples/gallery.py --output gallery

Two models: two noisy half-moons (two columns, so that regions can be seen), and scikit-learn's
wines by six of their columns, fitted on 60 % of the rows and read on the rest. With
``--screenshot`` the report is also drawn by a Chromium that is installed. The pictures in docs/
were made by this.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_wine, make_moons
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier, Recipe
from geomix import plots as show

DOTS_PER_INCH = 90
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
GRAPES = np.array(["Barolo", "Grignolino", "Barbera"])


def half_moons() -> tuple[Any, Any, Any]:
    """Estimator, rows and labels."""
    X, codes = make_moons(500, noise=0.22, random_state=0)
    y = np.array(["upper moon", "lower moon"])[codes]
    # Rows that stay held out in the final training show how the loss falls on new rows.
    settings = {"lift": "linear", "n_planes": 3, "l2": 1e-4, "advanced": Recipe(refit=False)}
    return GeometricMixtureClassifier(**settings, random_state=0).fit(X, y), X, y


def wines(lift: str) -> tuple[Any, Any, Any]:
    """Estimator, and the rows and labels that it has not seen."""
    X, codes = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]  # of all thirteen the grapes are told apart without mistakes
    parts = train_test_split(X, GRAPES[codes], test_size=0.4, random_state=1, stratify=codes)
    settings = {"lift": lift, "n_planes": 2, "n_members": 1, "l2": 3e-3, "random_state": 0}
    return GeometricMixtureClassifier(**settings).fit(parts[0], parts[2]), parts[1], parts[3]


def displays() -> dict[str, Any]:
    """Every display, not drawn yet, by the name of its picture."""
    moons, X_moons, y_moons = half_moons()
    wine, X, y = wines("linear")
    curved, _, _ = wines("spline")
    strongest = ("alcohol", "total_phenols")
    return {
        "regions": show.RegionDisplay.from_estimator(moons, X_moons, y_moons),
        "union": show.UnionDisplay.from_estimator(moons, X_moons, y_moons, "upper moon"),
        "responsibility": show.ResponsibilityDisplay.from_estimator(
            moons, X_moons, y_moons, "upper moon"
        ),
        "slice": show.RegionDisplay.from_estimator(wine, X, y, columns=strongest),
        "projection": show.ProjectionDisplay.from_estimator(wine, X, y),
        "roc": show.RocDisplay.from_estimator(wine, X, y),
        "bars": show.PlaneCardDisplay.from_estimator(wine, "Barolo", 1, X, y),
        "curves": show.PlaneCardDisplay.from_estimator(curved, "Barolo", 0, X, y),
        "usage": show.UsageDisplay.from_estimator(moons, X_moons, y_moons),
        "reliability": show.ReliabilityDisplay.from_estimator(moons, X_moons, y_moons, before=True),
        "classes": show.ClassReliabilityDisplay.from_estimator(wine, X, y),
        "history": show.HistoryDisplay.from_estimator(moons),
        "counterfactual": show.CounterfactualDisplay.from_estimator(wine, X.iloc[[3]]),
        "certificates": show.CertificateDisplay.from_estimator(wine, X, y),
    }


def image_of(figure: Figure) -> Image.Image:
    png = BytesIO()
    figure.savefig(png, format="png", dpi=DOTS_PER_INCH)
    return Image.open(png).convert("RGB")


def sheet(images: list[Image.Image], width: int = 1500, gap: int = 24) -> Image.Image:
    """Pictures side by side, line by line."""
    lines: list[list[Image.Image]] = [[]]
    for image in images:
        if lines[-1] and sum(one.width + gap for one in lines[-1]) + image.width > width:
            lines.append([])
        lines[-1].append(image)
    height = sum(max(one.height for one in line) + gap for line in lines)
    whole, top = Image.new("RGB", (width, height), "white"), 0
    for line in lines:
        spare = (width - sum(one.width for one in line)) // (len(line) + 1)
        left = spare
        for one in line:
            whole.paste(one, (left, top))
            left += one.width + spare
        top += max(one.height for one in line) + gap
    return whole


def save(image: Image.Image, path: Path) -> None:
    """As PNG with a palette, which is a third of the size and looks the same."""
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def screenshot(html: Path, path: Path, height: int = 1330) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"No browser to draw the report with; looked for {', '.join(BROWSERS)}.")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size=1100,{height}",
    ]
    subprocess.run(
        [browser, *options, f"--screenshot={path.resolve()}", html.resolve().as_uri()],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    save(Image.open(path).convert("RGB"), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("gallery"))
    parser.add_argument("--screenshot", action="store_true", help="draw the report as a picture")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    wine, X, y = wines("spline")
    html = given.output / "wine.html"
    wine.model_.report(X, y, html, title="Wines of three grapes")
    images = [image_of(display.plot().figure_) for display in displays().values()]
    save(sheet(images), given.output / "plots.png")
    if given.screenshot:
        screenshot(html, given.output / "report.png")
    print(f"wrote {', '.join(sorted(path.name for path in given.output.iterdir()))}")


if __name__ == "__main__":
    main()
