"""Monotone probabilities: kept in training, proved by the check, and seen along the column."""

import json

import numpy as np
import pandas as pd
import pytest
from kernels import SLOW_WITH_NUMPY
from making import classifier
from reading_models import fitted
from scipy.sparse import csr_matrix
from shapes import central_differences, random_planes, random_rows
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from geomix import GeometricMixtureClassifier, InvalidParameterError
from geomix.core import kernel
from geomix.core.objective import penalised
from geomix.core.ordered_weights import Order, OrderedWeights
from geomix.core.spline_parts import PairPart
from geomix.errors import NoShapes
from geomix.search.constants import Calm
from geomix.training.monotone import minimize as ordered_minimize

pytestmark = pytest.mark.kernel

QUICK = {"l2": 1e-3, "shrink_to_mean": 0.0, "max_iter": 60, "random_state": 0, "calibrate": False}


def along(model, X, j, code, sign, n=60):
    """Largest step the wrong way of p_code while column j rises, over all rows."""
    low, high = np.nanmin(X[:, j]), np.nanmax(X[:, j])
    spread = high - low
    worst = 0.0
    for row in X[:: max(len(X) // 25, 1)]:
        table = np.repeat(row[None], n, axis=0)
        table[:, j] = np.linspace(low - spread, high + spread, n)
        log_p = np.log(np.maximum(model.predict_proba(table)[:, code], 1e-300))
        worst = max(worst, -(sign * np.diff(log_p)).min())
    return worst


SETTINGS = {
    "linear": {"lift": "linear", "n_planes": 1},
    "several lines": {"lift": "linear", "n_planes": 3},
    "spline": {"lift": "spline", "n_planes": 1},
    "several curves": {"lift": "spline", "n_planes": 3, "n_members": 1},
    "committee": {"lift": "spline", "n_planes": 2, "preset": "accurate", "n_members": 3},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"x1": {2: -1}}, marks=SLOW_WITH_NUMPY),
        {"x1": {0: 1, 2: -1}, "x2": {1: -1}},
        pytest.param({"x0": {0: 1, 1: 1}}, marks=SLOW_WITH_NUMPY),
    ],
    ids=["one", "both ways", "two rise"],
)
def test_probabilities_only_move_in_the_required_direction(name, wanted):
    X, y = load_wine(return_X_y=True)
    X = X[:, :6]
    clf = classifier(monotonic_cst=wanted, **QUICK, **SETTINGS[name]).fit(X, y)
    check = clf.model_.check_monotone(wanted)
    assert check
    for fact in check.facts:
        j = clf.model_.columns.index(fact.column)
        assert along(clf.model_, X, j, fact.label, fact.direction) < 1e-9
    free = classifier(**QUICK, **SETTINGS[name]).fit(X, y)
    assert not free.model_.check_monotone(wanted)  # so the constraint had something to do


@pytest.mark.parametrize("name", ["linear", "spline", "several curves"])
def test_a_curve_never_steps_back_by_a_rounding_error(name):
    X, y = load_wine(return_X_y=True)
    X, y = X[:, :4], (y == 0).astype(int)
    for sign in (1, -1):
        clf = classifier(monotonic_cst={"x0": sign}, **QUICK, **SETTINGS[name]).fit(X, y)
        table = np.repeat(X[:5], 400, axis=0)
        table[:, 0] = np.tile(np.linspace(X[:, 0].min() - 1.0, X[:, 0].max() + 1.0, 400), 5)
        scores = clf.decision_function(table).reshape(5, 400)
        assert (sign * np.diff(scores, axis=1) >= 0.0).all()


def test_what_holds_by_itself_is_left_alone():
    """Where the free optimum keeps the order, the ordered one is the same model."""
    X, y = load_iris(return_X_y=True)
    settings = QUICK | {"lift": "linear", "n_planes": 1, "max_iter": 500, "tol": 1e-8}
    free = classifier(**settings).fit(X, y)
    wanted = {"x2": {2: 1, 0: -1}}
    assert free.model_.check_monotone(wanted)
    kept = classifier(monotonic_cst=wanted, **settings).fit(X, y)
    np.testing.assert_allclose(kept.predict_proba(X), free.predict_proba(X), atol=2e-4)


