"""What reads a row shows its cells as they were given, also levels that the model does not know."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from geomix import GeometricMixtureClassifier
from geomix.plots import CounterfactualDisplay, WaterfallDisplay

FIXED = {"lift": "spline", "n_planes": 1, "random_state": 0}
KINDS = {
    "frame": lambda row: pd.DataFrame([row]),
    "Series": pd.Series,
    "dict": dict,
    "list": lambda row: list(row.values()),
    "array": lambda row: np.array([list(row.values())], dtype=object),
    "polars": lambda row: pl.DataFrame([row]),
    "arrow": lambda row: pa.Table.from_pylist([row]),
    "stream": lambda row: pa.Table.from_pylist([row]).to_reader(),
}


@pytest.fixture(scope="module")
def model():
    """A missing colour counts much, and rare shops are pooled as "(other)"."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=600), "colour": rng.choice([None, "p", "q"], 600)})
    X["shop"] = rng.choice([10, 20], 600)
    X.loc[:2, "shop"] = [30, 40, 50]
    X["shop"] = pd.Categorical(X["shop"])
    y = X["size"] + 3 * X["colour"].isna() + rng.normal(size=600) * 0.3 > 1
    model = GeometricMixtureClassifier(**FIXED).fit(X, y.astype(int)).model_
    colour, shop = model.schema.columns[1:]
    assert not colour.has_other
    assert shop.has_other
    return model


ROW = {"size": 2.0, "colour": "new", "shop": 77}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [None, 1])
def test_a_row_with_unknown_levels_has_a_counterfactual_of_the_target(model, kind, sparse):
    found = model.counterfactual(KINDS[kind](ROW), 0, immutable=["colour"], sparse=sparse)
    assert found.before == ROW
    assert found.after["colour"] == "new"
    assert "colour" not in found.changes
    assert model.predict(found.after)[0] == 0
    probability = model.predict_proba(found.after)[0, 0]
    assert probability == pytest.approx(found.probability, abs=1e-12)


def test_an_unknown_level_that_changes_is_shown_as_it_was(model):
    ranges = {"size": (2.0, 2.0), "colour": ["p", "q"]}
    found = model.counterfactual(ROW, 1, ranges=ranges)
    assert found.changes["colour"][0] == "new"
    assert found.after["colour"] in ("p", "q")


@pytest.mark.parametrize("kind", KINDS)
def test_thresholds_name_the_cell_of_the_row(model, kind):
    assert model.thresholds(KINDS[kind](ROW), "colour").value == "new"
    assert model.thresholds(ROW | {"shop": 10}, "shop").value == 10
    assert model.thresholds(ROW | {"colour": None}, "colour").value is None


TABLES = {
    "frame": pd.DataFrame,
    "lists": lambda rows: [list(row.values()) for row in rows],
    "polars": pl.DataFrame,
    "arrow": pa.Table.from_pylist,
    "stream": lambda rows: pa.Table.from_pylist(rows).to_reader(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_an_explanation_shows_unknown_levels_as_they_were_given(model, kind):
    rows = [ROW | {"colour": "p"}, ROW | {"shop": 10}, ROW | {"colour": None}, ROW]
    told = model.explain_local(TABLES[kind](rows))
    assert list(told.cells) == rows
    assert told.to_dict()["rows"][3]["cells"]["colour"] == "new"
    assert "missing" in str(told[2])
    assert "missing" not in str(told[3])


def test_a_waterfall_tells_an_unknown_level_from_a_missing_cell(model):
    def names(row):
        return set(WaterfallDisplay.from_model(model, row).frame()["name"])

    assert {"colour = new", "shop = 77"} <= names(ROW)
    assert {"colour = missing", "shop = 10"} <= names(ROW | {"colour": None, "shop": 10})


def test_the_way_of_a_row_with_an_unknown_level_ends_at_its_counterfactual(model):
    display = CounterfactualDisplay.from_model(model, ROW, 0, immutable=["colour"])
    before, after = (model.predict_proba(one)[0] for one in (ROW, display.found.after))
    np.testing.assert_allclose(display.probabilities[0], before, atol=1e-12)
    np.testing.assert_allclose(display.probabilities[-1], after, atol=1e-12)
