"""Explanations: parts that add up, held against the model's own answers."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from kernels import fast_with_numpy
from pair_models import paired
from places import ROOT
from reading_models import ADDITIVE, FOURIER, SETTINGS, fitted, mixed_table
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_wine

from geomix import GeometricMixture, GeometricMixtureClassifier
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize, pass_through
from geomix.core.planes import Planes
from geomix.core.spline import fit_spline
from geomix.errors import NoShapes
from geomix.explain import findings
from geomix.explain.additive_form import additive
from geomix.explain.cells import decoded_row, encoded_rows
from geomix.explain.contributions import plane_gradients, standardised
from geomix.table.row_views import all_rows

EVERY = list(SETTINGS)


def odd_rows(name):
    """Rows of the table, and rows with missing cells, levels never seen and far-off numbers."""
    model, X, _ = fitted(name)
    encoded = encoded_rows(model, X)[:40].copy()
    rng = np.random.default_rng(1)
    encoded[rng.random(encoded.shape) < 0.1] = np.nan
    numbers = ~np.array([shape.kind == "category" for shape in _table(model)])
    encoded[:5, numbers] *= 100.0
    encoded[5:8, ~numbers] = -1.0
    return model, encoded


def _table(model):
    return model.schema.columns


# --- the additive form ---


@pytest.mark.parametrize("name", ADDITIVE)
def test_planes_are_sums_over_columns(name):
    model, encoded = odd_rows(name)
    ours, theirs = additive(model).scores(encoded), model.answer("plane_scores", encoded)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ADDITIVE)
def test_taking_the_mean_plane_off_changes_no_margin(name):
    model, encoded = odd_rows(name)
    S, centred = (
        form.class_scores(encoded) for form in (additive(model), additive(model).centred())
    )
    np.testing.assert_allclose(S - S[:, :1], centred - centred[:, :1], rtol=1e-9, atol=1e-9)


def test_a_spline_model_knows_the_deviation_of_its_columns():
    model, X, _ = fitted("spline")
    told = [shape.scale for shape in additive(model).shapes]
    np.testing.assert_allclose(told, X.std(axis=0), rtol=0.1)


def test_a_shape_survives_knots_that_are_neighbours():
    knots = np.array([0.0, np.nextafter(0.0, 1.0)])
    from geomix.explain.additive_form import NumberShape

    shape = NumberShape(
        0, "x", knots, np.array([[1.0, 2.0]]), np.zeros((1, 2)), np.array([5.0]), 1.0
    )
    cells = np.array([-1.0, 0.0, knots[1], 3.0, np.nan])
    np.testing.assert_array_equal(shape(cells)[:, 0], [1.0, 1.0, 2.0, 2.0, 5.0])


# --- local ---


@pytest.mark.kernel
@pytest.mark.parametrize("name", fast_with_numpy(ADDITIVE, ["linear", "spline"]))
def test_contributions_add_up_to_the_margin(name):
    model, X, _ = fitted(name)
    told = model.explain_local(X)
    log_p = np.log(model.predict_proba(X))
    rows = np.arange(len(log_p))
    margin = log_p[rows, told.labels] - log_p[rows, told.against]
    total = told.contributions.sum(axis=1) + told.bias + told.pooling
    S = model.class_scores(X)
    np.testing.assert_allclose(total, S[rows, told.labels] - S[rows, told.against], atol=1e-9)
    reliable = np.isfinite(margin) & (np.abs(margin) < 20.0)  # log of a tiny p loses digits
    np.testing.assert_allclose(total[reliable], margin[reliable], atol=1e-5)
    assert told.is_exact


@pytest.mark.parametrize("name", ["several", "mixed committee"])
def test_any_two_classes_can_be_held_against_each_other(name):
    model, X, _ = fitted(name)
    a, b = model.classes.tolist()[2], model.classes.tolist()[0]
    told = model.explain_local(X, label=a, against=b)
    S = model.class_scores(X)
    total = told.contributions.sum(axis=1) + told.bias + told.pooling
    np.testing.assert_allclose(total, S[:, 2] - S[:, 0], atol=1e-9)
    back = model.explain_local(X, label=b, against=a)
    np.testing.assert_allclose(back.contributions, -told.contributions, atol=1e-12)


def test_one_plane_per_class_leaves_nothing_to_pooling_and_several_do():
    model, X, _ = fitted("linear")
    np.testing.assert_array_equal(model.explain_local(X).pooling, 0.0)
    model, X, _ = fitted("several")
    assert np.abs(model.explain_local(X).pooling).max() > 0.01


@pytest.mark.parametrize("name", EVERY)
def test_the_joint_posterior_sums_to_the_posterior(name):
    model, X, _ = fitted(name)
    told = model.explain_local(X[:5], **({"n_orders": 4} if name in FOURIER else {}))
    sums = [told.joint[:, told.class_of == c].sum(axis=1) for c in range(len(told.classes))]
    np.testing.assert_allclose(np.transpose(sums), model.predict_proba(X[:5]), atol=1e-12)


def test_a_column_that_does_not_count_contributes_nothing():
    standardize = Standardize(np.array([0, 2]), np.zeros(2), np.ones(2), None, 3)
    planes = Planes(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.5, 0.0]), np.array([0, 1, 2]))
    model = GeometricMixture(
        np.array(["a", "b"]),
        ("u", "v", "w"),
        FeatureMap(standardize, IdentityLift(2)),
        planes,
        6.0,
        2.0,
    )
    told = model.explain_local(np.array([[3.0, 9.0, 1.0]]))
    np.testing.assert_allclose(told.contributions, [[1.5, 0.0, -1.0]])
    np.testing.assert_allclose([told.bias, told.pooling, told.margin], [[0.25], [0.0], [0.75]])


def test_the_responsible_planes_are_those_of_the_winning_class_strongest_first():
    model, X, _ = fitted("several")
    told = model.explain_local(X)
    for i, (label, A) in enumerate(zip(told.labels, told.responsibilities, strict=True)):
        own = np.flatnonzero(told.class_of == label)
        best = own[A[own].argmax()]
        first = told.responsible(i)[0]
        assert (first["plane"], first["member"]) == (told.plane_of[best], 0)
        assert first["responsibility"] == A[best]


def test_a_committees_planes_are_named_by_member():
    model, X, _ = fitted("committee")
    told = model.explain_local(X[:1])
    assert {one["member"] for one in told.responsible()} == {0, 1, 2, 3}
    assert "member" in str(told)


def test_a_pairs_share_goes_half_and_half():
    X, _ = load_wine(return_X_y=True)
    lift = fit_spline(
        all_rows(X[:, :4]), np.ones(len(X)), np.zeros(4, dtype=int), 8, pairs=((0, 1), (1, 3))
    )
    rng = np.random.default_rng(0)
    planes = Planes(
        rng.standard_normal((5, lift.n_outputs)), rng.standard_normal(5), np.array([0, 2, 3, 5])
    )
    names = ("a", "b", "c", "d")
    model = GeometricMixture(
        np.arange(3), names, FeatureMap(pass_through(4), lift), planes, 6.0, 0.7
    )
    told = model.explain_local(X[:, :4])
    total = told.contributions.sum(axis=1) + told.bias + told.pooling
    np.testing.assert_allclose(total, told.margin, atol=1e-9)
    score = model.scorer()
    for i in range(0, 178, 30):
        why = score.explain(X[i, :4])
        assert told.classes[told.labels[i]] == why.label
    found = model.counterfactual(X[0, :4])
    assert model.predict(found.after)[0] == found.target


def test_sparse_rows_are_explained_like_dense_ones():
    model, X, _ = fitted("several")
    dense, sparse = model.explain_local(X[:5]), model.explain_local(csr_matrix(X[:5]))
    np.testing.assert_array_equal(dense.contributions, sparse.contributions)


# --- Fourier: approximations that are marked ---


@pytest.mark.parametrize("name", FOURIER)
def test_the_gradient_is_that_of_the_margin(name):
    model, X, _ = fitted(name)
    encoded = encoded_rows(model, X)[:4]
    told = model.explain_local(X[:4], method="gradient")
    U = standardised(model, encoded)
    D = np.zeros((4, model.planes.n_planes))
    A = model.answer("responsibilities", encoded)
    for i in range(4):
        sign = 1.0 * (told.class_of == told.labels[i]) - (told.class_of == told.against[i])
        D[i] = A[i] * sign / model.temperature
    slope = plane_gradients(model, U, D)

    def margin(i, u):
        Z = model.planes.scores(model.lift(model.standardize.rotated(u[None])))
        S = model.planes.pooled(Z, model.sharpness)[0][0] / model.temperature
        return S[told.labels[i]] - S[told.against[i]]

    from shapes import central_differences

    for i in range(4):
        numeric = central_differences(lambda u, i=i: margin(i, u), U[i])
        np.testing.assert_allclose(slope[i], numeric, atol=1e-6)
    total = told.contributions.sum(axis=1) + told.bias
    np.testing.assert_allclose(total, told.margin, atol=1e-9)
    assert not told.is_exact
    assert "approximation" in str(told)


def test_shapley_values_come_with_an_error_that_holds():
    model, X, _ = fitted("fourier")
    few = model.explain_local(X[:3], n_orders=32, random_state=0)
    many = model.explain_local(X[:3], n_orders=1000, random_state=1)
    assert few.method == "shapley"
    assert not few.is_exact
    np.testing.assert_allclose(few.contributions.sum(axis=1) + few.bias, few.margin, atol=1e-9)
    off = np.abs(few.contributions - many.contributions)
    error = np.hypot(few.error, many.error)
    assert (off <= 4.0 * error + 1e-12).mean() >= 0.95
    assert (many.error < few.error).mean() > 0.9


def test_shapley_sampling_is_exact_on_a_sum_over_columns():
    """Of a linear model's margin every order gives the same shares: the exact contributions."""
    from geomix.explain import shapley

    model, X, _ = fitted("linear")
    encoded = encoded_rows(model, X)[:3]
    exact = model.explain_local(X[:3])
    told = shapley.sampled(model, encoded, exact.labels, exact.against, n_orders=4)
    np.testing.assert_allclose(told.by_column, exact.contributions, atol=1e-9)
    np.testing.assert_allclose(told.error, 0.0, atol=1e-9)


