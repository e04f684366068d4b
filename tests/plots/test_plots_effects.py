"""Displays of effects, importances, interactions and of one row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from geomix import GeometricMixtureClassifier
from geomix.plots import (
    EffectDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    WaterfallDisplay,
)


def table(n_rows=400):
    """A number, a skewed number, a missing one, and a category of 20 levels with odd names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "$age$ (_years)": rng.uniform(20, 80, n_rows),
            "gain": np.where(rng.random(n_rows) < 0.7, 0.0, rng.lognormal(7.0, 2.0, n_rows)),
            "_score": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            "town": rng.choice([f"_town {i}$" for i in range(20)], n_rows),
        }
    )
    log_odds = (X["$age$ (_years)"] - 50) / 15 + X["_score"].fillna(1.0)
    return X, log_odds + rng.logistic(size=n_rows)


@pytest.fixture(scope="module")
def two_classes():
    X, score = table()
    settings = {"lift": "spline", "n_planes": 1, "max_interactions": 0, "l2": 0.01}
    y = np.where(score > 0.5, "_yes$", "No")
    return GeometricMixtureClassifier(random_state=0, **settings).fit(X, y), X


@pytest.fixture(scope="module")
def three_classes():
    X, score = table()
    y = pd.cut(score, [-np.inf, -0.5, 1.0, np.inf], labels=["_low", "mid", "$high"]).astype(str)
    clf = GeometricMixtureClassifier(2, lift="linear", l2=1e-3, random_state=0).fit(X, y)
    return clf, X


def texts(display):
    display.figure_.canvas.draw()
    found = display.figure_.findobj(lambda artist: hasattr(artist, "get_text"))
    return [artist.get_text() for artist in found if artist.get_visible()]


def draws(display):
    display.figure_.canvas.draw()
    assert display.ax_.figure is display.figure_
    assert display._repr_png_()[:4] == b"\x89PNG"


@pytest.mark.parametrize("which", ["two_classes", "three_classes"])
@pytest.mark.parametrize("kind", [EffectDisplay, ImportanceDisplay, InteractionDisplay])
def test_displays_of_effects_draw_for_any_number_of_classes(which, kind, request):
    clf, X = request.getfixturevalue(which)
    draws(kind.from_estimator(clf, X).plot())
    draws(kind.from_effects(clf.effects(X)).plot())
    draws(kind.from_model(clf.model_, X).plot())


def test_effects_are_drawn_without_rows(two_classes):
    clf, _ = two_classes
    display = EffectDisplay.from_estimator(clf).plot()
    draws(display)
    assert len(display.panels_) == 4


def test_the_axis_of_an_effect_has_its_unit(two_classes):
    clf, X = two_classes
    display = EffectDisplay.from_estimator(clf, X).plot()
    labels = {label for ax in display.panels_ for label in (ax.get_xlabel(), ax.get_ylabel())}
    assert labels == {"log-odds of _yes$", ""}
    assert "Effects on the log-odds of _yes$ (exact; bands of 90%)" in texts(display)


def test_names_with_a_dollar_or_an_underscore_are_drawn_as_they_are(two_classes, three_classes):
    clf, X = two_classes
    assert "$age$ (_years)" in texts(EffectDisplay.from_estimator(clf, X).plot())
    assert "$age$ (_years)" in texts(ImportanceDisplay.from_estimator(clf, X).plot())
    clf, X = three_classes
    shown = [text.strip("\u200b") for text in texts(EffectDisplay.from_estimator(clf, X).plot())]
    assert {"_low", "$high"} <= set(shown)
    shown = texts(WaterfallDisplay.from_estimator(clf, X.iloc[:1]).plot())
    assert any("$age$ (_years) = " in text for text in shown)


def test_panels_have_their_own_scale_or_share_one(two_classes):
    clf, X = two_classes
    columns = ["$age$ (_years)", "gain"]
    display = EffectDisplay.from_estimator(clf, X, columns=columns)
    own, shared = display.plot(), display.plot(share_scale=True)
    assert own.panels_[0].get_ylim() != own.panels_[1].get_ylim()
    assert shared.panels_[0].get_ylim() == shared.panels_[1].get_ylim()


def test_all_levels_can_be_drawn(two_classes):
    clf, X = two_classes
    display = EffectDisplay.from_estimator(clf, X, columns="town")
    few, every = display.plot(), display.plot(n_levels=None)
    assert len(few.panels_[0].get_yticks()) == 10
    assert "town (10 rarer levels not shown)" in texts(few)
    assert len(every.panels_[0].get_yticks()) == 20


@pytest.fixture(scope="module")
def missing_cells_decide():
    rng = np.random.default_rng(0)
    z = np.where(rng.random(600) < 0.3, np.nan, rng.normal(size=600))
    X = pd.DataFrame({"a": rng.normal(size=600), "z": z, "c": rng.choice([None, "p", "q"], 600)})
    score = X["a"] + 4.0 * X["z"].isna() + 3.0 * X["c"].isna() + 0.5 * rng.normal(size=600)
    settings = {"lift": "spline", "n_planes": 1, "max_interactions": 0, "random_state": 0}
    return GeometricMixtureClassifier(**settings).fit(X, score > 2.0), X


