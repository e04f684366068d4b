"""How a fit chooses among families of models, when it stops, and what it reports about it."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from making import classifier
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier, InvalidParameterError, estimator
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.spline import fit_spline
from geomix.core.spline_parts import PairPart
from geomix.search import (
    choosing,
    constants,
    cost,
    folds,
    race,
    several_fits,
    splits,
    trials,
)
from geomix.search.candidates import AXES, Candidate, Range
from geomix.search.constants import Calibration
from geomix.search.families import FAMILIES, racing
from geomix.search.outcome import Runner, simplest_level_with_best
from geomix.search.trials import Measured, paired
from geomix.table.row_views import numbers
from geomix.training.deadline import Deadline
from geomix.training.initial_planes import flat_planes
from geomix.training.interactions import strongest_pairs
from geomix.training.rows import Rows, distinct_rows, stratified_split
from geomix.training.settings import Settings


@pytest.fixture(scope="module")
def moons():
    return make_moons(2000, noise=0.25, random_state=0)  # too many for folds


@pytest.fixture(scope="module")
def boxes():
    """A class that is a union of two boxes, which several planes or pairs find and one does not."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 4))
    corner = (X[:, 0] > 0.0) & (X[:, 1] > 0.0) & (X[:, 2] > -0.5)
    return X, (corner | (X[:, 3] > 0.5) & (X[:, 2] < 0.5)).astype(int)


