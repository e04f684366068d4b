"""Few rows and rare classes: the two limitations of data that the paper names.

    few rows      10, 20, 40 and 80 training rows of each class, and half as many for validation
    rare class    the last class with a tenth and a fiftieth of its training and validation rows

Test rows stay as they are. A class that is rare in training is then frequent among them, so the
table of rare classes shows macro-F1, and not the log-loss of a prior that is wrong on purpose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from paper.data import Split

SETS = ("moons", "wdbc", "digits")
COMPARED = ("geomix", "geomix_paper", "logistic", "rbf_svm", "forest")
ROWS_PER_CLASS = (10, 20, 40, 80)
RARE_SHARES = {"a tenth": 0.1, "a fiftieth": 0.02}
FEWEST = 2  # of a class, in training and in validation rows: less cannot be stratified
SEEDS = 3

FEW = {f"{n} rows per class": n for n in ROWS_PER_CLASS}
RARE = {f"last class {words} of its rows": share for words, share in RARE_SHARES.items()}


def key(model: str, restriction: str) -> str:
    return f"{model}: {restriction}"


VARIANTS = {
    key(model, restriction): (model, restriction)
    for restriction in (*FEW, *RARE)
    for model in COMPARED
}


def restricted(split: Split, restriction: str, seed: int) -> Split:
    """The split with fewer training and validation rows."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(split.y_train)
    if restriction in FEW:
        train = np.minimum(counts, FEW[restriction])
        valid = np.minimum(np.bincount(split.y_valid), max(FEW[restriction] // 2, FEWEST))
    else:
        share = np.ones(len(counts))
        share[-1] = RARE[restriction]
        train, valid = (
            np.maximum((share * np.bincount(y)).astype(int), FEWEST)
            for y in (split.y_train, split.y_valid)
        )
    X_train, y_train = _some(split.X_train, split.y_train, train, rng)
    X_valid, y_valid = _some(split.X_valid, split.y_valid, valid, rng)
    return replace(
        split,
        X_train=X_train,
        y_train=y_train,
        X_valid=X_valid,
        y_valid=y_valid,
        X_learn=np.concatenate([X_train, X_valid]),
        y_learn=np.concatenate([y_train, y_valid]),
    )


def _some(X: Any, y: Any, counts: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """``counts[c]`` random rows of each class, in random order."""
    picked = [rng.permutation(np.flatnonzero(y == code))[:n] for code, n in enumerate(counts)]
    index = rng.permutation(np.concatenate(picked))
    return X[index], y[index]