@pytest.mark.parametrize("share_scale", [False, True])
def test_the_effect_of_missing_cells_is_inside_its_panel(missing_cells_decide, share_scale):
    clf, X = missing_cells_decide
    display = EffectDisplay.from_estimator(clf, X, columns=["z", "c"]).plot(share_scale=share_scale)
    number, category = display.panels_
    for one, (low, high) in (
        (display.effects["z"], number.get_ylim()),
        (display.effects["c"], category.get_xlim()),
    ):
        assert one.missing[0] > one.values.max()
        assert low < one.missing[0] < high
    assert number.get_ylim()[1] > display.effects["z"].missing_upper[0]


def test_a_missing_cell_is_no_level_when_levels_not_shown_are_counted(missing_cells_decide):
    clf, X = missing_cells_decide
    display = EffectDisplay.from_estimator(clf, X, columns="c")
    assert "c" in texts(display.plot())
    assert "c (1 rarer levels not shown)" in texts(display.plot(n_levels=1))


def test_a_category_without_levels_is_an_empty_panel(missing_cells_decide):
    _, X = missing_cells_decide
    X = X[["a"]].assign(c=pd.Series([None] * len(X), dtype="str"))
    clf = GeometricMixtureClassifier(lift="spline", n_planes=1, random_state=0, max_iter=20)
    with pytest.warns(UserWarning, match="100 % missing"):
        clf.fit(X, X["a"] > 0.0)
    draws(EffectDisplay.from_estimator(clf, X).plot())
    draws(EffectDisplay.from_estimator(clf, X, columns="c").plot(share_scale=True))


def test_a_skewed_column_is_drawn_on_a_logarithmic_scale(two_classes):
    clf, X = two_classes
    display = EffectDisplay.from_estimator(clf, X, columns=["gain", "$age$ (_years)"]).plot()
    assert [ax.get_xscale() for ax in display.panels_] == ["symlog", "linear"]


def test_frames_have_what_is_drawn(two_classes):
    clf, X = two_classes
    display = EffectDisplay.from_estimator(clf, X, columns=["town"])
    assert set(display.frame()["column"]) == {"town"}
    assert ImportanceDisplay.from_estimator(clf, X).frame()["importance"].is_monotonic_decreasing
    assert list(InteractionDisplay.from_estimator(clf, X).frame()) == [
        "first", "second", "strength", "h",
    ]  # fmt: skip


def test_a_waterfall_ends_at_the_log_odds_of_the_row(two_classes):
    clf, X = two_classes
    display = WaterfallDisplay.from_estimator(clf, X.iloc[3], label="_yes$")
    bars = display.frame()["value"].to_numpy()
    assert bars[:-1].sum() == pytest.approx(bars[-1])
    assert bars[-1] == pytest.approx(clf.decision_function(X.iloc[[3]])[0])
    draws(display.plot())


def test_a_waterfall_takes_a_frame_a_series_and_a_dict(two_classes):
    clf, X = two_classes
    rows = [X.iloc[[3]], X.iloc[3], X.iloc[3].to_dict()]
    values = [WaterfallDisplay.from_estimator(clf, row).frame()["value"].tolist() for row in rows]
    assert values[0] == values[1] == values[2]


def test_effects_are_drawn_in_the_axes_of_the_caller(two_classes):
    clf, X = two_classes
    axes = Figure(layout="constrained").subplots(1, 2)
    display = EffectDisplay.from_estimator(clf, X, columns=["gain"]).plot(axes[0])
    assert display.figure_ is axes[0].figure
    plain = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    EffectDisplay.from_estimator(clf, X).plot(plain).figure_.canvas.draw()
    WaterfallDisplay.from_estimator(clf, X[:1]).plot(axes[1]).figure_.canvas.draw()


def test_the_wanted_classes_and_pairs_are_drawn(three_classes):
    clf, X = three_classes
    display = EffectDisplay.from_estimator(clf, X, labels=["mid"])
    assert set(display.frame()["class"]) == {"mid"}
    pair = ("_score", "$age$ (_years)")
    draws(InteractionDisplay.from_estimator(clf, X, pairs=[pair], label="mid").plot())


def test_unknown_names_are_refused(three_classes):
    clf, X = three_classes
    with pytest.raises(KeyError, match="No effect of 'agee'"):
        EffectDisplay.from_estimator(clf, X, columns=["agee"])
    with pytest.raises(ValueError, match="expected some of"):
        EffectDisplay.from_estimator(clf, X, labels=["high"])
    with pytest.raises(ValueError, match="Got the pair"):
        InteractionDisplay.from_estimator(clf, X, pairs=[("gain", "agee")])
    with pytest.raises(ValueError, match="expected one of"):
        InteractionDisplay.from_estimator(clf, X, label="high")
    with pytest.raises(TypeError, match="expected a fitted"):
        EffectDisplay.from_estimator(X)


def test_a_model_without_interactions_is_drawn_as_such(two_classes):
    clf, X = two_classes
    display = InteractionDisplay.from_estimator(clf, X).plot()
    assert "This model has no interactions of columns." in texts(display)
