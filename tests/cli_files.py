"""Files for the tests of the command line, and a way to run it in this process."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_iris

from geomix.cli import main

QUICK = ["--force", "--set", "lift=linear", "--set", "n_planes=1", "--set", "l2=0.001"]


@dataclass(frozen=True)
class Ran:
    """What a command gave back."""

    code: int
    out: str
    err: str


def runner(capfd):
    """``run("fit", ...)`` as a shell would, but for the new process."""

    def run(*argv):
        capfd.readouterr()
        code = main([str(one) for one in argv])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


def flowers(n_rows=150):
    """Header and rows of iris with an identifier, a category, missing cells and odd text."""
    data = load_iris()
    names = ["id", "sepal length", "sepal width", "petal length", "petal width", "soil", "kind"]
    rng = np.random.default_rng(0)
    rows = []
    for i in rng.permutation(150)[:n_rows]:
        cells = [f"{value:.1f}" for value in data.data[i]]
        if i % 11 == 0:
            cells[1] = ""
        soil = ["clay", "sand, fine", 'so-called "loam"', "two\nlines", ""][rng.integers(5)]
        rows.append([f"{i:05d}", *cells, soil, str(data.target_names[data.target[i]])])
    return names, rows


def csv_text(names, rows, **form):
    text = io.StringIO(newline="")
    writer = csv.writer(text, **{"lineterminator": "\n", **form})
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