def test_an_order_costs_likelihood_but_not_more_than_leaving_the_column_out():
    X, y = load_wine(return_X_y=True)
    settings = QUICK | {"lift": "linear", "n_planes": 1, "max_iter": 500, "label_smoothing": 0.0}

    def loss(clf, X):
        return -np.log(clf.predict_proba(X)[np.arange(len(y)), y]).mean()

    def value(clf, X):
        W = clf.model_.planes.weights
        return loss(clf, X) + 1e-3 * (1 + 0.5 / 1.01) * 0.0 + 1e-3 * (W**2).sum()

    wrong = {"x12": {0: -1}}  # proline speaks for class 0 most of all
    free = classifier(usage_beta=0.0, **settings).fit(X, y)
    held = classifier(usage_beta=0.0, monotonic_cst=wrong, **settings).fit(X, y)
    without = classifier(usage_beta=0.0, **settings).fit(X[:, :12], y)
    assert value(free, X) < value(held, X) - 1e-3
    assert value(held, X) <= value(without, X[:, :12]) + 1e-6


def test_the_gradient_passes_through_the_coordinates(rng):
    """Central differences of the objective over the bounded numbers."""
    planes = random_planes(rng, [2, 1, 2], 4)
    Phi, y, weight = random_rows(rng, 30, 4, 3)
    up, down = np.zeros((2, 3), dtype=bool), np.zeros((2, 3), dtype=bool)
    up[0, 0], down[0, 2], down[1, 1] = True, True, True
    order = Order(np.array([1, 3]), up, down)
    rows = kernel.training_rows(Phi, y, weight)
    coordinates = OrderedWeights(order, planes)

    def value(vector):
        at = coordinates.planes_at(vector)
        return penalised(rows.terms(at, 6.0, 0.02), at, np.full(5, 0.01), 0.5)[0]

    start = coordinates.start
    at = coordinates.planes_at(start)
    gradient = penalised(rows.terms(at, 6.0, 0.02), at, np.full(5, 0.01), 0.5)[1]
    numeric = central_differences(value, start)
    np.testing.assert_allclose(coordinates.gradient(start, gradient), numeric, atol=1e-6)


def test_planes_that_keep_an_order_start_where_they_are(rng):
    planes = random_planes(rng, [2, 2, 1], 3)
    planes.weights[:, 1] = [3.0, 2.5, 0.5, 1.0, -1.0]
    up, down = np.array([[True, False, False]]), np.array([[False, False, True]])
    for order in (
        Order(np.array([1]), up, down),
        Order(np.array([1]), up, np.zeros_like(up)),
        Order(np.array([1]), np.zeros_like(up), down),
    ):
        np.testing.assert_allclose(order.feasible(planes).weights, planes.weights, atol=1e-12)
    planes.weights[:, 1] = [0.0, 2.0, 3.0, 1.0, 2.5]
    moved = Order(np.array([1]), up, down).feasible(planes).weights[:, 1]
    assert moved[:2].min() >= moved[2:4].max()
    assert moved[2:4].min() >= moved[4]
    np.testing.assert_array_equal(
        Order(np.array([1]), up, down).feasible(planes).weights[:, [0, 2]],
        planes.weights[:, [0, 2]],
    )


def test_a_bounded_minimum_is_one(rng):
    """No feasible step from the end goes down: by the gradient of the bounded numbers."""
    planes = random_planes(rng, [1, 1], 3)
    Phi, y, weight = random_rows(rng, 200, 3, 2)
    y = (Phi[:, 0] + Phi[:, 1] > 0).astype(int)
    order = Order(np.array([0]), np.array([[True, False]]), np.zeros((1, 2), dtype=bool))
    rows = kernel.training_rows(Phi, y, weight)
    penalty = np.full(2, 1e-2)
    descent = kernel.Descent(planes, 1.0, 0.0, penalty, max_iter=500, tol=1e-9, value_tol=1e-15)
    ended = ordered_minimize(rows, descent, order).planes
    assert ended.weights[0, 0] >= ended.weights[1, 0]
    free = kernel.minimize(rows, descent).planes
    assert free.weights[0, 0] < free.weights[1, 0]
    # Against the labels the best order is none at all: both planes are equal along the column.
    assert ended.weights[0, 0] == pytest.approx(ended.weights[1, 0], abs=1e-6)


