"""Every flag of the reading and training commands does what its argument does in Python."""

import json
import os
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from cli_files import QUICK, csv_text, flowers, runner, written

import geomix
from geomix.command import completion, parser


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with rows, and a model of them."""
    from geomix.cli import main

    folder = tmp_path_factory.mktemp("flags")
    path = written(folder / "rows.csv", csv_text(*flowers()))
    given = ["fit", path, "--target", "kind", "--id", "id", "-o", folder / "m.geomix", "--quiet"]
    assert main([*map(str, given), *QUICK]) == 0
    return folder


def rows_of(folder):
    frame = pd.read_csv(folder / "rows.csv", dtype={"id": str, "soil": str, "kind": str})
    y = frame.pop("kind").to_numpy()
    return frame.drop(columns="id").assign(soil=frame["soil"].astype("category")), y


# --- fit ---


def test_single_is_a_fit_on_float32(run, tmp_path, rng):
    X = rng.normal(size=(200, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(X[:, 0] > X[:, 1], "p", "q"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = [tmp_path / "rows.csv", "--target", "y", *QUICK]
    assert run("fit", *given, "-o", tmp_path / "single.geomix", "--single").code == 0
    assert run("fit", *given, "-o", tmp_path / "double.geomix").code == 0
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    for name, dtype in (("single", np.float32), ("double", np.float64)):
        model = geomix.load(tmp_path / f"{name}.geomix")
        clf.fit(frame[list("abc")].astype(dtype), frame["y"])
        assert np.array_equal(model.planes.weights, clf.model_.planes.weights)
    assert (tmp_path / "single.geomix").read_bytes() != (tmp_path / "double.geomix").read_bytes()


def test_a_preset_is_that_of_the_estimator(trained, run, tmp_path):
    given = [trained / "rows.csv", "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix"]
    ran = run("fit", *given, "--preset", "fast")
    assert ran.code == 0, ran.err
    assert "Chosen: spline" in ran.out
    assert geomix.load(tmp_path / "m.geomix").training["parameters"]["preset"] == "fast"
    refused = run("fit", *given, "--preset", "quick")
    assert refused.code == 2
    assert "quick" in refused.err


def test_paper_is_the_papers_recipe(trained, run, tmp_path):
    given = [trained / "rows.csv", "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix"]
    ran = run("fit", *given, "--paper", "--seed", "5", "--set", "max_iter=20", "--set", "pca=null")
    assert ran.code == 0, ran.err
    X, y = rows_of(trained)
    clf = geomix.GeometricMixtureClassifier.paper(random_state=5, max_iter=20, pca=None)
    P = clf.fit(X, y).predict_proba(X)
    model = geomix.load(tmp_path / "m.geomix")
    np.testing.assert_array_equal(model.predict_proba(X), P)
    assert model.training["parameters"] == clf.model_.training["parameters"]


# --- counterfactual ---

CHANGES = {
    "levels": (["--levels", "soil=clay"], {"ranges": {"soil": ["clay"]}}),
    "to": (["--to", "virginica"], {"target": "virginica"}),
    "increase": (["--increase-only", "petal width"], {"increase_only": ["petal width"]}),
    "decrease": (["--decrease-only", "petal length"], {"decrease_only": ["petal length"]}),
    "l1": (["--norm", "l1"], {"norm": "l1"}),
    "sparse": (["--sparse", "1"], {"sparse": 1}),
    "range": (["--range", "petal width=:1.8"], {"ranges": {"petal width": (-np.inf, 1.8)}}),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_limits_of_a_counterfactual_are_those_of_the_model(trained, run, case):
    flags, options = CHANGES[case]
    model, (X, _) = geomix.load(trained / "m.geomix"), rows_of(trained)
    files = trained / "m.geomix", trained / "rows.csv"
    ran = run("counterfactual", *files, "--row", "4", *flags, "--json")
    found = model.counterfactual(X.iloc[3:4], **options)
    assert json.loads(ran.out) == json.loads(json.dumps(found.to_dict(), default=str)), ran.err
    assert ran.code == (0 if found.status == "found" else 1)


def test_levels_keep_a_category_within_those_allowed(run, tmp_path, rng):
    colour = rng.choice(["red", "green", "blue"], 300)
    rows = [[f"{rng.normal():.3f}", c, "yes" if c == "blue" else "no"] for c in colour]
    path = written(tmp_path / "rows.csv", csv_text(["x", "colour", "y"], rows))
    model = tmp_path / "m.geomix"
    assert run("fit", path, "--target", "y", "-o", model, *QUICK).code == 0
    row = 1 + next(i for i, c in enumerate(colour) if c == "red")
    asked = ["counterfactual", model, path, "--row", row, "--to", "yes", "--json"]
    free = json.loads(run(*asked).out)
    assert "blue" in json.dumps(free)
    held = run(*asked, "--levels", "colour=red,green")
    assert '"blue"' not in held.out
    assert run(*asked, "--levels", "colour").code == 2


@pytest.mark.parametrize(
    ("levels", "limits"),
    [([1, 2, 3], "code=1,3"), ([0.5, 1.5, 2.5], "code=0.5,2.5"), ([True, False], "code=false")],
)
def test_levels_that_are_numbers_or_booleans_are_named_by_their_text(
    run, tmp_path, rng, levels, limits
):
    cells = rng.choice(levels, 200)
    X = pd.DataFrame({"code": pd.Categorical(cells), "x": rng.normal(size=200)})
    y = np.where((cells == levels[1]) ^ (X["x"] > 1), "yes", "no")
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=0.001, random_state=0)
    clf.fit(X, y).model_.save(tmp_path / "m.geomix")
    X.assign(x=0.0).iloc[:1].to_csv(tmp_path / "rows.csv", index=False)
    asked = ["counterfactual", tmp_path / "m.geomix", tmp_path / "rows.csv", "--json"]
    ran = run(*asked, "--levels", limits)
    assert ran.code in (0, 1), ran.err
    allowed = [level for level in levels if str(level).casefold() in limits]
    assert len(allowed) == limits.count(",") + 1
    row = pd.DataFrame({"code": X["code"].iloc[:1], "x": [0.0]})
    found = geomix.load(tmp_path / "m.geomix").counterfactual(row, ranges={"code": allowed})
    assert json.loads(ran.out) == json.loads(json.dumps(found.to_dict(), default=str))


@pytest.mark.parametrize(
    ("option", "limits", "said"),
    [
        ("--range", "soil=1:2", "'soil' is a category, which has no range; use --levels soil=A,B"),
        ("--levels", "petal width=1,2", "holds numbers, which are no levels; use --range"),
        ("--range", "petal width=nan:1", "expected COL=LOW:HIGH, two numbers"),
        ("--range", "petal width=1:nan", "expected COL=LOW:HIGH, two numbers"),
        ("--range", "petal=1:2", "Got the column 'petal'"),
        ("--levels", "dirt=1,2", "Got the column 'dirt'"),
        ("--levels", "soil=dust", "Got no known level in ranges of 'soil'"),
    ],
)
def test_ranges_are_for_numbers_and_levels_for_categories(trained, run, option, limits, said):
    ran = run("counterfactual", trained / "m.geomix", trained / "rows.csv", option, limits)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


# --- drift ---


def test_a_least_change_and_a_level_decide_together(trained, run, tmp_path):
    model, (X, y) = geomix.load(trained / "m.geomix"), rows_of(trained)
    names, cells = flowers()
    kept = np.flatnonzero((y != "setosa") | (np.arange(len(y)) % 2 == 1))
    new = written(tmp_path / "new.csv", csv_text(names, [cells[i] for i in kept] * 4))
    found = json.loads(run("drift", trained / "m.geomix", new, "--json").out)
    direct = model.compare(X, pd.concat([X.iloc[kept]] * 4))
    assert found["p_value"] == pytest.approx(direct.p_value)
    largest = max(abs(plane["change"]) for plane in found["planes"])
    assert largest == pytest.approx(max(abs(one.change) for one in direct.planes))
    assert 0.0 < found["p_value"] < 0.01
    for flags, code in (
        ([], 1),
        (["--least-change", f"{largest - 0.001}"], 1),
        (["--least-change", f"{largest + 0.001}"], 0),
        (["--level", f"{found['p_value'] / 2}"], 0),
        (["--level", f"{found['p_value'] * 2}", "--least-change", f"{largest - 0.001}"], 1),
    ):
        assert run("drift", trained / "m.geomix", new, *flags).code == code, flags


# --- explain, rules, report, export ---


def test_one_class_is_held_against_another(trained, run):
    model, (X, _) = geomix.load(trained / "m.geomix"), rows_of(trained)
    ran = run("explain", trained / "m.geomix", trained / "rows.csv", "--row", "2",
              "--label", "setosa", "--against", "virginica")  # fmt: skip
    told = model.explain_local(X.iloc[1:2], label="setosa", against="virginica")
    assert ran.out == f"{told}\n"
    assert run("explain", trained / "m.geomix", "--against", "setosa").code == 2


def test_rules_of_one_class_with_few_terms(trained, run):
    model, (X, y) = geomix.load(trained / "m.geomix"), rows_of(trained)
    ran = run("rules", trained / "m.geomix", trained / "rows.csv", "--target", "kind",
              "--class", "virginica", "--max-terms", "2", "--digits", "4")  # fmt: skip
    assert ran.out == f"{model.rules(X, y, class_='virginica', max_terms=2, digits=4)}\n"


def test_new_rows_are_part_of_the_report(trained, run, tmp_path):
    model, (X, y) = geomix.load(trained / "m.geomix"), rows_of(trained)
    names, cells = flowers(40)
    new = written(tmp_path / "new.csv", csv_text(names, cells))
    ran = run("report", trained / "m.geomix", trained / "rows.csv", "--target", "kind",
              "--new", new, "-o", tmp_path / "command.html")  # fmt: skip
    assert ran.code == 0, ran.err
    model.report(X, y, tmp_path / "direct.html", X_new=X[:40])
    assert (tmp_path / "command.html").read_bytes() == (tmp_path / "direct.html").read_bytes()


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_the_dialect_of_sql_is_the_librarys(trained, run, dialect):
    model = geomix.load(trained / "m.geomix")
    ran = run("export", trained / "m.geomix", "--to", "sql", "--table", "t", "--dialect", dialect)
    assert ran.out == geomix.export.to_sql(model, "t", dialect=dialect)


def test_the_text_of_missing_categories_is_an_option_of_onnx(tmp_path, run, rng):
    X = pd.DataFrame({"c": rng.choice(["", "a", "b"], 120), "z": rng.normal(size=120)})
    clf = geomix.GeometricMixtureClassifier(1, lift="linear", l2=1e-2, random_state=0)
    clf.fit(X, X.c == "a").model_.save(tmp_path / "m.geomix")
    export = ("export", tmp_path / "m.geomix", "--to", "onnx", "-o", tmp_path / "m.onnx")
    refused = run(*export)
    assert refused.code == 2
    assert "--missing-text" in refused.err
    assert run(*export, "--missing-text", "?").code == 0
    assert (tmp_path / "m.onnx").stat().st_size > 0


# --- completion ---


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_accepted_by_their_shell(run, tmp_path, shell):
    ran = run("completion", shell)
    script = written(tmp_path / "script", ran.out)
    for one in completion.command_facts(parser.parser()):
        for option in one.options:
            for name in option.names:
                shown = name
                if shell == "fish":
                    shown = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                assert shown in ran.out, (one.name, name)
    if shutil.which(shell) is not None:
        checked = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert checked.stderr == b""


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("geomix pre", {"predict"}),
        ("geomix fit --str", {"--stream", "--strict"}),
        ("geomix export m.geomix --to o", {"onnx"}),
        ("geomix completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_fish_offers_what_the_parser_knows(tmp_path, typed, offered):
    script = completion.fish(completion.command_facts(parser.parser()))
    asked = f"source {written(tmp_path / 'geomix.fish', script)}; complete -C '{typed}'"
    home = os.environ | {"HOME": str(tmp_path)}
    command = ["fish", "--no-config", "-c", asked]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=home)
    assert {line.split("\t")[0] for line in ran.stdout.splitlines()} == offered
