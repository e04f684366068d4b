"""Two small models with pairs of columns, made once: numbers only, and categories with missing
cells. The tables are made so that no sum of curves fits them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from making import classifier

from geomix.core.planes import Planes

SETTINGS = {"lift": "spline", "l2": 1e-3, "max_iter": 60, "random_state": 0}


@cache
def numbers_table():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((400, 4)), 2)
    score = 2.0 * X[:, 0] * X[:, 1] + X[:, 2] + X[:, 1] * X[:, 2]
    return X, (score + 0.5 * rng.standard_normal(400) > 0.3).astype(int)


@cache
def mixed_pairs_table():
    rng = np.random.default_rng(1)
    age = rng.integers(18, 80, 400).astype(float)
    income = np.round(rng.lognormal(3.0, 0.6, 400), 1)
    job = rng.choice(["clerk", "cook <b>", "nurse"], 400)
    home = rng.choice(["rent", "own"], 400)
    score = np.where(job == "nurse", 1.0, -1.0) * (age - 45.0) / 12.0
    score = score + np.where(home == "own", 1.0, -1.0) * np.where(job == "clerk", 1.0, -0.5)
    score = score + np.log(income) - 3.0
    X = pd.DataFrame({"age": age, "income": income, "job": job, "home": home})
    X.loc[rng.random(400) < 0.1, "age"] = np.nan
    X.loc[rng.random(400) < 0.1, "job"] = None
    names = np.array(["high", "low", "middle"])
    noisy = score + 0.4 * rng.standard_normal(400)
    return X, names[np.where(noisy > 1.0, 0, np.where(noisy < -0.7, 1, 2))]


TABLES = {"numbers": numbers_table, "mixed": mixed_pairs_table}
PAIRED = [*TABLES, "two planes"]


@cache
def paired(name):
    """(model, X, y) of a model that has pairs."""
    if name == "two planes":
        return two_planes(*paired("numbers"))
    X, y = TABLES[name]()
    model = classifier(n_planes=1, max_interactions=3, **SETTINGS).fit(X, y).model_
    assert model.lift.n_pairs
    return model, X, y


def two_planes(model, X, y):
    """Every plane twice, moved apart at random: pairs with several planes per class."""
    rng = np.random.default_rng(2)
    weights = np.repeat(model.planes.weights, 2, axis=0)
    weights = weights * rng.uniform(0.4, 1.6, weights.shape)
    planes = Planes(weights, np.repeat(model.planes.biases, 2), np.array([0, 2, 4]))
    return replace(model, planes=planes), X, y
