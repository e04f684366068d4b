"""Effects: curves in log-odds, bands, importances and interactions."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pair_models import PAIRED, paired
from reading_models import ADDITIVE as ADDITIVE_MODELS
from reading_models import SETTINGS, fitted
from sklearn.inspection import partial_dependence

import geomix
from geomix import GeometricMixtureClassifier
from geomix.errors import NoShapes
from geomix.explain import effect_bands
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows

ADDITIVE = {"lift": "spline", "n_planes": 1, "max_interactions": 0}
SPLINE = {**ADDITIVE, "l2": 0.01}


def additive_table(n_rows, seed, n_classes=2):
    """A known additive model: two curves, noise, and levels; and the effects of its columns."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.uniform(-2.0, 2.0, n_rows) for name in ("wave", "line", "noise")})
    X["level"] = rng.choice(["high", "low", "middle"], n_rows)
    levels = {"high": 1.0, "low": -1.0, "middle": 0.0}
    truth = {
        "wave": lambda x: 1.2 * np.sin(1.5 * x),
        "line": lambda x: 0.7 * x,
        "noise": lambda x: 0.0 * x,
        "level": lambda x: pd.Series(x).map(levels).to_numpy(),
    }
    log_odds = sum(effect(X[name].to_numpy()) for name, effect in truth.items())
    y = np.where(rng.random(n_rows) < 1.0 / (1.0 + np.exp(-log_odds)), "yes", "no")
    return X, y, truth


def mixed_table(n_rows=400):
    """With missing cells. Numbers have at most 201 values, so that training knows each of them."""
    X, y, _ = additive_table(n_rows, 0)
    numbers = ["wave", "line", "noise"]
    X[numbers] = (50.0 * X[numbers]).round() / 50.0
    rng = np.random.default_rng(1)
    X["wave"] = X["wave"].mask(rng.random(n_rows) < 0.1)
    X["level"] = X["level"].mask(rng.random(n_rows) < 0.1)
    return X, y


def table_with_a_pair(n_rows=1500):
    """The sign of "wave" times "line" decides; "level" has missing cells."""
    X, _ = mixed_table(n_rows)
    X["wave"] = np.random.default_rng(2).uniform(-2.0, 2.0, n_rows)
    noise = np.random.default_rng(3).logistic(size=n_rows)
    return X, np.where(3.0 * np.sign(X["wave"] * X["line"]) + noise > 0.0, "yes", "no")


@pytest.fixture(scope="module", params=["linear", "spline", "pairs"])
def one_plane(request):
    kind = request.param
    X, y = table_with_a_pair() if kind == "pairs" else mixed_table()
    settings = {
        "linear": {"lift": "linear", "n_planes": 1},
        "spline": SPLINE,
        "pairs": {"lift": "spline", "max_planes": 1, "max_interactions": 2},
    }[kind]
    return GeometricMixtureClassifier(random_state=0, **settings).fit(X, y), X, kind


@pytest.fixture(scope="module")
def xor():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (500, 3)), columns=["a", "b", "other"])
    y = np.where(X["a"] * X["b"] > 0.0, "same", "different")
    clf = GeometricMixtureClassifier(2, lift="linear", random_state=0, l2=1e-4).fit(X, y)
    return clf, X


def value_at(effect, cells):
    """The effect of raw cells, (n_cells, n_curves)."""
    if effect.kind == "category":
        table = {level: effect.values[:, k] for k, level in enumerate(effect.levels)}
        return np.array([effect.missing if pd.isna(one) else table[one] for one in cells])
    curves = np.array([np.interp(cells, effect.x, curve) for curve in effect.values]).T
    curves[np.isnan(cells)] = np.nan if effect.missing is None else effect.missing
    return curves


def pair_at(interaction, X):
    places = []
    for name, edges, levels in zip(
        interaction.columns,
        (interaction.x_edges, interaction.y_edges),
        (interaction.x_levels, interaction.y_levels),
        strict=True,
    ):
        if levels is not None:
            places.append(X[name].map({level: k for k, level in enumerate(levels)}).to_numpy())
        else:
            places.append(np.searchsorted(edges[1:-1], X[name].to_numpy(), "right"))
    return interaction.values[:, places[0], places[1]].T