@pytest.fixture(scope="module")
def product():
    """The class is the sign of a product of two of five columns, wrong in one row of twenty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    wrong = rng.random(2000) < 0.05
    return X, (X[:, 1] * X[:, 3] > 0.0).astype(int) ^ wrong


def let_time_pass(monkeypatch, seconds_per_look):
    """Every look at the clock finds it that much later."""
    ticks = itertools.count(step=seconds_per_look)
    made = SimpleNamespace(after=lambda seconds: Deadline.after(seconds, lambda: next(ticks)))
    monkeypatch.setattr(estimator, "Deadline", made)


# --- time ---


def test_a_deadline_gives_half_of_its_time_to_the_choice():
    now = SimpleNamespace(time=100.0)
    deadline = Deadline.after(10.0, lambda: now.time)
    for passed, choosing_is_over, training_is_over in [
        (0.0, False, False),
        (4.9, False, False),
        (5.1, True, False),
        (9.9, True, False),
        (10.1, True, True),
    ]:
        now.time = 100.0 + passed
        assert deadline.is_past("choose") == choosing_is_over
        assert deadline.is_past("fit") == training_is_over


def test_no_time_at_all_still_gives_a_model(moons, monkeypatch):
    let_time_pass(monkeypatch, seconds_per_look=1.0)
    clf = GeometricMixtureClassifier(time_limit=0.5, random_state=0).fit(*moons)
    assert len(clf.history_.trials) == 1
    assert "time_limit" in clf.history_.choice.sentence
    assert np.isfinite(clf.predict_proba(moons[0])).all()


def test_more_time_tries_more_candidates(moons, monkeypatch):
    tried = []
    for time_limit in (1.0, 100.0, 1e6):
        let_time_pass(monkeypatch, seconds_per_look=1.0)
        clf = GeometricMixtureClassifier(time_limit=time_limit, random_state=0).fit(*moons)
        tried.append(len(clf.history_.trials))
    assert tried == sorted(set(tried))
    without = GeometricMixtureClassifier(random_state=0).fit(*moons)
    assert without.history_.trials == clf.history_.trials


def test_time_to_spare_changes_no_bit(moons):
    X, y = moons
    free = GeometricMixtureClassifier(random_state=0).fit(X, y)
    limited = GeometricMixtureClassifier(time_limit=1e6, random_state=0).fit(X, y)
    assert np.array_equal(free.predict_proba(X), limited.predict_proba(X))


def test_an_ensemble_is_as_large_as_the_time_allows(moons, monkeypatch):
    X, y = moons
    settings = {"lift": "spline", "n_planes": 3, "l2": 1e-3, "shrink_to_mean": 0.0}
    let_time_pass(monkeypatch, seconds_per_look=1.0)
    clf = GeometricMixtureClassifier(
        preset="accurate", time_limit=300.0, n_members=8, random_state=0, **settings
    ).fit(X, y)
    n_members = clf.model_.planes.n_members
    assert 1 <= n_members < 8
    assert f"time_limit: {n_members} of 8 members trained." in clf.history_.notes
    assert log_loss(y, clf.predict_proba(X)) < 0.3


def test_the_race_ends_once_nothing_is_left_to_win():
    X, y = make_blobs(600, centers=[[-9, 0], [9, 0]], random_state=0)
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    in_nats = [trial.valid_loss * len(y) for trial in clf.history_.trials]  # five folds: all rows
    assert in_nats[-1] <= 1.0
    assert all(nats > 1.0 for nats in in_nats[:-1])
    assert clf.history_.trials[-1].chosen
    assert "nothing left to win" in clf.history_.choice.sentence


# --- the table of the choice ---


def test_the_choice_is_a_table_of_families_with_one_winner(moons):
    for X, y in (moons, load_iris(return_X_y=True)):
        history = GeometricMixtureClassifier(random_state=0).fit(X, y).history_
        (chosen,) = [one for one in history.choice.results if one.is_chosen]
        (winner,) = [trial for trial in history.trials if trial.chosen]
        assert chosen.family == winner.family
        assert chosen.log_loss == winner.valid_loss
        assert chosen.family in history.choice.sentence
        order = [family.name for family in FAMILIES]
        families = [one.family for one in history.choice.results]
        assert families == sorted(families, key=order.index)
        assert str(history.choice).count("\n") > len(families)
        assert list(history.choice.to_frame()["family"]) == families
        assert all(one.verdict for one in history.choice.results)


def test_the_sentence_names_the_best_simpler_and_richer_family(product):
    choice = GeometricMixtureClassifier(random_state=0).fit(*product).history_.choice
    at = choice.results.index(choice.chosen)
    simpler, richer = choice.results[:at], choice.results[at + 1 :]
    for side, group in (("simpler", simpler), ("richer", richer)):
        assert (f"best {side} family" in choice.sentence) == bool(group)
        if group:
            best = min(group, key=lambda one: one.log_loss)
            assert f"{best.family}, {best.log_loss:.4f}" in choice.sentence


def test_one_candidate_has_no_rival(moons):
    clf = GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3, random_state=0)
    choice = clf.fit(*moons).history_.choice
    assert [one.family for one in choice.results] == ["linear"]


# --- presets ---


def test_readable_models_have_few_planes_and_no_kernel(boxes):
    clf = GeometricMixtureClassifier(random_state=0).fit(*boxes)
    assert clf.model_.lift.kind in ("linear", "spline")
    assert clf.model_.planes.n_members == 1
    assert clf.n_planes_.max() <= (12 if clf.model_.lift.kind == "linear" else 4)
    assert {trial.lift for trial in clf.history_.trials} == {"linear", "spline"}
    assert clf.score(*boxes) > 0.95


def test_the_accurate_preset_races_kernels_and_many_planes(boxes):
    clf = GeometricMixtureClassifier(preset="accurate", random_state=0).fit(*boxes)
    assert "fourier" in {trial.lift for trial in clf.history_.trials}
    assert max(trial.n_planes for trial in clf.history_.trials) >= 2 * 8


def test_the_fast_preset_has_one_trial_of_one_spline_plane(boxes):
    clf = GeometricMixtureClassifier(preset="fast", random_state=0).fit(*boxes)
    (trial,) = clf.history_.trials
    assert trial.lift == "spline"
    assert clf.n_planes_.tolist() == [1, 1]
    assert clf.model_.temperature != 1.0


def test_every_preset_takes_every_other_parameter(moons):
    for preset in ("readable", "accurate", "fast"):
        clf = GeometricMixtureClassifier(2, preset=preset, lift="linear", l2=1e-3, random_state=0)
        clf.fit(*moons)
        assert clf.model_.lift.kind == "linear"
        assert clf.n_planes_.tolist() == [2, 2]


def test_n_planes_by_hand_is_that_many_planes_and_no_ensemble(moons):
    for preset in ("readable", "fast"):
        clf = GeometricMixtureClassifier(3, lift="spline", preset=preset, random_state=0)
        assert clf.fit(*moons).model_.planes.n_planes == 6


def test_max_planes_and_max_interactions_bound_the_race(boxes):
    clf = GeometricMixtureClassifier(max_planes=2, max_interactions=3, random_state=0).fit(*boxes)
    assert max(trial.n_planes for trial in clf.history_.trials) <= 4
    assert max(trial.n_pairs for trial in clf.history_.trials) <= 3
    additive = GeometricMixtureClassifier(max_planes=1, max_interactions=0, random_state=0)
    assert {t.family for t in additive.fit(*boxes).history_.trials} == {"linear", "spline"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"preset": "quick"}, "preset='quick'"),
        ({"n_members": 4}, "preset"),
        ({"n_members": 4, "preset": "fast"}, "preset"),
        ({"max_interactions": -1}, "max_interactions=-1"),
        ({"max_interactions": 2.5}, "max_interactions=2.5"),
    ],
)
def test_contradictions_get_one_sentence(moons, wrong, named):
    with pytest.raises(InvalidParameterError, match=named):
        GeometricMixtureClassifier(**wrong).fit(*moons)


def test_a_readable_model_has_no_idle_plane():
    """Twelve linear planes per class where two are enough."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (1500, 2))
    y = (np.abs(X[:, 0]) > 0.5).astype(int)
    clf = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y)
    A = clf.model_.responsibilities(X)
    class_of = clf.model_.planes.class_of
    for plane, code in enumerate(class_of):
        assert A[y == code, plane].mean() >= 0.01


def test_comparing_presets_measures_all_three_on_the_same_folds(moons):
    X, y = moons
    found = GeometricMixtureClassifier(random_state=0).compare_presets(X[:400], y[:400], cv=3)
    assert [one.preset for one in found.results] == ["fast", "readable", "accurate"]
    assert all(0.0 < one.log_loss < 0.7 for one in found.results)
    assert all(one.n_numbers > 0 for one in found.results)
    assert "readable" in str(found)


# --- rules of the race ---


def measured(losses, **candidate):
    """A finalist with these losses on the validation rows."""
    made = Candidate(l2=1e-3, **candidate)
    losses = np.asarray(losses, dtype=float)
    n = len(losses)
    return Measured(made, 2, 10, losses, np.ones(n), 0.9, 1.0, n_rows=5000, n_iter=10)


