"""Reading a model: counterfactuals, certificates and contributions, measured.

    python benchmarks/reading.py [counterfactuals] [certificates] [contributions]
        [rules] [nearest] [bands] [pictures] [--data FOLDER] [--simulations 20]
        [--rows 30] [--splits 5] [--attacks 10000] [--table FILE.parquet --target COLUMN]
        [--only wdbc,adult] [--dice genetic,random]

Counterfactuals are computed for test rows of wdbc, adult and credit_g (or ``--table``), with the
default model of each of several splits: how many the model itself confirms, with cells of the
types that the columns have; the median time; how many columns change; and the mean L2 distance in
standard deviations of the training rows, a changed level counting one. Beside them the same for
``sparse=None``, the nearest row. With dice-ml installed (``pip install dice-ml``) DiCE explains the
model and the rows of the first split in the same run; distances and validity of both are measured
by the same function.
Certificates are attacked by random points and by gradient steps. Times are of one thread's
processor, since a busy machine delays but does not change them; on an idle one they are those of
the wall. Rules and counterfactuals of real tables are checked by ``reading_tables.py``, bands and
pictures of effects are made by ``reading_effects.py``. Each section of ``results/reading.md`` is
replaced by itself.
"""

from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GEOMIX_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))

import argparse  # noqa: E402
import platform  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from markdown_table import table  # noqa: E402
from reading_effects import bands, pictures  # noqa: E402
from reading_tables import MOST_ROWS, nearest, rules  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

from geomix import GeometricMixtureClassifier  # noqa: E402
from geomix.core import kernel  # noqa: E402
from geomix.explain.additive_form import additive  # noqa: E402
from geomix.explain.cells import encoded_rows  # noqa: E402

warnings.simplefilter("ignore")
RESULTS = Path(__file__).parent / "results" / "reading.md"
PARTS = (
    "counterfactuals",
    "certificates",
    "contributions",
    "rules",
    "nearest",
    "bands",
    "pictures",
)
TITLE = "# Reading a model\n"
REPEATS = 3  # calls for a row, of which the shortest counts: a busy machine slows some of them
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PACKAGES = ("geomix", "numpy", "scipy", "scikit-learn", "pandas", "dice-ml", "interpret-core")


def wdbc() -> tuple[pd.DataFrame, Any]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, np.array(["malignant", "benign"])[y]


def mixed() -> tuple[pd.DataFrame, Any]:
    """Eight numbers of wdbc, and four more of its columns cut into levels."""
    X, y = wdbc()
    cut = X.iloc[:, 20:24]
    levels = ["small", "middling", "large", "huge"]
    named = {f"{name} size": pd.qcut(cut[name], 4, labels=levels).astype(str) for name in cut}
    return pd.concat([X.iloc[:, :8], pd.DataFrame(named)], axis=1), y


def given(path: Path, target: str) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_parquet(path)
    X = frame.drop(columns=target)
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):
            X[name] = X[name].astype(str)
    return X, frame[target].astype(str).to_numpy()


