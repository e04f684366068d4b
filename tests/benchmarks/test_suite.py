"""The benchmark suite: its splits, figures and ranks, and one cheap run from end to end."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from places import ROOT
from scipy.stats import rankdata
from sklearn import metrics
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.utils import Bunch

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
BENCHMARKS = ROOT / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("benchmarks are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import quality  # noqa: E402
import suite  # noqa: E402
import suite_fit  # noqa: E402
import suite_ranks  # noqa: E402
import suite_rows  # noqa: E402
import suite_tables  # noqa: E402
from peers import _search  # noqa: E402
from suite_rows import Measured, Run  # noqa: E402
from suite_tables import Caps  # noqa: E402


def rare_classes(rng):
    y = np.repeat(np.arange(5), [1, 2, 6, 400, 1600])
    return pd.DataFrame({"row": np.arange(len(y))}), rng.permutation(y)


@pytest.mark.parametrize("caps", [Caps(None, None), Caps(200, 50)])
def test_training_keeps_every_class_and_no_row_is_on_both_sides(rng, caps):
    X, y = rare_classes(rng)
    data = suite_tables.split(X, y, 0, caps)
    assert set(data.y_train) == set(y)
    assert not set(data.X_train["row"]) & set(data.X_test["row"])
    assert (y[data.X_train["row"]] == data.y_train).all()
    assert (y[data.X_test["row"]] == data.y_test).all()
    sizes = (1607, 402) if caps.train is None else (200, 50)
    assert (len(data.y_train), len(data.y_test)) == sizes


def test_the_seed_decides_the_split(rng):
    X, y = rare_classes(rng)
    rows = [suite_tables.split(X, y, seed, Caps()).X_train["row"].tolist() for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_shares_are_proportional_to_a_row():
    counts = np.array([100, 233, 667])
    given = suite_tables.shares(counts, 150, 0)
    assert given.sum() == 150
    assert (np.abs(given - 0.15 * counts) < 1).all()


@pytest.mark.parametrize("n_rows", [60, 3000])
def test_inner_splits_train_on_every_class(rng, n_rows):
    y = rng.permutation(np.append(rng.integers(3, size=n_rows - 3), [3, 4, 4]))
    folds = _search.inner_splits(y, 0)
    assert len(folds) == (5 if n_rows == 60 else 1)
    for train, valid in folds:
        assert set(y[train]) == set(range(5))
        assert sorted([*train, *valid]) == list(range(n_rows))


def test_figures_agree_with_scikit_learn(rng):
    P, y = rng.dirichlet(np.ones(4), 300), rng.integers(4, size=300)
    found = quality.quality(P, y)
    predicted = P.argmax(axis=1)
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, P))
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(y, predicted, average="macro"))


def test_calibration_error_is_the_gap_bin_by_bin(rng):
    P, y = rng.dirichlet(np.ones(3), 500), rng.integers(3, size=500)
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    gap = 0.0
    for low in np.arange(15) / 15:
        here = (top > low) & (top <= low + 1 / 15)
        gap += abs(top[here].sum() - right[here].sum()) / len(y)
    assert quality.quality(P, y)["ece"] == pytest.approx(gap)


def test_a_class_absent_from_the_test_part_costs_nothing():
    P, y = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 1])
    found = quality.quality(P, y)
    assert (found["accuracy"], found["macro_f1"]) == (1.0, 1.0)
    assert found["log_loss"] == pytest.approx(-np.log([0.7, 0.8]).mean())


def test_a_probability_of_zero_is_clipped():
    assert quality.log_loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(
        -np.log(1e-15), rel=1e-6
    )


def test_ranks_are_scipys_and_a_missing_score_is_last(rng):
    scores = rng.integers(5, size=(20, 6)).astype(float)
    assert (suite_ranks.ranks(scores, False) == rankdata(scores, axis=1)).all()
    assert (suite_ranks.ranks(scores, True) == rankdata(-scores, axis=1)).all()
    assert suite_ranks.ranks(np.array([0.9, np.nan, 0.8, np.nan]), True).tolist() == [
        1,
        3.5,
        2,
        3.5,
    ]


# Table 5 of Demšar, Statistical comparisons of classifiers over multiple data sets (2006).
@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_is_demsars(k, q):
    expected = q * np.sqrt(k * (k + 1) / (6 * 25))
    assert suite_ranks.critical_difference(k, 25) == pytest.approx(expected, rel=1e-3)


def measured(loss):
    if loss is None:
        return Measured("out of time", {})
    values = {"log_loss": loss, "accuracy": 1 - loss, "n_train": 80.0, "n_test": 20.0}
    return Measured("ok", values)


def ground(losses):
    """``losses[model]`` is a list of tables, each a list over seeds."""
    results = {
        Run(f"t{table}", model, seed): measured(loss)
        for model, tables in losses.items()
        for table, seeds in enumerate(tables)
        for seed, loss in enumerate(seeds)
    }
    return suite_ranks.common_ground(results, list(losses))


def test_wins_ties_and_losses():
    found = ground(
        {
            "ours": [[0.1, 0.1], [0.3, 0.3], [0.1, 0.4], [0.2, 0.2], [0.2, None], [None, None]],
            "theirs": [[0.2, 0.3], [0.1, 0.2], [0.2, 0.2], [0.2, 0.2], [0.9, 0.9], [None, 0.9]],
        }
    )
    # Won; lost; within a standard error; exact; lost for want of a seed; neither finished.
    assert suite_ranks.duel(found, "ours", "theirs", "log_loss") == (1, 3, 2)
    assert suite_ranks.duel(found, "theirs", "ours", "log_loss") == (2, 3, 1)
    assert suite_ranks.duel_by_mean(found, "ours", "theirs", "log_loss") == (1, 3)
    assert suite_ranks.duel_by_mean(found, "theirs", "ours", "log_loss") == (3, 1)
    assert suite_ranks.place(found, "t0", "ours", "log_loss") == 1
    assert suite_ranks.place(found, "t1", "ours", "log_loss") == 2
    assert suite_ranks.place(found, "t5", "ours", "log_loss") is None
    assert suite_ranks.gap_to_best(found, "t1", "ours", ["theirs"]) == pytest.approx(15.0)


def test_only_what_all_models_were_measured_on_is_compared():
    found = ground({"a": [[0.1, 0.1, 0.1], [0.1]], "b": [[0.2, 0.2]]})
    assert found.seeds == {"t0": [0, 1]}


def test_half_a_line_is_measured_again(tmp_path):
    path = tmp_path / "suite.csv"
    first, second = Run("iris", "a", 0), Run("iris", "b", 0)
    suite_rows.add_row(path, first, Measured("failed: two\nlines, and a comma", {}))
    whole = path.read_bytes()
    suite_rows.add_row(path, second, measured(0.5))
    path.write_bytes(path.read_bytes()[:-9])
    assert list(suite_rows.read_rows(path)) == [first]
    suite_rows.add_row(path, second, measured(0.25))
    assert path.read_bytes().startswith(whole)
    found = suite_rows.read_rows(path)
    assert found[first].status == "failed: two lines, and a comma"
    assert found[second].values["log_loss"] == 0.25


def test_a_frame_of_openml_becomes_a_table():
    frame = pd.DataFrame({"n": [1, 2, 3], "b": [True, False, True], "s": ["x", None, "y"]})
    made = suite_tables.as_table(frame, pd.Series([1, 2, None], dtype="Int64"))
    assert made["target"].tolist() == ["1", "2"]
    assert [str(made[name].dtype) for name in "nbs"] == ["int64", "category", "category"]
    assert made["b"].tolist() == ["True", "False"]
    assert made["s"].isna().tolist() == [False, True]


def test_openml_is_asked_once(tmp_path, monkeypatch):
    asked = []

    def fetch_openml(**options):
        asked.append(options["data_id"])
        iris = load_iris(as_frame=True)
        return Bunch(data=iris.data, target=iris.target, details={"name": "iris"})

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    paths = {suite_tables.fetch_openml_table(61, tmp_path) for _ in range(2)}
    assert (asked, paths) == ([61], {tmp_path / "iris_61.parquet"})
    X, y = suite_tables.read_table(tmp_path / "iris_61.parquet")
    assert (X.shape, np.bincount(y).tolist()) == ((150, 4), [50, 50, 50])


def save(folder, name, data):
    frame = pd.DataFrame(data.data, columns=[f"x{i}" for i in range(data.data.shape[1])])
    frame.assign(target=data.target.astype(str)).to_parquet(folder / f"{name}.parquet")


def test_one_model_on_one_table_to_report(tmp_path, capsys):
    save(tmp_path, "iris", load_iris())
    output = tmp_path / "results"
    options = ["--data", str(tmp_path), "--output", str(output), "--models", "logistic"]
    assert suite.main([*options, "--seeds", "1"]) == 0
    [made] = suite_rows.read_rows(output / "suite.csv").values()
    assert made.ok
    assert set(made.values) == set(suite_rows.METRICS)
    assert "| iris |" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_from_tables_to_report(tmp_path, capsys, monkeypatch):
    data, output = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    save(data, "iris", load_iris())
    save(data, "wine", load_wine())
    options = ["--data", str(data), "--output", str(output), "--models", "geomix,logistic,knn"]
    assert suite.main([*options, "--seeds", "1"]) == 0
    results = suite_rows.read_rows(output / "suite.csv")
    assert len(results) == 6
    assert all(made.ok and made.values["accuracy"] > 0.8 for made in results.values())
    assert all(set(made.values) == set(suite_rows.METRICS) for made in results.values())
    report = (output / "suite.md").read_text()
    assert report in capsys.readouterr().out
    assert all(text in report for text in ("## Mean ranks", "| iris |", "| wine |", "kNN"))
    assert (output / "suite_ranks.png").stat().st_size > 10_000
    assert "<svg" in (output / "suite_ranks.svg").read_text()

    monkeypatch.setattr(suite, "run", None)  # a call of it would fail
    assert suite.main([*options, "--seeds", "1"]) == 0
    assert suite.main([*options, "--report"]) == 0
    assert suite_rows.read_rows(output / "suite.csv") == results


def test_a_fit_that_cannot_end_is_recorded(tmp_path):
    save(tmp_path, "digits", load_digits())
    slow = suite_fit.Job("digits", tmp_path / "digits.parquet", "mlp", 0, Caps(), cpu_seconds=1)
    assert suite_fit.run(slow) == {"status": "out of time"}
    absent = suite_fit.Job("absent", tmp_path / "absent.parquet", "mlp", 0, Caps())
    assert suite_fit.run(absent)["status"].startswith("failed: FileNotFoundError")


def test_out_of_time_with_one_seed_is_not_run_with_the_others(tmp_path, monkeypatch):
    asked = []

    def run(job):
        asked.append((job.model, job.seed))
        return {"status": "out of time" if job.model == "slow" else "failed: no"}

    monkeypatch.setattr(suite, "run", run)
    jobs = [
        suite_fit.Job("t", tmp_path, model, seed, Caps())
        for seed in (0, 1)
        for model in ("slow", "other")
    ]
    suite.measure_missing(jobs, tmp_path / "suite.csv", fresh=False)
    assert asked == [("slow", 0), ("other", 0), ("other", 1)]
    found = suite_rows.read_rows(tmp_path / "suite.csv")
    assert found[Run("t", "slow", 1)].status == "out of time"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "nowhere"], "Got --data nowhere; expected a folder"),
        (["--models", "geomix,oracle"], "Got --models oracle; expected some of geomix"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(SystemExit, match=message):
        suite.main([*options, "--output", "unused"])
