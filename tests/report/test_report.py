"""The report: its figures are true, its script is the model, and no name in it does harm."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics
from pair_models import paired
from reading_models import fitted, mixed_table
from saved_models import MAKERS, case, exported_rows
from scipy.stats import binomtest
from sklearn.datasets import load_wine

import geomix.report
from geomix import GeometricMixtureClassifier
from geomix.core.calibration import expected_calibration_error
from geomix.explain.cells import encoded_rows
from geomix.report import metrics, report_html
from geomix.report.page import embedded_json
from geomix.report.sample import cell_oddness, sampled_rows
from geomix.table.frames import taken

SLOW = pytest.param("committee", marks=pytest.mark.slow)  # as "mixed committee", of more planes
LIFTS = ["several", SLOW, "mixed linear", "mixed committee", "mixed fourier"]
HOSTILE = [
    "<script>window.pwned = 1</script>",
    "</script><img src=x onerror='window.pwned = 1'>",
    "\"quotes\" & 'single' `ticks` {{ 7 * 7 }} ${1}",
    "\x1b[31mred\x1b[0m\x00",
    "naïve – 数 \u202eright to left",
]


def opened(browser, model, X, y, path, **options):
    """A report, written and open; without counterfactuals, which take most of the time, unless
    a test needs them."""
    model.report(X, y, path, **{"n_counterfactuals": 0, **options})
    browser.open(path)
    return browser


def probabilities_of(model, cells):
    """Python's answer for the cells that the page holds."""
    encoded = np.array([[np.nan if cell is None else float(cell) for cell in cells]])
    return model.answer("predict_proba", encoded)[0]


def same_answer(browser, model):
    np.testing.assert_allclose(
        browser.run("geomix.probabilities()"),
        probabilities_of(model, browser.run("geomix.cells()")),
        atol=1e-9,
    )


# --- the living page ---


@pytest.mark.parametrize("name", LIFTS)
def test_every_row_and_every_control_gives_what_python_gives(browser, tmp_path, name):
    model, X, y = fitted(name)
    page = opened(browser, model, X, y, tmp_path / "report.html", n_counterfactuals=2)
    encoded = encoded_rows(model, X)
    rows = page.run("reading.rows.map((row) => row.place)")
    assert len(rows) == 48
    for i, place in enumerate(rows[::6]):
        page.run(
            f"(() => {{ const menu = byId('row'); menu.value = '{6 * i}'; "
            "menu.dispatchEvent(new Event('change')); })()"
        )
        cells = [None if np.isnan(cell) else cell for cell in encoded[place]]
        assert page.run("geomix.cells()") == cells
        same_answer(page, model)
    n_controls = page.run("document.querySelectorAll('#controls input, #controls select').length")
    for i in range(n_controls):
        page.run(
            f"""(() => {{
              const one = document.querySelectorAll('#controls input, #controls select')[{i}];
              if (one.type === 'checkbox') one.checked = !one.checked;
              else if (one.type === 'range') one.value = String((+one.min + 3 * +one.max) / 4);
              else if (one.type === 'number') one.value = '1.25';
              else one.selectedIndex = {i} % one.options.length;
              one.dispatchEvent(new Event('input'));
              one.dispatchEvent(new Event('change'));
            }})()"""
        )
        same_answer(page, model)
    said = page.run("document.querySelector('#answer .label').textContent")
    P = probabilities_of(model, page.run("geomix.cells()"))
    assert said == str(model.classes[P.argmax()])
    assert page.problems == []
    assert page.requests == [(tmp_path / "report.html").as_uri()]


