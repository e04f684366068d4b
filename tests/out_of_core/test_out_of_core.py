"""Rows in parts: the same surveys, the same steps and the same models as rows in one piece."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from kernels import fast_with_numpy
from making import classifier
from sklearn.datasets import make_classification
from sklearn.utils import check_random_state

from geomix import DataQualityWarning, SchemaError
from geomix.core.calibration import PRIOR_SCALE, fit_temperature, negative_log_likelihood
from geomix.core.kernel import is_native
from geomix.core.lifts import draw_fourier, fit_standardize
from geomix.core.moments import moments_of
from geomix.core.objective import batch_terms
from geomix.core.row_sums import PartSums, Remembered, tree_sum
from geomix.errors import InvalidParameterError
from geomix.out_of_core import sampling, survey
from geomix.out_of_core.fit import MemorySource, fit_estimator, in_parts
from geomix.out_of_core.held_out import HeldOut, divide, with_sample
from geomix.out_of_core.part_reader import known_from, part_reader_of
from geomix.out_of_core.sampling import chosen_rows, row_keys
from geomix.out_of_core.survey import RowPart, survey_part
from geomix.table.category_levels import learn_schema
from geomix.table.reader import read_columns
from geomix.training.random_streams import stream

from shapes import random_planes, random_rows  # isort: skip

pytestmark = pytest.mark.kernel

CUTS = {
    "one": [],
    "two": [700],
    "seven": [100, 250, 400, 600, 850, 1100],
    "unequal": [1, 4, 1190],
    "one empty": [300, 300],
}
FIXED = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(
        1200, 6, n_informative=4, n_classes=3, n_clusters_per_class=2, random_state=0
    )


def fit(X, y, cuts=(), weight=None, **settings):
    clf = classifier(**{**FIXED, **settings})
    return fit_estimator(clf, MemorySource(in_parts(X, y, weight, cuts)))


# --- sums ---


def test_a_tree_adds_everything_in_order_and_holds_few_sums_at_once():
    assert tree_sum("abcdefghijk") == "abcdefghijk"
    # ((1 + 2) + (3 + 4)) + 5: the shape depends on the number of parts alone.
    shapes = [f"({one})" for one in "12345"]
    combined = tree_sum([_Shape(one) for one in shapes]).text
    assert combined == "[[[(1)(2)][(3)(4)]](5)]"
    with pytest.raises(ValueError, match="nothing to add"):
        tree_sum([])


class _Shape:
    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return _Shape(f"[{self.text}{other.text}]")


def test_the_same_planes_twice_in_a_row_cost_one_pass(rng):
    planes, (Phi, y, weight) = random_planes(rng, [2, 1], 3), random_rows(rng, 20, 3, 2)
    asked = []

    class Counted:
        def terms(self, *at):
            asked.append(at)
            return batch_terms(at[0], at[1], Phi, y, weight, at[2])

    sums = Remembered(Counted())
    for sharpness in (3.0, 3.0, 6.0, 3.0):
        found = sums.terms(planes, sharpness, 0.1)
        assert found.loss == batch_terms(planes, sharpness, Phi, y, weight, 0.1).loss
    assert len(asked) == sums.n_passes == 3


# --- surveys ---


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_moments_of_parts_add_up_to_numpys(rng, scale):
    X = (rng.standard_normal((300, 4)) + np.array([0.0, 5.0, -1000.0, 0.0])) * scale
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:100, 3] = np.nan  # all missing in the first part
    weight = rng.uniform(0.1, 2.0, 300)
    parts = [moments_of(X[a:b], weight[a:b]) for a, b in [(0, 100), (100, 100), (100, 300)]]
    ours = tree_sum(parts)
    for j in range(4):
        there = ~np.isnan(X[:, j])
        x, w = X[there, j] / scale, weight[there]
        mean = np.average(x, weights=w)
        assert ours.location[j] / scale == pytest.approx(mean, rel=1e-12, abs=1e-13)
        deviation = np.sqrt(np.average((x - mean) ** 2, weights=w))
        assert ours.deviation[j] / scale == pytest.approx(deviation, rel=1e-12)
        assert ours.n_missing[j] == (~there).sum()
        assert (ours.low[j], ours.high[j]) == (X[there, j].min(), X[there, j].max())


def mixed_frame(rng, n=900):
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "shape": rng.choice(["round", "flat"], n),
            "late": rng.standard_normal(n),
        }
    )
    frame.loc[:299, "late"] = np.nan  # missing in the whole first part
    frame.loc[:299, "shape"] = None
    frame.loc[600:, "colour"] = "black"  # a level of the last part alone
    frame.loc[::7, "size"] = np.nan
    y = np.where(frame["size"].fillna(0) + (frame["colour"] == "black") > 0.3, "yes", "no")
    return frame, y


def surveyed(X, y, cuts, weight=None, seed=3):
    return MemorySource(in_parts(X, y, weight, cuts)).survey(seed, None)


def test_a_survey_knows_the_columns_as_a_fit_in_memory_does(rng):
    frame, y = mixed_frame(rng)
    whole, _ = learn_schema(tuple(frame.columns), read_columns(frame), np.ones(len(frame)))
    for cuts in ([], [300, 600], [1, 299, 299, 601]):
        found = surveyed(frame, y, cuts)
        assert found.schema == whole
        assert found.n_rows == 900
        assert found.classes.labels.tolist() == ["no", "yes"]
        assert found.classes.n_rows.tolist() == [(y == "no").sum(), (y == "yes").sum()]
        assert found.has_missing.tolist() == [True, False, True, True]


def test_a_survey_expands_and_scales_as_a_fit_in_memory_does(rng):
    frame, y = mixed_frame(rng)
    ours = classifier(**FIXED | {"n_planes": 1}).fit(frame, y).model_
    found = surveyed(frame, y, [300, 600])
    known = known_from(found, classifier(**FIXED).settings())
    assert known.linear.expand.shows.tolist() == ours.expand.shows.tolist()
    assert known.linear.expand.column_of.tolist() == ours.expand.column_of.tolist()
    assert known.linear.standardize.kept.tolist() == ours.standardize.kept.tolist()
    np.testing.assert_allclose(known.linear.standardize.mean, ours.standardize.mean, atol=1e-13)
    np.testing.assert_allclose(known.linear.standardize.scale, ours.standardize.scale, rtol=1e-12)


def test_the_sample_is_uniform_and_the_same_for_every_partitioning(rng, monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 200)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 15)
    X = np.arange(4000.0)[:, None]
    y = np.where(np.arange(4000) % 200 == 0, "rare", "common")
    samples = [surveyed(X, y, cuts).sample for cuts in ([], [10, 10, 3000], range(0, 4000, 37))]
    for sample in samples[1:]:
        assert np.array_equal(sample.columns[0], samples[0].columns[0])
        assert np.array_equal(sample.y, samples[0].y)
    picked = samples[0].columns[0][samples[0].y == "common"]
    # 200 uniform places have a mean within 4 standard errors of the middle.
    assert abs(picked.mean() - 2000.0) < 4 * 4000 / np.sqrt(12 * len(picked))
    assert (samples[0].y == "rare").sum() == 15
    found = surveyed(X, y, [2500])
    codes = found.classes.codes(found.sample.y)
    shares = np.bincount(codes, found.sample_weights(codes))
    np.testing.assert_allclose(shares, [3980.0, 20.0])


def test_a_bar_leaves_the_sample_as_it_is(rng, monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 50)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 5)
    X, y = np.arange(600.0)[:, None], rng.integers(0, 3, 600)
    total = None
    for a in range(0, 600, 100):
        bar = None if total is None else total.sample.bar
        one = survey_part(RowPart(X[a : a + 100], y[a : a + 100]), a, 9, None, bar)
        total = one if total is None else total + one
    expected = np.sort(chosen_rows(row_keys(np.arange(600, dtype=np.uint64), 9), y))
    assert np.array_equal(np.sort(total.sample.columns[0]), expected)


def test_too_many_levels_are_bounded_and_the_heavy_ones_kept(monkeypatch):
    monkeypatch.setattr(survey, "MOST_LEVELS_COUNTED", 20)
    names = [f"id{i}" for i in range(300)] + ["often"] * 300
    X = pd.DataFrame({"name": names})
    y = np.arange(600) % 2
    found = surveyed(X, y, range(50, 600, 50))
    assert len(found.levels[0].weight) <= 20
    assert found.levels[0].weight["often"] == 300.0
    assert found.schema.columns[0].has_other
    assert found.missing[0] == 0.0


# --- steps and fits ---


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("lift", ["linear", "fourier", "spline"])
def test_any_partitioning_gives_the_same_step(table, rng, lift, cuts):
    X, y = table
    feature_map, planes = whole_way(X, y, lift, rng)
    steps = []
    for parts in (in_parts(X, y, None, []), in_parts(X, y, None, cuts)):
        with MemorySource(parts).sums(feature_map) as sums:
            steps.append(sums.terms(planes, 4.0, 0.02))
    one, many = steps
    # The native kernel of codes works in float32; everything else in float64.
    tol = 1e-6 if lift == "spline" and is_native else 1e-10
    assert many.mean_loss == pytest.approx(one.mean_loss, abs=tol)
    np.testing.assert_allclose(
        many.weights_gradient / len(y), one.weights_gradient / len(y), atol=tol
    )
    np.testing.assert_allclose(
        many.biases_gradient / len(y), one.biases_gradient / len(y), atol=tol
    )
    np.testing.assert_allclose(many.mean_usage, one.mean_usage, atol=tol)


def whole_way(X, y, lift, rng):
    settings = FIXED | {"lift": lift, "n_frequencies": 32, "gamma": 0.1, "shrink_to_mean": 0.0}
    model = fit(X, y, **settings, max_iter=3).model_
    found = surveyed(X, y, [])
    reader = part_reader_of(found, model.feature_map, None, exact=True)
    return reader, random_planes(rng, [2, 1, 3], model.lift.n_outputs, 0.3)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
def test_any_partitioning_gives_the_same_model(table, cuts):
    X, y = table
    one, many = fit(X, y).model_, fit(X, y, cuts).model_
    np.testing.assert_allclose(many.planes.weights, one.planes.weights, atol=1e-6)
    np.testing.assert_allclose(many.planes.biases, one.planes.biases, atol=1e-6)
    assert many.temperature == pytest.approx(one.temperature, rel=1e-9)


def test_one_plane_per_class_ends_where_the_fit_in_memory_does(table):
    X, y = table
    settings = {**FIXED, "n_planes": 1, "l2": 1e-2, "tol": 1e-12, "max_iter": 500}
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    in_memory = classifier(**settings).fit(X, y, weight).model_
    far = fit(X, y, [100, 900], weight, **settings).model_
    np.testing.assert_allclose(far.standardize.mean, in_memory.standardize.mean, atol=1e-12)
    np.testing.assert_allclose(far.planes.weights, in_memory.planes.weights, atol=1e-6)


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_parts_without_a_class_a_column_or_a_level_are_handled(rng, lift):
    frame, y = mixed_frame(rng)
    order = np.argsort(y, kind="stable")  # the first parts hold one class only
    frame, y = frame.iloc[order].reset_index(drop=True), y[order]
    settings = {"lift": lift, "n_planes": 1, "n_frequencies": 64, "shrink_to_mean": 0.0}
    one, many = fit(frame, y, **settings), fit(frame, y, [50, 300, 600, 600], **settings)
    assert many.model_.schema == one.model_.schema
    assert many.score(frame, y) > 0.85
    np.testing.assert_allclose(
        many.predict_proba(frame), one.predict_proba(frame), atol=1e-3 if lift != "linear" else 1e-9
    )
    # A level of one part only has weights of its own.
    black = frame.assign(colour="black")
    assert np.abs(many.predict_proba(black) - many.predict_proba(frame)).max() > 0.01


def test_fourier_features_of_a_seed_are_bit_equal_wherever_they_are_drawn():
    script = (
        "import hashlib; from geomix.core.lifts import draw_fourier;"
        "from geomix.training.random_streams import stream;"
        "f = draw_fourier(7, 40, 0.3, True, stream(11, 'fourier')).frequencies;"
        "print(hashlib.sha256(f.tobytes()).hexdigest())"
    )
    import hashlib

    here = draw_fourier(7, 40, 0.3, True, stream(11, "fourier")).frequencies
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == hashlib.sha256(here.tobytes()).hexdigest()


@pytest.fixture
def sample_of_300(monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 300)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 10)


def first_seed():
    return int(check_random_state(0).randint(2**31 - 1))


def places_of(keys, seed=3):
    return np.flatnonzero(np.isin(row_keys(np.arange(1200, dtype=np.uint64), seed), keys))


@pytest.mark.usefixtures("sample_of_300")
def test_rows_held_out_of_training_set_the_temperature(table):
    X, y = table
    clf = fit(X, y, [400, 800], l2=1e-5)
    found = surveyed(X, y, [400, 800], seed=first_seed())
    held = divide(found).held_out
    n_held = int(held.sum())
    assert 50 <= n_held <= 60  # 5 % of 1,200 rows
    assert f"{n_held} rows were held out of the training" in clf.history_.notes[-2]
    assert "300 of them in the sample" in clf.history_.notes[-1]

    def temperature_of(rows):
        part = with_sample(found, rows)
        cells, codes = part.sample_cells(), part.classes.codes(part.sample.y)
        S = clf.model_.with_temperature(1.0).class_scores(cells)
        return fit_temperature(S, codes, part.sample_weights(codes), PRIOR_SCALE)

    assert clf.model_.temperature == pytest.approx(temperature_of(held), rel=1e-9)
    assert not (held & divide(found).searched).any()
    in_sample = temperature_of(divide(found).searched)
    assert clf.model_.temperature != pytest.approx(in_sample, rel=1e-3)


@pytest.mark.usefixtures("sample_of_300")
def test_training_sums_leave_out_the_held_out_rows(table, rng):
    X, y = table
    weight = rng.uniform(0.5, 2.0, len(y))
    parts = in_parts(X, y, weight, [500])
    found = MemorySource(parts).survey(3, None)
    held = divide(found).held_out
    feature_map = known_from(found, classifier(**FIXED).settings()).linear
    reader = part_reader_of(found, feature_map, None, exact=True)
    held_out = HeldOut(with_sample(found, held), reader)
    places = places_of(found.sample.keys[held])
    assert len(places) == len(held_out) > 0
    planes = random_planes(rng, [2, 2, 2], 6)
    with MemorySource(parts).sums(reader) as sums:
        ours = held_out.left_out_of(sums).terms(planes, 6.0, 0.02)
    others = np.delete(np.arange(1200), places)
    rest = in_parts(X[others], y[others], weight[others], [])
    with MemorySource(rest).sums(reader) as sums:
        theirs = sums.terms(planes, 6.0, 0.02)
    assert ours.row_weight == pytest.approx(theirs.row_weight, rel=1e-12)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-10)
    np.testing.assert_allclose(ours.weights_gradient, theirs.weights_gradient, atol=1e-9)
    np.testing.assert_allclose(ours.usage, theirs.usage, atol=1e-9)


@pytest.mark.usefixtures("sample_of_300")
def test_held_out_rows_are_the_same_for_every_partitioning(table):
    X, y = table
    found = [surveyed(X, y, cuts) for cuts in CUTS.values()]
    keys = [one.sample.keys[divide(one).held_out] for one in found]
    assert all(np.array_equal(one, keys[0]) for one in keys)


@pytest.mark.usefixtures("sample_of_300")
def test_a_rare_class_gives_few_of_its_rows_to_the_calibration(rng):
    X, y = rng.standard_normal((4000, 2)), np.zeros(4000, dtype=int)
    y[:60], y[60:75] = 1, 2
    found = surveyed(X, y, [])
    division = divide(found)
    held = found.sample.y[division.held_out]
    # 298 of the sampled rows are common, and 200 rows are searched; of the rare ones 5 % go.
    assert not (division.held_out & division.searched).any()
    assert np.bincount(held, minlength=3).tolist() == [98, 3, 0]


@pytest.mark.usefixtures("sample_of_300")
def test_rows_with_most_of_the_weight_are_not_held_out(table):
    X, y = table
    found = surveyed(X, y, [])
    last = places_of(found.sample.keys[divide(found).held_out])
    weight = np.ones(1200)
    weight[last[y[last] == 1]] = 1e12
    held = MemorySource(in_parts(X, y, weight, [])).survey(3, None)
    assert set(held.sample.y[divide(held).held_out]) == {0, 2}


def test_a_table_that_is_its_own_sample_holds_nothing_out(table):
    X, y = table
    assert not divide(surveyed(X, y, [])).held_out.any()
    assert "held out" not in " ".join(fit(X, y, [600]).history_.notes)


@pytest.mark.usefixtures("sample_of_300")
def test_held_out_rows_calibrate_planes_that_are_too_sure_of_their_own_rows():
    X, y = make_classification(
        5000, 20, n_informative=6, n_classes=3, n_clusters_per_class=2, flip_y=0.1, random_state=1
    )
    clf = fit(X[:1000], y[:1000], [300], n_planes=4, l2=1e-6)
    model, codes = clf.model_, np.searchsorted(clf.classes_, y)
    own = model.with_temperature(1.0).class_scores(X[:1000])
    in_sample = fit_temperature(own, codes[:1000], np.ones(1000), PRIOR_SCALE)
    assert model.temperature > 1.2 * in_sample
    fresh = [
        negative_log_likelihood(model.with_temperature(T).predict_proba(X[1000:]), codes[1000:])
        for T in (model.temperature, in_sample)
    ]
    assert fresh[0] < fresh[1]


def test_a_penalty_chosen_on_the_sample_is_the_same_prior_beside_all_rows(table, monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 100)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 10)
    X, y = table
    clf = fit(X, y, [500], lift="linear", l2="auto")
    (chosen,) = [trial for trial in clf.history_.trials if trial.chosen]
    n_searched = int(divide(surveyed(X, y, [500], seed=first_seed())).searched.sum())
    assert n_searched == 66
    assert clf.history_.l2 == pytest.approx(chosen.l2 * n_searched / len(y))
    assert clf.model_.training["l2"] == clf.history_.l2 != chosen.l2
    assert fit(X, y, [500], lift="linear", l2=1e-3).history_.l2 == 1e-3


def test_moments_of_all_rows_scale_the_model_and_not_those_of_the_sample(table, monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", 100)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 10)
    X, y = table
    exact = fit_standardize(X, np.ones(len(y)), np.arange(X.shape[1]))
    far = fit(X, y, [500]).model_.standardize
    np.testing.assert_allclose(far.mean, exact.mean, atol=1e-13)
    np.testing.assert_allclose(far.scale, exact.scale, rtol=1e-12)


def test_class_weights_and_prior_correction_work_as_in_memory(table):
    X, y = table
    keep = (y != 2) | (np.arange(len(y)) % 5 == 0)
    X, y = X[keep], y[keep]
    settings = {**FIXED, "n_planes": 1, "class_weight": "balanced", "calibrate": False}
    settings |= {"tol": 1e-12, "max_iter": 500}
    for correct in (False, True):
        settings["correct_prior"] = correct
        far = fit(X, y, [300], **settings)
        near = classifier(**settings).fit(X, y)
        np.testing.assert_allclose(far.predict_proba(X), near.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("lift", fast_with_numpy(["linear", "spline"], ["linear"]))
@pytest.mark.parametrize("n_in_sample", [100, 20_000])
def test_class_weight_is_sample_weight_out_of_core(table, lift, n_in_sample, monkeypatch):
    monkeypatch.setattr(sampling, "ROWS_IN_SAMPLE", n_in_sample)
    monkeypatch.setattr(sampling, "FEWEST_OF_A_CLASS", 10)
    X, y = table
    X = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.arange(len(y)) % 7)
    X["rare"] = pd.Categorical(["often"] * 1190 + [f"once {i}" for i in range(10)])
    X.loc[::9, "b"] = np.nan
    weights = {"lift": lift, "class_weight": {0: 3.0, 1: 1.0, 2: 0.25}}
    by_class = fit(X, y, [500], **weights).model_
    by_row = fit(X, y, [500], np.array([3.0, 1.0, 0.25])[y], lift=lift).model_
    assert by_class.schema == by_row.schema
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)


def test_a_label_that_appears_between_two_passes_is_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="not there when the table was first read"):
        survey.with_factors(RowPart(X, y), {0: 1.0, 1: 2.0})


@pytest.mark.parametrize(
    "setting",
    [
        {"solver": "adam"},
        {"n_members": 5, "preset": "accurate"},
        {"refit": False},
        {"early_stopping": "plain"},
        {"adaptive_penalty": True},
    ],
)
def test_what_needs_rows_in_memory_is_refused_by_name(table, setting):
    with pytest.raises(InvalidParameterError, match=next(iter(setting))):
        fit(*table, **setting)


def test_bad_parts_are_refused_with_what_is_wrong(rng, table):
    X, y = table
    with pytest.raises(ValueError, match="1 class"):
        fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"infinity.*x2: 1 of"):
        fit(np.where(np.arange(X.size).reshape(X.shape) == 8, np.inf, X), y, [100])
    frame, labels = mixed_frame(rng)
    numbers = frame.assign(colour=1.0)
    with pytest.raises(SchemaError, match="'colour' holds numbers in one part"):
        fit_estimator(
            classifier(**FIXED),
            MemorySource([RowPart(frame, labels), RowPart(numbers, labels)]),
        )
    with pytest.raises(SchemaError, match="different columns"):
        fit_estimator(
            classifier(**FIXED),
            MemorySource([RowPart(frame, labels), RowPart(frame.drop(columns="late"), labels)]),
        )
    with pytest.raises(ValueError, match="late: 300 of 900"):
        fit(frame, labels, [300], missing="error")
    with pytest.raises(ValueError, match="text in one part and numbers in another"):
        fit_estimator(
            classifier(**FIXED),
            MemorySource([RowPart(X[:600], y[:600]), RowPart(X[600:], y[600:].astype(str))]),
        )


def test_a_failed_fit_out_of_core_leaves_the_estimator_as_it_was(table):
    X, y = table
    clf = fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="1 class"):
        fit_estimator(clf, MemorySource(in_parts(X, np.zeros(len(y)), None, [])))
    assert np.array_equal(clf.predict_proba(X), before)


def test_useless_columns_give_a_warning_out_of_core_too(table):
    X, y = table
    with pytest.warns(DataQualityWarning, match="100 % missing"):
        fit(np.column_stack([X, np.full(len(y), np.nan)]), y, [500])


def test_every_pass_reads_the_parts_again(rng):
    planes, (Phi, y, weight) = random_planes(rng, [1, 1], 3), random_rows(rng, 20, 3, 2)
    n_opened = []

    class One:
        def terms(self, planes, sharpness, label_smoothing):
            return batch_terms(planes, sharpness, Phi, y, weight, label_smoothing)

    def opened():
        n_opened.append(1)
        return iter([One(), One()])

    sums = PartSums(opened)
    twice = sums.terms(planes, 3.0, 0.0)
    sums.terms(planes, 3.0, 0.0)
    assert len(n_opened) == 2
    assert twice.loss == pytest.approx(2 * One().terms(planes, 3.0, 0.0).loss)


def test_a_model_of_rows_out_of_core_has_the_shares_of_its_classes(table):
    X, y = table
    model = fit(X, y, [100]).model_
    shares = np.bincount(np.unique(y, return_inverse=True)[1]) / len(y)
    np.testing.assert_allclose(model.class_shares, shares, rtol=1e-12)
    even = model.with_priors(dict.fromkeys(model.classes.tolist(), 1.0)).model
    P = model.predict_proba(X) / shares
    np.testing.assert_allclose(even.predict_proba(X), P / P.sum(axis=1, keepdims=True), atol=1e-12)


FAULTS = """
import resource
import numpy as np
from geomix import GeometricMixtureClassifier
from geomix.core.planes import Planes, class_starts
from geomix.core.row_sums import PartSums
from geomix.out_of_core.part_reader import known_from, part_reader_of
from geomix.out_of_core.survey import RowPart, survey_part
rng = np.random.default_rng(0)
part = RowPart(rng.standard_normal((60_000, 50)).astype(np.float32), rng.integers(0, 2, 60_000))
found = survey_part(part, 0, 0)
linear = known_from(found, GeometricMixtureClassifier().settings()).linear
reader = part_reader_of(found, linear, None, exact=True)
stored = reader.stored(part)
start = class_starts([2, 2])
planes = Planes(np.ones((4, 50)), np.zeros(4), start)
sums = PartSums(lambda: reader.blocks(stored))
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    sums.terms(planes, 6.0, 0.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not is_native or sys.platform != "linux", reason="the C library of Linux")
def test_a_pass_in_blocks_uses_the_same_memory_again():
    """Where freed memory goes back to the system at once, as in the workers of Dask."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536", "GEOMIX_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 1500  # 12 blocks of 512 pages each, twice: 12,288 if all were new