@pytest.mark.parametrize(("gain", "taken"), [(0.0010, 1), (0.0020, 3)])
def test_a_richer_model_has_to_win_something_worth_reading(gain, taken):
    one = measured(np.full(1000, 0.3), lift="spline", n_planes=1)
    several = measured(np.full(1000, 0.3 - gain), lift="spline", n_planes=3)
    winner = simplest_level_with_best([one, several], worth_it=0.005)
    assert winner.candidate.n_planes == taken


def test_a_difference_within_the_noise_keeps_the_simpler_model():
    noise = np.random.default_rng(0).normal(0.0, 0.5, 400)
    simple = measured(0.5 + noise - noise.mean() + 0.005, lift="linear", n_planes=1)
    rich = measured(np.full(400, 0.5), lift="spline", n_planes=1)
    assert simplest_level_with_best([simple, rich], worth_it=0.0) is simple
    clearly = measured(np.full(400, 0.6), lift="linear", n_planes=1)
    assert simplest_level_with_best([clearly, rich], worth_it=0.0) is rich


def test_every_axis_stays_within_its_range_and_ends():
    within = Range(Settings(), 128, (2, 3, 4), (4, 10))
    starts = [
        Candidate("spline", 1e-3, n_planes=2, n_knots=32, n_pairs=4),
        Candidate("fourier", 1e-5, 1.0, 2),
        Candidate("linear", 1e-4, n_planes=2),
    ]
    for start, (axis, step), up in itertools.product(starts, AXES.items(), (True, False)):
        now, n_steps = start, 0
        while (stepped := step(now, up, within)) is not None and n_steps < 50:
            assert stepped != now, axis
            now, n_steps = stepped, n_steps + 1
            if axis in ("adaptive", "shrinkage"):
                break
        assert n_steps < 50, axis


def test_what_a_user_sets_is_not_walked(moons):
    clf = classifier(
        lift="spline", l2=2e-3, n_knots=20, shrink_to_mean=0.5, adaptive_penalty=False,
        random_state=0,
    ).fit(*moons)  # fmt: skip
    assert {(t.l2, t.n_knots, t.adaptive) for t in clf.history_.trials} == {(2e-3, 20, False)}


def test_families_follow_lifts_and_presets():
    def names(**settings):
        made = Settings(**settings)
        return {family.name for family in racing(made, made.lifts)}

    readable = names()
    assert "kernel" not in readable
    assert "kernel" in names(preset="accurate")
    assert "kernel" in names(lift="fourier")
    assert names(lift="linear") == {"linear", "several linear planes"}
    assert names(preset="fast") == {"spline"}
    assert names(preset="fast", lift="linear") == {"linear"}


# --- budget ---


def test_a_family_over_the_budget_is_skipped_and_named(boxes, monkeypatch):
    monkeypatch.setattr(cost, "OPERATIONS", cost.OPERATIONS._replace(per_cell={"readable": 2250}))
    clf = GeometricMixtureClassifier(random_state=0).fit(*boxes)
    start, end = "Not tried: ", ", over budget."
    notes = clf.history_.notes
    over = {note[len(start) : -len(end)] for note in notes if note.endswith(end)}
    assert over
    assert over <= {family.name for family in FAMILIES}
    assert over.isdisjoint(trial.family for trial in clf.history_.trials)


def test_a_budget_that_allows_nothing_still_gives_a_model(boxes, monkeypatch):
    monkeypatch.setattr(cost, "OPERATIONS", cost.OPERATIONS._replace(per_cell={"readable": 0}))
    clf = GeometricMixtureClassifier(random_state=0).fit(*boxes)
    assert len(clf.history_.trials) == 1


def test_the_walks_on_a_rung_leave_a_budget_for_later_rungs_and_for_the_finals():
    task = SimpleNamespace(rows=SimpleNamespace(X=np.zeros((500, 4))), n_classes=2)
    table = SimpleNamespace(n_train=400, has_finals=True, task=task)
    budget = cost.budget_for(Settings(), table, n_rungs=2)
    first = budget.left
    budget.spend(first)
    assert not budget.allows(1.0)
    budget.open_part()
    budget.open_part()
    assert budget.left == pytest.approx(first)
    per_column = cost.OPERATIONS.per_cell["readable"] * 400 * 2
    assert 2 * first == pytest.approx(per_column * (4 + 6))  # columns, and pairs of them
    for without_pairs in (Settings(max_interactions=0), Settings(lift="linear")):
        budget = cost.budget_for(without_pairs, table, n_rungs=1)
        assert budget.left + budget.part == pytest.approx(per_column * 4)


def test_every_family_that_the_finals_begin_with_is_compared_in_them(boxes, rng, monkeypatch):
    """Trials may take more iterations than they are counted with before they start. The second
    family of the finals was then over the budget, and the first one won without a rival."""
    X, y = boxes
    y = np.where(rng.random(len(y)) < 0.1, 1 - y, y)  # so that more than one family is left
    spend, finals = cost.Budget.spend, race.Race.run_finals
    compared = []

    def run_finals(self, rungs):
        self.budget = cost.Budget(1e15)
        monkeypatch.setattr(cost.Budget, "spend", lambda budget, _: spend(budget, 1e16))
        finals(self, rungs)
        compared.extend(one.family.name for one in self.runners if one.best in self.known.values())

    monkeypatch.setattr(race.Race, "run_finals", run_finals)
    GeometricMixtureClassifier(random_state=0).fit(X, y)
    assert len(compared) > 1


