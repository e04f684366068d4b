"""Tables of any library: through Arrow they give the model of the same pandas frame."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from making import classifier

from geomix.errors import SchemaError
from geomix.out_of_core.fit import MemorySource, fit_estimator, in_parts

pa = pytest.importorskip("pyarrow", minversion="15")

SETTINGS = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(120), "count": rng.integers(0, 9, 120)})
    frame["kind"] = rng.choice(["red", "blue"], 120)
    frame.loc[::7, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def labels(frame):
    return np.where(frame["count"] + 4 * (frame["kind"] == "red") > 5, "yes", "no")


@pytest.fixture(scope="module")
def expected(frame, labels):
    return classifier(**SETTINGS).fit(frame, labels).predict_proba(frame)


class OnlyArrow:
    """A table of a library that has nothing but the Arrow stream, as ibis' tables."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def duckdb_relation(frame):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(pa.table(frame))


def ibis_table(frame):
    return pytest.importorskip("ibis").memtable(frame)


def narwhals_frame(frame):
    return pytest.importorskip("narwhals").from_native(pl.from_pandas(frame))


def reader(frame):
    return pa.table(frame).to_reader()


LIBRARIES = {
    "DuckDB": duckdb_relation,
    "ibis": ibis_table,
    "narwhals": narwhals_frame,
    "a stream of batches": reader,
    "a batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "any Arrow stream": lambda frame: OnlyArrow(pa.table(frame)),
}


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # ibis 12 on pandas 3
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_of_any_library_gives_the_model_of_the_pandas_frame(
    frame, labels, expected, library
):
    make = LIBRARIES[library]
    clf = classifier(**SETTINGS).fit(make(frame), labels)
    assert clf.feature_names_in_.tolist() == list(frame)
    np.testing.assert_allclose(clf.predict_proba(make(frame)), expected, atol=1e-12)
    assert np.array_equal(clf.model_.predict_proba(make(frame)), clf.predict_proba(frame))


def test_labels_and_weights_may_be_tables_of_one_column(frame, labels, expected):
    y = OnlyArrow(pa.table({"y": labels}))
    weight = OnlyArrow(pa.table({"w": np.ones(len(frame))}))
    clf = classifier(**SETTINGS).fit(frame, y, weight)
    assert np.array_equal(clf.predict_proba(frame), expected)
    two = OnlyArrow(pa.table({"y": labels, "z": labels}))
    with pytest.raises(ValueError, match="y has 2 columns; expected 1"):
        classifier(**SETTINGS).fit(frame, two)


def test_a_dask_frame_is_refused_with_the_class_that_takes_it(frame, labels):
    dd = pytest.importorskip("dask.dataframe")
    far = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(TypeError, match=r"DaskGeometricMixtureClassifier, or pass X.compute\(\)"):
        classifier(**SETTINGS).fit(far, labels)


def test_a_missing_pyarrow_is_named(frame, labels, monkeypatch):
    import sys

    table = OnlyArrow(pa.table(frame))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"X is a OnlyArrow, .* install pyarrow"):
        classifier(**SETTINGS).fit(table, labels)


# --- ordered categories ---

ORDER = ["none", "low", "mid", "high"]


def pandas_ordered(cells):
    return pd.DataFrame({"grade": pd.Categorical(cells, categories=ORDER, ordered=True)})


def polars_enum(cells):
    return pl.DataFrame({"grade": cells}, schema={"grade": pl.Enum(ORDER)})


def arrow_ordered(cells):
    indices = pa.array([None if cell is None else ORDER.index(cell) for cell in cells], pa.int8())
    return pa.table({"grade": pa.DictionaryArray.from_arrays(indices, ORDER, ordered=True)})


@pytest.mark.parametrize("make", [pandas_ordered, polars_enum, arrow_ordered])
def test_ordered_categories_keep_their_order(make):
    rng = np.random.default_rng(0)
    cells = rng.choice(["low", "mid", "high"], 90).tolist()
    cells[5] = None
    y = np.array([cell in ("mid", "high") for cell in cells]).astype(int)
    clf = classifier(**SETTINGS).fit(make(cells), y)
    assert clf.model_.schema.columns[0].levels == ("low", "mid", "high")
    plain = classifier(**SETTINGS).fit(pd.DataFrame({"grade": cells}), y)
    assert plain.model_.schema.columns[0].levels == ("high", "low", "mid")
    answers = clf.predict_proba(make(cells))
    np.testing.assert_allclose(
        answers, plain.predict_proba(pd.DataFrame({"grade": cells})), atol=1e-9
    )


