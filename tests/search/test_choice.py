"""How a fit chooses among candidates, when it stops looking, and what it says about it."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from making import classifier
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier, estimator
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.search import families, selection, splits, trials
from geomix.search.folds import Candidate
from geomix.search.trials import Measured
from geomix.table.row_views import all_rows, numbers
from geomix.table.schema import numeric_schema
from geomix.training.deadline import Deadline
from geomix.training.preparation import prepare
from geomix.training.rows import Rows, distinct_rows, stratified_split
from geomix.training.settings import Settings


@pytest.fixture(scope="module")
def moons():
    return make_moons(1200, noise=0.25, random_state=0)


def let_time_pass(monkeypatch, seconds_per_look):
    """Every look at the clock finds it so much later."""
    ticks = itertools.count(step=seconds_per_look)
    made = SimpleNamespace(after=lambda seconds: Deadline.after(seconds, lambda: next(ticks)))
    monkeypatch.setattr(estimator, "Deadline", made)


def search_on(monkeypatch, n_rows, *, probe):
    """More rows than these are many: so many are searched on, and kernels probed on fewer."""
    monkeypatch.setattr(splits, "ROWS_TO_SEARCH", n_rows)
    monkeypatch.setattr(families, "ROWS_TO_PROBE", probe)


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


@pytest.mark.kernel
def test_no_time_at_all_still_gives_a_model(moons, monkeypatch):
    let_time_pass(monkeypatch, seconds_per_look=1.0)
    clf = GeometricMixtureClassifier(time_limit=0.5, random_state=0).fit(*moons)
    assert len(clf.history_.trials) == 1
    assert clf.history_.stopped == "asked"
    assert clf.n_iter_ == 1
    assert "time_limit was used up" in clf.history_.choice
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


def test_a_committee_is_as_large_as_the_time_allows(moons, monkeypatch):
    X, y = moons
    settings = {
        "lift": "spline",
        "n_planes": 3,
        "l2": 1e-3,
        "shrink_to_mean": 0.0,
        "random_state": 0,
    }
    let_time_pass(monkeypatch, seconds_per_look=1.0)
    clf = classifier(time_limit=300.0, preset="accurate", n_members=8, **settings).fit(X, y)
    n_members = clf.model_.planes.n_members
    assert 1 <= n_members < 8
    assert f"time_limit: {n_members} of 8 members trained." in clf.history_.notes
    assert log_loss(y, clf.predict_proba(X)) < 0.3


@pytest.mark.kernel
def test_the_search_ends_once_nothing_is_left_to_be_won():
    X, y = make_blobs(600, centers=[[-9, 0], [9, 0]], random_state=0)
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    in_nats = [trial.valid_loss * len(y) for trial in clf.history_.trials]  # five folds: all rows
    assert in_nats[-1] <= 1.0
    assert all(nats > 1.0 for nats in in_nats[:-1])
    assert clf.history_.trials[-1].chosen
    assert "nothing left to be won" in clf.history_.choice


def test_the_history_says_why_the_winner_won(moons):
    for X, y in (moons, load_iris(return_X_y=True)):
        history = GeometricMixtureClassifier(random_state=0).fit(X, y).history_
        (winner,) = [trial for trial in history.trials if trial.chosen]
        assert history.choice.startswith(
            f"Chosen: {winner.lift} with {winner.n_planes} planes, l2={winner.l2:g}, "
            f"held-out loss {winner.valid_loss:.4f}"
        )
        is_best = winner.valid_loss == min(trial.valid_loss for trial in history.trials)
        assert ("behind" in history.choice) == is_best
        assert ("too little to prefer" in history.choice) != is_best


def shape_of_one_column(n_rows, log_odds):
    rng = np.random.default_rng(0)
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
        truth = np.where(y, log_odds(X[:, 0]), -log_odds(X[:, 0]))
        ideal = np.logaddexp(0.0, -truth).mean()
        assert log_loss(y, clf.predict_proba(X)) < 1.2 * ideal
    assert n_steps[ramp] < 64 < n_steps[sixty_teeth]


def test_knots_by_hand_stay_as_they_are():
    X, y = shape_of_one_column(3000, sixty_teeth)
    clf = classifier(lift="spline", n_knots=20, random_state=0).fit(X, y)
    assert clf.model_.lift.n_outputs <= 19


def test_one_candidate_has_no_rival(moons):
    clf = GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3, random_state=0)
    assert "nothing else was in the running" in clf.fit(*moons).history_.choice


def measured(loss, **candidate):
    """A finalist with that loss on each of a thousand held-out rows."""
    made = Candidate(l2=1e-3, **candidate)
    return Measured(made, 2, np.full(1000, loss), np.ones(1000), 1.0, n_rows=5000, n_iter=10)


@pytest.mark.parametrize(("gain", "taken"), [(0.0008, 1), (0.0012, 12)])
def test_several_spline_planes_have_to_win_something_worth_reading(gain, taken):
    one = measured(0.3, lift="spline", n_planes=1)
    several = measured(0.3 - gain, lift="spline", n_planes=12)
    winner = selection._simplest_of_the_best([one, several], handicap=0.0)
    assert winner.candidate.n_planes == taken


def test_among_plain_models_every_gain_counts_where_rows_are_many():
    linear = measured(0.3000, lift="linear", n_planes=1)
    curves = measured(0.2999, lift="spline", n_planes=1)
    several = measured(0.2995, lift="spline", n_planes=12)
    winner = selection._simplest_of_the_best([linear, curves, several], handicap=0.0)
    assert winner is curves


@pytest.fixture(scope="module")
def parity():
    """Three columns of three levels; the class is the parity of their sum, which no sum of curves
    can tell, and wrong in one row of ten."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, (2000, 3))
    wrong = rng.random(2000) < 0.1
    return levels + 0.01 * rng.standard_normal(levels.shape), (levels.sum(axis=1) + wrong) % 2


