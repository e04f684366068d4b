"""The paper's recipe: trained on train; validation rows choose, stop and calibrate."""

from __future__ import annotations

from typing import Any

from timing import now, since

from geomix import GeometricMixtureClassifier
from paper.data import Split
from paper.models import Fitted
from paper.models._geomix import outcome

NAME, PAPER = "GMC recipe", "GMC"
NEEDS, PACKAGES = ("geomix",), ("geomix", "numpy", "scipy", "scikit-learn")


def fit(split: Split, seed: int, **changes: Any) -> Fitted:
    """``changes`` are what an ablation changes about the recipe."""
    start = now()
    clf = GeometricMixtureClassifier.paper(random_state=seed, **changes)
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    return outcome(clf, since(start))
