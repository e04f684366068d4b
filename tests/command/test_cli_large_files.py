"""Commands that explain a model read large files block by block and name the rows they used."""

import json

import numpy as np
import pyarrow as pa
import pytest
from cli_files import QUICK, csv_text, flowers, runner

from geomix.command import inputs, row_sample
from geomix.command.row_sample import EvenSample
from geomix.tablefile.alignment import AlignedRows


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    from geomix.cli import main

    folder = tmp_path_factory.mktemp("large")
    names, rows = flowers()
    path, model = folder / "flowers.csv", folder / "m.geomix"
    path.write_text(csv_text(names, rows))
    given = [path, "--target", "kind", "-o", model, "--drop", "id", *QUICK]
    assert main(["fit", *map(str, given)]) == 0
    return path, model


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", 60)


def collected(n_rows, most_rows, block_size):
    sample = EvenSample(most_rows)
    for start in range(0, n_rows, block_size):
        place = np.arange(start, min(start + block_size, n_rows))
        texts = pa.array([f"level {k}" for k in place]).dictionary_encode()
        sample.add(AlignedRows(pa.table({"place": place, "text": texts}), None, place))
    return sample.rows()


def test_the_sample_does_not_depend_on_the_blocks():
    whole, cut = collected(5000, 300, 5000), collected(5000, 300, 37)
    assert whole.X["place"].to_pylist() == cut.X["place"].to_pylist()
    assert whole.n_total == cut.n_total == 5000
    assert cut.X.num_rows == 300


def test_the_sample_is_even_and_in_the_order_of_the_file():
    place = np.array(collected(50_000, 5_000, 999).X["place"])
    assert (np.diff(place) > 0).all()
    in_tenths = np.bincount(place // 5_000, minlength=10)
    assert np.abs(in_tenths - 500).max() < 5 * np.sqrt(450)


def test_labels_and_texts_stay_with_their_rows():
    rows = collected(2000, 100, 64)
    assert rows.y.tolist() == rows.X["place"].to_pylist()
    assert rows.X["text"].to_pylist() == [f"level {k}" for k in rows.y]


def test_levels_that_no_chosen_row_has_are_not_kept():
    text = collected(20_000, 100, 500).X["text"]
    assert sum(len(part.dictionary) for part in text.chunks) <= 100 * len(text.chunks)
    assert len(text.chunks[0].dictionary) == 100


def test_a_small_file_is_used_whole_and_nothing_is_added_to_the_output(run, files):
    path, model = files
    for command in ("explain", "rules"):
        ran = run(command, model, path, "--target", "kind")
        assert ran.code == 0
        assert "drawn evenly" not in ran.out + ran.err


@pytest.mark.parametrize("command", ["explain", "rules"])
def test_figures_from_a_sample_are_marked_as_such(run, files, small_samples, command):
    path, model = files
    ran = run(command, model, path, "--target", "kind")
    assert ran.code == 0
    assert ran.out.endswith("(figures from 60 of 150 rows, drawn evenly)\n")
    ran = run(command, model, path, "--target", "kind", "--json")
    assert json.loads(ran.out)["basis"] == "figures from 60 of 150 rows, drawn evenly"


def test_drift_counts_every_row_by_plane_and_samples_the_columns(run, files, small_samples):
    path, model = files
    ran = run("drift", model, path, "--json")
    assert json.loads(ran.out)["n_new"] == 150
    assert "basis" not in json.loads(ran.out)
    ran = run("drift", model, path, "--reference", path, "--json")
    found = json.loads(ran.out)
    assert (found["n_new"], found["n_reference"], found["p_value"]) == (150, 150, 1.0)
    assert found["basis"] == (
        "planes from all rows; columns from 60 of 150 and 60 of 150 rows, drawn evenly"
    )


def test_a_report_states_how_many_rows_of_the_file_it_measured(run, files, small_samples, tmp_path):
    path, model = files
    page = tmp_path / "report.html"
    ran = run("report", model, path, "--target", "kind", "-o", page, "--new", path)
    assert ran.code == 0
    assert ran.err.count("figures from 60 of 150 rows, drawn evenly") == 2
    assert "Measured on 60 rows, drawn evenly from 150, with 95 % intervals" in page.read_text()


def test_evaluate_measures_every_row_of_a_large_file(run, files, small_samples):
    path, model = files
    ran = run("evaluate", model, path, "--target", "kind", "--json")
    assert json.loads(ran.out)["n_rows"] == 150


def test_one_row_is_read_without_the_rows_after_it(run, files, monkeypatch):
    path, model = files
    read = []
    blocks = inputs.blocks_of_rows
    monkeypatch.setattr(
        inputs, "blocks_of_rows", lambda *given: (read.append(b) or b for b in blocks(*given))
    )
    ran = run("explain", model, path, "--row", "150")
    assert ran.code == 0
    assert len(read) == 1
    ran = run("explain", model, path, "--row", "151")
    assert ran.code != 0
    assert "got --row 151" in ran.err
    assert "has 150 rows" in ran.err


def test_wide_tables_are_sampled_by_cells():
    assert row_sample.sample_size(14) == row_sample.MOST_ROWS
    assert row_sample.sample_size(1000) == row_sample.MOST_CELLS // 1000
