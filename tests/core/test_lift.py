"""Standardising, rotating and lifting: against scikit-learn, the kernel, and the fold."""

import numpy as np
import pytest
import scipy.sparse
from making import classifier
from shapes import random_planes
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from geomix.core.lifts import (
    LARGEST_STANDARDIZED,
    draw_fourier,
    fit_standardize,
    median_gamma,
    short,
    with_rotation,
)

pytestmark = pytest.mark.kernel


def all_columns(X):
    return np.arange(X.shape[1])


def test_standardising_is_scikit_learns_with_weights(wine, rng):
    X, _ = wine
    weight = rng.uniform(0.1, 3.0, len(X))
    theirs = StandardScaler().fit(X, sample_weight=weight)
    ours = fit_standardize(X, weight, all_columns(X))
    np.testing.assert_allclose(ours(X), theirs.transform(X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-250, 1e-100, 1e100, 1e250, 1e300])
def test_the_unit_of_a_column_does_not_matter(rng, factor):
    X = rng.standard_normal((50, 3))
    plain = fit_standardize(X, np.ones(50), all_columns(X))(X)
    scaled = fit_standardize(X * factor, np.ones(50), all_columns(X))(X * factor)
    np.testing.assert_allclose(scaled, plain, rtol=1e-12, atol=1e-12)


def test_sparse_rows_standardise_like_dense_ones(rng):
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.3)
    weight = rng.uniform(0.5, 2.0, 40)
    kept = np.array([0, 2, 3, 5])
    dense = fit_standardize(X, weight, kept)
    sparse = fit_standardize(scipy.sparse.csr_matrix(X), weight, kept)
    np.testing.assert_allclose(sparse.mean, dense.mean, atol=1e-14)
    np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-12)
    matrix, G = rng.standard_normal((4, 3)), rng.standard_normal((40, 2))
    U, V = dense(X), sparse(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(V @ matrix, U @ matrix, atol=1e-12)
    np.testing.assert_allclose(G.T @ V, G.T @ U, atol=1e-12)
    np.testing.assert_allclose(V[3:7] @ matrix, U[3:7] @ matrix, atol=1e-12)


def test_the_clip_keeps_every_finite_row_finite(rng):
    X = rng.standard_normal((20, 2))
    standardize = fit_standardize(X, np.ones(20), all_columns(X))
    extremes = np.array([[1.7e308, -1.7e308], [-1.7e308, 5e-324]])
    assert np.abs(standardize(extremes)).max() == LARGEST_STANDARDIZED


def test_rotation_is_scikit_learns_pca(digits):
    X, _ = digits
    X = X[:, X.std(axis=0) > 0]
    standardize = fit_standardize(X, np.ones(len(X)), all_columns(X))
    theirs = PCA(0.95).fit(standardize(X))
    ours = with_rotation(standardize, X, np.ones(len(X)), 0.95)
    assert ours.n_outputs == theirs.n_components_
    np.testing.assert_allclose(np.abs(ours(X)), np.abs(theirs.transform(standardize(X))), atol=1e-8)


def test_rotation_of_more_columns_than_rows_is_scikit_learns_pca(rng):
    X = rng.standard_normal((12, 40)) @ rng.standard_normal((40, 40))
    weight = np.ones(12)
    standardize = fit_standardize(X, weight, all_columns(X))
    ours, theirs = with_rotation(standardize, X, weight, 0.9), PCA(0.9).fit(standardize(X))
    assert ours.n_outputs == theirs.n_components_
    np.testing.assert_allclose(ours.rotation @ ours.rotation.T, np.eye(ours.n_outputs), atol=1e-12)
    np.testing.assert_allclose(np.abs(ours(X)), np.abs(theirs.transform(standardize(X))), atol=1e-9)
    repeated = np.repeat(X[:3], 4, axis=0)
    again = fit_standardize(repeated, weight, all_columns(X))
    assert with_rotation(again, repeated, weight, 10).n_outputs == 2


def test_rotation_keeps_a_number_of_axes_but_no_more_than_the_rows_allow(rng):
    X = rng.standard_normal((5, 9))
    standardize = fit_standardize(X, np.ones(5), all_columns(X))
    assert with_rotation(standardize, X, np.ones(5), 3).n_outputs == 3
    assert with_rotation(standardize, X, np.ones(5), 9).n_outputs == 4


@pytest.mark.parametrize("rotate", [False, True])
def test_folded_equals_staged(wine, rng, rotate):
    X, _ = wine
    standardize = fit_standardize(X, np.ones(len(X)), np.array([0, 1, 3, 7, 12]))
    if rotate:
        standardize = with_rotation(standardize, X, np.ones(len(X)), 4)
    planes = random_planes(rng, [2, 3], standardize.n_outputs)
    staged = planes.scores(standardize(X))
    folded = planes.through(*standardize.as_affine()).scores(X)
    np.testing.assert_allclose(folded, staged, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_fourier_features_estimate_the_gaussian_kernel(rng, orthogonal):
    X = rng.standard_normal((6, 3))
    gamma = 0.3
    estimates = []
    for _ in range(50):
        Phi = draw_fourier(3, 64, gamma, orthogonal, rng)(X)
        np.testing.assert_allclose((Phi**2).sum(axis=1), 1.0)
        estimates.append(Phi @ Phi.T)
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / np.sqrt(50)
    assert (np.abs(mean - rbf_kernel(X, gamma=gamma)) <= 3.5 * error + 1e-12).all()


def test_orthogonal_draws_estimate_the_kernel_with_less_noise(rng):
    X = rng.standard_normal((30, 8))
    truth = rbf_kernel(X, gamma=0.05)

    def error(orthogonal):
        draws = [draw_fourier(8, 64, 0.05, orthogonal, rng)(X) for _ in range(30)]
        return np.mean([(Phi @ Phi.T - truth) ** 2 for Phi in draws])

    assert error(True) < 0.9 * error(False)


def test_median_gamma_is_one_over_the_median_squared_distance(rng):
    from scipy.spatial.distance import pdist

    X = rng.standard_normal((80, 5))
    assert median_gamma(X, rng) == pytest.approx(1.0 / np.median(pdist(X, "sqeuclidean")))
    assert median_gamma(np.zeros((4, 2)), rng) == 1.0


def test_short_numbers_are_the_nearest_of_21_bits():
    x = np.concatenate([np.random.default_rng(0).standard_normal(1000), [0.0, -2.0, 1e100, 1e-300]])
    rounded = short(x)
    assert np.all(np.abs(rounded - x) <= 2.0**-21 * np.abs(x))
    assert np.array_equal(short(rounded), rounded)
    assert not np.any(rounded.view(np.uint64) & np.uint64(0xFFFFFFFF))


def test_a_fourier_model_holds_short_numbers_only():
    X = np.random.default_rng(0).standard_normal((60, 3))
    clf = classifier(lift="fourier", n_planes=2, gamma=0.5, random_state=0)
    model = clf.fit(X, (X[:, 0] > 0).astype(int)).model_
    for numbers in (model.lift.frequencies, model.planes.weights):
        assert np.array_equal(short(numbers), numbers)