def test_spline_planes_are_searched_from_twelve(parity):
    clf = GeometricMixtureClassifier(lift="spline", random_state=0).fit(*parity)
    counts = [trial.n_planes // 2 for trial in clf.history_.trials]
    assert counts.index(12) < min(counts.index(n) for n in (4, 32) if n in counts)
    assert set(counts) <= {1, 4, 12, 32}
    assert clf.score(*parity) > 0.87
    alone = GeometricMixtureClassifier(lift="spline", n_planes=1, random_state=0).fit(*parity)
    assert alone.score(*parity) < 0.7


def test_max_planes_bounds_the_search(parity):
    clf = GeometricMixtureClassifier(lift="spline", max_planes=11, random_state=0).fit(*parity)
    assert max(trial.n_planes for trial in clf.history_.trials) == 2 * 4


def test_dear_planes_are_not_tried(monkeypatch):
    """A class that is a union of two boxes, which several planes find and one does not."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 4))
    corner = (X[:, 0] > 0.0) & (X[:, 1] > 0.0) & (X[:, 2] > -0.5)
    y = (corner | (X[:, 3] > 0.5) & (X[:, 2] < 0.5)).astype(int)
    most_planes = []
    for dear in (np.inf, 0.0):
        monkeypatch.setattr(trials, "DEAR_LOOKUPS", dear)
        clf = GeometricMixtureClassifier(lift="spline", random_state=0).fit(X, y)
        most_planes.append(max(trial.n_planes for trial in clf.history_.trials))
    assert most_planes[0] > most_planes[1] == 2


def test_kernel_widths_are_compared_on_fewer_rows(monkeypatch):
    """Where there are many: the same width, and one trial of it on all of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (3000, 2))
    y = (np.sin(2.0 * X[:, 0]) + np.sin(2.0 * X[:, 1]) > 0.0).astype(int)
    found = []
    for rows in (3000, 2000):
        search_on(monkeypatch, rows, probe=1200)
        clf = GeometricMixtureClassifier(lift="fourier", n_planes=1, random_state=0).fit(X, y)
        found.append(clf)
    widths = [[trial.gamma_factor for trial in clf.history_.trials] for clf in found]
    assert len(set(widths[0])) > 1 == len(set(widths[1]))
    chosen = [clf.model_.lift.gamma for clf in found]
    assert chosen[0] == pytest.approx(chosen[1], rel=0.2)
    assert found[1].score(X, y) > 0.97


