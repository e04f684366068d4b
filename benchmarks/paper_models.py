"""The models of the comparison: geomix twice, and four peers with the paper's grids.

Every model turns a ``Split`` into an ``Outcome``: predictions and probabilities of the test
rows, before and after temperature scaling, and the seconds that took.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from geomix import GeometricMixtureClassifier
from geomix.calibration import PRIOR_SCALE, expected_calibration_error, fit_temperature
from geomix.pooling import softmax


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and codes of the three parts, and of the 80 % that everyone learns from."""

    X_train: Any
    y_train: Any
    X_valid: Any
    y_valid: Any
    X_learn: Any
    y_learn: Any
    X_test: Any
    y_test: Any


def split_rows(X: Any, y: Any, seed: int) -> Split:
    X_learn, X_test, y_learn, y_test = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=seed
    )
    X_train, X_valid, y_train, y_valid = train_test_split(
        X_learn, y_learn, test_size=0.25, stratify=y_learn, random_state=seed
    )
    return Split(X_train, y_train, X_valid, y_valid, X_learn, y_learn, X_test, y_test)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model said about the test rows, and what that cost.

    ``before`` and ``after`` are probabilities without and with temperature scaling;
    ``fit_seconds`` is the final fit, ``total_seconds`` includes the search before it.
    """

    predicted: Any
    before: Any
    after: Any
    fit_seconds: float
    total_seconds: float
    chosen: str


def measure(outcome: Outcome, y: Any) -> dict[str, float]:
    codes = np.arange(outcome.after.shape[1])
    return {
        "accuracy": accuracy_score(y, outcome.predicted),
        "macro_f1": f1_score(y, outcome.predicted, average="macro"),
        "log_loss_before": log_loss(y, outcome.before, labels=codes),
        "log_loss": log_loss(y, outcome.after, labels=codes),
        "ece_before": expected_calibration_error(outcome.before, y),
        "ece": expected_calibration_error(outcome.after, y),
        "fit_seconds": outcome.fit_seconds,
        "total_seconds": outcome.total_seconds,
    }


def run_geomix(split: Split, seed: int) -> Outcome:
    clf = GeometricMixtureClassifier(random_state=seed)
    start = time.perf_counter()
    clf.fit(split.X_learn, split.y_learn)
    return geomix_outcome(clf, split, time.perf_counter() - start)


def run_geomix_paper(split: Split, seed: int) -> Outcome:
    clf = GeometricMixtureClassifier.paper(random_state=seed)
    start = time.perf_counter()
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    return geomix_outcome(clf, split, time.perf_counter() - start)


def geomix_outcome(clf: GeometricMixtureClassifier, split: Split, seconds: float) -> Outcome:
    uncalibrated = clf.model_.with_temperature(1.0)
    return Outcome(
        predicted=clf.predict(split.X_test),
        before=uncalibrated.predict_proba(split.X_test),
        after=clf.predict_proba(split.X_test),
        fit_seconds=seconds,
        total_seconds=seconds,
        chosen=describe_geomix(clf),
    )


def describe_geomix(clf: GeometricMixtureClassifier) -> str:
    """The lift and penalty that won, and the planes per class."""
    parts = [clf.model_.lift.kind]
    for trial in clf.history_.trials:
        if trial.chosen:
            parts += [] if trial.gamma_factor is None else [f"gamma x{trial.gamma_factor:g}"]
            parts += [f"l2 {trial.l2:.0e}"]
    planes = "+".join(str(count) for count in clf.n_planes_)
    return " ".join([*parts, f"T {clf.model_.temperature:.2f}", f"planes {planes}"])


def most_probable(model: Any, X: Any) -> Any:
    return model.predict(X)


@dataclass(frozen=True)
class Peer:
    """``build(setting, seed, n_rows)`` makes the classifier that follows standardisation."""

    grid: dict[str, list[Any]]
    build: Callable[[dict[str, Any], int, int], Any]
    predict: Callable[[Any, Any], Any] = most_probable

    def run(self, split: Split, seed: int) -> Outcome:
        return run_peer(self, split, seed)


def logistic(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return LogisticRegression(**setting, max_iter=1000)


def rbf_svm(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return CalibratedClassifierCV(SVC(**setting), ensemble=False, cv=5)


def predict_with_machine(model: Any, X: Any) -> Any:
    """The support vector machine's own decision, which Platt scaling may overturn."""
    scaler, calibrated = (step for _, step in model.steps)
    return calibrated.calibrated_classifiers_[0].estimator.predict(scaler.transform(X))


