"""Whatever is wrong with a file is one line of error, with its place, and leaves nothing behind."""

import gzip
import io
import os
import re
import sys

import numpy as np
import pandas as pd
import pytest
from cli_files import QUICK, csv_text, flowers, runner, written

import geomix
from geomix.command.options import check_writable
from geomix.modelfile import atomic


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model of two numbers a, b and a category c."""
    from geomix.cli import main

    folder = tmp_path_factory.mktemp("refusals")
    path = written(folder / "rows.csv", GOOD)
    given = ["fit", path, "--target", "y", "-o", folder / "m.geomix", "--quiet", *QUICK]
    assert main([str(one) for one in given]) == 0
    return folder / "m.geomix"


RNG = np.random.default_rng(0)
ROWS = [[f"{x:.2f}", f"{RNG.normal():.2f}", "uv"[int(x > 1)], "yes" if x > 0 else "no"]
        for x in RNG.normal(size=80)]  # fmt: skip
GOOD = csv_text(["a", "b", "c", "y"], ROWS)
LINES = GOOD.splitlines(keepends=True)


def with_line(number, text):
    """The good file with another physical line."""
    return "".join([*LINES[: number - 1], text, *LINES[number:]])


# Contents of a file, and words that the error must contain.
BAD = {
    "empty": ("", "the file is empty"),
    "header only": ("a,b,c,y\n", "no rows"),
    "blank lines only": ("\n\n\n", "the file is empty"),
    "target absent": ("a,b,c,z\n1,2,u,yes\n", "no column 'y'"),
    "target constant": ("a,b,y\n1,2,p\n3,4,p\n", "all labels are 'p'"),
    "target all distinct": ("a,y\n1,p\n2,q\n3,r\n", "all 3 labels are different"),
    "target measurements": ("a,y\n1,1.5\n2,2.5\n3,3.5\n4,1.5\n", "measurements"),
    "labels missing": (
        "a,b,y\n1,2,p\n3,4,\n5,6,q\n7,8,\n",
        "2 of 4 labels are missing (line 3, line 5). Ignore those rows with --drop-unlabelled",
    ),
    "row too long": (with_line(17, "1,2,u,yes,more\n"), "4 names, line 17 has 5 fields"),
    "row too short": (with_line(9, "1,2,u\n"), "4 names, line 9 has 3 fields"),
    "trailing commas": ("a,b,y\n1,2,p,\n3,4,q,\n", "header has 3 names, line 2 has 4 fields"),
    "latin-1": ("a,c,y\n1,x,p\n2,é,q\n".encode("latin-1"), "byte 0xE9 at line 3); try --encoding"),
    "utf-16": (GOOD.encode("utf-16"), "use --encoding utf-16"),
    "binary junk": (bytes(range(256)) * 40, ""),
    "NUL": (with_line(30, "1,2,u\0,yes\n"), "line 30: a NUL byte"),
    "Ctrl-Z": (GOOD + "\x1a", "line 82: a Ctrl-Z"),
    "repeated names": ("a,b,a,y\n1,2,3,p\n", "repeated names are ['a']"),
    "unnamed columns": (
        "a,b,y,,\n1,2,p,,\n3,4,q,,\n",
        "line 1: columns 4, 5 have no name. Name them, or remove the delimiters",
    ),
    "no header": ("1,2,3\n4,5,6\n", "use --no-header"),
    "unnamed column": (",a,y\n0,1,p\n1,2,q\n2,3,p\n", "--drop ''"),
    "unclosed quote": (with_line(40, '1,2,"u,yes\n'), "line 40: a quoted field has no closing"),
    "text after a quote": (with_line(41, '1,2,"u"x,yes\n'), "line 41: text after a closing quote"),
    "infinite": (with_line(50, "inf,2,u,yes\n"), "line 50, column 'a': the number is infinite"),
    "a word among numbers": (
        with_line(60, "?,2,u,yes\n"),
        "column 'a', line 60: '?' is not a number, but 99% of the cells are. If it means missing, "
        "use "
        "--missing '?'",
    ),
    "thousands": (
        "a,y\n" + '"1,000",p\n"2,500",q\n12,p\n' * 5,
        "column 'a', line 2: '1,000' is a number with thousands separators; use --thousands ,",
    ),
    "decimal comma": ("a;y\n" + "1,5;p\n2,25;q\n" * 5, "line 2: '1,5' is a number with a"),
    "decimal comma, no quotes": ("a,y\n" + "1,5,p\n2,2,q\n" * 5, "2 names, line 2 has 3 fields"),
    "dates": ("a,y\n" + "2024-01-31,p\n2024-02-28,q\n" * 5, "dates such as '2024-01-31'"),
    "unclear delimiter": ("a,b;y\n1,2;p\n3,4;q\n", "use --delimiter ',' or --delimiter ';'"),
    "huge cell": ("a,y\n" + "x" * (2**20 + 1) + ",p\nu,q\n", "a cell of 1048577 bytes"),
    "endless quote": ('a,y\n"' + "x" * 2**24, "line 2: a quoted field has no closing quote"),
    "too many columns": (",".join(f"c{j}" for j in range(100_001)) + "\n", "100001 columns"),
    "a spreadsheet": (b"PK\x03\x04 and so on", "a zip archive or a spreadsheet"),
    "a pickle": (b"\x80\x04\x95 and so on", "a pickle, which is never loaded"),
    "truncated gzip": (gzip.compress(GOOD.encode())[:-20], "damaged or truncated gzip"),
    "damaged parquet": (b"PAR1 and so on", "damaged or unreadable Parquet"),
    "damaged feather": (b"ARROW1\0\0 and so on", "damaged or unreadable Feather"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_bad_data_with_their_place(run, tmp_path, case):
    content, said = BAD[case]
    path = written(tmp_path / "rows.csv", content)
    ran = run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK)
    assert ran.code == 3, ran.err
    assert said in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith(f"error: {path}")
    assert ran.out == ""
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_blocks_do_not_move_line_numbers(run, tmp_path, monkeypatch):
    monkeypatch.setattr("geomix.tablefile.byte_source.CHUNK", 61)
    test_bad_files_are_bad_data_with_their_place(run, tmp_path, "row too long")


def test_remedies_work(run, tmp_path):
    """What a refusal proposes is accepted next time."""
    again = {
        "a word among numbers": ["--missing", "?"],
        "thousands": ["--thousands", ","],
        "decimal comma": ["--decimal", ","],
        "labels missing": ["--drop-unlabelled"],
        "utf-16": ["--encoding", "utf-16"],
        "latin-1": ["--encoding", "latin-1", "--categorical", "c"],
        "unnamed column": ["--drop", ""],
    }
    for case, options in again.items():
        path = written(tmp_path / "rows.csv", BAD[case][0])
        output = tmp_path / "m.geomix"
        ran = run("fit", path, "--target", "y", "-o", output, *options, *QUICK)
        assert ran.code == 0, (case, ran.err)
    content = "1,2,p\n3,4,q\n" * 9
    path = written(tmp_path / "rows.csv", content)
    assert run("fit", path, "--target", "x2", "--no-header", "-o", output, *QUICK).code == 0


def test_thousands_and_decimals_are_numbers(run, tmp_path):
    plain = "a,y\n" + "".join(f"{1000 * k + 0.5},{'pq'[k % 2]}\n" for k in range(40))
    grouped = "a;y\n" + "".join(
        f"{1000 * k + 0.5:,}".replace(",", "_").replace(".", ",").replace("_", ".")
        + f";{'pq'[k % 2]}\n"
        for k in range(40)
    )
    run("fit", written(tmp_path / "a.csv", plain), "--target", "y", "-o", tmp_path / "a.geomix",
        *QUICK)  # fmt: skip
    ran = run("fit", written(tmp_path / "b.csv", grouped), "--target", "y", "-o",
              tmp_path / "b.geomix", "--decimal", ",", "--thousands", ".", *QUICK)  # fmt: skip
    assert ran.code == 0, ran.err
    assert (tmp_path / "a.geomix").read_bytes() == (tmp_path / "b.geomix").read_bytes()


def test_a_text_column_that_begins_like_numbers_is_text(run, tmp_path, monkeypatch):
    monkeypatch.setattr("geomix.tablefile.byte_source.CHUNK", 40)
    rows = [["7", "p"]] * 5 + [["red", "q"], ["blue", "p"]] * 10
    path = written(tmp_path / "rows.csv", csv_text(["c", "y"], rows))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK).code == 0
    column = geomix.load(tmp_path / "m.geomix").schema.columns[0]
    assert column.levels == ("7", "blue", "red")


def test_bombs_are_not_unfolded(run, tmp_path):
    bomb = written(tmp_path / "rows.csv", gzip.compress(GOOD.encode() + b"1,2,u,yes\n" * 10**6))
    ran = run(
        "fit",
        bomb,
        "--target",
        "y",
        "-o",
        tmp_path / "m.geomix",
        "--max-decompressed",
        "1m",
        *QUICK,
    )
    assert ran.code == 3
    assert "--max-decompressed" in ran.err
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": np.zeros(10**6), "y": ["p"] * 10**6}), bomb)
    ran = run("fit", bomb, "--target", "y", "-o", tmp_path / "m.geomix", "--max-decompressed", "9k")
    assert ran.code == 3
    assert "--max-decompressed" in ran.err


def test_parquet_columns_that_are_no_cells_are_refused_by_name(run, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = pa.array(["p", "q"] * 5)
    for column, said in (
        (pa.array([[1], [2]] * 5), "column 'a': list<"),
        (pa.array([{"b": 1}] * 10), "column 'a': struct<"),
        (pa.array([b"1"] * 10), "column 'a': binary"),
        (
            pa.array(np.arange(10).astype("datetime64[D]")),
            "column 'a': the column holds dates or times",
        ),
        (pa.array([1.0, np.inf] * 5), "row 2, column 'a': the number is infinite"),
    ):
        pq.write_table(pa.table({"a": column, "y": labels}), tmp_path / "rows.parquet")
        ran = run("fit", tmp_path / "rows.parquet", "--target", "y", "-o", tmp_path / "m.geomix")
        assert ran.code == 3
        assert said in ran.err
    import decimal

    tenths = pa.array([decimal.Decimal(k) / 10 for k in range(10)])
    pq.write_table(
        pa.table({"a": tenths, "b": [True, None] * 5, "y": labels}), tmp_path / "rows.parquet"
    )
    ran = run(
        "fit", tmp_path / "rows.parquet", "--target", "y", "-o", tmp_path / "m.geomix", *QUICK
    )
    assert ran.code == 0, ran.err


# --- at predict ---


def test_missing_columns_are_all_named_with_what_is_near(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "A, b,d\n1,2,u\n")
    ran = run("predict", model, path)
    assert ran.code == 3
    assert "no columns 'a' (did you mean 'A'?), 'b' (did you mean ' b'?), 'c'" in ran.err
    assert ran.out == ""


def test_columns_are_matched_by_name_and_others_ignored_once(model, run, tmp_path):
    straight = written(tmp_path / "one.csv", "a,b,c\n1,2,u\n")
    mixed = written(tmp_path / "two.csv", "zz,c,b,a\n9,u,2,1\n")
    ran = run("predict", model, mixed)
    assert ran.out == run("predict", model, straight).out
    assert "their order differs" in ran.err
    assert ran.err.count("warning:") == 1
    assert "'zz'; they are ignored" in ran.err
    assert run("predict", model, mixed, "--strict-columns").code == 3
    strict = run("predict", model, mixed, "--strict")
    assert strict.code == 6
    assert strict.out == ""


def test_the_target_at_predict_is_ignored_or_judged(model, run, tmp_path):
    path = written(tmp_path / "rows.csv", GOOD)
    assert run("predict", model, path).err == ""
    judged = run("predict", model, path, "--target", "y")
    assert "accuracy" in judged.err
    assert judged.out == run("predict", model, path).out


def test_a_word_among_numbers_is_found_by_its_physical_line(model, run, tmp_path):
    rows = [["1.5", "2", "two\nlines"]] * 3000 + [["1", "abc", "u"]]
    path = written(tmp_path / "new.csv", csv_text(["a", "b", "c"], rows))
    ran = run("predict", model, path, "-o", tmp_path / "out.csv")
    assert ran.code == 3
    assert "line 6002, column 'b': 'abc' is not a number" in ran.err
    assert sorted(os.listdir(tmp_path)) == ["new.csv"]


def test_unknown_levels_are_counted_or_refused(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n1,2,new\n1,2,newer\n,,\n")
    ran = run("predict", model, path)
    assert ran.code == 0
    assert "Column 'c': 2 cells hold levels that are not in the training data" in ran.err
    assert "1 rows have no value in any column" in ran.err
    assert len(ran.out.splitlines()) == 5
    refused = run("predict", model, path, "--unknown", "error", "-o", tmp_path / "out.csv")
    assert refused.code == 3
    assert "line 3, column 'c': 'new' is not a level" in refused.err


NEW_LEVELS = "a,b,c,y\n1,2,u,yes\n1,2,new,yes\n-1,0,v,no\n0,2,newer,no\n"
READING = {
    "predict": ["--unknown", "allow"],
    "evaluate": ["--target", "y"],
    "explain": ["--target", "y"],
    "rules": ["--target", "y"],
    "report": ["--target", "y"],
    "drift": ["--reference", "rows.csv"],
}


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_rows_warns_of_unknown_levels(
    model, run, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "new.csv", NEW_LEVELS)
    written(tmp_path / "rows.csv", GOOD)
    output = ["-o", "out.html"] if command == "report" else []
    asked = [command, model, path, *READING[command], *output]
    ran = run(*asked)
    assert ran.code in (0, 1), ran.err
    said = f"Column 'c': 2 cells hold levels that are not in the training data ({path})"
    assert ran.err.count(said) == 1
    if output:
        os.remove("out.html")
    strict = run(*asked, "--strict")
    assert strict.code == 6
    assert said in strict.err
    assert sorted(os.listdir()) == ["new.csv", "rows.csv"]


@pytest.mark.parametrize("command", ["explain", "counterfactual"])
def test_an_unknown_level_of_one_row_is_warned_of_and_those_of_others_are_not(
    model, run, tmp_path, command
):
    path = written(tmp_path / "new.csv", NEW_LEVELS)
    assert "level" not in run(command, model, path, "--row", 1).err
    asked = [command, model, path, "--row", 2]
    assert "Column 'c': 'new' is not a level of the training data" in run(*asked).err
    assert run(*asked, "--strict").code == 6


def test_a_strict_prediction_of_unknown_levels_leaves_no_file(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,new\n,,\n")
    for name in ("out.csv", "out.csv.gz", "out.parquet"):
        assert run("predict", model, path, "-o", tmp_path / name, "--strict").code == 6
    assert os.listdir(tmp_path) == ["new.csv"]
    old = written(tmp_path / "old.csv", "as before")
    assert run("predict", model, path, "-o", old, "--force", "--strict").code == 6
    assert old.read_text() == "as before"


def test_strict_columns_are_refused_even_if_they_would_be_kept(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c,zz\n1,2,u,3\n")
    kept = run("predict", model, path, "--keep")
    assert (kept.code, kept.err) == (0, "")
    refused = run("predict", model, path, "--keep", "--strict-columns")
    assert refused.code == 3
    assert "columns that the model does not use: 'zz'" in refused.err


def test_no_rows_give_a_header(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n")
    ran = run("predict", model, path, "--proba")
    assert ran.code == 0
    assert ran.out == "prediction,probability,plane,p_no,p_yes\n"
    target = tmp_path / "out.parquet"
    assert run("predict", model, path, "-o", target).code == 0
    import pyarrow.parquet as pq

    assert pq.read_table(target).column_names == ["prediction", "probability", "plane"]


def test_unknown_labels_are_refused_with_their_line(model, run, tmp_path):
    path = written(tmp_path / "rows.csv", "a,b,c,y\n1,2,u,yes\n1,2,u,maybe\n")
    ran = run("evaluate", model, path, "--target", "y")
    assert ran.code == 3
    assert "line 3, column 'y': 'maybe' is not a class of the model" in ran.err


# --- files and models ---


def test_an_output_that_exists_is_kept_unless_forced(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")
    target = written(tmp_path / "out.csv", "precious")
    ran = run("predict", model, path, "-o", target)
    assert ran.code == 2
    assert "--force" in ran.err
    assert target.read_text() == "precious"
    assert run("predict", model, path, "-o", target, "--force").code == 0
    assert target.read_text().startswith("prediction")


def test_an_input_is_never_its_own_output(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")
    os.link(path, tmp_path / "other.csv")
    (tmp_path / "link.csv").symlink_to(path)
    for name in ("new.csv", "other.csv", "link.csv"):
        ran = run("predict", model, path, "-o", tmp_path / name, "--force")
        assert ran.code == 2
        assert "same file" in ran.err
    assert path.read_text() == "a,b,c\n1,2,u\n"
    assert run("fit", path, "--target", "c", "-o", path).code == 2


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["fit", "nowhere.csv", "--target", "y", "-o", "m.geomix"], 5, "nowhere.csv: No such file"),
        (["fit", ".", "--target", "y", "-o", "m.geomix"], 5, "Is a directory"),
        (["fit", "rows.csv", "--target", "y", "-o", "no/m.geomix"], 5, "no: No such directory"),
        (["fit", "rows.csv", "--target", "y", "-o", "."], 5, "Is a directory"),
        (["fit", "rows.csv", "--target", "y", "-o", "-"], 2, "-o must be a file"),
        (["fit", "rows.csv", "-o", "m.geomix"], 2, "--target is required"),
        (["fit", "rows.csv", "--target", "y"], 2, "--output is required"),
        (["fit", "rows.csv", "--target", "Y ", "-o", "m.geomix"], 3, "did you mean 'y'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--drop", "zz"], 3, "no column 'zz'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--test", "1.5"], 2, "between 0 and 1"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--set", "lift"], 2, "KEY=VALUE"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--set", "lfit=x"], 2, "'lift'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--set", "lift=x"], 2, "lift='x'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--time-limit", "-1"], 2, "time_limit"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--delimiter", ";;"], 2, "delimiter=';;'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--encoding", "x"], 2, "encoding='x'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--config", "no.toml"], 5, "no.toml"),
        (["predict", "nowhere.geomix", "rows.csv"], 5, "nowhere.geomix: No such file"),
        (["predict", "rows.csv", "rows.csv"], 4, "not a geomix model"),
        (["info", "nowhere"], 5, "No such file"),
        (["explain", "rows.csv", "--row", "0"], 2, "a row number from 1"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--weight", "y"], 2, "are one column"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--thousands", "1"], 2, "thousands='1'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--decimal", "5"], 2, "decimal='5'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--decimal", "e"], 2, "decimal='e'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--decimal=-"], 2, "decimal='-'"),
        (["fit", "rows.csv", "--target", "y", "-o", "m", "--encoding", "undefined"], 2, "encoding"),
        (["evaluate", "m", "rows.csv", "--target", "y", "--weight", "y"], 2, "are one column"),
        (["report", "m", "rows.csv", "--target", "y", "-o", "-"], 2, "-o must be a file"),
        (["report", "m", "-", "--target", "y", "-o", "r", "--new", "-"], 2, "cannot be both"),
        (["drift", "m", "-", "--reference", "-"], 2, "standard input cannot be both"),
        (["explain", "m", "rows.csv", "--row", "1", "--target", "y"], 2, "no use with --row"),
        (["nonsense"], 2, "invalid choice"),
        ([], 2, "required"),
    ],
)  # fmt: skip
def test_each_kind_of_mistake_has_its_exit_code(run, tmp_path, monkeypatch, argv, code, said):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "rows.csv", GOOD)
    ran = run(*argv)
    assert ran.code == code, ran.err
    assert said in ran.err
    assert ran.out == ""
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_usage_of_reading_commands(model, run, tmp_path):
    path = written(tmp_path / "rows.csv", GOOD)
    for argv in (
        ["explain", model, "--row", 1],
        ["explain", model, "--label", "yes"],
        ["explain", model, "--target", "y"],
        ["explain", model, path, "--row", 81],
        ["explain", model, path, "--row", 1, "--label", "nobody"],
        ["counterfactual", model, path, "--to", "nobody"],
        ["counterfactual", model, path, "--immutable", "zz"],
        ["counterfactual", model, path, "--range", "a=1"],
        ["rules", model, "--digits", 0],
        ["drift", geomix.__file__, path],
    ):
        assert run(*argv).code == (4 if argv[0] == "drift" else 2), argv


def test_a_model_of_a_later_version_is_a_bad_model_file(model, run, tmp_path):
    content = model.read_bytes()
    later = content.replace(b'\\"format_version\\":[1,0]', b'\\"format_version\\":[9,0]')
    assert later != content
    path = written(tmp_path / "later.geomix", later)
    rows = written(tmp_path / "rows.csv", GOOD)
    assert run("predict", path, rows, "-o", tmp_path / "out.csv").code == 4
    assert not (tmp_path / "out.csv").exists()


def test_a_full_disk_leaves_the_old_file_and_nothing_else(model, run, tmp_path, monkeypatch):
    path = written(tmp_path / "new.csv", GOOD)
    target = written(tmp_path / "out.csv", "old")
    model_file = written(tmp_path / "m.geomix", "old model")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    ran = run("predict", model, path, "-o", target, "--force")
    assert ran.code == 5
    assert ran.err == "error: no space left on the device\n"
    assert run("fit", path, "--target", "y", "-o", model_file, *QUICK).code == 5
    assert target.read_text() == "old"
    assert model_file.read_text() == "old model"
    assert sorted(os.listdir(tmp_path)) == ["m.geomix", "new.csv", "out.csv"]


def test_control_characters_of_a_file_never_reach_the_terminal(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c,\x1b[2J\n1,x\x1b[31mred,u,1\n")
    ran = run("predict", model, path)
    assert ran.code == 3
    assert "\x1b" not in ran.err
    assert "x\\x1b[31mred" in ran.err
    assert ran.out == ""


def test_an_error_of_ours_has_a_number_and_a_traceback_on_demand(model, run, tmp_path, monkeypatch):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")

    def broken(path):
        raise ZeroDivisionError("one\ntwo")

    monkeypatch.setattr("geomix.command.options.load_model", broken)
    ran = run("predict", model, path)
    assert ran.code == 1
    assert re.fullmatch(
        r"error: internal error [0-9a-f]{8} \(ZeroDivisionError: one two\).*\n", ran.err
    )
    assert "Traceback" in run("predict", model, path, "--debug").err


def test_absent_pyarrow_is_said_with_what_to_install(model, run, tmp_path, monkeypatch):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for argv in (["predict", model, path], ["evaluate", model, path, "--target", "c"],
                 ["fit", path, "--target", "c", "-o", tmp_path / "m.geomix"]):  # fmt: skip
        ran = run(*argv)
        assert ran.code == 2
        assert "pip install 'geomix[cli]'" in ran.err
    assert run("info", model).code == 0


def test_strict_makes_a_warning_an_error_before_anything_is_written(run, tmp_path):
    rows = [["", row[1], row[3]] for row in ROWS]
    path = written(tmp_path / "rows.csv", csv_text(["a", "b", "y"], rows))
    output = tmp_path / "m.geomix"
    ran = run("fit", path, "--target", "y", "-o", output, "--strict", *QUICK)
    assert ran.code == 6
    assert "Column 'a' is 100 % missing" in ran.err
    assert not output.exists()
    lenient = run("fit", path, "--target", "y", "-o", output, *QUICK)
    assert lenient.code == 0
    assert lenient.err.startswith("warning: Column 'a' is 100 % missing")


def test_a_fit_cut_short_is_warned_of_and_strict_is_about_data(run, tmp_path):
    path = written(tmp_path / "rows.csv", csv_text(["a", "b", "c", "y"], ROWS))
    given = ["fit", path, "--target", "y", "-o", tmp_path / "m.geomix", "--strict", *QUICK]
    ran = run(*given, "--set", "max_iter=1")
    assert ran.code == 0
    assert "warning: Training stopped at max_iter=1 before it converged" in ran.err


def test_long_identifiers_among_numbers_are_warned_about(run, tmp_path):
    rows = [[f"{9007199254740993 + 2 * k}", *row[1:]] for k, row in enumerate(ROWS)]
    path = written(tmp_path / "rows.csv", csv_text(["n", "b", "c", "y"], rows))
    ran = run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK)
    assert "beyond 2**53" in ran.err


def test_names_in_files_are_only_names(run, tmp_path):
    """Quotes, commas, markup, newlines and other scripts in names survive to the output."""
    names = ['a "quoted"', "b,c", "<script>", "d\ne", "年齢"]
    rng = np.random.default_rng(0)
    rows = [[f"{v:.3f}" for v in rng.normal(size=5)] for _ in range(60)]
    rows = [[*row, "J\nN" if float(row[0]) > 0 else "=ja"] for row in rows]
    path = written(tmp_path / "rows.csv", csv_text([*names, "y"], rows))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK).code == 0
    assert geomix.load(tmp_path / "m.geomix").columns == tuple(names)
    import csv

    out = run("predict", tmp_path / "m.geomix", path, "--keep", "--proba").out
    given = list(csv.DictReader(io.StringIO(out, newline="")))
    assert list(given[0])[:6] == [*names, "y"]
    assert {row["prediction"] for row in given} == {"J\nN", "=ja"}
    assert all(float(row["p_J\nN"]) + float(row["p_=ja"]) == pytest.approx(1) for row in given)


def test_flowers_are_as_the_other_tests_assume():
    names, rows = flowers()
    assert len(rows) == 150
    assert len({row[0] for row in rows}) == 150
    assert {len(row) for row in rows} == {len(names)}


def test_fit_overwrites_a_model_only_with_force(run, tmp_path):
    path, output = written(tmp_path / "rows.csv", GOOD), tmp_path / "m.geomix"
    given = ["fit", path, "--target", "y", "-o", output]
    written(output, "an old model")
    refused = run(*given)
    assert refused.code == 2
    assert refused.err == f"error: {output} exists; use --force to overwrite it\n"
    assert output.read_bytes() == b"an old model"
    assert run(*given, *QUICK).code == 0


@pytest.mark.parametrize(
    ("asked", "meant"), [("yy", "y"), ("Y", "y"), ("Petal_width", "petal width"), ("age ", "age")]
)
def test_a_missing_column_suggests_the_nearest(run, tmp_path, asked, meant):
    rows = [[i, i % 3, i % 5, "pq"[i % 2]] for i in range(30)]
    path = written(tmp_path / "rows.csv", csv_text(["age", "petal width", "y", "other"], rows))
    ran = run("fit", path, "--target", asked, "-o", tmp_path / "m.geomix")
    assert ran.code == 3
    assert f"no column {asked!r} (did you mean {meant!r}?)" in ran.err


def test_a_missing_column_without_a_near_name_lists_the_columns(run, tmp_path):
    path = written(tmp_path / "rows.csv", csv_text(["a", "b"], [[1, 2]]))
    ran = run("fit", path, "--target", "label", "-o", tmp_path / "m.geomix")
    assert "no column 'label', which the options name; its columns are 'a', 'b'." in ran.err


@pytest.mark.parametrize(
    "options",
    [("--level", "nan"), ("--level", "7"), ("--level", "0"), ("--level", "low"),
     ("--least-change", "-1"), ("--least-change", "nan")],
)  # fmt: skip
def test_thresholds_of_drift_must_be_probabilities(run, tmp_path, options):
    ran = run("drift", tmp_path / "m.geomix", tmp_path / "rows.csv", *options)
    assert ran.code == 2
    assert f"argument {options[0]}: got {options[1]!r}; expected a number" in ran.err


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", str(2**32)])
@pytest.mark.parametrize("command", ["fit", "demo"])
def test_a_seed_must_be_one_that_numpy_takes(run, command, seed, tmp_path):
    given = {"fit": [tmp_path / "rows.csv", "--target", "y", "-o", "m.geomix"], "demo": []}
    ran = run(command, *given[command], "--seed", seed)
    assert ran.code == 2
    assert f"argument --seed: got {seed!r}; expected a whole number from 0" in ran.err


def test_decimal_commas_at_prediction_advise_the_decimal_option(run, tmp_path):
    rows = written(tmp_path / "rows.csv", GOOD)
    run("fit", rows, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK)
    lines = GOOD.splitlines()
    cells = [line.replace(",", ";").replace(".", ",") for line in lines[1:]]
    cells[3] = "1,5;" + cells[3].split(";", 1)[1]
    new = written(tmp_path / "new.csv", "\n".join([lines[0].replace(",", ";"), *cells]))
    ran = run("predict", tmp_path / "m.geomix", new)
    assert ran.code == 3
    assert "use --decimal ,." in ran.err
    assert "--missing" not in ran.err
    assert run("predict", tmp_path / "m.geomix", new, "--decimal", ",").code == 0


def test_thousands_separators_stand_between_groups_of_three(run, tmp_path):
    rows = [[f"{1000 + i:,}", "pq"[i % 2]] for i in range(30)]
    good = written(tmp_path / "good.csv", csv_text(["a", "y"], rows, delimiter=";"))
    given = ["--target", "y", "-o", tmp_path / "m.geomix", "--thousands", ",", *QUICK]
    assert run("fit", good, *given).code == 0
    for odd in ("1,5", "1,23,456", "12345,678", ",123"):
        bad = [*rows[:-1], [odd, "p"]]
        new = written(tmp_path / "bad.csv", csv_text(["a", "y"], bad, delimiter=";"))
        refused = run("predict", tmp_path / "m.geomix", new, "--thousands", ",")
        assert refused.code == 3, odd
        assert f"{odd!r} is not a number" in refused.err
        assert "groups of three digits" in refused.err
        assert run("fit", new, *given).code == 3, odd


def test_a_header_of_numbers_is_read_if_the_model_knows_the_names(run, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)))
    labelled = frame.assign(y=np.where(frame[0] > 0, "yes", "no"))
    labelled.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "m.geomix"
    assert run("fit", tmp_path / "rows.csv", "--target", "y", "-o", output, *QUICK).code == 0
    ran = run("predict", output, tmp_path / "new.csv")
    assert ran.code == 0, ran.err
    assert ran.out == run("predict", output, tmp_path / "rows.csv").out
    for argv in (["explain", "--row", "1"], ["counterfactual"], ["rules"], ["drift"]):
        path = tmp_path / "new.csv"
        assert run(argv[0], output, path, *argv[1:]).code < 2, argv
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    ran = run("predict", output, tmp_path / "bare.csv")
    assert ran.code == 3
    assert "use --no-header" in ran.err


ODD_WEIGHTS = {"": "missing", "nan": "missing", "-1": "negative (-1)", "inf": "infinite"}


@pytest.mark.parametrize(("cell", "said"), ODD_WEIGHTS.items())
def test_odd_weights_of_test_rows_are_refused_with_their_line(model, run, tmp_path, cell, said):
    path = written(tmp_path / "test.csv", f"a,b,c,w,y\n1,2,u,1,yes\n1,2,u,{cell},yes\n")
    for argv in (
        ["evaluate", model, path, "--target", "y", "--weight", "w"],
        ["fit", tmp_path / "rows.csv", "--target", "y", "--weight", "w", "--test", path,
         "-o", tmp_path / "m.geomix", *QUICK],
    ):  # fmt: skip
        written(
            tmp_path / "rows.csv",
            csv_text(["a", "b", "c", "w", "y"], [[*r[:3], "2", r[3]] for r in ROWS]),
        )
        ran = run(*argv)
        assert ran.code == 3, ran.err
        assert f"{path}, line 3, column 'w': the " in ran.err
        assert said in ran.err


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 5, "No such file"),
        ("", 3, "the file is empty"),
        ("a,b,c,y\n", 3, "no rows"),
        ("a,b,c,z\n1,2,u,yes\n", 3, "no column 'y', which the options name"),
        ("a,c,y\n1,u,yes\n", 3, "no column 'b', which the model needs"),
        ("a,b,c,y\n1,2,u,yes\n1,2,u,\n", 3, "line 3, column 'y': the label is missing"),
        ("a,b,c,y\n1,2,u,yes\n1,2,u\n", 3, "line 3 has 3 fields"),
    ],
)
def test_a_bad_file_of_test_rows_is_refused_before_training(
    run, tmp_path, monkeypatch, how, content, code, said
):
    def trains(*args, **named):
        raise AssertionError("the training has begun")

    monkeypatch.setattr("geomix.GeometricMixtureClassifier.fit", trains)
    monkeypatch.setattr("geomix.out_of_core.fit.fit_estimator", trains)
    path, test = written(tmp_path / "rows.csv", GOOD), tmp_path / "test.csv"
    if content is not None:
        written(test, content)
    output = tmp_path / "m.geomix"
    ran = run("fit", path, "--target", "y", "--test", test, "-o", output, how, *QUICK)
    assert ran.code == code, ran.err
    assert f"error: {test}" in ran.err
    assert said in ran.err
    assert not output.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("command", ["fit", "report"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_what_cannot_be_replaced_is_refused_before_any_work(
    model, run, tmp_path, monkeypatch, command, kind
):
    output = "/dev/null"
    if kind == "pipe":
        os.mkfifo(output := tmp_path / "pipe")

    def works(*args, **named):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("geomix.GeometricMixtureClassifier.fit", works)
    monkeypatch.setattr("geomix.report.report", works)
    path = written(tmp_path / "rows.csv", GOOD)
    first = [path] if command == "fit" else [model, path]
    ran = run(command, *first, "--target", "y", "-o", output)
    assert ran.code == 5
    assert ran.err == f"error: {output}: Not a regular file\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_device_or_a_pipe_needs_no_folder_that_can_be_written(tmp_path, monkeypatch):
    os.mkfifo(pipe := tmp_path / "pipe")
    can_write = {os.fsdecode(pipe)}
    monkeypatch.setattr(os, "access", lambda path, mode: os.fsdecode(path) in can_write)
    check_writable(pipe)
    with pytest.raises(PermissionError):
        check_writable(tmp_path / "rows.csv")
    can_write.clear()
    with pytest.raises(PermissionError):
        check_writable(pipe)


@pytest.mark.parametrize(
    "name",
    [
        "p.feather",
        "p.arrow",
        "p.json",
        "p.JSONL",
        "p.xlsx",
        "p.csv.zst",
        "p.csv.bz2",
        "p.parquet.gz",
    ],
)
def test_an_output_of_a_form_that_is_not_written_is_refused(model, run, tmp_path, name):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")
    ran = run("predict", model, path, "-o", tmp_path / name)
    assert ran.code == 2
    assert "is not written; expected .csv, .tsv (also with .gz) or .parquet" in ran.err
    assert os.listdir(tmp_path) == ["new.csv"]


def test_the_ending_of_the_file_and_no_folder_chooses_the_form(model, run, tmp_path):
    path = written(tmp_path / "new.csv", "a,b,c\n1,2,u\n")
    (folder := tmp_path / "a.tsv.d").mkdir()
    for name, mark in (("p.csv.gz", ","), ("p.gz", ","), ("p.tsv.gz", "\t"), ("P.TSV.GZ", "\t")):
        assert run("predict", model, path, "-o", folder / name).code == 0
        header = gzip.decompress((folder / name).read_bytes()).decode().splitlines()[0]
        assert header.split(mark) == ["prediction", "probability", "plane"]


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
@pytest.mark.parametrize("number", ["1e39", "-3.5e38"])
def test_a_number_too_large_for_float32_is_refused_with_its_line(run, tmp_path, how, number):
    path = written(tmp_path / "rows.csv", with_line(50, f"{number},2,u,yes\n"))
    asked = ["fit", path, "--target", "y", "-o", tmp_path / "m.geomix", how, *QUICK]
    ran = run(*asked, "--single")
    assert ran.code == 3
    said = f"{path}, line 50, column 'a': {float(number):g} is too large for float32; leave out"
    assert said in ran.err
    written(path, with_line(50, "3.4e38,2,u,yes\n"))
    assert "too large" not in run(*asked, "--single").err


@pytest.mark.parametrize("kept", ["prediction", "Plane", "p_yes", "twice"])
def test_sql_with_two_columns_of_one_name_is_refused(model, run, kept):
    asked = ["export", model, "--to", "sql", "--table", "t", "--keep", "twice"]
    assert run(*asked).code == 0
    ran = run(*asked, "--keep", kept)
    assert ran.code == 2
    assert f"two columns {kept!r}" in ran.err
