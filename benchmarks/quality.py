"""Figures of probabilities against the truth, the same for every benchmark."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from geomix.core.calibration import expected_calibration_error


def quality(P: Any, y: Any, predicted: Any = None) -> dict[str, float]:
    """Figures of probabilities ``P`` (n_rows, n_classes) against codes ``y``.

    The prediction is ``predicted``, or the most probable class. Macro-F1 is
    the mean over the classes that ``y`` has.
    """
    predicted = P.argmax(axis=1) if predicted is None else predicted
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "log_loss": log_loss(P, y),
        "macro_f1": float(
            f1_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0.0)
        ),
        "ece": expected_calibration_error(P, y),
    }


def log_loss(P: Any, y: Any) -> float:
    """-mean log p of the true class, p clipped at 1e-15 and made to sum to one again."""
    P = np.clip(P, 1e-15, 1.0)
    return -float(np.log(P[np.arange(len(y)), y] / P.sum(axis=1)).mean())
