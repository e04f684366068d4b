"""geomix with its defaults over the plain columns: every plane can be read in their units."""

from __future__ import annotations

from timing import now, since

from geomix import GeometricMixtureClassifier
from paper.data import Split
from paper.models import Fitted
from paper.models._geomix import outcome

NAME, PAPER = "geomix linear", "GMC"
NEEDS, PACKAGES = ("geomix",), ("geomix", "numpy", "scipy", "scikit-learn")


def fit(split: Split, seed: int) -> Fitted:
    start = now()
    clf = GeometricMixtureClassifier(lift="linear", random_state=seed)
    clf.fit(split.X_learn, split.y_learn)
    return outcome(clf, since(start))
