"""How fast geomix is, next to its peers, in one run.

    python benchmarks/speed.py [row] [batch] [frames] [fit] [default] [large] [sparse] [spline]
                               [growth] [memory] [monotone] [jobs] [bounded] [whole] [peak] [wide]
                               [--data FOLDER]

Each part is one of the figures that the native core is held to. Times are the smallest of
several repeats, on one thread unless a row names more; every row names its path: `scorer`
(one row), `model` (GeometricMixture), `estimator` (with scikit-learn's validation). Tables go
to the terminal and to ``results/speed.md``.
"""

from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GEOMIX_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))

import argparse  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import timeit  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
import speed_fits  # noqa: E402
import speed_frames  # noqa: E402
import speed_growth  # noqa: E402
import speed_peers  # noqa: E402
import speed_wide  # noqa: E402
from conditions import kernel_name, processor, versions  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from geomix import GeometricMixture, GeometricMixtureClassifier, Recipe, datasets  # noqa: E402
from geomix.core import kernel  # noqa: E402
from geomix.core.adam import adam_start  # noqa: E402
from geomix.core.feature_map import FeatureMap  # noqa: E402
from geomix.core.lifts import IdentityLift, fit_standardize  # noqa: E402
from geomix.core.planes import Planes, class_starts  # noqa: E402
from geomix.core.predictors import NumpyPredictor  # noqa: E402
from geomix.core.spline import fit_spline  # noqa: E402

warnings.simplefilter("ignore")
RESULTS = Path(__file__).parent / "results" / "speed.md"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PAPER_SETS = ("iris", "wine", "wdbc", "digits", "moons", "circles", "aniso", "spirals")
FIXED_RECIPE = Recipe(calibrate=False, tol=1e-4)  # LogisticRegression's own tolerance
FIXED = {
    "lift": "linear",
    "n_planes": 3,
    "l2": 1e-3,
    "early_stopping": "off",
    "random_state": 0,
    "advanced": FIXED_RECIPE,
}
CALIBRATED = {"lift": "linear", "n_planes": 3, "l2": 1e-4, "random_state": 0}
FOURIER = {
    **FIXED,
    "lift": "fourier",
    "advanced": replace(FIXED_RECIPE, n_frequencies=256, gamma=0.01),
}
SPLINE = {"n_planes": 4, "lift": "spline", "n_members": 1, "random_state": 0}
Row = tuple[str, str, float]


def best(work: Callable[[], Any], seconds: float = 0.5, loops: int = 1) -> float:
    """Seconds of one call: the smallest of repeats over about ``seconds``, at least three."""
    work()
    found, until = [], time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < until:
        start = time.perf_counter()
        for _ in range(loops):
            work()
        found.append((time.perf_counter() - start) / loops)
    return min(found)


