"""A page on odd tables: names without a space, letters from right to left, large and tiny numbers,
more classes than colours, a single column."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from pair_models import paired
from reading_models import fitted

from geomix import GeometricMixtureClassifier
from geomix.report import metrics, report_html
from geomix.table.printing import SmallTable, both_ends, distinct_numbers, left_to_right, shown

LONG = "a_column_with_a_name_that_has_no_space_and_is_longer_than_a_telephone_is_wide"
ARABIC, HEBREW = "الدخل الشهري", "מחלקה"


def model_of(X, y):
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    return GeometricMixtureClassifier(**settings).fit(X, y).model_


@pytest.fixture(scope="module")
def odd():
    """Model, rows and labels of a table with such names and numbers."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            LONG: rng.normal(size=n),
            ARABIC: rng.normal(size=n),
            "offset": 1e6 + 0.01 * rng.normal(size=n),
            "huge": 1e9 * rng.normal(size=n) + 3e9,
            "tiny": 1e-9 * rng.normal(size=n),
            "number": rng.choice([20_991_301, 20_991_399, 20_991_499, 20_999_999], n),
            "town": rng.choice([f"a long name of a town, number {i}" for i in range(3)], n),
        }
    )
    X.iloc[::7, 1] = np.nan
    score = X[LONG] + X[ARABIC].fillna(0.0) + 100 * (X["offset"] - 1e6) + 1e9 * X["tiny"]
    y = np.array([HEBREW, "b"])[(score + rng.logistic(size=n) > 0).astype(int)]
    return model_of(X, y), X, y


def opened(browser, model, X, y, path, width=1280):
    model.report(X, y, path)
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=844,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.open(path)
    return browser


def too_wide(page, what):
    """Texts of the elements that are wider than their room."""
    return page.run(
        f"[...document.querySelectorAll('{what}')].filter("
        "(one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.value ?? one.innerText)"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_and_numbers_are_not_cut(browser, tmp_path, odd, width):
    page = opened(browser, *odd, tmp_path / "report.html", width)
    assert too_wide(page, ".inputs") == []
    assert too_wide(page, "section#rules .scroll") == []
    assert too_wide(page, "#controls input[type=number]") == []
    assert page.run("document.documentElement.scrollWidth") == width


def test_a_number_and_its_slider_stand_side_by_side(browser, tmp_path, odd):
    page = opened(browser, *odd, tmp_path / "report.html")
    lines = page.run(
        "[...document.querySelectorAll('#controls .value')].filter((one) => one.children[1]).map("
        "(one) => Math.abs(one.children[0].getBoundingClientRect().top"
        " - one.children[1].getBoundingClientRect().top))"
    )
    assert len(lines) == 6
    assert max(lines) < 20


@pytest.mark.parametrize(
    ("x", "unit", "text"),
    [
        ("1000000.0123", 0.01, "1000000.012"),
        ("999999.5", 100, "1000000"),
        ("20240101", 4000, "20240101"),
        ("2013", 10, "2013"),
        ("-1.234567e-9", 1e-9, "−1.23e−9"),
        ("3.141592e9", 1e9, "3.14e9"),
        ("-0.123456", 1, "−0.1235"),
        ("0", 1, "0"),
    ],
)
def test_numbers_have_the_digits_that_their_column_needs(browser, tmp_path, odd, x, unit, text):
    page = opened(browser, *odd, tmp_path / "report.html")
    shown = page.run(f"columnNumber({x}, {unit})")
    assert shown == text
    assert float(page.run(f"fieldNumber({x}, {unit})")) == pytest.approx(float(x), abs=unit / 10)


def test_a_field_is_rounded_and_its_row_is_not(browser, tmp_path, odd):
    model, X, y = odd
    page = opened(browser, model, X, y, tmp_path / "report.html")
    assert page.run("geomix.cells()") == page.run("reading.rows[0].cells")
    fields = page.run(
        "[...document.querySelectorAll('#controls input[type=number]')].map((one) => one.value)"
    )
    assert max(map(len, fields)) <= 12


def test_the_changed_cells_of_a_counterfactual_differ_as_shown(browser, tmp_path, odd):
    page = opened(browser, *odd, tmp_path / "report.html")
    changes = page.run("[...document.querySelectorAll('.changes li')].map((one) => one.innerText)")
    assert changes
    for change in changes:
        before, after = change.split(": ", 1)[1].split(" → ")
        assert before != after


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([[0, 1]], "0.5 standard deviations"),
        ([[6, 1]], "one changed level"),
        ([[0, 1], [6, 1]], "0.5 standard deviations and changed levels"),
    ],
)
def test_a_distance_is_told_in_the_units_of_what_changes(browser, tmp_path, odd, changes, told):
    page = opened(browser, *odd, tmp_path / "report.html")
    assert page.run(f"distanceText(0.5, {changes})") == told


