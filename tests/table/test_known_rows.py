"""A loaded model reads columns by name: another order or other names are refused everywhere."""

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.datasets import load_wine

import geomix
from geomix import GeometricMixtureClassifier, Recipe, SchemaError, plots

FIXED = {"lift": "linear", "n_planes": 1, "l2": 1e-2, "max_iter": 20, "advanced": Recipe()}
WINE = load_wine(as_frame=True)
X, Y = WINE.data[["alcohol", "proline", "hue", "ash"]], WINE.target
REVERSED = X[X.columns[::-1]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "wine.geomix"
    GeometricMixtureClassifier(**FIXED).fit(X, Y).save(path)
    return geomix.load(path)


ENTRIES = {
    "predict": lambda m, T: m.predict(T),
    "predict_proba": lambda m, T: m.predict_proba(T),
    "class_scores": lambda m, T: m.class_scores(T),
    "plane_scores": lambda m, T: m.plane_scores(T),
    "responsibilities": lambda m, T: m.responsibilities(T),
    "lifted": lambda m, T: m.lifted(T),
    "encoded": lambda m, T: m.encoded(T),
    "explain_global": lambda m, T: m.explain_global(T, Y),
    "explain_local": lambda m, T: m.explain_local(T[:3]),
    "counterfactual": lambda m, T: m.counterfactual(T[:1], X=T),
    "counterfactual's row": lambda m, T: m.counterfactual(T[:1]),
    "counterfactuals": lambda m, T: m.counterfactuals(T[:1]),
    "certify": lambda m, T: m.certify(T[:3]),
    "probability_intervals": lambda m, T: m.probability_intervals(T[:3], {"ash": 0.1}),
    "thresholds": lambda m, T: m.thresholds(T[:1], "ash"),
    "rules": lambda m, T: m.rules(T, Y),
    "regions": lambda m, T: m.regions(T, Y),
    "check_monotone": lambda m, T: m.check_monotone({"ash": 1}, T),
    "compare": lambda m, T: m.compare(T, X),
    "compare's second table": lambda m, T: m.compare(X, T),
    "report": lambda m, T: m.report(T, Y, "/dev/null"),
    "report's new rows": lambda m, T: m.report(X, Y, "/dev/null", X_new=T),
    "an edit": lambda m, T: m.with_priors({0: 0.2, 1: 0.3, 2: 0.5}).change(T),
    "a plot": lambda m, T: plots.ReliabilityDisplay.from_model(m, T, Y),
}  # fmt: skip
LIBRARIES = {
    "pandas": lambda T: T,
    "polars": pl.from_pandas,
    "arrow": lambda T: pa.Table.from_pandas(T, preserve_index=False),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_columns_in_another_order_are_refused_wherever_rows_come_in(model, entry):
    with pytest.raises(SchemaError, match="must be in the same order as they were in fit"):
        ENTRIES[entry](model, REVERSED)


@pytest.mark.parametrize("entry", ENTRIES)
def test_renamed_columns_are_refused_wherever_rows_come_in(model, entry):
    with pytest.raises(SchemaError, match="unseen at fit time:\n- colour"):
        ENTRIES[entry](model, X.rename(columns={"hue": "colour"}))


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_every_library_are_read_by_name(model, library):
    made = LIBRARIES[library]
    np.testing.assert_array_equal(model.predict_proba(made(X)), model.predict_proba(X.to_numpy()))
    for wrong in (REVERSED, X.rename(columns={"hue": "colour"}), X[["alcohol", "ash"]]):
        with pytest.raises(SchemaError, match="feature names should match"):
            model.predict_proba(made(wrong))


def test_a_dict_is_read_by_name(model):
    row = REVERSED.iloc[0].to_dict()
    np.testing.assert_array_equal(model.predict_proba(row), model.predict_proba(X.iloc[:1]))


NOT_NUMBERS = {
    "text": (X.to_numpy().astype(str), "'alcohol' holds text: row 0 is"),
    "text in a frame": (X.astype(str), "'alcohol' holds text: row 0 is"),
    "text in a list": ([["5.1", 3.0, 1.0, 2.0]], "'alcohol' holds text: row 0 is '5.1'"),
    "bytes": (X.to_numpy().astype("S8"), "'alcohol' holds bytes"),
    "bytes as objects": (np.array([[b"5.1", 3.0, 1.0, 2.0]], dtype=object), "holds bytes"),
    "masked": (np.ma.masked_array(X.to_numpy()), "X is a masked array, whose mask would be"),
    "complex": (X.to_numpy() + 0j, "Complex data not supported: column 'alcohol'"),
    "complex, sparse": (scipy.sparse.csr_array(X.to_numpy() + 0j), "Complex data|expected real"),
    "dates": (X.to_numpy().astype("M8[s]"), "'alcohol' holds dates"),
    "a lazy frame": (pl.from_pandas(X).lazy(), "has no rows yet; collect it first"),
    "one row": (X.to_numpy()[0], r"shape \(4,\); expected \(n_rows, 4\)"),
}


@pytest.mark.parametrize("case", NOT_NUMBERS)
@pytest.mark.parametrize("entry", ["predict_proba", "explain_local", "certify", "rules"])
def test_what_is_not_a_table_of_numbers_is_refused_by_a_loaded_model(model, case, entry):
    table, message = NOT_NUMBERS[case]
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(model, entry)(table)


@pytest.mark.parametrize("cell", ["5.1", b"5.1", 1j, object(), 10**400])
def test_a_cell_that_is_no_number_is_refused_in_one_row_too(model, cell):
    row = {**X.iloc[0].to_dict(), "hue": cell}
    with pytest.raises(SchemaError, match=r"Column 'hue' holds .* expected a number"):
        model.predict(row)
    with pytest.raises((TypeError, OverflowError)):
        model.scorer()(list(row.values()))


def test_numbers_of_every_kind_give_the_bits_of_float64(model):
    whole = X.round()
    expected = model.predict_proba(whole.to_numpy())
    array = whole.to_numpy()
    same = (whole.astype(int), whole.astype("Int64"), whole.astype("float32"), array.tolist())
    for table in (*same, array.astype(object), np.asfortranarray(array), array.astype(">f8")):
        np.testing.assert_array_equal(model.predict_proba(table), expected)


def test_a_model_without_names_reads_a_frame_by_position_with_a_warning():
    model = GeometricMixtureClassifier(**FIXED).fit(X.to_numpy(), Y).model_
    with pytest.warns(UserWarning, match="fitted without feature names"):
        found = model.predict_proba(X)
    np.testing.assert_array_equal(found, model.predict_proba(X.to_numpy()))


def test_a_model_without_names_knows_its_own_names_in_another_order():
    model = GeometricMixtureClassifier(**FIXED).fit(X.to_numpy(), Y).model_
    named = X.set_axis(["x0", "x1", "x2", "x3"], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(named)
    with pytest.raises(SchemaError, match="same order"):
        model.predict_proba(named[["x1", "x0", "x2", "x3"]])