def test_effects_of_one_plane_per_class_add_up_to_the_log_odds(one_plane):
    clf, X, kind = one_plane
    X = X.dropna() if kind == "pairs" else X
    found = clf.effects(X)
    total = found.intercept + sum(value_at(one, X[one.column].to_numpy()) for one in found)
    if kind == "pairs":
        assert found.interactions
        total = total + sum(pair_at(one, X) for one in found.interactions)
    assert found.is_exact
    np.testing.assert_allclose(total[:, 0], clf.decision_function(X), atol=1e-9)


def test_effects_are_zero_on_average_over_the_training_rows(one_plane):
    clf, X, kind = one_plane
    for one in clf.effects(X):
        mean = one.values @ one.shares
        if one.missing is not None and one.kind == "category":
            mean = mean + one.missing * one.missing_share
        if one.kind == "category" or one.missing is None:
            assert np.abs(mean).max() < (0.05 if kind == "pairs" else 1e-4)


def test_two_classes_have_one_curve_in_log_odds_of_the_second(one_plane):
    clf, X, _ = one_plane
    found = clf.effects(X)
    assert found.labels == ("yes",)
    assert found.unit() == "log-odds of yes"
    assert {len(one.values) for one in found} == {1}


def test_curves_of_three_classes_are_log_probabilities_less_their_mean():
    X, y, _ = additive_table(300, 3)
    y = np.where(X["line"] > 1.0, "maybe", y)
    clf = GeometricMixtureClassifier(random_state=0, **SPLINE).fit(X, y)
    found = clf.effects(X)
    total = found.intercept + sum(value_at(one, X[one.column].to_numpy()) for one in found)
    log_p = clf.predict_log_proba(X)
    np.testing.assert_allclose(total, log_p - log_p.mean(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("settings", [{"lift": "linear"}, {"lift": "fourier"}], ids=str)
def test_effects_of_several_planes_are_the_partial_dependence_of_scikit_learn(settings):
    pytest.importorskip("sklearn", "1.7")  # has custom_values
    X, y, _ = additive_table(300, 5)
    X = X[["wave", "line"]]
    clf = GeometricMixtureClassifier(2, random_state=0, l2=1e-3, **settings).fit(X, y)
    one = clf.effects(X)["wave"]
    theirs = partial_dependence(
        clf,
        X,
        ["wave"],
        custom_values={"wave": one.x},
        response_method="decision_function",
        method="brute",
    )["average"][0]
    ours = one.values[0]
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=1e-8)


def test_every_level_is_in_its_effect_with_its_share(one_plane):
    clf, X, _ = one_plane
    level = clf.effects(X)["level"]
    assert set(level.levels) == set(X["level"].dropna())
    shares = X["level"].value_counts() / len(X)
    assert level.shares.tolist() == pytest.approx([shares[name] for name in level.levels])
    assert level.missing is not None
    assert level.missing_share == pytest.approx(X["level"].isna().mean())


def test_importance_is_the_mean_size_of_the_effect_within_its_interval(one_plane):
    clf, X, _ = one_plane
    for one in clf.effects(X):
        sizes = np.abs(value_at(one, X[one.column].to_numpy())).mean(axis=0)
        np.testing.assert_allclose(one.importance, sizes, atol=1e-9)
        assert (one.importance_lower <= one.importance).all()
        assert (one.importance <= one.importance_upper).all()


def test_the_density_is_that_of_the_rows(one_plane):
    clf, X, _ = one_plane
    line = clf.effects(X)["line"]
    counts, _ = np.histogram(X["line"], line.density_edges)
    np.testing.assert_allclose(line.density, counts / len(X))
    assert line.density_edges[[0, -1]].tolist() == [X["line"].min(), X["line"].max()]


def flags_table(n_rows=1200):
    """A column of 0 and 1 that decides together with another: its effect steps at 1 exactly."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.integers(2, size=n_rows).astype(float)})
    X["calls"], X["size"] = rng.integers(9, size=n_rows), rng.normal(size=n_rows)
    log_odds = 2.0 * X["flag"] * np.sign(X["size"]) - X["flag"] + 0.5 * (X["calls"] > 5)
    return X, np.where(log_odds + rng.logistic(size=n_rows) > 0.0, "yes", "no")


@pytest.mark.parametrize("n_planes", [1, 2])
def test_a_number_of_few_values_has_its_effect_at_these_values_alone(n_planes):
    X, y = flags_table()
    clf = GeometricMixtureClassifier(lift="spline", n_planes=n_planes, l2=1e-3, random_state=0)
    model = clf.fit(X, y).model_
    found = model.effects(X)
    for name in ("flag", "calls"):
        assert found[name].has_few_values
        assert found[name].x.tolist() == sorted(set(X[name]))
        at_values = np.bincount(np.searchsorted(found[name].x, X[name])) / len(X)
        np.testing.assert_allclose(found[name].shares, at_values)
        edges = found[name].density_edges
        assert (edges[0] + edges[1]) / 2.0 == pytest.approx(X[name].min())
    assert found["flag"].marks == [0.0, 1.0]
    assert found["calls"].marks == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert not found["size"].has_few_values
    assert found["size"].marks is None
    assert not model.effects()["flag"].has_few_values


def test_bands_cover_the_true_curves_of_a_known_model():
    """On average over points, columns and tables, bands of 90 % cover 85 to 95 %."""
    covered = []
    for seed in range(12):
        X, y, truth = additive_table(500, seed)
        found = GeometricMixtureClassifier(random_state=0, **ADDITIVE).fit(X, y).effects(X)
        for one in found:
            cells = np.array(one.levels) if one.kind == "category" else np.linspace(-1.9, 1.9, 20)
            true = truth[one.column](cells) - truth[one.column](X[one.column].to_numpy()).mean()
            lower, upper = one.lower[0], one.upper[0]
            if one.kind == "number":
                lower, upper = np.interp(cells, one.x, lower), np.interp(cells, one.x, upper)
            covered.append(np.mean((lower <= true) & (true <= upper)))
    assert 0.85 <= np.mean(covered) <= 0.95


def test_bands_are_narrower_with_more_training_rows():
    widths = []
    for n_rows in (300, 1200):
        X, y, _ = additive_table(n_rows, 0)
        clf = GeometricMixtureClassifier(random_state=0, lift="linear", n_planes=1, l2=1e-4)
        one = clf.fit(X, y).effects(X)["level"]
        widths.append(float((one.upper - one.lower).mean()))
    assert 1.5 < widths[0] / widths[1] < 2.6


def test_fewer_rows_of_the_same_kind_give_nearly_the_same_bands(one_plane):
    clf, X, _ = one_plane
    whole, half = clf.effects(X)["line"], clf.effects(X.iloc[::2])["line"]
    grid = np.linspace(-1.5, 1.5, 9)
    width = [np.interp(grid, one.x, (one.upper - one.lower)[0]) for one in (whole, half)]
    np.testing.assert_allclose(width[0], width[1], rtol=0.35)


def test_without_rows_there_are_curves_but_no_bands(one_plane):
    clf, X, kind = one_plane
    found, with_rows = clf.effects(), clf.effects(X)
    assert not found.has_bands
    assert found.bands == "none: pass rows X"
    assert found["line"].density is None
    np.testing.assert_allclose(found["level"].values, with_rows["level"].values)
    if kind == "spline":  # the model knows the shares of its training rows
        np.testing.assert_allclose(found["line"].shares, with_rows["line"].shares, atol=1e-3)


def test_a_loaded_model_has_the_same_effects(one_plane, tmp_path):
    clf, X, _ = one_plane
    clf.save(tmp_path / "model.geomix")
    before, after = clf.effects(X), geomix.load(tmp_path / "model.geomix").effects(X)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
        np.testing.assert_array_equal(one.values, other.values)


def test_a_model_of_one_plane_per_class_without_pairs_has_no_interactions(one_plane):
    clf, X, kind = one_plane
    found = clf.effects(X).interactions
    assert bool(found) == (kind == "pairs")


def test_interactions_of_pairs_are_zero_on_average_along_both_sides(one_plane):
    clf, X, _ = one_plane
    for one in clf.effects(X).interactions:
        joint = one.shares
        a, b = joint.sum(axis=1), joint.sum(axis=0)
        np.testing.assert_allclose(one.values[0] @ b, 0.0, atol=1e-9)
        np.testing.assert_allclose(a @ one.values[0], 0.0, atol=1e-9)
        assert 0.0 <= one.h <= 1.0


def test_the_strongest_interaction_of_an_exclusive_or_is_found(xor):
    clf, X = xor
    found = clf.effects(X)
    first, *rest = found.interactions
    assert first.columns == ("a", "b")
    assert first.h > 0.9
    assert all(one.strength < first.strength / 5 for one in rest)
    corners = first.values[0][[0, 0, -1, -1], [0, -1, 0, -1]]
    assert (np.sign(corners) == [1, -1, -1, 1]).all()


def test_importance_counts_columns_that_act_through_interactions_alone(xor):
    clf, X = xor
    found = clf.effects(X)
    sizes = {one.column: one.size for one in found}
    assert min(sizes["a"], sizes["b"]) > 5 * sizes["other"]
    assert found.method == "partial dependence"
    assert found["a"].planes_low is not None
    assert (found["a"].planes_low <= found["a"].planes_high).all()


def test_effects_are_the_same_each_time(xor):
    clf, X = xor
    first, second = clf.effects(X).to_dict(), clf.effects(X).to_dict()
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_kind_of_model_has_effects_of_all_columns(kind):
    model, X, _ = fitted(kind)
    found = model.effects(X)
    assert found.columns == model.columns
    assert all(np.isfinite(one.values).all() and one.size >= 0.0 for one in found)
    assert found.has_bands == (model.lift.kind != "fourier")
    for one in found:
        if one.lower is not None:
            assert (one.lower <= one.values).all()
            assert (one.values <= one.upper).all()


def test_a_fourier_model_asks_for_rows():
    X, y, _ = additive_table(200, 5)
    clf = GeometricMixtureClassifier(1, lift="fourier", l2=1e-3, random_state=0)
    with pytest.raises(NoShapes, match="pass rows X"):
        clf.fit(X, y).effects()


def test_wide_models_have_bands_column_by_column(monkeypatch, one_plane):
    clf, X, _ = one_plane
    monkeypatch.setattr("geomix.explain.effect_bands.MOST_IN_BLOCK", 20)
    found = clf.effects(X)
    joint = clf.model_.planes.n_inputs <= 20
    assert found.bands.endswith("columns apart") != joint
    assert all(np.isfinite(one.lower).all() for one in found if one.lower is not None)


def test_effects_are_a_table_a_frame_and_plain_values(one_plane):
    clf, X, _ = one_plane
    found = clf.effects(X)
    frame = found.to_frame()
    assert list(frame.columns) == ["column", "class", "value", "effect", "lower", "upper", "share"]
    assert len(found.importance_frame()) == 4
    assert "wave" in str(found)
    assert "<table>" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)


def test_an_unknown_column_and_a_bad_confidence_are_refused(one_plane):
    clf, X, _ = one_plane
    with pytest.raises(KeyError, match="No effect of 'lime'"):
        clf.effects(X)["lime"]
    with pytest.raises(ValueError, match="confidence=90"):
        clf.effects(X, confidence=90)


@pytest.mark.parametrize("kind", [*ADDITIVE_MODELS, *PAIRED])
def test_weighted_sums_of_a_shape_are_those_of_its_values(kind):
    model, X, _ = paired(kind) if kind in PAIRED else fitted(kind)
    form, encoded = additive(model), encoded_rows(model, X).copy()
    encoded[::7, 0] = np.nan
    weights = np.random.default_rng(0).random((len(encoded), model.planes.n_planes))
    for shape in form.shapes:
        sums = shape.weighted_sums(encoded[:, shape.column], weights)
        np.testing.assert_allclose(sums, (weights * shape(encoded[:, shape.column])).sum(axis=0))
    for pair in form.pairs:
        sums = pair.weighted_sums(encoded, weights)
        np.testing.assert_allclose(sums, (weights * pair(encoded)).sum(axis=0))


@pytest.mark.parametrize("kind", [*ADDITIVE_MODELS, *PAIRED])
def test_a_partial_dependence_moves_with_the_weights_as_its_design_has_it(kind):
    model, X, _ = paired(kind) if kind in PAIRED else fitted(kind)
    rows = encoded_rows(model, X)[:40]
    n_inputs = model.planes.n_inputs
    features = np.append(np.arange(n_inputs), n_inputs)
    for column in range(model.n_features):
        cells = np.unique(rows[:, column][~np.isnan(rows[:, column])])[:3]
        table = np.tile(rows[:16], (len(cells), 1))
        table[:, column] = np.repeat(cells, 16)
        A = model.answer("responsibilities", table)
        Phi = np.column_stack([np.asarray(model.feature_map(table)), np.ones(len(table))])
        by_hand = [A[k * 16 :][:16].T @ Phi[k * 16 :][:16] / 16 for k in range(len(cells))]
        design = effect_bands.average_design(model, rows[:16], column, cells, features)
        np.testing.assert_allclose(design, np.stack(by_hand, axis=1), rtol=1e-9, atol=1e-12)


def test_variances_add_up_over_blocks_and_leave_out_features_of_none():
    joint, apart = np.array([[[2.0, 0.5], [0.5, 1.0]]]), np.array([[3.0, 4.0]])
    blocks = (
        effect_bands.Block(np.array([3, 4]), joint),
        effect_bands.Block(np.array([0, 1]), apart),
    )
    found = effect_bands.Covariance(blocks, n_planes=1, is_joint=False)
    features, row = np.array([1, 3, 4, 7, 90]), np.array([[[10.0, 1.0, -1.0, 5.0, 5.0]]])
    np.testing.assert_allclose(found.variances(features, row), [[400.0 + 2.0 - 1.0 + 1.0]])
    assert found.variances(features[:0], row[:, :, :0]).tolist() == [[0.0]]


def table_with_missing_cells_in_a_pair(n_rows=1500):
    """A number and a category that decide together; either may be missing."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"size": rng.normal(size=n_rows), "kind": rng.choice(["a", "b"], n_rows)})
    sign = np.where(X["kind"] == "a", 1.0, -1.0)
    score = 3.0 * sign * np.sign(X["size"]) + sign + rng.logistic(size=n_rows)
    X["size"] = X["size"].mask(rng.random(n_rows) < 0.2)
    X["kind"] = X["kind"].mask(rng.random(n_rows) < 0.2)
    return X, np.where(score > 0.0, "yes", "no")


def whole_pair_at(pair, X):
    """What an interaction adds to each row, (n,), for two classes; also where cells are missing."""
    beside, below = (
        pair.missing_second[0][:, None],
        np.append(pair.missing_first, pair.missing_both),
    )
    table = np.vstack([np.hstack([pair.values[0], beside]), below])
    edges, levels = (pair.x_edges, pair.y_edges), (pair.x_levels, pair.y_levels)
    places = []
    for name, cuts, names in zip(pair.columns, edges, levels, strict=True):
        if names is not None:
            places.append(pd.Index(names).get_indexer(X[name]))
        else:
            places.append(np.searchsorted(cuts[1:-1], X[name], "right"))
            places[-1][X[name].isna()] = -1
    return table[places[0], places[1]]


def test_effects_add_up_for_rows_with_missing_and_unseen_cells_in_a_pair():
    X, y = table_with_missing_cells_in_a_pair()
    settings = {"lift": "spline", "n_planes": 1, "max_interactions": 1, "l2": 1e-3}
    clf = GeometricMixtureClassifier(random_state=0, **settings).fit(X, y)
    found = clf.effects(X)
    (pair,) = found.interactions
    rows = X.assign(kind=X["kind"].where(np.arange(len(X)) % 5 != 0, "never seen"))
    rows = pd.concat([X, rows], ignore_index=True)
    absent, unseen = rows.isna(), rows["kind"] == "never seen"
    assert (absent["size"] & absent["kind"]).any()
    assert (absent["size"] & ~absent["kind"]).any()
    kind = value_at(found["kind"], rows["kind"].mask(unseen, "a").to_numpy())[:, 0]
    total = found.intercept[0] + value_at(found["size"], rows["size"].to_numpy())[:, 0]
    total = total + np.where(unseen, 0.0, kind) + whole_pair_at(pair, rows)
    np.testing.assert_allclose(total, clf.decision_function(rows), atol=1e-9)
    json.dumps(found.to_dict(), allow_nan=False)


def test_partial_dependences_have_no_interaction_of_missing_cells(xor):
    clf, X = xor
    assert clf.effects(X).interactions[0].missing_first is None


def test_curves_of_a_spline_are_zero_on_average_over_the_present_cells():
    X, y = mixed_table()
    clf = GeometricMixtureClassifier(random_state=0, **SPLINE).fit(X, y)
    wave = clf.effects(X)["wave"]
    present = X["wave"].dropna().to_numpy()
    assert wave.missing is not None
    assert np.abs(value_at(wave, present).mean()) < 1e-4


# --- a category without any cell in training ---

EMPTY = {
    "text": lambda n: pd.Series([None] * n, dtype="str"),
    "category": lambda n: pd.Series([None] * n, dtype="category"),
    "numbers named as a category": lambda n: pd.Series(np.full(n, np.nan)),
}
SOME_SETTINGS = {
    "fast": {"preset": "fast"},
    "linear": {"lift": "linear", "n_planes": 1},
    "linear, two planes": {"lift": "linear", "n_planes": 2},
    "spline": {"lift": "spline", "n_planes": 1},
    "spline, two planes": {"lift": "spline", "n_planes": 2},
    "fourier": {"lift": "fourier", "n_planes": 2},
}


def with_an_empty_column(kind, n_rows=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"empty": EMPTY[kind](n_rows), "b": rng.normal(size=n_rows)})
    X["c"] = rng.normal(size=n_rows)
    return X, np.digitize(X["b"] + X["c"] * X["b"], [-0.5, 0.5])


