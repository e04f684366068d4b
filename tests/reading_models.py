"""Small models of every kind for the tests of what reads a model, made once."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from making import classifier
from sklearn.datasets import load_breast_cancer, load_iris, load_wine


@cache
def mixed_table():
    """wine with a category, a rare category, and missing cells in a number and in a category."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5].copy()
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 3, len(X))
    X["colour"] = pd.Categorical.from_codes(
        np.where(rng.random(len(X)) < 0.6, y, noise), ["red <b>", "white", "rosé"]
    )
    X["stop"] = np.where(rng.random(len(X)) < 0.5, "cork", "screw")
    X.loc[rng.random(len(X)) < 0.2, "ash"] = np.nan
    X.loc[rng.random(len(X)) < 0.2, "stop"] = None
    return X, np.array(["barolo", "grignolino", "barbera"])[y]


@cache
def rotated_rows():
    """wdbc twice, so that there are more than 50 columns and pca turns them."""
    X, y = load_breast_cancer(return_X_y=True)
    return np.hstack([X, np.log1p(X)]), y


DATA = {
    "linear": lambda: load_iris(return_X_y=True),
    "several": lambda: load_wine(return_X_y=True),
    "rotated": rotated_rows,
    "spline": lambda: load_wine(return_X_y=True),
    "committee": lambda: load_wine(return_X_y=True),
    "mixed linear": mixed_table,
    "mixed spline": mixed_table,
    "mixed committee": mixed_table,
    "fourier": lambda: load_wine(return_X_y=True),
    "mixed fourier": mixed_table,
}
SETTINGS = {
    "linear": {"lift": "linear", "n_planes": 1},
    "several": {"lift": "linear", "n_planes": 3},
    "rotated": {"lift": "linear", "n_planes": 2},
    "spline": {"lift": "spline", "n_planes": 1},
    "committee": {"lift": "spline", "n_planes": 3, "preset": "accurate", "n_members": 4},
    "mixed linear": {"lift": "linear", "n_planes": 2},
    "mixed spline": {"lift": "spline", "n_planes": 2, "n_members": 1},
    "mixed committee": {"lift": "spline", "n_planes": 2, "preset": "accurate", "n_members": 3},
    "fourier": {"lift": "fourier", "n_planes": 2, "gamma": 0.02, "n_frequencies": 64},
    "mixed fourier": {"lift": "fourier", "n_planes": 1, "gamma": 0.02, "n_frequencies": 64},
}
ADDITIVE = [name for name in SETTINGS if "fourier" not in name]
FOURIER = [name for name in SETTINGS if "fourier" in name]


@cache
def fitted(name):
    """(model, X, y): the model was calibrated, so its temperature is not one."""
    X, y = DATA[name]()
    settings = {"l2": 1e-3, "shrink_to_mean": 0.0, "max_iter": 60, "random_state": 0} | SETTINGS[
        name
    ]
    clf = classifier(**settings).fit(X, y)
    return clf.model_, X, y
