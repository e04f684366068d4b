"""How many times the planes of other models are added to those of a model.

    s'_c(x) = s_c(x) + sum_f share_f z_cf(x)

One model of one plane per class after the other is added, with the share that lowers the validation
loss most, while that is better by ``ERRORS_TO_DROP`` standard errors of the paired difference of
the row losses. A model that brings tables, or curves in place of lines, has to be worth reading as
well (``WORTH_IT``). The members of an ensemble even out their errors without any addition: there
it has to gain more than a family may be behind (``MARGIN_TO_DROP``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from geomix.arrays import FloatArray, IntArray
from geomix.search.candidates import Candidate
from geomix.search.constants import MARGIN_TO_DROP, SHARES_OF_OTHERS, WORTH_IT
from geomix.search.trials import KeptFits, Measured, excess_of, losses_of, weighted_mean
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


@dataclass(frozen=True, eq=False)
class Addition:
    """A model that may be added: its class scores on the validation rows, and the share of the loss
    that it has to gain beyond the noise."""

    of: Other
    scores: FloatArray
    worth_it: float


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Labels and weights of the rows that the scores are of."""

    y: IntArray
    weight: FloatArray
    settings: Settings

    def losses(self, S: FloatArray) -> tuple[float, FloatArray]:
        """Temperature of class scores, and each row's loss with it."""
        return losses_of(S, self.y, self.weight, self.settings)


def best_shares(
    S: FloatArray, additions: Sequence[Addition], rows: ValidationRows
) -> tuple[list[Share], FloatArray]:
    """What is added to a model with the class scores ``S``, and its scores with that."""
    left, found = list(additions), list[Share]()
    while (best := _best_share(S, left, rows)) is not None:
        addition, share = best
        left.remove(addition)
        found.append(Share(addition.of, share))
        S = S + share * addition.scores
    return found, S


def as_addition(
    other: Other, scores: FloatArray, to: Candidate, settings: Settings, *, is_ensemble: bool
) -> Addition:
    """Another model as an addition to a candidate."""
    added = other.measured.candidate
    adds_to_read = added.n_pairs > to.n_pairs or added.lift == "spline" != to.lift
    worth_it = MARGIN_TO_DROP.of_best if is_ensemble else WORTH_IT[settings.preset] * adds_to_read
    return Addition(other, scores, worth_it)


def _best_share(
    S: FloatArray, additions: Sequence[Addition], rows: ValidationRows
) -> tuple[Addition, float] | None:
    """The share with the smallest loss of those that are clearly better than none."""
    _, without = rows.losses(S)
    before = weighted_mean(without, rows.weight)
    best, found = before, None
    for one in additions:
        for share in SHARES_OF_OTHERS:
            _, losses = rows.losses(S + share * one.scores)
            loss = weighted_mean(losses, rows.weight)
            gain = excess_of(without, losses, rows.weight)
            if loss < best and gain.is_clear(one.worth_it * before):
                best, found = loss, (one, share)
    return found
