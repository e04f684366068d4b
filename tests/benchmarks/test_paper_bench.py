"""The paper's experiments: what they measure and conclude, and one cheap run from end to end."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest
from places import ROOT
from scipy import stats

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
BENCHMARKS = ROOT / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("benchmarks are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import timing  # noqa: E402
from paper import (  # noqa: E402
    ablations,
    bayes,
    claims,
    concepts,
    data,
    differences,
    goals,
    limits,
    measure,
    models,
    render,
    results,
    run,
    sensitivity,
    sets,
    show,
    tables,
    variants,
)
from paper.results import ABLATIONS, LIMITS, MODELS, Measured, Results, Run  # noqa: E402
from paper.tables import Cell, Table  # noqa: E402

from geomix.training.settings import PAPER, Settings  # noqa: E402


def made(part=MODELS, **figures):
    """``figures[dataset]`` is a dict of model to accuracies by seed."""
    return Results(
        {
            Run(part, dataset, model, seed): Measured("ok", {"accuracy": value})
            for dataset, by_model in figures.items()
            for model, values in by_model.items()
            for seed, value in enumerate(values)
        }
    )


# --- the protocol ---


def test_a_split_is_stratified_60_20_20_and_disjoint(rng):
    y = rng.permutation(np.repeat([0, 1, 2], [100, 200, 300]))
    X = np.arange(600.0)[:, None]
    split = data.split_rows(X, y, 0)
    parts = [split.X_train, split.X_valid, split.X_test]
    assert [len(part) for part in parts] == [360, 120, 120]
    assert np.array_equal(np.sort(np.concatenate(parts).ravel()), np.arange(600.0))
    assert np.array_equal(
        np.sort(split.X_learn.ravel()), np.sort(np.concatenate(parts[:2]).ravel())
    )
    for codes in (split.y_train, split.y_valid, split.y_test):
        assert np.bincount(codes).tolist() == [len(codes) // 6, len(codes) // 3, len(codes) // 2]
    assert (y[split.X_test.ravel().astype(int)] == split.y_test).all()


def test_every_variant_is_a_recipe_and_differs_from_the_papers():
    same = {ablations.key(ablations.RECIPE, ablations.EITHER)}
    same |= {sensitivity.key(*pair) for pair in variants.CENTRES.items()}
    for name, changes in {**ablations.VARIANTS, **sensitivity.VARIANTS}.items():
        assert (Settings(**{**PAPER, **changes}) == Settings(**PAPER)) == (name in same), name


def test_a_model_whose_library_is_missing_is_left_out_with_a_note(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pygam" else 1)
    assert run.available(["gam", "logistic"]) == ["logistic"]
    assert "Left out: gam needs pygam; install the extra 'bench'." in capsys.readouterr().err


def test_every_model_of_the_papers_tables_is_there():
    found = {model.paper for model in models.every().values() if model.paper}
    assert found == set(models.ORDER)
    assert next(iter(models.every())) == "geomix"


DOCS = ROOT / "docs" / "benchmarks" / "paper.md"


def test_the_documented_file_is_a_model(tmp_path, monkeypatch, iris):
    code = DOCS.read_text().split("## Add a model")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "lda.py").write_text(code)
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path)])
    try:
        assert "lda" in models.every()
        split = data.split_rows(*iris, 0)
        fitted = models.get("lda").fit(split, 0)
        assert (fitted.predict(split.X_test) == split.y_test).mean() > 0.9
        assert fitted.after(split.X_test).sum(axis=1) == pytest.approx(1.0)
    finally:
        sys.modules.pop("paper.models.lda")


def test_a_file_of_sets_is_a_data_set(tmp_path, monkeypatch):
    lines = (
        "from geomix.datasets import Dataset, load as known",
        "def load():",
        "    iris = known('iris')",
        "    return Dataset('flowers', iris.X, iris.y, iris.columns, iris.classes, 'iris again')",
    )
    (tmp_path / "flowers.py").write_text("\n".join(lines))
    monkeypatch.setattr(sets, "__path__", [*sets.__path__, str(tmp_path)])
    try:
        assert data.names()[-1] == "flowers"
        assert data.load("flowers").X.shape == (150, 4)
        jobs = run.planned(run.selected(["flowers"], quick=True), 1)
        assert {job.run.dataset for job in jobs} == {"flowers"}
    finally:
        sys.modules.pop("paper.sets.flowers")


# --- measurements ---


def test_terms_needed_is_the_smallest_subset_that_suffices(rng):
    contributions = rng.standard_normal((40, 6)) ** 3
    found = measure.terms_needed(contributions, 0.8)
    for row, count in zip(np.abs(contributions), found, strict=True):
        enough = [
            size
            for size in range(1, 7)
            if any(sum(row[list(some)]) >= 0.8 * row.sum() for some in combinations(range(6), size))
        ]
        assert count == enough[0]


def test_latency_counts_its_calls_and_asks_about_every_row():
    asked = []
    found = timing.latency(asked.append, [1, 2, 3], most_calls=5000, most_seconds=60.0)
    assert found.calls == 5000
    assert len(asked) >= 5000 + 5  # and the warm-up before
    assert set(asked) == {1, 2, 3}
    assert 0 < found.typical < 1.0
    slow = timing.latency(asked.append, [1], most_calls=10**9, most_seconds=0.01)
    assert 0 < slow.calls < 10**9


def test_the_recipe_run_equals_the_estimator_by_hand(monkeypatch):
    from sklearn.metrics import accuracy_score

    from geomix import GeometricMixtureClassifier, datasets

    for name in ("limit_memory", "limit_processor"):  # they would hold for all later tests
        monkeypatch.setattr(measure, name, lambda limit: None)
    answer = measure.measure(measure.Job(Run(MODELS, "iris", "geomix_paper", 1), 0.0))
    iris = datasets.load("iris")
    split = data.split_rows(iris.X, iris.y, 1)
    clf = GeometricMixtureClassifier.paper(random_state=1)
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    expected = accuracy_score(split.y_test, clf.predict(split.X_test))
    assert (answer["status"], answer["values"]["accuracy"]) == ("ok", expected)
    assert answer["values"]["n_planes"] == clf.n_planes_.sum()


def test_a_committee_is_concentrated_member_by_member(rng):
    from types import SimpleNamespace

    from geomix.core.planes import Planes, ensemble

    members = [
        Planes(rng.standard_normal((5, 3)), rng.standard_normal(5), np.array([0, 2, 5]))
        for _ in range(4)
    ]
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 2

    def of(planes):
        answers = lambda rows: planes.pooled(planes.scores(rows), 6.0)[1]  # noqa: E731
        return SimpleNamespace(planes=planes, responsibilities=answers)

    alone = [measure.member_concentration(of(one), X, y) for one in members]
    together = measure.member_concentration(of(ensemble(members)), X, y)
    assert together == pytest.approx(np.mean(alone))
    A = of(members[0]).responsibilities(X)
    own = np.where(y == 0, A[:, :2].max(axis=1), A[:, 2:].max(axis=1))
    assert alone[0] == pytest.approx(own.mean())


def test_an_interrupted_run_is_measured_again(tmp_path):
    path = tmp_path / "results.csv"
    first, second = (Run(MODELS, "iris", model, 0) for model in "ab")
    whole = Measured("ok", {"accuracy": 0.5, "ece": 0.25}, "linear, k = 3", "numpy 2", "cpu", True)
    results.add(path, first, whole)
    results.add(path, second, whole)
    path.write_bytes(path.read_bytes()[:-60])  # the last line holds the status
    assert results.read(path).runs == {first: whole}
    results.add(path, second, Measured("failed: no, it\ndid not", {}))
    assert results.read(path).runs[second].status == "failed: no, it did not"
    results.write(path, results.read(path))
    assert results.read(path).runs[first] == whole


# --- what is concluded ---


def test_a_paired_difference_is_scipys(rng):
    a, b = rng.random(6), rng.random(6)
    found = differences.paired(made(iris={"a": a, "b": b}), "iris", "a", "b", "accuracy")
    test = stats.ttest_rel(a, b)
    interval = test.confidence_interval(0.95)
    assert found.mean == pytest.approx((a - b).mean())
    assert found.error == pytest.approx(stats.sem(a - b))
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(tuple(interval))


def test_only_seeds_that_both_have_are_compared():
    found = differences.paired(
        made(iris={"a": [0.9, 0.1, 0.1], "b": [0.8]}), "iris", "a", "b", "accuracy"
    )
    assert (found.mean, found.n) == (pytest.approx(0.1), 1)
    assert differences.paired(made(iris={"a": [1.0]}), "iris", "a", "b", "accuracy") is None


def test_one_seed_has_no_standard_error_and_gives_no_verdict():
    one = made(
        **{
            name: {"geomix": [0.9], "geomix_paper": [0.9], "knn": [0.8]}
            for name in ("iris", "moons")
        }
    )
    found = differences.paired(one, "iris", "geomix", "knn", "accuracy")
    assert found.error == np.inf
    assert found.not_ahead
    assert found.not_behind
    assert {verdict.outcome for verdict in claims.judge(one)} == {claims.UNKNOWN}
    assert {verdict.outcome for verdict in goals.judge(one)} == {claims.UNKNOWN}


def test_the_recipe_and_its_rivals_are_compared_on_equal_rows():
    """The rival gains from the validation rows, which the recipe does not train on."""
    runs = {
        Run(MODELS, "iris", model, seed): Measured("ok", values)
        for seed in range(3)
        for model, values in {
            "geomix_paper": {"accuracy": 0.90},
            "geomix": {"accuracy": 0.95},
            "knn": {"accuracy": 0.92 + 0.001 * seed, "accuracy_on_train": 0.88 + 0.001 * seed},
        }.items()
    }
    recipe, ours = (
        claims.tally(Results(runs), key, "knn", ["iris"]) for key in ("geomix_paper", "geomix")
    )
    assert recipe.ahead == ours.ahead == ("iris",)
    row = dict(tables.equal_rows_table(Results(runs)).rows)["iris"]
    assert [cell.value for cell in row] == [pytest.approx(0.90), pytest.approx(0.881)]


def test_small_sets_have_ten_seeds():
    jobs = run.planned(run.selected(["models"], quick=False), 3)
    seeds = {
        name: {job.run.seed for job in jobs if job.run.dataset == name} for name in data.names()
    }
    assert {name: len(found) for name, found in seeds.items() if found} == {
        name: 10 if name in data.SMALL else 3 for name in data.names()
    }


def test_times_are_measured_again_without_a_change_of_quality(tmp_path, monkeypatch):
    path, asked = tmp_path / "results.csv", []
    values = {"accuracy": 0.9, "fit_seconds": 3.0, "fit_cpu_seconds": 2.0, "row_us scorer": 1.0}
    runs = [Run(MODELS, "iris", "knn", seed) for seed in range(4)]
    results.write(path, Results({one: Measured("ok", dict(values)) for one in runs}))

    def answer(job):
        asked.append(job.run)
        return {"status": "ok", "values": values | {"fit_cpu_seconds": 1.0}}

    monkeypatch.setattr(run, "run", answer)
    monkeypatch.setattr(run, "line_of", lambda *_: "")
    run.measure_times(run.selected(["iris"], quick=False), path)
    found = results.read(path)
    assert {one.seed for one in asked if one.model == "knn"} == {0}
    assert {one.seed for one in asked if one.model == "geomix"} == {0, 1, 2}
    assert found.by_seed("iris", "knn", "accuracy") == dict.fromkeys(range(4), 0.9)
    assert found.by_seed("iris", "knn", "fit_cpu_seconds") == {0: 1.0}
    assert found.by_seed("iris", "knn", "row_us scorer") == {0: 1.0}


def test_adult_is_measured_by_glass_boxes_alone_and_left_out_without_its_file(monkeypatch):
    monkeypatch.setattr(data.adult, "is_there", lambda: True)
    jobs = run.planned(run.selected(["models", "adult"], quick=False), 1)
    assert {job.run.model for job in jobs} == {
        key for key in models.GLASS_BOX if not models.get(key).lacks
    }
    monkeypatch.setattr(data.adult, "is_there", lambda: False)
    assert "adult" not in data.every()
    with pytest.raises(SystemExit, match="Got --only adult"):
        run.selected(["adult"], quick=False)


@pytest.mark.parametrize("name", sorted(bayes.DENSITIES))
def test_the_best_possible_accuracy_is_that_of_the_generator(name):
    assert bayes.long_run(name, n_draws=1) == pytest.approx(bayes.RATE[name], abs=0.01)
    found = data.load(name)
    P = bayes.DENSITIES[name](found.X[:500])
    assert P.shape == (500, len(found.classes))
    assert (P >= 0.0).all()


def test_few_rows_and_a_rare_class_leave_the_test_rows_alone(rng):
    y = rng.permutation(np.repeat([0, 1], [200, 400]))
    split = data.split_rows(rng.standard_normal((600, 2)), y, 0)
    few = limits.restricted(split, "20 rows per class", 0)
    assert np.bincount(few.y_train).tolist() == [20, 20]
    assert np.bincount(few.y_valid).tolist() == [10, 10]
    rare = limits.restricted(split, "last class a tenth of its rows", 0)
    assert np.bincount(rare.y_train).tolist() == [120, 24]
    assert len(rare.X_learn) == len(rare.y_learn) == 120 + 24 + 40 + 8
    assert few.X_test is split.X_test is rare.X_test


def test_a_scorer_is_set_against_scorers_and_an_estimator_against_estimators():
    times = {
        "geomix": {
            "scorer(row)": 1.0,
            "model.predict_proba": 20.0,
            "estimator.predict_proba": 90.0,
        },
        "knn": {"pipeline.predict_proba": 80.0, "predict_proba, row scaled before": 50.0},
    }
    runs = {
        Run(MODELS, "iris", model, seed): Measured(
            "ok", {"accuracy": 1.0} | {f"row_us {path}": us for path, us in paths.items()}
        )
        for seed in range(2)
        for model, paths in times.items()
    }
    found = {
        (model, kind): tables.one_row(Results(runs), "iris", model, kind)[1]
        for model in times
        for kind in (tables.SCORER, tables.ESTIMATOR)
    }
    assert list(found.values()) == [1.0, 90.0, 50.0, 80.0]
    assert "estimators: faster in 0 of 1 (not kNN on iris)" in (
        goals.quick_to_answer(Results(runs)).evidence
    )


def test_the_usage_of_planes_is_pooled_over_the_seeds():
    shares = [{"0 0": 0.25, "0 1": 0.75}, {"0 0": 1.0}]
    runs = {
        Run(MODELS, "moons", "geomix_paper", seed): Measured(
            "ok",
            {"accuracy": 1.0, "n_planes": 2.0} | {f"usage {at}": own for at, own in found.items()},
        )
        for seed, found in enumerate(shares)
    }
    (row,) = tables.usage_table(Results(runs), "moons").rows
    assert [cell.value for cell in row[1]] == [1.5, 0.875, 0.125, None]


def test_responsibilities_count_only_classes_with_several_planes(iris):
    from geomix import GeometricMixtureClassifier

    split = data.split_rows(*iris, 0)
    settings = {"lift": "linear", "l2": 1e-3, "random_state": 0}
    for planes, share in ((1, 0.0), ({0: 1, 1: 2, 2: 1}, 1 / 3)):
        clf = GeometricMixtureClassifier(planes, **settings).fit(split.X_learn, split.y_learn)
        found = measure.responsibility(clf.model_, split)
        assert found["several_planes"] == pytest.approx(share)
        assert ("max_responsibility" in found) == (share > 0.0)


def test_the_gradient_of_the_perceptron_is_that_of_central_differences(rng):
    from paper.models import mlp_cosine

    X, y, shapes = rng.standard_normal((12, 3)), np.arange(12) % 2, ((3, 4), (4, 2))
    vector = rng.standard_normal(3 * 4 + 4 + 4 * 2 + 2)

    def at(vector):
        return mlp_cosine.Network(None, shapes, vector).layers()

    def loss(vector):
        S = mlp_cosine.forward(at(vector), X)[-1]
        weights = sum((W**2).sum() for W, _ in at(vector))
        mean = -mlp_cosine.log_softmax(S)[np.arange(12), y].mean()
        return mean + 0.5 * mlp_cosine.DECAY * weights

    steps = 1e-6 * np.eye(len(vector))
    expected = [(loss(vector + step) - loss(vector - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(mlp_cosine.gradient(at(vector), X, y), expected, atol=1e-6)


def test_every_family_of_the_conceptual_table_is_measured_by_models_that_exist():
    keys = {key for _, some, *_ in concepts.FAMILIES for key in some}
    assert keys <= set(models.every())


FIGURES = {
    "iris": {"geomix_paper": [0.9, 0.9], "knn": [0.8, 0.8], "geomix": [0.9, 0.9]},
    "wine": {"geomix_paper": [0.9, 0.7], "knn": [0.8, 0.8], "geomix": [0.9, 0.9]},
    "wdbc": {"geomix_paper": [0.7, 0.7], "knn": [0.8, 0.8], "geomix": [0.9, 0.9]},
}


def test_ahead_level_and_behind():
    found = claims.tally(made(**FIGURES), "geomix_paper", "knn", list(FIGURES))
    assert (found.ahead, found.level, found.behind) == (("iris",), ("wine",), ("wdbc",))


@pytest.mark.parametrize(
    ("sets", "expected"),
    [(["iris"], claims.HELD), (["iris", "wine", "wdbc"], claims.NOT_HELD), ([], claims.UNKNOWN)],
)
def test_a_claim_holds_if_it_holds_on_every_set(sets, expected):
    verdict = claims.over_neighbours(made(**{name: FIGURES[name] for name in sets}))
    assert verdict.outcome == expected


def test_the_first_place_is_judged_by_the_paired_error():
    assert goals.first_in_accuracy(made(**FIGURES)).outcome == goals.REACHED
    behind = made(iris={"geomix": [0.8, 0.8], "knn": [0.9, 0.9]})
    assert goals.first_in_accuracy(behind).outcome == goals.MISSED
    noisy = made(iris={"geomix": [0.95, 0.8], "knn": [0.9, 0.9]})
    assert goals.first_in_accuracy(noisy).outcome == goals.REACHED


@pytest.mark.parametrize(("accuracy", "reached"), [(0.973, True), (0.9724, False)])
def test_the_papers_figure_is_three_digits(accuracy, reached):
    found = goals.at_least_the_paper(made(iris={"geomix": [accuracy]}))  # the paper has 0.973
    assert (found.outcome == goals.REACHED) == reached


def test_an_ablation_that_hurts_everywhere_holds():
    base, other = (
        ablations.key(change, ablations.LINEAR) for change in (ablations.RECIPE, "no annealing")
    )
    worse = made(ABLATIONS, moons={base: [0.9, 0.91], other: [0.8, 0.81]})
    assert claims.annealing(worse).outcome == claims.HELD
    better = made(ABLATIONS, moons={base: [0.8, 0.81], other: [0.9, 0.91]})
    assert claims.annealing(better).outcome == claims.NOT_HELD


@pytest.mark.parametrize(
    ("value", "larger", "standing"),
    [(0.99, True, "better"), (0.97, True, "level"), (0.90, True, "worse"), (0.90, False, "better")],
)
def test_a_cell_stands_against_the_papers_deviation(value, larger, standing):
    theirs = tables.Reported(0.968, 0.010)
    assert tables.against_paper([value], theirs, 3, larger).standing == standing


def test_equal_figures_share_the_first_place():
    cells = tables.with_best([Cell(0.90001), Cell(0.9), Cell(0.8), Cell()], True)
    assert [cell.best for cell in cells] == [True, True, False, False]


def test_a_table_in_markdown_and_latex():
    cells = (
        Cell(0.9123, 0.01, 0.9, best=True),
        Cell(-0.5, signed=True),
        Cell(),
        Cell(words="50 % & x_"),
    )
    table = Table("key", "A title", "", ("a", "b", "c", "d"), (("iris", cells),))
    assert render.as_markdown(table).splitlines()[-1] == (
        "| iris | **0.912 ± 0.010** (0.900) | −0.500 | – | 50 % & x_ |"
    )
    assert (
        r"iris & \textbf{0.912 $\pm$ 0.010} {\scriptsize (0.900)} & $-$0.500 & -- & 50 \% \& x\_ \\"
        in render.as_latex(table)
    )


# --- the command ---


def test_one_model_on_one_set_from_data_to_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "QUICK_MODELS", ("logistic",))
    output = tmp_path / "results"
    assert run.main(["--quick", "--only", "models", "iris", "--output", str(output)]) == 0
    found = results.read(output / "results.csv")
    assert list(found.runs) == [results.Run(MODELS, "iris", "logistic", 0)]
    assert all(one.ok for one in found.runs.values())
    assert 'id="accuracy"' in (output / "report.html").read_text()
    assert "## The paper's claims" in capsys.readouterr().out


@pytest.mark.slow
def test_a_quick_run_from_data_to_report(tmp_path, capsys, monkeypatch):
    output = tmp_path / "results"
    options = ["--quick", "--output", str(output)]
    assert run.main(options) == 0
    found = results.read(output / "results.csv")
    assert all(one.ok and one.versions and one.cpu for one in found.runs.values())
    assert {one.part for one in found.runs} == set(run.PARTS) - {LIMITS}
    assert {one.model for one in found.runs if one.part == MODELS} == set(run.QUICK_MODELS)
    assert found.mean("moons", "geomix", "accuracy") > found.mean("moons", "logistic", "accuracy")
    assert found.metrics("iris", "geomix", 0, "row_calls ")["scorer(row)"] >= 1
    page = (output / "report.html").read_text()
    assert all(f'id="{key}"' in page for key in ("accuracy", "paired", "ablations_moons", "claims"))
    assert page.count("data:image/png;base64,") == 4
    assert "http" not in page.replace("https://www.w3.org", "")  # it needs no other file
    assert "0.948" in (output / "tables" / "accuracy.md").read_text()  # the paper's, on moons
    assert (output / "tables" / "accuracy.tex").read_text().count(r"\\") == 4
    assert "<svg" in (output / "figures" / "moons_union.svg").read_text()
    assert "## The paper's claims" in capsys.readouterr().out

    monkeypatch.setattr(run, "run", None)  # a call of it would fail
    assert run.main([*options, "--only", "accuracy", "iris"]) == 0
    assert results.read(output / "results.csv") == found


def test_the_block_of_the_readme_is_renewed_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{show.START}\nstale\n{show.END}\nafter\n")
    show.renew_readme(readme, made(**FIGURES))
    text = readme.read_text()
    assert text.startswith(f"before\n{show.START}\n")
    assert text.endswith(f"{show.END}\nafter\n")
    assert "stale" not in text
    assert "| iris | **0.9000 ± 0.0000** |" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "irises"], "Got --only irises; expected models, ablations"),
        (["--seeds", "0"], "Got --seeds 0; expected at least 1"),
        (["--models", "svm"], "Got --models svm; expected geomix, geomix_paper"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(SystemExit, match=message):
        run.main(options)


def test_only_restricts_what_is_measured():
    assert run.selected(["wdbc"], quick=False).sets == ("wdbc",)
    assert run.selected(["ablations_moons"], quick=False).parts == (ABLATIONS,)
    assert run.selected(["iris_roc"], quick=False).parts == ()
    assert run.selected(["iris_roc"], quick=False).figures == ("iris_roc",)
    jobs = run.planned(run.selected(["accuracy", "moons"], quick=False), 2)
    assert {(job.run.part, job.run.dataset) for job in jobs} == {(MODELS, "moons")}
    assert {job.run.seed for job in jobs} == {0, 1}
