"""Certificates: attacks that try to break them, and distances from another solver."""

import json

import numpy as np
import pandas as pd
import pytest
from reading_models import ADDITIVE, fitted

from geomix import GeometricMixture, GeometricMixtureClassifier
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.core.planes import Planes
from geomix.errors import NoShapes
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows

NORMS = (1, 2, np.inf)


def numbers_of(form):
    return np.array([shape.kind == "number" for shape in form.shapes])


def random_attacks(rng, n, d, norm):
    """Points on the unit sphere of a norm, some in few columns."""
    V = rng.standard_normal((n, d))
    V[rng.random(V.shape) < rng.random((n, 1)) * 0.9] = 0.0
    if norm == np.inf:
        V = np.sign(V) * np.where(rng.random((n, 1)) < 0.5, 1.0, np.abs(V))
    return V / np.maximum(np.linalg.norm(V, norm, axis=1, keepdims=True), 1e-12)


def gradient_attack(model, form, row, radius, norm, scale, steps=30):
    """Walk down the margin's slope within the ball; every point on the way is returned."""
    free = numbers_of(form) & ~np.isnan(row)
    here, seen = row.copy(), []
    S = form.class_scores(row[None])[0]
    label = S.argmax()
    for _ in range(steps):
        S = form.class_scores(here[None])[0].copy()
        S[label] = -np.inf
        rival = S.argmax()
        step = 1e-4 * scale
        around = np.vstack([here + np.diag(step), here - np.diag(step)])
        margins = model.answer("class_scores", around)
        above, below = np.split(margins[:, rival] - margins[:, label], 2)
        slope = np.where(free, above - below, 0.0)
        if norm == 2:
            push = slope / max(np.linalg.norm(slope), 1e-12)
        elif norm == 1:
            push = np.zeros(len(row))
            push[np.abs(slope).argmax()] = np.sign(slope[np.abs(slope).argmax()])
        else:
            push = np.sign(slope)
        delta = np.where(free, (here - row) / scale, 0.0) + 0.3 * radius * push
        size = np.linalg.norm(delta, norm)
        delta *= min(1.0, radius / max(size, 1e-12))
        here = np.where(free, row + delta * scale, row)
        seen.append(here)
    return np.array(seen)


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("norm", NORMS)
def test_no_attack_within_the_radius_changes_the_answer(name, norm):
    model, X, _ = fitted(name)
    form = additive(model)
    scale = np.array([shape.scale for shape in form.shapes])
    rows = slice(0, None, 29)
    X = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    encoded = encoded_rows(model, X)
    told = model.certify(X, norm)
    assert (told.labels == model.predict(X)).all()
    assert (told.radius > 0.0).all()
    rng = np.random.default_rng(0)
    for row, radius, label in zip(encoded, told.radius, told.labels, strict=True):
        free = numbers_of(form) & ~np.isnan(row)
        V = random_attacks(rng, 500, len(row), norm) * free * radius * (1 - 1e-12)
        near = np.where(free, row + V * scale, row)
        far = gradient_attack(model, form, row, radius * (1 - 1e-12), norm, scale, steps=6)
        answers = model.answer("class_scores", np.vstack([near, far])).argmax(axis=1)
        assert (model.classes[answers] == label).all()


@pytest.mark.parametrize("norm", NORMS)
def test_with_one_plane_per_class_the_radius_is_the_distance_to_the_boundary(norm):
    model, X, _ = fitted("linear")
    fast, exact = model.certify(X[::20], norm), model.certify(X[::20], norm, method="exact")
    dual = {1: np.inf, 2: 2, np.inf: 1}[norm]
    W = model.folded.weights * X.std(axis=0)
    Z = X[::20] @ model.folded.weights.T + model.folded.biases
    for z, radius in zip(Z, fast.radius, strict=True):
        now = z.argmax()
        gaps = [(z[now] - z[k]) / np.linalg.norm(W[now] - W[k], dual) for k in range(3) if k != now]
        assert radius == pytest.approx(min(gaps), rel=1e-6)
    np.testing.assert_allclose(exact.hard_radius, fast.radius, rtol=1e-6)
    assert (exact.radius >= fast.radius).all()


