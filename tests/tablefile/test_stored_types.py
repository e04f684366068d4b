"""Parquet and Feather files on the command line: the empty text is a text, missing is null."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from cli_files import QUICK, runner

import geomix
from geomix.tablefile import ReadOptions, open_table

WRITERS = {"parquet": pa.parquet.write_table, "feather": pa.feather.write_feather}
TEXTS = ["", "NA", None, "?"]


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Write a frame or an Arrow table to a file of either format."""

    def written(table, name="rows"):
        if isinstance(table, pd.DataFrame):
            table = pa.Table.from_pandas(table, preserve_index=False)
        WRITERS[request.param](table, path := tmp_path / f"{name}.{request.param}")
        return path

    return written


@pytest.fixture(scope="module")
def frame():
    """Rows whose label is whether the text is empty."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["", "a", "b"], 400), "z": rng.normal(size=400)})
    return frame.assign(y=np.where((frame["c"] == "") ^ (rng.random(400) < 0.05), "yes", "no"))


@pytest.mark.parametrize(
    ("missing", "text", "label"),
    [
        ((), TEXTS, TEXTS),
        (("?",), ["", "NA", None, None], TEXTS),
        (("",), [None, "NA", None, "?"], [None, "NA", None, "?"]),
    ],
)
def test_null_is_missing_and_the_options_name_what_else_is(write, missing, text, label):
    path = write(pa.table({"c": TEXTS, "y": TEXTS}))
    (block,) = open_table(path, ReadOptions(missing=missing)).blocks({"c": "text", "y": "label"})
    assert block.columns["c"].to_pylist() == text
    assert block.columns["y"].to_pylist() == label


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_nan_is_missing_among_labels_and_levels(write, kind, is_dictionary):
    cells = pa.array(np.array([1.0, np.nan, 2.0], dtype=kind.to_pandas_dtype()), kind)
    if is_dictionary:
        cells = pa.DictionaryArray.from_arrays([0, 1, 2], cells)
    path = write(pa.table({"c": cells, "y": cells}))
    (block,) = open_table(path).blocks({"c": "text", "y": "label"})
    for column in block.columns.values():
        one, gone, two = column.to_pylist()
        assert gone is None
        assert (float(one), float(two)) == (1.0, 2.0)


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_a_label_that_is_nan_is_refused_or_dropped(run, write, frame, tmp_path, how):
    labels = (frame["y"] == "yes").astype(float)
    labels[[3, 7]] = np.nan
    path, output = write(frame.assign(y=labels)), tmp_path / "m.geomix"
    ran = run("fit", path, "--target", "y", "-o", output, how, *QUICK)
    assert ran.code == 3
    assert "2 of 400 labels are missing (row 4, row 8)" in ran.err
    ran = run("fit", path, "--target", "y", "-o", output, how, "--drop-unlabelled", *QUICK)
    assert ran.code == 0, ran.err
    assert len(geomix.load(output).classes) == 2
    ran = run("evaluate", output, path, "--target", "y")
    assert ran.code == 3
    assert "row 4, column 'y': the label is missing" in ran.err


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_the_command_line_learns_the_empty_text_as_a_fit_on_the_frame_does(
    run, write, frame, tmp_path, how
):
    path, output = write(frame), tmp_path / "m.geomix"
    assert run("fit", path, "--target", "y", "-o", output, how, *QUICK).code == 0
    model, X = geomix.load(output), frame[["c", "z"]]
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    clf.fit(X, frame["y"])
    assert model.schema == clf.model_.schema
    assert model.schema.columns[0].levels == ("", "a", "b")
    np.testing.assert_allclose(model.predict_proba(X), clf.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_empty_texts_named_as_missing_give_the_model_of_the_csv_file(
    run, write, frame, tmp_path, how
):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for path, name, more in (
        (tmp_path / "rows.csv", "a", ()),
        (write(frame), "b", ("--missing=",)),
    ):
        output = tmp_path / f"{name}.geomix"
        assert run("fit", path, "--target", "y", "-o", output, how, *more, *QUICK).code == 0
    assert (tmp_path / "a.geomix").read_bytes() == (tmp_path / "b.geomix").read_bytes()


def test_files_are_predicted_and_evaluated_as_the_frame_is(run, write, frame, tmp_path):
    X = frame[["c", "z"]]
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    clf.fit(X, frame["y"]).model_.save(output := tmp_path / "m.geomix")
    path = write(frame)
    ran = run("predict", output, path, "--unknown", "error")
    assert ran.code == 0, ran.err
    assert pd.read_csv(io.StringIO(ran.out))["prediction"].tolist() == clf.predict(X).tolist()
    found = json.loads(run("evaluate", output, path, "--target", "y", "--json").out)
    assert found["accuracy"] == pytest.approx(clf.score(X, frame["y"]))


@pytest.mark.parametrize(
    "classes", [(False, True), (np.int8(1), np.int8(3)), (1.0, 2.0), ("", "a")]
)
def test_a_model_with_the_labels_of_a_file_is_evaluated_on_it(run, write, frame, tmp_path, classes):
    y = np.array(classes)[(frame["y"] == "yes").to_numpy().astype(int)]
    frame = frame.assign(y=y)
    path, output = write(frame), tmp_path / "m.geomix"
    clf = geomix.fit_files(path, "y", lift="linear", n_planes=1, l2=0.001, random_state=0)
    clf.model_.save(output)
    found = json.loads(run("evaluate", output, path, "--target", "y", "--json").out)
    assert found["accuracy"] == pytest.approx(clf.score(frame[["c", "z"]], y))
    assert found["accuracy"] > 0.9
