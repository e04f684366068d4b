"""What one machine carries and what a cluster carries, in one run: every figure of
docs/guide/larger-than-memory.md.

    python benchmarks/scale.py --data FOLDER            # some 3 GB, removed afterwards
    python benchmarks/scale.py --data FOLDER --steps stream,workers

Each step prints a few lines and adds them to results/scale.md with the conditions: memory of a
streamed fit in a process of its own, streamed passes against passes in memory, time against
rows, class-sorted files against ``partial_fit``, one worker against two, killed workers, a fit
of ten million rows on two workers of 4 GB, and boosted trees on the same cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scale_rows

import geomix
from geomix import GeometricMixtureClassifier
from geomix.core import kernel
from geomix.versions import versions

HERE = Path(__file__).parent
SETTINGS = {"lift": "linear", "n_planes": 3, "l2": 1e-4, "random_state": 0}
PASSES = 5
WORKER_RUNS = 3
TABLES = HERE.resolve().parents[1] / "shared" / "data"


# --- one machine ---


def peak_megabytes() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def fit_here(pattern: str, scratch: str, settings: dict[str, Any]) -> None:
    """In a process of its own: fit files, and print what that took."""
    before, start = peak_megabytes(), time.perf_counter()
    clf = geomix.fit_files(pattern, "y", scratch=scratch, **settings)
    seconds, peak = time.perf_counter() - start, peak_megabytes()
    import pandas as pd

    X, y = scale_rows.unseen()
    accuracy = clf.score(pd.DataFrame(X, columns=scale_rows.names()), y)
    facts = {"imports": before, "peak": peak, "seconds": seconds, "accuracy": accuracy}
    facts |= {"note": clf.history_.notes[-1], "lift": clf.model_.lift.kind}
    print(json.dumps(facts))


def in_own_process(pattern: Path, scratch: Path, **settings: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--fit", str(pattern), str(scratch), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def memory(folder: Path) -> list[str]:
    """Peak memory of a streamed fit of 5 million rows."""
    pattern = scale_rows.write(folder / "five", 5_000_000)
    lines = ["| 5,000,000 x 50 float32 rows | peak MB | of it imports | s | accuracy | |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for title, settings in {
        "linear, 3 planes": SETTINGS,
        "every lift tried, 10 iterations": {"random_state": 0, "max_iter": 10},
    }.items():
        found = in_own_process(pattern, folder, **settings)
        lines.append(
            f"| {title} ({found['lift']}) | {found['peak']:.0f} | {found['imports']:.0f} | "
            f"{found['seconds']:.0f} | {found['accuracy']:.4f} | {found['note']} |"
        )
    return lines


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Best of a few: what the work takes when nobody else wants the processor."""
    call()
    times = []
    for _ in range(PASSES):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def streamed(pattern: Path, folder: Path) -> tuple[float, float, float]:
    """Processor seconds of the survey, of writing the scratch file, and of one pass over it."""
    from geomix.out_of_core.parquet_source import ParquetSource
    from geomix.out_of_core.part_reader import known_from, part_reader_of
    from geomix.tablefile.multiple_files import expand_paths

    estimator = GeometricMixtureClassifier(**SETTINGS)
    source = ParquetSource(tuple(map(str, expand_paths(pattern))), "y", None, None, folder)
    start = time.process_time()
    survey = source.survey(0, None)
    surveyed = time.process_time()
    known = known_from(survey, estimator.settings())
    reader = part_reader_of(survey, known.linear, None, exact=False)
    before = time.process_time()
    with source.sums(reader) as sums:
        written = time.process_time()
        one_pass = timed(lambda: sums.terms(planes(), 6.0, 0.02), time.process_time)
    return surveyed - start, written - before, one_pass


def planes() -> Any:
    from geomix.core.planes import Planes, class_starts

    start = class_starts([scale_rows.N_MODES] * scale_rows.N_CLASSES)
    weights = 0.3 * np.random.default_rng(2).standard_normal((start[-1], scale_rows.N_COLUMNS))
    return Planes(weights, np.zeros(start[-1]), start)


