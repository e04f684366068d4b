"""Few labels: supervised, self-training, LabelSpreading and geomix's semi-supervised classifier.

    python benchmarks/future/semi_supervised.py [--data FOLDER] [--seeds 5] [--first-seed 10]
                                                [--tables digits,adult] [--weights]

A fifth of each table is for testing (at most 4,000 rows). Of the rest some rows keep their label,
at most 4,000 others are unlabelled, and all models get both parts. The base estimator of the first
three models is the same: "fast" has one spline plane per class, "kernel" one plane over Fourier
features. LabelSpreading has seven neighbours and gets standardised one-hot columns, or, "raw",
columns as they are; it predicts new rows from the labels of their neighbours. Seeds start at 10:
the weight of an unlabelled row (0.3) was picked on the split of seed 0.

``--weights`` compares that weight with others, on the same seeds.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from runs import RESULTS, arguments, chosen, load, measure, page, seeds_of
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from geomix import GeometricMixtureClassifier, SemiSupervisedClassifier
from geomix.semi_supervised import classifier

SETTINGS = {
    "digits": (50, 100),
    "satimage": (0.01, 0.05),
    "letter": (0.01, 0.05),
    "adult": (0.01, 0.05),
}
BASES: dict[str, dict[str, Any]] = {
    "fast": {"preset": "fast"},
    "kernel": {"lift": "fourier", "n_planes": 1, "l2": 1e-5, "adaptive_penalty": False},
}
MODELS = (
    "supervised fast", "self-training fast", "geomix fast", "supervised kernel", "geomix kernel",
    "LabelSpreading", "LabelSpreading raw",
)  # fmt: skip
FIGURES = ("accuracy", "log-loss", "uses unlabelled rows")
FIRST_FRESH_SEED = 10
# For --weights: a setting of each table, the weights of an unlabelled row, and the base.
WEIGHED = {"digits": 50, "satimage": 0.05, "letter": 0.05, "adult": 0.01}
WEIGHTS = (0.1, 0.3, 1.0)
MOST_UNLABELLED, MOST_TESTED = 4_000, 4_000
# Two rows of every class at least, so that each class is known without a fold's rows.
FEWEST_PER_CLASS = 2


@functools.lru_cache(maxsize=2)
def rows(name: str, labels: float, seed: int, data: Path) -> Any:
    """X, y with -1, X_test, y_test."""
    X, y = load(name, data)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    n_labels = int(labels if labels > 1 else labels * len(y))
    n_labels = max(n_labels, FEWEST_PER_CLASS * len(np.unique(y)))
    known, rest = train_test_split(
        np.arange(len(y)), train_size=n_labels, stratify=y, random_state=seed
    )
    rest = rest[:MOST_UNLABELLED]
    partly = np.concatenate([y[known], np.full(len(rest), -1)])
    X = X.iloc[np.concatenate([known, rest])].reset_index(drop=True)
    return X, partly, X_test[:MOST_TESTED], y_test[:MOST_TESTED]


def numbers_of(X: pd.DataFrame, scaled: bool) -> Any:
    """A transformer of the columns to complete numbers."""
    steps = [SimpleImputer(), StandardScaler()] if scaled else [SimpleImputer()]
    return make_column_transformer(
        (make_pipeline(*steps), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def fitted(model: str, X: Any, y: Any) -> Any:
    known = y >= 0
    if model.startswith("LabelSpreading"):
        spreading = LabelSpreading(kernel="knn", n_neighbors=7, max_iter=200)
        return make_pipeline(numbers_of(X, not model.endswith("raw")), spreading).fit(X, y)
    kind, base = model.split()
    estimator = GeometricMixtureClassifier(**BASES[base], random_state=0)
    if kind == "supervised":
        return estimator.fit(X[known], y[known])
    if kind == "self-training":
        return SelfTrainingClassifier(estimator).fit(X, y)
    return SemiSupervisedClassifier(estimator, random_state=0).fit(X, y)


def run_weight(name: str, labels: str, weight: str, seed: int, data: Path) -> list[float]:
    """The semi-supervised spline model with another weight of an unlabelled row."""
    usual = classifier.UNLABELLED_WEIGHT
    classifier.UNLABELLED_WEIGHT = float(weight.split()[-1])
    try:
        return run(name, labels, "geomix fast", seed, data)
    finally:
        classifier.UNLABELLED_WEIGHT = usual


def run(name: str, labels: str, model: str, seed: int, data: Path) -> list[float]:
    X, y, X_test, y_test = rows(name, float(labels.split()[0]), seed, data)
    found = fitted(model, X, y)
    P = np.clip(np.nan_to_num(found.predict_proba(X_test)), 1e-6, None)
    P /= P.sum(axis=1, keepdims=True)
    choice = getattr(found, "choice_", None)
    used = np.nan if choice is None else float(choice.uses_unlabelled)
    accuracy = accuracy_score(y_test, found.predict(X_test))
    return [accuracy, log_loss(y_test, P, labels=found.classes_), used]


def main() -> None:
    options = arguments(__doc__, 5, SETTINGS, first_seed=FIRST_FRESH_SEED, flag="--weights")
    tables, about = options.tables.split(","), __doc__.split("\n\n")[2]
    if options.weights:
        path, title = RESULTS / "semi_supervised_weights.csv", "Weight of an unlabelled row"
        models: Any = [f"weight {weight:g}" for weight in WEIGHTS]
        settings, measured = {name: (WEIGHED[name],) for name in tables}, run_weight
    else:
        path, title, models = RESULTS / "semi_supervised.csv", "Few labels", MODELS
        settings, measured = {name: SETTINGS[name] for name in tables}, run
    wanted = [
        (name, f"{labels:g} labels" if labels > 1 else f"{labels:g} of the labels", model, seed)
        for seed in seeds_of(options)
        for name in tables
        for labels in settings[name]
        for model in chosen(options, models)
    ]
    if not options.report:
        measure(path, FIGURES, wanted, functools.partial(measured, data=options.data))
    page(path, title, FIGURES, {"accuracy", "uses unlabelled rows"}, about)


if __name__ == "__main__":
    main()
