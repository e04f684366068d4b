"""The torch head: its scores, gradients and penalty are the library's own."""

import importlib
import sys

import numpy as np
import pytest

from geomix import GeometricMixtureClassifier
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
from geomix.torch import GeometricMixtureHead  # noqa: E402


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