def best_call(call: str, /, **names: Any) -> float:
    """Seconds of one quick call, written as code so that nothing but the call is timed."""
    timer = timeit.Timer(call, globals=names)
    loops = max(timer.autorange()[0] // 20, 1)
    return min(timer.repeat(40, loops)) / loops


def table(title: str, rows: list[Row], unit: str, scale: float, base: str) -> str:
    """Markdown: name, path, time, and the ratio to the row called ``base``."""
    reference = next(seconds for name, _, seconds in rows if name == base)
    lines = [f"### {title}", "", f"| | path | {unit} | of {base} |", "|---|---|---:|---:|"]
    for name, path, seconds in rows:
        lines.append(f"| {name} | {path} | {scale * seconds:.4g} | {seconds / reference:.4g} |")
    return "\n".join(lines) + "\n"


def data(name: str) -> tuple[Any, Any]:
    found = datasets.load(name)
    return np.ascontiguousarray(found.X, dtype=np.float64), np.asarray(found.y)


# --- 1. one row ---


def one_row() -> list[str]:
    X, y = data("wdbc")
    clf = GeometricMixtureClassifier(**FIXED).fit(X, y)
    spline = GeometricMixtureClassifier(**SPLINE).fit(X, y).model_
    score, row, table_of_one = clf.model_.scorer(), X[3].copy(), X[3:4].copy()
    out, single = np.empty(2), X[3:4].astype(np.float32)
    logistic = LogisticRegression(max_iter=1000).fit(StandardScaler().fit_transform(X), y)
    onnx = speed_peers.onnx_logistic(X, y)
    rows: list[Row] = [
        (
            "geomix linear, 2 x 3 planes",
            "scorer(row)",
            best_call("score(row)", score=score, row=row),
        ),
        (
            "geomix, out=",
            "scorer(row, out=)",
            best_call("score(row, out=p)", score=score, row=row, p=out),
        ),
        (
            "geomix spline, 2 x 4 planes",
            "scorer(row)",
            best_call("score(row)", score=spline.scorer(), row=row),
        ),
        ("geomix", "model", best_call("call(X)", call=clf.model_.predict_proba, X=table_of_one)),
        ("geomix", "estimator", best_call("call(X)", call=clf.predict_proba, X=table_of_one)),
        ("ONNX Runtime LR", "session.run", best_call("call(X)", call=onnx, X=single)),
        (
            "scikit-learn LR",
            "predict_proba",
            best_call("call(X)", call=logistic.predict_proba, X=table_of_one),
        ),
    ]
    for name, call in speed_peers.batch_peers(X, y).items():
        if not name.startswith(("scikit-learn L", "ONNX")):
            rows.append((name, "one row", best_call("call(X)", call=call, X=table_of_one)))
    parts = [table("One row, wdbc", rows, "us", 1e6, "ONNX Runtime LR")]
    X, y = data("digits")
    score, row = GeometricMixtureClassifier(**FOURIER).fit(X, y).model_.scorer(), X[3].copy()
    onnx, single = speed_peers.onnx_mlp(X, y), X[3:4].astype(np.float32)
    rows = [
        (
            "geomix Fourier D=256, 10 x 3 planes",
            "scorer(row)",
            best_call("score(row)", score=score, row=row),
        ),
        ("ONNX Runtime MLP(64, 32)", "session.run", best_call("call(X)", call=onnx, X=single)),
    ]
    return [*parts, table("One row, digits", rows, "us", 1e6, "ONNX Runtime MLP(64, 32)")]


# --- 2. a hundred thousand rows ---


def batch() -> list[str]:
    parts = []
    for name in ("wdbc", "digits"):
        X, y = data(name)
        many = np.ascontiguousarray(np.resize(X, (100_000, X.shape[1])))
        rows: list[Row] = []
        models = {"linear": FIXED, "fourier": FOURIER}
        if name == "wdbc":
            models["spline"] = SPLINE
        for lift, settings in models.items():
            m = GeometricMixtureClassifier(**settings).fit(X, y).model_
            numpy = NumpyPredictor(m.feature_map, m.planes, m.sharpness, m.temperature)
            rows += [
                (f"geomix {lift}", "model", best(lambda m=m, X=many: m.predict_proba(X))),
                (
                    f"geomix {lift}",
                    "NumPy kernel",
                    best(lambda n=numpy, X=many: n.predict_proba(X), 0),
                ),
            ]
            if lift == "fourier":
                single = m.with_precision("float32")
                took = best(lambda m=single, X=many: m.predict_proba(X))
                rows.append(("geomix fourier, float32", "model", took))
                differs = np.abs(m.predict_proba(X) - single.predict_proba(X)).max()
        for peer, call in speed_peers.batch_peers(X, y).items():
            few = many[:2000] if "SVM" in peer or "kNN" in peer else many
            took = best(lambda call=call, few=few: call(few), 0.2) * len(many) / len(few)
            rows.append((peer, "batch" if few is many else "2000 rows, scaled up", took))
        note = f"\nfloat32: the largest difference of a probability is {differs:.1g}.\n"
        parts.append(table(f"100,000 rows, {name}", rows, "ms", 1e3, "geomix linear") + note)
    return parts


# --- frames and dicts ---


def frames(folder: Path = DATA) -> list[str]:
    if not (folder / "adult.parquet").exists():
        return [f"### Frames\n\nNot measured: there is no {folder / 'adult.parquet'}.\n"]
    units = {"One row, adult": ("us", 1e6)}
    return [
        table(title, rows, *units.get(title, ("ms", 1e3)), "LightGBM, 400 trees")
        for title, rows in speed_frames.measured(folder, best, best_call).items()
    ]


# --- 3. fit with a fixed linear lift ---

NUMPY_FIT = """
import sys; sys.path.insert(0, {here!r})
import speed
X, y = speed.data({name!r})
print(speed.best(lambda: speed.GeometricMixtureClassifier(**speed.FIXED).fit(X, y), 1.0))
"""


def fixed_fit() -> list[str]:
    parts = []
    for name in ("wdbc", "digits"):
        X, y = data(name)
        code = NUMPY_FIT.format(here=str(Path(__file__).parent), name=name)
        numpy = float(_run(code, GEOMIX_KERNEL="numpy"))
        ours = best(lambda X=X, y=y: GeometricMixtureClassifier(**FIXED).fit(X, y), 2.0)
        with_folds = best(lambda X=X, y=y: GeometricMixtureClassifier(**CALIBRATED).fit(X, y), 2.0)
        theirs = best(lambda X=X, y=y: speed_peers.logistic(X, y), 2.0)
        rows: list[Row] = [
            ("geomix linear, 3 planes", "estimator.fit", ours),
            ("geomix, calibrated on folds", "estimator.fit", with_folds),
            ("geomix, NumPy kernel", "estimator.fit", numpy),
            ("scikit-learn LR", "pipeline with StandardScaler", theirs),
        ]
        parts.append(table(f"Fit, {name}", rows, "ms", 1e3, "scikit-learn LR"))
    return parts


def _run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


# --- 4. fit with every default ---


def default_fit() -> list[str]:
    lines = [
        "### Fit with all defaults",
        "",
        "| data | geomix ms | LightGBM 400 trees ms | ratio |",
    ]
    lines.append("|---|---:|---:|---:|")
    ratios = []
    for name in PAPER_SETS:
        X, y = data(name)
        ours = best(lambda X=X, y=y: GeometricMixtureClassifier(random_state=0).fit(X, y), 2.0)
        theirs = best(lambda X=X, y=y: speed_peers.lightgbm(X, y), 1.0)
        ratios.append(ours / theirs)
        lines.append(f"| {name} | {1e3 * ours:.0f} | {1e3 * theirs:.0f} | {ratios[-1]:.2f} |")
    mean = float(np.exp(np.mean(np.log(ratios))))
    lines.append(f"\nGeometric mean of the ratios: {mean:.2f}; largest: {max(ratios):.2f}.")
    return ["\n".join(lines) + "\n"]


# --- 5. half a million rows ---


def epoch_seconds(n_rows: int, n_columns: int, per_class: int, threads: int = 1) -> float:
    """One epoch of Adam on random rows of seven classes, in single precision."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y, weight = rng.integers(7, size=n_rows), np.ones(n_rows)
    class_start = class_starts([per_class] * 7)
    n_planes = int(class_start[-1])
    planes = Planes(rng.standard_normal((n_planes, n_columns)), np.zeros(n_planes), class_start)
    start, usage = adam_start(planes.as_vector().size), np.full(n_planes, 1.0 / per_class)
    order = rng.permutation(n_rows)
    settings = {"sharpness": 6.0, "label_smoothing": 0.02, "batch_size": 256, "l2": 1e-4}
    settings |= {"learning_rate": 0.01, "usage_beta": 0.5, "usage_delta": 0.01, "usage_decay": 0.0}
    settings |= {"clip_norm": 5.0, "max_weight_norm": 0.0}
    os.environ["GEOMIX_NUM_THREADS"] = str(threads)
    try:
        return best(
            lambda: kernel.adam_epoch(X, y, weight, order, planes, start, usage, **settings), 1.0
        )
    finally:
        os.environ["GEOMIX_NUM_THREADS"] = "1"


def large() -> list[str]:
    n, d, per_class = 500_000, 54, 4
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(np.float32)
    W = rng.standard_normal((7 * per_class, d)).astype(np.float32)
    G = rng.standard_normal((n, 7 * per_class)).astype(np.float32)
    products = best(lambda: X @ W.T, 1.0) + best(lambda: G.T @ X, 1.0)
    one, two = epoch_seconds(n, d, per_class), epoch_seconds(n, d, per_class, threads=2)
    rows: list[Row] = [
        ("two float32 matrix products", "NumPy, 1 thread", products),
        ("geomix, one epoch of Adam", "kernel, 1 thread", one),
        ("geomix, one epoch of Adam", "kernel, 2 threads", two),
    ]
    text = table("500,000 x 54, 7 x 4 planes", rows, "ms", 1e3, "two float32 matrix products")
    small = (100_000, 32, 4)
    base = epoch_seconds(*small)
    for name, grown in {
        "rows": (400_000, 32, 4),
        "columns": (100_000, 128, 4),
        "planes": (100_000, 32, 16),
    }.items():
        exponent = np.log(epoch_seconds(*grown) / base) / np.log(4.0)
        text += f"\nTime grows with {name} to the power {exponent:.2f}."
    return [text + f"\n\nTwo threads: {one / two:.2f} times one.\n"]


# --- 6. sparse rows ---


def random_csr(n_rows: int, n_columns: int, per_row: int, zipf: bool) -> Any:
    """About ``per_row`` entries in every row, in columns at random or as frequent as words."""
    rng = np.random.default_rng(0)
    frequent = 1.0 / np.arange(1, n_columns + 1) if zipf else np.ones(n_columns)
    columns = rng.choice(n_columns, size=n_rows * per_row, p=frequent / frequent.sum())
    rows = np.repeat(np.arange(n_rows), per_row)
    return scipy.sparse.csr_array(
        (rng.random(len(rows)), (rows, columns)), shape=(n_rows, n_columns)
    )


def sparse() -> list[str]:
    parts = []
    for title, X in {
        "20,000 x 30,000, 80 entries a row at random": random_csr(20_000, 30_000, 80, False),
        "20,000 x 30,000, 80 entries a row like words": random_csr(20_000, 30_000, 80, True),
        "5,000 x 500, 25 entries a row at random": random_csr(5_000, 500, 25, False),
    }.items():
        n_rows, n_columns = X.shape
        rng, kept = np.random.default_rng(0), np.unique(X.indices)
        y, weight = rng.integers(10, size=n_rows), np.ones(n_rows)
        W = 0.1 * rng.standard_normal((20, len(kept)))
        planes = Planes(W, np.zeros(20), class_starts([2] * 10))
        standardize = fit_standardize(X, weight, kept)
        U, names = standardize(X), tuple(map(str, range(n_columns)))
        model = GeometricMixture(
            np.arange(10), names, FeatureMap(standardize, IdentityLift(len(kept))), planes, 6.0
        )
        numpy = NumpyPredictor(model.feature_map, planes, 6.0, 1.0)
        theirs, ours = kernel.NumpyRows(U, y, weight), kernel.training_rows(U, y, weight)
        for work, call, base in (
            ("loss and gradient", ours.terms, theirs.terms),
            ("predict_proba", model.predict_proba, numpy.predict_proba),
        ):
            given = (planes, 6.0, 0.02) if work == "loss and gradient" else (X,)
            rows: list[Row] = [
                ("NumPy kernel", "SciPy products", best(lambda f=base, g=given: f(*g), 1.0)),
                ("geomix", "kernel", best(lambda f=call, g=given: f(*g), 1.0)),
            ]
            parts.append(table(f"{title}, 10 x 2 planes: {work}", rows, "ms", 1e3, "NumPy kernel"))
    return parts


# --- 7. binned rows of a spline lift ---


def pass_seconds(rows: kernel.TrainingRows, planes: Planes, threads: int) -> float:
    """One pass of loss and gradients over training rows."""
    os.environ["GEOMIX_NUM_THREADS"] = str(threads)
    try:
        return best(lambda: rows.terms(planes, 6.0, 0.02), 1.0)
    finally:
        os.environ["GEOMIX_NUM_THREADS"] = "1"


def spline_passes(n_rows: int, n_columns: int) -> str:
    """Passes over codes and over the raw columns, and coding, of seven classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns)).astype(np.float32)
    y, weight = rng.integers(7, size=n_rows), np.ones(n_rows)
    lift = fit_spline(X[:50_000], weight[:50_000], np.zeros(n_columns, dtype=np.intp), 32)
    binned = kernel.training_rows(kernel.binned(lift, X), y, weight)
    dense = kernel.training_rows(X, y, weight)
    rows: list[Row] = []
    for per_class in (1, 4):
        start = class_starts([per_class] * 7)
        for name, training, width in (
            ("raw columns, float32", dense, n_columns),
            (f"spline, {lift.n_outputs} steps", binned, lift.n_outputs),
        ):
            weights = 0.1 * rng.standard_normal((int(start[-1]), width))
            planes = Planes(weights, np.zeros(len(weights)), start)
            for threads in (1, 2):
                path = f"{len(weights)} planes, threads: {threads}"
                rows.append((name, path, pass_seconds(training, planes, threads)))
    rows.append(("kernel.binned", "coding, threads: 1", best(lambda: kernel.binned(lift, X))))
    rows.append(("SplineLift.binned", "coding, NumPy", best(lambda: lift.binned(X))))
    return table(f"One pass, {n_rows:,} x {n_columns}", rows, "ms", 1e3, "raw columns, float32")


