"""The paper's diagnostics, on a model whose planes are known."""

import numpy as np
import pytest

from geomix import GeometricMixture, GeometricMixtureClassifier
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.core.planes import Planes
from geomix.explain.diagnostics import plane_usage, responsibility_concentration, top_columns


@pytest.fixture
def known():
    """Class "a" owns the far left and the far right of column x0, class "b" the middle."""
    standardize = Standardize(np.array([0, 2]), np.zeros(2), np.array([1.0, 2.0]), None, 3)
    weights = np.array([[5.0, 0.0], [-5.0, 0.0], [0.0, 0.5]])
    planes = Planes(weights, np.array([-5.0, -5.0, 0.0]), np.array([0, 2, 3]))
    return GeometricMixture(
        np.array(["a", "b"]),
        ("left", "idle", "up"),
        FeatureMap(standardize, IdentityLift(2)),
        planes,
        6.0,
    )


def test_plane_usage_counts_the_rows_that_each_plane_wins(known):
    X = np.array([[2.0, 0, 0], [3.0, 0, 0], [-2.0, 0, 0], [0.1, 0, 0]])
    usage = plane_usage(known, X, np.array(["a", "a", "a", "b"]))
    np.testing.assert_allclose(usage, [2 / 3, 1 / 3, 1.0])
    assert np.isnan(plane_usage(known, X, np.array(["a"] * 4))[2])


def test_concentration_is_one_where_one_plane_answers_and_log_two_where_two_share(known):
    far = responsibility_concentration(known, np.array([[3.0, 0, 0]]), np.array(["a"]))
    assert far.max_responsibility == pytest.approx(1.0)
    assert far.entropy == pytest.approx(0.0, abs=1e-12)
    between = responsibility_concentration(known, np.array([[0.0, 0, 0]]), np.array(["a"]))
    assert between.max_responsibility == pytest.approx(0.5)
    assert between.entropy == pytest.approx(np.log(2))


def test_concentration_matches_a_plain_loop(wine):
    X, y = wine
    clf = GeometricMixtureClassifier(3, lift="linear", l2=1e-3, random_state=0).fit(X, y)
    A, start = clf.responsibilities(X), clf.model_.planes.class_start
    own = [A[i, start[c] : start[c + 1]] for i, c in enumerate(y)]
    measured = responsibility_concentration(clf.model_, X, y)
    assert measured.max_responsibility == pytest.approx(np.mean([a.max() for a in own]))
    entropy = np.mean([-(a[a > 0] * np.log(a[a > 0])).sum() for a in own])
    assert measured.entropy == pytest.approx(entropy)


def test_top_columns_names_the_strongest_with_sign_per_standard_deviation(known):
    first, second, third = top_columns(known, k=2)
    assert (first.label, first.plane) == ("a", 0)
    assert first.columns == ("left",)
    assert first.weights == (5.0,)
    assert second.weights == (-5.0,)
    assert (third.label, third.plane, third.columns, third.weights) == ("b", 0, ("up",), (0.5,))


def test_unknown_labels_and_wrong_lengths_are_told(known):
    with pytest.raises(ValueError, match=r"expected \(1,\)"):
        plane_usage(known, np.zeros((1, 3)), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="among"):
        plane_usage(known, np.zeros((1, 3)), np.array(["c"]))