def test_a_kernel_that_is_far_behind_on_some_rows_is_left(monkeypatch):
    """Cuts of a few among twenty columns, which curves find and distances hide."""
    search_on(monkeypatch, 1200, probe=600)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 20))
    y = ((X[:, 0] > 0.3).astype(int) + (X[:, 1] > -0.2) + (np.abs(X[:, 2]) < 0.5) >= 2).astype(int)
    clf = GeometricMixtureClassifier(max_planes=1, random_state=0).fit(X, y)
    assert {trial.lift for trial in clf.history_.trials} == {"linear", "spline"}
    assert "probes of 600 rows: fourier with 2 planes" in clf.history_.choice
    assert clf.score(X, y) > 0.95


@pytest.mark.kernel
def test_a_penalty_found_on_some_rows_is_the_same_prior_beside_all(moons, monkeypatch):
    """n times the mean loss and n l2: what matters beside the sum of the rows is n l2."""
    search_on(monkeypatch, 300, probe=300)
    settings = {"lift": "linear", "validation_fraction": 0.25, "random_state": 0}
    clf = classifier(**settings).fit(*moons)
    (chosen,) = [trial for trial in clf.history_.trials if trial.chosen]
    n_train = 0.75 * len(moons[1])
    assert clf.history_.l2 == pytest.approx(chosen.l2 * 300 / n_train)
    assert clf.model_.training["l2"] == clf.history_.l2 != chosen.l2
    given = classifier(l2=1e-3, **settings).fit(*moons)
    assert given.history_.l2 == 1e-3


@pytest.mark.kernel
def test_a_spline_found_on_some_rows_is_measured_on_more(moons, monkeypatch):
    search_on(monkeypatch, 300, probe=300)
    settings = {"lift": "spline", "validation_fraction": 0.25, "random_state": 0}
    clf = classifier(**settings).fit(*moons)
    (chosen,) = [trial for trial in clf.history_.trials if trial.chosen]
    assert clf.history_.trials.index(chosen) > 0
    assert clf.history_.l2 == chosen.l2
    assert f"This on 300 of the rows. On 900: spline with {chosen.n_planes} planes" in (
        clf.history_.choice
    )
    assert clf.score(*moons) > 0.93


@pytest.fixture
def few_are_many(monkeypatch):
    """A thousand rows are so many that some are spared, and which they are."""
    monkeypatch.setattr(splits, "ROWS_TO_SPARE_SOME", 1000)
    monkeypatch.setattr(splits, "SHARE_TO_SPARE", 0.2)
    spared = []

    def split(y, fraction, rng):
        train, valid = stratified_split(y, fraction, rng)
        spared.append((fraction, valid))
        return train, valid

    monkeypatch.setattr(splits, "stratified_split", split)
    return spared


@pytest.mark.kernel
def test_of_very_many_rows_some_calibrate_the_final_planes(moons, few_are_many, monkeypatch):
    X, y = moons
    order = []
    monkeypatch.setattr(
        splits, "distinct_rows", lambda *a: order.append(distinct_rows(*a)) or order[-1]
    )
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-4, "random_state": 0}
    clf = classifier(**settings).fit(X, y)
    fraction, spared = few_are_many[-1]
    rows = order[-1].take(spared)
    assert fraction == 0.2
    assert len(rows) == pytest.approx(0.2 * len(y), abs=1)
    S = np.log(clf.model_.with_temperature(1.0).predict_proba(numbers(rows.X)))
    expected = fit_temperature(S, rows.y, rows.weight, PRIOR_SCALE)
    assert clf.model_.temperature == pytest.approx(expected, rel=1e-4)
    assert f"{len(rows)} rows were left out of the final training" in clf.history_.notes[-1]
    assert clf.history_.records[-1].valid_loss is not None
    alone = classifier(calibrate=False, **settings).fit(X, y)
    assert alone.history_.records[-1].valid_loss is None