def test_ordered_categories_keep_their_order_out_of_core():
    rng = np.random.default_rng(0)
    table = pandas_ordered(rng.choice(["low", "mid", "high"], 90)).assign(x=rng.random(90))
    y = (table["grade"] == "mid").to_numpy()
    source = MemorySource(in_parts(table, y, None, [20, 60]))
    schema = fit_estimator(classifier(**SETTINGS), source).model_.schema
    assert schema.columns[0].levels == ("low", "mid", "high")


def test_types_that_no_array_holds_name_the_column_and_the_remedy(frame, labels):
    wide = pl.DataFrame({"a": pl.Series(range(120)).cast(pl.Int128)})
    with pytest.raises(SchemaError, match="Column 'a' has 128-bit integers; cast it to Float64"):
        classifier(**SETTINGS).fit(wide, labels)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([60, 120], pa.int32()), pa.array(["u", "v"]))
    with pytest.raises(SchemaError, match="run_end_decode"):
        classifier(**SETTINGS).fit(pa.table({"a": runs}), labels)


def test_a_type_that_is_not_known_is_refused_by_name_instead_of_read_as_numbers(frame, labels):
    class Odd(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.int64(), "geomix.odd")

        def __arrow_ext_serialize__(self):
            return b""

    odd = pa.ExtensionArray.from_storage(Odd(), pa.array(range(120)))
    with pytest.raises(SchemaError, match=r"'a' has the type 'extension.*cast it to numbers"):
        classifier(**SETTINGS).fit(pa.table({"a": odd}), labels)


NUMBERS = {
    "pandas": ["Int64", "Float32", "boolean", "int8", "float16", "bool", pd.SparseDtype(float, 0)],
    "Arrow in pandas": ["int32[pyarrow]", "double[pyarrow]", "bool[pyarrow]"],
}


@pytest.mark.parametrize("dtype", [one for names in NUMBERS.values() for one in names], ids=str)
def test_every_numeric_type_of_pandas_is_read_as_numbers(dtype, labels):
    zero_one = pd.DataFrame({"a": np.arange(120) % 2, "b": np.arange(120) % 3 // 2})
    expected = classifier(**SETTINGS).fit(zero_one, labels).predict_proba(zero_one)
    typed = zero_one.astype(dtype)
    found = classifier(**SETTINGS).fit(typed, labels).predict_proba(typed)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    "dtype", [pa.float16(), pa.float32(), pa.decimal128(5, 2), pa.uint8(), pa.bool_()], ids=str
)
def test_every_numeric_type_of_arrow_is_read_as_numbers(dtype, labels):
    zero_one = pd.DataFrame({"a": np.arange(120) % 2, "b": np.arange(120) % 3 // 2})
    expected = classifier(**SETTINGS).fit(zero_one, labels).predict_proba(zero_one)
    floats = pa.table({name: zero_one[name].to_numpy(float) for name in zero_one})
    typed = floats.cast(pa.schema([("a", dtype), ("b", dtype)]))
    found = classifier(**SETTINGS).fit(typed, labels).predict_proba(typed)
    np.testing.assert_allclose(found, expected, atol=1e-12)


# --- frames in the form of pandas ---


class Subclass(pd.DataFrame):
    """As of geopandas."""

    @property
    def _constructor(self):
        return Subclass


class LikePandas:
    """A frame in the form of pandas that is none, as modin's and cuDF's."""

    def __init__(self, frame):
        self._frame = frame
        self.iloc, self.columns, self.dtypes = None, frame.columns, frame.dtypes
        self.shape = frame.shape

    def __len__(self):
        return len(self._frame)

    def to_pandas(self):
        return self._frame


@pytest.mark.parametrize("make", [Subclass, LikePandas])
def test_frames_in_the_form_of_pandas_are_read_as_pandas(frame, labels, expected, make):
    clf = classifier(**SETTINGS).fit(make(frame), labels)
    assert np.array_equal(clf.predict_proba(make(frame)), expected)
    assert np.array_equal(clf.model_.predict_proba(make(frame)), expected)
    reversed_columns = make(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="same order"):
        clf.predict(reversed_columns)


def test_a_single_column_of_any_library_is_refused_as_no_table(frame, labels):
    model = classifier(**SETTINGS).fit(frame, labels).model_
    column = frame["a"]
    for one in (column, pl.from_pandas(column), pa.array(column), pa.chunked_array([column])):
        with pytest.raises((ValueError, TypeError), match=r"2|table of rows"):
            model.predict(one)
        with pytest.raises((ValueError, TypeError), match=r"2D|2-dim|table of rows"):
            classifier(**SETTINGS).fit(one, labels)
