"""Load held for long: counts of what was done, and of what went wrong.

    python tests/soak.py --seconds 60 --workers 8 --kills 100 --parts threads,prefork,kills,files

    threads   threads score while others fit, save and load the same model
    prefork   worker processes, by fork and by spawn, predict with one model
    kills     kill -9 at a random moment of fit, predict and save: no file is half written
    files     differing schemas, a class in the last file only, a full scratch disk

The exit code is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import geomix
from geomix import GeometricMixtureClassifier, fit_files

FIXED = {"lift": "spline", "n_planes": 2, "l2": 1e-3, "max_iter": 10, "random_state": 0}
LONGEST_START = 1.5  # seconds until a child is killed, at most


def table(n_rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n_rows), "b": rng.standard_normal(n_rows)})
    frame["c"] = rng.choice(list("xyz"), n_rows)
    return frame, np.where(frame["a"] + frame["b"] ** 2 > 0.7, "yes", "no")


def soak_threads(args, folder):
    X, y = table()
    path, counts, until = folder / "model.geomix", collections.Counter(), time.monotonic()
    GeometricMixtureClassifier(**FIXED).fit(X, y).save(path)
    model = geomix.load(path)
    expected, row = model.predict_proba(X), X.iloc[0].to_dict()
    score, until = model.scorer(), until + args.seconds

    def tally(name, is_right):
        counts[name] += 1
        counts["wrong"] += not is_right

    def scoring():
        while time.monotonic() < until:
            tally("rows scored", np.array_equal(score(row), expected[0]))

    def predicting():
        while time.monotonic() < until:
            tally("tables predicted", np.array_equal(model.predict_proba(X), expected))

    def fitting():
        while time.monotonic() < until:
            clf = GeometricMixtureClassifier(**FIXED).fit(X, y)
            tally("fits", np.array_equal(clf.predict_proba(X), expected))
            clf.save(path)
            counts["saves"] += 1

    def loading():
        while time.monotonic() < until:
            tally("loads", np.array_equal(geomix.load(path).predict_proba(X), expected))

    work = [scoring, scoring, predicting, fitting, loading]
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


def _predicts(path, X, expected, n_times):
    model = geomix.load(path) if isinstance(path, Path) else path
    wrong = sum(not np.array_equal(model.predict_proba(X), expected) for _ in range(n_times))
    sys.exit(min(wrong, 100))


def soak_prefork(args, folder):
    X, y = table()
    path, counts = folder / "model.geomix", collections.Counter()
    GeometricMixtureClassifier(**FIXED).fit(X, y).save(path)
    model = geomix.load(path)
    expected = model.predict_proba(X)  # threads of the parent have run before the fork
    for method, given in (("fork", model), ("spawn", path)):
        start = multiprocessing.get_context(method).Process
        workers = [
            start(target=_predicts, args=(given, X, expected, 20)) for _ in range(args.workers)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            counts[f"workers by {method}"] += 1
            counts["wrong"] += worker.exitcode != 0
    return counts


SAVE = """
import sys, geomix
model = geomix.load(sys.argv[1])
while True:
    model.save(sys.argv[2])
"""


def soak_kills(args, folder):
    X, y = table(2000)
    rows, model, out = folder / "rows.csv", folder / "model.geomix", folder / "out.geomix"
    X.assign(y=y).to_csv(rows, index=False)
    GeometricMixtureClassifier(**FIXED).fit(X, y).save(model)
    answers, counts, rng = folder / "answers.csv", collections.Counter(), random.Random(0)
    cli = [sys.executable, "-m", "geomix"]
    commands = {
        "fit": ([*cli, "fit", rows, "--target", "y", "--output", out, "--lift", "linear"], out),
        "predict": ([*cli, "predict", model, rows, "--output", answers, "--force"], answers),
        "save": ([sys.executable, "-c", SAVE, model, out], out),
    }
    for name, (command, target) in commands.items():
        for _ in range(args.kills):
            child = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(rng.uniform(0.05, LONGEST_START))
            child.kill()
            child.wait()
            counts[f"kills of {name}"] += 1
            counts["wrong"] += not _is_whole(target, len(X))
    return counts


def _is_whole(target, n_rows):
    """Whether there is no file, or a complete one."""
    if not target.exists():
        return True
    if target.suffix == ".csv":
        return len(pd.read_csv(target)) == n_rows
    return geomix.load(target).predict(table(3)[0]).shape == (3,)


def soak_files(args, folder):
    """One sentence each; what is printed is for people to judge."""
    counts = collections.Counter()
    X, y = table(300)
    for name in ("schemas", "last"):
        (folder / name).mkdir()
    X.assign(y=y).to_csv(folder / "schemas" / "1.csv", index=False)
    X.rename(columns={"b": "B"}).assign(y=y).to_csv(folder / "schemas" / "2.csv", index=False)
    X.assign(y=y).to_csv(folder / "last" / "1.csv", index=False)
    X.assign(y="rare").to_csv(folder / "last" / "2.csv", index=False)
    settings = {**FIXED, "n_planes": 1}
    for _ in range(max(args.kills // 10, 1)):
        try:
            fit_files(folder / "schemas" / "*.csv", "y", **settings)
            counts["wrong"] += 1
        except geomix.SchemaError as error:
            counts["differing schemas refused"] += "no column" in str(error)
        clf = fit_files(folder / "last" / "*.csv", "y", **settings)
        counts["classes of the last file learnt"] += "rare" in clf.classes_.tolist()
        full, usage = shutil.disk_usage, shutil._ntuple_diskusage(10, 10, 0)
        shutil.disk_usage = lambda _, usage=usage: usage
        try:
            fit_files(folder / "last" / "*.csv", "y", **settings)
            counts["wrong"] += 1
        except OSError as error:
            counts["full scratch disks refused"] += "scratch" in str(error)
        finally:
            shutil.disk_usage = full
    return counts


PARTS = {"threads": soak_threads, "prefork": soak_prefork, "kills": soak_kills, "files": soak_files}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--parts", default=",".join(PARTS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for name in args.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            counts = PARTS[name](args, Path(folder))
        wrong += counts.pop("wrong", 0)
        told = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"{name}: {told}; {wrong} wrong so far", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
