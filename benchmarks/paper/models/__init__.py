"""The models of the comparison, one small file each. To add one, add a file here that defines

    NAME = "My model"              what our tables call it
    PAPER = "LR"                   what the paper's tables call it; None: it is not in them
    NEEDS = ("sklearn",)           modules that it imports; where one is missing, the model is
                                   left out with a note
    PACKAGES = ("scikit-learn",)   whose versions are written down

    def fit(split, seed):          ``paper.data.Split``: standardise, search, refit
        ...
        return Fitted(...)

The name of the file is its key in ``results.csv``. A scikit-learn classifier with a grid is
three lines over ``_grid.search_and_fit``; files that start with an underscore are shared parts.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from timing import Span

from geomix import GeometricMixture

# The paper's order of columns, then those of its comparison.
ORDER = (
    "GMC", "RBF-SVM", "LinSVM", "LR", "k-NN", "RF", "XGBoost", "LightGBM", "MLP", "GAM", "EBM",
)  # fmt: skip
OURS = ("geomix", "geomix_paper", "geomix_linear")
GLASS_BOX = ("geomix", "geomix_linear", "geomix_paper", "gam", "ebm")


@dataclass(frozen=True, eq=False)
class OneRow:
    """A call that predicts one row. ``flat``: the row is 1-d, otherwise a table of one row.

    ``prepared`` turns rows into what the path takes, outside the clock (None: as they are).
    """

    ask: Callable[[Any], Any]
    flat: bool = False
    prepared: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class Score:
    """rows -> codes, and rows -> probabilities after temperature scaling."""

    predict: Callable[[Any], Any]
    after: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that has learnt.

    predict, before, after : rows -> codes; probabilities without and with temperature scaling
    paths : ways to ask about one row, by name
    fit, total : time of the final fit, and of all with the search before it
    contributions : rows -> (n_rows, n_terms), what each term of the explanation adds to the score
        of the predicted class; None where the model is no sum over columns
    terms : the columns of each term, by place; empty where they are the columns in order
    mixture : the geomix model itself, for its responsibilities
    on_train : the same model fitted on the training rows alone, as the recipe is; None where
        ``predict`` and ``after`` are that already
    """

    predict: Callable[[Any], Any]
    before: Callable[[Any], Any]
    after: Callable[[Any], Any]
    paths: dict[str, OneRow]
    fit: Span
    total: Span
    chosen: str
    contributions: Callable[[Any], Any] | None = None
    terms: tuple[tuple[int, ...], ...] = ()
    mixture: GeometricMixture | None = None
    on_train: Score | None = None


@dataclass(frozen=True)
class Model:
    key: str
    name: str
    paper: str | None
    needs: tuple[str, ...]
    packages: tuple[str, ...]
    fit: Callable[[Any, int], Fitted]

    @property
    def lacks(self) -> list[str]:
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


def get(key: str) -> Model:
    return described(key, importlib.import_module(f"{__name__}.{key}"))


def described(key: str, file: ModuleType) -> Model:
    return Model(key, file.NAME, file.PAPER, file.NEEDS, file.PACKAGES, file.fit)


def every() -> dict[str, Model]:
    """All models by key: geomix, then the paper's order, then others by name."""
    found = [get(file.name) for file in pkgutil.iter_modules(__path__) if file.name[0] != "_"]

    def place(model: Model) -> tuple[int, int, str]:
        ours = OURS.index(model.key) if model.key in OURS else len(OURS)
        return ours, ORDER.index(model.paper) if model.paper else len(ORDER), model.key

    return {model.key: model for model in sorted(found, key=place)}
