"""Few labels, many rows: ``SemiSupervisedClassifier``."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import geomix
from geomix import GeometricMixtureClassifier, InvalidParameterError, SemiSupervisedClassifier
from geomix.semi_supervised.neighbours import neighbour_graph, spread_labels
from geomix.semi_supervised.stacking import source_weights, stacked

FAST = GeometricMixtureClassifier(preset="fast", max_iter=40, random_state=0)


@pytest.fixture(scope="module")
def moons():
    """Two moons; twelve rows have a label."""
    X, y = make_moons(400, noise=0.08, random_state=0)
    return X, y, np.where(np.arange(len(y)) < 12, y, -1)


@pytest.fixture(scope="module")
def fitted(moons):
    X, _, partly = moons
    base = GeometricMixtureClassifier(lift="fourier", n_planes=1, l2=1e-4, random_state=0)
    return SemiSupervisedClassifier(base, random_state=0).fit(X, partly)


def test_unlabelled_rows_show_the_shape_of_the_moons(moons, fitted):
    X, y, partly = moons
    supervised = clone(fitted.estimator).fit(X[partly >= 0], y[partly >= 0])
    assert fitted.choice_.uses_unlabelled
    assert fitted.score(X, y) > supervised.score(X, y) + 0.03


def test_the_marker_is_no_class(moons, fitted):
    assert fitted.classes_.tolist() == [0, 1]
    assert set(fitted.predict(moons[0])) <= {0, 1}
    assert fitted.predict_proba(moons[0]).shape == (400, 2)


def test_labelled_rows_keep_their_label(moons, fitted):
    soft = fitted.soft_labels_[:12]
    assert fitted.used_rows_[:12].tolist() == list(range(12))
    np.testing.assert_array_equal(soft.argmax(axis=1), moons[1][:12])
    np.testing.assert_array_equal(soft.max(axis=1), 1.0)


def test_soft_labels_are_probabilities(fitted):
    np.testing.assert_allclose(fitted.soft_labels_.sum(axis=1), 1.0)
    assert fitted.soft_labels_.min() >= 0.0


def test_the_same_seed_gives_the_same_model(moons, fitted):
    again = clone(fitted).fit(moons[0], moons[2])
    np.testing.assert_array_equal(again.predict_proba(moons[0]), fitted.predict_proba(moons[0]))


def test_the_choice_is_printed_in_a_sentence(fitted):
    assert str(fitted.choice_).startswith("Unlabelled rows are used: held-out log-loss")


def test_the_model_can_be_explained_and_saved(moons, fitted, tmp_path):
    fitted.model_.save(tmp_path / "m.geomix")
    assert fitted.model_ is fitted.estimator_.model_


def test_a_graph_that_misleads_leaves_the_supervised_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 12))
    X[:, 1:] *= 3.0  # only the first column matters, and neighbours are near in the others
    y = (X[:, 0] > 0).astype(int)
    partly = np.where(np.arange(240) < 80, y, -1)
    clf = SemiSupervisedClassifier(FAST, random_state=0).fit(X, partly)
    supervised = clone(FAST).fit(X[:80], y[:80])
    assert not clf.choice_.uses_unlabelled
    assert "not used" in str(clf.choice_)
    np.testing.assert_array_equal(clf.predict_proba(X), supervised.predict_proba(X))


def test_words_and_another_marker():
    X, y = make_blobs(90, centers=2, random_state=0)
    words = np.where(y == 0, "left", "right").astype(object)
    words[30:] = None
    partly = np.where([word is None for word in words], "?", words)
    clf = SemiSupervisedClassifier(FAST, unlabeled="?", random_state=0).fit(X, partly)
    assert clf.classes_.tolist() == ["left", "right"]
    mixed = [-1 if word is None else word for word in words]
    again = SemiSupervisedClassifier(FAST, random_state=0).fit(X, mixed)
    assert again.classes_.tolist() == ["left", "right"]


MISSING = [None, np.nan, pd.NA]


@pytest.mark.parametrize("cell", MISSING, ids=str)
@pytest.mark.parametrize("marker", MISSING, ids=str)
@pytest.mark.parametrize("names", [[0, 1], ["left", "right"], [False, True]], ids=str)
def test_missing_labels_may_be_the_unlabelled_ones(cell, marker, names):
    X, y = make_blobs(90, centers=2, random_state=0)
    labels = np.array(names)[y]
    partly = labels.astype(object)
    partly[30:] = cell
    marked = np.where(np.arange(90) < 30, y, -1)
    expected = SemiSupervisedClassifier(FAST, random_state=0).fit(X, marked).predict_proba(X)
    clf = SemiSupervisedClassifier(FAST, unlabeled=marker, random_state=0)
    np.testing.assert_array_equal(clf.fit(X, partly).predict_proba(X), expected)
    assert clf.classes_.tolist() == names
    np.testing.assert_array_equal(clf.fit(X, partly.tolist()).predict_proba(X), expected)


def test_missing_labels_of_every_library_keep_their_type():
    X, y = make_blobs(90, centers=2, random_state=0)
    whole = [int(code) if row < 30 else None for row, code in enumerate(y)]
    words = [None if code is None else "ab"[code] for code in whole]
    clf = SemiSupervisedClassifier(FAST, unlabeled=None, random_state=0)
    for numbers in (pd.Series(whole, dtype="Int64"), pl.Series(whole), pa.chunked_array([whole])):
        assert clf.fit(X, numbers).classes_.tolist() == [0, 1]
        assert clf.classes_.dtype.kind == "i"
    for dtype in ("string", "category", "object"):
        assert clf.fit(X, pd.Series(words, dtype=dtype)).classes_.tolist() == ["a", "b"]
    assert clf.fit(X, pl.Series(words)).classes_.tolist() == ["a", "b"]
    assert clf.fit(X, np.where(np.arange(90) < 30, y, np.nan)).classes_.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("cell", MISSING, ids=str)
def test_a_missing_label_is_no_class_where_the_marker_is_another(moons, cell):
    X, _, partly = moons
    labels = np.where(partly == -1, "-1", "left").astype(object)
    labels[[3, 7]] = cell
    with pytest.raises(ValueError, match=r"2 missing labels.*at row 3, but .*'-1'; drop"):
        SemiSupervisedClassifier(FAST, unlabeled="-1").fit(X, labels)


def test_labels_of_mixed_types_and_final_nuls_are_read_as_in_any_fit():
    X, y = make_blobs(90, centers=2, random_state=0)
    partly = np.where(np.arange(90) < 30, np.array(["a", "a\0"], dtype=object)[y], -1)
    clf = SemiSupervisedClassifier(FAST, random_state=0).fit(X, partly)
    assert clf.classes_.tolist() == ["a", "a\0"]
    partly[0] = 5
    with pytest.raises(ValueError, match="y mixes int and str"):
        clf.fit(X, partly)


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": {"a": 2.0, "b": 1.0, "c": 1.0}},
        {"class_weight": {"c": 3.0}},
        {"n_planes": {"a": 1, "b": 2, "c": 1}},
        {"monotonic_cst": {0: {"c": 1}}},
    ],
    ids=str,
)
def test_parameters_by_class_hold_in_every_fold(parameters):
    X, y = make_blobs(150, centers=3, random_state=1)
    names = np.array(["a", "b", "c"])[y]
    labelled = np.isin(np.arange(150), [*np.flatnonzero(y < 2)[:30], np.flatnonzero(y == 2)[0]])
    partly = np.where(labelled, names, "-1")  # one row of c, which one fold leaves out
    model = clone(FAST).set_params(**parameters)
    clf = SemiSupervisedClassifier(model, random_state=0)
    with pytest.warns(geomix.DataQualityWarning, match="Class 'c' has one row only"):
        clf.fit(X, partly)
    assert clf.choice_ is not None
    assert clf.classes_.tolist() == ["a", "b", "c"]


def test_integer_labels_are_no_positions_in_the_folds():
    X, y = make_blobs(120, centers=2, cluster_std=4.0, random_state=0)
    partly = np.where(np.arange(120) % 3 == 0, y, -1)
    found = []
    for names in ([0, 1], [1, 2]):
        model = clone(FAST).set_params(class_weight={names[1]: 9.0})
        marked = np.where(partly == -1, -1, np.array(names)[partly])
        found.append(SemiSupervisedClassifier(model, random_state=0).fit(X, marked).choice_)
    assert found[0] == found[1]


def test_a_class_of_one_label_beside_another_leaves_the_supervised_model(moons):
    X, y, _ = moons
    partly = np.full(len(y), -1)
    partly[np.flatnonzero(y == 0)[:20]] = 0
    partly[np.flatnonzero(y == 1)[0]] = 1
    with pytest.warns(geomix.DataQualityWarning, match="Class 1 has one row only"):
        clf = SemiSupervisedClassifier(FAST, random_state=0).fit(X, partly)
    assert clf.choice_ is None
    assert clf.classes_.tolist() == [0, 1]


def test_frames_with_categories_and_missing_cells():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = pd.DataFrame({"size": y * 3 + rng.normal(size=120)})
    X["kind"] = pd.Categorical(np.where(rng.random(120) < 0.8, y, 1 - y).astype(str))
    X.loc[::17, "size"] = np.nan
    partly = np.where(np.arange(120) % 4 == 0, y, -1)
    clf = SemiSupervisedClassifier(FAST, random_state=0).fit(X, partly)
    assert clf.score(X, y) > 0.85
    assert clf.feature_names_in_.tolist() == ["size", "kind"]


def test_without_unlabelled_rows_a_warning_names_the_marker(moons):
    X, y, _ = moons
    with pytest.warns(UserWarning, match="No label in y is -1"):
        clf = SemiSupervisedClassifier(FAST).fit(X, y)
    assert clf.choice_ is None


def test_very_few_labels_leave_the_supervised_model(moons):
    X, y, _ = moons
    partly = np.where(np.arange(len(y)) < 8, y, -1)
    clf = SemiSupervisedClassifier(FAST, random_state=0).fit(X, partly)
    assert clf.choice_ is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": LogisticRegression()}, "expected a GeometricMixtureClassifier"),
        ({"n_neighbors": 0}, "Got n_neighbors=0; expected an integer of at least 1"),
        ({"cv": 1}, "Got cv=1; expected an integer of at least 2"),
        ({"unlabeled": [-1]}, r"Got unlabeled=\[-1\]; expected a single value"),
        ({"max_unlabeled": 2.5}, "Got max_unlabeled=2.5; expected an integer of at least 1"),
    ],
)
def test_bad_parameters_are_refused_with_one_sentence(moons, parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        SemiSupervisedClassifier(**parameters).fit(moons[0], moons[2])


def test_no_label_at_all_is_refused(moons):
    with pytest.raises(ValueError, match="Every label in y is -1, the marker"):
        SemiSupervisedClassifier(FAST).fit(moons[0], np.full(400, -1))


def test_one_class_is_refused(moons):
    with pytest.raises(ValueError, match="got 1 class: 3"):
        SemiSupervisedClassifier(FAST).fit(moons[0], np.where(np.arange(400) < 12, 3, -1))


def test_sparse_rows_are_refused(moons):
    with pytest.raises(TypeError, match=r"pass X.toarray\(\)"):
        SemiSupervisedClassifier(FAST).fit(scipy.sparse.csr_array(moons[0]), moons[2])


def test_labels_spread_within_a_cluster_and_not_beyond():
    V = np.concatenate([np.linspace(0, 1, 20), np.linspace(50, 51, 20)])[:, None]
    Y = np.zeros((40, 2))
    Y[0, 0] = Y[20, 1] = 1.0
    F = spread_labels(neighbour_graph(V, 3), Y)
    assert (F[:20, 0] > 0.9).all()
    assert (F[20:, 1] > 0.9).all()


def test_repeated_rows_have_a_graph():
    S = neighbour_graph(np.zeros((12, 2)), 3)
    assert np.isfinite(S.toarray()).all()


def test_a_useless_source_gets_no_weight():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 200)
    good = np.full((200, 2), 0.1)
    good[np.arange(200), codes] = 0.9
    good[:40] = good[:40, ::-1]  # wrong in a fifth of the rows
    noise = rng.dirichlet([1, 1], 200)
    weights = source_weights([good, noise], codes)
    assert weights[0] > 0.5
    assert weights[1] < 0.1
    np.testing.assert_allclose(stacked([good, noise], weights).sum(axis=1), 1.0)


@parametrize_with_checks(
    [SemiSupervisedClassifier(FAST, random_state=0)],
    expected_failed_checks=lambda _: {
        "check_classifiers_classes": "one of its labels is -1, the marker of unlabelled rows",
    },
)
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
@pytest.mark.filterwarnings("ignore:No label in y is -1")
def test_scikit_learns_contract(estimator, check):
    check(estimator)