def test_the_keyboard_moves_a_slider(browser, tmp_path):
    model, X, y = fitted("several")
    page = opened(browser, model, X, y, tmp_path / "report.html")
    page.run("document.querySelector('#controls input[type=range]').focus()")
    before = page.run("geomix.cells()")
    for _ in range(3):
        page.press("ArrowRight", 39)
    after = page.run("geomix.cells()")
    moved = [j for j, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert moved == [page.run("reading.order[0]")]
    assert after[moved[0]] > before[moved[0]]
    same_answer(page, model)


def test_every_control_has_a_name_for_those_who_hear_the_page(browser, tmp_path):
    model, X, y = fitted("mixed linear")
    page = opened(browser, model, X, y, tmp_path / "report.html")
    nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
    roles = ("slider", "combobox", "spinbutton", "button", "checkbox", "link", "image", "img")
    parts = [node for node in nodes if node.get("role", {}).get("value") in roles]
    assert {node["role"]["value"] for node in parts} >= {"slider", "combobox", "spinbutton"}
    assert len([node for node in parts if node["role"]["value"] in ("image", "img")]) > 10
    assert [node for node in parts if not node.get("name", {}).get("value")] == []


def test_the_nearest_row_of_another_class_is_one_and_as_far_as_said(browser, tmp_path):
    model, X, y = fitted("several")
    page = opened(browser, model, X, y, tmp_path / "report.html", n_counterfactuals=4)
    before, label = page.run("geomix.cells()"), page.run("answer(model, state.cells).code")
    told = page.run("state.row.counterfactual")
    page.run("document.querySelector('#reasons button').click()")
    after = page.run("geomix.cells()")
    assert probabilities_of(model, after).argmax() != label
    distance = np.linalg.norm((np.array(after) - before) / page.run("units"))
    assert distance == pytest.approx(told["distance"], rel=1e-6)
    assert told["lower_bound"] <= told["distance"] * (1 + 1e-6)


def test_names_stay_text(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(HOSTILE[:3])[rng.integers(0, 3, 240)]
    X = pd.DataFrame({name: rng.normal(size=240) for name in HOSTILE})
    X["level"] = [
        label if rng.random() < 0.7 else HOSTILE[i % 5] for i, label in enumerate(y.tolist())
    ]
    X = X.rename(columns={"level": "<b onmouseover=alert(1)>bold</b>"})
    settings = {"lift": "spline", "n_planes": 1, "l2": 1e-3, "shrink_to_mean": 0.0, "max_iter": 30}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    page = opened(browser, model, X, y, tmp_path / "report.html", title=HOSTILE[0], X_new=X[:50])
    same_answer(page, model)
    assert page.run("typeof window.pwned") == "undefined"
    assert page.run("document.querySelectorAll('img, iframe, b, script[src]').length") == 0
    assert page.run("document.scripts.length") == 2
    assert page.run("document.title") == HOSTILE[0]
    text = page.run("document.body.innerText")
    assert HOSTILE[0] in text
    assert "49" not in page.run(
        "document.querySelector('#controls').innerText.match(/{{[^}]*}}/)[0]"
    )
    assert not any(sign in text for sign in ("\x1b", "\u202e"))
    raw = dict.fromkeys(X.columns) | {HOSTILE[0]: 0.5}
    expected = model.predict_proba(pd.DataFrame([raw], columns=X.columns).astype(X.dtypes))
    asked = page.run(f"geomix.predictProba({embedded_json(raw)})")
    np.testing.assert_allclose(asked, expected[0], atol=1e-9)
    assert page.problems == []


def test_the_page_runs_no_other_script_and_reaches_no_network(browser, tmp_path):
    model, X, y = fitted("linear")
    page = opened(browser, model, X, y, tmp_path / "report.html")
    page.run(
        "document.body.insertAdjacentHTML('beforeend', "
        '\'<img src="data:image/png;base64,x" onerror="window.pwned = 1">\')'
    )
    page.run(
        "document.body.append(Object.assign(document.createElement('script'), "
        "{textContent: 'window.pwned = 2'}))"
    )
    fetched = page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    page.run("new Promise((done) => setTimeout(done, 100))")
    assert page.run("typeof window.pwned") == "undefined"
    assert fetched == "TypeError"
    refused = [text for text in page.problems if "Content Security Policy" in str(text)]
    assert len(refused) >= 3


def test_effects_show_values_under_the_pointer_and_can_be_enlarged(browser, tmp_path):
    model, X, y = fitted("mixed spline")
    page = opened(browser, model, X, y, tmp_path / "report.html", n_counterfactuals=0)
    page.run(
        """(() => {
          const panel = document.querySelector("svg.panel[data-column]");
          panel.scrollIntoView();
          const box = panel.querySelector(".frame").getBoundingClientRect();
          const place = { clientX: box.left + box.width / 2, clientY: box.top + 5, bubbles: true };
          panel.dispatchEvent(new PointerEvent("pointermove", place));
        })()"""
    )
    column, x = page.run("document.querySelector('.tip').innerText").splitlines()[0].split(" = ")
    effect = model.effects(X)[column]
    assert effect.x[0] <= float(x) <= effect.x[-1]
    shown = page.run("document.querySelector('.tip').innerText").splitlines()[1]
    nearest = np.abs(effect.x - float(x)).argmin()
    value = float(shown.split(": ")[-1].split(" ")[0])
    assert value == pytest.approx(effect.values[0, nearest], abs=0.006)
    before = page.run("document.querySelector('#effects figure svg').clientWidth")
    page.run("document.querySelector('button.zoom').click()")
    assert page.run("document.querySelector('#effects figure svg').clientWidth") > 1.5 * before
    page.run("byId('common-scale').click()")
    moved = page.run("document.querySelectorAll('g.moved[transform]').length")
    assert moved == page.run("document.querySelectorAll('g.moved').length") > 0
    assert page.problems == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_stays_in_view_while_the_last_slider_moves(browser, tmp_path, width):
    model, X, y = fitted("mixed spline")
    page = opened(browser, model, X, y, tmp_path / "report.html", n_counterfactuals=0)
    page.screenshot(tmp_path / "page.png", width=width, height=600)
    page.run(
        "[...document.querySelectorAll('#controls tbody tr')].at(-1)"
        ".scrollIntoView({block: 'end', behavior: 'instant'})"
    )
    top, height = page.run(
        "(() => { const box = byId('answer').getBoundingClientRect();"
        " return [box.top, window.innerHeight]; })()"
    )
    assert 0 <= top < height
    assert page.run("state.row.kind") == "Typical"


def test_planes_are_shown_where_a_class_has_several():
    assert 'id="planes"' not in report_html(*fitted("linear"), n_rows=0)
    assert 'id="planes"' in report_html(*fitted("several"), n_rows=0)


def test_the_data_check_is_at_the_top():
    model, X, y = fitted("mixed linear")
    html = report_html(model, X, y, n_rows=0)
    assert html.index("Data check") < html.index('id="columns"') < html.index('id="quality"')
    assert html.index('id="columns"') < html.index('id="planes"')


def test_light_dark_narrow_and_on_paper(browser, tmp_path):
    model, X, y = fitted("mixed spline")
    page = opened(browser, model, X, y, tmp_path / "report.html")

    def brightness():
        text = page.run("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in text[4:-1].split(","))

    page.screenshot(tmp_path / "dark.png", width=360, height=600, dark=True)
    assert brightness() < 150
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.screenshot(tmp_path / "light.png", width=1100, height=600)
    assert brightness() > 700
    page.ask("Emulation.setEmulatedMedia", media="print")
    assert not page.run("document.querySelector('#controls input[type=range]').checkVisibility()")
    page.ask("Emulation.setEmulatedMedia", media="")
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


# --- figures and sentences ---


def test_measures_are_scikit_learns():
    model, X, y = fitted("mixed linear")
    P, codes = model.predict_proba(X), np.searchsorted(model.classes, y)
    found = metrics.evaluate(P, P.argmax(axis=1), codes)
    given = P.argmax(axis=1)
    expected = {
        "accuracy": sklearn.metrics.accuracy_score(codes, given),
        "balanced accuracy": sklearn.metrics.balanced_accuracy_score(codes, given),
        "macro F1": sklearn.metrics.f1_score(codes, given, average="macro"),
        "ROC area": sklearn.metrics.roc_auc_score(codes, P, multi_class="ovr"),
        "log-loss": sklearn.metrics.log_loss(codes, P),
        "calibration error": expected_calibration_error(P, codes),
    }
    for name, value in expected.items():
        assert found.metric(name).value == pytest.approx(value, abs=1e-12)
    np.testing.assert_array_equal(found.confusion, sklearn.metrics.confusion_matrix(codes, given))
    interval = binomtest(found.n_right, found.n_rows).proportion_ci(method="wilson")
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(tuple(interval))


@pytest.mark.parametrize("most", [100_000, 1000])
def test_intervals_are_as_wide_as_theory_says_for_a_mean(monkeypatch, most):
    monkeypatch.setattr(metrics, "MOST_ROWS_TO_RESAMPLE", most)
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1.0, 1.0], 4000)
    y = (rng.random(4000) < P[:, 1]).astype(int)
    loss = metrics.evaluate(P, P.argmax(axis=1), y).metric("log-loss")
    losses = -np.log(P[np.arange(4000), y])
    assert loss.high - loss.low == pytest.approx(2 * 1.96 * losses.std() / np.sqrt(4000), rel=0.25)
    assert loss.low < loss.value < loss.high


def test_measures_of_a_class_without_rows_and_of_one_row():
    P = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]])
    found = metrics.evaluate(P, np.array([0, 0]), np.array([0, 1]))
    assert found.metric("balanced accuracy").value == 0.5
    assert found.n_right == 1
    alone = metrics.evaluate(P[:1], np.array([0]), np.array([0]))
    assert "ROC area" not in [metric.name for metric in alone.metrics]


