"""One temperature and the measures of calibration, against SciPy, scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from shapes import seeds
from sklearn.metrics import brier_score_loss, log_loss

from geomix.core.calibration import (
    TEMPERATURE_RANGE,
    brier_score,
    calibrate,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    prior_pull,
    reliability_curve,
)
from geomix.core.pooling import softmax

pytestmark = pytest.mark.kernel


def random_scores(seed, n_rows=60, n_classes=3, size=3.0):
    rng = np.random.default_rng(seed)
    S = size * rng.standard_normal((n_rows, n_classes))
    y = np.array([rng.choice(n_classes, p=p) for p in softmax(S / rng.uniform(0.5, 3.0))])
    return S, y, rng.uniform(0.1, 2.0, n_rows)


def nll_at(S, y, weight, temperature):
    return -np.average(log_softmax(S / temperature, axis=1)[np.arange(len(y)), y], weights=weight)


@given(seeds)
def test_the_temperature_is_the_one_that_a_line_search_finds(seed):
    S, y, weight = random_scores(seed)
    bounds = tuple(np.log(TEMPERATURE_RANGE))
    found = minimize_scalar(
        lambda t: nll_at(S, y, weight, np.exp(t)), bounds=bounds, method="bounded"
    )
    temperature, nll = calibrate(S, y, weight)
    assert nll <= found.fun + 1e-9
    assert nll == pytest.approx(nll_at(S, y, weight, temperature), rel=1e-12)


@given(seeds, st.floats(0.5, 300.0), st.sampled_from([None, 0.5]))
def test_scores_of_a_large_scale_get_their_best_temperature_too(seed, size, prior_scale):
    S, _, weight = random_scores(seed, size=size)
    y = np.random.default_rng(seed).integers(0, 3, len(S))
    pull = prior_pull(weight / weight.sum(), prior_scale)

    def cost(t):
        return nll_at(S, y, weight, np.exp(t)) + 0.5 * pull * t**2

    found = min(map(cost, np.linspace(*np.log(TEMPERATURE_RANGE), 2000)))
    temperature = fit_temperature(S, y, weight, prior_scale)
    assert cost(np.log(temperature)) <= found + 1e-6


@given(seeds, st.sampled_from([None, 0.1, 0.5, 2.0]))
def test_a_temperature_never_worsens_held_out_likelihood(seed, prior_scale):
    rng = np.random.default_rng(seed)
    S = rng.uniform(0.01, 50.0) * rng.standard_normal((12, 4))
    y = rng.integers(0, 4, 12)
    temperature = fit_temperature(S, y, prior_scale=prior_scale)
    assert TEMPERATURE_RANGE[0] <= temperature <= TEMPERATURE_RANGE[1]
    assert nll_at(S, y, None, temperature) <= nll_at(S, y, None, 1.0)


@given(seeds, st.floats(*TEMPERATURE_RANGE))
def test_a_temperature_keeps_the_most_probable_class(seed, temperature):
    S, _, _ = random_scores(seed)
    assert np.array_equal(softmax(S / temperature).argmax(axis=1), S.argmax(axis=1))


def test_the_prior_holds_the_temperature_when_few_rows_are_all_right():
    S, y = np.array([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]]), np.array([0, 1, 0])
    assert fit_temperature(S, y) < 0.1
    assert 0.3 < fit_temperature(S, y, prior_scale=0.5) < 1.0
    many = fit_temperature(np.tile(S, (1000, 1)), np.tile(y, 1000), prior_scale=0.5)
    assert many < 0.5


def test_no_rows_mean_no_scaling():
    assert fit_temperature(np.empty((0, 3)), np.empty(0, dtype=int)) == 1.0


def test_nll_and_brier_are_scikit_learns(rng):
    P = softmax(rng.standard_normal((40, 2)))
    y, weight = rng.integers(0, 2, 40), rng.uniform(0.1, 2, 40)
    assert negative_log_likelihood(P, y, weight) == pytest.approx(
        log_loss(y, P, sample_weight=weight, labels=[0, 1])
    )
    # Over both classes the squared error counts twice.
    binary = brier_score_loss(y, P[:, 1], sample_weight=weight)
    assert brier_score(P, y, weight) == pytest.approx(2 * binary)


def test_ece_by_hand(rng):
    P = softmax(2.0 * rng.standard_normal((500, 3)))
    y = rng.integers(0, 3, 500)
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    total = 0.0
    for low, high in zip(np.arange(15) / 15, np.arange(1, 16) / 15, strict=True):
        inside = (top > low) & (top <= high)
        if inside.any():
            total += inside.mean() * abs(top[inside].mean() - right[inside].mean())
    assert expected_calibration_error(P, y) == pytest.approx(total, rel=1e-12)


def test_reliability_curve_bins_hold_all_rows_and_the_edges():
    P = np.array([[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]])
    curve = reliability_curve(P, np.array([0, 0, 1]), n_bins=4)
    np.testing.assert_allclose(curve.share, [0, 1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(curve.confidence[1:], [0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.accuracy[1:], [1.0, 0.0, 1.0])
    assert np.isnan(curve.accuracy[0])
    assert curve.expected_error == pytest.approx((0.5 + 0.75 + 0.0) / 3)


@pytest.mark.parametrize("n_bins", [5, 7, 10, 15, 30])
def test_a_probability_on_an_edge_is_in_the_bin_that_the_edge_ends(n_bins):
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    for bin_, top in enumerate(edges[1:]):
        if top >= 0.5:
            curve = reliability_curve(np.array([[top, 1.0 - top]]), np.array([0]), n_bins)
            assert curve.share.argmax() == bin_


def test_measures_take_lists_and_whole_numbers():
    P, y = [[1, 0], [0, 1], [1, 0]], [0, 1, 1]
    assert brier_score(P, y) == pytest.approx(2 / 3)
    assert expected_calibration_error(P, y) == pytest.approx(1 / 3)
    assert negative_log_likelihood(P[:2], y[:2]) == 0.0


@pytest.mark.parametrize(
    "measure", [brier_score, negative_log_likelihood, expected_calibration_error]
)
def test_what_cannot_be_measured_is_refused_with_one_sentence(measure):
    P, y = np.full((3, 2), 0.5), np.array([0, 1, 1])
    for odd in (np.array(["a", "b", "b"]), y + 1, y - 1, y.astype(float)):
        with pytest.raises(ValueError, match=r"y must hold codes from 0 to 1, .*searchsorted"):
            measure(P, odd)
    with pytest.raises(ValueError, match=r"y of shape \(2,\)"):
        measure(P, y[:2])
    for weight in (np.zeros(3), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        with pytest.raises(ValueError, match="sample_weight must hold finite numbers"):
            measure(P, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(2,\)"):
        measure(P, y, sample_weight=np.ones(2))


@pytest.mark.parametrize("n_bins", [0, -1, 2.5])
def test_a_number_of_bins_that_cannot_be_is_refused(n_bins):
    with pytest.raises(ValueError, match=f"Got n_bins={n_bins}; expected an integer"):
        expected_calibration_error(np.full((3, 2), 0.5), np.array([0, 1, 1]), n_bins)