def spline() -> list[str]:
    return [spline_passes(500_000, 54), spline_passes(10_000, 14)]


# --- 8. memory ---

MEMORY = """
import numpy as np, pandas as pd
from geomix import GeometricMixtureClassifier, Recipe
def room(name):
    with open("/proc/self/status") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
rng = np.random.default_rng(0)
X = rng.standard_normal(({n_rows}, 54), dtype=np.float32)
y, size = rng.integers(7, size=len(X)), X.nbytes
X = {table}
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # forgets the peak so far
before = room("VmRSS:")
GeometricMixtureClassifier(**{settings}).fit(X, y)
print((room("VmHWM:") - before) / size)
"""
ONE_MODEL = {**FIXED, "n_planes": 4, "l2": 1e-4, "max_iter": 2}
BY_ADAM = {**ONE_MODEL, "advanced": replace(FIXED_RECIPE, solver="adam")}
BY_LBFGS = {**ONE_MODEL, "advanced": replace(FIXED_RECIPE, solver="lbfgs")}
MEMORY_OF = {  # rows, table, settings
    "float32 array, Adam": (500_000, "X", BY_ADAM),
    "float32 pandas frame, Adam": (500_000, "pd.DataFrame(X)", BY_ADAM),
    "float64 array, Adam": (500_000, "X.astype(np.float64)", BY_ADAM),
    "float32 array, L-BFGS": (500_000, "X", BY_LBFGS),
    "float32 array, linear, else default": (
        200_000, "X", {"lift": "linear", "max_iter": 20, "random_state": 0}
    ),
    "float32 array, default": (200_000, "X", {"max_iter": 20, "random_state": 0}),
}  # fmt: skip


