"""Files larger than memory: the same model as the same rows in memory, and what goes wrong."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from kernels import fast_with_numpy
from making import classifier
from patience import PATIENCE
from sklearn.datasets import load_digits, make_classification

import geomix
import geomix.tablefile
from geomix import InvalidParameterError, Recipe, SchemaError, fit_files
from geomix.out_of_core import parquet_source, sampling
from geomix.out_of_core.fit import MemorySource, fit_estimator
from geomix.out_of_core.part_reader import StoredRows
from geomix.out_of_core.scratch import Scratch
from geomix.out_of_core.survey import RowPart

SETTINGS = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    X, y = make_classification(3000, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = rng.choice(["red", "blue", "NA"], len(y))
    frame.loc[::11, "b"] = np.nan
    return frame.assign(y=np.array(["low", "mid", "high"])[y], w=rng.uniform(0.5, 2.0, len(y)))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(parquet_source, "CELLS_PER_BATCH", 1)
    monkeypatch.setattr(parquet_source, "ROWS_PER_BATCH", (256, 256))


def written(frame, folder, n_files=3):
    for i, index in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        table = pa.Table.from_pandas(frame.iloc[index], preserve_index=False)
        pq.write_table(table, folder / f"part-{i}.parquet", row_group_size=400)
    return folder / "*.parquet"


@pytest.mark.kernel
@pytest.mark.parametrize("scratch", [None, False])
@pytest.mark.parametrize("lift", fast_with_numpy(["linear", "spline"], ["linear"]))
def test_files_give_the_model_of_the_same_rows_in_memory(
    frame, tmp_path, small_batches, lift, scratch
):
    settings = {**SETTINGS, "lift": lift, "shrink_to_mean": 0.0, "n_planes": 1}
    settings["max_interactions"] = 0  # L-BFGS stops before the optimum of thousands of cells
    pattern = written(frame, tmp_path)
    far = fit_files(pattern, "y", sample_weight="w", scratch=scratch, **settings)
    X = frame.drop(columns=["y", "w"])
    source = MemorySource([RowPart(X, frame["y"].to_numpy(), frame["w"].to_numpy())])
    near = fit_estimator(classifier(**settings), source)
    assert far.feature_names_in_.tolist() == list(X)
    assert far.classes_.tolist() == ["high", "low", "mid"]
    assert far.model_.schema == near.model_.schema
    tol = 1e-8 if lift == "linear" else 1e-3  # codes are worked on in float32
    np.testing.assert_allclose(far.predict_proba(X), near.predict_proba(X), atol=tol)


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("labels", ["text", "integers"])
def test_class_weight_is_sample_weight_in_files(frame, tmp_path, small_batches, labels, form):
    names = {"low": 2, "mid": 1, "high": 10}
    factor = frame["y"].map({"low": 3.0, "mid": 1.0, "high": 0.5})
    y = frame["y"] if labels == "text" else frame["y"].map(names)
    class_weight = dict(zip(y, factor, strict=True))
    frame = frame.assign(y=y, w=factor)
    if form == "parquet":
        pattern = written(frame, tmp_path)
    else:
        frame.to_csv(pattern := tmp_path / "rows.csv", index=False)
    columns = [*"abcde", "kind"]
    by_row = fit_files(pattern, "y", columns=columns, sample_weight="w", **SETTINGS)
    by_class = fit_files(pattern, "y", columns=columns, class_weight=class_weight, **SETTINGS)
    X = frame[columns]
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)


def test_the_row_groups_of_a_file_change_nothing(frame, tmp_path):
    found = []
    for n_files, group in [(1, 3000), (5, 37)]:
        folder = tmp_path / str(group)
        folder.mkdir()
        for i, index in enumerate(np.array_split(np.arange(len(frame)), n_files)):
            table = pa.Table.from_pandas(frame.iloc[index], preserve_index=False)
            pq.write_table(table, folder / f"{i}.parquet", row_group_size=group)
        clf = fit_files(folder / "*.parquet", "y", columns=list("abcd"), **SETTINGS)
        found.append(clf.model_.planes.weights)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_rows_sorted_by_class_teach_as_much_as_mixed_ones(tmp_path, small_batches):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    test = rng.random(len(y)) < 0.3
    frame = pd.DataFrame(X, columns=[f"p{j}" for j in range(64)]).assign(y=y)[~test]
    written(frame.sort_values("y"), tmp_path, 10)
    names = [f"p{j}" for j in range(64)]
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "pca": None, "random_state": 0}
    clf = fit_files(tmp_path / "*.parquet", "y", **settings)
    score = clf.score(pd.DataFrame(X[test], columns=names), y[test])
    near = classifier(**settings).fit(X[~test], y[~test]).score(X[test], y[test])
    assert score > near - 0.02
    assert score > 0.93


def test_the_model_is_an_ordinary_one(frame, tmp_path):
    clf = fit_files(written(frame, tmp_path), "y", columns=list("acde"), **SETTINGS)
    model, row = clf.model_, frame[list("acde")].to_numpy()[0]
    assert np.array_equal(model.scorer()(row), model.predict_proba(row[None, :])[0])
    assert model.folded.weights.shape == (6, 4)
    assert clf.history_.records
    assert "passes over all" in clf.history_.notes[-1]


@pytest.mark.parametrize("labels", ["text", "integers", "NA"])
def test_csv_files_are_read_as_well(frame, tmp_path, labels):
    y = {
        "text": frame["y"],
        "integers": frame["y"].map({"low": 10, "mid": 2, "high": 33}),
        "NA": frame["y"].replace({"low": "NA", "mid": "null"}),
    }[labels]
    table = frame.drop(columns="w").assign(y=y)
    # Whole numbers at first.
    table["n"] = [str(i % 5) if i < 2900 else "2.5" for i in range(len(table))]
    for i, part in enumerate(np.array_split(np.arange(len(table)), 2)):
        table.iloc[part].to_csv(tmp_path / f"{i}.csv", index=False)
    clf = fit_files(tmp_path / "*.csv", "y", **SETTINGS)
    expected = sorted(y.unique().tolist())
    assert clf.classes_.tolist() == expected
    kind = {column.name: column for column in clf.model_.schema.columns}
    assert kind["kind"].levels == ("NA", "blue", "red")
    assert kind["n"].kind == "number"
    assert clf.score(table.drop(columns="y").astype({"n": float}), y) > 0.7


def test_how_text_is_read_can_be_given(frame, tmp_path):
    table = frame[["a", "b", "kind", "y"]]
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.to_csv(tmp_path / "odd.csv", index=False, sep="~", decimal=",", na_rep="?")
    plain = fit_files(tmp_path / "plain.csv", "y", **SETTINGS)
    reading = geomix.tablefile.ReadOptions(delimiter="~", decimal=",", missing=("?",))
    odd = fit_files(tmp_path / "odd.csv", "y", reading=reading, **SETTINGS)
    assert plain.model_.schema == odd.model_.schema
    assert np.array_equal(plain.model_.planes.weights, odd.model_.planes.weights)
    with pytest.raises(SchemaError, match="no column 'y'"):
        fit_files(tmp_path / "odd.csv", "y", **SETTINGS)


def test_text_and_parquet_are_one_table_of_rows(frame, tmp_path):
    table = frame[["a", "b", "kind", "y"]]
    table[:1000].to_csv(tmp_path / "1.csv", index=False)
    table[1000:].to_parquet(tmp_path / "2.parquet", index=False)
    table.to_csv(tmp_path / "whole.csv", index=False)
    both = fit_files([tmp_path / "1.csv", tmp_path / "2.parquet"], "y", **SETTINGS)
    whole = fit_files(tmp_path / "whole.csv", "y", **SETTINGS)
    assert both.model_.schema == whole.model_.schema
    np.testing.assert_allclose(both.model_.planes.weights, whole.model_.planes.weights, atol=1e-6)


# --- files that store types ---

TYPED = {"parquet": pq.write_table, "feather": pa.feather.write_feather}
LABELS = {
    "booleans": np.array([False, True]),
    "small integers": np.array([1, 3], dtype=np.int8),
    "floats": np.array([1.0, 2.0]),
    "text": np.array(["", "a"]),
    "text of digits": np.array(["1", "2"]),
}


@pytest.fixture
def typed():
    """Rows with an empty text, on which the label depends, and a null."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["", "a", "b"], 600), "z": rng.normal(size=600)})
    frame["y"] = ((frame["c"] == "") ^ (rng.random(600) < 0.05)).astype(int)
    return frame


