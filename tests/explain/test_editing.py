"""Edits change exactly what they state; drift is the G-test of a contingency table."""

import json

import numpy as np
import pytest
from making import classifier
from reading_models import fitted
from scipy.stats import chi2_contingency
from sklearn.datasets import load_wine

import geomix
from geomix import GeometricMixtureClassifier
from geomix.core.planes import Planes
from geomix.core.pooling import softmax
from geomix.errors import DataQualityWarning

SEVERAL = ["several", "mixed linear", "mixed spline", "fourier"]


@pytest.mark.parametrize("name", SEVERAL)
def test_taking_a_plane_out_changes_what_it_says(name):
    model, X, _ = fitted(name)
    label = model.classes.tolist()[1]
    edit = model.without_plane(label, 0)
    assert edit.model.planes.per_class[1] == model.planes.per_class[1] - 1
    change = edit.model.class_scores(X) - model.class_scores(X)
    np.testing.assert_allclose(edit.change(X), change, atol=1e-8)
    assert (change[:, 1] <= 0.0).all()
    a = model.responsibilities(X)[:, model.planes.class_start[1]]
    fair = a < 0.999
    told = np.log1p(-a[fair]) / (model.sharpness * model.temperature)
    np.testing.assert_allclose(change[fair, 1], told, atol=1e-9)
    np.testing.assert_array_equal(change[:, 0], 0.0)
    assert "without plane 1" in str(edit)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("shares", [None, [0.9, 0.1]])
def test_merging_planes_lowers_the_score_by_the_divergence(name, shares):
    model, X, _ = fitted(name)
    label = model.classes.tolist()[0]
    edit = model.merge_planes(label, [1, 0], shares)
    change = edit.model.class_scores(X) - model.class_scores(X)
    # A Fourier model rounds its weights to 21 bits.
    atol = 1e-6 if name == "fourier" else 1e-8
    np.testing.assert_allclose(edit.change(X), change, atol=atol)
    assert (change[:, 0] <= 1e-9).all()
    q = np.full(2, 0.5) if shares is None else np.array(shares)
    if model.planes.per_class[0] == 2:  # the set is the whole class: KL(q || a) / k, by its formula
        a = model.responsibilities(X)[:, [1, 0]]
        fair = a.min(axis=1) > 1e-6
        fall = (q * np.log(q / a[fair])).sum(axis=1) / (model.sharpness * model.temperature)
        np.testing.assert_allclose(change[fair, 0], -fall, atol=atol)


def test_merging_twins_changes_nothing():
    model, X, _ = fitted("several")
    planes = model.planes
    weights, biases = planes.weights.copy(), planes.biases.copy()
    weights[1], biases[1] = weights[0], biases[0]
    from dataclasses import replace

    twins = replace(model, planes=Planes(weights, biases, planes.class_start))
    merged = twins.merge_planes(0, [0, 1]).model
    np.testing.assert_allclose(merged.predict_proba(X), twins.predict_proba(X), atol=1e-12)


def test_other_priors_are_bayes_rule():
    model, X, _ = fitted("several")
    assert model.class_shares == pytest.approx([59 / 178, 71 / 178, 48 / 178])
    new = {0: 0.6, 1: 0.3, 2: 0.1}
    edit = model.with_priors(new)
    P = model.predict_proba(X) * np.array([0.6, 0.3, 0.1]) / np.array(model.class_shares)
    expected = P / P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(edit.model.predict_proba(X), expected, atol=1e-12)
    moved = softmax(model.class_scores(X) + edit.change(X))
    np.testing.assert_allclose(moved, expected, atol=1e-12)
    back = edit.model.with_priors(dict(enumerate(model.class_shares))).model
    np.testing.assert_allclose(back.predict_proba(X), model.predict_proba(X), atol=1e-12)
    given = model.with_priors(new, before={0: 1, 1: 1, 2: 1})
    np.testing.assert_allclose(given.change(X)[0], np.log(3 * np.array([0.6, 0.3, 0.1])))