def test_rows_are_chosen_for_what_their_headings_say():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 1.0, 1.0], 500)
    y, given = rng.integers(0, 3, 500), P.argmax(axis=1)
    rows = sampled_rows(P, given, y, 40)
    places = [row.place for row in rows]
    assert len(places) == len(set(places)) == 40
    kinds = {row.kind: [one.place for one in rows if one.kind == row.kind] for row in rows}
    ranked = np.sort(P, axis=1)
    lead = ranked[:, -1] - ranked[:, -2]
    top = P.max(axis=1)
    assert rows[0].kind == "Typical"  # the page opens on it
    typical = kinds["Typical"]
    assert (given[typical] == y[typical]).all()
    assert set(y[typical]) == {0, 1, 2}
    for place in typical[:3]:
        own = top[(given == y) & (y == y[place])]
        assert abs(top[place] - np.median(own)) == np.abs(own - np.median(own)).min()
    wrong = np.flatnonzero(given != y)
    assert set(kinds["Surprising"]) == set(wrong[np.argsort(-top[wrong])][:8])
    assert (given[kinds["Wrong"]] != y[kinds["Wrong"]]).all()
    assert len(set(kinds["Unsure"]) & set(np.argsort(lead)[:16])) == 8
    assert sampled_rows(P, given, y, 0) == ()


