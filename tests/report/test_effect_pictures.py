"""Pictures of effects: their scales, their ends, and what is too wide or too weak to draw."""

from __future__ import annotations

import numpy as np
import pytest

from geomix.explain.effect_facts import Effect, Effects, Interaction
from geomix.report.effect_pictures import (
    drawn_pairs,
    effect_panels,
    heat_map,
    importance_bars,
    ticks,
)


def number(values, half=0.1, density=None, **facts):
    values = np.atleast_2d(np.asarray(values, dtype=float))
    x = np.linspace(0.0, 10.0, values.shape[1])
    density = np.ones(10) if density is None else np.asarray(density, dtype=float)
    importance = np.abs(values).mean(axis=1)
    return Effect(
        "age", "number", x, None, values, values - half, values + half,
        density=density, density_edges=np.linspace(0.0, 10.0, len(density) + 1),
        importance=importance, importance_lower=importance / 2, importance_upper=importance * 2,
        **facts,
    )  # fmt: skip


def levels(values):
    values = np.atleast_2d(np.asarray(values, dtype=float))
    n = values.shape[1]
    names = tuple(f"level {i}" for i in range(n))
    shares = np.arange(n, 0, -1) / sum(range(n + 1))
    return Effect("city", "category", None, names, values, shares=shares)


def all_of(*effects, interactions=()):
    names = tuple(one.column for one in effects)
    return Effects(
        ("no", "yes"), ("yes",), names, effects, interactions, np.zeros(1), "exact", 0.9, "", 10
    )


def panel(one):
    return effect_panels(all_of(one), [one], [0])[0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 100.0, [0, 25, 50, 75, 100]), (-1.2, 2.1, [-1, 0, 1, 2]), (3.0, 3.0, [3.0])],
)
def test_ticks_are_round_numbers_inside_the_range(low, high, expected):
    assert ticks(low, high, 4) == pytest.approx(expected)


def test_a_line_lies_on_its_scale_and_on_the_common_one():
    weak, strong = number([0.0, 0.5, 1.0]), number([-4.0, 0.0, 4.0])
    one, other = effect_panels(all_of(weak, strong), [weak, strong], [0])
    for made in (one, other):
        heights = [float(point.split(",")[1]) for point in made["lines"][0]["points"].split()]
        assert all(0.0 <= height <= made["plot"] for height in heights)
        common = made["common"]
        moved = [common["factor"] * height + common["shift"] for height in heights]
        assert all(-0.5 <= height <= made["plot"] + 0.5 for height in moved)
    assert one["common"]["factor"] < 0.5 < other["common"]["factor"]


def test_a_long_end_with_few_rows_is_cut_off():
    rows = np.r_[np.full(10, 100.0), np.full(40, 0.02)]
    cut = panel(number([0.0, 1.0, 2.0], density=rows))
    assert (cut["low"], cut["high"]) == (0.0, pytest.approx(2.0))
    whole = panel(number([0.0, 1.0, 2.0], density=np.ones(50)))
    assert (whole["low"], whole["high"]) == (0.0, 10.0)


@pytest.mark.parametrize(("values", "at_twenty"), [([0.0, 1.0, 2.0], 4.0), ([0.0, 0.0, 2.0], 2.0)])
def test_a_straight_curve_goes_on_and_a_bent_one_stays_flat_beyond_its_points(values, at_twenty):
    wider = Effect(**vars(number(values)) | {"density_edges": np.linspace(0.0, 20.0, 11)})
    made = panel(wider)
    *_, at_ten, last = (float(one.split(",")[1]) for one in made["lines"][0]["points"].split())
    unit = (made["zero"] - at_ten) / 2.0
    assert (made["zero"] - last) / unit == pytest.approx(at_twenty, rel=0.02)


def test_a_band_that_fills_the_picture_is_given_in_words():
    assert panel(number([0.0, 1.0]))["wide"] is None
    wide = panel(number([0.0, 1.0], half=20.0))
    assert wide["wide"] == pytest.approx(20.0)
    assert wide["lines"][0]["band"] is None


