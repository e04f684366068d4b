"""Reports: how long they take to write and how large they are.

    python benchmarks/report.py [--data FOLDER]

wdbc by each lift, and with ``--data`` a folder of tables (``adult.parquet`` and others, their last
column the target). One model of adult is fitted on 10,000 rows with the largest form that
``preset="accurate"`` considers, an ensemble of eight with twelve planes a class, and measured on
all 48,842 rows. The others are default fits of at most 10,000 rows: two classes, many columns in
pairs, and many classes. Seconds are of the processor, one thread: on an idle machine they are
those of the wall, which a busy one delays. Results go to ``results/report.md``.
"""

from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GEOMIX_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))

import argparse  # noqa: E402
import platform  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from importlib.metadata import version  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402

from geomix import GeometricMixtureClassifier, Recipe  # noqa: E402
from geomix.core import kernel  # noqa: E402
from geomix.export import to_json  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "report.md"
REPEATS = 3
ROWS_TO_FIT = 10_000
DEFAULT_FITS = ("adult", "credit_g", "phoneme", "vowel", "letter")


def wdbc(lift: str) -> tuple[Any, Any, Any]:
    """Model, rows and labels."""
    X, codes = load_breast_cancer(return_X_y=True, as_frame=True)
    y = np.array(["malignant", "benign"])[codes]
    settings = {"lift": lift, "n_planes": 2, "n_members": 1, "l2": 1e-3, "shrink_to_mean": 0.0}
    recipe = Recipe(gamma=0.02)
    clf = GeometricMixtureClassifier(**settings, max_iter=60, random_state=0, advanced=recipe)
    return clf.fit(X, y).model_, X, y


def table_of(folder: Path, name: str) -> tuple[Any, Any]:
    table = pd.read_parquet(folder / f"{name}.parquet")
    return table, table.pop(table.columns[-1]).to_numpy()


def default_fit(folder: Path, name: str) -> tuple[Any, Any, Any]:
    X, y = table_of(folder, name)
    X, y = X.iloc[:ROWS_TO_FIT], y[:ROWS_TO_FIT]
    return GeometricMixtureClassifier(random_state=0).fit(X, y).model_, X, y


def adult(folder: Path) -> tuple[Any, Any, Any]:
    table, y = table_of(folder, "adult")
    settings = {"lift": "spline", "n_planes": 12, "n_members": 8, "l2": 1e-4, "max_iter": 30}
    clf = GeometricMixtureClassifier(preset="accurate", **settings, random_state=0)
    return clf.fit(table.iloc[:ROWS_TO_FIT], y[:ROWS_TO_FIT]).model_, table, y


def measured(name: str, model: Any, X: Any, y: Any) -> str:
    """A line of the table: the median of some reports."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        for _ in range(REPEATS):
            start = time.process_time()
            model.report(X, y, path, X_new=X.iloc[: len(X) // 2])
            seconds.append(time.process_time() - start)
        size = path.stat().st_size
    shape = f"{len(X):,} x {X.shape[1]}"
    took = float(np.median(seconds))
    n_json = len(to_json(model))
    print(f"{name}: {took:.2f} s, {size / 1e6:.2f} MB")
    return (
        f"| {name} | {shape} | {model.planes.n_planes} | {took:.2f} | {size / 1e3:,.0f} | "
        f"{n_json / 1e3:,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with adult.parquet and other tables")
    folder = parser.parse_args().data
    lines = [measured(f"wdbc, {lift}", *wdbc(lift)) for lift in ("linear", "spline", "fourier")]
    if folder is not None:
        lines.append(measured("adult, ensemble of 8", *adult(folder)))
        lines += [
            measured(f"{name}, default fit", *default_fit(folder, name)) for name in DEFAULT_FITS
        ]
    made = f"python benchmarks/report.py{'' if folder is None else ' --data FOLDER'}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("geomix", "numpy", "jinja2"))
    text = [
        "# Reports: time and size",
        "",
        f"Made by `{made}`: {packages}, Python {platform.python_version()}, kernel {kernel.simd}, "
        f"one thread, processor time, median of {REPEATS}. Each with drift, 48 rows and 24 "
        "counterfactuals, with many classes fewer.",
        "",
        "| model | rows measured | planes | seconds | page, KB | of which model, KB |",
        "|---|---|---|---|---|---|",
        *lines,
        "",
    ]
    RESULTS.write_text("\n".join(text))


if __name__ == "__main__":
    main()
