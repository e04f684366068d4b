"""The conceptual comparison: how each family of models makes a class of a row, and what that costs.

The words are ours; where the paper's table has a judgement ("low", "high"), this one has what was
measured: the terms of an explanation, and the time of one row by the quickest path.
"""

from __future__ import annotations

import numpy as np

from paper import data
from paper.results import Results
from paper.tables import SCORER, Cell, Table, one_row

# name, models whose times and terms are shown, within a class, between classes, what can be read
FAMILIES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("logistic, linear SVM", ("logistic", "linear_svm"), "one plane", "softmax or margin",
     "one weight for each column and class"),
    ("kernel SVM", ("rbf_svm",), "sum of kernels over support vectors", "votes of pairs of classes",
     "support vectors"),
    ("nearest neighbours", ("knn",), "count of neighbours", "largest count", "the neighbours"),
    ("forest, boosted trees", ("forest", "xgboost", "lightgbm"), "sum over trees",
     "mean of votes, or softmax", "importance of columns, afterwards"),
    ("perceptron", ("mlp",), "layers shared by all classes", "softmax", "nothing directly"),
    ("GAM, EBM", ("gam", "ebm"), "sum of curves and pairs", "softmax or one against the rest",
     "a curve for each column"),
    ("GMC (geomix)", ("geomix", "geomix_linear"), "soft-OR of planes", "softmax",
     "the plane that answered: a weight or a curve for each column"),
)  # fmt: skip
COLUMNS = ("within a class", "between classes", "what can be read", "terms", "one row, us")


def concept_table(results: Results) -> Table:
    rows = []
    for name, keys, within, between, read in FAMILIES:
        terms, times = _terms(results, keys), _times(results, keys)
        words = [Cell(words=text) for text in (within, between, read)]
        rows.append((name, (*words, _range(terms, 0), _range(times, 1))))
    note = (
        "Terms: fewest that hold 90 % of an explanation, smallest and largest mean over the data "
        "sets; – where the model is no sum over columns. One row: quickest path, as in the tables "
        "of cost, over the data sets."
    )
    return Table("concepts", "Families of models", note, COLUMNS, tuple(rows), "family")


def _terms(results: Results, keys: tuple[str, ...]) -> list[float]:
    found = [results.mean(name, key, "terms") for name in data.names() for key in keys]
    return [one for one in found if not np.isnan(one)]


def _times(results: Results, keys: tuple[str, ...]) -> list[float]:
    found = [one_row(results, name, key, SCORER) for name in data.names() for key in keys]
    return [one[1] for one in found if one is not None]


def _range(numbers: list[float], digits: int) -> Cell:
    if not numbers:
        return Cell()
    low, high = min(numbers), max(numbers)
    return Cell(words=f"{low:,.{digits}f} to {high:,.{digits}f}")