def test_all_levels_are_in_the_table_and_the_frequent_ones_in_the_picture():
    made = panel(levels(np.linspace(-1, 1, 30)))
    assert len(made["rows"]) == 8
    assert {row["name"] for row in made["rows"]} == {f"level {i}" for i in range(8)}
    assert made["left_out"] == 22
    assert len(made["table"]) == 30


def test_importances_are_parts_of_the_longest_interval():
    bars = importance_bars(all_of(number([1.0, 1.0]), number([0.5, 0.5])), 5)
    assert [bar["part"] for bar in bars] == pytest.approx([0.5, 0.25])
    assert bars[0]["high"] == pytest.approx(1.0)


def test_weak_pairs_are_not_drawn():
    grid = np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    edges = np.array([0.0, 5.0, 10.0])
    pair = Interaction(("a", "b"), edges, None, None, ("u", "v"), grid, 1.0, 0.5)
    weak = Interaction(("a", "c"), edges, None, None, ("u", "v"), grid / 100, 0.01, 0.1)
    found = all_of(number([1.0, 1.0]), interactions=(pair, weak))
    assert drawn_pairs(found, 4) == [pair]
    drawn = heat_map(pair, ("yes",))
    assert len(drawn["cells"]) == 4
    assert {cell["part"] for cell in drawn["cells"]} == {1.0}
    assert drawn["cells"][0]["where"] == "0 – 5, u"


def test_cells_of_a_pair_have_plain_numbers_and_short_names_stand_upright():
    grid = np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    edges = np.array([-0.12345, 1_900.4, 100_000.0])
    pair = Interaction(("k", "a"), None, edges, ("f", "t"), None, grid, 1.0, 0.5)
    drawn = heat_map(pair, ("yes",))
    assert [name["text"] for name in drawn["y_names"]] == ["−0.123 – 1,900", "1,900 – 100,000"]
    assert drawn["is_upright"]
    turned = Interaction(("a", "k"), edges, None, None, ("f", "t"), grid, 1.0, 0.5)
    assert not heat_map(turned, ("yes",))["is_upright"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1989.0, 2024.0, ["1990", "2000", "2010", "2020"]),
        (999_999.97, 1_000_000.03, ["999999.98", "1000000", "1000000.02"]),
        (1.6e9, 1.7e9, ["1.6e9", "1.625e9", "1.65e9", "1.675e9", "1.7e9"]),
        (-3e-9, 3e-9, ["−2e−9", "0", "2e−9"]),
    ],
)
def test_ticks_of_an_axis_can_be_told_apart(low, high, expected):
    made = panel(reaching(low, high))["x_ticks"]
    assert [tick["text"] for tick in made] == expected


def reaching(low, high):
    x, edges = np.linspace(low, high, 5), np.linspace(low, high, 11)
    return Effect(**vars(number(np.arange(5.0))) | {"x": x, "density_edges": edges})


def test_cells_of_a_heat_map_can_be_told_apart_by_their_names():
    edges = np.array([2001.0, 2002.0, 2003.0, 2004.0])
    pair = Interaction(("year", "sex"), edges, None, None, ("f", "m"), np.ones((1, 3, 2)), 1.0, 0.5)
    names = [one["text"] for one in heat_map(pair, ("yes",))["x_names"]]
    assert names == ["2001 – 2002", "2002 – 2003", "2003 – 2004"]


def test_a_heat_map_says_where_it_leaves_out_cells():
    def drawn(n):
        edges = np.arange(n + 1.0)
        sizes = (np.ones((1, n, 2)), 1.0, 0.5)
        return heat_map(Interaction(("a", "b"), edges, None, None, ("f", "m"), *sizes), ("yes",))

    assert not drawn(12)["is_thinned"]
    assert drawn(13)["is_thinned"]