def pass_in_memory(n_rows: int) -> float:
    X = np.empty((n_rows, scale_rows.N_COLUMNS), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    for i in range(n_rows // scale_rows.ROWS_PER_BLOCK):
        at = slice(i * scale_rows.ROWS_PER_BLOCK, (i + 1) * scale_rows.ROWS_PER_BLOCK)
        X[at], y[at] = scale_rows.block(i)
    rows = kernel.training_rows(X, y, np.ones(n_rows))
    return timed(lambda: rows.terms(planes(), 6.0, 0.02), time.process_time)


def stream(folder: Path) -> list[str]:
    """A pass from disk against one in memory, and time against rows.

    In seconds of the processor, so that other work on the machine does not count.
    """
    sizes = [200_000, 500_000, 1_000_000, 2_000_000]
    head = (
        "| rows x 50 | survey | scratch file | streamed pass | pass in memory | ratio of passes |"
    )
    lines = [head, "| --- | --- | --- | --- | --- | --- |"]
    seconds = []
    for n_rows in sizes:
        pattern = scale_rows.write(folder / f"rows{n_rows}", n_rows)
        survey, scratch, far = streamed(pattern, folder)
        near = pass_in_memory(n_rows)
        shown = [f"{one:.3f} s" for one in (survey, scratch, far, near)]
        lines.append(f"| {n_rows:,} | {' | '.join(shown)} | {far / near:.2f} |")
        seconds.append(far)
        shutil.rmtree(pattern.parent)
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return [*lines, "", f"Time per streamed pass grows as rows^{exponent:.3f}."]


def by_class(folder: Path) -> list[str]:
    """Files sorted by class: fit_files, and partial_fit over the same files in order."""
    import pandas as pd
    import pyarrow.parquet as pq

    pattern = scale_rows.write(folder / "sorted", 500_000, by_class=True)
    X, y = scale_rows.unseen()
    frame = pd.DataFrame(X, columns=scale_rows.names())
    far = geomix.fit_files(pattern, "y", scratch=folder, **SETTINGS).score(frame, y)
    warnings.simplefilter("ignore", geomix.DataQualityWarning)  # of batches with one class
    learner = GeometricMixtureClassifier(**SETTINGS)
    first_X, first_y = scale_rows.block(0, 5000)  # a mixed first batch, which it needs
    learner.partial_fit(
        pd.DataFrame(first_X, columns=scale_rows.names()), first_y, classes=range(5)
    )
    for path in sorted(pattern.parent.iterdir()):
        table = pq.read_table(path).to_pandas()
        labels = table.pop("y").to_numpy()
        for rows in np.array_split(np.arange(len(table)), 20):
            learner.partial_fit(table.iloc[rows], labels[rows])
    stream_score = learner.score(frame, y)
    return [
        "| 500,000 rows sorted by class | test accuracy |",
        "| --- | --- |",
        f"| fit_files | {far:.4f} |",
        f"| partial_fit, batches of 5,000 in the order of the files | {stream_score:.4f} |",
    ]


CALIBRATED = {
    "one spline plane": {"lift": "spline", "n_planes": 1, "l2": 1e-5},
    "four spline planes": {"lift": "spline", "n_planes": 4, "l2": 1e-5},
    "eight linear planes": {"lift": "linear", "n_planes": 8, "l2": 1e-6},
}


def calibration(folder: Path) -> list[str]:
    """Calibration out of core, by rows held out: covertype, 50,000 fresh rows."""
    import pandas as pd
    from sklearn.metrics import log_loss

    from geomix.out_of_core.fit import MemorySource, fit_estimator, in_parts

    if not (TABLES / "covertype.parquet").exists():
        return [f"Not measured: there is no {TABLES / 'covertype.parquet'}."]
    table = pd.read_parquet(TABLES / "covertype.parquet").sample(frac=1.0, random_state=0)
    y = table.pop("target").to_numpy()
    X = table.to_numpy(dtype=np.float32)
    lines = ["| | rows | temperature | log-loss | best factor | log-loss with it |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    fresh, codes = X[-50_000:], y[-50_000:]
    for name, settings in CALIBRATED.items():
        for n_rows in (60_000, 300_000):
            source = MemorySource(in_parts(X[:n_rows], y[:n_rows], None, [n_rows // 2]), False)
            clf = GeometricMixtureClassifier(random_state=0, **settings)
            model = fit_estimator(clf, source).model_
            losses = {
                factor: log_loss(
                    codes,
                    model.with_temperature(model.temperature * factor).predict_proba(fresh),
                    labels=model.classes,
                )
                for factor in (1.0, *np.linspace(0.8, 1.25, 19))
            }
            best = min(losses, key=losses.__getitem__)
            lines.append(
                f"| {name} | {n_rows:,} | {model.temperature:.3f} | {losses[1.0]:.4f} | "
                f"{best:.3f} | {losses[best]:.4f} |"
            )
    return lines


# --- a cluster ---


def collection(n_rows: int, rows_per_part: int = scale_rows.ROWS_PER_BLOCK) -> tuple[Any, Any]:
    """Lazy Dask arrays, made where they are needed."""
    import dask
    import dask.array as da

    made = [
        dask.delayed(scale_rows.block)(i, rows_per_part) for i in range(n_rows // rows_per_part)
    ]
    shape = rows_per_part, scale_rows.N_COLUMNS
    X = [da.from_delayed(one[0], shape, dtype=np.float32) for one in made]
    y = [da.from_delayed(one[1], shape[:1], dtype=np.int64) for one in made]
    return da.concatenate(X), da.concatenate(y)


def cluster_of(n_workers: int, memory_limit: str = "4GB") -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        memory_limit=memory_limit,
        dashboard_address=":0",
        silence_logs=50,
    )


def workers(folder: Path) -> list[str]:
    """One million rows on one worker and on two; boosted trees on the same two."""
    runs = [(fit_on(1), fit_on(2)) for _ in range(WORKER_RUNS)]
    one, two = runs[0]
    lines = ["| 1,000,000 x 50 | workers | fit, s | test accuracy |", "| --- | --- | --- | --- |"]
    for n_workers, found in ((1, one), (2, two)):
        lines.append(
            f"| geomix ({found['note']}) | {n_workers} | {found['fit']:.1f} | "
            f"{found['accuracy']:.4f} |"
        )
    lines += [boosted_on_two(name) for name in ("xgboost", "lightgbm")]
    return [
        *lines,
        "",
        f"One worker to two, {WORKER_RUNS} runs: {speedups(runs, 'fit')} for the whole fit, of "
        f"which the choice on the sample runs on the client; {speedups(runs, 'pass')} for a pass "
        f"({one['pass']:.3f} s to {two['pass']:.3f} s in the first run).",
    ]


def speedups(runs: list[tuple[dict[str, Any], dict[str, Any]]], name: str) -> str:
    return ", ".join(f"{one[name] / two[name]:.2f}x" for one, two in runs)


def fit_on(n_workers: int) -> dict[str, Any]:
    """A fit of a million rows that lie on the workers, after one that warms them up."""
    from distributed import Client, wait

    from geomix.dask import DaskGeometricMixtureClassifier

    with cluster_of(n_workers) as cluster, Client(cluster) as client:
        X, y = client.persist(collection(1_000_000))
        wait([X, y])
        clf = DaskGeometricMixtureClassifier(**SETTINGS)
        clf.fit(X, y)
        start = time.perf_counter()
        clf.fit(X, y)
        seconds = time.perf_counter() - start
        found = {"fit": seconds, "pass": _pass_seconds(client, X, y)}
        found["accuracy"] = clf.to_local().score(*scale_rows.unseen())
        del X, y  # before the cluster that holds them
        return found | {"note": clf.history_.notes[-1]}


def boosted_on_two(name: str) -> str:
    from distributed import Client, wait

    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = client.persist(collection(1_000_000))
        wait([X, y])
        line = _boosted(name, X, y, *scale_rows.unseen())
        del X, y
        return line


def _pass_seconds(client: Any, X: Any, y: Any) -> float:
    from geomix.dask import DaskSource, _Cluster, _parts
    from geomix.out_of_core.part_reader import known_from, part_reader_of

    with _Cluster(client, 60.0) as cluster:
        source = DaskSource(cluster, _parts(X, y, None))
        survey = source.survey(0, None)
        known = known_from(survey, GeometricMixtureClassifier(**SETTINGS).settings())
        reader = part_reader_of(survey, known.linear, None, exact=True)
        with source.sums(reader) as sums:
            return timed(lambda: sums.terms(planes(), 6.0, 0.02))


def _boosted(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> str:
    try:
        if name == "xgboost":
            from xgboost.dask import DaskXGBClassifier as Model

            model = Model(n_estimators=100, tree_method="hist")
        else:
            from lightgbm import DaskLGBMClassifier as Model

            model = Model(n_estimators=100, verbose=-1)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        import dask.array as da

        predicted = model.predict(da.from_array(X_test, chunks=(len(X_test), X_test.shape[1])))
        score = float((np.asarray(predicted.compute()) == y_test).mean())
        return f"| {name}, 100 trees per class | 2 | {seconds:.1f} | {score:.4f} |"
    except Exception as error:  # a peer that fails is a line of the table, not the end of it
        return f"| {name} | 2 | failed: {type(error).__name__}: {str(error)[:80]} | |"


def killed(folder: Path) -> list[str]:
    """Kill one of two workers at a random pass, twenty times."""
    chance = random.Random(0)
    expected, n_passes, _ = fit_and_kill(None, 0)
    same, seconds = 0, []
    for _ in range(20):
        found, _, took = fit_and_kill(chance.randint(1, n_passes), chance.randint(0, 1))
        same += np.array_equal(found, expected)
        seconds.append(took)
    return [
        f"200,000 x 50 on two workers, one killed at a random one of {n_passes} passes, 20 times: "
        f"**{same} of 20 models bit-identical** to the undisturbed one (median fit "
        f"{np.median(seconds):.1f} s)."
    ]


def fit_and_kill(at_pass: int | None, which: int) -> tuple[Any, int, float]:
    """The planes of a fit in which a worker dies at a pass (None: never), passes and seconds."""
    from distributed import Client

    import geomix.dask as bridge

    terms, n_asked = bridge._DaskSums.terms, []
    with cluster_of(2) as cluster, Client(cluster) as client:
        pids = sorted(client.run(os.getpid).values())

        def asked(self: Any, *given: Any) -> Any:
            n_asked.append(1)
            if len(n_asked) == at_pass:
                os.kill(pids[which], signal.SIGKILL)
            return terms(self, *given)

        bridge._DaskSums.terms = asked
        try:
            start = time.perf_counter()
            clf = bridge.DaskGeometricMixtureClassifier(**{**SETTINGS, "tol": 1e-6})
            clf.fit(*collection(200_000, 20_000))
        finally:
            bridge._DaskSums.terms = terms
        return clf.model_.planes.as_vector(), len(n_asked), time.perf_counter() - start


def large(folder: Path) -> list[str]:
    """Ten million rows on two workers of 4 GB."""
    from distributed import Client

    from geomix.dask import DaskGeometricMixtureClassifier

    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = collection(10_000_000)
        start = time.perf_counter()
        clf = DaskGeometricMixtureClassifier(**SETTINGS).fit(X, y)
        seconds = time.perf_counter() - start
        peaks = client.run(peak_megabytes)
    score = clf.to_local().score(*scale_rows.unseen())
    shown = " and ".join(f"{peak:.0f} MB" for peak in peaks.values())
    return [
        f"10,000,000 x 50 float32 on two workers limited to 4 GB each: {seconds:.0f} s, peaks of "
        f"the workers {shown}, test accuracy {score:.4f} ({clf.history_.notes[-1]})"
    ]


STEPS: dict[str, Callable[[Path], list[str]]] = {
    "memory": memory,
    "stream": stream,
    "by_class": by_class,
    "calibration": calibration,
    "workers": workers,
    "killed": killed,
    "large": large,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("scale-data"))
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--output", type=Path, default=HERE / "results" / "scale.md")
    parser.add_argument("--note", default="")
    parser.add_argument("--fit", nargs=3)
    given = parser.parse_args()
    if given.fit:
        fit_here(given.fit[0], given.fit[1], json.loads(given.fit[2]))
        return
    report = ["# Scale", "", f"Made by `python benchmarks/scale.py`. {given.note}".rstrip(), ""]
    found = versions()
    report += [f"{os.cpu_count()} cores; " + ", ".join(f"{k} {v}" for k, v in found.items()), ""]
    for name in given.steps.split(","):
        folder = given.data / name
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        try:
            lines = STEPS[name](folder)
        except Exception as error:
            lines = [f"This step failed: {error!r}"]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        title = (STEPS[name].__doc__ or name).splitlines()[0].rstrip(".")
        report += [f"## {title}", "", *lines, ""]
        print(
            "\n".join([f"## {title} ({time.perf_counter() - start:.0f} s)", *lines, ""]), flush=True
        )
        given.output.write_text("\n".join(report))


if __name__ == "__main__":
    main()
