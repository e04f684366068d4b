"""``check_table``: every planted mistake is named with a remedy, and honest tables pass."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import geomix
from geomix import DataQualityWarning, GeometricMixtureClassifier, check_table
from geomix.table import check as check_module

N = 400


@pytest.fixture
def table():
    """An honest table: two measurements, a count and a category."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "height": rng.normal(170, 10, N).round(1),
            "income": rng.integers(1_000, 90_000, N).astype(float),
            "children": rng.integers(0, 5, N),
            "city": rng.choice(["Bern", "Basel", "Zug"], N),
        }
    )
    y = np.where(rng.random(N) < 0.5, "yes", "no")
    return X, y


def only(X, y):
    """The one finding of a table."""
    found = check_table(X, y).findings
    assert len(found) == 1, [finding.sentence for finding in found]
    return found[0]


def test_an_honest_table_has_no_findings(table):
    checked = check_table(*table)
    assert checked.findings == ()
    assert str(checked) == "400 rows, 4 columns, 2 classes: no findings"


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_public_tables_raise_no_false_alarm(load):
    assert check_table(*load(return_X_y=True, as_frame=True)).serious == ()


PLANTED = {
    "row numbers": (lambda rng: np.arange(N), "identifier"),
    "shuffled numbers": (lambda rng: rng.permutation(N) + 70_000, "identifier"),
    "customer_id": (lambda rng: rng.choice(10**9, N, replace=False), "identifier"),
    "customerId": (
        lambda rng: np.append(rng.choice(10**9, N - 9, replace=False), [7] * 9),
        "identifier",
    ),
    "uuid": (lambda rng: [f"a{i:05x}" for i in rng.permutation(N)], "identifier"),
    "amount": (lambda rng: [f"${v:,.2f}" for v in rng.uniform(1, 9e4, N)], "number text"),
    "euros": (lambda rng: [f"{v:.0f} €" for v in rng.integers(1, 30, N)], "number text"),
    "rate": (lambda rng: [f"{v}%" for v in rng.integers(1, 40, N)], "number text"),
    "grouped": (lambda rng: [f"{v:,}" for v in rng.integers(1, 9_000, N)], "number text"),
    "decimals": (lambda rng: [f"{v:.1f}" for v in rng.uniform(0, 9, N)], "number text"),
    "opened": (lambda rng: [f"2024-{v % 12 + 1:02}-{v % 28 + 1:02}" for v in range(N)], "date"),
    "closed": (lambda rng: [f"{v % 28 + 1}.{v % 12 + 1}.2024" for v in range(N)], "date"),
    "day": (lambda rng: [20_240_101 + 100 * (v % 12) + v % 28 for v in range(N)], "date"),
    "typed": (lambda rng: pd.date_range("2020-01-01", periods=N), "date"),
    "country": (lambda rng: ["CH"] * N, "constant"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_column_is_named_with_a_remedy(table, name):
    X, y = table
    make, kind = PLANTED[name]
    finding = only(X.assign(**{name: make(np.random.default_rng(0))}), y)
    assert (finding.kind, finding.columns) == (kind, (name,))
    assert repr(name) in finding.sentence
    assert "drop it" in finding.sentence or "convert it" in finding.sentence


@pytest.mark.parametrize("noise", [0.0, 0.005])
@pytest.mark.parametrize(
    "copy",
    [
        lambda y, rng: np.where(y == "yes", "won", "lost"),
        lambda y, rng: (y == "yes") * 1.0,
        lambda y, rng: (y == "yes") + 0.2 * rng.random(N),
        lambda y, rng: np.where(y == "yes", np.nan, rng.random(N)),
    ],
)
def test_a_near_copy_of_the_label_is_serious(table, copy, noise):
    X, y = table
    rng = np.random.default_rng(1)
    label = np.where(rng.random(N) < noise, "no", y)
    finding = only(X.assign(outcome=copy(label, rng)), y)
    assert (finding.kind, finding.columns, finding.is_serious) == ("label copy", ("outcome",), True)


def test_rows_sorted_by_class_make_no_column_a_copy():
    y = np.repeat([0, 1], 500)
    X = pd.DataFrame({"mostly_zero": np.where(np.arange(1000) % 97 == 0, 1.5, 0.0)})
    assert not check_table(X, y).serious


def test_text_codes_of_whole_numbers_are_categories(table):
    X, y = table
    codes = np.random.default_rng(0).integers(1, 41, N).astype(str)
    assert check_table(X.assign(soil=codes), y).findings == ()


@pytest.mark.parametrize(
    "copied",
    [lambda x: 1.8 * x + 32.0, lambda x: -x, lambda x: x.copy()],
    ids=["F", "minus", "same"],
)
def test_a_column_on_another_scale_is_a_duplicate(table, copied):
    X, y = table
    finding = only(X.assign(again=copied(X["height"])), y)
    assert (finding.kind, finding.columns) == ("duplicate", ("height", "again"))


def test_levels_with_other_names_are_a_duplicate(table):
    X, y = table
    finding = only(X.assign(canton=X["city"].map({"Bern": "BE", "Basel": "BS", "Zug": "ZG"})), y)
    assert finding.kind == "duplicate"


def test_repeated_and_contradicting_rows_are_counted(table):
    X, y = table
    twice, labels = pd.concat([X, X[:40]]), np.r_[y, y[:40]]
    assert "40 of 440 rows (9.1%) repeat another row" in only(twice, labels).sentence
    labels[-40:] = np.where(labels[-40:] == "yes", "no", "yes")
    assert "40 of 440 rows have the cells of another row" in only(twice, labels).sentence


def test_classes_of_a_few_rows_are_named(table):
    X, y = table
    y = y.astype(object)
    y[:3] = "maybe"
    finding = only(X, y)
    assert finding.kind == "few rows"
    assert "Class 'maybe' (3)" in finding.sentence


def test_fit_warns_of_serious_findings_alone(table):
    X, y = table
    dirty = X.assign(constant=1.0, amount=[f"${v:,.0f}" for v in X["income"]])
    with pytest.warns(DataQualityWarning) as caught:
        clf = GeometricMixtureClassifier(lift="linear", n_planes=1, random_state=0).fit(dirty, y)
    assert [str(one.message)[:15] for one in caught] == ["Column 'amount'"]
    assert clf.table_check_ == check_table(dirty, y)


def test_a_sample_of_a_long_table_is_enough(table, monkeypatch):
    monkeypatch.setattr(check_module, "MOST_ROWS", 150)
    X, y = table
    checked = check_table(X.assign(nr=np.arange(N)), y)
    assert [finding.kind for finding in checked.findings] == ["identifier"]
    assert "(150 rows looked at)" in str(checked)


def test_arrays_and_sparse_matrices_are_checked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), rng.integers(0, 2, N)
    X[:, 1] = 4.0
    assert only(X, y).sentence == "Column 'x1' is constant; drop it."
    assert check_table(scipy.sparse.csr_matrix(X), y).findings == ()


def test_a_check_prints_as_text_html_and_json(table):
    X, y = table
    checked = check_table(X.assign(**{"<b>": 1}), y)
    assert "&lt;b&gt;" in checked._repr_html_()
    assert json.loads(json.dumps(checked.to_dict()))["findings"][0]["kind"] == "constant"
    assert "- Column '<b>' is constant; drop it." in str(checked)


def test_check_table_needs_no_fit_and_gives_no_warning(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(geomix.check_table(*table), check_module.TableCheck)


@pytest.mark.parametrize("X", [np.arange(4.0), np.zeros((2, 2, 2)), np.float64(3.0)], ids=repr)
def test_what_is_no_table_is_refused_with_the_remedy(X):
    with pytest.raises(ValueError, match=r"Expected 2D array, got X of shape .*reshape\(-1, 1\)"):
        check_table(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="X holds rows of different lengths"):
        check_table([[1, 2], [3]], [0, 1])


def test_a_check_without_labels_is_refused(table):
    with pytest.raises(ValueError, match="Got y=None; expected one label for each row of X"):
        check_table(table[0], None)
