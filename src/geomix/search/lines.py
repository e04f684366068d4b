"""How much of the linear model is added to the planes of the winner (``training/straight_lines``).

A share is chosen on validation rows. None is the rule: more than none has to be better by
``ERRORS_TO_DROP`` standard errors of the paired difference of the row losses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline import SplineLift
from geomix.search.choosing import Chosen
from geomix.search.constants import ERRORS_TO_DROP, SHARES_OF_LINES
from geomix.search.folds import Fitted, Fold, train_on_fold
from geomix.search.trials import excess_of, losses_of
from geomix.training.settings import Settings
from geomix.training.straight_lines import as_curves, with_lines


def has_lines(chosen: Chosen, settings: Settings) -> bool:
    """Whether a linear model can be added: one was measured, and the winner is no kernel."""
    return chosen.linear is not None and settings.calibrate and chosen.candidate.lift != "fourier"


def train_lines(chosen: Chosen, fold: Fold, settings: Settings, phase: str) -> Fitted:
    """The linear model of a race, trained on a fold."""
    assert chosen.linear is not None
    linear = chosen.linear.candidate
    if settings.l2 == "auto":
        linear = linear.for_rows(fold.n_train, chosen.linear.n_rows)
    return train_on_fold(linear, fold, settings, None, phase, settings.max_iter)


def share_of_lines(
    fits: list[Fitted], lines: list[Fitted], y: IntArray, weight: FloatArray, settings: Settings
) -> float:
    """How many times the linear plane is added to those of the winner; 0 unless it clearly pays."""
    S, added = (
        np.concatenate([one.held_out_scores(settings.sharpness) for one in some])
        for some in (fits, lines)
    )
    _, without = losses_of(S, y, weight, settings)
    best, share = float(np.average(without, weights=weight)), 0.0
    for tried in SHARES_OF_LINES:
        _, losses = losses_of(S + tried * added, y, weight, settings)
        loss = float(np.average(losses, weights=weight))
        if loss < best and not excess_of(without, losses, weight).is_within(ERRORS_TO_DROP, 0.0):
            best, share = loss, tried
    return share


def added(fitted: Fitted, line: Fitted, share: float) -> Fitted:
    """The fit with ``share`` times the linear plane of each class in its planes."""
    lines, lift = line.features.expanded(line.trained.planes), fitted.features.feature_map.lift
    if isinstance(lift, SplineLift):
        lines = as_curves(lines, line.features.feature_map, lift)
    planes = with_lines(fitted.features.expanded(fitted.trained.planes), lines, share)
    planes = fitted.features.working(planes)
    return replace(fitted, trained=replace(fitted.trained, planes=planes))