def test_exact_contributions_of_a_fourier_model_are_refused():
    model, X, _ = fitted("fourier")
    with pytest.raises(NoShapes, match="no exact answer"):
        model.explain_local(X[:1], method="exact")
    linear, X, _ = fitted("linear")
    with pytest.raises(ValueError, match="exact"):
        linear.explain_local(X[:1], method="shapley")
    with pytest.raises(ValueError, match="expected one of"):
        linear.explain_local(X[:1], method="lime")


# --- global ---


@pytest.mark.parametrize("name", EVERY)
def test_cards_agree_with_a_plain_loop_over_rows(name):
    model, X, y = fitted(name)
    told = model.explain_global(X, y)
    A, predicted = model.responsibilities(X), model.predict(X)
    P, start = model.predict_proba(X), 0
    planes = model.planes
    wrong = predicted != y
    cards = iter(told.cards)
    for code, label in enumerate(model.classes):
        each = planes.per_class[code] // planes.n_members
        for member in range(planes.n_members):
            block = A[:, start : start + each]
            start += each
            for plane in range(each):
                card = next(cards)
                assert (card.label, card.plane, card.member) == (label, plane, member)
                answered = (block.argmax(axis=1) == plane) & (predicted == label)
                assert card.n_rows == answered.sum()
                assert card.usage == pytest.approx(answered.mean())
                assert card.error_share == pytest.approx(
                    (answered & wrong).sum() / wrong.sum() if wrong.any() else 0.0
                )
                if answered.any():
                    assert card.purity == pytest.approx((y[answered] == label).mean())
                    assert card.confidence == pytest.approx(P[answered, code].mean())


