"""Displays of what a model means: each draws the figures of the library, or of another one."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest
import sklearn.metrics
from reading_models import ADDITIVE, SETTINGS, fitted
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

mpl.use("Agg")

from geomix import GeometricMixtureClassifier
from geomix.explain.cells import encoded_row, encoded_rows
from geomix.plots import (
    CertificateDisplay,
    ClassReliabilityDisplay,
    CounterfactualDisplay,
    HistoryDisplay,
    PlaneCardDisplay,
    ProjectionDisplay,
    RegionDisplay,
    ReliabilityDisplay,
    ResponsibilityDisplay,
    RocDisplay,
    UnionDisplay,
    UsageDisplay,
)
from geomix.plots.facets import slice_of
from geomix.plots.roc import MICRO

PAIR = ("alcohol", "malic_acid")


def first_row(X):
    return X.iloc[[0]] if hasattr(X, "iloc") else X[0]


# --- maps of two columns of many ---


@pytest.mark.parametrize("name", ["mixed linear", "mixed committee", "mixed fourier"])
def test_a_slice_is_the_model_with_the_other_columns_held(name):
    model, X, y = fitted(name)
    held = X.iloc[[7]]
    display = RegionDisplay.from_model(model, X, y, columns=PAIR, hold=held, resolution=7)
    rows = held.loc[held.index.repeat(49)].reset_index(drop=True)
    rows[list(PAIR)] = display.grid.points
    table = display.frame()
    P = model.predict_proba(rows)
    assert table["label"].tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(table["probability"], P.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(table[list(PAIR)], display.grid.points)
    shares = ResponsibilityDisplay.from_model(
        model, X, y, "barolo", columns=PAIR, hold=held, resolution=7
    )
    own = model.planes.class_of == model.classes.tolist().index("barolo")
    np.testing.assert_allclose(
        shares.responsibility.reshape(49, -1), model.responsibilities(rows)[:, own], atol=1e-12
    )


def test_other_columns_are_held_at_medians_and_most_frequent_levels():
    model, X, y = fitted("mixed linear")
    typical = X.iloc[[0]].assign(colour=X["colour"].mode()[0], stop=X["stop"].mode()[0])
    for column in X.columns[:5]:
        there = np.sort(X[column].dropna())
        typical[column] = there[len(there) // 2]
    given, found = (
        RegionDisplay.from_model(model, X, y, columns=PAIR, hold=hold, resolution=5)
        for hold in (typical, None)
    )
    np.testing.assert_array_equal(given.class_scores, found.class_scores)


def test_planes_of_a_slice_score_as_the_model_does():
    model, X, _ = fitted("mixed linear")
    held = encoded_row(model, first_row(X))
    places = tuple(X.columns.get_loc(name) for name in PAIR)
    rng = np.random.default_rng(0)
    points = rng.normal([13.0, 2.0], 1.0, (20, 2))
    rows = np.repeat(held[None, :], 20, axis=0)
    rows[:, list(places)] = points
    expected = model.answer("plane_scores", rows)
    np.testing.assert_allclose(slice_of(model, places, held).scores(points), expected, atol=1e-9)


def test_a_map_wants_two_different_numbers():
    model, X, y = fitted("mixed linear")
    for columns, message in {
        ("alcohol",): "two different",
        ("alcohol", "alcohol"): "two different",
        ("alcohol", "colour"): "'colour' is a category",
        ("alcohol", "price"): "Got the column 'price'",
    }.items():
        with pytest.raises(ValueError, match=message):
            RegionDisplay.from_model(model, X, y, columns=columns)


def test_the_union_is_where_some_plane_beats_all_others():
    model, X, y = fitted("several")
    display = UnionDisplay.from_model(model, X, y, 1, columns=(0, 12), resolution=15)
    rows = display.grid.rows((0, 12), _held(model, X))
    Z = model.plane_scores(rows)
    own = model.planes.class_of == 1
    in_union = (display.lead > 0.0).any(axis=2).ravel()
    np.testing.assert_array_equal(in_union, Z[:, own].max(axis=1) > Z[:, ~own].max(axis=1))
    np.testing.assert_array_equal(display.margin.ravel() > 0.0, model.predict(rows) == 1)
    assert 0 < in_union.sum() < len(in_union)
    drawn = display.plot()
    names = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    seen = [f"plane {m + 1}" for m in range(3) if (display.lead[..., m] > 0.0).any()]
    assert names == [*seen, "rows of 1", "soft union: 1"]


def _held(model, X):
    encoded = encoded_rows(model, X)
    return np.sort(encoded, axis=0)[len(encoded) // 2]


# --- cards, curves and measures ---


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_card_shows_the_columns_of_explain_global(name):
    model, X, y = fitted(name)
    label = model.classes.tolist()[1]
    drawn = PlaneCardDisplay.from_model(model, label, 0, X, y, n_columns=4).plot()
    card = model.explain_global(X, y, n_columns=4).cards[int(model.planes.class_start[1])]
    assert drawn.frame()["column"].tolist() == [one.column for one in card.columns]
    if drawn.panels_:
        told = model.explain_global(X, y)
        for panel, column in zip(drawn.panels_, card.columns, strict=True):
            curve, values = told.curve(column.column), None
            values = curve.values[int(model.planes.class_start[1])]
            if curve.levels is None:
                np.testing.assert_array_equal(panel.lines[-1].get_ydata(), values)
            else:
                heights = [bar.get_height() for bar in panel.patches]
                np.testing.assert_allclose(heights, values)
    else:
        sizes = [bar.get_width() for bar in drawn.ax_.patches]
        signs = [-1.0 if one.direction == "falls" else 1.0 for one in card.columns]
        np.testing.assert_allclose(np.abs(sizes), [one.strength for one in card.columns])
        assert np.sign(sizes).tolist() == signs


def test_a_plane_that_is_not_there_is_refused():
    model, _, _ = fitted("committee")
    with pytest.raises(ValueError, match="has 3 planes in each of 4 members"):
        PlaneCardDisplay.from_model(model, 1, 3)


def test_roc_curves_and_areas_are_scikit_learns():
    model, X, y = fitted("mixed spline")
    P, codes = model.predict_proba(X), np.searchsorted(model.classes, y)
    display = RocDisplay.from_model(model, X, y)
    for c, label in enumerate(model.classes.tolist()):
        expected = sklearn.metrics.roc_auc_score(codes == c, P[:, c])
        assert display.areas[label] == pytest.approx(expected, abs=1e-12)
    hits = (codes[:, None] == np.arange(3)).astype(int)
    micro = sklearn.metrics.roc_auc_score(hits, P, average="micro")
    assert display.areas[MICRO] == pytest.approx(micro, abs=1e-12)
    drawn = display.plot()
    lines = {line.get_label().split(":")[0]: line for line in drawn.ax_.lines}
    for name, curve in display.curves.items():
        np.testing.assert_array_equal(lines[name].get_xdata(), curve[0])
        np.testing.assert_array_equal(lines[name].get_ydata(), curve[1])


def test_predictions_of_any_classifier_can_be_drawn():
    model, X, y = fitted("linear")
    other = LogisticRegression(max_iter=500).fit(X, y)
    P = other.predict_proba(X)
    backwards = other.classes_[::-1]
    plain = RocDisplay.from_predictions(y, P)
    turned = RocDisplay.from_predictions(y, P[:, ::-1], classes=backwards)
    assert plain.areas == turned.areas
    same = ReliabilityDisplay.from_predictions(y, model.predict_proba(X))
    own = ReliabilityDisplay.from_model(model, X, y)
    np.testing.assert_array_equal(
        same.frame()["accuracy"].to_numpy(), own.frame()["accuracy"].to_numpy()
    )
    with pytest.raises(ValueError, match="Got P of shape"):
        RocDisplay.from_predictions(y, P[:, :2])


def test_reliability_of_a_class_is_its_frequency_in_each_bin():
    model, X, y = fitted("mixed linear")
    display = ClassReliabilityDisplay.from_model(model, X, y, n_bins=5)
    P = model.predict_proba(X)
    edges = np.linspace(0.0, 1.0, 6)
    for c, label in enumerate(model.classes.tolist()):
        bins = list(display.curves.values())[-1][c]
        for i in range(5):
            inside = (P[:, c] > edges[i]) & (P[:, c] <= edges[i + 1])
            assert bins.share[i] == pytest.approx(inside.mean())
            if inside.any():
                assert bins.frequency[i] == pytest.approx((y[inside] == label).mean())
                assert bins.probability[i] == pytest.approx(P[inside, c].mean())
    assert next(iter(display.curves)) == "before scaling"
    drawn = display.plot()
    assert len(drawn.panels_) == 3
    assert [panel.get_title(loc="left") for panel in drawn.panels_] == model.classes.tolist()


def test_the_projection_is_scikit_learns_pca_of_standardised_columns():
    model, X, y = fitted("several")
    display = ProjectionDisplay.from_model(model, X, y)
    pca = PCA(2).fit((X - X.mean(axis=0)) / X.std(axis=0))
    expected = pca.transform((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(np.abs(display.points), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(display.explained, pca.explained_variance_ratio_, atol=1e-12)
    np.testing.assert_array_equal(display.wrong, model.predict(X) != y)
    rings = display.plot().ax_.collections[-1].get_offsets()
    assert len(rings) == int((model.predict(X) != y).sum())


def test_a_projection_of_one_column_has_a_second_axis_of_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    clf = GeometricMixtureClassifier(lift="linear", l2=1e-3).fit(X, X[:, 0] > 0)
    display = ProjectionDisplay.from_estimator(clf, X, X[:, 0] > 0)
    assert display.explained == (pytest.approx(1.0), 0.0)
    assert not display.points[:, 1].any()
    display.plot().figure_.canvas.draw()


@pytest.mark.parametrize("name", ["mixed linear", "mixed committee"])
def test_the_histogram_counts_every_certificate_once(name):
    model, X, y = fitted(name)
    X, y = X[::4], y[::4]
    display = CertificateDisplay.from_model(model, X, y)
    np.testing.assert_array_equal(display.radius, model.certify(X).radius)
    drawn = display.plot()
    n_bins = len(display.edges) - 1
    heights = np.array([bar.get_height() for bar in drawn.ax_.patches])
    right = model.predict(X) == y
    assert heights[:n_bins].sum() == right.sum()
    assert heights[n_bins:].sum() == (~right).sum()


@pytest.mark.parametrize("name", ADDITIVE)
def test_the_way_leads_from_the_row_to_another_answer(name):
    model, X, _ = fitted(name)
    display = CounterfactualDisplay.from_model(model, first_row(X))
    found = model.counterfactual(first_row(X))
    start, end = display.probabilities[0], display.probabilities[-1]
    before = model.predict_proba(X[:1] if not hasattr(X, "iloc") else X.iloc[:1])[0]
    np.testing.assert_allclose(start, before, atol=1e-12)
    assert start.argmax() != end.argmax()
    assert end.max() == pytest.approx(found.probability, abs=1e-9)
    assert {name for name, _, _ in display.changes} == set(found.changes)
    length = np.sqrt(sum(size**2 for _, _, size in display.changes))
    assert length == pytest.approx(found.distance, rel=1e-6)
    drawn = display.plot()
    assert len(drawn.changes_ax_.patches) == min(len(display.changes), 8)


def test_a_row_without_a_way_is_told_so():
    model, X, _ = fitted("linear")
    with pytest.raises(ValueError, match="no way to draw"):
        CounterfactualDisplay.from_model(model, X[0], immutable=list(model.columns))


# --- every display ---


def displays_of(clf, X, y):
    label = clf.classes_[0]
    columns = {"columns": PAIR, "resolution": 12}
    return [
        RegionDisplay.from_estimator(clf, X, y, **columns),
        ResponsibilityDisplay.from_estimator(clf, X, y, label, **columns),
        UnionDisplay.from_estimator(clf, X, y, label, **columns),
        PlaneCardDisplay.from_estimator(clf, label, 0, X, y),
        UsageDisplay.from_estimator(clf, X, y),
        ReliabilityDisplay.from_estimator(clf, X, y, before=True),
        ClassReliabilityDisplay.from_estimator(clf, X, y),
        ProjectionDisplay.from_estimator(clf, X, y),
        RocDisplay.from_estimator(clf, X, y),
        HistoryDisplay.from_estimator(clf),
        CounterfactualDisplay.from_estimator(clf, X.iloc[[0]]),
        CertificateDisplay.from_estimator(clf, X, y),
    ]


@pytest.mark.parametrize("lift", ["linear", pytest.param("spline", marks=pytest.mark.slow)])
def test_every_display_takes_an_estimator_of_a_mixed_table(lift):
    _, X, y = fitted("mixed linear")
    settings = {"lift": lift, "n_planes": 2, "n_members": 1, "l2": 1e-3, "shrink_to_mean": 0.0}
    clf = GeometricMixtureClassifier(**settings, max_iter=20, random_state=0).fit(X, y)
    for display in displays_of(clf, X, y):
        drawn = display.plot()
        assert display.ax_ is None
        assert drawn._repr_png_().startswith(b"\x89PNG")
        table = display.frame()
        assert len(table) > 0
        figure = mpl.figure.Figure()
        _, ax = figure.subplots(1, 2)
        assert display.plot(ax).ax_ is ax
        figure.canvas.draw()
        free = mpl.figure.Figure().add_axes((0.1, 0.1, 0.8, 0.8))
        assert display.plot(free).figure_ is free.figure


def test_something_else_than_an_estimator_is_refused():
    with pytest.raises(TypeError, match="expected a fitted GeometricMixtureClassifier"):
        RocDisplay.from_estimator(LogisticRegression(), [[0.0]], [0])


def test_without_pandas_frame_says_what_to_install(monkeypatch):
    model, X, y = fitted("linear")
    display = RocDisplay.from_model(model, X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        display.frame()


def test_many_rows_are_drawn_as_a_selection_with_few_rings():
    rng = np.random.default_rng(0)
    points, codes = rng.normal(size=(10_000, 2)), rng.integers(0, 26, 10_000)
    shown = ProjectionDisplay(
        tuple(map(str, range(26))), points, (0.5, 0.2), codes, codes[::-1]
    ).plot()
    drawn = [len(one.get_offsets()) for one in shown.ax_.collections]
    assert sum(drawn[:-1]) <= 3000
    assert drawn[-1] <= 300
    assert "300 ringed" in shown.ax_.get_legend().get_texts()[-1].get_text()


def test_a_legend_of_26_classes_stands_beside_the_axes_and_inside_the_figure():
    rng = np.random.default_rng(0)
    codes = np.arange(260) % 26
    classes = tuple(f"a rather long name of class {i}" for i in range(26))
    shown = ProjectionDisplay(classes, rng.normal(size=(260, 2)), (0.5, 0.2), codes, codes).plot()
    shown._repr_png_()  # the layout is computed when the picture is drawn
    legend = shown.ax_.get_legend().get_window_extent()
    figure = shown.figure_.bbox
    assert legend.x0 >= shown.ax_.get_window_extent().x1
    assert legend.x1 <= figure.x1
    assert legend.y0 >= figure.y0
