"""The peers of the speed benchmark: what they are, and the quickest call of each.

A peer here is a function of rows that gives probabilities, with the name of the path it takes.
Every peer runs on one thread.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

Answer = Callable[[Any], Any]


def logistic(X: Any, y: Any) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)


def lightgbm(X: Any, y: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=400, n_jobs=1, verbose=-1).fit(X, y)


def onnx_session(fitted: Any, n_columns: int) -> Answer:
    """ONNX Runtime on one thread, probabilities alone as output."""
    import onnxruntime
    from skl2onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = to_onnx(fitted, np.zeros((1, n_columns), np.float32), options={"zipmap": False})
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    name, output = session.get_inputs()[0].name, [session.get_outputs()[1].name]
    return lambda X: session.run(output, {name: X})[0]


def onnx_logistic(X: Any, y: Any) -> Answer:
    Z = StandardScaler().fit_transform(X)
    return onnx_session(LogisticRegression(max_iter=1000).fit(Z, y), X.shape[1])


def onnx_mlp(X: Any, y: Any) -> Answer:
    Z = StandardScaler().fit_transform(X)
    return onnx_session(MLPClassifier((64, 32), max_iter=50).fit(Z, y), X.shape[1])


def batch_peers(X: Any, y: Any) -> dict[str, Answer]:
    """``predict_proba`` of every peer fitted on (X, y); a missing library leaves its row out."""
    peers: dict[str, Answer] = {}
    sklearns = {
        "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000),
        "scikit-learn MLP(64, 32)": MLPClassifier((64, 32), max_iter=50),
        "scikit-learn RandomForest(100)": RandomForestClassifier(100, n_jobs=1),
        "scikit-learn RBF-SVM": SVC(),
        "scikit-learn kNN": KNeighborsClassifier(n_jobs=1),
    }
    for name, model in sklearns.items():
        fitted = make_pipeline(StandardScaler(), model).fit(X, y)
        peers[name] = getattr(fitted, "predict_proba", None) or fitted.predict
    for name, make in (
        ("LightGBM, 400 trees", _lightgbm),
        ("XGBoost, 400 trees", _xgboost),
        ("CatBoost, 400 trees", _catboost),
        ("EBM", _ebm),
        ("ONNX Runtime LogisticRegression", _onnx_batch),
    ):
        with contextlib.suppress(ImportError):
            peers[name] = make(X, y)
    return peers


def _lightgbm(X: Any, y: Any) -> Answer:
    booster = lightgbm(X, y).booster_
    return lambda rows: booster.predict(rows, num_threads=1)


def _xgboost(X: Any, y: Any) -> Answer:
    from xgboost import XGBClassifier

    booster = XGBClassifier(n_estimators=400, n_jobs=1).fit(X, y).get_booster()
    return lambda rows: booster.inplace_predict(rows)


def _catboost(X: Any, y: Any) -> Answer:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        iterations=400, thread_count=1, verbose=False, allow_writing_files=False
    ).fit(X, y)
    return lambda rows: model.predict_proba(rows, thread_count=1)


def _ebm(X: Any, y: Any) -> Answer:
    from interpret.glassbox import ExplainableBoostingClassifier

    with contextlib.redirect_stdout(io.StringIO()):
        model = ExplainableBoostingClassifier(n_jobs=1, interactions=0, outer_bags=1).fit(X, y)
    return lambda rows: model.predict_proba(rows)


def _onnx_batch(X: Any, y: Any) -> Answer:
    call = onnx_logistic(X, y)
    return lambda rows: call(rows.astype(np.float32))
