"""The race: families of models compete on validation rows, on rungs with more and more rows.

    for each rung
        each family that is still in the race walks along its axes while its loss falls
        a family that is behind the best by more than the noise and a margin is dropped
    the best of each family that is left is measured once more, on five folds, and with it
    what may be added to the winner
    a kernel that is still in the race tries learnt frequencies
    the simplest family that is level with the best wins

One rule compares: the paired difference of the row losses against its standard error plus a
margin. One budget bounds: a trial that would exceed it is skipped. Everything that was measured is
kept with its rung and its verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import accumulate

from geomix.search.candidates import AXES, Candidate, Range
from geomix.search.constants import (
    ERRORS_TO_DROP,
    FEWEST_ROWS,
    MARGIN_TO_DROP,
    NATS,
    WORTH_IT,
)
from geomix.search.cost import Budget, operations
from geomix.search.families import Family, racing
from geomix.search.fitted import Watch
from geomix.search.folds import Fold
from geomix.search.outcome import (
    DROPPED,
    OVER_BUDGET,
    Outcome,
    Runner,
    Tried,
    bests_of,
    distance,
    simplest_level_with_best,
)
from geomix.search.parallel import SMALLEST_WORK, n_threads
from geomix.search.splits import Rungs
from geomix.search.trials import KeptFits, Measured, measure, paired
from geomix.training.deadline import Deadline
from geomix.training.settings import Settings


class RaceIsOver(Exception):
    """The message is the reason."""


@dataclass
class Race:
    """The state of a race on one rung."""

    settings: Settings
    watch: Watch | None
    deadline: Deadline | None
    budget: Budget
    runners: list[Runner]
    trials: list[Tried] = field(default_factory=list)
    n_rungs: int = 1
    rung: int = 0
    folds: list[Fold] = field(default_factory=list)
    known: dict[Candidate, Measured] = field(default_factory=dict)
    fits: dict[Measured, KeptFits] = field(default_factory=dict)

    @property
    def is_last_rung(self) -> bool:
        return self.rung >= self.n_rungs - 1

    @property
    def best(self) -> Measured | None:
        """The best of all families on this rung."""
        return min(self.known.values(), key=lambda m: m.loss, default=None)

    @property
    def _has_folds(self) -> bool:
        """Whether rows are few, so that every trial takes several folds."""
        return len(self.folds) > 1

    def run_rung(self, rung: int, folds: list[Fold]) -> None:
        self.rung, self.folds = rung, folds
        self.known = {}
        if rung:  # all families on more rows, before any of them walks on
            self.budget.open_part()
            self._each(self._enter)
            self._drop_what_is_behind(self.runners)
        self._each(self._advance)
        self._drop_what_is_behind(self.runners)

    def _each(self, move: Callable[[Runner], None]) -> None:
        for runner in self.runners:
            if not runner.is_out:
                move(runner)

    def run_finals(self, rungs: Rungs) -> None:
        """Compare the families that are left on several folds: the best of many candidates on one
        split is partly lucky. Where the budget has no room for all, the best of them. Models of one
        plane per class that were dropped are measured with what is left of the budget, because they
        may be added to the winner (``shares.py``). Those that are not behind here are back."""
        left = [one for one in self.runners if one.best in self.known.values() and not one.is_out]
        dropped = [one for one in self.runners if one.is_dropped and one.can_be_added]
        folds = rungs.finals if len(left) + len(dropped) > 1 else []
        if not folds:
            return
        self.budget.open_part()
        compared = self._affordable(left, folds)
        added = self._affordable(dropped, folds, beside=compared)
        if len(compared) < min(len(left), 2) or len(compared) + len(added) < 2:
            return
        for runner in left:
            if runner not in compared:
                runner.verdict = "left out of the finals, over budget"
        self._compare(compared, rungs)
        for runner in added:
            self._measure_again(runner, rungs, to_the_end=True)
            runner.verdict = ""
            self._drop_what_is_behind([runner])

    def _compare(self, left: list[Runner], rungs: Rungs) -> None:
        """Measure the best of each family on the folds of the finals."""
        before = self.known, [one.best for one in left]
        for fold in self.folds:
            fold.forget()
        self.rung, self.folds, self.known = len(rungs), rungs.finals, {}
        self.budget = Budget(math.inf)  # trials may take more than they were counted with
        try:
            for runner in left:
                self._measure_again(runner, rungs)
        except RaceIsOver:  # some families were not compared: the last rung decides
            self.known, bests = before
            for runner, best in zip(left, bests, strict=True):
                runner.best = best
            raise

    def _measure_again(self, runner: Runner, rungs: Rungs, *, to_the_end: bool = False) -> None:
        assert runner.best is not None
        candidate = self._on_these_rows(runner.best)
        runner.best = self._measured(candidate, runner, to_the_end=to_the_end)
        rungs.give_back_memory()

    def run_last(self) -> None:
        """Walk the last axes of the families that are still in the race. What they cost is bounded
        by their own (``learnt_lift.MOST_ROWS``), and not by the budget."""
        self.budget = Budget(math.inf)
        for runner in self.runners:
            if runner.best in self.known.values() and not runner.is_out:
                for axis in runner.family.last:
                    self._walk(axis, runner)

    def _affordable(
        self, some: list[Runner], folds: list[Fold], beside: Sequence[Runner] = ()
    ) -> list[Runner]:
        """The best families whose finals the budget has room for, in the order of the race.
        beside : families whose finals are paid already."""
        first, bests = bests_of(beside), sorted(bests_of(some), key=lambda m: m.loss)
        spent = accumulate(operations(one.candidate, folds) for one in (*first, *bests))
        costs = list(spent)[len(first) :]
        found = {one for one, cost in zip(bests, costs, strict=True) if self.budget.allows(cost)}
        return [one for one in some if one.best in found]

    def _advance(self, runner: Runner) -> None:
        """Walk along the family's axes, from its best on these rows or from its start."""
        axes = runner.family.fine
        if runner.best is None:
            axes = runner.family.coarse
            with self._room_for_later(runner):
                self._enter(runner)
        if runner.is_out:
            return
        with self.budget.shared():
            self._walk_along(axes, runner)

    def _room_for_later(self, runner: Runner) -> AbstractContextManager[None]:
        """The start of a family leaves budget to those that come later: on wide tables one trial
        of curves would take all of it."""
        is_last = runner is self.runners[-1]
        return nullcontext() if is_last else self.budget.shared()

    def _walk_along(self, axes: tuple[str, ...], runner: Runner) -> None:
        for axis in axes:
            if self._is_decided(runner, axis):
                return
            self._walk(axis, runner)
            if not self._has_a_chance(runner):
                return

    def _is_decided(self, runner: Runner, axis: str) -> bool:
        """Whether walking an axis would not pay: a family that is behind stays there. One number of
        planes shows little about the others."""
        if runner.family.parent is None or axis == "planes":
            return False
        return self._stays_behind(runner) if self._has_folds else self._is_behind_in_vain(runner)

    def _stays_behind(self, runner: Runner) -> bool:
        """On few rows: a family clearly behind the best, or that starts far behind its parent."""
        return self._is_behind(runner) or not self._has_a_chance(runner, MARGIN_TO_DROP.of_start)

    def _is_behind_in_vain(self, runner: Runner) -> bool:
        """On more rows, where a walk finds another penalty from any start: a family that is clearly
        behind the best and no better than its parent, which is clearly behind as well. Not where
        two rungs follow: eight times as many rows may turn that round."""
        if self.rung + 2 < self.n_rungs:
            return False
        parent = self._parent(runner)
        is_behind = parent is not None and self._is_behind(parent) and self._is_behind(runner)
        return is_behind and self._is_in_vain(runner)

    def _enter(self, runner: Runner) -> None:
        """Measure a family's best on the last rung, or its start, on the rows of this rung."""
        start = self._start(runner)
        if start is None:
            return
        parent = self._parent(runner)
        best = self._measured(start, runner, None if parent is None else parent.best)
        if best is None:
            runner.verdict = OVER_BUDGET
        else:
            runner.best = best

    def _start(self, runner: Runner) -> Candidate | None:
        if runner.best is not None:
            return self._on_these_rows(runner.best)
        parent = self._parent(runner)
        runner.verdict = self._why_skipped(runner, parent)
        if runner.is_out:
            return None
        known = None if parent is None or parent.best is None else parent.best.candidate
        most_knots = self.folds[0].preparation.most_knots
        return runner.family.start(self.settings, most_knots, known)

    def _why_skipped(self, runner: Runner, parent: Runner | None) -> str:
        """The verdict on a family that does not start; empty if it does."""
        if parent is not None and parent.best is None:
            return f"skipped with its parent, {parent.family.name}"
        if self._needs_more_rows(runner.family):
            return "skipped, rows are few"
        if self._has_folds and parent is not None:
            if self._is_in_vain(parent):
                return f"skipped, {parent.family.name} is no better than its own parent"
            if self._starts_behind(runner, parent):
                return f"skipped, {parent.family.name} is behind a simpler family"
        if runner.family.has_pairs and not self.folds[0].pairs:
            return "skipped, no pair of columns interacts"
        return ""

    def _needs_more_rows(self, family: Family) -> bool:
        """Whether a family has never won on so few rows: several planes with pairs."""
        are_few = self.folds[0].n_train < FEWEST_ROWS.for_planes_with_pairs
        return are_few and family.has_pairs and family.has_several_planes

    def _is_in_vain(self, runner: Runner) -> bool:
        """Whether a family is no better than the one it started from."""
        parent = self._parent(runner)
        if parent is None or parent.best is None or runner.best is None:
            return False
        return runner.best.loss >= parent.best.loss

    def _starts_behind(self, runner: Runner, parent: Runner) -> bool:
        """Whether several planes would start from a family that is behind a simpler one: where
        lines are better than one curve per column, several curves are not better (decision 64)."""
        simpler = bests_of(self.runners[: self.runners.index(parent)])
        if not runner.family.has_several_planes or not simpler or parent.best is None:
            return False
        best = min(one.loss for one in simpler)
        return parent.best.loss > (1.0 + MARGIN_TO_DROP.of_best) * best

    def _parent(self, runner: Runner) -> Runner | None:
        return next((r for r in self.runners if r.family.name == runner.family.parent), None)

    def _on_these_rows(self, found: Measured) -> Candidate:
        if self.settings.l2 != "auto":
            return found.candidate
        return found.candidate.for_rows(self.folds[0].n_train, found.n_rows)

    def _walk(self, axis: str, runner: Runner) -> None:
        """Step along an axis one way, then the other, while the loss falls."""
        within = Range(
            self.settings,
            self.folds[0].preparation.most_knots,
            runner.family.plane_counts,
            runner.family.pair_counts,
        )
        start = runner.best
        for up in (True, False):
            while runner.best is not None:
                stepped = AXES[axis](runner.best.candidate, up, within)
                if stepped is None or self._is_same_model(stepped, runner.best.candidate, axis):
                    break
                other = self._measured(stepped, runner, runner.best)
                if other is None or other.loss >= self._to_beat(runner.best, axis, up):
                    break
                runner.best = other
            if runner.best is not start:
                return

    def _is_same_model(self, stepped: Candidate, before: Candidate, axis: str) -> bool:
        """Whether another number of planes or pairs changes nothing: the classes have too few rows
        for it, or no other pairs interact."""
        if axis == "planes":
            n_planes_of = self.folds[0].preparation.n_planes_of
            return n_planes_of(stepped.n_planes) == n_planes_of(before.n_planes)
        fewest = min(stepped.n_pairs, before.n_pairs)
        return axis == "pairs" and all(len(fold.pairs) <= fewest for fold in self.folds)

    def _to_beat(self, best: Measured, axis: str, up: bool) -> float:
        """The loss that a step has to reach: more planes or pairs have to be worth reading."""
        adds_to_read = up and axis in ("planes", "pairs")
        wanted = (1.0 - WORTH_IT[self.settings.preset] * adds_to_read) * best.loss
        return wanted - NATS.worth_a_step / len(best.row_losses)

    def _measured(
        self,
        candidate: Candidate,
        runner: Runner,
        before: Measured | None = None,
        *,
        to_the_end: bool = False,
    ) -> Measured | None:
        """The trial of a candidate; None if it would exceed the budget. before : the candidate
        that it is a step from;  to_the_end : on every fold, however far behind it is."""
        if candidate not in self.known:
            cost = operations(candidate, self.folds)
            if self.known or self.trials:
                self._end_if_over()
                if not self.budget.allows(cost):
                    return None
            rivals = [] if to_the_end else [self.best, before]
            found, kept = measure(
                candidate,
                self.folds,
                self.settings,
                self._told(runner),
                [one for one in rivals if one is not None],
                is_last_rung=self.is_last_rung,
                threads=self._threads(cost / len(self.folds)),
            )
            n_done = sum(one.trained.n_done for one in kept.fits)
            self.budget.spend(operations(candidate, self.folds[:1], n_done))
            self.known[candidate] = found
            self.trials.append(Tried(runner.family.name, self.rung, found))
            self._keep(found, kept)
        return self.known[candidate]

    def _threads(self, cost: float) -> int:
        """Folds to train side by side, where one of them costs this many operations."""
        return n_threads(self.settings.n_jobs) if cost >= SMALLEST_WORK else 1

    def _keep(self, found: Measured, made: KeptFits) -> None:
        """Keep the fits of the best of each family, and of what was just measured on all folds."""
        bests = {runner.best for runner in self.runners}
        self.fits = {one: kept for one, kept in self.fits.items() if one in bests}
        is_whole = self.is_last_rung and len(made.fits) == len(self.folds)
        if is_whole and all(one.is_small for one in made.fits):
            self.fits[found] = made

    def _told(self, runner: Runner) -> Watch | None:
        """The watch, whose records name the family and the share of the race that is done."""
        watch = self.watch
        if watch is None:
            return None
        done = (self.rung + self.runners.index(runner) / len(self.runners)) / self.n_rungs
        done = min(done, 1.0)  # the finals come after the last rung
        task = f"{runner.family.name}, {done:.0%} of the choice done"
        return lambda record, snapshot: watch(replace(record, task=task), snapshot)

    def _end_if_over(self) -> None:
        best = self.best
        if best is None:
            return
        if self.is_last_rung and best.loss * len(best.row_losses) <= NATS.left_to_win:
            raise RaceIsOver("nothing left to win")
        if self.deadline is not None and self.deadline.is_past("choose"):
            raise RaceIsOver("time_limit: its share for the choice was used up")

    def _has_a_chance(self, runner: Runner, margin: float = MARGIN_TO_DROP.of_best) -> bool:
        """Whether a family is worth walking further: not behind the family it started from."""
        parent = self._parent(runner)
        if parent is None or parent.best is None or runner.best is None:
            return True
        return runner.best.loss <= (1.0 + margin) * parent.best.loss

    def _is_behind(self, runner: Runner) -> bool:
        """Whether the best of a family is clearly worse than the best of all."""
        best = self.best
        if best is None or runner.best is None:
            return False
        excess = paired(runner.best, best)
        return not excess.is_within(ERRORS_TO_DROP, MARGIN_TO_DROP.of_best * best.loss)

    def _drop_what_is_behind(self, runners: Sequence[Runner]) -> None:
        for runner in runners:
            if not runner.is_out and self._is_behind(runner):
                assert runner.best is not None
                assert self.best is not None
                runner.verdict = f"{DROPPED}, {distance(paired(runner.best, self.best))}"