def test_the_walk_of_a_family_leaves_half_of_the_budget_to_later_ones():
    budget = cost.Budget(100.0)
    with budget.shared():
        assert budget.allows(50.0)
        assert not budget.allows(51.0)
    assert budget.allows(100.0)


@pytest.mark.parametrize(("place", "kept"), [(0, 50.0), (-1, 0.0)], ids=["first", "last"])
def test_the_start_of_a_family_leaves_budget_to_later_ones(place, kept):
    runners = [Runner(family) for family in racing(Settings(), ("linear", "spline"))]
    running = race.Race(Settings(), None, None, cost.Budget(100.0), runners)
    with running._room_for_later(runners[place]):
        assert running.budget.kept == kept
    assert running.budget.kept == 0.0


def test_a_wide_table_tries_what_comes_after_an_expensive_family(boxes, monkeypatch):
    """One trial of curves would take more than half of the budget: lines race on without them."""

    def of_curves(candidate, *_):
        return 60.0 if candidate.lift == "spline" else 1.0

    monkeypatch.setattr(race, "operations", of_curves)
    monkeypatch.setattr(choosing, "budget_for", lambda *_: cost.Budget(100.0))
    clf = GeometricMixtureClassifier(random_state=0).fit(*boxes)
    families = {one.family for one in clf.history_.trials}
    assert families == {"linear", "several linear planes"}


def test_a_trial_that_converges_early_costs_what_it_took(boxes, monkeypatch):
    spent, before = [], []
    spend, measure = cost.Budget.spend, race.measure

    def measured(candidate, folds, *rest, **options):
        before.append(cost.operations(candidate, folds))
        return measure(candidate, folds, *rest, **options)

    monkeypatch.setattr(race, "measure", measured)
    monkeypatch.setattr(
        cost.Budget, "spend", lambda self, one: (spent.append(one), spend(self, one))
    )
    GeometricMixtureClassifier(lift="linear", n_planes=1, random_state=0).fit(*boxes)
    assert len(spent) == len(before)
    assert 0.0 < sum(spent) < sum(before)


def test_a_final_training_over_the_budget_has_fewer_iterations(boxes, monkeypatch):
    few = cost.OPERATIONS._replace(most={"fast": 1e6})
    monkeypatch.setattr(cost, "OPERATIONS", few)
    clf = GeometricMixtureClassifier(preset="fast", random_state=0).fit(*boxes)
    assert clf.history_.n_iter <= cost.ITERATIONS_OF_FIRST_PLANES
    assert any("over the budget of preset='fast'" in note for note in clf.history_.notes)


def test_costs_are_counted_and_so_the_same_on_every_run(boxes):
    first, second = (GeometricMixtureClassifier(random_state=0).fit(*boxes) for _ in range(2))
    assert first.history_.trials == second.history_.trials


# --- rungs ---


def small_rungs(monkeypatch, *sizes):
    monkeypatch.setattr(splits, "ROWS_PER_RUNG", sizes)
    monkeypatch.setattr(cost, "ROWS_PER_RUNG", sizes)


def test_families_that_are_behind_on_few_rows_are_not_tried_on_more(moons, monkeypatch):
    small_rungs(monkeypatch, 200, 420, 900)
    clf = GeometricMixtureClassifier(random_state=0).fit(*moons)
    rungs = {trial.rung for trial in clf.history_.trials}
    assert rungs == {0, 1, 2}
    assert "linear" not in {t.family for t in clf.history_.trials if t.rung == 2}
    assert {trial.n_rows for trial in clf.history_.trials if trial.rung == 0} == {200}
    assert clf.score(*moons) > 0.93


@pytest.mark.parametrize(
    ("n_train", "rungs"),
    [(1_800, (1_800,)), (4_999, (4_999,)), (5_000, (2_500, 5_000)), (12_800, (2_500, 12_800))],
)
def test_every_rung_has_at_least_twice_the_rows_of_the_one_before(n_train, rungs):
    assert splits.rows_of_rungs(n_train) == rungs


def test_a_penalty_found_on_some_rows_is_the_same_prior_beside_all(moons, monkeypatch):
    """n times the mean loss and n l2: what matters beside the sum of the rows is n l2."""
    small_rungs(monkeypatch, 300)
    settings = {"lift": "linear", "n_planes": 1, "validation_fraction": 0.25, "random_state": 0}
    clf = classifier(**settings).fit(*moons)
    (chosen,) = [trial for trial in clf.history_.trials if trial.chosen]
    n_train = 0.75 * len(moons[1])
    assert clf.history_.l2 == pytest.approx(chosen.l2 * 300 / n_train)
    given = classifier(l2=1e-3, **settings).fit(*moons)
    assert given.history_.l2 == 1e-3