@pytest.mark.skipif(not kernel.is_native, reason="the NumPy kernel is in use")
@pytest.mark.parametrize("seed", range(3))
def test_the_native_solver_within_bounds_ends_where_scipys_does(seed):
    rng = np.random.default_rng(seed)
    planes = random_planes(rng, [1, 1, 1], 6)
    Phi, y, weight = random_rows(rng, 300, 6, 3)
    up, down = np.zeros((3, 3), dtype=bool), np.zeros((3, 3), dtype=bool)
    up[0, 0], down[0, 2], up[1, 1], down[2, 2] = True, True, True, True
    order = Order(np.array([0, 2, 3]), up, down)
    penalty = np.full(3, 1e-3)
    descent = kernel.Descent(planes, 1.0, 0.0, penalty, max_iter=2000, tol=1e-8, value_tol=1e-15)
    rows, same = kernel.training_rows(Phi, y, weight), kernel.NumpyRows(Phi, y, weight)

    def value(at):
        return penalised(same.terms(at, 1.0, 0.0), at, penalty, 0.0)[0]

    ours = ordered_minimize(rows, descent, order)
    theirs = ordered_minimize(same, descent, order)
    assert ours.converged
    assert value(ours.planes) == pytest.approx(value(theirs.planes), abs=1e-7)
    weights = ours.planes.weights[:, order.features]
    assert (weights[0, 0] >= weights[1:, 0]).all()
    assert (weights[2, 0] <= weights[:2, 0]).all()
    assert (weights[1, 1] >= weights[[0, 2], 1]).all()


def test_calm_curves_keep_the_order(monkeypatch):
    """Changes of direction are removed plane by plane, which would break an order of planes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (600, 3))
    y = (rng.random(600) < 0.2 + 0.6 * X[:, 0] * X[:, 1]).astype(int)
    monkeypatch.setattr("geomix.search.finish.CALM", Calm((0.5,), {"readable": 10.0}))
    settings = {"lift": "spline", "n_planes": 3, "l2": 1e-4, "random_state": 0}
    clf = classifier(monotonic_cst={0: 1}, **settings).fit(X, y)
    assert any("Changes of direction" in note for note in clf.history_.notes)
    assert clf.model_.check_monotone({0: {1: 1}})


def test_names_missing_cells_and_categories_go_together():
    rng = np.random.default_rng(0)
    n = 400
    dose, age = rng.uniform(0, 10, n), rng.normal(50, 10, n)
    risk = 1 / (1 + np.exp(-(0.5 * dose - 3 + np.sin(dose * 2))))
    y = np.where(rng.random(n) < risk, "toxic", "fine")
    X = pd.DataFrame({"dose": dose, "age": age, "sex": rng.choice(["f", "m"], n)})
    X.loc[rng.random(n) < 0.1, "dose"] = np.nan
    for lift in ("linear", "spline"):
        clf = classifier(
            lift=lift, n_planes=2, n_members=1, monotonic_cst={"dose": {"toxic": 1}}, **QUICK
        ).fit(X, y)
        check = clf.model_.check_monotone({"dose": {"toxic": 1}})
        assert check
        table = pd.DataFrame({"dose": np.linspace(-5, 20, 200), "age": 50.0, "sex": "f"})
        p = clf.predict_proba(table)[:, 1]
        assert np.diff(p).min() >= -1e-12
    short = classifier(lift="linear", n_planes=1, monotonic_cst={"dose": 1}, **QUICK)
    assert short.fit(X, y).model_.check_monotone({"dose": {"toxic": 1}})


def test_sparse_rows_keep_the_order_too():
    X, y = load_wine(return_X_y=True)
    X = np.where(np.median(X, axis=0) < X, X, 0.0)
    clf = classifier(2, lift="linear", monotonic_cst={12: {0: -1}}, **QUICK)
    assert clf.fit(csr_matrix(X), y).model_.check_monotone({12: {0: -1}})


def test_the_choice_of_a_lift_leaves_fourier_out():
    X, y = load_iris(return_X_y=True)
    some = {"n_planes": 1, "lift": ("linear", "fourier"), "random_state": 0}
    clf = classifier(monotonic_cst={"x2": {2: 1}}, **some).fit(X, y)
    assert "fourier" not in {trial.lift for trial in clf.history_.trials}
    assert clf.model_.check_monotone({"x2": {2: 1}})
    wide = np.hstack([X] * 14)
    clf = classifier(lift="linear", n_planes=1, monotonic_cst={"x2": {2: 1}}, **QUICK).fit(wide, y)
    assert clf.model_.standardize.rotation is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"monotonic_cst": "dose"}, "monotonic_cst"),
        ({"monotonic_cst": {}}, "monotonic_cst"),
        ({"monotonic_cst": {"nope": {0: 1}}}, "nope"),
        ({"monotonic_cst": {"x0": {7: 1}}}, "7"),
        ({"monotonic_cst": {"x0": {0: 2}}}, "1, -1 or 0"),
        ({"monotonic_cst": {"x0": 1}}, "3 classes"),
        ({"monotonic_cst": {"x0": "up"}}, r"monotonic_cst\['x0'\]='up'; expected 1, -1 or 0, or a"),
        ({"monotonic_cst": {"x0": {0: 1}, 0: {0: 1}}}, "twice"),
        ({"monotonic_cst": {"x0": {0: 1}}, "lift": "fourier"}, "lift"),
        ({"monotonic_cst": {"x0": {0: 1}}, "solver": "adam"}, "solver"),
        ({"monotonic_cst": {"x0": {0: 1}}, "pca": 2}, "pca"),
        ({"monotonic_cst": {"x0": {0: 1}}, "max_weight_norm": 1.0}, "max_weight_norm"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidParameterError, match=message):
        classifier(**settings).fit(X, y)


def test_a_list_with_a_sign_for_each_column_is_about_the_second_class():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    for signs in ([1, 0, 0, -1], np.array([1, 0, 0, -1])):
        listed = classifier(2, lift="linear", monotonic_cst=signs, **QUICK).fit(X, y)
        named = classifier(2, lift="linear", monotonic_cst={"x0": 1, "x3": {1: -1}}, **QUICK)
        answers = named.fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(listed.predict_proba(X), answers)
        assert listed.model_.check_monotone(signs)


def test_zero_leaves_a_column_free():
    X, y = load_wine(return_X_y=True)
    free = classifier(2, lift="linear", **QUICK).fit(X, y).predict_proba(X)
    for nothing in ([0] * 13, {"x0": 0}, {"x0": {1: 0}}):
        clf = classifier(2, lift="linear", monotonic_cst=nothing, **QUICK).fit(X, y)
        np.testing.assert_array_equal(clf.predict_proba(X), free)


@pytest.mark.parametrize(
    ("signs", "message"), [([1, 0], "2 entries; expected 4"), ([1, 0, 0, 0], "3 classes")]
)
def test_signs_that_do_not_fit_the_table_are_refused(signs, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidParameterError, match=message):
        GeometricMixtureClassifier(monotonic_cst=signs).fit(X, y)


@SLOW_WITH_NUMPY
def test_pairs_are_taken_beside_monotone_columns_but_not_of_them():
    """Two columns interact, and a third one rises: the fit has the pair and the rise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    score = 3.0 * X[:, 0] * X[:, 1] + X[:, 2] * (1.0 + 0.5 * X[:, 0])
    y = (score + 0.3 * rng.standard_normal(500) > 0.0).astype(int)
    wanted = {"x2": {1: 1}}
    settings = {"lift": "spline", "n_planes": 1, "random_state": 0}
    clf = GeometricMixtureClassifier(monotonic_cst=wanted, **settings).fit(X, y)
    pairs = [part.columns for part in clf.model_.lift.parts if isinstance(part, PairPart)]
    assert (0, 1) in pairs
    assert all(2 not in pair for pair in pairs)
    assert clf.model_.check_monotone(wanted)
    assert along(clf.model_, X, 2, 1, 1) <= 1e-9