def test_priors_of_a_corrected_model_are_those_of_the_rows():
    X, y = load_wine(return_X_y=True)
    clf = GeometricMixtureClassifier(
        1, lift="linear", l2=1e-3, class_weight={0: 5.0, 1: 1.0, 2: 1.0}, correct_prior=True
    )
    assert clf.fit(X, y).model_.class_shares == pytest.approx([59 / 178, 71 / 178, 48 / 178])
    clf.set_params(correct_prior=False)
    weighted = np.array([5 * 59, 71, 48])
    assert clf.fit(X, y).model_.class_shares == pytest.approx(weighted / weighted.sum())


def test_priors_of_a_class_without_weight_in_training_need_its_old_share():
    X, y = load_wine(return_X_y=True)
    clf = GeometricMixtureClassifier(1, lift="linear", l2=1e-3, random_state=0)
    with pytest.warns(DataQualityWarning, match="no row of positive weight"):
        model = clf.fit(X, y, sample_weight=(y != 1).astype(float)).model_
    new = {0: 0.5, 1: 0.3, 2: 0.2}
    with pytest.raises(ValueError, match=r"Class 1 had no weight.*before="):
        model.with_priors(new)
    given = model.with_priors(new, before={0: 1, 1: 1, 2: 1}).model
    assert np.isfinite(given.predict_proba(X)).all()


@pytest.mark.parametrize("lift", ["linear", "spline"])
@pytest.mark.parametrize("pca", [None, 5])
def test_the_soft_or_of_models_is_a_model(lift, pca):
    X, y = load_wine(return_X_y=True)
    clf = classifier(
        2,
        lift=lift,
        l2=1e-3,
        pca=pca,
        shrink_to_mean=0.0,
        n_members=1,
        calibrate=False,
        random_state=0,
    )
    parts = [clf.fit(X[i::3], y[i::3]).model_ for i in range(3)]
    weights = np.array([1.0, 2.0, 3.0])
    merged = geomix.merge(parts, weights)
    S = np.stack([one.class_scores(X) for one in parts])
    k = parts[0].sharpness
    share = (weights / weights.sum())[:, None, None]
    expected = np.log((share * np.exp(k * (S - S.max()))).sum(axis=0)) / k + S.max()
    np.testing.assert_allclose(merged.class_scores(X), expected, atol=1e-9)
    assert merged.planes.per_class.tolist() == [6, 6, 6]
    row = merged.scorer()(X[0])
    np.testing.assert_array_equal(row, merged.predict_proba(X[:1])[0])


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_models_merge_exactly_where_numbers_are_missing(lift):
    rng = np.random.default_rng(0)
    X, y = load_wine(return_X_y=True)
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    settings = {"lift": lift, "l2": 1e-3, "n_members": 1, "calibrate": False, "random_state": 0}
    parts = [classifier(2, **settings).fit(X[i::2], y[i::2]).model_ for i in (0, 1)]
    merged = geomix.merge(parts)
    scores = np.stack([one.class_scores(X) for one in parts])
    k = merged.sharpness
    pooled = np.logaddexp.reduce(k * scores + np.log(0.5), axis=0) / k
    np.testing.assert_allclose(merged.class_scores(X), pooled, atol=1e-9)


def test_a_merged_model_can_be_explained():
    X, y = load_wine(return_X_y=True)
    settings = {
        "l2": 1e-3,
        "calibrate": False,
        "shrink_to_mean": 0.0,
        "n_members": 1,
        "random_state": 0,
    }
    clf = classifier(2, lift="spline", **settings)
    merged = geomix.merge([clf.fit(X[i::2], y[i::2]).model_ for i in range(2)])
    told = merged.explain_local(X)
    total = told.contributions.sum(axis=1) + told.bias + told.pooling
    np.testing.assert_allclose(total, told.margin, atol=1e-9)
    found = merged.counterfactual(X[0])
    assert merged.predict([list(found.after.values())])[0] == found.target


