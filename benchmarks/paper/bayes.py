"""The best possible classifier of the sets whose generator is known: moons, circles, aniso.

    p(c | x) = p(x | c) / sum_k p(x | k),   equal classes

moons, circles: p(x | c) is the mean of N(x; point, noise^2 I) over points of the curve; aniso:
p(x | c) is the normal density that the rows were drawn from. ``accuracy`` is on the test rows of a
seed: no model can be better in the long run, but on 800 rows one may be, by luck. ``RATE`` is the
long run, on fresh draws of the generator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from geomix import datasets
from paper.data import load, split_rows

POINTS_OF_A_CURVE = 400
# ``long_run`` of ten draws, 40,000 rows and more.
RATE = {"moons": 0.944, "circles": 0.999, "aniso": 0.811}


def arcs() -> list[Any]:
    """Points of the two half circles, as scikit-learn's make_moons places them."""
    t = np.linspace(0.0, np.pi, POINTS_OF_A_CURVE)
    return [
        np.column_stack([np.cos(t), np.sin(t)]),
        np.column_stack([1.0 - np.cos(t), 0.5 - np.sin(t)]),
    ]


def rings() -> list[Any]:
    t = np.linspace(0.0, 2.0 * np.pi, POINTS_OF_A_CURVE, endpoint=False)
    ring = np.column_stack([np.cos(t), np.sin(t)])
    return [ring, datasets.CIRCLES_FACTOR * ring]


def around(curves: list[Any], noise: float) -> Callable[[Any], Any]:
    """Densities around curves, up to a common factor: (n_rows, n_classes)."""

    def densities(X: Any) -> Any:
        found = []
        for curve in curves:
            squared = ((X[:, None, :] - curve[None, :, :]) ** 2).sum(axis=2)
            found.append(np.exp(-squared / (2.0 * noise**2)).mean(axis=1))
        return np.column_stack(found)

    return densities


def blobs(X: Any) -> Any:
    turns = np.deg2rad(datasets.ANISO_DEGREES)
    found = []
    for code, turn in enumerate(turns):
        bearing = np.pi / 2 + 2 * np.pi * code / len(turns)
        centre = datasets.ANISO_RADIUS * np.array([np.cos(bearing), np.sin(bearing)])
        cos, sin = np.cos(turn), np.sin(turn)
        along, across = ((X - centre) @ np.array([[cos, -sin], [sin, cos]])).T
        scaled = np.column_stack([along, across]) / datasets.ANISO_SPREAD
        found.append(np.exp(-0.5 * (scaled**2).sum(axis=1)))
    return np.column_stack(found)


DENSITIES: dict[str, Callable[[Any], Any]] = {
    "moons": around(arcs(), datasets.MOONS_NOISE),
    "circles": around(rings(), datasets.CIRCLES_NOISE),
    "aniso": blobs,
}


@cache
def accuracy(name: str, seed: int) -> float:
    """Accuracy of the best possible classifier on the test rows of a seed."""
    data = load(name)
    split = split_rows(data.X, data.y, seed)
    return float((DENSITIES[name](split.X_test).argmax(axis=1) == split.y_test).mean())


@cache
def long_run(name: str, n_draws: int = 10) -> float:
    """Accuracy of the best possible classifier on fresh draws of the generator."""
    right = []
    for draw in range(1, n_draws + 1):
        data = datasets.load(name, random_state=draw)
        right.append((DENSITIES[name](data.X).argmax(axis=1) == data.y).mean())
    return float(np.mean(right))