def test_a_category_has_no_direction():
    X = pd.DataFrame({"a": ["u", "v"] * 40, "b": np.arange(80.0) % 37})
    with pytest.raises(InvalidParameterError, match="category"):
        GeometricMixtureClassifier(monotonic_cst={"a": {1: 1}}).fit(X, np.arange(80) % 2)


def test_the_check_separates_proved_from_violated():
    model, X, _ = fitted("several")
    wanted = {name: {0: 1} for name in model.columns}
    with_rows, alone = model.check_monotone(wanted, X), model.check_monotone(wanted)
    assert {fact.status for fact in alone.facts} <= {"proved", "not proved"}
    j = 0
    for fact in with_rows.facts:
        if fact.status == "violated":
            row = np.repeat(X[fact.row][None], 2, axis=0)
            j = model.columns.index(fact.column)
            row[1, j] += 1e-6 * X[:, j].std()
            p = model.predict_proba(row)[:, 0]
            assert p[1] < p[0]
    assert "violated" in {fact.status for fact in with_rows.facts}
    json.dumps(with_rows.to_dict())
    assert len(with_rows.to_frame()) == len(model.columns)
    assert "<table>" in with_rows._repr_html_()
    assert "x0" in str(with_rows)
    fourier, X, _ = fitted("fourier")
    with pytest.raises(NoShapes):
        fourier.check_monotone({"x0": {0: 1}})


@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_along_which_every_class_may_rise_changes_no_class(sign, rng):
    X = rng.normal(size=(150, 2))
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    directions = {0: dict.fromkeys(range(3), sign)}
    settings = {"lift": "spline", "n_planes": 1, "l2": 1e-3, "max_iter": 50}
    clf = classifier(**settings, monotonic_cst=directions, random_state=0).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.score(X, y) > 0.9
