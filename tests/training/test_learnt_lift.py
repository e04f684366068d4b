"""Fourier lifts that are learnt with their planes."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits

from geomix import GeometricMixtureClassifier, InvalidParameterError, Recipe
from geomix.core.lifts import draw_fourier
from geomix.core.planes import Planes, class_starts
from geomix.training.learnt_lift import learnt_lift, lift_terms
from geomix.training.rows import Rows


@pytest.fixture
def batch(rng):
    V, y = rng.standard_normal((30, 3)), rng.integers(0, 3, 30)
    lift = draw_fourier(3, 5, 0.5, True, rng)
    planes = Planes(rng.standard_normal((4, 10)), rng.standard_normal(4), class_starts([2, 1, 1]))
    return planes, lift.frequencies.copy(), V, y, rng.uniform(0.5, 2.0, 30)


def test_the_gradient_is_the_slope_of_the_loss(batch):
    planes, frequencies, V, y, weight = batch
    terms = lift_terms(planes, frequencies, 4.0, V, y, weight)
    step = 1e-6
    for at in [(0, 0), (1, 3), (2, 4)]:
        moved = [frequencies.copy(), frequencies.copy()]
        moved[0][at] += step
        moved[1][at] -= step
        up, down = (lift_terms(planes, one, 4.0, V, y, weight).loss for one in moved)
        assert terms.frequencies[at] == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_the_loss_is_that_of_the_drawn_lift(batch, rng):
    planes, _, V, y, weight = batch
    lift = draw_fourier(3, 5, 0.5, True, rng)
    S = planes.pooled(planes.scores(lift(V)), 4.0)[0]
    log_p = S - np.log(np.exp(S).sum(axis=1, keepdims=True))
    expected = -np.average(log_p[np.arange(30), y], weights=weight)
    found = lift_terms(planes, lift.frequencies, 4.0, V, y, weight).loss
    assert found == pytest.approx(expected)


@pytest.fixture(scope="module")
def noisy_moons():
    """Two moons in two columns, and eight columns of noise."""
    rng = np.random.default_rng(0)
    X, y = make_moons(1200, noise=0.15, random_state=0)
    X = np.column_stack([X, rng.standard_normal((1200, 8))])
    return X[:600], y[:600], X[600:], y[600:]


def test_scales_shrink_along_columns_of_noise(noisy_moons):
    X, y = noisy_moons[:2]
    V = (X - X.mean(axis=0)) / X.std(axis=0)
    lift = draw_fourier(10, 64, 0.1, True, np.random.default_rng(0))
    rows = Rows(V, y, np.ones(len(y)))
    learnt = learnt_lift(lift, rows, 2, 6.0, 1e-5, "scales", np.random.default_rng(0))
    scales = (learnt.frequencies / lift.frequencies).mean(axis=1)
    assert scales[:2].mean() > 1.3 * scales[2:].mean()


def test_a_learnt_lift_is_better_beside_columns_of_noise(noisy_moons):
    X, y, X_test, y_test = noisy_moons
    fixed = {"lift": "fourier", "n_planes": 1, "l2": 1e-4, "adaptive_penalty": False}
    scores = [
        GeometricMixtureClassifier(
            **fixed, advanced=Recipe(n_frequencies=64, learn_lift=kind), random_state=0
        )
        .fit(X, y)
        .score(X_test, y_test)
        for kind in ("off", "scales")
    ]
    assert scores[1] > scores[0] + 0.01


def test_the_accurate_preset_tries_a_learnt_lift_and_others_do_not(noisy_moons):
    X, y = noisy_moons[:2]
    tried = {}
    for preset in ("accurate", "readable"):
        clf = GeometricMixtureClassifier(
            1, lift="fourier", preset=preset, l2=1e-4, n_members=1, random_state=0
        )
        trials = clf.set_params(advanced=Recipe(n_frequencies=32)).fit(X, y).history_.trials
        tried[preset] = {trial.learn_lift for trial in trials}
    assert tried == {"accurate": {"off", "frequencies"}, "readable": {"off"}}


def test_a_learnt_lift_of_many_rows_is_learnt_from_some(rng, monkeypatch):
    monkeypatch.setattr("geomix.training.learnt_lift.MOST_ROWS", 200)
    V, y = rng.standard_normal((2000, 2)), rng.integers(0, 2, 2000)
    lift = draw_fourier(2, 8, 0.5, True, rng)
    used = []

    def counting(self, vector, rows):
        used.append(len(rows))
        return np.zeros_like(vector)

    monkeypatch.setattr("geomix.training.learnt_lift._Learning.gradient", counting)
    rows = Rows(V, y, np.ones(len(y)))
    learnt_lift(lift, rows, 2, 6.0, 1e-5, "frequencies", np.random.default_rng(0))
    assert sum(used) % 170 == 0  # 15 % of 200 stop the learning


def test_the_number_of_blas_threads_changes_no_bit(rng):
    V, y = rng.standard_normal((600, 16)), rng.integers(0, 5, 600)
    rows, lift = Rows(V, y, np.ones(len(y))), draw_fourier(16, 64, 0.05, True, rng)
    learnt = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            seed = np.random.default_rng(0)
            learnt.append(learnt_lift(lift, rows, 5, 6.0, 1e-5, "frequencies", seed).frequencies)
    np.testing.assert_array_equal(*learnt)


def test_few_rows_keep_the_drawn_lift(rng):
    lift = draw_fourier(2, 8, 0.5, True, rng)
    rows = Rows(rng.standard_normal((50, 2)), rng.integers(0, 2, 50), np.ones(50))
    assert learnt_lift(lift, rows, 2, 6.0, 1e-5, "frequencies", rng) is lift


def test_another_name_is_refused():
    with pytest.raises(InvalidParameterError, match="Got learn_lift='all'"):
        Recipe(learn_lift="all")
