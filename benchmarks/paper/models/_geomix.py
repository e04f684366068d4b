"""What the three geomix entries share: from a fitted estimator to ``Fitted``."""

from __future__ import annotations

from typing import Any

import numpy as np
from chosen import describe_geomix
from timing import Span

from geomix import GeometricMixture, GeometricMixtureClassifier
from paper.models import Fitted, OneRow


def outcome(clf: GeometricMixtureClassifier, spent: Span) -> Fitted:
    """``spent`` is all of the fit: geomix searches, refits and calibrates within it."""
    model = clf.model_
    return Fitted(
        predict=clf.predict,
        before=model.with_temperature(1.0).predict_proba,
        after=clf.predict_proba,
        paths={
            "scorer(row)": OneRow(model.scorer(), flat=True),
            "model.predict_proba": OneRow(model.predict_proba),
            "estimator.predict_proba": OneRow(clf.predict_proba),
        },
        fit=spent,
        total=spent,
        chosen=describe_geomix(clf),
        contributions=None if model.lift.kind == "fourier" else contributions_of(model),
        mixture=model,
    )


def contributions_of(model: GeometricMixture) -> Any:
    """What each column adds to the plane that answered, for every row."""
    score = model.scorer()
    return lambda X: np.array([score.explain(row).contributions for row in X])
