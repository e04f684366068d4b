"""Parts of ``speed.py`` that time whole fits: monotone ones, two threads, presets, memory.

Times are processor seconds unless a column says otherwise, so that a busy machine changes them
little. Tables come from the suite (``suite_tables.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from suite_tables import read_table

from geomix import GeometricMixtureClassifier

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
FOLDERS = DATA, DATA / "second"
MOST_ROWS = 10_000
ONE_SPLINE = {"lift": "spline", "n_planes": 1, "l2": 1e-3}
SEVERAL = {**ONE_SPLINE, "n_planes": 3}
KINDS: dict[str, dict[str, Any]] = {"one plane": ONE_SPLINE, "three planes": SEVERAL, "default": {}}
BOUNDED = {"readable": 30.0, "fast": 30.0, "accurate": 60.0}
LONGEST = ("isolet1", "mnist", "covertype", "letter", "hill_valley")


def some_rows(name: str, n_rows: int = MOST_ROWS) -> tuple[Any, Any]:
    """At most ``n_rows`` rows of a table of either part of the suite, drawn at random."""
    path = next(folder / f"{name}.parquet" for folder in FOLDERS if _has(folder, name))
    X, y = read_table(path)
    chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
    return X.iloc[chosen], y[chosen]


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.parquet").exists()


def processor_seconds(work: Callable[[], Any], repeats: int = 2) -> float:
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def fit(X: Any, y: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: GeometricMixtureClassifier(random_state=0, **settings).fit(X, y)


def monotone() -> list[str]:
    """A fit whose probabilities are monotone in some columns, beside a free one."""
    lines = ["### Monotone fits", "", "| data | model | free s | monotone s | ratio |"]
    lines.append("|---|---|---:|---:|---:|")
    X, y = load_breast_cancer(return_X_y=True)
    tables = {"wdbc, ten columns": (X, y, dict.fromkeys(range(10), -1))}
    X, y = some_rows("magic", 4_000)
    first = sorted(set(y))[0]
    tables["magic, three columns"] = X, y, {j: {first: 1} for j in range(3)}
    for name, (X, y, directions) in tables.items():
        for kind, settings in KINDS.items():
            free = processor_seconds(fit(X, y, **settings))
            held = processor_seconds(fit(X, y, monotonic_cst=directions, **settings))
            lines.append(f"| {name} | {kind} | {free:.2f} | {held:.2f} | {held / free:.2f} |")
    return ["\n".join(lines) + "\n"]


JOBS = """
import time, sys
sys.path.insert(0, {here!r})
from speed_fits import fit, some_rows
X, y = some_rows({name!r})
work = fit(X, y, n_jobs={n_jobs})
start = time.perf_counter()
work()
print(time.perf_counter() - start)
"""


def jobs() -> list[str]:
    """Wall-clock seconds with one and with two threads; needs two cores with nothing else on."""
    lines = ["### A default fit of 10,000 rows on two threads", ""]
    lines += ["| data | one thread s | two threads s | ratio |", "|---|---:|---:|---:|"]
    for name in ("adult", "letter", "magic"):
        one, two = (_fresh(JOBS, name=name, n_jobs=n, GEOMIX_NUM_THREADS=str(n)) for n in (1, 2))
        lines.append(f"| {name} | {one:.1f} | {two:.1f} | {one / two:.2f} |")
    return ["\n".join(lines) + "\n"]


def bounded() -> list[str]:
    """The longest fits of each preset, beside what each may take."""
    lines = ["### The longest fits", "", "| data | preset | s | goal s |", "|---|---|---:|---:|"]
    for name in LONGEST:
        X, y = some_rows(name, 16_000 if name == "letter" else MOST_ROWS)
        for preset, goal in BOUNDED.items():
            taken = processor_seconds(fit(X, y, preset=preset), 1)
            lines.append(f"| {name} | {preset} | {taken:.1f} | {goal:.0f} |")
    return ["\n".join(lines) + "\n"]


def whole(n_train: int = 465_000, n_rows: int = 10**9) -> list[str]:
    """All of covertype: 465,000 training rows, and the rest to measure on."""
    X, y = some_rows("covertype", n_rows)
    lines = ["### Covertype whole", "", "| preset | rows | s | log-loss of the rest | planes |"]
    lines.append("|---|---:|---:|---:|---:|")
    for preset in ("readable", "accurate"):
        clf = GeometricMixtureClassifier(preset=preset, random_state=0)
        taken = processor_seconds(partial(clf.fit, X.iloc[:n_train], y[:n_train]), 1)
        loss = log_loss(y[n_train:], clf.predict_proba(X.iloc[n_train:]), labels=clf.classes_)
        n_planes = int(clf.n_planes_.sum())
        lines.append(f"| {preset} | {n_train:,} | {taken:.0f} | {loss:.4f} | {n_planes} |")
    return ["\n".join(lines) + "\n"]


PEAK = """
import resource, sys
sys.path.insert(0, {here!r})
from speed_fits import some_rows
X, y = some_rows({name!r})
{work}
from pathlib import Path
# ru_maxrss of a process begins with the peak of the one that starts it; VmHWM is its own.
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024)
"""
OURS = "from speed_fits import fit; fit(X, y)()"
THEIRS = "from speed_peers import lightgbm; lightgbm(X, y)"


def peak() -> list[str]:
    """Peak resident memory of a fresh process with a default fit."""
    lines = ["### Peak memory of a process with a default fit of 10,000 rows", ""]
    lines += ["| data | geomix MB | LightGBM MB | ratio |", "|---|---:|---:|---:|"]
    for name in ("adult", "magic"):
        ours, theirs = (_fresh(PEAK, name=name, work=work) for work in (OURS, THEIRS))
        lines.append(f"| {name} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |")
    return ["\n".join(lines) + "\n"]


def _fresh(code: str, GEOMIX_NUM_THREADS: str = "1", **names: Any) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code.format(here=str(HERE), **names)],
        env={**os.environ, "GEOMIX_NUM_THREADS": GEOMIX_NUM_THREADS},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.strip().splitlines()[-1])


PARTS = {"monotone": monotone, "jobs": jobs, "bounded": bounded, "whole": whole, "peak": peak}
