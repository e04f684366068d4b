"""The winner of a race once more: families as they would be returned, with other models added.

Several planes that lost to one plane can be far better than both with that one plane added to them
(``shares.py``): the curves of one model, and regions around which they are raised or lowered. A
family of several planes takes the first place if, with what it would get, its validation loss is
lower than that of the winner with what *it* would get: by ``ERRORS_TO_DROP`` standard errors of
the paired difference, and by what more to read has to be worth (``WORTH_IT``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from geomix.arrays import FloatArray
from geomix.search.constants import WORTH_IT
from geomix.search.folds import Fold, pooled
from geomix.search.outcome import Outcome, Runner
from geomix.search.shares import Other, ValidationRows, as_addition, best_shares
from geomix.search.splits import Folds
from geomix.search.trials import Measured, paired, weighted_mean


@dataclass(frozen=True, eq=False)
class Entry:
    """A family, its best candidate with the other models that it would get, and their families."""

    runner: Runner
    blended: Measured
    added: tuple[str, ...] = ()


def others_than(runner: Runner, outcome: Outcome) -> list[Other]:
    """The best models of one plane per class of the other families."""
    return [
        Other(one.family.name, one.best, outcome.fits.get(one.best))
        for one in outcome.runners
        if one is not runner and one.best is not None and one.can_be_added
    ]


def with_others_added(outcome: Outcome, folds: Folds) -> Outcome:
    """The outcome with the best family of several planes as the winner, where that is clearly
    better; and what the winner reaches with the other models that it would get."""
    if outcome.winner not in outcome.fits or not folds.task.settings.calibrate:
        return outcome
    trained = outcome.fits[outcome.winner].folds
    won = _entry(outcome.won, outcome, folds)
    rivals = [_entry(one, outcome, folds) for one in _rivals(outcome, trained)]
    better = [one for one in rivals if _is_clearly_better(one, won, folds)]
    best = min(better, key=lambda one: one.blended.loss, default=won)
    return replace(outcome, won=best.runner, blended=best.blended, added=best.added)


def _rivals(outcome: Outcome, trained: Sequence[Fold]) -> Iterator[Runner]:
    """Families of several planes that were measured on the folds of the winner."""
    for one in outcome.runners:
        kept = None if one.best is None else outcome.fits.get(one.best)
        if one is outcome.won or one.best is None or kept is None or kept.folds != trained:
            continue
        if one.best.candidate.n_planes != 1 and one.best.candidate.lift != "fourier":
            yield one


def _is_clearly_better(one: Entry, won: Entry, folds: Folds) -> bool:
    gain = paired(won.blended, one.blended)
    worth_it = WORTH_IT[folds.task.settings.preset] * won.blended.loss
    return gain.is_clear(worth_it)


def _entry(runner: Runner, outcome: Outcome, folds: Folds) -> Entry:
    """The best of a family with other models added; alone where its lift allows no addition."""
    settings, best = folds.task.settings, runner.best
    assert best is not None
    if best.candidate.lift == "fourier":
        return Entry(runner, best)
    kept = outcome.fits[best]
    is_ensemble = folds.n_members(best.candidate) > 1
    additions = [
        as_addition(one, one.kept.scores, best.candidate, settings, is_ensemble=is_ensemble)
        for one in others_than(runner, outcome)
        if one.kept is not None and one.kept.folds == kept.folds
    ]
    rows = ValidationRows(*pooled(kept.folds), settings)
    shares, S = best_shares(kept.scores, additions, rows)
    if not shares:
        return Entry(runner, best)
    added = [one.of.measured for one in shares]
    return Entry(runner, _with(best, added, S, rows), tuple(one.of.family for one in shares))


def _with(
    best: Measured, added: Sequence[Measured], S: FloatArray, rows: ValidationRows
) -> Measured:
    """What a candidate reaches with other models added, where its class scores are ``S``."""
    temperature, losses = rows.losses(S)
    return replace(
        best,
        row_losses=losses,
        accuracy=weighted_mean(S.argmax(axis=1) == rows.y, rows.weight),
        temperature=temperature,
        n_numbers=best.n_numbers + sum(one.n_numbers for one in added),
        n_pairs=max(best.n_pairs, *(one.n_pairs for one in added)),
    )