@pytest.mark.filterwarnings("ignore:Training stopped")
@pytest.mark.parametrize("settings", SOME_SETTINGS.values(), ids=SOME_SETTINGS)
@pytest.mark.parametrize("kind", EMPTY)
def test_a_category_without_any_cell_is_left_out_and_the_rest_explained(kind, settings, tmp_path):
    X, y = with_an_empty_column(kind)
    clf = GeometricMixtureClassifier(
        random_state=0, categorical_features=["empty"], max_iter=30, **settings
    )
    with pytest.warns(UserWarning, match="'empty' is 100 % missing and is dropped"):
        model = clf.fit(X, y).model_
    told = model.explain_global(X, y)
    assert "empty" not in {one.column for card in told.cards for one in card.columns}
    assert not any(model.explain_local(X[:5]).contributions[:, 0])
    found = model.effects(X)
    assert found["empty"].size == 0.0
    assert not any("empty" in one.columns for one in found.interactions)
    assert found["empty"].to_dict()["levels"] in ((), [])
    model.compare(X, X[::-1])
    model.report(X, y, tmp_path / "report.html", n_rows=4, n_counterfactuals=0)
    if model.lift.is_additive:
        assert not model.effects()["empty"].values.size
        assert "GMX007" in {one.code for one in told.findings}


def test_a_level_in_a_column_that_was_empty_in_training_changes_nothing():
    X, y = with_an_empty_column("text")
    settings = {"lift": "spline", "n_planes": 1, "max_iter": 30, "random_state": 0}
    with pytest.warns(UserWarning, match="100 % missing"):
        model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    filled = X.assign(empty="new")
    np.testing.assert_array_equal(
        model.explain_local(filled).contributions, model.explain_local(X).contributions
    )