@pytest.mark.parametrize("name", EVERY)
def test_usage_of_each_member_sums_to_one(name):
    model, X, y = fitted(name)
    told = model.explain_global(X, y)
    sums = [
        sum(card.usage for card in told.cards if card.member == member)
        for member in range(told.n_members)
    ]
    np.testing.assert_allclose(sums, 1.0)


@pytest.mark.parametrize("name", ADDITIVE)
def test_curves_rebuild_the_margins(name):
    """The sum of the curves, in the user's units, is the difference of the class scores."""
    model, X, _ = fitted(name)
    curves = model.explain_global().curves
    encoded = encoded_rows(model, X)
    Z = np.repeat(additive(model).centred().planes.biases[None], len(encoded), axis=0)
    for j, curve in enumerate(curves):
        x = encoded[:, j]
        for p in range(model.planes.n_planes):
            if curve.kind == "category":
                told = curve.values[p][np.nan_to_num(x).astype(int)]
            elif curve.is_straight:
                (x0, x1), (v0, v1) = curve.x, curve.values[p]
                told = v0 + (x - x0) * (v1 - v0) / (x1 - x0)
            else:
                told = np.interp(np.nan_to_num(x), curve.x, curve.values[p])
            Z[:, p] += np.where(np.isnan(x), curve.missing[p], told)
    S = model.planes.pooled(Z, model.sharpness)[0] / model.temperature
    expected = model.class_scores(X)
    np.testing.assert_allclose(S - S[:, :1], expected - expected[:, :1], rtol=1e-8, atol=1e-8)


