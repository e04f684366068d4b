"""Load held for long: counts of what was done, and of what went wrong.

    python tests/soak.py --seconds 60 --workers 8 --kills 100 --worker-kills 5 --output soak.md

    threads             threads score while others fit, save and load the same model
    prefork             worker processes, by fork and by spawn, predict with one model
    kill fit            kill -9 at a random moment of the command: no file is half written
    kill predict        the same
    kill save           the same, while a model is saved over and over
    files               differing schemas, a class in the last file only, a full scratch disk
    kill Dask workers   kill -9 of one at a random pass of a fit: the model is the same to the bit

`--parts "kill save,files"` runs some of them; `--output` keeps the last counts of every part.
The exit code is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import geomix
from geomix import GeometricMixtureClassifier, cli, fit_files

FIXED = {"lift": "spline", "n_planes": 2, "l2": 1e-3, "max_iter": 10, "random_state": 0}


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


def _runs_command(arguments):
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        sys.exit(cli.main([str(one) for one in arguments]))


def _set(name, value):
    return "--set", f"{name}={value}"


def _saves(model, path):
    for _ in range(5):
        model.save(path)


def soak_kills(name, args, folder):
    """Children are forked, so that no kill is spent on the start of Python."""
    X, y = table(2000)
    rows, path, out = folder / "rows.csv", folder / "model.geomix", folder / "out.geomix"
    X.assign(y=y).to_csv(rows, index=False)
    GeometricMixtureClassifier(**FIXED).fit(X, y).save(path)
    answers, counts, rng = folder / "answers.csv", collections.Counter(), random.Random(0)
    fit = ["fit", rows, "--target", "y", "--output", out, "--force", "--quiet"]
    fit += [word for one in FIXED.items() if one[0] != "random_state" for word in _set(*one)]
    predict = ["predict", path, rows, "--output", answers, "--force"]
    work, given, target = {
        "fit": (_runs_command, (fit,), out),
        "predict": (_runs_command, (predict,), answers),
        "save": (_saves, (geomix.load(path), out), out),
    }[name]
    start = multiprocessing.get_context("fork").Process
    began = time.monotonic()
    undisturbed = start(target=work, args=given)
    undisturbed.start()
    undisturbed.join()
    if undisturbed.exitcode:
        raise SystemExit(f"{name} ended with exit code {undisturbed.exitcode}.")
    took = time.monotonic() - began
    while counts["kills"] < args.kills:
        if rng.random() < 0.5:
            target.unlink(missing_ok=True)  # often there is no file before
        child = start(target=work, args=given)
        child.start()
        time.sleep(rng.uniform(0.0, took))
        child.kill()
        child.join()
        counts["kills"] += child.exitcode == -signal.SIGKILL
        counts["wrong"] += child.exitcode not in (0, -signal.SIGKILL)
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
            _tally(counts, "differing schemas refused", "'b'" in str(error), error)
        clf = fit_files(folder / "last" / "*.csv", "y", **settings)
        _tally(counts, "classes of the last file learnt", "rare" in clf.classes_.tolist())
        full, usage = shutil.disk_usage, shutil._ntuple_diskusage(10, 10, 0)
        shutil.disk_usage = lambda _, usage=usage: usage
        try:
            fit_files(folder / "last" / "*.csv", "y", **settings)
            counts["wrong"] += 1
        except OSError as error:
            _tally(counts, "full scratch disks refused", "scratch" in str(error), error)
        finally:
            shutil.disk_usage = full
    return counts


def _tally(counts, what, is_right, sentence=""):
    if not counts[what] and sentence:
        print(f"    {sentence}", flush=True)
    counts[what] += is_right
    counts["wrong"] += not is_right


def soak_dask(args, folder):
    import dask
    import dask.array as da
    import distributed

    import geomix.dask as bridge

    X, y = table(1200)
    X = da.from_array(X[["a", "b"]].to_numpy(), chunks=((100, 300, 200, 600), 2))
    y, counts = da.from_array(y, chunks=((100, 300, 200, 600),)), collections.Counter()
    settings = {**FIXED, "lift": "linear", "tol": 1e-9}
    rng, terms, passes = random.Random(0), bridge._DaskSums.terms, []

    def fitted(kill_at):
        """Planes of a fit on two workers, one of which is killed at a pass; 0: none."""
        passes.clear()
        with (
            distributed.LocalCluster(
                2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):

            def counted(self, *at):
                passes.append(1)
                if len(passes) == kill_at:
                    pids = client.run(os.getpid)
                    os.kill(pids[rng.choice(sorted(pids))], signal.SIGKILL)
                    counts["workers killed"] += 1
                return terms(self, *at)

            bridge._DaskSums.terms = counted
            # A worker takes long to start again on a busy machine.
            clf = bridge.DaskGeometricMixtureClassifier(worker_timeout=600.0, **settings)
            return clf.fit(X, y).model_.planes

    with dask.config.set({"distributed.scheduler.allowed-failures": 10}):
        expected, n_passes = fitted(0), len(passes)
        for _ in range(args.worker_kills):
            found = fitted(rng.randint(1, n_passes))
            same = np.array_equal(found.weights, expected.weights)
            _tally(
                counts,
                "fits equal to the bit",
                same and found.biases.tolist() == expected.biases.tolist(),
            )
    bridge._DaskSums.terms = terms
    return counts


PARTS = {
    "threads": soak_threads,
    "prefork": soak_prefork,
    "kill fit": functools.partial(soak_kills, "fit"),
    "kill predict": functools.partial(soak_kills, "predict"),
    "kill save": functools.partial(soak_kills, "save"),
    "files": soak_files,
    "kill Dask workers": soak_dask,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--worker-kills", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n_wrong = 0
    for name in args.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            counts = PARTS[name](args, Path(folder))
        wrong = counts.pop("wrong", 0)
        n_wrong += wrong
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        print(f"{name}: {told}; {wrong} wrong", flush=True)
        if args.output:
            _write(args.output, name, f"| {name} | {told} | {wrong} |")
    sys.exit(n_wrong > 0)


def _write(path, name, line):
    """The line of one part into the table of all; those of other runs are kept."""
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    kept = {one.split(" | ")[0].removeprefix("| "): one for one in lines} | {name: line}
    ordered = [kept[part] for part in PARTS if part in kept]
    path.write_text("\n".join(["| part | counts | wrong |", "|---|---|---:|", *ordered, ""]))


if __name__ == "__main__":
    main()
