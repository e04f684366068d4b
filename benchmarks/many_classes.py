"""Very many classes: how long fits take, and where they are refused.

    python benchmarks/many_classes.py

Three rows per class in five columns. Seconds are processor time of one process.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import markdown_table
import numpy as np

from geomix import GeometricMixtureClassifier

RESULTS = Path(__file__).parent / "results" / "many_classes.md"
ROWS_PER_CLASS = 3
# (classes, parameters) of each fit.
CASES = (
    (200, {}),
    (2_000, {}),
    (10_000, {}),
    (10_000, {"time_limit": 10}),
    (100_000, {"time_limit": 10}),
)


def table(n_classes):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), ROWS_PER_CLASS)
    centres = 3.0 * rng.standard_normal((n_classes, 5))
    return rng.standard_normal((len(y), 5)) + centres[y], y


def measured(n_classes, settings):
    """One line of the table."""
    X, y = table(n_classes)
    began = time.process_time()
    try:
        clf = GeometricMixtureClassifier(random_state=0, **settings).fit(X, y)
        outcome = f"fitted, {clf.n_iter_} iterations"
    except ValueError as error:
        outcome = f"refused: {error}"
    took = time.process_time() - began
    given = ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"
    return [f"{n_classes:,}", f"{len(y):,}", given, f"{took:.1f}", outcome]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most-classes", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for n_classes, settings in CASES:
        if n_classes <= args.most_classes:
            lines.append(measured(n_classes, settings))
            print(*lines[-1], sep=" | ", flush=True)
    header = ["classes", "rows", "parameters", "processor s", "outcome"]
    page = ["# Very many classes", "", *markdown_table.table(header, lines), ""]
    args.output.write_text("\n".join(page))


if __name__ == "__main__":
    main()