@pytest.fixture
def few_are_many(monkeypatch):
    """From a thousand rows on some are held out for calibration, and which they are."""
    monkeypatch.setattr(splits, "CALIBRATION", Calibration(1000, 0.2, 10_000))
    held_out = []

    def split(y, fraction, rng):
        train, valid = stratified_split(y, fraction, rng)
        held_out.append((fraction, valid))
        return train, valid

    monkeypatch.setattr(splits, "stratified_split", split)
    return held_out


def test_of_very_many_rows_some_calibrate_the_final_planes(moons, few_are_many, monkeypatch):
    X, y = moons
    order = []
    monkeypatch.setattr(
        splits, "distinct_rows", lambda *a: order.append(distinct_rows(*a)) or order[-1]
    )
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-4, "random_state": 0}
    clf = classifier(**settings).fit(X, y)
    fraction, held_out = few_are_many[-1]
    rows = order[-1].take(held_out)
    assert fraction == 0.2
    assert len(rows) == pytest.approx(0.2 * len(y), abs=1)
    S = np.log(clf.model_.with_temperature(1.0).predict_proba(numbers(rows.X)))
    expected = fit_temperature(S, rows.y, rows.weight, PRIOR_SCALE)
    assert clf.model_.temperature == pytest.approx(expected, rel=1e-4)
    assert any(
        f"{len(rows)} rows were held out of the final training" in note
        for note in clf.history_.notes
    )
    assert clf.history_.records[-1].valid_loss is not None


@pytest.mark.parametrize("setting", [{"calibrate": False}, {"refit": False}])
def test_no_row_is_held_out_where_it_would_not_calibrate(moons, few_are_many, setting):
    settings = {"lift": "spline", "n_planes": 2, "l2": 1e-3, "shrink_to_mean": 0.9}
    classifier(random_state=0, **settings, **setting).fit(*moons)
    assert len(few_are_many) == 1  # the rows that were held out for the choice


# --- what the families find ---


def shape_of_one_column(n_rows, log_odds, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, n_rows)
    return x[:, None], rng.uniform(size=n_rows) < 1.0 / (1.0 + np.exp(-log_odds(x)))


def ramp(x):
    return 4.0 * x - 2.0


def sixty_teeth(x):
    return np.where(np.floor(60.0 * x) % 2, 2.2, -2.2)


def test_curves_get_the_knots_that_their_shape_needs():
    n_steps = {}
    for log_odds in (ramp, sixty_teeth):
        X, y = shape_of_one_column(6000, log_odds)
        clf = GeometricMixtureClassifier(lift="spline", max_planes=1, random_state=0).fit(X, y)
        n_steps[log_odds] = clf.model_.lift.n_outputs
        X_new, y_new = shape_of_one_column(6000, log_odds, seed=1)
        truth = np.where(y_new, log_odds(X_new[:, 0]), -log_odds(X_new[:, 0]))
        ideal = np.logaddexp(0.0, -truth).mean()
        assert log_loss(y_new, clf.predict_proba(X_new)) < 1.4 * ideal
    assert n_steps[ramp] <= 64 < n_steps[sixty_teeth]


def test_pairs_are_found_where_two_columns_interact(product):
    X, y = product
    clf = GeometricMixtureClassifier(lift="spline", max_planes=1, random_state=0).fit(X, y)
    pairs = [part.columns for part in clf.model_.lift.parts if isinstance(part, PairPart)]
    assert pairs[0] == (1, 3)
    assert clf.score(X, y) > 0.85
    additive = GeometricMixtureClassifier(
        lift="spline", max_planes=1, max_interactions=0, random_state=0
    ).fit(X, y)
    assert additive.score(X, y) < 0.65


def test_no_pair_is_taken_where_no_columns_interact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    p = 1.0 / (1.0 + np.exp(-X[:, 0] - np.sin(2.0 * X[:, 1])))
    clf = GeometricMixtureClassifier(random_state=0).fit(X, rng.random(1500) < p)
    assert not [p for p in getattr(clf.model_.lift, "parts", ()) if isinstance(p, PairPart)]


