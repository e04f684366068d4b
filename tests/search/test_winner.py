"""Families compared once more, as they would be returned: with the planes of other models."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from geomix.search.candidates import Candidate
from geomix.search.families import FAMILIES
from geomix.search.outcome import Outcome, Runner, set_verdicts
from geomix.search.trials import Excess, KeptFits, Measured, losses_of
from geomix.search.winner import others_than, with_others_added
from geomix.training.settings import Settings

N_ROWS = 4000
SETTINGS = Settings()


class StandInFold:
    """A fold with validation rows alone."""

    def __init__(self, y):
        self.valid = SimpleNamespace(y=y, weight=np.ones(len(y)))


@pytest.fixture
def table(rng):
    """Labels with two causes: each model below has found one of them, or a part of both."""
    causes = rng.normal(size=(2, N_ROWS))
    y = (causes.sum(axis=0) > 0.3 * rng.logistic(size=N_ROWS)).astype(int)
    return causes, [StandInFold(y)]


def runner_of(name, log_odds, folds, n_planes):
    """A family whose best candidate has these scores on the validation rows, and its fits."""
    y, weight = folds[0].valid.y, folds[0].valid.weight
    family = next(one for one in FAMILIES if one.name == name)
    scores = np.stack([-log_odds / 2.0, log_odds / 2.0], axis=1)
    temperature, losses = losses_of(scores, y, weight, SETTINGS)
    candidate = Candidate(family.lift, 1e-3, n_planes=n_planes)
    accuracy = float(np.mean(scores.argmax(axis=1) == y))
    best = Measured(candidate, 2 * n_planes, 10, losses, weight, accuracy, temperature, 400, 10)
    return Runner(family, best), KeptFits(folds, [None], scores)


def raced(folds, **scores):
    """The outcome of a race that the first family won; ``_`` in a name stands for a blank."""
    made = [
        runner_of(name.replace("_", " "), log_odds, folds, 3 if "several" in name else 1)
        for name, log_odds in scores.items()
    ]
    runners = [runner for runner, _ in made]
    fits = {runner.best: kept for runner, kept in made}
    return Outcome(runners[0], runners, runners, [], fits=fits)


def task(settings=SETTINGS, n_members=1):
    return SimpleNamespace(task=SimpleNamespace(settings=settings), n_members=lambda _: n_members)


def test_several_planes_that_lose_alone_win_with_the_winner_added(table):
    causes, folds = table
    outcome = raced(folds, spline=3.0 * causes[0], several_linear_planes=2.8 * causes[1])
    found = with_others_added(outcome, task())
    assert found.won.family.name == "several linear planes"
    assert found.blended.loss < 0.7 * outcome.winner.loss
    set_verdicts(found)
    behind, chosen = (one.verdict for one in found.runners)
    assert behind.startswith("behind by 0.")
    assert chosen == "chosen, with spline added"


def test_what_the_winner_would_get_is_measured_and_counted(table):
    causes, folds = table
    outcome = raced(folds, several_linear_planes=3.0 * causes[1], spline=2.8 * causes[0])
    found = with_others_added(outcome, task())
    assert found.won is outcome.won
    assert found.blended.loss < 0.7 * outcome.winner.loss
    assert found.blended.accuracy > outcome.winner.accuracy
    assert found.blended.n_numbers == 20


def test_the_winner_stays_where_several_planes_add_only_noise(table, rng):
    causes, folds = table
    both = causes.sum(axis=0)
    noisy = both + 0.05 * rng.normal(size=N_ROWS)
    outcome = raced(folds, spline=3.0 * both, several_spline_planes=3.0 * noisy)
    assert with_others_added(outcome, task()).won is outcome.won


def test_without_calibration_nothing_is_added(table):
    causes, folds = table
    outcome = raced(folds, spline=3.0 * causes[0], several_linear_planes=2.8 * causes[1])
    plain = replace(SETTINGS, calibrate=False)
    assert with_others_added(outcome, task(plain)) is outcome


def test_families_measured_on_other_folds_are_not_compared(table):
    causes, folds = table
    outcome = raced(folds, spline=3.0 * causes[0], several_linear_planes=2.8 * causes[1])
    best = outcome.runners[1].best
    elsewhere = [StandInFold(folds[0].valid.y)]
    fits = {**outcome.fits, best: outcome.fits[best]._replace(folds=elsewhere)}
    assert with_others_added(replace(outcome, fits=fits), task()).won is outcome.won


def test_members_of_an_ensemble_need_a_larger_gain(table):
    """Two percent: that much they even out by themselves."""
    causes, folds = table
    both = causes.sum(axis=0)
    outcome = raced(folds, several_spline_planes=3.0 * both - 0.4 * causes[0], spline=causes[0])
    alone = outcome.winner.loss
    assert 0.98 * alone < with_others_added(outcome, task()).blended.loss < 0.995 * alone
    assert with_others_added(outcome, task(n_members=8)).blended.loss == alone


def test_kernels_and_several_planes_are_never_added(table):
    causes, folds = table
    outcome = raced(folds, spline=causes[0], several_linear_planes=causes[1], kernel=causes[1])
    assert others_than(outcome.won, outcome) == []
    assert [one.family for one in others_than(outcome.runners[1], outcome)] == ["spline"]


@pytest.mark.parametrize(
    ("mean", "error", "is_clear"), [(0.03, 0.01, True), (0.015, 0.01, False), (0.008, 0.001, False)]
)
def test_a_gain_is_clear_beyond_the_noise_and_the_margin(mean, error, is_clear):
    assert Excess(mean, error).is_clear(margin=0.01) == is_clear