def test_a_typical_row_has_the_usual_cells_of_its_class():
    rng = np.random.default_rng(0)
    encoded = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200)]).astype(float)
    encoded[:150, 1] = 2.0
    encoded[7] = [9.0, 0.0]
    odd = cell_oddness(encoded, [False, True], np.zeros(200, dtype=int))
    assert odd.argmax() == 7
    assert encoded[odd.argmin(), 1] == 2.0


def test_the_summary_tells_the_figures():
    model, X, y = fitted("mixed linear")
    html = report_html(model, X, y, n_counterfactuals=0)
    share = (model.predict(X) == y).mean()
    assert f"Of 178 predictions {100 * share:.1f}\xa0% are correct" in html
    assert "GMX001" in html  # the idle planes that explain_global finds too
    assert {one.code for one in model.explain_global(X, y).findings} == {"GMX001"}
    silent = report_html(model, X, y, ignore=["GMX001"], n_counterfactuals=0)
    assert "GMX001" not in silent


def test_the_summary_counts_the_pairs_of_columns():
    model, X, y = paired("two planes")
    html = unescape(report_html(model, X, y, n_rows=0))
    assert f"a table for each of {model.lift.n_pairs} pairs of columns" in html
    model, X, y = fitted("mixed linear")
    assert "a table for" not in report_html(model, X, y, n_rows=0)


