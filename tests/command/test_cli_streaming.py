"""``geomix fit --stream``: the model of ``fit_files``, columns and refusals of a fit in memory."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from cli_files import QUICK, csv_text, flowers, runner, written
from patience import PATIENCE, has_worked
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss
from test_cli_refusals import BAD, GOOD

import geomix
from geomix.command import fit_streaming
from geomix.command.metrics import MetricSums
from geomix.core.calibration import expected_calibration_error
from geomix.explain.drift import cell_counts
from geomix.tablefile import byte_source

COLUMNS = ["sepal length", "sepal width", "petal length", "petal width", "soil"]
PARAMETERS = {"lift": "linear", "n_planes": 1, "l2": 0.001, "random_state": 0}


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return written(tmp_path_factory.mktemp("streaming") / "rows.csv", csv_text(*flowers()))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(byte_source, "CHUNK", 700)


def fit(run, data, output, *more):
    data = data if isinstance(data, list) else [data]
    given = ["--target", "kind", "--id", "id", "-o", output, *QUICK, *more]
    ran = run("fit", *data, *given)
    assert ran.code == 0, ran.err
    return ran


def frame_of(path):
    frame = pd.read_csv(path, dtype={"id": str, "soil": str, "kind": str})
    return frame[COLUMNS].assign(soil=frame["soil"].astype("category")), frame["kind"].to_numpy()


def same_model(one, other):
    assert one.schema == other.schema
    assert one.classes.tolist() == other.classes.tolist()
    assert np.array_equal(one.planes.weights, other.planes.weights)
    assert np.array_equal(one.planes.biases, other.planes.biases)
    assert one.temperature == other.temperature


# --- the model ---


def test_a_streamed_fit_is_that_of_fit_files(run, rows, tmp_path, small_blocks):
    fit(run, rows, tmp_path / "m.geomix", "--stream")
    far = geomix.fit_files(rows, "kind", columns=COLUMNS, **PARAMETERS)
    same_model(geomix.load(tmp_path / "m.geomix"), far.model_)


def test_columns_and_what_is_remembered_are_those_of_a_fit_in_memory(
    run, rows, tmp_path, small_blocks
):
    fit(run, rows, tmp_path / "far.geomix", "--stream")
    fit(run, rows, tmp_path / "near.geomix", "--no-stream")
    far, near = (geomix.load(tmp_path / f"{name}.geomix") for name in ("far", "near"))
    assert far.schema == near.schema
    assert far.training["left_out"] == near.training["left_out"] == ["id"]
    assert far.training["target"] == "kind"
    X, y = frame_of(rows)
    counts = cell_counts(far, X)
    assert far.training["plane_rows"] == counts.rows.tolist()
    assert far.training["confidence"] == pytest.approx(counts.confidence, abs=1e-12)
    # One convex problem, so one optimum.
    np.testing.assert_allclose(far.predict_proba(X), near.predict_proba(X), atol=0.02)
    assert (far.predict(X) == y).mean() > 0.95


def arrow_table(path):
    frame = pd.read_csv(path, dtype={"id": str, "soil": str, "kind": str})
    return pa.Table.from_pandas(frame, preserve_index=False)


DRESSES = {
    "gzip": lambda path, text, table: path.write_bytes(gzip.compress(text.encode())),
    "tabs": lambda path, text, table: path.write_text(
        csv_text(*flowers(), delimiter="\t", lineterminator="\r\n")
    ),
    "parquet": lambda path, text, table: pa.parquet.write_table(table, path),
    "feather": lambda path, text, table: pa.feather.write_feather(table, str(path)),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_rows_in_another_file_give_the_same_model(run, rows, tmp_path, dress):
    DRESSES[dress](tmp_path / "other", rows.read_text(), arrow_table(rows))
    fit(run, rows, tmp_path / "a.geomix", "--stream")
    fit(run, tmp_path / "other", tmp_path / "b.geomix", "--stream")
    assert (tmp_path / "a.geomix").read_bytes() == (tmp_path / "b.geomix").read_bytes()
    if dress != "parquet":  # which keeps the types of its columns
        far = geomix.fit_files(tmp_path / "other", "kind", columns=COLUMNS, **PARAMETERS)
        same_model(far.model_, geomix.load(tmp_path / "a.geomix"))


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_several_files_are_one_table(run, rows, tmp_path, how):
    names, cells = flowers()
    whole = fit(run, rows, tmp_path / "whole.geomix", how)
    for k, part in enumerate(np.array_split(np.arange(150), 4)):
        written(tmp_path / f"part-{k}.csv", csv_text(names, [cells[i] for i in part]))
    fit(run, tmp_path / "part-*.csv", tmp_path / "pattern.geomix", how)
    listed = fit(run, sorted(tmp_path.glob("part-*.csv")), tmp_path / "listed.geomix", how)
    assert listed.out.splitlines()[0] == whole.out.splitlines()[0]
    X, _ = frame_of(rows)
    P = geomix.load(tmp_path / "whole.geomix").predict_proba(X)
    for name in ("pattern", "listed"):
        model = geomix.load(tmp_path / f"{name}.geomix")
        np.testing.assert_allclose(model.predict_proba(X), P, atol=1e-6)


def test_options_of_columns_and_parameters_reach_the_streamed_fit(run, tmp_path, rng):
    frame = pd.DataFrame({"x": rng.normal(size=300).round(3), "u": rng.normal(size=300).round(3)})
    frame["code"] = rng.integers(0, 3, 300)
    frame["w"] = rng.integers(0, 3, 300)
    frame["y"] = np.where(frame["x"] + frame["code"] > 1, 10, 2)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    recipe = written(tmp_path / "recipe.toml", "stream = true\n[parameters]\nlift = 'linear'\n")
    ran = run(
        "fit", tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "m.geomix",
        "--weight", "w", "--drop", "u", "--categorical", "code", "--config", recipe,
        "--seed", "3", "--set", "n_planes=1", "--set", "l2=0.001", "--json",
        "--scratch", tmp_path,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["streamed"] is True
    assert json.loads(ran.out)["n_rows"] == 300
    model = geomix.load(tmp_path / "m.geomix")
    assert [(c.name, c.levels) for c in model.schema.columns] == [
        ("x", ()),
        ("code", ("0", "1", "2")),
    ]
    assert model.classes.tolist() == [2, 10]
    X = frame[["x"]].assign(code=frame["code"].astype(str).astype("category"))
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=3)
    P = clf.fit(X, frame["y"], sample_weight=frame["w"]).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), P, atol=0.02)


def test_single_is_fit_files_on_float32(run, tmp_path, rng):
    X = rng.normal(size=(400, 3)).astype(np.float32)
    table = pa.table({**{f"c{j}": X[:, j] for j in range(3)}, "y": (X[:, 0] > 0).astype(int)})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    output = tmp_path / "m.geomix"
    ran = run("fit", tmp_path / "rows.parquet", "--target", "y", "-o", output, "--single",
              "--stream", *QUICK)  # fmt: skip
    assert ran.code == 0, ran.err
    far = geomix.fit_files(tmp_path / "rows.parquet", "y", **PARAMETERS)
    same_model(geomix.load(output), far.model_)


# --- rows held out ---


def splitmix64(place, seed):
    """The key of a row, in Python's own integers."""
    mask = 2**64 - 1
    z = (place + seed * 0xD1342543DE82EF95) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def held_out(labels, share, seed):
    first = [labels.index(label) for label in dict.fromkeys(labels)]
    keys = np.array([splitmix64(place, seed) / 2**64 for place in range(len(labels))])
    return (keys < share) & ~np.isin(np.arange(len(labels)), first)


