"""Loss, gradients and usage: against finite differences, scikit-learn, and their own algebra."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from shapes import central_differences, planes_per_class, random_planes, random_rows, seeds
from sklearn.metrics import log_loss

from geomix.arrays import CenteredSparse
from geomix.core.lifts import draw_fourier
from geomix.core.objective import batch_terms, cross_entropy, penalised, usage_penalty
from geomix.core.pooling import pool, softmax


def probabilities(planes, k, Phi):
    return softmax(pool(planes.scores(Phi), planes.class_start, k)[0])


@given(planes_per_class, st.floats(0.1, 10.0), st.sampled_from([0.0, 0.02, 0.3]), seeds)
def test_gradient_matches_central_differences(per_class, k, smoothing, seed):
    rng = np.random.default_rng(seed)
    planes = random_planes(rng, per_class, 3)
    Phi, y, weight = random_rows(rng, 8, 3, len(per_class))
    coefficients = rng.uniform(0.0, 0.1, planes.n_planes)

    def value(vector):
        at = planes.with_vector(vector)
        return penalised(batch_terms(at, k, Phi, y, weight, smoothing), at, coefficients)[0]

    terms = batch_terms(planes, k, Phi, y, weight, smoothing)
    gradient = penalised(terms, planes, coefficients)[1]
    numeric = central_differences(value, planes.as_vector())
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lift", ["linear", "sparse", "fourier"])
@pytest.mark.parametrize("usage_beta", [0.0, 0.5])
def test_gradient_matches_central_differences_on_every_lift(rng, lift, usage_beta):
    X = rng.standard_normal((20, 4)) * (rng.random((20, 4)) < 0.6)
    shift = rng.standard_normal(4)
    Phi = {
        "linear": X,
        "sparse": CenteredSparse(scipy.sparse.csr_matrix(X), shift),
        "fourier": draw_fourier(4, 3, 0.5, True, rng)(X),
    }[lift]
    planes = random_planes(rng, [2, 3], Phi.shape[1])
    y, weight = rng.integers(0, 2, 20), rng.uniform(0.1, 2, 20)
    # The usage in the penalty is a constant within a step, so it is frozen here too.
    usage = batch_terms(planes, 4.0, Phi, y, weight, 0.02).mean_usage
    coefficients = usage_penalty(usage, 1e-2, usage_beta, 0.01)

    def both(vector):
        at = planes.with_vector(vector)
        return penalised(batch_terms(at, 4.0, Phi, y, weight, 0.02), at, coefficients)

    numeric = central_differences(lambda v: both(v)[0], planes.as_vector())
    np.testing.assert_allclose(both(planes.as_vector())[1], numeric, rtol=1e-6, atol=1e-8)


@given(planes_per_class, seeds)
def test_loss_is_scikit_learns_log_loss(per_class, seed):
    rng = np.random.default_rng(seed)
    planes = random_planes(rng, per_class, 3)
    Phi, y, weight = random_rows(rng, 30, 3, len(per_class))
    P = probabilities(planes, 6.0, Phi)
    theirs = log_loss(y, P, labels=range(len(per_class)), sample_weight=weight)
    ours = batch_terms(planes, 6.0, Phi, y, weight, 0.0).mean_loss
    assert ours == pytest.approx(theirs, rel=1e-10)
    assert cross_entropy(planes, 6.0, Phi, y, weight) == pytest.approx(theirs, rel=1e-10)


def test_label_smoothing_is_cross_entropy_against_smoothed_targets(rng):
    planes = random_planes(rng, [2, 1, 3], 4)
    Phi, y, weight = random_rows(rng, 25, 4, 3)
    targets = 0.9 * np.eye(3)[y] + 0.1 / 3
    per_row = -(targets * np.log(probabilities(planes, 3.0, Phi))).sum(axis=1)
    ours = batch_terms(planes, 3.0, Phi, y, weight, 0.1).mean_loss
    assert ours == pytest.approx(np.average(per_row, weights=weight), rel=1e-12)


@given(planes_per_class, st.integers(1, 19), seeds)
def test_batches_add_up(per_class, cut, seed):
    rng = np.random.default_rng(seed)
    planes = random_planes(rng, per_class, 3)
    Phi, y, weight = random_rows(rng, 20, 3, len(per_class))
    whole = batch_terms(planes, 5.0, Phi, y, weight, 0.02)
    parts = batch_terms(planes, 5.0, Phi[:cut], y[:cut], weight[:cut], 0.02) + batch_terms(
        planes, 5.0, Phi[cut:], y[cut:], weight[cut:], 0.02
    )
    for name in ("row_weight", "loss", "weights_gradient", "biases_gradient", "usage"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)


def test_weight_two_is_row_twice(rng):
    planes = random_planes(rng, [2, 2], 3)
    Phi, y, _ = random_rows(rng, 10, 3, 2)
    weight = np.ones(10)
    weight[4] = 2.0
    twice = np.r_[np.arange(10), 4]
    a = batch_terms(planes, 5.0, Phi, y, weight, 0.02)
    b = batch_terms(planes, 5.0, Phi[twice], y[twice], np.ones(11), 0.02)
    assert a.mean_loss == pytest.approx(b.mean_loss, rel=1e-14)
    np.testing.assert_allclose(a.weights_gradient, b.weights_gradient, atol=1e-13)
    np.testing.assert_allclose(a.mean_usage, b.mean_usage, rtol=1e-14)


def test_usage_is_the_weighted_mean_responsibility_and_sums_to_one_per_class(rng):
    planes = random_planes(rng, [3, 1, 2], 3)
    Phi, y, weight = random_rows(rng, 40, 3, 3)
    usage = batch_terms(planes, 6.0, Phi, y, weight, 0.0).mean_usage
    A = pool(planes.scores(Phi), planes.class_start, 6.0)[1]
    np.testing.assert_allclose(usage, np.average(A, axis=0, weights=weight), rtol=1e-13)
    np.testing.assert_allclose(np.add.reduceat(usage, planes.class_start[:-1]), 1.0)


def test_an_idle_plane_is_penalised_more_and_biases_never():
    used, idle = usage_penalty(np.array([0.99, 0.0]), l2=1e-4, beta=0.5, delta=0.01)
    assert used == pytest.approx(1e-4 * (1 + 0.5 / 1.0))
    assert idle == pytest.approx(1e-4 * (1 + 0.5 / 0.01))
    rng = np.random.default_rng(1)
    planes = random_planes(rng, [1, 1], 2)
    terms = batch_terms(planes, 6.0, *random_rows(rng, 9, 2, 2), 0.0)
    free = penalised(terms, planes, np.zeros(2))[1]
    strong = penalised(terms, planes, np.full(2, 5.0))[1]
    assert np.array_equal(free[-2:], strong[-2:])
    np.testing.assert_allclose((strong - free)[:-2], 10.0 * planes.weights.ravel())