def test_only_scores_that_are_sums_over_columns_are_called_so():
    told = "its score is a sum over the columns"
    model, X, y = fitted("mixed fourier")
    html = report_html(model, X, y, n_rows=0)
    assert "Each class has one plane" in html
    assert told not in html
    assert told in report_html(*fitted("spline"), n_rows=0)


def test_a_wide_table_does_not_fill_the_page_with_names(rng):
    X = rng.normal(size=(80, 60))
    settings = {"lift": "spline", "n_planes": 1, "l2": 0.1, "random_state": 0}
    clf = GeometricMixtureClassifier(**settings).fit(X, X[:, 0] > 0.0)
    html = report_html(clf.model_, X, X[:, 0] > 0.0, n_rows=0)
    lines = re.findall(r"(?:with smaller effects|Without any effect): (.*?)</p>", html)
    assert lines
    assert all(line.count("x") <= 24 for line in lines)
    assert any(re.search(r"x\d+ and \d+ more\.$", line) for line in lines)


def test_drift_is_told_where_there_is_later_data():
    model, X, y = fitted("mixed linear")
    assert 'id="drift"' not in report_html(model, X, y, n_rows=0)
    moved = X.assign(alcohol=X["alcohol"] + 1.0)
    html = report_html(model, X, y, X_new=moved, n_rows=0)
    drift = model.compare(X, moved)
    assert drift.p_value < 0.01
    assert "more than chance explains" in html
    assert f"G = {drift.g:.4g} with {drift.degrees} degrees" in html
    assert "much the same shares" in report_html(model, X, y, X_new=X, n_rows=0)


def test_approximations_are_called_so():
    for name in ("fourier", "mixed fourier"):
        html = report_html(*fitted(name), n_rows=8)
        assert "local approximations" in html


# --- the file ---


@pytest.mark.parametrize("name", LIFTS)
def test_a_report_is_small_and_the_same_every_time(name):
    model, X, y = fitted(name)
    html = report_html(model, X, y, n_counterfactuals=4)
    assert len(html.encode()) < 1_000_000
    assert html == report_html(model, X, y, n_counterfactuals=4)


def test_conditions_of_rules_are_shown_as_they_are_written():
    model, X, y = fitted("several")
    html = report_html(model, X, y, n_rows=8, n_counterfactuals=0)
    shown = [str(one) for rule in model.rules(X, y) for one in rule.conditions]
    numbers = [one for one in shown if " <= " in one or " > " in one]
    assert numbers
    assert "\\xa0" not in html
    page = unescape(html).replace("\xa0", " ")
    assert any(one in page for one in numbers)


def test_rows_may_come_in_any_kind_of_table():
    X, y = mixed_table()
    model, _, _ = fitted("mixed linear")
    options = {"n_rows": 8, "n_counterfactuals": 2}
    expected = report_html(model, X, y, **options)
    X = X.assign(colour=X["colour"].astype(str))
    table = pl.from_pandas(X)
    assert report_html(model, table, y, **options) == expected
    assert report_html(model, table.to_arrow(), y, **options) == expected
    numbers, X, y = fitted("several")
    expected = report_html(numbers, X, y, **options)
    assert report_html(numbers, X.tolist(), y, **options) == expected
    assert taken(X.tolist(), np.array([3])).tolist() == X[3:4].tolist()


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_kind_of_model_and_odd_rows_make_a_report(browser, tmp_path, name):
    model, rows = case(name).model, exported_rows(name)
    rows = rows[[all(abs(x) < 1e6 for x in row if isinstance(x, float)) for row in rows.tolist()]]
    y = model.predict(rows)
    page = opened(browser, model, rows, y, tmp_path / "report.html", n_counterfactuals=6)
    same_answer(page, model)
    page.run("(byId('row').value = 'middle', byId('row').dispatchEvent(new Event('change')))")
    same_answer(page, model)
    text = page.run("document.body.innerText")
    assert "NaN" not in text
    assert "undefined" not in text
    assert page.problems == []