def test_a_share_held_out_is_judged_by_scikit_learn_alike(run, rows, tmp_path, small_blocks):
    names, cells = flowers()
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 4, 150)
    cells = [[*row, str(weight)] for row, weight in zip(cells, weights, strict=True)]
    path = written(tmp_path / "rows.csv", csv_text([*names, "w"], cells))
    options = ["--stream", "--weight", "w", "--seed", "7", "--json"]
    ran = fit(run, path, tmp_path / "m.geomix", "--test", "0.3", *options)
    told = json.loads(ran.out)
    held = held_out([row[-2] for row in cells], 0.3, 7)
    assert told["tested_on"] == f"{held.sum()} rows held out"
    assert told["n_rows"] == (~held).sum()
    X, y = frame_of(path)
    model = geomix.load(tmp_path / "m.geomix")
    X, y, w = X[held], y[held], weights[held]
    P = model.predict_proba(X)
    found = told["test"]
    assert found["n_rows"] == held.sum()
    assert found["accuracy"] == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=w))
    f1 = f1_score(y, model.predict(X), average="macro", sample_weight=w)
    assert found["macro_f1"] == pytest.approx(f1)
    assert found["log_loss"] == pytest.approx(log_loss(y, P, sample_weight=w))
    by_class = [brier_score_loss(y == label, P[:, c], sample_weight=w)
                for c, label in enumerate(model.classes)]  # fmt: skip
    assert found["brier"] == pytest.approx(sum(by_class))
    # Nothing was learnt from them: the other rows alone give the same model.
    learnt = [row for row, out in zip(cells, held, strict=True) if not out]
    path = written(tmp_path / "learnt.csv", csv_text([*names, "w"], learnt))
    fit(run, path, tmp_path / "other.geomix", *options)
    other = geomix.load(tmp_path / "other.geomix")
    np.testing.assert_allclose(model.planes.weights, other.planes.weights, atol=1e-6)
    assert model.training["plane_rows"] == other.training["plane_rows"]