def in_file(table, path):
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    TYPED[path.suffix[1:]](table, path)
    return path


@pytest.mark.parametrize("reading", [None, geomix.tablefile.ReadOptions()])
@pytest.mark.parametrize("form", TYPED)
def test_the_empty_text_of_a_typed_file_is_a_level(typed, tmp_path, form, reading):
    path, X = in_file(typed, tmp_path / f"t.{form}"), typed[["c", "z"]]
    clf = fit_files(path, "y", reading=reading, **SETTINGS)
    near = classifier(**SETTINGS).fit(X, typed["y"])
    assert clf.model_.schema == near.model_.schema
    assert clf.model_.schema.columns[0].levels == ("", "a", "b")
    assert clf.score(X, typed["y"]) == near.score(X, typed["y"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary("int32", "string")])
@pytest.mark.parametrize("form", TYPED)
def test_texts_of_a_typed_file_are_missing_if_they_are_named_so(typed, tmp_path, form, kind):
    texts = pa.array(typed["c"]).dictionary_encode().cast(pa.string()).cast(kind)
    table = pa.table({"c": texts, "z": typed["z"], "y": typed["y"]})
    reading = geomix.tablefile.ReadOptions(missing=("", "b"))
    clf = fit_files(in_file(table, tmp_path / f"t.{form}"), "y", reading=reading, **SETTINGS)
    null = typed.assign(c=typed["c"].replace({"": None, "b": None}))
    assert clf.model_.schema.columns[0].levels == ("a",)
    expected = fit_files(in_file(null, tmp_path / f"null.{form}"), "y", **SETTINGS)
    X = null[["c", "z"]]
    assert np.array_equal(clf.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("reading", [None, geomix.tablefile.ReadOptions()])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("form", TYPED)
def test_labels_keep_the_type_of_a_typed_file(typed, tmp_path, form, labels, reading):
    y = LABELS[labels][typed["y"]]
    path = in_file(typed.assign(y=y), tmp_path / f"t.{form}")
    clf = fit_files(path, "y", reading=reading, **SETTINGS)
    assert clf.classes_.dtype == y.dtype
    assert clf.classes_.tolist() == LABELS[labels].tolist()
    assert clf.score(typed[["c", "z"]], y) > 0.9


def test_categories_of_a_feather_file_keep_their_levels_and_their_order(typed, tmp_path):
    codes = pa.array(np.arange(600) % 3, pa.int8())
    sizes = pa.DictionaryArray.from_arrays(codes, pa.array(["low", "mid", "high"]), ordered=True)
    table = pa.table({"code": codes.dictionary_encode(), "size": sizes, "y": typed["y"]})
    for reading in (None, geomix.tablefile.ReadOptions(missing=("low",))):
        path = in_file(table, tmp_path / "t.feather")
        clf = fit_files(path, "y", reading=reading, **SETTINGS)
        code, size = clf.model_.schema.columns
        assert code.levels == (0, 1, 2)
        assert size.levels == (("low", "mid", "high") if reading is None else ("mid", "high"))


def test_parquet_and_feather_are_one_table_of_rows(typed, tmp_path):
    typed = typed.assign(y=typed["y"] == 1)
    parts = [
        in_file(typed[:200], tmp_path / "1.feather"),
        in_file(typed[200:], tmp_path / "2.parquet"),
    ]
    both = fit_files(parts, "y", **SETTINGS)
    whole = fit_files(in_file(typed, tmp_path / "whole.parquet"), "y", **SETTINGS)
    assert both.classes_.dtype == bool
    assert both.model_.schema == whole.model_.schema
    np.testing.assert_allclose(both.model_.planes.weights, whole.model_.planes.weights, atol=1e-6)


def test_in_a_list_with_text_an_empty_cell_is_missing_where_no_types_are_stored(typed, tmp_path):
    typed[:300].to_csv(tmp_path / "1.csv", index=False)
    paths = [tmp_path / "1.csv", in_file(typed[300:], tmp_path / "2.feather")]
    clf = fit_files(paths, "y", **SETTINGS)
    assert clf.model_.schema.columns[0].levels == ("", "a", "b")
    in_csv = typed["c"].replace({"": None})
    X = typed.assign(c=in_csv.where(typed.index < 300, typed["c"]))[["c", "z"]]
    assert clf.score(X, typed["y"]) > 0.9


@pytest.mark.parametrize("form", TYPED)
def test_what_is_wrong_with_a_typed_file_is_said(typed, tmp_path, form):
    path = in_file(typed, tmp_path / f"t.{form}")
    with pytest.raises(SchemaError, match="no column 'label'"):
        fit_files(path, "label")
    with pytest.raises(SchemaError, match=r"decompresses to more than 1000 bytes"):
        fit_files(path, "y", reading=geomix.tablefile.ReadOptions(max_decompressed=1000))
    in_file(typed[:0], path)
    with pytest.raises(ValueError, match="no rows in"):
        fit_files(path, "y")
    in_file(pa.table([typed["z"], typed["z"], typed["y"]], names=["z", "z", "y"]), path)
    with pytest.raises(SchemaError, match=r"names must be unique; repeated ones are \['z'\]"):
        fit_files(path, "y")
    path.write_bytes(b"PAR1 and so on" if form == "parquet" else b"ARROW1\0\0 and so on")
    with pytest.raises(SchemaError, match=rf"t\.{form}.*cannot be read"):
        fit_files(path, "y")


def test_a_feather_file_that_changes_while_it_is_read_is_refused(typed, tmp_path, monkeypatch):
    path = in_file(typed, tmp_path / "t.feather")
    sums = parquet_source.ParquetSource.sums

    def changed(self, reader):
        in_file(typed[:300], path)
        return sums(self, reader)

    monkeypatch.setattr(parquet_source.ParquetSource, "sums", changed)
    with pytest.raises(SchemaError, match=r"t\.feather changed while it was being read"):
        fit_files(path, "y", **SETTINGS)


@pytest.mark.parametrize("form", TYPED)
def test_class_weight_names_labels_by_their_stored_type(typed, tmp_path, form):
    typed = typed.assign(y=typed["y"] == 1)
    weighted = typed.assign(w=np.where(typed["y"], 3.0, 1.0))
    path = in_file(weighted, tmp_path / f"t.{form}")
    names = {"columns": ["c", "z"], **SETTINGS}
    by_row = fit_files(path, "y", sample_weight="w", **names)
    by_class = fit_files(path, "y", class_weight={True: 3.0, False: 1.0}, **names)
    X = typed[["c", "z"]]
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)