def memory() -> list[str]:
    """Everything that the process gains while it fits, NumPy's and the native core's."""
    lines = [
        "### Memory of a fit",
        "",
        "Peak of the process's resident memory during `fit`, less what was resident before (the",
        "table itself is), in multiples of the float32 data; 54 columns, seven classes.",
        "",
        "| | rows | peak, of the float32 data |",
        "|---|---:|---:|",
    ]
    for name, (n_rows, made, settings) in MEMORY_OF.items():
        ratio = float(_run(MEMORY.format(n_rows=n_rows, table=made, settings=settings)))
        lines.append(f"| {name} | {n_rows:,} | {ratio:.1f} |")
    return ["\n".join(lines) + "\n"]


PARTS = {
    "row": one_row,
    "batch": batch,
    "frames": frames,
    "fit": fixed_fit,
    "default": default_fit,
    "large": large,
    "sparse": sparse,
    "spline": spline,
    "growth": lambda: speed_growth.growth(best),
    "memory": memory,
    **speed_fits.PARTS,
    **speed_wide.PARTS,
}


def conditions() -> str:
    libraries = ("numpy", "scikit-learn", "lightgbm", "xgboost", "catboost", "interpret-core")
    return (
        f"# Speed\n\n{processor()}; geomix kernel: {kernel_name()}; "
        f"{versions((*libraries, 'onnxruntime'))}. One thread unless stated; smallest of "
        "repeats. Made by `python benchmarks/speed.py`.\n"
    )


def _guarded(name: str, part: Callable[[], list[str]]) -> list[str]:
    """The tables of a part; a part that fails is named, and the others go on."""
    try:
        return part()
    except Exception as error:
        traceback.print_exc()
        return [f"### {name}\n\nNot measured: {type(error).__name__}: {error}\n"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory, beside peers.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with adult.parquet")
    parser.add_argument("--output", type=Path, help=f"default: {RESULTS.name}, of all parts")
    given = parser.parse_args()
    wanted, runs = given.parts or list(PARTS), PARTS | {"frames": lambda: frames(given.data)}
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    parts = [conditions()]
    print(parts[0], flush=True)
    for name in wanted:
        start = time.perf_counter()
        found = _guarded(name, runs[name])
        print(*found, f"({name}: {time.perf_counter() - start:.0f} s)\n", sep="\n", flush=True)
        parts += found
    output = given.output or (RESULTS if set(wanted) == set(PARTS) else None)
    if output is not None:
        output.parent.mkdir(exist_ok=True)
        output.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