def test_a_file_for_the_test_is_judged_as_by_evaluate(run, rows, tmp_path):
    ran = fit(run, rows, tmp_path / "m.geomix", "--stream", "--test", rows, "--json")
    again = run("evaluate", tmp_path / "m.geomix", rows, "--target", "kind", "--json")
    judged = json.loads(again.out)
    judged.pop("unknown_levels")
    assert json.loads(ran.out)["test"] == judged


def test_a_share_of_too_few_rows_is_refused(run, tmp_path):
    path = written(tmp_path / "rows.csv", "a,y\n1,p\n2,q\n3,p\n")
    ran = run("fit", path, "--target", "y", "-o", tmp_path / "m", "--test", "0.001", "--stream")
    assert ran.code == 3
    assert "3 rows are too few to hold out a share of 0.001" in ran.err


def test_figures_do_not_depend_on_how_rows_are_cut(rows):
    X, y = frame_of(rows)
    clf = geomix.GeometricMixtureClassifier(**PARAMETERS).fit(X, y)
    P, codes = clf.predict_proba(X), np.searchsorted(clf.classes_, y)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    weight[40:50] = 0.0  # a part without any
    found = []
    for cuts in ([], [40, 50], [1, 2, 149]):
        tally = MetricSums(clf.model_)
        for part in np.split(np.arange(len(y)), cuts):
            tally.add(P[part], codes[part], weight[part])
        found.append(tally.metrics().to_dict())
    for one in found[1:]:
        assert one["classes"] == found[0]["classes"]
        for name in ("accuracy", "macro_f1", "log_loss", "brier", "calibration_error"):
            assert one[name] == pytest.approx(found[0][name], abs=1e-12)
    expected = expected_calibration_error(P, codes, sample_weight=weight)
    assert found[0]["calibration_error"] == pytest.approx(expected, abs=1e-12)


def test_counts_of_cells_add(rows):
    X, y = frame_of(rows)
    model = geomix.GeometricMixtureClassifier(**PARAMETERS).fit(X, y).model_
    both = cell_counts(model, X[:60]) + cell_counts(model, X[60:])
    assert both.rows.tolist() == cell_counts(model, X).rows.tolist()
    assert both.confidence == pytest.approx(cell_counts(model, X).confidence, abs=1e-12)


# --- who decides ---