def test_a_name_from_right_to_left_moves_no_number(browser, tmp_path, odd):
    assert left_to_right(f"{ARABIC} >= 2") == f"{ARABIC}\u200e >= 2"
    assert left_to_right("plain >= 2") == "plain >= 2"
    page = opened(browser, *odd, tmp_path / "report.html")
    rules = page.run("[...document.querySelectorAll('.condition')].map((one) => one.textContent)")
    named = [rule for rule in rules if ARABIC in rule]
    assert named
    assert all(f"{ARABIC}\u200e" in rule for rule in named)
    options = page.run("[...byId('row').options].map((one) => one.textContent)")
    assert any(f"{HEBREW}\u200e (" in option for option in options)


def test_the_ninth_class_has_not_the_colour_of_the_first(browser, tmp_path, odd):
    page = opened(browser, *odd, tmp_path / "report.html")
    colours = page.run("[...Array(24).keys()].map(classColour)")
    assert len(set(colours)) == 24
    assert colours[8].split()[0] == colours[0]


def test_long_levels_are_told_apart_by_their_ends(odd):
    html = unescape(report_html(*odd, n_rows=0))
    names = re.findall(r">([^<>]*)<title>a long name of a town", html)
    assert sorted(names) == [f"a long n…umber {i}" for i in range(3)]
    assert both_ends("abcdefghij", 5) == "ab…ij"
    assert both_ends("abcde", 5) == "abcde"


def test_one_column_has_no_switch_for_one_scale(browser, tmp_path, rng):
    X = pd.DataFrame({"age": rng.normal(size=80)})
    model = model_of(X, X["age"] > 0)
    page = opened(browser, model, X, X["age"] > 0, tmp_path / "report.html")
    assert page.run("byId('common-scale')") is None
    assert page.problems == []
    assert page.run("byId('answer').innerText") != ""


def test_no_single_other_column_has_a_line_of_its_own_name(browser, tmp_path, rng):
    X = rng.normal(size=(80, 8))
    y = X.sum(axis=1) > 0
    page = opened(browser, model_of(X, y), X, y, tmp_path / "report.html")
    names = page.run("[...document.querySelectorAll('.waterfall .name')].map((one) => one.title)")
    assert not [name for name in names if "other column" in name]
    assert len(names) == 10


def test_classes_that_are_not_drawn_are_counted_and_no_more():
    X = np.random.default_rng(0).normal(size=(240, 2))
    y = np.arange(240) % 8
    html = unescape(report_html(model_of(X, y), X, y, n_rows=0))
    assert "(2 more classes not drawn)" in html


def test_the_summary_names_what_a_plane_is_made_of():
    html = unescape(report_html(*fitted("spline"), n_rows=0))
    assert "(a curve for each number)" in html
    model, X, y = paired("two planes")
    assert "a curve for each number and a table for" in unescape(report_html(model, X, y, n_rows=0))


def test_the_interval_of_the_calibration_error_holds_it():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 1.0, 1.0], 400)
    y = np.array([rng.choice(3, p=row) for row in P])
    for rows in (slice(None), slice(40)):
        found = metrics.evaluate(P[rows], P[rows].argmax(axis=1), y[rows])
        assert all(one.low <= one.value <= one.high for one in found.metrics)


# --- tables in a terminal ---


def test_columns_of_wide_letters_stand_in_line():
    table = SmallTable("t", ("column", "value"), (("收入", 1.0), ("😀 mood", 2.0), ("plain", 3.0)))
    lines = str(table).splitlines()[1:]
    assert lines[1] == "  收入     1"
    assert lines[2] == "  😀 mood  2"
    assert lines[3] == "  plain    3"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (46_741.23456, "46741.23"),
        (1_000_000.01, "1000000.01"),
        (20_221_206.0, "20221206"),
        (2_116_123_456.7, "2116123457"),
        (-12_345.0, "-12345"),
        (1.5e15, "1.5e+15"),
        (0.123456, "0.1235"),
        (1234.56, "1235"),
        (float("inf"), "inf"),
    ],
)
def test_large_numbers_are_written_out(number, text):
    assert shown(number) == text


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([1.0, 1.0], ["1", "1"]),
        ([1_000_000.0, 1_000_000.02], ["1000000", "1000000.02"]),
        ([2000.0, 50_000.0], ["2000", "50,000"]),
        ([float("nan"), float("inf")], ["nan", "inf"]),
    ],
)
def test_numbers_of_an_axis_differ_where_they_differ(numbers, texts):
    assert distinct_numbers(numbers) == texts
