"""Whether the native and the NumPy kernel choose the same model.

    python benchmarks/kernel_agreement.py [--data FOLDER] [--sets a,b]

Each data set is fitted with the default parameters, once with each kernel, each in a process of
its own.
Reported: the family and candidate that each chose, and the largest difference of a probability.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from markdown_table import table

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
OUTPUT = ROOT / "benchmarks" / "results" / "kernel_agreement.md"
TABLES = (
    "sonar", "glass", "ionosphere", "credit_approval", "vehicle", "credit_g", "car",
    "second/pima",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("--sets", default="", metavar="A,B")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        print(json.dumps(fitted(wanted.one, wanted.data)))
        return
    from geomix.datasets import NAMES

    names = [one for one in wanted.sets.split(",") if one] or [*NAMES, *TABLES]
    rows = []
    for name in names:
        native, numpy = (chosen(name, wanted.data, kernel) for kernel in ("", "numpy"))
        gap = float(np.abs(np.array(native["P"]) - np.array(numpy["P"])).max())
        same = "yes" if native["candidate"] == numpy["candidate"] else "no"
        rows.append([name, native["family"], numpy["family"], same, f"{gap:.1e}"])
        print(*rows[-1], flush=True)
    head = ["data", "native", "NumPy", "same candidate", "largest difference of a probability"]
    text = "# Kernels\n\nMade by `python benchmarks/kernel_agreement.py`.\n\n"
    OUTPUT.write_text(text + "\n".join(table(head, rows)) + "\n")


def chosen(name: str, data: Path, kernel: str) -> dict[str, Any]:
    """A fit in a process with this kernel."""
    environment = {**os.environ, "GEOMIX_KERNEL": kernel} if kernel else dict(os.environ)
    command = [sys.executable, __file__, "--one", name, "--data", str(data)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def fitted(name: str, data: Path) -> dict[str, Any]:
    from geomix import GeometricMixtureClassifier

    X, y = rows_of(name, data)
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    trial = next(one for one in clf.history_.trials if one.chosen)
    candidate = (trial.lift, trial.n_planes, trial.n_pairs, trial.l2, trial.adaptive)
    return {
        "family": trial.family,
        "candidate": [*candidate, trial.n_knots, trial.shrink_to_mean],
        "P": clf.predict_proba(X).tolist(),
    }


def rows_of(name: str, data: Path) -> tuple[Any, Any]:
    from geomix.datasets import NAMES, load

    if name in NAMES:
        made = load(name, random_state=0)
        return made.X, made.y
    from suite_tables import read_table

    return read_table(data / f"{name}.parquet")


if __name__ == "__main__":
    main()
