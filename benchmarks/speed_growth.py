"""Part of ``speed.py``: how time grows with rows, columns, classes and planes.

Each number is an exponent: time ~ size ** exponent, from a base to four times as much of one kind,
the others held. Planes are random and rows are noise, so that no training or choice decides the
time; fits have a fixed number of iterations, and their time is the processor's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import speed_peers
from speed_fits import processor_seconds

from geomix import GeometricMixture, GeometricMixtureClassifier, Recipe
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap, spline_map
from geomix.core.lifts import IdentityLift, Standardize, draw_fourier
from geomix.core.planes import Planes, class_starts
from geomix.core.spline import fit_spline

Best = Callable[..., float]
TIMES = 4
SIZES = ("rows", "columns", "classes", "planes")


class Size(NamedTuple):
    """planes : per class"""

    rows: int = 10_000
    columns: int = 16
    classes: int = 3
    planes: int = 3

    def grown(self, name: str) -> Size:
        return self._replace(**{name: TIMES * getattr(self, name)})


def model_of(kind: str, size: Size) -> tuple[GeometricMixture, Any]:
    """A model with random planes, and rows for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size.rows, size.columns))
    every, n = np.arange(size.columns), size.columns
    standardize = Standardize(every, np.zeros(n), np.ones(n), None, n)
    if kind == "spline":
        lift = fit_spline(X[:5000], np.ones(len(X[:5000])), np.zeros(n, dtype=int), 32)
        feature_map = spline_map(lift, n)
    elif kind.startswith("fourier"):
        feature_map = FeatureMap(standardize, draw_fourier(n, 128, 0.05, True, rng))
    else:
        feature_map = FeatureMap(standardize, IdentityLift(n))
    start = class_starts([size.planes] * size.classes)
    weights = 0.1 * rng.standard_normal((start[-1], feature_map.n_outputs))
    planes = Planes(weights, np.zeros(start[-1]), start)
    names = tuple(f"x{j}" for j in range(n))
    model = GeometricMixture(np.arange(size.classes), names, feature_map, planes, 6.0)
    return model.with_precision("float32") if kind.endswith("float32") else model, X


def predicting(kind: str) -> Callable[[Size, Best], float]:
    def seconds(size: Size, best: Best) -> float:
        model, X = model_of(kind, size)
        return best(lambda: model.predict_proba(X), 0.2)

    return seconds


def passing(kind: str) -> Callable[[Size, Best], float]:
    """One pass of loss and gradients."""

    def seconds(size: Size, best: Best) -> float:
        model, X = model_of(kind, size)
        y = np.random.default_rng(1).integers(size.classes, size=size.rows)
        Phi = kernel.lifted(model.lift, X if kind == "spline" else X.astype(np.float32))
        rows = kernel.training_rows(Phi, y, np.ones(size.rows))
        return best(lambda: rows.terms(model.planes, 6.0, 0.005), 0.2)

    return seconds


def _noise(size: Size) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size.rows, size.columns))
    return X, rng.integers(size.classes, size=size.rows)


def fitting(lift: str) -> Callable[[Size, Best], float]:
    recipe = replace(Recipe(), calibrate=False)
    settings = {"lift": lift, "l2": 1e-3, "max_iter": 20, "early_stopping": "off"}

    def seconds(size: Size, best: Best) -> float:
        X, y = _noise(size)
        made = GeometricMixtureClassifier(
            n_planes=size.planes, random_state=0, advanced=recipe, **settings
        )
        return processor_seconds(lambda: made.fit(X, y))

    return seconds


def lightgbm(size: Size, best: Best) -> float:
    X, y = _noise(size)
    return processor_seconds(lambda: speed_peers.lightgbm(X, y), 1)


SMALL = Size(rows=2_000, columns=8, classes=2, planes=2)
MEASURED: dict[str, tuple[Callable[[Size, Best], float], Size]] = {
    "predict_proba, linear": (predicting("linear"), Size()),
    "predict_proba, Fourier": (predicting("fourier"), Size()),
    "predict_proba, Fourier in float32": (predicting("fourier float32"), Size()),
    "predict_proba, spline": (predicting("spline"), Size()),
    "one pass, linear": (passing("linear"), Size()),
    "one pass, spline": (passing("spline"), Size()),
    "fit, linear, 20 iterations": (fitting("linear"), Size()),
    "fit, spline, 20 iterations": (fitting("spline"), Size()),
    "fit, LightGBM, 400 trees": (lightgbm, SMALL),
}


def growth(best: Best) -> list[str]:
    """Exponents of the growth in rows, columns, classes and planes."""
    lines = [f"### Growth: time ~ size ** exponent, from a base to {TIMES} times as much", ""]
    lines += [f"| | base | ms | {' | '.join(SIZES)} |", f"|---|---|---:|{'---:|' * len(SIZES)}"]
    for name, (seconds, base) in MEASURED.items():
        at_base = seconds(base, best)
        found = []
        for size in SIZES:
            if seconds is lightgbm and size == "planes":
                found.append("")
                continue
            exponent = np.log(seconds(base.grown(size), best) / at_base) / np.log(TIMES)
            found.append(f"{exponent:.2f}")
        shape = f"{base.rows:,} x {base.columns}, {base.classes} x {base.planes}"
        lines.append(f"| {name} | {shape} | {1e3 * at_base:.3g} | {' | '.join(found)} |")
    return ["\n".join(lines) + "\n"]