@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_few_rows_and_rows_of_one_class_make_a_report(n_rows):
    model, X, y = fitted("spline")
    html = report_html(model, X[:n_rows], y[:n_rows], X_new=X)
    assert "nan" not in html.split("<script", 1)[0]


def test_without_rows_the_page_carries_none():
    model, X, y = fitted("several")
    html = report_html(model, X, y, n_rows=0)
    assert '"rows":[]' in html
    assert '"counterfactual"' not in html


def test_a_model_too_large_for_a_page_is_left_out_and_that_is_said(monkeypatch):
    monkeypatch.setattr(geomix.report, "LARGEST_MODEL", 100)
    html = report_html(*fitted("linear"))
    assert "too large to be carried by a page" in html
    assert "<script" not in html
    assert "script-src 'none'" in unescape(html)


def test_a_report_that_fails_leaves_the_old_file(tmp_path):
    model, X, y = fitted("linear")
    path = tmp_path / "report.html"
    path.write_text("the old one")
    with pytest.raises(ValueError, match="one label per row"):
        model.report(X, y[:-1], path)
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("option", ["n_rows", "n_counterfactuals"])
@pytest.mark.parametrize("value", [-1, 2.5, True])
def test_options_are_checked_at_the_door(option, value):
    with pytest.raises(ValueError, match=f"Got {option}={value}; expected an integer"):
        report_html(*fitted("linear"), **{option: value})


def test_json_in_the_page_cannot_end_its_element():
    assert "<" not in embedded_json({"</script>": ["<!--", "&lt;", "\u2028"]})


def test_without_jinja_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'geomix\[report\]'"):
        report_html(*fitted("linear"), n_rows=0)


def test_geomix_itself_does_not_load_jinja():
    code = "import sys, geomix; assert not {'jinja2', 'geomix.report'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_report_shows_the_price_of_readability():
    X, y = load_wine(return_X_y=True)
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    page = report_html(clf.model_, X, y, n_counterfactuals=0)
    assert "The price of readability" in page
    assert all(one.family in page for one in clf.history_.choice.results)
    alone = replace(clf.model_, training=None)
    assert "The price of readability" not in report_html(alone, X, y, n_counterfactuals=0)


def choice_of(verdict, n_planes):
    row = ["spline", "0.1000", "0.9000", n_planes, 0, 40, 100, verdict]
    return [["linear", "0.2000", "0.8000", 3, 0, 40, 100, "behind by 0.1"], row]


@pytest.mark.parametrize("verdict", ["chosen", "chosen, with linear added"])
def test_the_chosen_family_stands_out_in_the_price_of_readability(verdict):
    X, y = load_wine(return_X_y=True)
    model = GeometricMixtureClassifier(lift="linear", n_planes=2, l2=1e-3).fit(X, y).model_
    n_planes = model.planes.n_planes
    known = replace(model, training={"choice": choice_of(verdict, n_planes + 2)})
    page = report_html(known, X, y, n_counterfactuals=0)
    assert page.count('<tr class="chosen">') == 1
    assert "2 of the chosen planes were removed" in page
    same = replace(model, training={"choice": choice_of(verdict, n_planes)})
    assert "removed" not in report_html(same, X, y, n_counterfactuals=0)


@pytest.mark.parametrize("choice", [7, "chosen", [3, "ab"], [["spline", None]], {"a": 1}])
def test_a_choice_that_is_no_table_is_left_out_of_the_report(choice):
    X, y = load_wine(return_X_y=True)
    model = GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3).fit(X, y).model_
    odd = replace(model, training={"choice": choice})
    assert "The price of readability" not in report_html(odd, X, y, n_counterfactuals=0)
