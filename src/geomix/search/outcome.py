"""What a race found: the best of every family, who won, and how far the others are behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from geomix.search.constants import ERRORS_TO_PREFER_SIMPLE
from geomix.search.families import Family
from geomix.search.trials import Excess, KeptFits, Measured, paired

OVER_BUDGET, DROPPED = "over budget", "dropped"


@dataclass
class Runner:
    """A family in the race: its best candidate on this rung, and why it is out."""

    family: Family
    best: Measured | None = None
    verdict: str = ""

    @property
    def is_out(self) -> bool:
        return bool(self.verdict)

    @property
    def is_dropped(self) -> bool:
        return self.verdict.startswith(DROPPED)

    @property
    def can_be_added(self) -> bool:
        """Whether the planes of its best candidate can be added to those of other models."""
        if self.best is None:
            return False
        return self.best.candidate.n_planes == 1 and self.best.candidate.lift != "fourier"


@dataclass(frozen=True)
class Tried:
    """A trial of the race: which family, on which rung."""

    family: str
    rung: int
    measured: Measured


@dataclass(frozen=True)
class Outcome:
    """Who won, the best of every family, every trial in order, and why the race ended.

    finalists : the families that were compared last;  fits : of the best of each family, where they
    were kept;  blended : the winner with the other models that it would get (``winner.py``), None
    where that was not measured;  added : their families.
    """

    won: Runner
    finalists: list[Runner]
    runners: list[Runner]
    trials: list[Tried]
    ended: str = ""
    fits: dict[Measured, KeptFits] = field(default_factory=dict)
    blended: Measured | None = None
    added: tuple[str, ...] = ()

    @property
    def winner(self) -> Measured:
        assert self.won.best is not None
        return self.won.best


def bests_of(runners: Sequence[Runner]) -> list[Measured]:
    return [one.best for one in runners if one.best is not None]


def set_verdicts(outcome: Outcome) -> None:
    """Who was chosen, and how far the others are behind what is returned."""
    returned = outcome.blended or outcome.winner
    for runner in outcome.finalists:
        if runner.best is not None and runner.verdict in ("", OVER_BUDGET):
            runner.verdict = distance(paired(runner.best, returned))
    added = f", with {' and '.join(outcome.added)} added" if outcome.added else ""
    outcome.won.verdict = f"chosen{added}"


def distance(excess: Excess) -> str:
    """How far a family is from the winner, or from the best at the time, in words."""
    by = f"by {abs(excess.mean):.4f} ± {excess.error:.4f}"
    return f"behind {by}" if excess.mean >= 0.0 else f"ahead {by}, too little for a richer model"


def simplest_level_with_best(finalists: Sequence[Measured], worth_it: float) -> Measured:
    """The first finalist, simple ones first, that is level with the best of them."""
    best = min(finalists, key=lambda m: m.loss)
    margin = worth_it * best.loss
    return next(
        one for one in finalists if paired(one, best).is_within(ERRORS_TO_PREFER_SIMPLE, margin)
    )