# --- what may be declared, and what is wrong ---


def test_integer_columns_can_be_declared_categories(frame, tmp_path):
    table = frame[["a", "b", "y"]].assign(code=np.arange(len(frame)) % 3)
    table.to_csv(tmp_path / "t.csv", index=False)
    clf = fit_files(tmp_path / "t.csv", "y", categorical_features=["code"], **SETTINGS)
    assert clf.model_.schema.columns[-1].levels == (0, 1, 2)


def test_what_is_wrong_with_the_files_is_said(frame, tmp_path):
    pattern = written(frame, tmp_path)
    with pytest.raises(FileNotFoundError, match="No file matches"):
        fit_files(tmp_path / "*.nothing", "y")
    with pytest.raises(FileNotFoundError, match="not a file"):
        fit_files(tmp_path, "y")
    with pytest.raises(SchemaError, match="no column 'label'"):
        fit_files(pattern, "label")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(SchemaError, match=r"broken\.parquet.*cannot be read"):
        fit_files(tmp_path / "broken.parquet", "y")
    (tmp_path / "1.csv").write_text("a,y\n" + "1.5,u\n" * 10 + "2.5,v\n" * 10)
    (tmp_path / "2.csv").write_text("a,y\noops,v\n")
    with pytest.raises(SchemaError, match=r"2\.csv.*cannot be read.*oops"):
        fit_files(tmp_path / "[12].csv", "y")
    (tmp_path / "empty.csv").write_text("a,y\n")
    with pytest.raises(ValueError, match=r"[Nn]o row"):
        fit_files(tmp_path / "empty.csv", "y")