def forest(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return RandomForestClassifier(**setting, random_state=seed)


def perceptron(setting: dict[str, Any], seed: int, n_rows: int) -> Any:
    return MLPClassifier(
        **setting,
        alpha=1e-4,
        batch_size=min(128, n_rows * 9 // 10),  # early stopping holds out a tenth
        learning_rate_init=1e-3,
        max_iter=100,
        early_stopping=True,
        random_state=seed,
    )


PEERS = {
    "LR": Peer({"C": [0.1, 1.0, 10.0]}, logistic),
    "RBF-SVM": Peer(
        {"C": [1.0, 10.0, 100.0], "gamma": [1e-3, 1e-2, 1e-1]}, rbf_svm, predict_with_machine
    ),
    "RF": Peer({"n_estimators": [200, 400], "max_depth": [None, 12]}, forest),
    "MLP": Peer({"hidden_layer_sizes": [(64,), (128,)]}, perceptron),
}

MODELS: dict[str, Callable[[Split, int], Outcome]] = {
    "geomix": run_geomix,
    "geomix-paper": run_geomix_paper,
    **{name: peer.run for name, peer in PEERS.items()},
}


def run_peer(peer: Peer, split: Split, seed: int) -> Outcome:
    start = time.perf_counter()
    setting, temperature = search(peer, split, seed)
    start_of_fit = time.perf_counter()
    model = fit_peer(peer, setting, split.X_learn, split.y_learn, seed)
    end = time.perf_counter()
    before = model.predict_proba(split.X_test)
    return Outcome(
        predicted=peer.predict(model, split.X_test),
        before=before,
        after=softmax(log_probabilities(before) / temperature),
        fit_seconds=end - start_of_fit,
        total_seconds=end - start,
        chosen=" ".join(f"{key}={value}" for key, value in setting.items()),
    )


def search(peer: Peer, split: Split, seed: int) -> tuple[dict[str, Any], float]:
    """The setting that does best on the validation rows, and the temperature they ask for."""
    best: tuple[tuple[float, float], dict[str, Any], Any] | None = None
    for setting in ParameterGrid(peer.grid):
        model = fit_peer(peer, setting, split.X_train, split.y_train, seed)
        P = model.predict_proba(split.X_valid)
        accuracy = accuracy_score(split.y_valid, peer.predict(model, split.X_valid))
        rank = (accuracy, -log_loss(split.y_valid, P, labels=np.arange(P.shape[1])))
        if best is None or rank > best[0]:
            best = rank, setting, P
    assert best is not None
    _, setting, P = best
    # The prior that geomix uses itself: on 30 validation rows, all right, T would run to zero.
    return setting, fit_temperature(log_probabilities(P), split.y_valid, None, PRIOR_SCALE)


def fit_peer(peer: Peer, setting: dict[str, Any], X: Any, y: Any, seed: int) -> Any:
    model = make_pipeline(StandardScaler(), peer.build(setting, seed, len(y)))
    with warnings.catch_warnings():
        # 100 epochs are the paper's limit, and reaching it is no news.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def log_probabilities(P: Any) -> Any:
    """log p with the floor that scikit-learn's log-loss has: a forest says 0 and 1."""
    return np.log(np.clip(P, np.finfo(float).eps, 1.0))
