"""Draw the picture of the report again: python docs/images/report.py FOLDER

FOLDER holds adult.parquet. A default model of four fifths of its rows is reported on the others.
Chromium takes the picture, from the effects to the row whose columns can be changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from PIL import Image
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
FIRST = "[...document.querySelectorAll('h3')].find(one => /^Effects of/.test(one.textContent))"
TOP = f"{FIRST}.getBoundingClientRect().top"
BOTTOM = "document.querySelector('#live').getBoundingClientRect().top"
BELOW = 700  # of the row whose columns can be changed
MARGIN = 20


def main() -> None:
    from chromium import Page  # of the tests

    table = pd.read_parquet(Path(sys.argv[1]) / "adult.parquet")
    X, y = table.drop(columns="target"), table["target"].to_numpy()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    with TemporaryDirectory() as folder, Page(Path(folder) / "profile") as page:
        path, picture = Path(folder) / "report.html", Path(folder) / "report.png"
        clf.model_.report(X_test, y_test, path)
        page.open(path)
        page.screenshot(picture)
        top, bottom = int(page.run(TOP)) - MARGIN, int(page.run(BOTTOM)) + BELOW
        whole = Image.open(picture).convert("RGB")
        part = whole.crop((0, top, whole.width, bottom))
        part.quantize(256, dither=Image.Dither.NONE).save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