def test_a_missing_pyarrow_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow.lib", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"geomix\[files\]"):
        fit_files(tmp_path / "t.parquet", "y")


# --- the scratch file ---


def test_a_spool_gives_back_what_it_was_given(rng, tmp_path):
    blocks = [
        StoredRows(
            rng.standard_normal((n, 3)).astype(np.float32), rng.integers(0, 3, n), rng.random(n)
        )
        for n in (5, 1, 300)
    ]
    with Scratch(tmp_path) as spool:
        for block in blocks:
            spool.append(block)
        for _ in range(2):
            for given, found in zip(blocks, spool, strict=True):
                assert np.array_equal(given.X, found.X)
                assert np.array_equal(given.y, found.y)
                assert np.array_equal(given.weight, found.weight)
        assert list(tmp_path.iterdir()) == []  # it has no name


def test_names_of_the_recipe_may_stand_among_the_parameters(frame, tmp_path, small_batches):
    pattern = written(frame, tmp_path)
    clf = fit_files(pattern, "y", sample_weight="w", **SETTINGS, sharpness=8)
    assert clf.model_.sharpness == 8.0
    assert clf.advanced == Recipe(sharpness=8)
    with pytest.raises(InvalidParameterError, match="'sharpnes'; did you mean 'sharpness'"):
        fit_files(pattern, "y", sharpnes=8)