@pytest.mark.parametrize(
    "setting", [{"preset": "accurate", "n_members": 2}, {"calibrate": False}, {"refit": False}]
)
def test_no_row_is_spared_where_it_would_not_calibrate(moons, few_are_many, setting):
    settings = {
        "lift": "spline",
        "n_planes": 2,
        "l2": 1e-3,
        "shrink_to_mean": 0.9,
        "random_state": 0,
    }
    classifier(**settings, **setting).fit(*moons)
    assert len(few_are_many) == 1  # the rows that were held out for the choice


def test_nothing_is_settled_on_more_rows_when_time_is_up(moons, monkeypatch):
    search_on(monkeypatch, 300, probe=300)
    let_time_pass(monkeypatch, seconds_per_look=1.0)
    settings = {"lift": "spline", "time_limit": 0.5, "random_state": 0}
    clf = classifier(**settings).fit(*moons)
    assert len(clf.history_.trials) == 1
    assert "of the rows. On" not in clf.history_.choice


@pytest.mark.parametrize("planes", [{"n_planes": 1}, {"max_planes": 2}])
def test_no_more_planes_on_more_rows_than_may_be(moons, monkeypatch, planes):
    search_on(monkeypatch, 300, probe=300)
    clf = classifier(lift="spline", random_state=0, **planes).fit(*moons)
    assert {trial.n_planes for trial in clf.history_.trials} == {2}


def test_thinned_rows_keep_cells_labels_and_clusters_together():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 2, 500)
    rows, judges = (
        Rows(all_rows(X[at]), y[at], 1.0 + X[at, 0] ** 2) for at in (slice(400), slice(400, 500))
    )
    settings = Settings(n_planes=3)
    whole = prepare(rows, judges, numeric_schema(("a", "b", "c")), 2, np.array([3, 3]), settings, 0)
    some = whole.thinned(150, 4)
    for thin, full, n_rows in ((some.rows, whole.rows, 150), (some.held_out, whole.held_out, 100)):
        at = [int(np.flatnonzero((row == full.X).all(axis=1))[0]) for row in thin.X]
        assert len(set(at)) == n_rows
        np.testing.assert_array_equal(thin.y, full.y[at])
        np.testing.assert_array_equal(thin.weight, full.weight[at])
        if full is whole.rows:
            np.testing.assert_array_equal(
                some.clusters.plane_of_row, whole.clusters.plane_of_row[at]
            )
    assert some.features("fourier").feature_map.n_outputs == 2 * 4
    np.testing.assert_allclose(some.linear.standardize(some.encoded.X), some.rows.X)
    np.testing.assert_allclose(some.linear.standardize(some.encoded_held_out.X), some.held_out.X)


@pytest.mark.kernel
def test_a_probe_may_lack_a_rare_class(monkeypatch):
    search_on(monkeypatch, 1000, probe=40)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (1500, 2))
    y = (np.sin(3.0 * X[:, 0]) > X[:, 1]).astype(int)
    y[:6] = 2
    clf = GeometricMixtureClassifier(lift="fourier", n_planes=1, random_state=0).fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.score(X, y) > 0.95


@pytest.mark.parametrize("seconds_per_look", [0.0, 1.0])
def test_a_probe_that_is_over_still_leaves_a_model(monkeypatch, seconds_per_look):
    """Because nothing is left to be won on its rows, or because time is up."""
    search_on(monkeypatch, 600, probe=300)
    let_time_pass(monkeypatch, seconds_per_look)
    X, y = make_blobs(1500, 2, centers=[[-9.0, 0.0], [9.0, 0.0]], random_state=0)
    settings = {"lift": "fourier", "random_state": 0, "time_limit": 5.0}
    clf = classifier(**settings).fit(X, y)
    assert clf.score(X, y) == 1.0
    assert len(clf.history_.trials) >= 1
