"""Data sets by name, and the one way in which all models see them.

The eight of the paper come from ``geomix.datasets``; a file in ``sets/`` adds one more.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

from sklearn.model_selection import train_test_split

from geomix import datasets
from geomix.datasets import Dataset
from paper import adult, sets

SYNTHETIC = ("moons", "circles", "aniso", "spirals")
# The sets of the paper's responsibility and usage tables, and of its comparison with GAM and EBM.
APPENDIX = ("moons", "circles", "wine", "wdbc", "digits")
# The comparison with GAM and EBM has one more, which no other table has.
GLASS_ONLY = (adult.NAME,)
# Two synthetic and two real ones, as in the paper's appendix.
ABLATED = ("moons", "spirals", "wdbc", "digits")
# 30 to 114 test rows: three seeds are few.
SMALL = ("iris", "wine", "wdbc")


def names() -> tuple[str, ...]:
    """The paper's sets in the order of ``geomix.datasets``, then those of ``sets/``."""
    return (*datasets.NAMES, *(found.name for found in pkgutil.iter_modules(sets.__path__)))


def every() -> tuple[str, ...]:
    """All sets, those of the comparison with GAM and EBM alone included, if their file is there."""
    return (*names(), *(GLASS_ONLY if adult.is_there() else ()))


def load(name: str) -> Dataset:
    if name == adult.NAME:
        return adult.load()
    if name in datasets.NAMES:
        return datasets.load(name)
    found: Dataset = importlib.import_module(f"{sets.__name__}.{name}").load()
    return found


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and codes of the three parts, and of the 80 % that everyone learns from."""

    X_train: Any
    y_train: Any
    X_valid: Any
    y_valid: Any
    X_learn: Any
    y_learn: Any
    X_test: Any
    y_test: Any


def split_rows(X: Any, y: Any, seed: int) -> Split:
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=seed
    )
    X_train, X_valid, y_train, y_valid = train_test_split(
        X_learn, y_learn, test_size=0.25, stratify=y_learn, random_state=seed
    )
    return Split(X_train, y_train, X_valid, y_valid, X_learn, y_learn, X_test, y_test)