def test_a_disk_that_is_too_small_is_refused_before_it_is_filled(tmp_path):
    with Scratch(tmp_path) as spool, pytest.raises(OSError, match=r"scratch=False"):
        spool.need(10**18)


SCRIPT = """
import sys, threading, geomix
threading.Timer(2.0, lambda: print("training", flush=True)).start()
try:
    while True:  # a fast machine ends one fit before the signal comes
        geomix.fit_files(sys.argv[1], "y", lift="linear", n_planes=8, l2=1e-6, tol=0.0,
                         max_iter=1_000_000, scratch=sys.argv[2], calibrate=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_fit_and_leaves_nothing_behind(frame, tmp_path):
    pattern = written(frame[[*"acde", "y"]], tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(pattern), str(scratch)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "training\n"
        for _ in range(10):  # Python loses one that comes while it frees an object
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        rest, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert rest == "interrupted\n"
    assert list(scratch.iterdir()) == []


MEMORY = """
import resource, sys
import numpy as np, geomix, pyarrow.parquet
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
geomix.fit_files(sys.argv[1], "y", lift="linear", n_planes=2, l2=1e-3, random_state=0, max_iter=20)
print((peak() - before) // 1024)
"""


@pytest.mark.slow  # tests/command/test_cli_streaming.py has the same on fewer rows
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's VmHWM")
def test_ten_times_the_rows_take_no_more_memory(tmp_path):
    rng = np.random.default_rng(0)
    peaks = []
    for n in (60_000, 600_000):
        folder = tmp_path / str(n)
        folder.mkdir()
        for i in range(n // 60_000):
            X = rng.standard_normal((60_000, 20)).astype(np.float32)
            columns = {f"x{j}": X[:, j] for j in range(20)}
            table = pa.table({**columns, "y": (X[:, 0] + X[:, 1] ** 2 > 1).astype(np.int8)})
            pq.write_table(table, folder / f"{i}.parquet")
        command = [sys.executable, "-c", MEMORY, str(folder / "*.parquet")]
        environment = os.environ | {"TMPDIR": tempfile.gettempdir()}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        peaks.append(int(done.stdout))
    # The large table is 48 MB as float32; 20 MB are what an allocator may keep.
    assert peaks[1] < peaks[0] + 20


def test_the_survey_is_one_pass_and_the_spool_another(frame, tmp_path, monkeypatch):
    pattern = written(frame, tmp_path)
    opened = []
    parts = parquet_source.ParquetSource.parts
    monkeypatch.setattr(
        parquet_source.ParquetSource, "parts", lambda self: opened.append(1) or parts(self)
    )
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 500)
    geomix.fit_files(pattern, "y", **SETTINGS)
    assert len(opened) == 2


def test_a_path_may_be_bytes(frame, tmp_path):
    written(frame[["a", "b", "y"]], tmp_path, 1)
    path = os.fsencode(tmp_path / "part-0.parquet")
    clf = fit_files(path, "y", **SETTINGS)
    assert clf.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"columns": ["a", "a"]}, "'a' is there twice"),
        ({"columns": ["a", "y"]}, "'y' is there twice, or is the target"),
        ({"columns": []}, "at least one column"),
        ({"columns": "a"}, "columns='a'; expected a list"),
        ({"sample_weight": "y"}, "'y' as target and as sample_weight"),
    ],
)
def test_a_column_of_files_has_one_role(roles, message, tmp_path):
    frame = pd.DataFrame({"a": range(20), "b": range(20), "y": [0, 1] * 10})
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=message):
        geomix.fit_files(tmp_path / "rows.parquet", target="y", **roles)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_files_may_be_any_iterable(ending, tmp_path):
    frame = pd.DataFrame({"a": range(60), "b": [0, 1, 2] * 20, "y": [0, 1] * 30})
    path = tmp_path / f"rows.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    columns = (name for name in ["b"])
    model = geomix.fit_files(path, target="y", columns=columns, lift="linear", n_planes=1).model_
    assert model.columns == ("b",)