@pytest.mark.parametrize("norm", NORMS)
def test_the_exact_hard_radius_is_the_distance_to_the_nearest_hard_change(norm):
    """Two columns, several planes: a fine grid sees the hard regions."""
    rng = np.random.default_rng(5)
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    planes = Planes(2 * rng.standard_normal((5, 2)), rng.standard_normal(5), np.array([0, 3, 5]))
    model = GeometricMixture(
        np.array(["a", "b"]), ("u", "v"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0
    )
    side = np.linspace(-6.0, 6.0, 601)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for row in rng.standard_normal((3, 2)):
        told = model.certify(row[None], norm, method="exact")
        Z = (row + grid) @ planes.weights.T + planes.biases
        hard = planes.class_of[Z.argmax(axis=1)]
        here = planes.class_of[(planes.weights @ row + planes.biases).argmax()]
        soft = model.predict(row[None])[0]
        if model.classes[here] != soft:
            continue
        distance = np.linalg.norm(grid[hard != here], norm, axis=1).min()
        assert told.hard_radius[0] <= distance + 1e-9
        assert told.hard_radius[0] >= distance - 0.03
        flips = grid[model.predict(row + grid) != soft]
        assert told.radius[0] <= np.linalg.norm(flips, norm, axis=1).min()
        assert told.radius[0] >= model.certify(row[None], norm).radius[0]


def test_a_certificate_is_never_wider_than_a_counterfactual():
    for name in ("several", "spline", "committee"):
        model, X, _ = fitted(name)
        radius = model.certify(X[::50]).radius
        found = [model.counterfactual(row).distance for row in X[::50]]
        assert (radius <= np.array(found) + 1e-9).all()


def test_a_unit_of_ones_own_and_wrong_requests():
    model, X, _ = fitted("linear")
    one = model.certify(X[:3], scale=dict.fromkeys(model.columns, 1.0))
    assert one.unit == "units of scale"
    W = model.folded.weights
    Z = X[:3] @ W.T + model.folded.biases
    now, runner = Z[0].argmax(), np.argsort(Z[0])[-2]
    gap = (Z[0, now] - Z[0, runner]) / np.linalg.norm(W[now] - W[runner])
    assert one.radius[0] <= gap * (1 + 1e-9)
    for options in ({"norm": 3}, {"method": "guess"}):
        with pytest.raises(ValueError, match="expected"):
            model.certify(X[:1], **options)
    spline, X, _ = fitted("spline")
    with pytest.raises(ValueError, match="linear"):
        spline.certify(X[:1], method="exact")
    fourier, X, _ = fitted("fourier")
    with pytest.raises(NoShapes):
        fourier.certify(X[:1])
    json.dumps(one.to_dict(), allow_nan=False)
    assert len(one.to_frame()) == 3
    assert "radius" in str(one)
    assert "<table>" in one._repr_html_()


# --- probabilities under errors ---


@pytest.mark.parametrize("name", ADDITIVE)
def test_probabilities_of_rows_within_the_errors_stay_in_their_intervals(name):
    model, X, _ = fitted(name)
    form = additive(model)
    scale = np.array([shape.scale for shape in form.shapes])
    numbers = np.flatnonzero(numbers_of(form))[:3]
    errors = {model.columns[j]: 0.3 * scale[j] for j in numbers}
    X = X.iloc[::40] if hasattr(X, "iloc") else X[::40]
    told = model.probability_intervals(X, errors)
    encoded = encoded_rows(model, X)
    rng = np.random.default_rng(0)
    for i, row in enumerate(encoded):
        near = np.repeat(row[None], 600, axis=0)
        part = rng.uniform(-1.0, 1.0, (600, len(numbers)))
        part[:300] = np.sign(part[:300])
        near[:, numbers] += part * 0.3 * scale[numbers]
        P = model.answer("predict_proba", near)
        assert (told.low[i] <= P.min(axis=0) + 1e-12).all()
        assert (P.max(axis=0) <= told.high[i] + 1e-12).all()
        if told.is_certain[i]:
            assert len(set(P.argmax(axis=1))) == 1


def test_intervals_of_two_classes_with_one_plane_each_are_reached():
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    planes = Planes(np.array([[1.0, 2.0], [-1.0, 0.5]]), np.zeros(2), np.array([0, 1, 2]))
    model = GeometricMixture(
        np.array(["a", "b"]), ("u", "v"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0, 1.5
    )
    row = np.array([[0.3, -0.2]])
    told = model.probability_intervals(row, {"u": 0.1, "v": 0.2})
    corners = row + np.array([[a, b] for a in (-0.1, 0.1) for b in (-0.2, 0.2)])
    P = model.predict_proba(corners)
    np.testing.assert_allclose(told.low[0], P.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(told.high[0], P.max(axis=0), rtol=1e-6)
    json.dumps(told.to_dict())
    assert len(told.to_frame()) == 2
    assert "<table>" in told._repr_html_()
    assert "low" in str(told)


def test_without_errors_an_interval_is_a_point():
    model, X, _ = fitted("committee")
    told = model.probability_intervals(X[:4], {})
    np.testing.assert_allclose(told.low, told.high, rtol=1e-6)


def test_errors_are_of_numbers():
    model, X, _ = fitted("mixed spline")
    with pytest.raises(ValueError, match="category"):
        model.probability_intervals(X[:1], {"colour": 1.0})
    with pytest.raises(TypeError, match="mapping from columns"):
        model.probability_intervals(X[:1], 0.1)
    with pytest.raises(ValueError, match="at least 0"):
        model.probability_intervals(X[:1], {"alcohol": -1.0})


@pytest.mark.parametrize("lift", ["linear", "spline"])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_a_table_of_categories_has_no_finite_radius(lift, norm):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["p", "q", "r"], 90) for name in ("u", "v")})
    y = np.where(X["u"] == "p", "yes", "no")
    settings = {"lift": lift, "n_planes": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    found = model.certify(X, norm)
    assert np.isinf(found.radius).all()
    assert found.to_dict()["rows"][0]["radius"] is None


def test_one_row_may_be_a_dict_by_column_name():
    model, X, _ = fitted("mixed spline")
    row = X.iloc[3].to_dict()
    assert model.certify(row).radius == pytest.approx(model.certify(X.iloc[3:4]).radius)
    found = model.probability_intervals(row, {"ash": 0.1})
    np.testing.assert_array_equal(
        found.low, model.probability_intervals(X.iloc[3:4], {"ash": 0.1}).low
    )
    np.testing.assert_array_equal(model.predict_proba(row), model.predict_proba(X.iloc[3:4]))
    assert model.predict(row) == model.predict(X.iloc[3:4])
    explained = model.explain_local(row)
    np.testing.assert_array_equal(
        explained.contributions, model.explain_local(X.iloc[3:4]).contributions
    )
    numbers, Z, _ = fitted("several")
    named = dict(zip(numbers.columns, Z[5].tolist(), strict=True))
    np.testing.assert_array_equal(numbers.predict_proba(named), numbers.predict_proba(Z[5:6]))
    with pytest.raises(ValueError, match="unknown"):
        numbers.predict({**named, "unknown": 1.0})