@pytest.mark.parametrize(("n_levels", "found"), [(8, ((0, 1),)), (80, ())])
def test_categories_of_very_many_levels_are_in_no_table(n_levels, found, rng):
    """80 x 80 cells could not be read, and would have less than one row each."""
    codes = rng.integers(n_levels, size=(3000, 2))
    y = ((codes < n_levels // 2).sum(axis=1) == 1).astype(int)
    X, weight = codes.astype(float), np.ones(len(y))
    lift = fit_spline(X, weight, np.array([n_levels, n_levels]), 8)
    rows = Rows(lift.binned(X), y, weight)
    planes = flat_planes(rows, 2, 0.0)
    assert strongest_pairs(planes, rows, 10) == found


def test_noise_does_not_make_curves_change_direction():
    """One column with a bend, five without any effect."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (3000, 6))
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(-3.0 * np.abs(X[:, 0]) + 3.0))
    clf = GeometricMixtureClassifier(lift="spline", max_planes=1, random_state=0).fit(X, y)
    weights = clf.model_.planes.weights[1]
    changes = []
    for _, steps in clf.model_.lift.by_part():
        slopes = weights[steps]
        slopes = np.sign(slopes[np.abs(slopes) > 1e-12])
        changes.append(int((slopes[1:] != slopes[:-1]).sum()))
    assert changes[0] == 1
    assert sum(changes[1:]) <= 3


def test_the_constants_of_the_choice_are_few_and_in_one_table():
    assert len([name for name in vars(constants) if name.isupper()]) <= 20


# --- what is decided is not measured further ---


@pytest.fixture(scope="module")
def waves():
    """The class depends on one column of six, up and down four times, wrong in one row of ten."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (900, 6))
    wrong = rng.random(900) < 0.1
    return GeometricMixtureClassifier(random_state=0).fit(X, (np.sin(12.0 * X[:, 0]) > 0) ^ wrong)


def test_a_family_that_is_far_behind_is_not_walked_further(waves):
    behind = [one for one in waves.history_.trials if one.family == "several linear planes"]
    assert len({one.l2 for one in behind}) == 1  # the numbers of planes, and no penalty
    assert any(one.verdict.startswith("dropped, behind by") for one in behind)


def entered(name, losses, n_folds, monkeypatch, start_loss=None, n_rungs=1, n_train=400):
    """A family that enters a race where other families have these losses, and what was tried."""
    settings = Settings(preset="accurate")
    runners = [Runner(family) for family in racing(settings, ("linear", "spline"))]

    def measured(candidate, loss):
        noise = 0.2 * np.random.default_rng(round(1e4 * loss)).permutation(np.resize([-1, 1], 100))
        return Measured(candidate, 2, 6, loss + noise, np.ones(100), 0.9, 1.0, 400, 10)

    known = {}
    for runner in runners:
        if (loss := losses.get(runner.family.name)) is not None:
            candidate = Candidate("spline", loss, n_planes=1, n_knots=32)
            known[candidate] = runner.best = measured(candidate, loss)
    fold = SimpleNamespace(
        n_train=n_train,
        pairs=((0, 1),),
        preparation=SimpleNamespace(most_knots=64, n_planes_of=lambda n: n),
    )
    tried = []

    def trial(self, candidate, *_):
        tried.append(candidate)
        return None if start_loss is None else measured(candidate, start_loss)

    monkeypatch.setattr(race.Race, "_measured", trial)
    budget, folds = cost.Budget(0.0), [fold] * n_folds
    running = race.Race(settings, None, None, budget, runners, folds=folds, n_rungs=n_rungs)
    running.known = known
    runner = next(one for one in runners if one.family.name == name)
    running._advance(runner)
    return runner, tried


@pytest.mark.parametrize(("several", "is_tried"), [(0.3, True), (0.31, False)])
def test_many_planes_are_not_tried_where_several_gain_nothing(several, is_tried, monkeypatch):
    losses = {"spline": 0.305, "several spline planes": several}
    runner, tried = entered("many spline planes", losses, 2, monkeypatch)
    assert bool(tried) == is_tried
    skipped = "skipped, several spline planes is no better than its own parent"
    assert (runner.verdict == skipped) != is_tried


@pytest.mark.parametrize(
    ("name", "linear", "n_folds", "is_tried"),
    [
        ("several spline planes", 0.296, 5, True),
        ("several spline planes", 0.29, 5, False),  # curves are 3 % behind lines
        ("several spline planes", 0.29, 1, True),  # more rows may find another penalty
        ("spline with pairs", 0.29, 5, True),  # may be added to the winner
    ],
)
def test_on_few_rows_several_planes_do_not_start_from_curves_that_are_behind_lines(
    name, linear, n_folds, is_tried, monkeypatch
):
    runner, tried = entered(name, {"linear": linear, "spline": 0.3}, n_folds, monkeypatch)
    assert bool(tried) == is_tried
    assert (runner.verdict == "skipped, spline is behind a simpler family") != is_tried


@pytest.mark.parametrize(("n_train", "is_tried"), [(799, False), (800, True)])
def test_several_planes_with_pairs_do_not_race_on_few_rows(n_train, is_tried, monkeypatch):
    name, losses = "several spline planes with pairs", {"spline": 0.3, "spline with pairs": 0.2}
    runner, tried = entered(name, losses, 5, monkeypatch, n_train=n_train)
    assert bool(tried) == is_tried
    assert (runner.verdict == "skipped, rows are few") != is_tried


@pytest.mark.parametrize(
    ("n_folds", "linear", "start", "is_walked"),
    [
        (5, 0.299, 0.303, True),  # level with the family it starts from
        (5, 0.299, 0.32, False),  # 7 % behind it
        (1, 0.29, 0.32, True),  # more rows may find another penalty
        (1, 0.2, 0.32, False),  # the family it starts from is far behind the best, too
        (1, 0.2, 0.28, True),  # but this one is better
    ],
)
def test_a_family_that_starts_far_behind_is_not_walked(
    n_folds, linear, start, is_walked, monkeypatch
):
    losses = {"linear": linear, "spline": 0.3}
    _, tried = entered("several spline planes", losses, n_folds, monkeypatch, start)
    assert len({one.l2 for one in tried}) > 1 or not is_walked
    assert len({(one.l2, one.shrink_to_mean) for one in tried}) == 1 or is_walked


@pytest.mark.parametrize(("n_rungs", "is_walked"), [(2, False), (3, True)])
def test_a_family_that_is_behind_is_walked_where_many_more_rows_follow(
    n_rungs, is_walked, monkeypatch
):
    losses = {"linear": 0.2, "spline": 0.3}
    _, tried = entered("several spline planes", losses, 1, monkeypatch, 0.32, n_rungs)
    assert (len({one.l2 for one in tried}) > 1) == is_walked


def stand_in_trial(monkeypatch, rng, step_loss):
    """A trial on five folds of 100 rows whose true class has this loss; the folds it trained."""
    y = rng.integers(2, size=100)
    valid = SimpleNamespace(y=y, weight=np.ones(100))
    fold = SimpleNamespace(
        valid=valid,
        preparation=SimpleNamespace(n_classes=2),
        n_train=400,
        unpack=lambda: None,
        is_alone=False,
        is_quick_to_make=False,
    )
    log_odds = np.log(np.expm1(step_loss))
    scores = np.where(y[:, None] == np.arange(2), 0.0, log_odds + rng.normal(0.0, 0.1, (100, 1)))
    planes = SimpleNamespace(n_planes=2, weights=np.zeros(4), biases=np.zeros(2))
    fitted = SimpleNamespace(
        held_out_scores=lambda _: scores,
        trained=SimpleNamespace(n_iter=5, planes=planes),
        features=SimpleNamespace(
            expanded=lambda planes: planes,
            feature_map=SimpleNamespace(lift=SimpleNamespace(n_pairs=0)),
        ),
        to_keep=lambda is_quick: fitted,
    )
    monkeypatch.setattr(trials, "train_on_folds", lambda *_: (fitted for _ in range(5)))
    candidate, settings = Candidate("linear", 1e-3), replace(Settings(), calibrate=False)
    before = Measured(candidate, 2, 6, np.full(500, 0.2), np.ones(500), 0.9, 1.0, 400, 10)
    found, kept = trials.measure(candidate, [fold] * 5, settings, None, [before], is_last_rung=True)
    return found, len(kept.fits)


def test_a_step_that_is_clearly_worse_is_not_trained_on_every_fold(monkeypatch, rng):
    found, n_trained = stand_in_trial(monkeypatch, rng, step_loss=0.4)
    assert n_trained == 1
    assert found.loss == pytest.approx(0.4, rel=0.05)
    assert stand_in_trial(monkeypatch, rng, step_loss=0.2)[1] == 5


@pytest.mark.parametrize(
    ("n_columns", "settings", "is_rotated"),
    [(55, {}, True), (65, {}, False), (65, {"lift": "fourier"}, True)],
)
def test_columns_are_rotated_for_a_kernel_or_where_that_saves_time(
    n_columns, settings, is_rotated, monkeypatch, rng
):
    monkeypatch.setattr(splits, "CELLS_TO_ROTATE", 1_000)
    monkeypatch.setattr(splits, "MOST_COLUMNS_TO_ROTATE", 60)
    X = rng.normal(size=(40, n_columns))
    settings = {"lift": "linear", "n_planes": 1, "l2": 0.1, "max_iter": 2} | settings
    clf = classifier(random_state=0, **settings).fit(X, np.arange(40) % 2)
    assert (clf.model_.standardize.rotation is not None) == is_rotated


@pytest.mark.parametrize(("n_rows", "n_fits"), [(1200, 6), (1800, 4), (4000, 3)])
def test_one_candidate_is_calibrated_by_as_few_folds_as_have_enough_rows(
    n_rows, n_fits, monkeypatch
):
    trained = []
    train = folds.train_planes
    monkeypatch.setattr(folds, "train_planes", lambda *a, **k: trained.append(1) or train(*a, **k))
    X, y = make_moons(n_rows, noise=0.25, random_state=0)
    clf = GeometricMixtureClassifier(3, lift="linear", l2=1e-3, random_state=0).fit(X, y)
    assert len(trained) == n_fits  # and one on all rows
    assert clf.model_.temperature != 1.0


# --- several starts, and the finals ---


def stand_in_fits(monkeypatch, objectives, stopped="converged"):
    """``train_on_fold`` that only records an objective for each start."""

    def train(*_, start=0):
        record = SimpleNamespace(loss=objectives[start])
        trained = SimpleNamespace(records=[record], stopped=stopped)
        return SimpleNamespace(start=start, trained=trained, is_small=True)

    monkeypatch.setattr(several_fits, "train_on_fold", train)


def train_from(n_starts, *, one_plane=False):
    fold = SimpleNamespace(preparation=SimpleNamespace(is_one_plane=lambda _: one_plane))
    rest = Candidate("spline", 1e-3), fold, Settings(), None, None, None
    return several_fits.train_from_starts(n_starts, *rest).start


def test_the_start_with_the_lowest_objective_is_kept(monkeypatch):
    stand_in_fits(monkeypatch, [0.3, 0.1, 0.2])
    assert train_from(3) == 1


def test_one_plane_per_class_starts_once(monkeypatch):
    stand_in_fits(monkeypatch, [0.3, 0.1, 0.2])
    assert train_from(3, one_plane=True) == 0


def test_no_start_begins_after_training_was_asked_to_stop(monkeypatch):
    stand_in_fits(monkeypatch, [0.3, 0.1, 0.2], stopped="request")
    assert train_from(3) == 0


def test_the_families_that_are_left_are_compared_on_five_folds(boxes, rng):
    X, y = boxes
    y = np.where(rng.random(len(y)) < 0.1, 1 - y, y)  # so that more than one family is left
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    trials = clf.history_.trials
    finals = [one for one in trials if one.rung == max(t.rung for t in trials)]
    assert len({one.family for one in finals}) == len(finals) >= 2
    assert [one.chosen for one in finals].count(True) == 1
    assert all(one.n_rows == pytest.approx(0.8 * len(y), abs=2) for one in finals)


def test_models_of_one_plane_that_were_dropped_are_measured_with_the_finalists(boxes):
    """Their planes may be added to those of the winner, which needs their scores on all folds."""
    trials = GeometricMixtureClassifier(random_state=0).fit(*boxes).history_.trials
    finals = {one.family: one for one in trials if one.rung == max(t.rung for t in trials)}
    assert {"linear", "spline"} < set(finals)
    for name in ("linear", "spline"):
        assert finals[name].verdict.startswith("dropped, behind by")
        assert finals[name].n_rows == pytest.approx(0.8 * len(boxes[1]), abs=2)


def dropped_and_measured_again(boxes, monkeypatch, loss):
    """The families of a race in whose finals the linear family, dropped before, has this loss."""
    measured = race.Race._measured

    def again(self, candidate, runner, before=None, *, to_the_end=False):
        found = measured(self, candidate, runner, before, to_the_end=to_the_end)
        if not to_the_end or runner.family.name != "linear":
            return found
        better = replace(found, row_losses=np.full_like(found.row_losses, loss))
        self.known[candidate] = better
        return better

    monkeypatch.setattr(race.Race, "_measured", again)
    clf = GeometricMixtureClassifier(random_state=0).fit(*boxes)
    return {one.family: one for one in clf.history_.choice.results}


def test_a_dropped_family_that_is_not_behind_on_the_folds_is_back(boxes, monkeypatch):
    families = dropped_and_measured_again(boxes, monkeypatch, loss=1e-6)
    assert families["linear"].verdict.startswith("chosen")


def test_a_dropped_family_that_is_behind_on_the_folds_does_not_win(boxes, monkeypatch):
    families = dropped_and_measured_again(boxes, monkeypatch, loss=1.0)
    assert families["linear"].verdict.startswith("dropped, behind by")


@pytest.mark.parametrize(
    ("preset", "rows_per_knot"), [("readable", 8), ("accurate", 16), ("fast", 16)]
)
def test_models_to_be_read_may_have_closer_knots(preset, rows_per_knot):
    X, y = make_moons(400, noise=0.25, random_state=0)
    settings = {"lift": "spline", "n_planes": 1, "random_state": 0}
    clf = GeometricMixtureClassifier(preset=preset, **settings).fit(X, y)
    assert clf.history_.trials[0].n_knots == len(y) // rows_per_knot


@pytest.mark.parametrize("n_rows", [400, 2000], ids=["every rung has folds", "finals"])
def test_the_fits_that_won_set_the_temperature_without_training_again(boxes, n_rows, monkeypatch):
    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(splits.Folds, "to_check", refuse)
    X, y = boxes
    clf = GeometricMixtureClassifier(random_state=0).fit(X[:n_rows], y[:n_rows])
    assert clf.model_.temperature != 1.0


def test_pairs_are_found_among_many_classes_of_few_rows(rng):
    """The class is the cell of a grid over two of six columns: no column alone shows it."""
    X = rng.uniform(0.0, 1.0, (900, 6))
    y = (np.floor(2 * X[:, 1]) + np.floor(2 * X[:, 4])).astype(int) % 2 + 2 * (X[:, 0] > 0.5)
    clf = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0).fit(X, y)
    pairs = [part.columns for part in clf.model_.lift.parts if isinstance(part, PairPart)]
    assert (1, 4) in pairs


def test_a_table_of_two_columns_has_one_pair_and_says_so(rng):
    X = rng.standard_normal((600, 2))
    clf = GeometricMixtureClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    tried = [one for one in clf.history_.trials if one.family == "spline with pairs"]
    assert {one.n_pairs for one in tried} == {1}
    settings = [(t.l2, t.n_knots, t.adaptive, t.pair_penalty) for t in tried]
    assert len(set(settings)) == len(settings)  # not ten pairs, and then four


def test_the_penalty_of_pairs_is_a_factor_of_that_of_the_curves(product):
    X, y = product
    clf = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0).fit(X, y)
    tried = {one.pair_penalty for one in clf.history_.trials if one.n_pairs}
    assert {1.0, 4.0, 0.25} & tried - {1.0}
    assert {one.pair_penalty for one in clf.history_.trials if not one.n_pairs} == {1.0}


def test_rows_that_were_filled_in_do_not_shrink_the_standard_error(rng):
    losses = rng.random(400)
    best = Measured(Candidate("linear", 1e-3), 2, 6, losses, np.ones(400), 0.9, 1.0, 300, 10)
    first = losses[:100] + rng.normal(0.1, 0.5, 100)
    filled = np.concatenate([first, losses[100:] + (first - losses[:100]).mean()])
    stopped = replace(best, row_losses=filled, n_measured=100)
    assert paired(stopped, best).error == pytest.approx(0.05, rel=0.3)  # 0.5 / sqrt(100)
    assert paired(replace(stopped, n_measured=400), best).error < 0.02
