"""Rules and counterfactuals of the reading benchmark, checked by means that do not share code.

A rule is exported to Python and run on the test rows: its coverage and purity are counted from the
answers. A counterfactual of car is compared with all 1,728 combinations of the levels.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_table import table
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

TABLES = ("adult", "credit_g", "car")
MOST_ROWS = 10_000  # of adult, for training


def read(folder: Path, name: str) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_parquet(folder / f"{name}.parquet")
    return frame, frame.pop("target").astype(str).to_numpy()


def halves(folder: Path, name: str) -> tuple[Any, ...]:
    """Training and test rows; of a large table 10,000 and as many."""
    X, y = read(folder, name)
    n_train = min(MOST_ROWS, round(0.75 * len(X)))
    n_test = min(MOST_ROWS, len(X) - n_train)
    return train_test_split(X, y, train_size=n_train, test_size=n_test, random_state=0, stratify=y)


def rules(options: Any) -> list[str]:
    body = []
    for name in TABLES:
        X, X_test, y, y_test = halves(options.data, name)
        model = GeometricMixtureClassifier(random_state=0).fit(X, y).model_
        start = time.process_time()
        found = model.rules(X_test, y_test)
        seconds = time.process_time() - start
        wrong = sum(not _as_printed(found, rule, X_test, y_test) for rule in found)
        body.append(
            [
                name,
                str(len(found)),
                f"{np.mean([len(rule.conditions) for rule in found]):.1f}",
                f"{found.coverage:.1%}",
                "" if found.purity is None else f"{found.purity:.1%}",
                str(wrong),
                f"{seconds:.2f}",
                f"`{found[0]}`: {found[0].label} ({found[0].coverage:.0%}, {found[0].purity:.1%})",
            ]
        )
        print(body[-1], flush=True)
    header = ("table", "rules", "conditions each", "coverage", "purity", "wrong figures", "s")
    return [
        "Default settings of `model.rules(X_test, y_test)`: purity of at least 90 %, at most three "
        "conditions. Each rule was exported to Python and run on the test rows; a figure is wrong "
        "if coverage or purity differ from those printed.",
        "",
        *table((*header, "first rule"), body),
    ]


def _as_printed(found: Any, rule: Any, X: pd.DataFrame, y: Any) -> bool:
    scope: dict[str, Any] = {}
    exec(replace(found, rules=(rule,), default=None).to_python(), scope)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    inside = np.array([scope["predict"](row) is not None for row in rows])
    return bool(inside.mean() == rule.coverage and (y[inside] == rule.label).mean() == rule.purity)


def nearest(options: Any) -> list[str]:
    X, y = read(options.data, "car")
    settings: dict[str, dict[str, Any]] = {
        "default": {},
        "without pairs of columns": {"max_interactions": 0},
        "spline, one plane": {"lift": "spline", "n_planes": 1, "max_interactions": 0},
    }
    body = []
    for kind, chosen in settings.items():
        model = GeometricMixtureClassifier(random_state=0, **chosen).fit(X, y).model_
        try:
            body.append([kind, *_against_brute_force(model, X)])
        except TypeError as error:
            body.append([kind, "not available", "", "", "", f"{error}"[:60]])
        print(body[-1], flush=True)
    return [
        "60 rows of car, every other class as the target, against all combinations of the levels "
        "(`sparse=None`). Nearest: as few changed columns as the best combination.",
        "",
        *table(("model", "asked", "nearest", "not found", "median ms", "largest ms"), body),
    ]


def _against_brute_force(model: Any, X: pd.DataFrame) -> list[str]:
    every = pd.DataFrame(
        list(product(*(X[name].unique() for name in X))), columns=X.columns
    ).astype(X.dtypes)
    predicted = model.predict(every)
    rows = X.iloc[np.linspace(0, len(X) - 1, 60).astype(int)]
    n_asked = n_nearest = n_not_found = 0
    seconds = []
    for i in range(len(rows)):
        row = rows.iloc[i]
        own = model.predict(rows.iloc[[i]])[0]
        for target in sorted(set(model.classes.tolist()) - {own}):
            least = (every[predicted == target].to_numpy() != row.to_numpy()).sum(axis=1).min()
            start = time.process_time()
            found = model.counterfactual(row, target, sparse=None)
            seconds.append(time.process_time() - start)
            n_asked += 1
            n_not_found += found.status != "found"
            n_nearest += found.status == "found" and len(found.changes) == least
    ms = 1e3 * np.array(seconds)
    return [
        str(n_asked), str(n_nearest), str(n_not_found), f"{np.median(ms):.1f}", f"{ms.max():.1f}",
    ]  # fmt: skip
