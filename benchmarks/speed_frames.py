"""How fast frames and dicts of adult are answered: 14 columns, of which 8 are categories.

A part of ``benchmarks/speed.py``. The peer is LightGBM, which reads pandas' categories. Every
library holds the same cells; polars and Arrow hold categories once as such and once as text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from geomix import GeometricMixtureClassifier

N_TRAIN = 10_000  # what is trained on decides nothing here but the levels
SETTINGS = {"lift": "spline", "n_planes": 2, "l2": 1e-3, "random_state": 0}
Row = tuple[str, str, float]


def adult(folder: Path) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_parquet(folder / "adult.parquet")
    return frame, frame.pop("target").astype(str).to_numpy()


def frames(X: pd.DataFrame) -> dict[str, Any]:
    """The same rows in every library."""
    import polars as pl
    import pyarrow as pa

    is_category = [column for column in X if X[column].dtype == "category"]
    text = X.astype(dict.fromkeys(is_category, object))
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    return {
        "pandas, categories": X,
        "pandas, text": X.astype(dict.fromkeys(is_category, "str")),
        "polars, categories": pl.from_arrow(arrow),
        "polars, text": pl.from_pandas(text),
        "Arrow, categories": arrow,
        "Arrow, text": pa.Table.from_pandas(text, preserve_index=False),
    }


def row_as_dict(clf: Any, X: pd.DataFrame, best_call: Callable[..., float]) -> list[Row]:
    row = X.iloc[3].to_dict()
    calls = {"scorer(row)": clf.model_.scorer(), "model": clf.model_.predict_proba}
    return [
        ("geomix, a dict", path, best_call("answer(row)", answer=answer, row=row))
        for path, answer in calls.items()
    ]


def answered(clf: Any, X: pd.DataFrame, time: Callable[[Any, Any], float]) -> list[Row]:
    """``predict_proba`` of the frames of all libraries, by model and by estimator."""
    rows: list[Row] = []
    for name, frame in frames(X).items():
        rows.append((f"geomix, {name}", "model", time(clf.model_.predict_proba, frame)))
        rows.append((f"geomix, {name}", "estimator", time(clf.predict_proba, frame)))
    return rows


def measured(
    folder: Path, best: Callable[..., float], best_call: Callable[..., float]
) -> dict[str, list[Row]]:
    """Seconds of one row and of all rows, ours and LightGBM's, in one run."""
    from lightgbm import LGBMClassifier

    X, y = adult(folder)
    chosen = np.random.default_rng(0).choice(len(X), N_TRAIN, replace=False)
    clf = GeometricMixtureClassifier(**SETTINGS).fit(X.iloc[chosen], y[chosen])
    peer = LGBMClassifier(n_estimators=400, n_jobs=1, verbose=-1).fit(X.iloc[chosen], y[chosen])

    def one(call: Any, frame: Any) -> float:
        return best_call("answer(frame)", answer=call, frame=frame)

    def all_rows(call: Any, frame: Any) -> float:
        return best(lambda: call(frame))

    return {
        "One row, adult": [
            *row_as_dict(clf, X, best_call),
            *answered(clf, X.iloc[3:4], one),
            ("LightGBM, 400 trees", "pandas, categories", one(peer.predict_proba, X.iloc[3:4])),
        ],
        f"{len(X):,} rows, adult": [
            *answered(clf, X, all_rows),
            ("LightGBM, 400 trees", "pandas, categories", all_rows(peer.predict_proba, X)),
        ],
    }
