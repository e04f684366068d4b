"""Fits of one candidate that differ in their rows or their random start, side by side."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from geomix.search.candidates import Candidate
from geomix.search.constants import STARTS
from geomix.search.fitted import Fitted, Watch
from geomix.search.folds import Fold, train_on_fold
from geomix.search.parallel import in_order
from geomix.training.settings import Settings


def train_on_folds(
    candidate: Candidate,
    folds: Sequence[Fold],
    settings: Settings,
    watch: Watch | None,
    max_iter: int,
    threads: int,
) -> Generator[Fitted, None, None]:
    """The fits of a trial, fold after fold; ``threads`` of them side by side.

    A fold that was begun and not taken is left as if it had not been: later candidates start from
    what its fold has trained. A watcher sees one fit at a time.
    """
    if watch is not None:
        threads = 1
    before = [fold.state() for fold in folds] if threads > 1 else []
    n_taken = 0

    def train(fold: Fold) -> Fitted:
        return train_on_fold(candidate, fold, settings, watch, "choose", max_iter)

    fits = in_order(train, folds, threads)
    try:
        for fitted in fits:
            n_taken += 1
            yield fitted
    finally:
        fits.close()
        for fold, state in list(zip(folds, before, strict=False))[n_taken:]:
            fold.restore(state)


def train_from_starts(
    n_starts: int,
    candidate: Candidate,
    fold: Fold,
    settings: Settings,
    watch: Watch | None,
    max_iter: int | None,
    until: Watch | None,
    threads: int = 1,
) -> Fitted:
    """The final training from several random starts; the lowest training objective is kept.

    One plane per class has one optimum, which every start would find. until : ends the starts
    after the first, which ``watch`` does not see: its iterations would begin again. threads :
    starts that are trained side by side.
    """

    def train(start: int) -> Fitted:
        seen = until if start else watch
        return train_on_fold(candidate, fold, settings, seen, "fit", max_iter, start=start)

    best = train(0)
    if fold.preparation.is_one_plane(candidate.n_planes):
        return best
    # The first start leaves the features and the plane that the others split.
    threads = threads if best.is_small and until is None else 1
    others = in_order(train, range(1, n_starts), threads)
    while best.trained.stopped != "request":  # by a callback, or at the time limit
        other = next(others, None)
        if other is None:
            break
        if _objective(other) < (1.0 - STARTS.worth_it) * _objective(best):
            best = other
    others.close()
    return best


def _objective(fitted: Fitted) -> float:
    records = fitted.trained.records
    return records[-1].loss if records else np.inf
