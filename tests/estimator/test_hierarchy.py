"""A tree of classes: ``HierarchicalClassifier``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from geomix import GeometricMixtureClassifier, HierarchicalClassifier, InvalidParameterError
from geomix.hierarchy.tree import read_tree

FAST = GeometricMixtureClassifier(preset="fast", max_iter=40, random_state=0)
TREE = {"plant": ["moss", "fern"], "animal": {"bird": ["owl", "crow"], "fish": ["cod"]}}
NAMES = np.array(["cod", "crow", "fern", "moss", "owl"])


@pytest.fixture(scope="module")
def rows():
    centres = {"moss": (0, 0), "fern": (0, 2), "owl": (9, 0), "crow": (9, 2), "cod": (9, 9)}
    places = np.array([centres[name] for name in NAMES], dtype=float)
    X, codes = make_blobs(300, centers=places, random_state=0)
    return X, NAMES[codes]


@pytest.fixture(scope="module")
def fitted(rows):
    return HierarchicalClassifier(FAST, tree=TREE, strategy="per_group").fit(*rows)


def test_probabilities_add_up_along_the_tree(rows, fitted):
    X, _ = rows
    P, groups = fitted.predict_proba(X), fitted.predict_group_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(groups["plant"] + groups["animal"], 1.0)
    together = groups["animal / bird"] + groups["animal / fish"]
    np.testing.assert_allclose(together, groups["animal"])


def test_a_group_is_told_apart_by_its_own_model(rows, fitted):
    assert set(fitted.estimators_) == {(), ("plant",), ("animal",), ("animal", "bird")}
    assert fitted.score(*rows) > 0.8


def test_a_single_model_adds_up_along_the_tree_too(rows):
    X, y = rows
    single = HierarchicalClassifier(FAST, tree=TREE).fit(X, y)
    flat = HierarchicalClassifier(FAST).fit(X, y)
    assert set(single.estimators_) == {()}
    np.testing.assert_array_equal(single.predict_proba(X), flat.predict_proba(X))
    groups = single.predict_group_proba(X)
    np.testing.assert_allclose(groups["plant"] + groups["animal"], 1.0)
    assert single.tree_.distances.max() == 5


def test_distances_count_the_steps_between_classes():
    tree = read_tree(TREE, NAMES)
    at = {name: code for code, name in enumerate(NAMES)}
    assert tree.distances[at["moss"], at["fern"]] == 2
    assert tree.distances[at["owl"], at["crow"]] == 2
    assert tree.distances[at["owl"], at["cod"]] == 4
    assert tree.distances[at["owl"], at["moss"]] == 5
    assert (np.diag(tree.distances) == 0).all()
    np.testing.assert_array_equal(tree.distances, tree.distances.T)


def test_the_expected_distance_prefers_a_class_among_probable_ones(rows, fitted):
    near = HierarchicalClassifier(FAST, tree=TREE, strategy="per_group", minimize="distance").fit(
        *rows
    )
    X = np.random.default_rng(0).uniform(0, 9, (300, 2))
    P, D = near.predict_proba(X), near.tree_.distances
    chosen = np.searchsorted(near.classes_, near.predict(X))
    most_probable = P.argmax(axis=1)
    expected = P @ D
    every = np.arange(len(X))
    assert (expected[every, chosen] <= expected[every, most_probable]).all()


def test_without_a_tree_it_is_the_estimator(rows):
    X, y = rows
    P = HierarchicalClassifier(FAST).fit(X, y).predict_proba(X)
    codes = np.searchsorted(NAMES, y)
    plain = GeometricMixtureClassifier(**FAST.get_params()).fit(X, codes)
    np.testing.assert_array_equal(P, plain.predict_proba(X))


def test_frames_and_weights(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["a", "b"])
    wanted = HierarchicalClassifier(FAST, tree=TREE, strategy="per_group")
    clf = clone(wanted).fit(frame, y, sample_weight=np.ones(len(y)))
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    plain = clone(wanted).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(frame), plain.predict_proba(X))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"plant": ["moss", "fern"]}, "does not have the class 'cod' of y"),
        ({**TREE, "more": ["elk"]}, "names the class 'elk' below more, which is not in y"),
        ({**TREE, "more": ["cod"]}, "has the class 'cod' twice"),
        ({**TREE, "more": []}, "nothing below more"),
        ({**TREE, "more": "cod"}, "Got 'cod' below more of the tree; expected a dict"),
        (3, "Got 3 below the root of the tree"),
    ],
)
def test_a_tree_that_does_not_fit_is_refused_with_one_sentence(rows, tree, message):
    with pytest.raises(InvalidParameterError, match=message):
        HierarchicalClassifier(FAST, tree=tree).fit(*rows)


def test_bad_parameters_are_refused(rows):
    with pytest.raises(InvalidParameterError, match="Got minimize='risk'"):
        HierarchicalClassifier(FAST, minimize="risk").fit(*rows)
    with pytest.raises(InvalidParameterError, match="Got strategy='flat'; expected one of 'sin"):
        HierarchicalClassifier(FAST, strategy="flat").fit(*rows)
    with pytest.raises(InvalidParameterError, match="expected a GeometricMixtureClassifier"):
        HierarchicalClassifier(LogisticRegression()).fit(*rows)


@parametrize_with_checks([HierarchicalClassifier(FAST)])
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_scikit_learns_contract(estimator, check):
    check(estimator)
