"""A learnt Fourier lift beside the drawn one at equal D, an RBF-SVM and an MLP.

    python benchmarks/future/learnt_lift.py [--data FOLDER] [--seeds 2] [--tables vowel,letter]
                                            [--accurate]

At most 1,500 training and 2,000 test rows, split by class. geomix has one plane per class over 64
frequencies, l2 of 1e-5 and a kernel width that its race chooses. "importance" scales columns by
their importance in a spline model (adaptive_penalty), "scales" learns a scale for each column,
"frequencies" all frequencies, "both" learns them from columns that are scaled by importance.
RBF-SVM chooses C and gamma, and the MLP (one layer of 64, early stopping) its L2 penalty, by 3-fold
cross-validation; both get standardised columns. The learning rates of the lift were picked on some
of the first ten tables, on none of the last ten, which are the second part of the suite's tables.

``--accurate`` compares the preset "accurate", which tries learnt frequencies, with the same without
them, on the same rows.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
from runs import RESULTS, arguments, every_run, load, measure, page
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from geomix import GeometricMixtureClassifier, Recipe

TABLES = (
    "vowel", "phoneme", "satimage", "letter", "electricity", "moons", "circles", "spirals", "wdbc",
    "digits",
)  # fmt: skip
# The tables of the suite's second part that have numbers alone.
SECOND = (
    "pima", "cmc", "hill_valley", "mfeat_zernike", "mfeat_factors", "wine_quality_white", "churn",
    "optdigits", "ann_thyroid", "sleep",
)  # fmt: skip
GEOMIX: dict[str, dict[str, Any]] = {
    "fixed": {},
    "importance": {"adaptive_penalty": True},
    "scales": {"learn_lift": "scales"},
    "frequencies": {"learn_lift": "frequencies"},
    "both": {"adaptive_penalty": True, "learn_lift": "frequencies"},
}
MODELS = (*GEOMIX, "RBF-SVM", "MLP")
ACCURATE = {"accurate, drawn": "off", "accurate": "auto"}
FIGURES = ("log-loss", "accuracy", "seconds")
MOST_TRAINED, MOST_TESTED = 1_500, 2_000


def estimator(model: str) -> Any:
    if model == "RBF-SVM":
        grid = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": ["scale", 0.3, 1.0]}
        return GridSearchCV(
            make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)), grid, cv=3
        )
    if model == "MLP":
        network = MLPClassifier((64,), early_stopping=True, max_iter=300, random_state=0)
        grid = {"mlpclassifier__alpha": [1e-4, 1e-2]}
        return GridSearchCV(make_pipeline(StandardScaler(), network), grid, cv=3)
    if model in ACCURATE:
        recipe = Recipe(learn_lift=ACCURATE[model])
        return GeometricMixtureClassifier(preset="accurate", advanced=recipe, random_state=0)
    options = dict(GEOMIX[model])
    recipe = Recipe(n_frequencies=64, learn_lift=options.pop("learn_lift", "off"))
    options = {"adaptive_penalty": False, **options}
    return GeometricMixtureClassifier(
        1, lift="fourier", l2=1e-5, advanced=recipe, random_state=0, **options
    )


def run(name: str, _: str, model: str, seed: int, data: Path) -> list[float]:
    X, y = load(name, data)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    n_train = min(MOST_TRAINED, int(0.75 * len(y)))
    X, X_test, y, y_test = train_test_split(X, y, train_size=n_train, stratify=y, random_state=seed)
    X_test, y_test = X_test[:MOST_TESTED], y_test[:MOST_TESTED]
    began = time.process_time()
    fitted = estimator(model).fit(X, y)
    seconds = time.process_time() - began
    P = np.clip(fitted.predict_proba(X_test), 1e-9, None)
    accuracy = float(np.mean(fitted.classes_[P.argmax(axis=1)] == y_test))
    P /= P.sum(axis=1, keepdims=True)
    return [log_loss(y_test, P, labels=fitted.classes_), accuracy, seconds]


def main() -> None:
    options = arguments(__doc__, 2, (*TABLES, *SECOND), flag="--accurate")
    path, title, models = RESULTS / "learnt_lift.csv", "A learnt Fourier lift", MODELS
    if options.accurate:
        path, title = RESULTS / "learnt_lift_accurate.csv", 'A learnt lift in preset="accurate"'
        models = tuple(ACCURATE)
    if not options.report:
        wanted = every_run(options, options.tables.split(","), models)
        measure(path, FIGURES, wanted, functools.partial(run, data=options.data))
    about = __doc__.split("\n\n")[3 if options.accurate else 2].strip()
    page(path, title, FIGURES, {"accuracy"}, about)


if __name__ == "__main__":
    main()
