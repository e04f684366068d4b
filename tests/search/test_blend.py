"""Other models of the race, added to the planes of the winner."""

import copy

import numpy as np
import pytest
from sklearn.metrics import log_loss

import geomix
from geomix import GeometricMixtureClassifier
from geomix.search.trials import Excess


def bent_and_split(n_rows, seed):
    """A class that is a union of two half spaces, moved by two curves."""
    rng = np.random.default_rng(seed)
    X = 0.7 * rng.normal(size=(n_rows, 1)) + rng.normal(size=(n_rows, 10))
    union = np.maximum(X[:, 0] - X[:, 1], X[:, 2] + X[:, 3] - 1.0)
    curves = 3.0 * np.abs(X[:, 4]) + 2.0 * np.sin(2.0 * X[:, 5]) - 3.4
    return X, (3.0 * union + curves > 0.5 * rng.logistic(size=n_rows)).astype(int)


def every_gain(excess, margin):
    return excess.mean > 0.0


@pytest.fixture(scope="module")
def blended():
    """A model to which others were added, and the same fit without them."""
    X, y = bent_and_split(300, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Excess, "is_clear", every_gain)
        clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    plain = GeometricMixtureClassifier(random_state=0).fit(X, y)
    return clf, plain


def added(clf):
    return [note for note in clf.history_.notes if "was added to the planes" in note]


def test_every_model_that_was_added_is_in_the_notes(blended):
    clf, _ = blended
    assert added(clf)
    assert len(added(clf)) <= 3


def test_a_blend_is_one_model_with_as_many_planes_as_the_winner(blended):
    clf, plain = blended
    assert clf.model_.planes.n_members == 1
    assert (clf.n_planes_ == plain.n_planes_).all()
    assert clf.model_.lift.kind == "spline"


def test_a_blend_is_saved_and_loaded_as_any_model(blended, tmp_path):
    clf, _ = blended
    X, _ = bent_and_split(200, 2)
    clf.save(tmp_path / "model.json")
    loaded = geomix.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def test_a_warm_start_goes_on_from_a_blend(blended):
    clf, _ = blended
    X, y = bent_and_split(300, 1)
    further = copy.deepcopy(clf).set_params(warm_start=True).fit(X, y)
    assert np.isfinite(further.predict_proba(X)).all()
    assert log_loss(y, further.predict_proba(X)) < 0.5


def test_nothing_is_added_where_the_winner_is_alone():
    X, y = bent_and_split(300, 1)
    clf = GeometricMixtureClassifier(1, lift="spline", max_interactions=0, random_state=0)
    assert not added(clf.fit(X, y))


def test_every_member_of_an_ensemble_gets_what_is_added(monkeypatch, tmp_path):
    monkeypatch.setattr(Excess, "is_clear", every_gain)
    X, y = bent_and_split(400, 1)
    clf = GeometricMixtureClassifier(
        lift=("linear", "spline"), preset="accurate", max_planes=4, n_members=3, random_state=0
    ).fit(X, y)
    assert added(clf)
    assert clf.model_.planes.n_members == 3
    clf.save(tmp_path / "model.json")
    loaded = geomix.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
