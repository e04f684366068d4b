"""Schedules, solvers and the loop around them."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from shapes import random_planes
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

from geomix.core.adam import adam_start, adam_step, clip_norm
from geomix.core.lbfgs import Enough, minimize
from geomix.core.objective import cross_entropy
from geomix.core.pooling import pool
from geomix.training.initial_planes import initial_planes
from geomix.training.loop import train_planes
from geomix.training.plane_counts import Clusters, find_clusters, wanted_planes
from geomix.training.rows import Rows
from geomix.training.schedules import learning_rate_at, sharpness_at
from geomix.training.settings import Settings

pytestmark = pytest.mark.kernel


def never(record, planes):
    return None


@pytest.fixture
def parts(moons):
    """Standardised moons in a training and a validation part."""
    X, y = moons
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = Rows(X, y, np.ones(len(y)))
    return rows.take(np.arange(400)), rows.take(np.arange(400, 600))


def start_planes(train, per_class=3, init="kmeans"):
    clusters = find_clusters(train, 2, np.array([per_class] * 2), Settings(), 0)
    return initial_planes(train, clusters, init, 3.0, 0.02, np.random.default_rng(0))[0]


def draws():
    return np.random.default_rng(0)


def run(parts, watch=never, l2=1e-5, **settings):
    train, valid = parts
    return train_planes(
        start_planes(train), train, valid, Settings(**settings), l2, 0.0, draws, watch
    )


def test_adam_is_scikit_learns(rng):
    ours, theirs = rng.standard_normal(7), [np.zeros(7)]
    theirs[0][:] = ours
    optimizer, state = AdamOptimizer(theirs, learning_rate_init=0.05), adam_start(7)
    for _ in range(20):
        gradient = rng.standard_normal(7)
        state, ours = adam_step(state, ours, gradient, 0.05)
        optimizer.update_params(theirs, [gradient])
        # scikit-learn adds epsilon before the bias correction: a difference of about 1e-8.
        np.testing.assert_allclose(ours, theirs[0], atol=1e-6)


def test_clipping_keeps_the_direction_and_bounds_the_norm(rng):
    gradient = 10.0 * rng.standard_normal(9)
    clipped = clip_norm(gradient, 2.0)
    assert np.linalg.norm(clipped) == pytest.approx(2.0)
    np.testing.assert_allclose(clipped / 2.0, gradient / np.linalg.norm(gradient))
    assert clip_norm(gradient, None) is gradient
    assert clip_norm(gradient, 1e9) is gradient


def test_schedules_start_and_end_at_their_values():
    assert [sharpness_at(p, 3.0, 6.0) for p in (-1, 0, 0.5, 1, 2)] == [3, 3, 4.5, 6, 6]
    for schedule, middle in {"cosine": 0.505, "exponential": 0.1, "constant": 1.0}.items():
        ends = [learning_rate_at(p, 1.0, schedule) for p in (0.0, 0.5, 1.0)]
        last = 1.0 if schedule == "constant" else 0.01
        np.testing.assert_allclose(ends, [1.0, middle, last])


def test_lbfgs_finds_the_minimum_of_a_quadratic_and_stops_when_told(rng):
    A = rng.standard_normal((6, 6))
    A, b = A @ A.T + np.eye(6), rng.standard_normal(6)

    def quadratic(x):
        return 0.5 * x @ A @ x - b @ x, A @ x - b

    x, converged = minimize(
        quadratic, np.zeros(6), max_iter=200, tol=1e-10, on_iterate=lambda x, value: None
    )
    assert converged
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-6)
    seen = []

    def two_only(x, value):
        seen.append(x)
        if len(seen) == 2:
            raise Enough

    x, converged = minimize(quadratic, np.zeros(6), max_iter=200, tol=1e-10, on_iterate=two_only)
    assert not converged
    assert np.array_equal(x, seen[1])


def test_lbfgs_never_raises_the_loss_within_a_stage(parts):
    trained = run(parts, solver="lbfgs", early_stopping="off")
    records = trained.records
    assert {r.sharpness for r in records} == {3.0, 4.0, 5.0, 6.0}
    for before, after in itertools.pairwise(records):
        # Within the last stage the usage in the penalty is refreshed between rounds.
        if before.sharpness == after.sharpness < 6.0:
            assert after.loss <= before.loss + 1e-12 * abs(before.loss)


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_training_improves_on_the_first_planes(parts, solver):
    train, valid = parts
    first = start_planes(train)
    before = cross_entropy(first, 6.0, valid.X, valid.y, valid.weight)
    planes = run(parts, solver=solver, max_iter=100).planes
    assert cross_entropy(planes, 6.0, valid.X, valid.y, valid.weight) < 0.85 * before


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
@pytest.mark.parametrize("max_iter", [80, 100])
def test_the_best_planes_are_restored_however_training_ends(parts, solver, max_iter):
    trained = run(
        parts, solver=solver, max_iter=max_iter, early_stopping="plain", l2=0.0, learning_rate=0.1
    )
    _, valid = parts
    losses = [r.valid_loss for r in trained.records if r.valid_loss is not None]
    restored = cross_entropy(trained.planes, 6.0, valid.X, valid.y, valid.weight)
    assert restored == pytest.approx(min(losses), rel=1e-12)
    assert trained.records[trained.n_iter - 1].valid_loss == min(losses)


def test_patience_ends_training_after_that_many_epochs_without_gain(parts):
    trained = run(
        parts, solver="adam", n_iter_no_change=3, early_stopping="plain", learning_rate=0.3, l2=0.0
    )
    assert trained.stopped == "n_iter_no_change"
    losses = [r.valid_loss for r in trained.records if r.sharpness == 6.0]
    assert min(losses[-3:]) > min(losses) * (1 - 1e-3)
    assert len(trained.records) < 300


@pytest.mark.parametrize("n_iter_no_change", [1, 12])
def test_patience_does_not_end_adam_before_the_sharpness_is_final(parts, n_iter_no_change):
    trained = run(
        parts, solver="adam", max_iter=60, n_iter_no_change=n_iter_no_change,
        early_stopping="plain", learning_rate=0.5, l2=0.0,
    )  # fmt: skip
    assert trained.stopped == "n_iter_no_change"
    assert trained.records[trained.n_iter - 1].sharpness == 6.0
    soft = [r for r in trained.records if r.sharpness < 6.0]
    assert len(soft) == 30
    assert all(r.valid_loss is None for r in soft)


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_the_shortest_run_of_adam_ends_at_the_final_sharpness(parts, max_iter):
    trained = run(parts, solver="adam", max_iter=max_iter, early_stopping="plain")
    assert trained.records[trained.n_iter - 1].sharpness == 6.0


def test_adam_without_annealing_is_validated_from_the_first_epoch(parts):
    trained = run(parts, solver="adam", max_iter=4, sharpness_start=6.0, early_stopping="plain")
    assert all(r.valid_loss is not None for r in trained.records)


@pytest.mark.parametrize("max_iter", [8, 30, 80])
def test_a_short_run_still_reaches_the_final_sharpness(parts, max_iter):
    trained = run(parts, solver="lbfgs", max_iter=max_iter)
    last = [r for r in trained.records if r.sharpness == 6.0]
    assert len(last) >= max_iter // 4 or trained.stopped in {"converged", "n_iter_no_change"}
    assert all(r.valid_loss is not None for r in last)


def test_a_watcher_can_end_training(parts):
    for solver in ("adam", "lbfgs"):
        trained = run(parts, watch=lambda r, p: r.iteration == 4, solver=solver)
        assert trained.stopped == "request"
        assert len(trained.records) == 4


def test_adam_anneals_the_sharpness_and_the_learning_rate(parts):
    records = run(parts, solver="adam", max_iter=40, early_stopping="off").records
    sharpness = [r.sharpness for r in records]
    assert sharpness[0] == 3.0
    assert sharpness[-1] == 6.0
    assert sorted(sharpness) == sharpness
    rates = [r.learning_rate for r in records]
    assert rates[0] == 0.01
    assert sorted(rates, reverse=True) == rates


def test_batch_and_running_usage_lead_to_different_but_good_planes(parts):
    _, valid = parts
    found = [
        run(parts, solver="adam", usage_average=average, max_iter=40, batch_size=32, l2=1e-3).planes
        for average in ("batch", "running")
    ]
    assert not np.array_equal(found[0].weights, found[1].weights)
    for planes in found:
        assert cross_entropy(planes, 6.0, valid.X, valid.y, valid.weight) < 0.35


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_the_weight_norm_cap_holds(parts, solver):
    planes = run(
        parts, solver=solver, max_weight_norm=0.7, early_stopping="off", max_iter=30
    ).planes
    assert np.linalg.norm(planes.weights, axis=1).max() <= 0.7 * (1 + 1e-12)


def test_a_step_that_is_far_too_large_is_halved_and_the_best_planes_kept(parts, monkeypatch):
    from geomix.training import adam_epochs

    def explode(state, vector, gradient, rate):
        return state, vector * np.nan

    monkeypatch.setattr(adam_epochs.kernel, "is_native", False)
    monkeypatch.setattr(adam_epochs, "adam_step", explode)
    with pytest.warns(ConvergenceWarning, match="learning_rate=0.01"):
        trained = run(parts, solver="adam")
    assert trained.stopped == "diverged"
    assert np.isfinite(trained.planes.as_vector()).all()


def test_usage_aware_l2_prunes_an_idle_plane(parts):
    """An idle plane has the stronger penalty: it shrinks to nothing, it is not revived."""
    train, _ = parts
    planes = start_planes(train)
    idle = planes.as_vector()
    idle = planes.with_vector(idle)
    idle.biases[0] -= 50.0

    def norm_after(beta):
        settings = Settings(solver="lbfgs", usage_beta=beta, sharpness_start=6.0)
        trained = train_planes(idle, train, None, settings, 1e-3, 0.0, draws, never)
        usage = pool(trained.planes.scores(train.X), planes.class_start, 6.0)[1].mean(axis=0)
        assert usage[0] < 1e-6
        return np.linalg.norm(trained.planes.weights[0])

    assert norm_after(0.5) < 0.1 * norm_after(0.0) + 1e-6


# --- first planes and budget ---


def test_silhouette_finds_the_number_of_separate_groups(rng):
    centres = {0: [(-6, 0), (6, 0), (0, 8)], 1: [(0, 0)]}
    X = np.vstack([rng.normal(c, 0.3, (60, 2)) for group in centres.values() for c in group])
    y = np.repeat([0, 0, 0, 1], 60)
    rows = Rows(X, y, np.ones(240))
    clusters = find_clusters(rows, 2, None, Settings(), 0)
    assert clusters.planes_per_class[0] == 3
    groups = clusters.plane_of_row[:180].reshape(3, 60)
    assert (groups == groups[:, :1]).all()
    assert len(set(groups[:, 0])) == 3
    assert find_clusters(rows, 2, None, Settings(max_planes=2), 0).planes_per_class[0] == 2


@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [40, 150])
@pytest.mark.parametrize("stretch", [1.0, 6.0])
def test_one_gaussian_per_class_gets_one_plane_per_class(rng, n_columns, n_rows, stretch):
    """A long Gaussian is one cluster too."""
    X = rng.standard_normal((2 * n_rows, n_columns)) * np.linspace(stretch, 1.0, n_columns)
    X[n_rows:] += 2.0
    rows = Rows(X, np.repeat([0, 1], n_rows), np.ones(2 * n_rows))
    clusters = find_clusters(rows, 2, None, Settings(n_planes="silhouette"), 0)
    assert clusters.planes_per_class.tolist() == [1, 1]


def test_two_groups_are_found_in_wide_and_sparse_rows(rng):
    X = rng.standard_normal((60, 80))
    X[:30] += 3.0
    for given in (X, scipy.sparse.csr_matrix(X)):
        rows = Rows(given, np.zeros(60, dtype=int), np.ones(60))
        clusters = find_clusters(rows, 1, None, Settings(n_planes="silhouette"), 0)
        assert clusters.planes_per_class.tolist() == [2]


def test_a_ring_around_its_centre_is_not_one_cluster(rng):
    angle = rng.uniform(0.0, 2.0 * np.pi, 200)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.standard_normal((200, 2))
    rows = Rows(X, np.zeros(200, dtype=int), np.ones(200))
    clusters = find_clusters(rows, 1, None, Settings(n_planes="silhouette"), 0)
    assert clusters.planes_per_class[0] >= 3


def test_a_class_never_gets_more_planes_than_distinct_rows(rng):
    rows = Rows(rng.standard_normal((5, 2)), np.array([0, 0, 0, 1, 1]), np.ones(5))
    clusters = find_clusters(rows, 3, np.array([4, 4, 4]), Settings(), 0)
    assert clusters.planes_per_class.tolist() == [3, 2, 1]


def test_planes_can_be_wanted_by_number_or_label():
    classes = np.array(["a", "b"])
    assert wanted_planes("auto", classes) is None
    assert wanted_planes(3, classes).tolist() == [3, 3]
    assert wanted_planes({"b": 2, "a": 5}, classes).tolist() == [5, 2]
    assert wanted_planes({True: 2, False: 1}, np.array([False, True])).tolist() == [1, 2]


def test_more_planes_give_a_class_no_head_start(rng):
    """Soft-OR is a sum: without the correction four equal planes would start log(4)/k ahead."""
    X = np.vstack([rng.normal(-1, 1, (200, 2)), rng.normal(1, 1, (200, 2))])
    rows = Rows(X, np.repeat([0, 1], 200), np.ones(400))
    clusters = Clusters(np.zeros(400, dtype=int), np.array([1, 1]), ())
    even, _ = initial_planes(rows, clusters, "kmeans", 3.0, 0.0, rng)
    copies = Clusters(np.zeros(400, dtype=int), np.array([4, 1]), ())
    odd, _ = initial_planes(rows, copies, "logistic", 3.0, 0.0, rng)
    S = pool(odd.scores(X), odd.class_start, 3.0)[0]
    assert abs((S.argmax(axis=1) == 0).mean() - 0.5) < 0.05
    assert even.n_planes == 2


@pytest.mark.parametrize("init", ["kmeans", "logistic", "random"])
def test_every_initialisation_leads_to_a_good_model(parts, init):
    train, valid = parts
    planes = start_planes(train, init=init)
    trained = train_planes(planes, train, valid, Settings(solver="lbfgs"), 1e-6, 0.0, draws, never)
    assert cross_entropy(trained.planes, 6.0, valid.X, valid.y, valid.weight) < 0.3


def test_auto_falls_back_to_logistic_when_clusters_are_unstable(parts):
    train, _ = parts
    stable = Clusters(np.zeros(400, dtype=int), np.array([1, 1]), ())
    unstable = Clusters(np.zeros(400, dtype=int), np.array([1, 1]), (1,))
    rng = np.random.default_rng(0)
    assert initial_planes(train, stable, "auto", 3.0, 0.02, rng)[1] == "kmeans"
    assert initial_planes(train, unstable, "auto", 3.0, 0.02, rng)[1] == "logistic"


def test_planes_survive_the_trip_through_a_flat_vector(rng):
    planes = random_planes(rng, [2, 1, 3], 4)
    again = planes.with_vector(planes.as_vector())
    assert np.array_equal(again.weights, planes.weights)
    assert np.array_equal(again.biases, planes.biases)
    assert planes.class_of.tolist() == [0, 0, 1, 2, 2, 2]
    assert planes.per_class.tolist() == [2, 1, 3]


@pytest.mark.parametrize("max_iter", [2, 60, 400])
@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_watching_changes_nothing(parts, solver, max_iter):
    options = {"solver": solver, "max_iter": max_iter, "early_stopping": "off"}
    watched, alone = run((parts[0], None), **options), run((parts[0], None), watch=None, **options)
    assert np.array_equal(watched.planes.as_vector(), alone.planes.as_vector())
    assert watched.records == alone.records
    assert (watched.n_iter, watched.stopped) == (alone.n_iter, alone.stopped)


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
def test_records_hold_the_usage_in_the_penalty(parts, solver):
    trained = run(parts, solver=solver, max_iter=20)
    usages = np.array([record.usage for record in trained.records])
    per_class = trained.planes.per_class
    shares = np.add.reduceat(usages, trained.planes.class_start[:-1], axis=1)
    assert usages.shape == (len(trained.records), per_class.sum())
    np.testing.assert_allclose(shares, 1.0, atol=1e-9)  # responsibilities of a class sum to one