def test_edits_that_cannot_be_are_refused():
    model, _, _ = fitted("several")
    single, _, _ = fitted("linear")
    committee, _, _ = fitted("committee")
    spline, _, _ = fitted("spline")
    fourier, _, _ = fitted("fourier")
    for edit, message in [
        (lambda: single.without_plane(0, 0), "one plane"),
        (lambda: committee.without_plane(0, 0), "ensemble"),
        (lambda: model.without_plane(0, 7), "0 to 2"),
        (lambda: model.without_plane(9, 0), "expected one of"),
        (lambda: model.merge_planes(0, [1, 1]), "different"),
        (lambda: model.merge_planes(0, [0, 1], [1.0]), "positive"),
        (lambda: model.with_priors({0: 1.0}), "each of"),
        (lambda: geomix.merge([model]), "at least two"),
        (lambda: geomix.merge([model, spline]), "kind of lift"),
        (lambda: geomix.merge([fourier, fourier]), "kind of lift"),
        (lambda: geomix.merge([committee, committee]), "ensemble"),
        (lambda: geomix.merge([model, model], [1.0, -1.0]), "positive"),
        (lambda: geomix.merge([model, single]), "columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            edit()
    from dataclasses import replace

    with pytest.raises(ValueError, match="before"):
        replace(model, training=None).with_priors({0: 1, 1: 1, 2: 1})


def test_an_edit_names_the_value_that_it_cannot_use():
    model, X, _ = fitted("several")
    equal = dict.fromkeys(model.classes.tolist(), 1.0)
    for edit, message in [
        (lambda: model.without_plane(0, True), "Got plane True of 0; expected one of 0 to 2"),
        (lambda: model.merge_planes(0, 1), r"Got planes=1; expected a list of planes"),
        (lambda: model.merge_planes(0, [0, 1], ["a", "b"]), r"Got shares=\['a', 'b'\]; expected 2"),
        (lambda: model.merge_planes(0, [0, 1], {0: 1, 1: 2}), "Got shares={0: 1, 1: 2}; expected"),
        (lambda: model.with_priors({**equal, 0: "half"}), "Got priors={0: 'half'.*positive share"),
        (lambda: model.with_priors({**equal, 0: 5e-324}), "positive share of each"),
        (lambda: geomix.merge(model), "Got models of type GeometricMixture; expected a list"),
        (lambda: geomix.merge([model, "b"]), "Got a str among the models; expected a Geometric"),
        (lambda: geomix.merge([model, model], ["a", "b"]), r"Got weights=\['a', 'b'\]; expected"),
        (lambda: geomix.merge([model, model], [1e-300, 1e300]), "within a factor of 1e300"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            edit()
    large = model.with_priors(dict.fromkeys(equal, 1e308)).model
    np.testing.assert_allclose(
        large.predict_proba(X), model.with_priors(equal).model.predict_proba(X)
    )


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_models_of_different_temperatures_merge_exactly_with_one_plane_per_class(lift):
    X, y = load_wine(return_X_y=True)
    settings = {"lift": lift, "n_planes": 1, "n_members": 1, "l2": 1e-3, "random_state": 0}
    parts = [GeometricMixtureClassifier(**settings).fit(X[i::2], y[i::2]).model_ for i in (0, 1)]
    assert parts[0].temperature != parts[1].temperature
    merged = geomix.merge(parts, weights=[3.0, 1.0])
    k = merged.sharpness * merged.temperature
    scores = np.stack([one.class_scores(X) for one in parts])
    pooled = np.logaddexp.reduce(k * scores + np.log([0.75, 0.25])[:, None, None], axis=0) / k
    np.testing.assert_allclose(merged.class_scores(X), pooled, atol=1e-9)


def test_a_merge_that_cannot_be_exact_states_the_largest_change():
    model, X, _ = fitted("several")
    other = model.with_temperature(1.5 * model.temperature)
    with pytest.warns(DataQualityWarning, match="class scores change by up to"):
        merged = geomix.merge([model, other])
    assert np.isfinite(merged.predict_proba(X)).all()


# --- drift ---


def test_the_g_test_is_scipys():
    model, X, _ = fitted("several")
    told = model.compare(X[:100], X[60:])
    counts = np.array([[one.n_reference, one.n_new] for one in told.planes]).T
    assert counts.sum(axis=1).tolist() == [100, 118]
    used = counts[:, counts.sum(axis=0) > 0]
    theirs = chi2_contingency(used, correction=False, lambda_="log-likelihood")
    assert told.g == pytest.approx(theirs.statistic)
    assert told.p_value == pytest.approx(theirs.pvalue)
    assert told.degrees == theirs.dof
    assert told.smallest_expected == pytest.approx(theirs.expected_freq.min())
    assert sum(one.g for one in told.planes) == pytest.approx(told.g)


@pytest.mark.parametrize("name", ["several", "committee", "mixed spline", "fourier"])
def test_the_same_rows_do_not_drift_and_one_class_alone_does(name):
    model, X, y = fitted(name)
    same = model.compare(X, X)
    assert same.g == pytest.approx(0.0, abs=1e-9)
    assert same.p_value == pytest.approx(1.0)
    first = X[y == model.classes[0]]
    other = model.compare(X, first)
    assert other.p_value < 1e-6
    json.dumps(other.to_dict(), allow_nan=False)
    assert len(other.to_frame()) == model.planes.n_planes
    assert "<table>" in other._repr_html_()
    assert "degrees" in str(other)


def test_drift_needs_rows():
    model, X, _ = fitted("several")
    with pytest.raises(ValueError, match="X_new"):
        model.compare(X, X[:0])


def test_every_edit_is_logged_and_survives_the_file(tmp_path):
    model, _, _ = fitted("several")
    label = model.classes[0]
    edited = model.merge_planes(label, [0, 1]).model.with_priors({0: 0.5, 1: 0.3, 2: 0.2}).model
    edited.save(tmp_path / "edited.geomix")
    loaded = geomix.load(tmp_path / "edited.geomix")
    assert [one["action"] for one in loaded.edits] == ["merge_planes", "with_priors"]
    assert loaded.edits[0]["label"] == label
    assert loaded.class_shares == (0.5, 0.3, 0.2)
    assert loaded.edits == edited.edits


def test_drift_names_the_column_that_moved():
    X, y = load_wine(return_X_y=True)
    settings = {"lift": "spline", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    moved = X.copy()
    moved[:, 6] += X[:, 6].std()
    found = model.compare(X, moved)
    first, *others = found.columns
    assert first.column == "x6"
    assert first.share == pytest.approx(1.0)
    assert first.p_value < 0.01
    assert all(one.distance == 0.0 and one.share == 0.0 for one in others)
    assert len(found.columns_frame()) == X.shape[1]
    assert "x6" in str(found)


def test_with_one_plane_per_class_columns_explain_the_whole_change_of_the_scores():
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    a, b = X[:70], X[50:]
    S = [model.class_scores(rows).mean(axis=0) for rows in (a, b)]
    change = (S[1][1] - S[1][0]) - (S[0][1] - S[0][0])
    found = model.compare(a, b)
    assert sum(one.effect for one in found.columns) == pytest.approx(change, abs=1e-9)
    assert sum(one.share for one in found.columns) == pytest.approx(1.0)
    assert {one.label for one in found.columns} == {1}


def test_the_effect_of_a_drifted_column_is_against_the_mean_of_the_other_classes():
    X, y = load_wine(return_X_y=True)
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    moved = X.copy()
    moved[:, 6] += X[:, 6].std()
    first = model.compare(X, moved).columns[0]
    change = (model.class_scores(moved) - model.class_scores(X)).mean(axis=0)
    others = [c for c in range(3) if model.classes[c] != first.label]
    expected = change[model.classes == first.label][0] - change[others].mean()
    assert first.effect == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["mixed linear", "mixed committee", "mixed fourier"])
def test_columns_of_mixed_tables_drift_by_levels_and_missing_cells(name):
    model, X, _ = fitted(name)
    other = X.copy()
    other["stop"] = None
    found = {one.column: one for one in model.compare(X, other).columns}
    missing = X["stop"].isna().mean()
    assert found["stop"].missing_new == 1.0
    assert found["stop"].distance == pytest.approx(1.0 - missing)
    assert found["ash"].distance == 0.0
    assert (found["stop"].share is None) == (name == "mixed fourier")
    json.dumps(model.compare(X, other).to_dict(), allow_nan=False)
