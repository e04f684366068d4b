"""Small models of every kind, for tests of what is written from a model.

Each is a model and a table of raw rows to ask it: cells that were missing, levels never seen and
numbers beyond the training rows among them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from making import classifier
from pair_models import paired

from geomix.core.planes import Planes, class_starts
from geomix.core.spline import fit_spline
from geomix.model import GeometricMixture
from geomix.table.row_views import all_rows

QUICK = {
    "l2": 1e-3, "shrink_to_mean": 0.0, "gamma": 0.1, "n_frequencies": 8, "n_knots": 6, "max_iter":
    25, "random_state": 0,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    model: GeometricMixture
    rows: Any


def numbers(n_rows=160, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * [10.0**j for j in range(n_columns)]
    y = (X[:, 0] > 0.3).astype(int) + (np.abs(X[:, 1]) > 12.0)
    return X, y


def mixed(n_rows=220, seed=0):
    """Number with holes, number, text with holes and two odd names, integer codes; two classes."""
    rng = np.random.default_rng(seed)
    size = np.round(rng.normal(40.0, 10.0, n_rows), 1).astype(object)
    other = np.round(rng.normal(-1.0, 2.0, n_rows), 2).astype(object)
    colour = rng.choice(["red", "green", 'it\'s "blue"\n', ""], n_rows).astype(object)
    code = rng.choice([7, -1, 2**60], n_rows).astype(object)
    score = (size.astype(float) - 40.0) / 10.0 + 1.5 * (colour == "red") + (code == 7)
    y = np.where(score + rng.normal(0.0, 0.7, n_rows) > 0.9, "yes", "no: never")
    size[rng.random(n_rows) < 0.15] = None
    colour[rng.random(n_rows) < 0.1] = None
    colour[:2] = "rare", "also rare"
    return np.column_stack([size, other, colour, code]), y


def odd_rows(X):
    """Rows of ``mixed``, and cells that training never had."""
    extra = [
        [None, None, None, None],
        [1e9, -1e9, "never seen", 8],
        [40.0, 0.0, "", 2**60],
        [None, 3.5, "red", -1],
    ]
    return np.concatenate([X[:40], np.array(extra, dtype=object)])


ENSEMBLE = {"preset": "accurate"}  # the preset that allows one


def of_numbers(**parameters):
    X, y = numbers()
    labels = parameters.pop("labels", None)
    y = y if labels is None else np.array(labels)[y]
    model = classifier(**{**QUICK, **parameters}).fit(X, y).model_
    return Case(model, np.concatenate([X[:40], [[1e200, -1e200, 0.0], [np.nan, 1.0, np.nan]]]))


def of_mixed(**parameters):
    X, y = mixed()
    settings = {**QUICK, "categorical_features": [3], **parameters}
    return Case(classifier(**settings).fit(X, y).model_, odd_rows(X))


def with_holes(**parameters):
    """Numbers alone, some of them missing."""
    X, y = numbers()
    X[::7, 1] = np.nan
    return Case(classifier(**{**QUICK, **parameters}).fit(X, y).model_, X[:40])


def with_pairs():
    """A spline of curves, levels and pairs of every sort; planes drawn at random."""
    case = of_mixed(lift="spline", n_planes=1, n_members=1)
    table, X = case.model.schema, case.model.schema.encode(mixed()[0])
    pairs = ((0, 1), (0, 2), (3, 2))
    lift = fit_spline(all_rows(X), np.ones(len(X)), table.n_levels, 5, pairs)
    rng = np.random.default_rng(0)
    start = class_starts([2, 2])
    weights = rng.normal(size=(4, lift.n_outputs))
    planes = Planes(weights, rng.normal(size=4), start)
    feature_map = case.model.feature_map.with_lift(lift)
    return Case(replace(case.model, feature_map=feature_map, planes=planes), case.rows)


def fitted_pairs():
    """Pairs that a fit found, among numbers and categories with missing cells."""
    model, X, _ = paired("mixed")
    rows = X.astype(object).where(X.notna(), None).to_numpy()[:80]
    extra = [[1e9, -1.0, "never seen", "own"], [None, None, None, None]]
    return Case(model, np.concatenate([rows, np.array(extra, dtype=object)]))


def constant():
    """No column varies: planes without weights."""
    X, y = np.ones((30, 3)), np.arange(30) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = classifier(**QUICK).fit(X, y).model_
    return Case(model, np.ones((3, 3)))


MAKERS = {
    "linear": lambda: of_numbers(lift="linear", n_planes=2),
    "linear one plane": lambda: of_numbers(lift="linear", n_planes=1, labels=[2.0, 3.0, 5.0]),
    "linear rotated": lambda: of_numbers(lift="linear", n_planes=2, pca=2),
    "linear as it is": lambda: of_numbers(lift="linear", n_planes=2, standardize=False),
    "linear mixed": lambda: of_mixed(lift="linear", n_planes=2),
    "linear holes": lambda: with_holes(lift="linear", n_planes=2),
    "spline": lambda: of_numbers(
        lift="spline", n_planes=1, max_interactions=0, labels=["a", "b", "ü\U0001f600"]
    ),
    "spline committee": lambda: of_numbers(lift="spline", n_planes=2, **ENSEMBLE, n_members=3),
    "spline mixed": lambda: of_mixed(lift="spline", n_planes=2, **ENSEMBLE, n_members=2),
    "spline pairs": with_pairs,
    "fitted pairs": fitted_pairs,
    "spline holes": lambda: with_holes(lift="spline", n_planes=1, max_interactions=0),
    "fourier": lambda: of_numbers(lift="fourier", n_planes=2),
    "fourier mixed": lambda: of_mixed(lift="fourier", n_planes=1),
    "fourier rotated": lambda: of_numbers(lift="fourier", n_planes=1, pca=2),
    "constant": constant,
}  # fmt: skip


@cache
def case(name) -> Case:
    return MAKERS[name]()


def exported_rows(name):
    """Rows that another program can be held to: the cosine of an angle of a billion depends on
    the last bit of every number before it, so a Fourier model is asked about its own range."""
    rows = case(name).rows
    if case(name).model.lift.kind != "fourier":
        return rows
    encoded = case(name).model.schema.encode(rows)
    return rows[~(np.abs(encoded) > 1e6).any(axis=1)]
