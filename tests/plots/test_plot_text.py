"""Names in plots are text: dollars are no mathematics, and a leading _ hides nothing."""

import numpy as np
import pandas as pd
import pytest
from making import classifier
from matplotlib.text import Text

from geomix import plots

CLASSES = ["$50k-$100k", "_rest", r"$\frac{$"]
COLUMNS = ["pay $", r"$\sqrt{$"]


@pytest.fixture(scope="module")
def drawn():
    """Every display of a model whose classes and columns have such names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((120, 2)), columns=COLUMNS)
    y = np.array(CLASSES)[np.digitize(X.iloc[:, 0] + X.iloc[:, 1] ** 2, [0.5, 1.5])]
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "max_iter": 20, "random_state": 0}
    model = classifier(**settings).fit(X, y).model_
    spline = classifier(**{**settings, "lift": "spline", "n_planes": 1}).fit(X, y).model_
    row = X.iloc[:1]
    target = next(label for label in CLASSES if label != model.predict(row)[0])
    made = {
        "regions": plots.RegionDisplay.from_model(model, X, y, resolution=40),
        "responsibility": plots.ResponsibilityDisplay.from_model(
            model, X, y, CLASSES[0], resolution=40
        ),
        "union": plots.UnionDisplay.from_model(model, X, y, CLASSES[0], resolution=40),
        "usage": plots.UsageDisplay.from_model(model, X, y),
        "reliability": plots.ReliabilityDisplay.from_model(model, X, y),
        "class reliability": plots.ClassReliabilityDisplay.from_model(model, X, y),
        "roc": plots.RocDisplay.from_model(model, X, y),
        "projection": plots.ProjectionDisplay.from_model(model, X, y),
        "certificate": plots.CertificateDisplay.from_model(model, X, y),
        "counterfactual": plots.CounterfactualDisplay.from_model(model, row, target),
        "bars": plots.PlaneCardDisplay.from_model(model, CLASSES[0], 0, X),
        "curves": plots.PlaneCardDisplay.from_model(spline, CLASSES[2], 0, X),
    }
    return {name: one.plot() for name, one in made.items()}


def texts_of(display):
    """What matplotlib writes, after its reading of dollars."""
    display.figure_.canvas.draw()
    shown = [one for one in display.figure_.findobj(Text) if one.get_text()]
    return [one._preprocess_math(one.get_text()) for one in shown]


def test_every_display_writes_dollars_as_they_are(drawn):
    for name, display in drawn.items():
        for text, as_math in texts_of(display):
            assert not as_math, (name, text)


@pytest.mark.parametrize("name", ["regions", "roc", "projection", "counterfactual"])
def test_every_class_is_in_the_legend_whatever_its_first_character(drawn, name):
    legend = [text.get_text() for text in drawn[name].ax_.get_legend().get_texts()]
    written = [Text(text=one)._preprocess_math(one)[0].strip() for one in legend]
    for label in CLASSES:
        assert any(one.startswith(label) for one in written), (label, written)


@pytest.mark.parametrize("name", ["regions", "union", "responsibility"])
def test_columns_name_the_axes(drawn, name):
    ax = drawn[name].ax_
    written = [Text()._preprocess_math(one)[0] for one in (ax.get_xlabel(), ax.get_ylabel())]
    assert written == COLUMNS


LONG = "a column with a long name of which only the end tells it from the other one, number"
ARABIC = "الدخل"


@pytest.fixture(scope="module")
def odd():
    """Model, rows and labels: long names and levels, letters from right to left, large numbers."""
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(
        {
            f"{LONG} 1": rng.choice([f"{LONG} {i}" for i in range(4)], n),
            f"{LONG} 2": rng.normal(size=n),
            ARABIC: rng.normal(size=n),
            "year": rng.integers(1990, 2024, n),
            "offset": 1e6 + 0.01 * rng.normal(size=n),
            "nothing": 1.0,
        }
    )
    score = X[f"{LONG} 2"] + X[ARABIC] + (X["year"] - 2007) / 8 + 100 * (X["offset"] - 1e6)
    y = np.where(score + (X.iloc[:, 0] == f"{LONG} 1") > 0, ARABIC, "b")
    return classifier(lift="linear", n_planes=1, l2=1e-3).fit(X, y).model_, X, y


def words(display):
    display.figure_.draw_without_rendering()
    return [one.get_text() for one in display.figure_.findobj(Text) if one.get_text()]


def cut_off(display):
    """Names and titles that reach out of the figure; ticks beyond an axis are not drawn."""
    figure = display.figure_
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    boxes = [
        (one.get_text(), one.get_window_extent())
        for one in figure.findobj(Text)
        if one.get_visible() and any(sign.isalpha() for sign in one.get_text())
    ]
    return [
        text
        for text, box in boxes
        if box.x0 < -2 or box.y0 < -2 or box.x1 > width + 2 or box.y1 > height + 2
    ]


def test_long_names_stay_inside_the_figure(odd):
    model, X, y = odd
    row = X.iloc[:1]
    shown = {
        "bars": plots.PlaneCardDisplay.from_model(model, "b", 0, X, y),
        "waterfall": plots.WaterfallDisplay.from_model(model, row),
        "effects": plots.EffectDisplay.from_model(model, X),
        "one effect": plots.EffectDisplay.from_model(model, X, columns=f"{LONG} 2"),
        "counterfactual": plots.CounterfactualDisplay.from_model(model, row),
    }
    for name, display in shown.items():
        assert cut_off(display.plot()) == [], name


def test_long_levels_and_columns_are_told_apart_by_their_ends(odd):
    model, X, _ = odd
    found = words(plots.EffectDisplay.from_model(model, X).plot())
    cut = {text for text in found if text.startswith("a column w") and "…" in text}
    assert len(cut) == 6  # four levels and two columns


def test_a_bar_of_a_waterfall_keeps_the_value_of_a_long_column(odd):
    model, X, _ = odd
    found = words(plots.WaterfallDisplay.from_model(model, X.iloc[:1]).plot())
    value = X[f"{LONG} 2"].iloc[0]
    assert any(text.endswith(f" = {value:.4g}") and "…" in text for text in found)
    assert f"year = {X['year'].iloc[0]}" in found


def test_columns_without_any_effect_have_no_panel_unless_they_are_named(odd):
    model, X, _ = odd
    assert "nothing" not in plots.EffectDisplay.from_model(model, X).columns
    assert plots.EffectDisplay.from_model(model, X, columns="nothing").columns == ("nothing",)


def test_ticks_of_numbers_are_complete_and_differ(odd):
    model, X, y = odd
    display = plots.RegionDisplay.from_model(
        model, X, y, columns=("year", "offset"), resolution=20
    ).plot()
    display.figure_.draw_without_rendering()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        ticks = [tick.get_text() for tick in axis.get_ticklabels()]
        assert len(set(ticks)) == len(ticks) > 2
        assert axis.get_offset_text().get_text() == ""
    assert "2000" in [tick.get_text() for tick in display.ax_.get_xticklabels()]


def test_a_name_from_right_to_left_moves_no_number(odd):
    model, X, y = odd
    found = words(plots.RocDisplay.from_model(model, X, y).plot())
    assert any(text.startswith(f"\u200e{ARABIC}\u200e: 0.9") for text in found)


def test_a_probability_is_100_percent_only_where_it_is():
    shares = [0.0, 0.001, 0.5, 0.999, 1.0]
    assert [*map(plots.look.chance, shares)] == ["0%", "under 1%", "50%", "over 99%", "100%"]


def test_rows_without_any_limit_are_told_and_have_no_median():
    X = pd.DataFrame({"colour": np.tile(["red", "blue"], 40)})
    model = classifier(lift="linear", n_planes=1, l2=1e-3).fit(X, X["colour"] == "red").model_
    found = words(plots.CertificateDisplay.from_model(model, X, X["colour"] == "red").plot())
    assert "last bar: 80 without any limit" in found
    assert not [text for text in found if "median" in text]


def test_panels_of_classes_name_their_axes(drawn):
    display = drawn["class reliability"]
    assert display.panels_[0].get_ylabel() == "share of the class"
    assert {panel.get_xlabel() for panel in display.panels_} == {"predicted probability"}
