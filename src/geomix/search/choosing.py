"""Choosing the candidate that is trained on all rows, and the temperature of its probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from geomix.search.candidates import Candidate
from geomix.search.constants import STARTS
from geomix.search.cost import budget_for, most_final_iterations, most_members, operations
from geomix.search.families import racing
from geomix.search.fitted import Watch
from geomix.search.outcome import Outcome, Runner, set_verdicts
from geomix.search.race import run_race
from geomix.search.shares import Other
from geomix.search.splits import Folds, Rungs, Task
from geomix.search.trials import KeptFits, Measured
from geomix.search.winner import others_than, with_others_added
from geomix.table.row_views import is_dense
from geomix.training.choice import Choice, FamilyResult
from geomix.training.deadline import Deadline
from geomix.training.history import Log


@dataclass(frozen=True)
class Chosen:
    """The candidate to train on all rows, and what was found on validation rows.

    n_iter : iterations of the final training, None for the settings';  n_rows : training rows that
    the penalty is for;  operations : of one training;  is_measured : False where nothing could be
    held out;  n_starts : random starts of the final training;  n_members : of an ensemble, 1 for a
    single model;  kept : its fits of the last comparison, where they were kept;  others : the best
    models of one plane per class of the other families.
    """

    candidate: Candidate
    n_iter: int | None = None
    temperature: float = 1.0
    n_rows: int = 0
    operations: float = 0.0
    is_measured: bool = True
    n_starts: int = 1
    n_members: int = 1
    kept: KeptFits | None = None
    others: Sequence[Other] = ()

    def without_fits(self) -> Chosen:
        """What the final training needs."""
        return replace(self, kept=None, others=())

    def for_rows(self, n_rows: int) -> Candidate:
        """The candidate with the same prior beside ``n_rows`` training rows."""
        return self.candidate.for_rows(n_rows, self.n_rows)


def choose(
    folds: Folds,
    log: Log,
    watch: Watch | None,
    deadline: Deadline | None,
    *,
    adds_others: bool = True,
) -> Chosen:
    """Race the families that the settings leave open; write what was measured to the log.

    adds_others : whether the winner will get the planes of other models.
    """
    task, settings = folds.task, folds.task.settings
    lifts = _lifts(task, log)
    needs_trial = task.refit and (settings.calibrate or settings.early_stopping != "off")
    folds.is_decided = _is_decided(task, lifts)
    if not folds.can_measure or (folds.is_decided and not needs_trial):
        family = racing(settings, lifts)[0]
        start = family.start(settings, folds.final.preparation.most_knots, None)
        return Chosen(start, is_measured=False, n_members=folds.n_members(start))
    rungs = Rungs(folds)
    outcome = run_race(
        rungs, settings, watch, lifts, budget_for(settings, folds, len(rungs)), deadline
    )
    if adds_others:
        outcome = with_others_added(outcome, folds)
    set_verdicts(outcome)
    _record(outcome, log)
    return _chosen(outcome, folds, log)


def _chosen(outcome: Outcome, folds: Folds, log: Log) -> Chosen:
    task, settings, winner = folds.task, folds.task.settings, outcome.winner
    # Without early stopping a trial ends by converging, which does not limit the final training,
    # or at its limit, which does: that is the model that was measured.
    ended_early = settings.early_stopping == "off" and not winner.is_cut_short
    n_iter = winner.n_iter if task.refit and not ended_early else None
    candidate = winner.candidate
    if settings.l2 == "auto" and winner.n_rows < folds.n_train:
        candidate = candidate.for_rows(folds.n_train, winner.n_rows)
    cost = operations(candidate, [folds.final])
    n_members, of_all = folds.n_members(candidate), cost
    if settings.n_members == "auto" and n_members > 1:
        n_members = min(n_members, most_members(settings, cost))
        of_all = cost if n_members == 1 else 2.0 * n_members * cost
    most = most_final_iterations(settings, folds, of_all)
    if n_iter is None and most < settings.max_iter:
        n_iter = most
        log.notes.append(
            f"The final training has at most {most} iterations: more are over the budget of "
            f"preset={settings.preset!r}."
        )
    free = settings.init == "auto" and settings.solver == "auto" and len(outcome.trials) > 1
    n_starts = STARTS.number if free and STARTS.number * settings.max_iter <= most else 1
    return Chosen(
        candidate,
        n_iter,
        winner.temperature,
        folds.n_train,
        cost,
        n_starts=n_starts,
        n_members=n_members,
        kept=outcome.fits.get(winner),
        others=others_than(outcome.won, outcome),
    )


def _lifts(task: Task, log: Log) -> tuple[str, ...]:
    lifts = task.settings.lifts
    if is_dense(task.rows.X) or lifts == ("linear",):
        return lifts
    log.notes.append("Sparse input: only the linear lift was considered.")
    return ("linear",)


def _is_decided(task: Task, lifts: tuple[str, ...]) -> bool:
    """Whether the settings leave one candidate."""
    settings = task.settings
    families = racing(settings, lifts)
    if len(families) > 1:
        return False
    if not families[0].coarse:
        return True
    return (
        settings.n_planes != "auto"
        and settings.l2 != "auto"
        and (settings.shrink_to_mean != "auto" or lifts[0] != "spline")
        and (lifts[0] != "fourier" or settings.gamma != "auto")
    )


def _record(outcome: Outcome, log: Log) -> None:
    verdicts = {id(runner.best): runner.verdict for runner in outcome.runners}
    log.trials.extend(
        tried.measured.as_trial(
            tried.family,
            tried.rung,
            verdicts.get(id(tried.measured), ""),
            chosen=tried.measured is outcome.winner,
        )
        for tried in outcome.trials
    )
    results = tuple(
        _result(one, (outcome.blended if one is outcome.won else None) or one.best)
        for one in outcome.runners
        if one.best is not None
    )
    log.choice = Choice(results, outcome.ended)
    log.notes.extend(
        f"Not tried: {one.family.name}, {one.verdict or 'the race had ended'}."
        for one in outcome.runners
        if one.best is None
    )


def _result(runner: Runner, best: Measured) -> FamilyResult:
    return FamilyResult(
        runner.family.name,
        best.loss,
        best.accuracy,
        best.n_planes,
        best.n_pairs,
        best.n_numbers,
        best.n_rows,
        runner.verdict,
    )
