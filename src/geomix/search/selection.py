"""Which lift, how many planes, which penalty: candidates compete on held-out likelihood.

``search/families.py`` walks through them, ``search/trials.py`` measures each. On few rows a richer
one has to beat
a simpler one by more than a share of the noise of the comparison: there the best of twenty
candidates is mostly the luckiest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from geomix.search.families import Search
from geomix.search.folds import Fold, Watch
from geomix.search.neighbours import SearchIsOver
from geomix.search.trials import Measured, is_level, paired
from geomix.training.deadline import Deadline
from geomix.training.settings import Settings

# Nats per row that several spline planes have to win to be worth reading.
WORTH_IT = 0.001


@dataclass(frozen=True)
class Choice:
    """The winner, everything that was measured on the way, in order, and why it won."""

    winner: Measured
    measured: list[Measured]
    why: str


def choose_candidate(
    folds: list[Fold],
    more_rows: Callable[[], Fold | None],
    settings: Settings,
    watch: Watch | None,
    *,
    lifts: tuple[str, ...],
    handicap: float,
    deadline: Deadline | None = None,
) -> Choice:
    """Walk through the candidates and pick one; a spline may be settled on more rows.

    ``folds`` is empty afterwards: their features make room for those of ``more_rows``.
    ``handicap`` is how many standard errors worse a simpler model may be and still win.
    """
    choice = _searched(Search(folds, settings, watch, handicap, deadline), lifts)
    folds.clear()
    if choice.winner.candidate.lift != "spline" or _is_over(deadline):
        return choice
    if (fold := more_rows()) is None:
        return choice
    search = Search([fold], settings, watch, handicap, deadline)
    with suppress(SearchIsOver):
        search.refined(choice.winner)
    # A trial that the deadline ended says nothing.
    return choice if _is_over(deadline) else _refined(choice, search)


def _is_over(deadline: Deadline | None) -> bool:
    return deadline is not None and deadline.is_past("choose")


def _searched(search: Search, lifts: tuple[str, ...]) -> Choice:
    finalists: list[Measured] = []
    ended = ""
    try:
        for finalist in search.finalists(lifts):
            finalists.append(finalist)
    except SearchIsOver as over:
        ended = f" {over}"
        assert search.best is not None
        finalists.append(search.best)
    winner = _simplest_of_the_best(finalists, search.handicap)
    why = " ".join([_why(winner, finalists), *search.left]) + ended
    return Choice(winner, list(search.measured.values()), why)


def _refined(choice: Choice, search: Search) -> Choice:
    best = search.best
    assert best is not None
    rows = f"{choice.winner.n_rows} of the rows. On {best.n_rows}"
    why = f"{choice.why} This on {rows}: {best.name}, held-out loss {best.loss:.4f}."
    return Choice(best, [*choice.measured, *search.measured.values()], why)


def _why(winner: Measured, finalists: list[Measured]) -> str:
    """The winner beside the best of the others, in a sentence."""
    chosen = f"Chosen: {winner.name}, held-out loss {winner.loss:.4f}"
    others = [one for one in finalists if one.candidate != winner.candidate]
    if not others:
        return f"{chosen}; nothing else was in the running."
    second = min(others, key=lambda m: m.loss)
    gap = paired(second.row_losses, winner.row_losses, winner.row_weights)
    rival = f"{second.name}: {second.loss:.4f}, {abs(gap.mean):.4f} ± {gap.error:.4f}"
    if gap.mean >= 0.0:
        return f"{chosen}. Next best: {rival} behind."
    return f"{chosen}. Better, but by too little to prefer the richer model: {rival} ahead."


def _simplest_of_the_best(finalists: list[Measured], handicap: float) -> Measured:
    """The first finalist that is not worse than the best by more than the handicap; not several
    spline planes where those win too little to matter."""
    best = min(finalists, key=lambda m: m.loss)
    plain = [one for one in finalists if not one.is_rich]
    if best.is_rich and plain and min(one.loss for one in plain) <= best.loss + WORTH_IT:
        return _simplest_of_the_best(plain, handicap)
    return next(one for one in finalists if is_level(one, best, handicap))