def test_the_strongest_columns_of_a_linear_plane_are_those_of_the_largest_weights():
    model, X, _ = fitted("linear")
    weights = model.folded.weights * X.std(axis=0)
    weights = weights - weights.mean(axis=0)
    for card, row in zip(model.explain_global().cards, weights, strict=True):
        order = np.argsort(-np.abs(row))
        assert [one.column for one in card.columns] == [model.columns[j] for j in order[:5]]
        signs = ["rises" if row[j] > 0 else "falls" for j in order[:5]]
        assert [one.direction for one in card.columns] == signs


def test_without_rows_the_model_tells_what_it_knows_by_itself():
    model, X, y = fitted("mixed spline")
    told = model.explain_global()
    assert told.n_rows is None
    assert told.importances is None
    assert {card.usage for card in told.cards} == {None}
    assert told.curve("colour").levels == ("red <b>", "rosé", "white")
    assert np.abs(told.curve("ash").missing).max() > 0.0
    with pytest.raises(KeyError, match="ash"):
        told.curve("no such")
    with pytest.raises(ValueError, match="without X"):
        model.explain_global(y=y)
    unlabelled = model.explain_global(X)
    assert {card.purity for card in unlabelled.cards} == {None}
    assert unlabelled.accuracy is None


def test_importances_are_mean_sizes_of_contributions():
    model, X, y = fitted("mixed linear")
    told, local = model.explain_global(X, y), model.explain_local(X)
    np.testing.assert_allclose(told.importances, np.abs(local.contributions).mean(axis=0))


def test_a_typical_row_is_made_of_cells_that_the_table_has():
    X, _ = mixed_table()
    model, _, y = fitted("mixed spline")
    for card in model.explain_global(X, y).cards:
        if card.typical is None:
            continue
        for name, cell in card.typical.items():
            assert cell is None or cell in set(X[name].dropna()), name


# --- findings ---


def _three_planes(second):
    weights = np.array([[3.0, 0.0], second, [-3.0, 0.0]])
    planes = Planes(weights, np.zeros(3), np.array([0, 2, 3]))
    return GeometricMixture(
        np.array(["a", "b"]),
        ("u", "v"),
        FeatureMap(Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2), IdentityLift(2)),
        planes,
        6.0,
    )


def test_an_idle_plane_a_twin_and_an_unused_column_are_found_and_can_be_silenced():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    twin = _three_planes([3.0, 1e-9])
    assert [one.code for one in twin.explain_global().findings] == ["GMX002", "GMX007"]
    idle = _three_planes([2.0, 1.0])
    weak = GeometricMixture(
        idle.classes,
        idle.columns,
        idle.feature_map,
        Planes(idle.planes.weights, np.array([0.0, -50.0, 0.0]), idle.planes.class_start),
        6.0,
    )
    codes = [one.code for one in weak.explain_global(X, y).findings]
    assert codes == ["GMX001"]
    assert weak.explain_global(X, y, ignore=("GMX001",)).findings == ()
    with pytest.raises(ValueError, match="GMX999"):
        weak.explain_global(ignore=["GMX999"])


