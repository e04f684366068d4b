"""The torch head: its scores, gradients and penalty are the library's own."""

import importlib
import itertools
import sys

import numpy as np
import pytest

from geomix import GeometricMixtureClassifier
from geomix.core.calibration import expected_calibration_error
from geomix.core.objective import batch_terms, penalised, usage_penalty
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import pool

from shapes import random_rows  # isort: skip


def test_a_missing_torch_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "geomix.torch", raising=False)
    with pytest.raises(ImportError, match=r"geomix\[torch\]"):
        importlib.import_module("geomix.torch")


torch = pytest.importorskip("torch")
from geomix.torch import (  # noqa: E402
    GeometricMixtureHead,
    LinearChain,
    focal_loss,
    soft_calibration_error,
)


def made(n_planes, n_inputs=5, sharpness=4.0):
    torch.manual_seed(0)
    per_class = [n_planes] * 3 if isinstance(n_planes, int) else n_planes
    head = GeometricMixtureHead(n_inputs, len(per_class), n_planes, sharpness, dtype=torch.float64)
    planes = Planes(
        head.weight.detach().numpy(), head.bias.detach().numpy(), class_starts(per_class)
    )
    return head, planes


@pytest.mark.parametrize("n_planes", [1, 3, [2, 1, 4]])
def test_scores_and_responsibilities_are_the_librarys(rng, n_planes):
    head, planes = made(n_planes)
    X = rng.standard_normal((20, 5))
    S, A = pool(planes.scores(X), planes.class_start, 4.0)
    x = torch.as_tensor(X)
    np.testing.assert_allclose(head(x).detach().numpy(), S, atol=1e-12)
    np.testing.assert_allclose(head.responsibilities(x).detach().numpy(), A, atol=1e-12)
    np.testing.assert_allclose(head.usage(x).numpy(), A.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("n_planes", [1, 3, [2, 1, 4]])
@pytest.mark.parametrize("shrink_to_mean", [0.0, 0.9])
def test_gradients_are_the_librarys(rng, n_planes, shrink_to_mean):
    head, planes = made(n_planes)
    Phi, y, _ = random_rows(rng, 40, 5, 3)
    x = torch.as_tensor(Phi)
    loss = torch.nn.functional.cross_entropy(head(x), torch.as_tensor(y), label_smoothing=0.1)
    value = loss + head.penalty(head.usage(x), l2=1e-2, shrink_to_mean=shrink_to_mean)
    value.backward()
    terms = batch_terms(planes, 4.0, Phi, y, np.ones(40), 0.1)
    coefficients = usage_penalty(terms.mean_usage, 1e-2, 0.5, 0.01)
    expected, gradient = penalised(terms, planes, coefficients, shrink_to_mean)
    assert float(value.detach()) == pytest.approx(expected, rel=1e-12)
    ours = np.concatenate([head.weight.grad.numpy().ravel(), head.bias.grad.numpy()])
    np.testing.assert_allclose(ours, gradient, atol=1e-12)


def test_a_model_becomes_a_layer_and_a_layer_a_model(wine):
    X, y = wine
    model = GeometricMixtureClassifier(lift="linear", n_planes=2, random_state=0).fit(X, y).model_
    head = GeometricMixtureHead.from_model(model, dtype=torch.float64)
    P = torch.softmax(head(torch.as_tensor(X)), dim=1).detach().numpy()
    np.testing.assert_allclose(P, model.predict_proba(X), atol=1e-10)
    back = head.to_model(classes=model.classes, columns=model.columns)
    np.testing.assert_allclose(back.predict_proba(X), model.predict_proba(X), atol=1e-10)
    assert back.columns == model.columns
    assert np.array_equal(back.scorer()(X[0]), back.predict_proba(X[:1])[0])
    with pytest.raises(ValueError, match="expected 13 and 3"):
        head.to_model(classes=["one"])


def test_what_is_no_layer_is_refused(iris):
    X, y = iris
    fourier = GeometricMixtureClassifier(lift="fourier", random_state=0).fit(X, y).model_
    with pytest.raises(AttributeError, match="fourier"):
        GeometricMixtureHead.from_model(fourier)
    holed = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    missing = GeometricMixtureClassifier(lift="linear", random_state=0).fit(holed, y).model_
    with pytest.raises(ValueError, match="complete numbers"):
        GeometricMixtureHead.from_model(missing)
    with pytest.raises(ValueError, match="n_planes"):
        GeometricMixtureHead(4, 3, [1, 2])


def test_sharpness_goes_from_start_to_end_and_is_saved():
    head = GeometricMixtureHead(4, 2, 2, sharpness=6.0, sharpness_start=3.0)
    assert [head.anneal(t) for t in (0.0, 0.5, 1.0)] == [3.0, 4.5, 6.0]
    other = GeometricMixtureHead(4, 2, 2)
    other.load_state_dict(head.state_dict())
    x = torch.randn(5, 4)
    assert torch.equal(other(x), head(x))
    assert "sharpness=6" in repr(head)


def test_scores_stay_finite_for_enormous_inputs():
    head, _ = made(3, sharpness=50.0)
    x = 1e150 * torch.ones(2, 5, dtype=torch.float64)
    assert torch.isfinite(head(x)).all()


@pytest.fixture(scope="module")
def two_clusters_per_class():
    """Features of two classes; each has two clusters, in the corners of a square."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [4.0, 4.0], [0.0, 4.0], [4.0, 0.0]])
    codes = np.repeat([0, 0, 1, 1], 40)
    x = np.repeat(corners, 40, axis=0) + 0.3 * rng.standard_normal((160, 2))
    return torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(codes)


def test_a_start_from_features_solves_what_k_means_separates(two_clusters_per_class):
    x, y = two_clusters_per_class
    head = GeometricMixtureHead(2, 2, n_planes=2)
    head.start_from(x, y)
    assert (head(x).argmax(dim=1) == y).all()


def test_the_start_from_features_repeats_itself(two_clusters_per_class):
    heads = [GeometricMixtureHead(2, 2, n_planes=2) for _ in range(2)]
    for head in heads:
        head.start_from(*two_clusters_per_class, seed=3)
    assert torch.equal(heads[0].weight, heads[1].weight)


def test_idle_planes_go_and_the_scores_stay(two_clusters_per_class):
    x, y = two_clusters_per_class
    head = GeometricMixtureHead(2, 2, n_planes=[3, 2])
    small = GeometricMixtureHead(2, 2, n_planes=2)
    small.start_from(x, y)
    with torch.no_grad():
        head.weight.copy_(torch.cat([small.weight[:2], torch.zeros(1, 2), small.weight[2:]]))
        head.bias.copy_(torch.cat([small.bias[:2], torch.tensor([-100.0]), small.bias[2:]]))
    kept = head.without_idle_planes(x, y)
    assert kept.per_class == (2, 2)
    torch.testing.assert_close(kept(x), head(x))


def test_a_learnt_temperature_is_trained_and_goes_into_the_model(two_clusters_per_class):
    x, y = two_clusters_per_class
    head = GeometricMixtureHead(2, 2, n_planes=2, learn_temperature=True)
    torch.nn.functional.cross_entropy(head(x), y).backward()
    assert head.log_temperature.grad is not None
    with torch.no_grad():
        head.log_temperature.fill_(0.7)
    model = head.to_model()
    assert model.temperature == pytest.approx(np.exp(0.7))
    expected = torch.softmax(head(x), dim=1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(x.numpy()), expected, atol=1e-5)


def test_a_fitted_temperature_lowers_the_log_loss(two_clusters_per_class):
    x, y = two_clusters_per_class
    head = GeometricMixtureHead(2, 2, n_planes=2)
    head.start_from(x, y)
    flipped = torch.where(torch.arange(len(y)) % 5 == 0, 1 - y, y)
    before = torch.nn.functional.cross_entropy(head(x), flipped)
    assert head.fit_temperature(x, flipped) > 1.0
    assert torch.nn.functional.cross_entropy(head(x), flipped) < before


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(4, 3), torch.tensor([0, 0, 1, 1]), r"expected \(n_rows, 2\)"),
        (torch.zeros(4, 2), torch.tensor([0, 0, 0, 0]), "rows of every class code from 0 to 1"),
        (torch.full((4, 2), torch.nan), torch.tensor([0, 0, 1, 1]), "finite features"),
        (
            torch.zeros(4, 2),
            torch.tensor([0, 0, 1, 1]),
            "rows for 1 of its 2 planes",
        ),
    ],
)
def test_features_that_cannot_start_planes_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        GeometricMixtureHead(2, 2, n_planes=2).start_from(x, y)


def test_focal_loss_without_focus_is_the_cross_entropy():
    scores, y = torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 4
    plain = torch.nn.functional.cross_entropy(scores, y)
    torch.testing.assert_close(focal_loss(scores, y, gamma=0.0), plain)
    assert focal_loss(scores, y) < plain
    with pytest.raises(ValueError, match="Got gamma=-1"):
        focal_loss(scores, y, gamma=-1)


def test_the_soft_calibration_error_is_near_the_hard_one_and_has_a_gradient():
    generator = torch.Generator().manual_seed(0)
    scores = 3.0 * torch.randn(4000, 3, generator=generator)
    p = torch.softmax(scores / 2.0, dim=1)  # twice as certain as it should be
    y = torch.multinomial(p, 1, generator=generator)[:, 0]
    hard = expected_calibration_error(torch.softmax(scores, dim=1).double().numpy(), y.numpy())
    scores.requires_grad_()
    soft = soft_calibration_error(scores, y)
    assert soft.item() == pytest.approx(hard, abs=0.01)
    soft.backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad.abs().sum() > 0
    assert soft_calibration_error(scores / 2.0, y) < 0.5 * soft
    with pytest.raises(ValueError, match="Got n_bins=0"):
        soft_calibration_error(scores, y, n_bins=0)


def every_sequence(length, n_classes):
    return torch.tensor(list(itertools.product(range(n_classes), repeat=length)))


@pytest.fixture
def chain():
    generator = torch.Generator().manual_seed(0)
    made = LinearChain(3, dtype=torch.float64)
    with torch.no_grad():
        made.transitions.copy_(torch.randn(3, 3, generator=generator))
        made.first.copy_(torch.randn(3, generator=generator))
    return made, torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)


def test_a_chain_sums_over_all_sequences(chain):
    made, scores = chain
    every = every_sequence(4, 3)
    each = torch.stack([made(scores[:1], one[None]) for one in every])
    assert torch.exp(-4.0 * each).sum().item() == pytest.approx(1.0)


def test_the_predicted_sequence_is_the_most_probable_one(chain):
    made, scores = chain
    every = every_sequence(4, 3)
    for one in range(2):
        losses = torch.stack([made(scores[one : one + 1], y[None]) for y in every])
        assert torch.equal(made.predict(scores)[one], every[losses.argmin()])


def test_marginals_are_sums_over_sequences(chain):
    made, scores = chain
    every = every_sequence(4, 3)
    each = torch.stack([made(scores[:1], one[None]) for one in every])
    p = torch.exp(-4.0 * each).detach()
    expected = torch.stack([(p[:, None] * (every == code)).sum(dim=0) for code in range(3)], dim=1)
    torch.testing.assert_close(made.marginals(scores)[0], expected)


def test_a_chain_without_transitions_is_the_cross_entropy():
    scores, y = torch.randn(5, 6, 3), torch.arange(30).reshape(5, 6) % 3
    plain = torch.nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
    torch.testing.assert_close(LinearChain(3)(scores, y), plain)


def test_what_comes_after_the_end_of_a_sequence_changes_nothing(chain):
    made, scores = chain
    y = torch.tensor([[0, 1, 2, 0]])
    mask = torch.tensor([[True, True, True, False]])
    torch.testing.assert_close(made(scores[:1], y, mask), made(scores[:1, :3], y[:, :3]))
    padded = made.predict(scores[:1], mask)
    assert torch.equal(padded[:, :3], made.predict(scores[:1, :3]))
    assert padded[0, 3] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(2, 4, 2), torch.zeros(2, 4).long()), r"expected \(n_sequences, length, 3\)"),
        ((torch.zeros(2, 4, 3), torch.zeros(2, 3).long()), r"Got y of shape \(2, 3\)"),
        ((torch.zeros(2, 4, 3), torch.full((2, 4), 3)), "not from 0 to 2"),
        (
            (torch.zeros(1, 3, 3), torch.zeros(1, 3).long(), torch.tensor([[True, False, True]])),
            "mask has a gap",
        ),
    ],
)
def test_sequences_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearChain(3)(*arguments)