def test_a_table_of_many_cells_is_streamed_unless_told_otherwise(run, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_streaming, "MOST_CELLS", 150 * 6 - 1)  # 5 columns and the label
    ran = fit(run, rows, tmp_path / "auto.geomix")
    assert (
        ran.err == "note: more than 899 cells: training out of core; --no-stream trains in memory\n"
    )
    assert "trained out of core in" in ran.out
    fit(run, rows, tmp_path / "told.geomix", "--stream")
    ran = fit(run, rows, tmp_path / "near.geomix", "--no-stream")
    assert "out of core" not in ran.out + ran.err
    # What needs the rows in memory has them there.
    adam = fit(run, rows, tmp_path / "adam.geomix", "--set", "solver=adam", "--set", "max_iter=3")
    assert "out of core" not in adam.out
    monkeypatch.setattr(fit_streaming, "MOST_CELLS", 150 * 6)
    assert "out of core" not in fit(run, rows, tmp_path / "few.geomix").out
    content = {path.stem: path.read_bytes() for path in tmp_path.glob("*.geomix")}
    assert content["auto"] == content["told"] != content["near"] == content["few"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "solver=adam"], "Got solver='adam'"),
        (["--set", "n_members=3"], "Got n_members=3"),
        (["--set", "n_members=3", "--set", "preset=accurate"], "Got n_members=3"),
        (["--paper"], "Got solver='adam'"),
        (["--set", "early_stopping=on"], "early_stopping"),
    ],
)
def test_what_needs_rows_in_memory_is_bad_usage_with_stream(run, rows, tmp_path, options, said):
    ran = run("fit", rows, "--target", "kind", "-o", tmp_path / "m.geomix", "--stream", *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


# --- what goes wrong ---


@pytest.mark.parametrize("chunk", [61, 2**23])
@pytest.mark.parametrize("case", [case for case in BAD if case != "huge cell"])
def test_bad_files_are_refused_as_in_memory(run, tmp_path, case, chunk, monkeypatch):
    content, said = BAD[case]
    if chunk < 100 and len(content) > 10_000:
        pytest.skip("long files in tiny blocks take long")
    monkeypatch.setattr(byte_source, "CHUNK", chunk)
    path = written(tmp_path / "rows.csv", content)
    ran = run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", "--stream", *QUICK)
    assert ran.code == 3, ran.err
    if chunk > 100 or case != "binary junk":
        assert said in ran.err
    assert ran.err.splitlines()[-1].startswith(f"error: {path}")
    assert ran.out == ""
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_a_column_that_begins_like_numbers_is_text_in_a_stream_too(run, tmp_path, monkeypatch):
    monkeypatch.setattr(byte_source, "CHUNK", 40)
    rows = [["7", "1", "p"]] * 5 + [["red", "2", "q"], ["blue", "3.5", "p"]] * 10
    path = written(tmp_path / "rows.csv", csv_text(["c", "x", "y"], rows))
    output = tmp_path / "m.geomix"
    assert run("fit", path, "--target", "y", "-o", output, "--stream", *QUICK).code == 0
    columns = geomix.load(output).schema.columns
    assert columns[0].levels == ("7", "blue", "red")
    assert columns[1].kind == "number"


def test_rows_without_a_label_are_left_out_if_told_so(run, tmp_path, monkeypatch):
    monkeypatch.setattr(byte_source, "CHUNK", 61)
    lines = GOOD.splitlines(keepends=True)
    holes = [line.rsplit(",", 1)[0] + ",\n" for line in lines[5:8]]
    path = written(tmp_path / "rows.csv", "".join([*lines[:5], *holes, *lines[8:]]))
    bare = written(tmp_path / "bare.csv", "".join([*lines[:5], *lines[8:]]))
    given = ["--target", "y", "--stream", "--drop-unlabelled", *QUICK]
    ran = run("fit", path, "-o", tmp_path / "a.geomix", *given)
    assert ran.err == "warning: 3 rows without a label are ignored.\n"
    run("fit", bare, "-o", tmp_path / "b.geomix", *given)
    one, other = (geomix.load(tmp_path / f"{name}.geomix") for name in "ab")
    np.testing.assert_allclose(one.planes.weights, other.planes.weights, atol=1e-6)


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_odd_weights_and_classes_of_no_weight_are_refused(run, tmp_path, how):
    def said(*rows):
        path = written(tmp_path / "rows.csv", csv_text(["a", "w", "y"], rows))
        ran = run("fit", path, "--target", "y", "--weight", "w", "-o", tmp_path / "m", how, *QUICK)
        assert ran.code in (0, 3), ran.err
        return ran.err

    good = [["1", "1", "p"], ["2", "1", "q"]] * 20
    assert "line 42, column 'w': the weight is missing" in said(*good, ["3", "", "p"])
    assert "negative" in said(*good, ["3", "-1", "p"])
    if how == "--stream":
        weightless = said(*good, ["3", "0", "r"])
        assert "no row of the class 'r' has a weight above 0" in weightless


def test_a_label_for_every_row_is_refused_before_memory_is_full(run, tmp_path, monkeypatch):
    monkeypatch.setattr("geomix.out_of_core.table_source.MOST_CLASSES", 50)
    monkeypatch.setattr(byte_source, "CHUNK", 200)
    path = written(tmp_path / "rows.csv", csv_text(["a", "y"], [[i, f"k{i}"] for i in range(999)]))
    ran = run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", "--stream")
    assert ran.code == 3
    assert "more than 50 different labels" in ran.err


def test_files_that_do_not_belong_together_are_refused(run, rows, tmp_path):
    names, cells = flowers()
    output = tmp_path / "m.geomix"

    def said(*files):
        ran = run("fit", *files, "--target", "kind", "-o", output, "--stream", *QUICK)
        assert not output.exists()
        return ran.code, ran.err

    other = written(tmp_path / "other.csv", csv_text([*names[:-2], "ground", "kind"], cells))
    code, err = said(rows, other)
    assert (code, "no column 'soil', which" in err) == (3, True)
    wordy = [[row[0], "tall", *row[2:]] for row in cells[:4]]
    words = written(tmp_path / "words.csv", csv_text(names, wordy))
    code, err = said(rows, words)
    assert code == 3
    assert f"line 2 of {words}: 'tall'" in err
    assert said(rows, "-")[0] == 2
    assert said(tmp_path / "*.nothing")[0] == 5
    assert said(rows, tmp_path / "gone.csv")[0] == 5
    table = arrow_table(rows)
    pa.parquet.write_table(table, tmp_path / "1.parquet")
    at = table.schema.get_field_index("petal width")
    text = table["petal width"].cast(pa.string())
    pa.parquet.write_table(table.set_column(at, "petal width", text), tmp_path / "2.parquet")
    code, err = said(tmp_path / "?.parquet")
    assert code == 3
    assert "'petal width' is number in" in err


def test_a_partition_may_lack_all_values_of_a_column(run, rows, tmp_path):
    table = arrow_table(rows)
    at = table.schema.get_field_index("soil")
    none = pa.nulls(len(table), pa.null())
    pa.parquet.write_table(table.set_column(at, "soil", none), tmp_path / "1.parquet")
    pa.parquet.write_table(table, tmp_path / "2.parquet")
    for how in ("--stream", "--no-stream"):
        fit(run, tmp_path / "?.parquet", tmp_path / "m.geomix", how)
        soil = geomix.load(tmp_path / "m.geomix").schema.columns[-1]
        assert "clay" in soil.levels


def test_a_scratch_folder_must_be_there(run, rows, tmp_path):
    ran = run("fit", rows, "--target", "kind", "-o", tmp_path / "m.geomix", "--stream",
              "--scratch", tmp_path / "nowhere")  # fmt: skip
    assert ran.code == 5
    assert "nowhere: Not a directory" in ran.err


def test_a_disk_that_would_be_filled_is_refused_first(
    run, rows, tmp_path, monkeypatch, small_blocks
):
    free = SimpleNamespace(free=2000)
    monkeypatch.setattr("geomix.out_of_core.scratch.shutil.disk_usage", lambda folder: free)
    ran = run("fit", rows, "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix",
              "--stream", *QUICK)  # fmt: skip
    assert ran.code == 5
    assert "give another folder as scratch (--scratch)" in ran.err
    assert os.listdir(tmp_path) == []


# --- as a process ---

COMMAND = [sys.executable, "-m", "geomix", "fit"]


def test_standard_input_is_streamed_too(rows, run, tmp_path):
    fit(run, rows, tmp_path / "a.geomix", "--stream")
    given = ["--target", "kind", "--id", "id", "--stream", *QUICK, "-o", tmp_path / "b.geomix"]
    ran = subprocess.run([*COMMAND, "-", *map(str, given)], input=rows.read_bytes(),
                         capture_output=True, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "a.geomix").read_bytes() == (tmp_path / "b.geomix").read_bytes()


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """Folders with 30,000 rows and with ten times as many."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    for k in (1, 10):
        with open(folder / f"{k}.csv", "wb") as file:
            for i in range(k):
                X = rng.normal(size=(30_000, 10)).round(4)
                columns = {f"x{j}": X[:, j] for j in range(10)}
                y = np.where(X[:, 0] > X[:, 1], "p", "q")
                header = pa.csv.WriteOptions(include_header=i == 0)
                pa.csv.write_csv(pa.table({**columns, "y": y}), file, header)
    return folder


MEMORY = """
import sys
from geomix.cli import main
from geomix.tablefile import byte_source
byte_source.CHUNK = 2**20  # so that the small file too has more than one block
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak // 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's VmHWM")
def test_ten_times_the_rows_take_no_more_memory(many_rows, tmp_path):
    peaks = {}
    for k in (1, 10):
        given = [many_rows / f"{k}.csv", "--target", "y", "-o", tmp_path / "m.geomix", *QUICK]
        given += ["--stream", "--test", "0.2", "--set", "max_iter=20"]
        ran = subprocess.run([sys.executable, "-c", MEMORY, "fit", *map(str, given)],
                             capture_output=True, text=True, check=False)  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        peaks[k] = int(ran.stderr)
    # In memory 270,000 more rows of ten columns would take some 200 MB.
    assert peaks[10] < peaks[1] + 40


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's VmHWM")
def test_predict_takes_no_more_memory_for_ten_times_the_rows(many_rows, run, tmp_path):
    model = tmp_path / "m.geomix"
    assert run("fit", many_rows / "1.csv", "--target", "y", "-o", model, *QUICK).code == 0
    peaks = {}
    for k in (1, 10):
        given = [model, many_rows / f"{k}.csv", "-o", tmp_path / f"{k}.csv", "--quiet"]
        ran = subprocess.run([sys.executable, "-c", MEMORY, "predict", *map(str, given)],
                             capture_output=True, text=True, check=False)  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        peaks[k] = int(ran.stderr)
    assert peaks[10] < peaks[1] + 40


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_disk_too_small_for_the_scratch_file_leaves_the_old_model(many_rows, tmp_path):
    import resource

    old = written(tmp_path / "m.geomix", b"the old model")
    given = [many_rows / "1.csv", "--target", "y", "-o", old, "--stream", "--scratch", tmp_path]

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))

    ran = subprocess.run([*COMMAND, *map(str, given), *QUICK], capture_output=True, text=True,
                         preexec_fn=limited, check=False)  # fmt: skip
    assert ran.returncode == 5, ran.stderr
    assert ran.stderr == "error: File too large\n"
    assert old.read_bytes() == b"the old model"
    assert os.listdir(tmp_path) == ["m.geomix"]


