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


def test_the_depths_of_many_classes_are_the_steps_to_them():
    labels = np.arange(5000)
    tree = read_tree(
        {f"{place}": labels[place::100] for place in range(1, 100)}
        | {"0": {"even": labels[0::200], "odd": labels[100::200]}},
        labels,
    )
    assert tree.depths.tolist() == [3 if label % 100 == 0 else 2 for label in range(5000)]


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
        ({1: ["moss", "fern"], "1": ["owl", "crow", "cod"]}, "two groups with the path '1'"),
        (
            {"a / b": ["moss", "fern"], "a": {"b": ["owl", "crow", "cod"]}},
            "two groups with the path 'a / b'; give them different names",
        ),
        ({"plant": [["moss", "fern"], ["owl"]]}, r"has \['moss', 'fern'\] in the list below plant"),
        ({"plant": {"moss", 3}}, "names the class 3 below plant, which is not in y"),
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


def told(**parameters):
    return clone(FAST).set_params(**parameters)


@pytest.mark.parametrize(
    ("by_name", "by_code"),
    [
        ({"class_weight": {"cod": 30.0}}, {"class_weight": {0: 30.0}}),
        (
            {"n_planes": dict(zip(NAMES.tolist(), [1, 2, 1, 1, 3], strict=True))},
            {"n_planes": {0: 1, 1: 2, 2: 1, 3: 1, 4: 3}},
        ),
        ({"monotonic_cst": {0: {"owl": 1}}}, {"monotonic_cst": {0: {4: 1}}}),
    ],
)
def test_parameters_name_classes_by_their_labels(rows, by_name, by_code):
    X, y = rows
    plain = told(**by_code).fit(X, np.searchsorted(NAMES, y)).predict_proba(X)
    single = HierarchicalClassifier(told(**by_name), tree=TREE).fit(X, y)
    np.testing.assert_array_equal(single.predict_proba(X), plain)
    with pytest.raises(
        InvalidParameterError, match=r"Got .* with strategy='per_group'; expected no"
    ):
        HierarchicalClassifier(told(**by_name), tree=TREE, strategy="per_group").fit(X, y)


def test_labels_that_look_like_positions_are_labels(rows):
    X, y = rows
    codes = np.searchsorted(NAMES, y)
    weighted = told(class_weight={1: 50.0})
    shifted = HierarchicalClassifier(weighted).fit(X, codes + 1).predict_proba(X)
    np.testing.assert_array_equal(shifted, clone(weighted).fit(X, codes + 1).predict_proba(X))


def test_one_group_in_another_order_has_its_parameters_by_label(rows):
    X, y = rows
    two = np.isin(y, ["cod", "owl"])
    X, y = X[two], y[two]
    one_group = {"tree": ["owl", "cod"], "strategy": "per_group"}
    rising = HierarchicalClassifier(told(monotonic_cst={0: {"cod": 1}}), **one_group).fit(X, y)
    grid = np.column_stack([np.linspace(0, 12, 50), np.full(50, 4.0)])
    assert (np.diff(rising.predict_proba(grid)[:, 0]) >= 0.0).all()
    with pytest.raises(InvalidParameterError, match=r"name the class, as in {column: {'owl': 1}}"):
        HierarchicalClassifier(told(monotonic_cst=[1, 0]), **one_group).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"class_weight": {"elk": 2.0}}, "class_weight names the class 'elk', which is not in y"),
        ({"n_planes": {"cod": 2}}, "n_planes has no entry for the class 'crow'"),
        ({"monotonic_cst": {0: {"elk": 1}}}, "monotonic_cst names the class 'elk'"),
    ],
)
def test_a_class_that_is_not_there_is_named_by_its_label(rows, parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        HierarchicalClassifier(told(**parameters)).fit(*rows)


def test_a_group_without_weight_is_named(rows):
    X, y = rows
    weight = np.where(np.isin(y, ["owl"]), 0.0, 1.0)
    clf = HierarchicalClassifier(FAST, tree=TREE, strategy="per_group")
    with pytest.raises(ValueError, match="in at least 2 children below animal / bird; give"):
        clf.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="needs at least 2 classes, got 1 class: 'cod'"):
        clf.fit(X, y, sample_weight=(y == "cod").astype(float))
    np.testing.assert_array_equal(
        clf.fit(X, y, sample_weight=2.0).predict_proba(X), clf.fit(X, y).predict_proba(X)
    )


def test_a_fit_that_fails_half_way_leaves_the_first_one_answering(rows, monkeypatch):
    X, y = rows
    clf = HierarchicalClassifier(clone(FAST), tree=TREE, strategy="per_group").fit(X, y)
    P = clf.predict_proba(X)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(GeometricMixtureClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(tree=None).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), P)


@parametrize_with_checks([HierarchicalClassifier(FAST)])
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_scikit_learns_contract(estimator, check):
    check(estimator)
