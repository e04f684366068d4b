"""geomix with all defaults, on train + validation; it holds out its own rows."""

from __future__ import annotations

from timing import now, since

from geomix import GeometricMixtureClassifier
from paper.data import Split
from paper.models import Fitted
from paper.models._geomix import outcome

NAME, PAPER = "geomix", "GMC"
NEEDS, PACKAGES = ("geomix",), ("geomix", "numpy", "scipy", "scikit-learn")


def fit(split: Split, seed: int) -> Fitted:
    start = now()
    clf = GeometricMixtureClassifier(random_state=seed).fit(split.X_learn, split.y_learn)
    return outcome(clf, since(start))