def run_race(
    rungs: Rungs,
    settings: Settings,
    watch: Watch | None,
    lifts: tuple[str, ...],
    budget: Budget,
    deadline: Deadline | None = None,
) -> Outcome:
    """Race the families over the rungs; return the winner and everything that was measured."""
    runners = [Runner(family) for family in racing(settings, lifts)]
    race = Race(settings, watch, deadline, budget, runners, n_rungs=len(rungs))
    ended = ""
    try:
        for rung in range(len(rungs)):
            race.run_rung(rung, rungs.folds(rung))
            rungs.give_back_memory()
        race.run_finals(rungs)
        race.run_last()
    except RaceIsOver as over:
        ended = str(over)
    return _outcome(race, ended)


def _outcome(race: Race, ended: str) -> Outcome:
    measured = [one for one in race.runners if one.best in race.known.values()]
    finalists = [one for one in measured if not one.is_dropped]
    # Where the budget ended before the last rung, the rung below decides: validation rows are
    # the same on every rung.
    finalists = finalists or [
        one for one in race.runners if one.best is not None and one.verdict in ("", OVER_BUDGET)
    ]
    # The best of all may be a step that gained too little to be taken: all are behind it then.
    finalists = finalists or [one for one in race.runners if one.best is not None]
    winner = simplest_level_with_best(bests_of(finalists), WORTH_IT[race.settings.preset])
    won = next(runner for runner in finalists if runner.best is winner)
    return Outcome(won, finalists, race.runners, race.trials, ended, race.fits)
