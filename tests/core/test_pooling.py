"""The four equations, against SciPy, against their limits, and at the ends of the range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax as scipy_log_softmax
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax
from shapes import central_differences, planes_per_class, seeds, sharpness

from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import log_softmax, pool, responsibilities, soft_or, softmax


def scores(rng, n_rows, per_class, size=3.0):
    return size * rng.standard_normal((n_rows, sum(per_class))), class_starts(per_class)


@given(planes_per_class, sharpness, seeds)
def test_soft_or_is_scaled_log_sum_exp(per_class, k, seed):
    Z, start = scores(np.random.default_rng(seed), 5, per_class)
    S = soft_or(Z, start, k)
    for c in range(len(per_class)):
        theirs = logsumexp(k * Z[:, start[c] : start[c + 1]], axis=1) / k
        np.testing.assert_allclose(S[:, c], theirs, rtol=1e-11, atol=1e-11)


@given(planes_per_class, sharpness, seeds)
def test_responsibilities_sum_to_one_per_class(per_class, k, seed):
    Z, start = scores(np.random.default_rng(seed), 5, per_class)
    A = responsibilities(Z, start, k)
    assert (A >= 0).all()
    np.testing.assert_allclose(np.add.reduceat(A, start[:-1], axis=1), 1.0, rtol=1e-14)


@given(planes_per_class, st.floats(1e-6, 1e6), seeds)
def test_soft_or_lies_between_the_maximum_and_log_m_over_k_above(per_class, k, seed):
    Z, start = scores(np.random.default_rng(seed), 5, per_class)
    top = np.maximum.reduceat(Z, start[:-1], axis=1)
    above = soft_or(Z, start, k) - top
    assert (above >= 0).all()
    assert (above <= np.log(per_class) / k * (1 + 1e-9) + 1e-12).all()


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-1e4, 1e4)),
    st.sampled_from([1e-6, 1e-3, 1.0, 6.0, 1e3, 1e6]),
)
def test_every_score_and_sharpness_gives_finite_probabilities(Z, k):
    S, A = pool(Z, class_starts([1, 3]), k)
    P = softmax(S)
    assert np.isfinite(S).all()
    assert np.isfinite(A).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=4 * 2 * np.finfo(float).eps)
    assert ((P >= 0) & (P <= 1)).all()


def test_large_sharpness_is_the_maximum(rng):
    Z, start = scores(rng, 50, [3, 2, 4])
    top = np.maximum.reduceat(Z, start[:-1], axis=1)
    np.testing.assert_allclose(soft_or(Z, start, 1e6), top, atol=np.log(4) / 1e6)


@pytest.mark.parametrize("k", [1e-6, 1.0, 1e6])
def test_one_plane_is_its_own_pool_to_the_bit(rng, k):
    Z, start = scores(rng, 20, [1, 1, 1])
    S, A = pool(Z, start, k)
    assert np.array_equal(S, Z)
    assert (A == 1.0).all()
    mixed, start = scores(rng, 20, [1, 3])
    assert np.array_equal(soft_or(mixed, start, k)[:, 0], mixed[:, 0])


@given(planes_per_class, sharpness, seeds)
def test_plane_order_does_not_matter(per_class, k, seed):
    rng = np.random.default_rng(seed)
    Z, start = scores(rng, 4, per_class)
    order = np.concatenate([start[c] + rng.permutation(n) for c, n in enumerate(per_class)])
    P, Q = softmax(soft_or(Z, start, k)), softmax(soft_or(Z[:, order], start, k))
    np.testing.assert_allclose(P, Q, atol=1e-14 * max(1.0, 1 / k))
    shuffled = responsibilities(Z[:, order], start, k)
    np.testing.assert_allclose(responsibilities(Z, start, k)[:, order], shuffled, atol=1e-14)


def test_responsibility_is_the_slope_of_the_soft_or(rng):
    Z, start = scores(rng, 1, [3, 2])
    A = responsibilities(Z, start, 2.5)[0]
    for c in range(2):
        slope = central_differences(lambda z, c=c: soft_or(z[None], start, 2.5)[0, c], Z[0])
        expected = np.where(np.repeat([0, 1], [3, 2]) == c, A, 0.0)
        np.testing.assert_allclose(slope, expected, atol=1e-8)


@given(arrays(np.float64, (3, 5), elements=st.floats(-1e300, 1e300)))
def test_softmax_is_scipys(S):
    np.testing.assert_allclose(softmax(S), scipy_softmax(S, axis=1), atol=1e-15)
    np.testing.assert_allclose(log_softmax(S), scipy_log_softmax(S, axis=1), rtol=1e-13, atol=1e-15)


@given(planes_per_class, st.integers(1, 3), sharpness, seeds)
def test_class_scores_alone_are_those_of_pooling_to_the_bit(per_class, n_members, k, seed):
    rng = np.random.default_rng(seed)
    start = class_starts(n_members * np.array(per_class))
    planes = Planes(np.zeros((start[-1], 1)), np.zeros(start[-1]), start, n_members)
    Z = 3.0 * rng.standard_normal((5, start[-1]))
    np.testing.assert_array_equal(planes.class_scores(Z, k), planes.pooled(Z, k)[0])
