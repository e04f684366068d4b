"""Part of ``speed.py``: few rows of many columns, such as the activity of genes.

Four columns decide the class, three along a line and one along a curve; the others are noise. Each
model is fitted with its defaults and measured on 2,000 further rows. Times are processor seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import speed_peers
from sklearn.metrics import log_loss
from speed_fits import processor_seconds

from geomix import GeometricMixtureClassifier

SIZES = ((200, 30), (200, 300), (200, 3_000), (100, 20_000))
MOST_COLUMNS_OF_EBM = 30  # of 300 columns it screens 45,000 pairs, in more than five minutes
MOST_COLUMNS_TO_READ = 3_000
N_TEST = 2_000


def wide() -> list[str]:
    return [fits(), readings()]


def fits() -> str:
    lines = ["### Few rows, many columns", ""]
    lines += ["| rows x columns | model | fit s | log-loss |", "|---|---|---:|---:|"]
    for n_rows, n_columns in SIZES:
        for name, make in MODELS.items():
            if name != "EBM" or n_columns <= MOST_COLUMNS_OF_EBM:
                taken, loss = measured(make, n_rows, n_columns)
                lines.append(f"| {n_rows} x {n_columns:,} | {name} | {taken:.2f} | {loss:.3f} |")
    return "\n".join(lines) + "\n"


def measured(make: Callable[[Any, Any], Any], n_rows: int, n_columns: int) -> tuple[float, float]:
    """Processor seconds of a fit, and its log-loss on further rows."""
    X, y = rows_of(n_rows + N_TEST, n_columns)
    found: list[Any] = []
    taken = processor_seconds(lambda: found.append(make(X[:n_rows], y[:n_rows])), 1)
    return taken, float(log_loss(y[n_rows:], found[0].predict_proba(X[n_rows:])))


def readings() -> str:
    """What a user asks a default model for."""
    lines = ["### Reading a model of many columns", ""]
    lines += ["| columns | effects s | rules s | regions s | counterfactual s | report s |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for n_rows, n_columns in SIZES:
        if n_columns > MOST_COLUMNS_TO_READ:
            continue
        X, y = rows_of(n_rows, n_columns)
        model = ours()(X, y).model_
        with TemporaryDirectory() as folder:
            asked: tuple[Callable[[], Any], ...] = (
                partial(model.effects, X),
                partial(model.rules, X, y),
                partial(model.regions, X),
                partial(model.counterfactual, X[0]),
                partial(model.report, X, y, Path(folder) / "report.html"),
            )
            taken = [f"{processor_seconds(one, 1):.1f}" for one in asked]
        lines.append(f"| {n_columns:,} | {' | '.join(taken)} |")
    return "\n".join(lines) + "\n"


def rows_of(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    score = 2.0 * (X[:, 0] + X[:, 1] - X[:, 2]) + 3.0 * (np.abs(X[:, 3]) - 0.8)
    return X, (score > rng.logistic(size=n_rows)).astype(int)


def ours(**settings: Any) -> Callable[[Any, Any], Any]:
    return lambda X, y: GeometricMixtureClassifier(random_state=0, **settings).fit(X, y)


def ebm(X: Any, y: Any) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=0).fit(X, y)


MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "geomix": ours(),
    "geomix, fast": ours(preset="fast"),
    "scikit-learn LR": speed_peers.logistic,
    "LightGBM, 400 trees": speed_peers.lightgbm,
    "EBM": ebm,
}
PARTS = {"wide": wide}
