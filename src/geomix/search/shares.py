"""How many times the planes of other models are added to those of a model.

    s'_c(x) = s_c(x) + sum_f share_f z_cf(x)

One model of one plane per class after the other is added, with the share that lowers the validation
loss most, while that is better by ``ERRORS_TO_DROP`` standard errors of the paired difference of
the row losses. A model that brings tables, or curves in place of lines, has to be worth reading as
well (``WORTH_IT``). The members of an ensemble even out their errors without any addition: there
it has to gain more than a family may be behind (``MARGIN_TO_DROP``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.search.candidates import Candidate
from geomix.search.constants import MARGIN_TO_DROP, SHARES_OF_OTHERS, WORTH_IT
from geomix.search.trials import KeptFits, Measured, excess_of, losses_of
from geomix.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Other:
    """A model of one plane per class that raced, and its fits of the last comparison, where they
    were kept."""

    family: str
    measured: Measured
    kept: KeptFits | None


@dataclass(frozen=True)
class Share:
    """How many times the plane of another model is added."""

    of: Other
    share: float

    def without_fits(self) -> Share:
        return replace(self, of=replace(self.of, kept=None))

    @property
    def note(self) -> str:
        return (
            f"{self.share:g} times the plane of the {self.of.family} model was added to the planes "
            "of each class."
        )


def best_shares(
    S: FloatArray,
    scores: dict[Other, FloatArray],
    worth_it: dict[Other, float],
    y: IntArray,
    weight: FloatArray,
    settings: Settings,
) -> tuple[list[Share], FloatArray]:
    """What is added to a model with the class scores ``S``, and its scores with that.

    scores : of the other models on the same rows;  worth_it : see ``worth_reading``.
    """
    left, found = dict(scores), list[Share]()
    while (best := _best_addition(S, left, worth_it, y, weight, settings)) is not None:
        found.append(best)
        S = S + best.share * left.pop(best.of)
    return found, S


def worth_reading(
    other: Other, winner: Candidate, settings: Settings, *, is_ensemble: bool
) -> float:
    """The share of the loss that an addition has to gain beyond the noise."""
    if is_ensemble:
        return MARGIN_TO_DROP.of_best
    added = other.measured.candidate
    adds_to_read = added.n_pairs > winner.n_pairs or added.lift == "spline" != winner.lift
    return WORTH_IT[settings.preset] * adds_to_read


def _best_addition(
    S: FloatArray,
    scores: dict[Other, FloatArray],
    worth_it: dict[Other, float],
    y: IntArray,
    weight: FloatArray,
    settings: Settings,
) -> Share | None:
    """The share with the smallest loss of those that are clearly better than none."""
    _, without = losses_of(S, y, weight, settings)
    before = float(np.average(without, weights=weight))
    best, found = before, None
    for other, added in scores.items():
        for share in SHARES_OF_OTHERS:
            _, losses = losses_of(S + share * added, y, weight, settings)
            loss = float(np.average(losses, weights=weight))
            gain = excess_of(without, losses, weight)
            if loss < best and gain.is_clear(worth_it[other] * before):
                best, found = loss, Share(other, share)
    return found
