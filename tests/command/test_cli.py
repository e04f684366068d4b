"""The command line gives the results of the Python API, for every format of a file."""

import csv
import gzip
import io
import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from cli_files import QUICK, csv_text, flowers, runner, written

import geomix
from geomix.command import bench, completion, parser


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with rows, and a model of them."""
    folder = tmp_path_factory.mktemp("cli")
    written(folder / "rows.csv", csv_text(*flowers()))
    assert fit(folder / "rows.csv", folder / "m.geomix") == 0
    return folder


def fit(data, output, *more):
    from geomix.cli import main

    given = ["fit", data, "--target", "kind", "--id", "id", "-o", output, "--quiet", *QUICK, *more]
    return main([str(one) for one in given])


def frame_of(path):
    return pd.read_csv(path, dtype={"id": str, "soil": str, "kind": str}, keep_default_na=True)


def model_frame(path):
    frame = frame_of(path).drop(columns=["id", "kind"])
    return frame.assign(soil=frame["soil"].astype("category"))


# --- the same as in Python ---


def test_fit_is_the_estimator_on_the_same_frame(trained):
    frame = model_frame(trained / "rows.csv")
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    P = clf.fit(frame, frame_of(trained / "rows.csv")["kind"]).predict_proba(frame)
    model = geomix.load(trained / "m.geomix")
    assert model.columns == tuple(frame.columns)
    np.testing.assert_array_equal(model.predict_proba(frame), P)


def test_predict_answers_as_the_model_does_in_the_order_of_the_rows(trained, run):
    ran = run("predict", trained / "m.geomix", trained / "rows.csv", "--id", "id", "--proba")
    assert ran.code == 0
    answers = pd.read_csv(io.StringIO(ran.out), dtype=str)  # older readers of floats lose a bit
    model, frame = geomix.load(trained / "m.geomix"), model_frame(trained / "rows.csv")
    P = model.predict_proba(frame)
    assert answers["id"].tolist() == frame_of(trained / "rows.csv")["id"].tolist()
    assert answers["prediction"].tolist() == model.predict(frame).tolist()
    np.testing.assert_array_equal(answers[[f"p_{c}" for c in model.classes]].astype(float), P)
    np.testing.assert_array_equal(answers["probability"].astype(float), P.max(axis=1))
    told = model.explain_local(frame)
    planes = [told.responsible(i)[0]["plane"] + 1 for i in range(len(P))]
    assert answers["plane"].astype(int).tolist() == planes


def test_explained_predictions_name_the_strongest_columns(trained, run):
    ran = run("predict", trained / "m.geomix", trained / "rows.csv", "--explain")
    told = geomix.load(trained / "m.geomix").explain_local(model_frame(trained / "rows.csv"))
    for i, row in enumerate(csv.DictReader(io.StringIO(ran.out))):
        strongest = np.abs(told.contributions[i]).argmax()
        assert row["reasons"].startswith(told.columns[strongest])
        assert row["against"] == told.classes[told.against[i]]


def test_evaluate_gives_scikit_learns_figures(trained, run):
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    ran = run("evaluate", trained / "m.geomix", trained / "rows.csv", "--target", "kind", "--json")
    found = json.loads(ran.out)
    model, y = geomix.load(trained / "m.geomix"), frame_of(trained / "rows.csv")["kind"]
    frame = model_frame(trained / "rows.csv")
    assert found["accuracy"] == pytest.approx(accuracy_score(y, model.predict(frame)))
    assert found["macro_f1"] == pytest.approx(f1_score(y, model.predict(frame), average="macro"))
    assert found["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(frame)))
    assert found["n_rows"] == 150


def test_reading_commands_print_what_the_model_tells(trained, run):
    model, frame = geomix.load(trained / "m.geomix"), model_frame(trained / "rows.csv")
    files = trained / "m.geomix", trained / "rows.csv"
    y = frame_of(trained / "rows.csv")["kind"]
    told = run("explain", *files, "--target", "kind").out
    assert told == f"{model.explain_global(frame, y)}\n"
    assert run("explain", *files, "--row", 7).out == f"{model.explain_local(frame.iloc[6:7])}\n"
    assert run("rules", *files, "--json").out == (
        json.dumps(model.rules(frame).to_dict(), indent=2, ensure_ascii=False) + "\n"
    )
    ran = run("counterfactual", *files, "--row", 3, "--immutable", "petal width", "--json")
    direct = model.counterfactual(frame.iloc[2:3], immutable=["petal width"])
    assert json.loads(ran.out)["distance"] == pytest.approx(direct.distance)
    assert ran.code == 0


def test_a_counterfactual_that_cannot_be_is_exit_code_1(trained, run):
    frozen = [
        word for name in geomix.load(trained / "m.geomix").columns for word in ("--immutable", name)
    ]
    ran = run("counterfactual", trained / "m.geomix", trained / "rows.csv", *frozen)
    assert ran.code == 1
    assert "cannot become" in ran.out


def test_drift_tells_by_its_exit_code(trained, run, tmp_path):
    assert run("drift", trained / "m.geomix", trained / "rows.csv").code == 0
    names, rows = flowers()
    one_kind = written(
        tmp_path / "new.csv", csv_text(names, [r for r in rows if r[-1] == "setosa"])
    )
    ran = run("drift", trained / "m.geomix", one_kind, "--json")
    assert ran.code == 1
    by_reference = run(
        "drift", trained / "m.geomix", one_kind, "--reference", trained / "rows.csv", "--json"
    )
    with_columns = json.loads(by_reference.out)
    assert json.loads(ran.out) == with_columns | {"columns": []}
    assert len(with_columns["columns"]) == len(names) - 2  # without the identifier and the label


def test_drift_from_a_reference_prints_the_columns_that_moved_and_no_others(trained, run, tmp_path):
    names, rows = flowers()
    longer = [[*r[:3], str(float(r[3] or 1.0) + 1.5), *r[4:]] for r in rows]
    path = written(tmp_path / "new.csv", csv_text(names, longer))
    model, reference = trained / "m.geomix", trained / "rows.csv"
    moved = run("drift", model, path, "--reference", reference)
    table = moved.out.split("columns that moved:")[1].split("planes whose")[0].splitlines()
    assert len([line for line in table if line.strip()]) == 2  # headings, and the one column
    assert names[3] in table[2]
    assert "100%" in table[2]
    same = run("drift", model, reference, "--reference", reference)
    assert "no column moved" in same.out


def test_exports_are_those_of_the_library(trained, run, tmp_path):
    model = geomix.load(trained / "m.geomix")
    to_c = run("export", trained / "m.geomix", "--to", "c", "--prefix", "iris_")
    assert to_c.out == geomix.export.to_c(model, prefix="iris_")
    assert run("export", trained / "m.geomix", "--to", "json").out == geomix.export.to_json(model)
    to_sql = run("export", trained / "m.geomix", "--to", "sql", "--table", "t", "--keep", "id")
    assert to_sql.out == geomix.export.to_sql(model, "t", keep=["id"])
    assert run("export", trained / "m.geomix", "--to", "onnx", "-o", tmp_path / "m.onnx").code == 0
    assert (tmp_path / "m.onnx").stat().st_size > 1000
    assert run("export", trained / "m.geomix", "--to", "sql").code == 2
    assert run("export", trained / "m.geomix", "--to", "c", "--double").code == 2


def test_the_report_is_the_models_own(trained, run, tmp_path):
    model, frame = geomix.load(trained / "m.geomix"), model_frame(trained / "rows.csv")
    y = frame_of(trained / "rows.csv")["kind"].to_numpy()
    model.report(frame, y, tmp_path / "direct.html", title="Iris")
    ran = run(
        "report", trained / "m.geomix", trained / "rows.csv", "--target", "kind",
        "-o", tmp_path / "command.html", "--title", "Iris",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert (tmp_path / "command.html").read_bytes() == (tmp_path / "direct.html").read_bytes()


# --- a file in any dress ---


def in_latin_1(path, names, rows):
    rows = [[cell.replace("clay", "Löß") for cell in row] for row in rows]
    return written(path, csv_text(names, rows).encode("latin-1")), ["--encoding", "latin-1"]


DRESSES = {
    "semicolons": lambda p, n, r: written(p, csv_text(n, r, delimiter=";")),
    "bars": lambda p, n, r: written(p, csv_text(n, r, delimiter="|")),
    "tabs": lambda p, n, r: written(p.with_suffix(".tsv"), csv_text(n, r, delimiter="\t")),
    "crlf": lambda p, n, r: written(p, csv_text(n, r, lineterminator="\r\n")),
    "cr": lambda p, n, r: written(p, csv_text(n, r, lineterminator="\r", quoting=csv.QUOTE_ALL)),
    "bom": lambda p, n, r: written(p, csv_text(n, r).encode("utf-8-sig")),
    "all quoted": lambda p, n, r: written(p, csv_text(n, r, quoting=csv.QUOTE_ALL)),
    "no last line end": lambda p, n, r: written(p, csv_text(n, r).removesuffix("\n")),
    "blank lines": lambda p, n, r: written(p, csv_text(n, r).replace("\n0", "\n\n0")),
    "gzip": lambda p, n, r: written(p, gzip.compress(csv_text(n, r).encode())),
    "parquet": lambda p, n, r: as_parquet(p, n, r),
    "feather": lambda p, n, r: as_feather(p, n, r),
    "other order": lambda p, n, r: written(p, csv_text(n, r[::-1])),
}


def arrow_table(names, rows):
    import pyarrow as pa

    cells = dict(zip(names, zip(*rows, strict=True), strict=True))
    numbers = names[1:5]
    return pa.table(
        {
            name: pa.array([float(c) if c else None for c in column])
            if name in numbers
            else pa.array([c or None for c in column])
            for name, column in cells.items()
        }
    )


def as_parquet(path, names, rows):
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow_table(names, rows), path)
    return path


def as_feather(path, names, rows):
    import pyarrow.feather

    pyarrow.feather.write_feather(arrow_table(names, rows), str(path), chunksize=40)
    return path


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_rows_in_another_file_give_the_same_model(trained, dress, tmp_path):
    path = DRESSES[dress](tmp_path / "other.csv", *flowers())
    assert fit(path, tmp_path / "m.geomix") == 0
    assert (tmp_path / "m.geomix").read_bytes() == (trained / "m.geomix").read_bytes()


def test_a_new_users_table_works_end_to_end(run, tmp_path):
    """Semicolons, BOM, CRLF, quoted newlines, categories, missing cells, decimal commas."""
    names, rows = flowers()
    rows = [[*row[:1], *(c.replace(".", ",") for c in row[1:5]), *row[5:]] for row in rows]
    text = csv_text(names, rows, delimiter=";", lineterminator="\r\n")
    path = written(tmp_path / "flowers.csv", text.encode("utf-8-sig"))
    refused = run("fit", path, "--target", "kind", "-o", tmp_path / "m.geomix", "--id", "id")
    assert refused.code == 3
    assert "use --decimal ," in refused.err
    shown = run(
        "fit", path, "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix",
        "--test", "0.2", "--decimal", ",", *QUICK,
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert "the delimiter is ';'" in shown.err
    assert "120 rows of 4 numbers and 1 category, 3 classes" in shown.out
    assert "30 rows held out: accuracy" in shown.out
    answers = run("predict", tmp_path / "m.geomix", path, "--id", "id", "--decimal", ",")
    assert answers.code == 0
    found = pd.read_csv(io.StringIO(answers.out), dtype=str)
    assert found["id"].tolist() == [row[0] for row in rows]
    assert (found["prediction"] == [row[-1] for row in rows]).mean() > 0.9


# --- labels, identifiers, cells that are like others ---


def test_na_and_none_are_classes_and_only_empty_is_missing(run, tmp_path, rng):
    labels = ["NA", "None", "null"]
    rows = [[f"{rng.normal(3 * k):.3f}", labels[k]] for k in rng.integers(0, 3, 90)]
    path = written(tmp_path / "rows.csv", csv_text(["x", "y"], rows))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK).code == 0
    assert geomix.load(tmp_path / "m.geomix").classes.tolist() == labels
    ran = run("predict", tmp_path / "m.geomix", path)
    assert {line.split(",")[0] for line in ran.out.splitlines()[1:]} <= set(labels)


def test_whole_numbers_are_classes_as_numbers_and_others_as_text(run, tmp_path, rng):
    for labels, classes in ((["0", "10", "2"], [0, 2, 10]), (["00", "1", "2"], ["00", "1", "2"])):
        rows = [[f"{rng.normal():.3f}", labels[k]] for k in rng.integers(0, 3, 60)]
        path = written(tmp_path / "rows.csv", csv_text(["x", "y"], rows))
        assert run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK).code == 0
        assert geomix.load(tmp_path / "m.geomix").classes.tolist() == classes


def test_formulas_are_escaped_only_with_the_option(trained, run, tmp_path):
    names, rows = flowers(6)
    ids = ["=cmd|' /C calc'!A0", "@x", "+x", "-1", "-x", "007"]
    rows = [[one, *row[1:]] for one, row in zip(ids, rows, strict=True)]
    path = written(tmp_path / "rows.csv", csv_text(names, rows))
    escaped = [f"'{i}" if i not in ("-1", "007") else i for i in ids]
    for options, expected in (([], ids), (["--escape-formulas"], escaped)):
        out = run("predict", trained / "m.geomix", path, "--id", "id", *options).out
        assert [row["id"] for row in csv.DictReader(io.StringIO(out))] == expected


def test_kept_columns_pass_through_as_they_stand(trained, run, tmp_path):
    out = run("predict", trained / "m.geomix", trained / "rows.csv", "--keep").out
    names, rows = flowers()
    given = list(csv.reader(io.StringIO(out)))
    assert given[0][: len(names)] == names
    assert [row[: len(names)] for row in given[1:]] == rows
    target = tmp_path / "out.parquet"
    ran = run("predict", trained / "m.geomix", trained / "rows.csv", "--keep", "-o", target)
    assert ran.code == 0
    frame = pd.read_parquet(target)
    assert frame["sepal length"].tolist() == [row[1] for row in rows]
    assert frame["probability"].dtype == float


def test_a_column_of_codes_is_a_category_if_told_so(run, tmp_path, rng):
    codes = rng.integers(0, 4, 200)
    rows = [[f"{c:02d}", "a" if c in (0, 3) else "b"] for c in codes]
    path = written(tmp_path / "rows.csv", csv_text(["code", "y"], rows))
    run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", "--categorical", "code", *QUICK)
    model = geomix.load(tmp_path / "m.geomix")
    assert model.schema.columns[0].levels == ("00", "01", "02", "03")
    out = run("predict", tmp_path / "m.geomix", path).out
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == [row[1] for row in rows]


def test_levels_that_were_numbers_in_python_are_found_in_a_file(run, tmp_path, rng):
    codes = rng.integers(0, 4, 200)
    frame = pd.DataFrame({"code": pd.Categorical(codes), "flag": codes % 2 == 0})
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    clf.fit(frame, codes % 2 == 0).model_.save(tmp_path / "m.geomix")
    frame.assign(flag=1 - codes % 2, y=codes % 2 == 0).to_csv(tmp_path / "rows.csv", index=False)
    ran = run("evaluate", tmp_path / "m.geomix", tmp_path / "rows.csv", "--target", "y", "--json")
    assert json.loads(ran.out)["accuracy"] == 1.0


def test_weights_count_as_repeated_rows(run, tmp_path, rng):
    drawn = rng.integers(0, 2, (80, 2))
    rows = [[f"{rng.normal():.3f}", "ab"[k], str(w + 1)] for k, w in drawn]
    once = written(tmp_path / "w.csv", csv_text(["x", "y", "w"], rows))
    repeated = [row for row in rows for _ in range(int(row[2]))]
    twice = written(tmp_path / "r.csv", csv_text(["x", "y", "w"], repeated))
    run("fit", once, "--target", "y", "--weight", "w", "-o", tmp_path / "a.geomix", *QUICK)
    run("fit", twice, "--target", "y", "--drop", "w", "-o", tmp_path / "b.geomix", *QUICK)
    grid = np.linspace(-3, 3, 50)[:, None]
    one, other = (geomix.load(tmp_path / f"{name}.geomix").predict_proba(grid) for name in "ab")
    np.testing.assert_allclose(one, other, atol=1e-7)


# --- options ---


def test_the_command_line_wins_over_the_recipe(trained, run, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'target = "kind"\nid = "id"\nseed = 3\n'
        '[parameters]\nlift = "spline"\nn_planes = 1\nl2 = 0.01\n'
    )
    ran = run(
        "fit", trained / "rows.csv", "--config", recipe, "-o", tmp_path / "a.geomix", "--json"
    )
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["lift"] == "spline"
    run(
        "fit", trained / "rows.csv", "--config", recipe, "-o", tmp_path / "b.geomix",
        "--set", "lift=linear", "--set", "l2=0.001", "--seed", "0",
    )  # fmt: skip
    assert (tmp_path / "b.geomix").read_bytes() == (trained / "m.geomix").read_bytes()


def test_names_of_the_recipe_are_parameters_as_all_others(trained, run, tmp_path):
    config = written(tmp_path / "config.toml", "[parameters]\nsharpness = 8\nl2 = 0.01\n")
    given = [
        "fit",
        trained / "rows.csv",
        "--target",
        "kind",
        "--id",
        "id",
        "--config",
        config,
        *QUICK,
    ]
    ran = run(*given, "--set", "sharpness_start=2", "-o", tmp_path / "m.geomix")
    assert ran.code == 0, ran.err
    model = geomix.load(tmp_path / "m.geomix")
    assert model.sharpness == 8.0
    assert model.training["parameters"]["sharpness_start"] == 2.0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[parameters]\nsharpnes = 8", "no parameter 'sharpnes'; did you mean 'sharpness'?"),
        ("[parameters]\nadvanced = 8", "is set by the names of its own fields"),
        ("[parameters]\nsharpness = 0", "Got sharpness=0"),
        ("tarqet = 'y'", "no option 'tarqet'; did you mean 'target'?"),
        ("seed = 'a'", "seed"),
        ("seed = -1", "got seed = -1; expected a whole number from 0 to 4294967295"),
        ("sett = 'lift=spline'", "no option 'sett'"),
        ("set = 'lift=spline'", "no option 'set'; write parameters in the table [parameters]"),
        ("config = 'a.toml'", "no option 'config'; a settings file cannot name another one"),
        ("data = 'rows.csv'", "no option 'data'; name the files of rows on the command line"),
        ("drop = 3", "drop"),
        ("= 1", "Invalid"),
        ("parameters = 1", "[parameters] must be a table"),
        ("[parameters]\nliftt = 'x'", "no parameter 'liftt'; did you mean 'lift'?"),
        ("[parameters]\nrandom_state = 1", "is set by --seed"),
        ("[parameters]\nmax_planes = 0", "max_planes=0"),
    ],
)
def test_a_bad_recipe_is_bad_usage(trained, run, tmp_path, content, said):
    recipe = written(tmp_path / "recipe.toml", content)
    output = tmp_path / "m.geomix"
    ran = run("fit", trained / "rows.csv", "--target", "kind", "--config", recipe, "-o", output)
    assert ran.code == 2
    assert said in ran.err
    assert "did you mean 'set'" not in ran.err
    assert not output.exists()


def test_same_seed_same_bytes(trained, tmp_path):
    assert fit(trained / "rows.csv", tmp_path / "m.geomix") == 0
    assert (tmp_path / "m.geomix").read_bytes() == (trained / "m.geomix").read_bytes()


def test_summary_says_which_lift_and_why(trained, run, tmp_path):
    ran = run(
        "fit", trained / "rows.csv", "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix",
        "--set", "lift=linear", "--set", "n_planes=1", "--test", trained / "rows.csv",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "linear lift, planes per class: setosa 1, versicolor 1, virginica 1" in ran.out
    assert "Chosen: " in ran.out
    assert "accuracy" in ran.out
    assert ran.err == ""  # nobody watches: no progress


def test_info_and_verify(trained, run, tmp_path):
    import hashlib

    path = trained / "m.geomix"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    ran = run("info", path)
    assert digest in ran.out
    assert "setosa" in ran.out
    assert json.loads(run("info", path, "--json").out)["sha256"] == digest
    assert run("verify", path).code == 0
    assert run("verify", path, "--sha256", digest.upper()).code == 0
    assert run("verify", path, "--sha256", "0" * 64).code == 4
    assert run("verify", path, "--sha256", "xyz").code == 2
    broken = written(tmp_path / "broken.geomix", path.read_bytes()[:-1])
    ran = run("info", broken)
    assert ran.code == 4
    assert "bytes" in ran.out
    assert ran.err.startswith("error: ")


# --- completion ---


def test_completions_name_every_command_and_option():
    facts = completion.command_facts(parser.parser())
    assert {one.name for one in facts} == {
        module.__name__.rpartition(".")[2] for module in parser.COMMANDS
    }
    for shell in (completion.bash, completion.zsh, completion.fish):
        text = shell(facts)
        for one in facts:
            assert one.name in text
            for option in one.options:
                assert any(name.lstrip("-") in text for name in option.names)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["geomix", "pre"], {"predict"}),
        (["geomix", "fit", "--tar"], {"--target"}),
        (["geomix", "export", "m.geomix", "--to", "o"], {"onnx"}),
        (["geomix", "completion", ""], {"bash", "zsh", "fish"}),
    ],
)
def test_bash_offers_what_the_parser_knows(typed, offered):
    script = completion.bash(completion.command_facts(parser.parser()))
    words = " ".join(f"'{word}'" for word in typed)
    asked = f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _geomix\n"
    asked += 'printf "%s\\n" "${COMPREPLY[@]}"'
    ran = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == offered


def test_bench_outside_a_clone_says_where_the_benchmarks_are(run, monkeypatch, tmp_path):
    monkeypatch.setattr(geomix, "__file__", str(tmp_path / "a" / "b" / "geomix" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    ran = run("bench", "paper")
    assert ran.code == 2
    assert "inside a clone" in ran.err


def test_bench_lists_what_a_clone_can_run(run):
    ran = run("bench", "--list")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == list(bench.BENCHMARKS)
    assert run("bench").code == 2


@pytest.mark.parametrize("name", bench.BENCHMARKS)
def test_bench_finds_every_benchmark_that_it_lists(name):
    script = bench.script_of(name)
    assert (script / "__main__.py" if script.is_dir() else script).is_file()


@pytest.mark.parametrize("name", ["paper", "suite"])
def test_bench_starts_a_benchmark_with_its_own_options(run, name):
    ran = run("bench", name, "--help")
    assert ran.code == 0
    assert "--quick" in ran.out


def test_bench_returns_the_exit_code_of_the_benchmark(run):
    assert run("bench", "paper", "--no-such-option").code == 2


def test_labels_of_signs_come_out_as_they_went_in(run, tmp_path):
    rows = [[i % 7, i % 5, "+-"[i % 2]] for i in range(60)]
    path = written(tmp_path / "rows.csv", csv_text(["a", "b", "y"], rows))
    assert run("fit", path, "--target", "y", "-o", tmp_path / "m.geomix", *QUICK).code == 0
    out = run("predict", tmp_path / "m.geomix", path).out
    assert {row["prediction"] for row in csv.DictReader(io.StringIO(out))} == {"+", "-"}


def test_planes_are_counted_from_one_in_predictions_and_drift(trained, run):
    out = run("predict", trained / "m.geomix", trained / "rows.csv").out
    assert {row["plane"] for row in csv.DictReader(io.StringIO(out))} == {"1"}


def test_drift_prints_the_planes_that_moved_and_no_others(trained, run, tmp_path):
    same = run("drift", trained / "m.geomix", trained / "rows.csv")
    assert same.out.startswith("no drift: p = 1")
    assert "no plane's share of the rows changed" in same.out
    names, rows = flowers()
    path = written(tmp_path / "new.csv", csv_text(names, [r for r in rows if r[-1] != "setosa"]))
    moved = run("drift", trained / "m.geomix", path)
    assert moved.code == 1
    assert moved.out.startswith("drift: p = ")
    assert "setosa      1" in moved.out
    assert "-33." in moved.out