def table_of_missing_cells(n_rows=600):
    """The second column says nothing but whether it is missing, which decides."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=n_rows), np.ones(n_rows)])
    X[rng.random(n_rows) < 0.4, 1] = np.nan
    score = X[:, 0] + 3.0 * np.isnan(X[:, 1]) + 0.5 * rng.normal(size=n_rows)
    return X, (score > 1.5).astype(int)


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_a_column_that_decides_by_its_missing_cells_alone_is_used_and_on_the_cards(lift):
    X, y = table_of_missing_cells()
    model = GeometricMixtureClassifier(lift=lift, n_planes=1, random_state=0).fit(X, y).model_
    assert "GMX007" not in {one.code for one in model.explain_global(X, y).findings}
    for card in model.explain_global().cards:
        assert "x1" in {one.column for one in card.columns}


def test_a_column_that_acts_in_a_pair_alone_is_used():
    model, _, _ = paired("numbers")
    parts = [(part, steps) for part, steps in model.lift.by_part() if len(part.columns) == 2]
    pair, steps = parts[0]
    weights = np.zeros_like(model.planes.weights)
    weights[:, steps] = model.planes.weights[:, steps]
    bare = replace(model, planes=replace(model.planes, weights=weights))
    (found,) = [one for one in bare.explain_global().findings if one.code == "GMX007"]
    unused = [name for j, name in enumerate(model.columns) if j not in pair.columns]
    assert len(unused) == 2
    assert found.about == ", ".join(unused)


def test_a_plane_of_a_rare_class_is_not_idle_for_want_of_labels():
    """Either plane of the rare class answers 0.4 % of all rows, and half of those of its class."""
    rng = np.random.default_rng(0)
    far = [0.3 * rng.normal(size=(40, 2)) + [side, 0.0] for side in (7.0, -7.0)]
    X = np.concatenate([rng.normal(size=(10_000, 2)), *far])
    y = np.repeat([0, 1], [10_000, 80])
    settings = {"lift": "linear", "n_planes": {0: 1, 1: 2}, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    assert [card.n_rows for card in model.explain_global(X).cards] == [10_000, 40, 40]
    assert model.explain_global(X, y).findings == ()
    assert model.explain_global(X).findings == ()


def test_an_idle_plane_is_found_without_labels_among_the_rows_of_its_answer():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    idle = _three_planes([2.0, 1.0])
    planes = Planes(idle.planes.weights, np.array([0.0, -50.0, 0.0]), idle.planes.class_start)
    weak = replace(idle, planes=planes)
    (found,) = weak.explain_global(X).findings
    assert found.code == "GMX001"
    assert "0.00% of the rows predicted as its class" in found.message
    few = X[X[:, 0] > 0.5][:9]
    assert weak.explain_global(few, ignore=("GMX006",)).findings == ()


def test_wrong_labels_make_an_impure_miscalibrated_plane_and_a_missing_class():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2)) + np.array([1.0, 0.0])
    model = _three_planes([1.0, 1.0])
    upside_down = np.where(X[:, 0] > 0, "b", "a")
    codes = {one.code for one in model.explain_global(X, upside_down).findings}
    assert {"GMX003", "GMX004"} <= codes
    far = np.column_stack([np.abs(X[:, 0]) + 1.0, np.zeros(400)])
    mostly = np.where(rng.random(400) < 0.05, "b", "a")
    assert "GMX006" in {one.code for one in model.explain_global(far, mostly).findings}


def test_a_plane_with_more_than_its_share_of_the_errors_is_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    model = _three_planes([1.0, 3.0])
    y = model.predict(X)
    answered = (y == "a") & (model.responsibilities(X)[:, 1] > 0.5)
    y = np.where(answered & (rng.random(2000) < 0.3), "b", y)
    found = [one for one in model.explain_global(X, y).findings if one.code == "GMX005"]
    assert [one.about for one in found] == ["a/2"]


def test_every_finding_is_documented():

    page = (ROOT / "docs" / "guide" / "findings.md").read_text()
    for code, title in findings.CODES.items():
        assert f"## {code}" in page, code
        assert title.split()[0] in page.lower()


# --- what they look like ---


@pytest.mark.parametrize("name", EVERY)
def test_facts_come_as_frames_json_html_and_text(name):
    model, X, y = fitted(name)
    local, whole = model.explain_local(X[:2]), model.explain_global(X, y)
    for told in (local, whole):
        json.dumps(told.to_dict(), allow_nan=False)
        assert told._repr_html_() == told.to_html()
        assert "red <b>" not in told.to_html()
        assert str(told)
    assert len(local.to_frame()) == 2 * (len(model.columns) + 2)
    assert len(whole.to_frame()) == model.planes.n_planes
    frame = local.to_frame()
    sums = frame.groupby("row")["contribution"].sum()
    np.testing.assert_allclose(sums, local.margin, atol=1e-9)


def test_hostile_names_stay_text():
    X, _ = load_wine(return_X_y=True)
    base, _, _ = fitted("several")
    evil = ("<script>alert(1)</script>", "\x1b[2J", *base.columns[2:])
    model = GeometricMixture(
        np.array(["<i>", "b", "c"]),
        evil,
        base.feature_map,
        base.planes,
        base.sharpness,
    )
    for told in (model.explain_local(X[:3]), model.explain_global(X)):
        assert "<script>" not in told.to_html()
        assert "<i>" not in told.to_html()
        assert "&lt;i&gt;" in told.to_html()
        assert "\x1b" not in str(told)


def test_frames_need_pandas_and_say_so(monkeypatch):
    model, X, _ = fitted("linear")
    monkeypatch.setitem(sys.modules, "pandas", None)
    told = model.explain_local(X[:1])
    assert told.to_dict()["rows"]
    with pytest.raises(ImportError, match="pip install pandas"):
        told.to_frame()


def test_one_row_can_be_taken_out_of_many():
    model, X, _ = fitted("mixed spline")
    told = model.explain_local(X)
    one = told[-1]
    assert len(one) == 1
    assert one.to_dict()["rows"][0] == told.to_dict()["rows"][-1]
    assert len(list(told)) == len(X)
    np.testing.assert_array_equal(one.contributions[0], told.contributions[-1])
    assert told.cells[3] == decoded_row(model, encoded_rows(model, X)[3])


def test_ensembles_are_not_advised_to_edit_single_planes():
    model, X, y = fitted("committee")
    found = model.explain_global(X, y).findings
    assert {one.code for one in found} & {"GMX001", "GMX002"}
    assert not any("without_plane" in str(one) or "merge_planes" in str(one) for one in found)


def test_the_advice_for_an_idle_plane_can_be_followed():
    model, X, y = fitted("several")
    planes = model.planes
    biases = planes.biases.copy()
    biases[1] -= 1e3
    weak = replace(model, planes=replace(planes, biases=biases))
    found = [one.message for one in weak.explain_global(X, y).findings if one.code == "GMX001"]
    assert any("model.without_plane(0, 1)" in message for message in found)
    assert weak.without_plane(0, 1).model.planes.n_planes == planes.n_planes - 1


@pytest.mark.parametrize("name", ADDITIVE)
def test_class_curves_add_up_to_zero_over_the_classes(name):
    model, X, y = fitted(name)
    for curve in model.explain_global(X, y).curves:
        size = 1e-12 * max(np.abs(curve.values).max(), 1.0)
        np.testing.assert_allclose(curve.by_class.sum(axis=0), 0.0, atol=size)
        assert curve.missing_by_class.sum() == pytest.approx(0.0, abs=size)
        assert (curve.log_odds is None) == (len(model.classes) > 2)


def test_two_classes_have_one_curve_in_log_odds():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"lift": "spline", "n_planes": 1, "n_members": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X[:, :4], y).model_
    curve = model.explain_global(X[:, :4], y).curve("x2")
    row = X[:1, :4].repeat(len(curve.x), axis=0)
    row[:, 2] = curve.x
    S = model.class_scores(row)
    moved = np.diff(S[:, 1] - S[:, 0])
    np.testing.assert_allclose(np.diff(curve.log_odds), moved, atol=1e-10)


def test_a_notebook_shows_every_column():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    found = model.explain_global(X, y)
    html = found.to_html()
    assert all(f"<td>{name}</td>" in html for name in model.columns)
    assert "30 columns, 6 more not shown" in str(found)


def test_planes_that_differ_in_missing_cells_alone_are_no_twins(rng):
    X = rng.normal(size=(300, 2))
    X[rng.random(300) < 0.4, 1] = np.nan
    y = np.where((X[:, 0] > 0.0) == np.isnan(X[:, 1]), "a", "b")
    settings = {"lift": "spline", "n_planes": {"a": 2, "b": 1}, "l2": 1e-3, "max_interactions": 0}
    model = GeometricMixtureClassifier(**settings, random_state=0).fit(X, y).model_

    def findings_with(rise):
        weights, biases = model.planes.weights.copy(), model.planes.biases.copy()
        weights[1], biases[1] = weights[0], biases[0]
        weights[1, -1] += rise  # the last step: whether the cell of the last column is missing
        twin = replace(model, planes=replace(model.planes, weights=weights, biases=biases))
        return [one.code for one in twin.explain_global().findings]

    assert "GMX002" in findings_with(0.0)
    assert "GMX002" not in findings_with(20.0)