def split(X: pd.DataFrame, y: Any, n_test: int, seed: int = 0) -> tuple[Any, ...]:
    n_test = min(n_test, len(X) // 2)
    n_train = min(MOST_ROWS, len(X) - n_test)
    return train_test_split(
        X, y, train_size=n_train, test_size=n_test, random_state=seed, stratify=y
    )


def distances(model: Any, before: pd.DataFrame, after: pd.DataFrame) -> Any:
    """L2 in standard deviations of the training rows; a changed level counts one."""
    form = additive(model)
    scale = np.array([shape.scale for shape in form.shapes])
    is_level = np.array([shape.kind == "category" for shape in form.shapes])
    A, B = encoded_rows(model, before), encoded_rows(model, after[before.columns])
    return np.linalg.norm(np.where(is_level, A != B, (B - A) / scale), axis=1)


def ours(clf: Any, X: pd.DataFrame, **options: Any) -> tuple[list[Any], list[float], list[Any]]:
    model = clf.model_
    model.counterfactual(X.iloc[[0]], **options)
    rows, seconds, found = [], [], []
    for i in range(len(X)):
        took = []
        for _ in range(REPEATS):
            start = time.process_time()
            one = model.counterfactual(X.iloc[[i]], **options)
            took.append(time.process_time() - start)
        seconds.append(min(took))
        rows.append(one.after)
        found.append(one)
    return rows, seconds, found


def dices(clf: Any, X_train: pd.DataFrame, y_train: Any, X: pd.DataFrame, method: str) -> Any:
    import dice_ml

    numbers = [name for name in X.columns if pd.api.types.is_numeric_dtype(X[name])]
    data = dice_ml.Data(
        dataframe=X_train.assign(outcome=(y_train == clf.classes_[1]).astype(int)),
        continuous_features=numbers,
        outcome_name="outcome",
    )
    explainer = dice_ml.Dice(data, dice_ml.Model(model=_Coded(clf, X), backend="sklearn"), method)
    rows, seconds = [], []
    for i in range(len(X)):
        start = time.process_time()
        try:
            found = explainer.generate_counterfactuals(
                X.iloc[i : i + 1], total_CFs=1, desired_class="opposite", verbose=False
            )
            after = found.cf_examples_list[0].final_cfs_df
        except Exception:  # DiCE raises where it has found none
            after = None
        seconds.append(time.process_time() - start)
        rows.append(None if after is None or not len(after) else after.iloc[0][list(X.columns)])
    return rows, seconds


class _Coded:
    """The classifier with labels 0 and 1, and columns of the types that it was fitted with."""

    def __init__(self, clf: Any, X: pd.DataFrame) -> None:
        self.clf, self.types = clf, X.dtypes

    def _typed(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[list(self.types.index)].astype(self.types)

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.clf.predict_proba(self._typed(X))

    def predict(self, X: pd.DataFrame) -> Any:
        return self.predict_proba(X).argmax(axis=1)


def valid_and_far(clf: Any, X: pd.DataFrame, rows: list[Any], labels: Any) -> tuple[float, Any]:
    """Share of rows whose answer really changed, and the distances of those (NaN of others)."""
    there = [i for i, row in enumerate(rows) if row is not None]
    far = np.full(len(rows), np.nan)
    if not there:
        return 0.0, far
    after = pd.DataFrame([dict(rows[i]) for i in there], index=X.index[there]).astype(X.dtypes)
    changed = clf.predict(after[X.columns]) != labels[there]
    far[there] = np.where(changed, distances(clf.model_, X.iloc[there], after), np.nan)
    return float(changed.sum() / len(rows)), far


HEADER = (
    "table", "split", "model", "method", "valid", "median ms", "largest ms", "columns changed",
    "mean L2", "nearest row: columns", "nearest row: mean L2", "mean proved bound",
)  # fmt: skip


def counterfactuals(options: argparse.Namespace) -> list[str]:
    tables = {"wdbc": wdbc(), "mixed": mixed()}
    for name in ("adult", "credit_g"):
        if (options.data / f"{name}.parquet").exists():
            tables[name] = given(options.data / f"{name}.parquet", "target")
    if options.table:
        tables[options.table.stem] = given(options.table, options.target)
    names = options.only.split(",") if options.only else [n for n in tables if n != "mixed"]
    body: list[list[str]] = []
    notes: list[str] = []
    for name in names:
        for seed in range(options.splits):
            parts = split(*tables[name], options.rows, seed)
            lines, more = _one_split(name, seed, parts, options if seed == 0 else None)
            body += lines
            notes += more
            print("\n".join(map(str, lines)), flush=True)
    if options.dice and not _has_dice():
        notes.append("- dice-ml is not installed here, so DiCE was not measured.")
    return [
        "",
        f"{options.rows} test rows of each split, default models fitted on the other rows (at most "
        f"{MOST_ROWS:,}). Valid: the model predicts another class for the row that was found, its "
        "cells cast to the types of the columns. Columns changed: the median. L2 in standard "
        "deviations of the training rows, a changed level counting one. Nearest row: "
        f"`sparse=None`. A row's time is the shortest of {REPEATS} calls (DiCE: one call).",
        "",
        *table(HEADER, body),
        "",
        *notes,
    ]


def _one_split(
    name: str, seed: int, parts: tuple[Any, ...], options: argparse.Namespace | None
) -> tuple[list[list[str]], list[str]]:
    """Lines of the table, and notes; options : None leaves DiCE out."""
    X_train, X_test, y_train, _ = parts
    clf = GeometricMixtureClassifier(random_state=0).fit(X_train, y_train)
    model, labels = clf.model_, clf.predict(X_test)
    n_pairs = len(additive(model).pairs)
    kind = f"{model.lift.kind}, {model.planes.n_planes} planes" + f", {n_pairs} pairs" * bool(
        n_pairs
    )
    rows, seconds, found = ours(clf, X_test)
    valid, far = valid_and_far(clf, X_test, rows, labels)
    dense, _, free = ours(clf, X_test, sparse=None)
    counts = [[len(one.changes) for one in some] for some in (found, free)]
    free_far = valid_and_far(clf, X_test, dense, labels)[1]
    bound = float(np.mean([one.lower_bound for one in found]))
    last = (f"{np.median(counts[1]):.0f}", f"{np.nanmean(free_far):.3f}", f"{bound:.3f}")
    start = (name, str(seed), kind)
    lines = [_line((*start, "geomix"), valid, seconds, counts[0], far, last)]
    notes = []
    for method in options.dice.split(",") if options and options.dice and _has_dice() else []:
        theirs, seconds = dices(clf, X_train, y_train, X_test, method)
        valid, other = valid_and_far(clf, X_test, theirs, labels)
        counts_of = _n_changed(X_test, theirs)
        lines.append(_line((*start, f"DiCE {method}"), valid, seconds, counts_of, other, ("",) * 3))
        both = ~np.isnan(far) & ~np.isnan(other)
        if both.any():
            notes.append(
                f"- {name}: on {both.sum()} rows that both have, geomix {far[both].mean():.3f}, "
                f"DiCE {method} {other[both].mean():.3f}; geomix is nearer on "
                f"{(far[both] <= other[both]).mean():.1%}."
            )
    return lines, notes


def _n_changed(X: pd.DataFrame, rows: list[Any]) -> list[int]:
    there = [i for i, row in enumerate(rows) if row is not None]
    after = pd.DataFrame([dict(rows[i]) for i in there], index=X.index[there]).astype(X.dtypes)
    return (X.iloc[there] != after[X.columns]).sum(axis=1).tolist() if there else []


def _line(
    start: tuple[str, ...], valid: float, seconds: Any, counts: Any, far: Any, last: Any
) -> list[str]:
    ms = 1e3 * np.array(seconds)
    mean = np.nanmean(far) if (~np.isnan(far)).any() else np.nan
    n_changed = f"{np.median(counts):.0f}" if len(counts) else ""
    return [
        *start, f"{valid:.1%}", f"{np.median(ms):.1f}", f"{ms.max():.1f}", n_changed,
        f"{mean:.3f}", *last,
    ]  # fmt: skip


def _has_dice() -> bool:
    try:
        import dice_ml  # noqa: F401
    except ImportError:
        return False
    return True


# --- certificates ---


def certificates(options: argparse.Namespace) -> list[str]:
    lines = [
        "## Certificates",
        "",
        f"100 rows each; {options.attacks} random attacks and 100 gradient steps per row "
        "and norm, all within the certified radius.",
        "",
        "| table | model | norm | mean radius | mean counterfactual distance | attacks | broken |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    settings = {
        "linear, 3 planes": {"lift": "linear", "n_planes": 3},
        "spline": {"lift": "spline", "n_planes": 1},
        "spline ensemble": {"lift": "spline", "n_planes": 3},
    }
    X, y = wdbc()
    X_train, X_test, y_train, _ = split(X, y, 100)
    for kind, chosen in settings.items():
        clf = GeometricMixtureClassifier(random_state=0, **chosen).fit(X_train, y_train)
        model = clf.model_
        far = np.mean([model.counterfactual(row).distance for row in X_test.to_numpy()])
        for norm in (2, 1, np.inf):
            found = model.certify(X_test, norm)
            n_attacks, n_broken = attacked(model, X_test.to_numpy(), found, norm, options.attacks)
            shown = f"{far:.3f}" if norm == 2 else ""
            lines.append(
                f"| wdbc | {kind} | {norm} | {found.radius.mean():.4f} | {shown} | {n_attacks} | "
                f"{n_broken} |"
            )
            print(lines[-1], flush=True)
    return lines


def attacked(model: Any, rows: Any, found: Any, norm: float, n_random: int) -> tuple[int, int]:
    """Attacks made, and how many changed an answer."""
    rng = np.random.default_rng(0)
    scale = np.array([shape.scale for shape in additive(model).shapes])
    n_attacks = n_broken = 0
    for row, radius, label in zip(rows, found.radius, found.labels, strict=True):
        radius *= 1.0 - 1e-12
        V = rng.standard_normal((n_random, len(row)))
        V[rng.random(V.shape) < 0.9 * rng.random((n_random, 1))] = 0.0
        if norm == np.inf:
            V = np.sign(V)
        V *= radius / np.maximum(np.linalg.norm(V, norm, axis=1, keepdims=True), 1e-12)
        points = np.vstack([row + V * scale, _walk(model, row, radius, norm, scale)])
        n_broken += int((model.predict(points) != label).sum())
        n_attacks += len(points)
    return n_attacks, n_broken


def _walk(model: Any, row: Any, radius: float, norm: float, scale: Any, steps: int = 100) -> Any:
    """Down the margin's slope, kept within the ball."""
    label = model.class_scores(row[None])[0].argmax()
    here, seen = row, []
    for step in range(steps):
        S = model.class_scores(here[None])[0]
        S[label] = -np.inf
        rival = S.argmax()
        small = 1e-4 * scale
        around = np.vstack([here + np.diag(small), here - np.diag(small)])
        margins = model.class_scores(around)
        above, below = np.split(margins[:, rival] - margins[:, label], 2)
        slope = above - below
        push = np.sign(slope) if norm == np.inf else slope
        if norm == 1:
            push = np.where(np.arange(len(row)) == np.abs(slope).argmax(), np.sign(slope), 0.0)
        size = np.linalg.norm(push, norm)
        delta = (here - row) / scale + radius * (0.5 / (1 + step) ** 0.5) * push / max(size, 1e-12)
        delta *= min(1.0, radius / max(np.linalg.norm(delta, norm), 1e-300))
        here = row + delta * scale
        seen.append(here)
    return np.array(seen)


# --- contributions ---


def contributions(options: argparse.Namespace) -> list[str]:
    lines = [
        "## Contributions",
        "",
        "Largest difference between the sum of a row's parts and its margin, all rows.",
        "",
        "| table | model | rows | largest difference | us per row |",
        "|---|---|---:|---:|---:|",
    ]
    settings = {
        "linear": {"lift": "linear"},
        "linear, 4 planes": {"lift": "linear", "n_planes": 4},
        "spline": {"lift": "spline", "n_planes": 1},
        "spline ensemble": {"lift": "spline", "n_planes": 4},
    }
    for name, (X, y) in {"wdbc": wdbc(), "mixed": mixed()}.items():
        for kind, chosen in settings.items():
            model = GeometricMixtureClassifier(random_state=0, **chosen).fit(X, y).model_
            start = time.process_time()
            found = model.explain_local(X)
            seconds = time.process_time() - start
            total = found.contributions.sum(axis=1) + found.bias + found.pooling
            S = model.class_scores(X)
            rows = np.arange(len(X))
            margin = S[rows, found.labels] - S[rows, found.against]
            off = np.abs(total - margin).max()
            lines.append(
                f"| {name} | {kind} | {len(X)} | {off:.1e} | {1e6 * seconds / len(X):.0f} |"
            )
            print(lines[-1], flush=True)
    return lines


def conditions() -> str:
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    core = "native" if kernel.is_native else "NumPy"
    return (
        f"Python {platform.python_version()}; kernel: {core}; {', '.join(versions)}. One thread, "
        f"processor time. Made by `python {' '.join(['benchmarks/reading.py', *_arguments()])}`."
    )


def _arguments() -> list[str]:
    return [Path(one).name if "/" in one else one for one in sys.argv[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--attacks", type=int, default=10_000)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with adult, credit_g, car")
    parser.add_argument("--simulations", type=int, default=20)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--target")
    parser.add_argument("--only", help="names of tables, such as wdbc,mixed,adult,credit_g")
    parser.add_argument("--dice", default="genetic")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    makers = {
        "counterfactuals": lambda options: ["## Counterfactuals", *counterfactuals(options)],
        "certificates": certificates,
        "contributions": contributions,
        "rules": lambda options: ["## Rules", "", *rules(options)],
        "nearest": lambda options: [
            "## Counterfactuals against brute force", "", *nearest(options),
        ],
        "bands": lambda options: ["## Coverage of the bands of effects", "", *bands(options)],
        "pictures": lambda options: ["## Effects beside EBM's", "", *pictures(options)],
    }  # fmt: skip
    before = options.output.read_text() if options.output.exists() else TITLE
    for part in options.parts:
        heading, *lines = makers[part](options)
        text = "\n".join([heading, "", conditions(), *lines])
        before = with_section(before, text)
        options.output.write_text(before)


def with_section(page: str, section: str) -> str:
    """The page with a section in the place of the one of the same heading, or at its end."""
    heading = section.split("\n", 1)[0]
    parts = re.split(r"\n(?=## )", page.rstrip("\n"))
    places = [i for i, part in enumerate(parts) if part.split("\n", 1)[0] == heading]
    section = section.rstrip("\n") + "\n"
    if places:
        parts[places[0]] = section
    else:
        parts.append(section)
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


if __name__ == "__main__":
    main()
