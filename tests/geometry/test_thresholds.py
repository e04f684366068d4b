"""Values at which the answer flips, against a fine scan and against bisection."""

import json
from itertools import pairwise

import numpy as np
import pytest
from reading_models import ADDITIVE, fitted

from geomix import GeometricMixture
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.core.planes import Planes
from geomix.errors import NoShapes
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows


def scan(model, row, j, values):
    table = np.repeat(row[None], len(values), axis=0)
    table[:, j] = values
    return model.answer("class_scores", table).argmax(axis=1)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_fine_scan_sees_the_same_flips(name):
    model, X, _ = fitted(name)
    encoded = encoded_rows(model, X)
    form = additive(model)
    labels = model.classes.tolist()
    for i in range(0, len(encoded), 70):
        row = encoded[i]
        for j, shape in enumerate(form.shapes[:6]):
            given = X.iloc[i] if hasattr(X, "iloc") else X[i]
            told = model.thresholds(given, model.columns[j])
            if shape.kind == "category":
                continue
            reach = max(np.ptp(shape.knots), 4 * shape.scale)
            middle = shape.knots.mean() if np.isnan(row[j]) else row[j]
            values = np.linspace(middle - 2 * reach, middle + 2 * reach, 4001)
            answers = scan(model, row, j, values)
            for value, answer in zip(values, answers, strict=True):
                inside = [s for s in told.stretches if s.low - 1e-9 <= value <= s.high + 1e-9]
                assert labels[answer] in {s.label for s in inside}
            n_seen = int((np.diff(answers) != 0).sum())
            in_view = [f for f in told.flips if values[0] <= f <= values[-1]]
            assert len(in_view) >= n_seen


@pytest.mark.parametrize("name", ["linear", "several", "spline", "committee"])
def test_the_answer_differs_on_the_two_sides_of_a_flip(name):
    model, X, _ = fitted(name)
    n_flips = 0
    for i in range(0, len(X), 12):
        for column in model.columns[:7]:
            told = model.thresholds(X[i], column)
            j = model.columns.index(column)
            for flip in told.flips:
                step = 1e-7 * max(abs(flip), 1e-3)
                left, right = scan(model, X[i], j, np.array([flip - step, flip + step]))
                assert left != right
                n_flips += 1
            assert all(a.label != b.label for a, b in pairwise(told.stretches))
    assert n_flips


def test_all_flips_of_several_planes_are_found_however_far():
    """Class b wins between two far-off places and near zero: four flips, by construction."""
    standardize = Standardize(np.arange(1), np.zeros(1), np.ones(1), None, 1)
    weights = np.array([[1.0], [-1.0], [0.0], [3.0], [-3.0]])
    biases = np.array([-2.0, -2.0, 0.0, -3000.0, -3000.0])
    planes = Planes(weights, biases, np.array([0, 2, 5]))
    model = GeometricMixture(
        np.array(["a", "b"]), ("u",), FeatureMap(standardize, IdentityLift(1)), planes, 6.0
    )
    told = model.thresholds([0.5], "u")
    np.testing.assert_allclose(told.flips, [-1499.0, -2.0, 2.0, 1499.0], atol=0.1)
    assert [one.label for one in told.stretches] == ["b", "a", "b", "a", "b"]
    assert told.label == "b"


def test_a_column_without_weight_has_no_threshold():
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    planes = Planes(np.array([[1.0, 0.5], [-1.0, 0.5]]), np.zeros(2), np.array([0, 1, 2]))
    model = GeometricMixture(
        np.array(["a", "b"]), ("u", "v"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0
    )
    told = model.thresholds([1.0, 0.0], "v")
    assert told.flips == ()
    assert [one.label for one in told.stretches] == ["a"]
    np.testing.assert_allclose(model.thresholds([1.0, 0.0], "u").flips, [0.0], atol=1e-12)


def test_levels_and_missing_cells_are_asked_one_by_one():
    model, X, _ = fitted("mixed spline")
    told = model.thresholds(X.iloc[0], "colour")
    for one in told.stretches:
        changed = X.iloc[:1].copy()
        changed["colour"] = one.level
        assert model.predict(changed)[0] == one.label
    gone = X.iloc[:1].copy()
    gone["ash"] = np.nan
    assert model.thresholds(X.iloc[0], "ash").missing == model.predict(gone)[0]
    json.dumps(told.to_dict(), allow_nan=False)
    assert "red <b>" not in told._repr_html_()
    assert len(told.to_frame()) == 3
    assert "missing" in str(told)


def test_fourier_models_and_unknown_columns_are_refused():
    model, X, _ = fitted("fourier")
    with pytest.raises(NoShapes, match="Fourier"):
        model.thresholds(X[0], "x0")
    model, X, _ = fitted("linear")
    with pytest.raises(ValueError, match="nope"):
        model.thresholds(X[0], "nope")