@pytest.mark.skipif(os.name != "posix", reason="a terminal of POSIX")
def test_progress_of_every_pass_is_for_terminals(many_rows, tmp_path):
    import fcntl
    import pty
    import struct
    import termios

    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    given = [many_rows / "1.csv", "--target", "y", "-o", tmp_path / "m.geomix", "--stream", *QUICK]
    ran = subprocess.run([*COMMAND, *map(str, given)], stdout=subprocess.PIPE, stderr=terminal,
                         check=False)  # fmt: skip
    os.close(terminal)
    shown = b""
    while b"predicting" not in shown:
        shown += os.read(master, 10_000)
    os.close(master)
    assert ran.returncode == 0
    for title in (b"looking at the rows", b"writing the scratch file", b"predicting"):
        assert b"geomix fit: " + title in shown
    assert ran.stdout.startswith(b"30000 rows of 10 numbers")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_streamed_fit_and_leaves_nothing(many_rows, tmp_path, number, code):
    rows = (many_rows / "1.csv").read_text().replace(",", ";")
    written(tmp_path / "rows.csv", rows)
    endless = ["lift=linear", "n_planes=8", "l2=1e-6", "tol=0.0", "max_iter=1000000"]
    given = ["--target", "y", "-o", "m.geomix", "--stream", "--scratch", tmp_path]
    given += [word for one in endless for word in ("--set", one)]
    process = subprocess.Popen([*COMMAND, "rows.csv", *map(str, given)], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert "delimiter is ';'" in process.stderr.readline()  # now the rows are read
    assert has_worked(process, 0.5)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err
    assert out == ""
    assert os.listdir(tmp_path) == ["rows.csv"]
