"""Nearest rows of another class: valid by the model itself, never nearer than proved, and as near
as brute force or a general solver finds."""

import json

import numpy as np
import pandas as pd
import pytest
from making import classifier
from pair_models import PAIRED, paired
from reading_models import ADDITIVE, fitted
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_breast_cancer

from geomix import GeometricMixture, GeometricMixtureClassifier
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.core.planes import Planes
from geomix.errors import NoShapes
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows
from geomix.geometry.branch_and_bound import _smallest
from geomix.geometry.constraints import read_constraints, unit_sizes
from geomix.geometry.few_columns import ranking
from geomix.geometry.projection import nearest_point
from geomix.geometry.search import Aim
from geomix.geometry.segments import _column, _free_column, _free_points, moves_of


def raw_row(X, i):
    return X.iloc[i].to_dict() if hasattr(X, "iloc") else X[i]


def as_table(X, row):
    if hasattr(X, "iloc"):
        return [list(row.values())]
    return np.array([list(row.values())], dtype=float)


# --- the nearest point of a polyhedron ---


@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_the_nearest_point_is_what_a_general_solver_finds(norm):
    rng = np.random.default_rng(0)
    for _ in range(25):
        n, m = rng.integers(1, 6), rng.integers(1, 8)
        G, h = rng.standard_normal((m, n)), rng.standard_normal(m)
        low = np.where(rng.random(n) < 0.3, -rng.random(n), -np.inf)
        high = np.where(rng.random(n) < 0.3, rng.random(n), np.inf)
        found = nearest_point(G, h, norm, low, high)
        exists = linprog(np.zeros(n), -G, -h, bounds=np.column_stack([low, high])).status == 0
        assert (found.point is not None) == exists
        if not exists:
            assert found.lower_bound == np.inf
            continue
        assert (G @ found.point >= h - 1e-7).all()
        assert (found.point >= low - 1e-7).all()
        assert (found.point <= high + 1e-7).all()
        distance = np.linalg.norm(found.point, norm)
        assert found.lower_bound <= distance + 1e-9
        assert distance <= found.lower_bound * (1 + 1e-6) + 1e-7  # strong duality: it is nearest
        if norm == 2.0 and distance > 0:
            start = found.point + 0.1
            rows = [{"type": "ineq", "fun": lambda d, G=G, h=h: G @ d - h}]
            bounds = list(zip(low, high, strict=True))
            theirs = minimize(lambda d: d @ d, start, constraints=rows, bounds=bounds, tol=1e-12)
            if theirs.success:
                assert distance**2 <= theirs.fun + 1e-6


def test_no_point_is_told_apart_from_a_far_one():
    G = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert nearest_point(G, np.array([1.0, -0.5])).point is None
    far = nearest_point(np.array([[1e-6, 0.0]]), np.array([1.0]))
    np.testing.assert_allclose(far.point, [1e6, 0.0])


# --- counterfactuals ---


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_model_itself_agrees_and_the_bound_is_below(name, norm):
    model, X, _ = fitted(name)
    encoded = encoded_rows(model, X)
    form = additive(model)
    scale = np.array([shape.scale for shape in form.shapes])
    for i in range(0, len(encoded), 60 if norm == "l1" else 30):
        for target in model.classes.tolist():
            found = model.counterfactual(raw_row(X, i), target, norm=norm)
            assert found.status == "found"
            assert model.predict(as_table(X, found.after))[0] == target
            assert 0.0 <= found.lower_bound <= found.distance + 1e-9
            after = encoded_rows(model, as_table(X, found.after))[0]
            is_level = np.array([shape.kind == "category" for shape in form.shapes])
            gone = np.isnan(encoded[i])
            np.testing.assert_array_equal(np.isnan(after), gone)
            t = np.where(is_level, after != encoded[i], (after - encoded[i]) / scale)
            t = np.where(gone, 0.0, t)
            measured = np.linalg.norm(t, 1 if norm == "l1" else 2)
            assert found.distance == pytest.approx(measured, abs=1e-12)


@pytest.mark.parametrize("name", ["linear", "several", "spline", "committee", "mixed spline"])
def test_no_random_row_of_the_target_is_nearer_than_the_bound(name):
    model, X, _ = fitted(name)
    encoded = encoded_rows(model, X)
    form = additive(model)
    scale = np.array([shape.scale for shape in form.shapes])
    rng = np.random.default_rng(0)
    is_level = np.array([shape.kind == "category" for shape in form.shapes])
    for i in range(0, len(encoded), 45):
        found = model.counterfactual(raw_row(X, i))
        row = encoded[i]
        directions = rng.standard_normal((4000, len(row)))
        directions[rng.random(directions.shape) < 0.5] = 0.0
        directions[:, is_level] = 0.0
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.maximum(length, 1e-12)
        reach = found.lower_bound * rng.uniform(0.5, 1.0, (4000, 1)) * (1 - 1e-9)
        near = row + directions * reach * scale
        labels = model.answer("class_scores", near).argmax(axis=1)
        assert (model.classes[labels] == found.label).all()


def test_between_two_planes_it_is_the_foot_of_the_perpendicular():
    """One plane per class: the distance of a point from a hyperplane, in closed form."""
    model, X, _ = fitted("linear")
    weights, biases = model.folded.weights * X.std(axis=0), model.folded.biases
    for i in range(0, 150, 17):
        found = model.counterfactual(X[i], sparse=None)
        z = model.folded.weights @ X[i] + biases
        now = int(z.argmax())
        k = model.classes.tolist().index(found.target)
        # Nearest of the two boundaries; the third class may stand in the way, so it bounds.
        gaps = [
            (z[now] - z[j]) / np.linalg.norm(weights[now] - weights[j])
            for j in range(3)
            if j != now
        ]
        assert found.distance == pytest.approx(min(gaps), rel=1e-6)
        assert found.is_nearest
        assert k != now


def test_it_is_as_near_as_a_grid_of_two_columns():
    """Two columns, several planes: a fine grid of rows around finds none that is nearer."""
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    rng = np.random.default_rng(3)
    for _ in range(4):
        planes = Planes(
            rng.standard_normal((5, 2)) * 2, rng.standard_normal(5), np.array([0, 3, 5])
        )
        model = GeometricMixture(
            np.array(["a", "b"]), ("u", "v"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0
        )
        row = rng.standard_normal(2)
        found = model.counterfactual(row)
        side = np.linspace(-8.0, 8.0, 801)
        grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        others = grid[model.predict(row + grid) != found.label]
        if found.status == "infeasible":
            assert not len(others)
            continue
        nearest = np.linalg.norm(others, axis=1).min()
        assert found.distance <= nearest + 1e-9
        assert found.lower_bound <= nearest


def test_constraints_are_kept():
    model, X, _ = fitted("mixed spline")
    table = X.reset_index(drop=True)
    held = {"immutable": ["colour", "magnesium"], "increase_only": ["alcohol"]}
    for i in range(0, len(table), 30):
        row = raw_row(table, i)
        for target in model.classes.tolist():
            ranges = {"malic_acid": (0.5, 3.0), "stop": ["cork"]}
            found = model.counterfactual(row, target, ranges=ranges, **held)
            if found.status != "found":
                continue
            after = found.after
            assert after["colour"] == row["colour"]
            assert after["magnesium"] == row["magnesium"]
            assert after["alcohol"] >= row["alcohol"]
            assert 0.5 <= after["malic_acid"] <= 3.0
            assert after["stop"] in ("cork", None)
            free = model.counterfactual(row, target)
            assert free.lower_bound <= found.distance + 1e-9


def test_what_cannot_be_is_called_infeasible_and_only_that():
    model, X, _ = fitted("several")
    nothing = model.counterfactual(X[0], 2, immutable=list(model.columns))
    assert nothing.status == "infeasible"
    assert nothing.after is None
    assert nothing.lower_bound == np.inf
    spline, X, _ = fitted("spline")
    one = spline.counterfactual(X[0], 2, immutable=list(spline.columns)[1:])
    # One column alone: its curve is bounded, so a scan over it decides.
    scan = np.repeat(X[:1], 4000, axis=0)
    scan[:, 0] = np.linspace(X[:, 0].min() - 1.0, X[:, 0].max() + 1.0, 4000)
    assert (one.status == "infeasible") == (2 not in spline.predict(scan))


def test_few_columns_change_where_few_may():
    model, X, _ = fitted("several")
    for i in (0, 70, 150):
        free = model.counterfactual(X[i])
        for sparse in (1, 2):
            found = model.counterfactual(X[i], free.target, sparse=sparse)
            if found.status == "found":
                assert 1 <= len(found.changes) <= sparse
                assert found.distance >= free.lower_bound - 1e-9


def test_one_column_alone_ends_where_its_threshold_says():
    model, X, _ = fitted("linear")
    found = model.counterfactual(X[0], 1, sparse=1)
    ((column, (before, after)),) = found.changes.items()
    flips = np.array(model.thresholds(X[0], column).flips)
    assert np.abs(flips - after).min() < 1e-6 * abs(after - before)


def test_a_row_of_the_target_already_stays():
    model, X, _ = fitted("several")
    found = model.counterfactual(X[0], model.predict(X[:1])[0])
    assert (found.status, found.distance, found.changes) == ("found", 0.0, {})


def test_a_unit_of_ones_own_counts():
    model, X, _ = fitted("linear")
    plain = model.counterfactual(X[0], 1)
    dear = model.counterfactual(X[0], 1, scale={"x2": 1e-3})
    moved = [abs(found.after["x2"] - X[0, 2]) for found in (plain, dear)]
    assert moved[1] < 1e-3 * moved[0]


def test_rows_come_as_dicts_series_frames_and_lists():
    model, X, _ = fitted("mixed linear")
    told = [
        model.counterfactual(row, "barbera").distance
        for row in (X.iloc[0].to_dict(), X.iloc[0], X.iloc[:1], X.iloc[0].tolist())
    ]
    assert len(set(told)) == 1


def test_what_makes_no_sense_is_refused_by_name():
    model, X, _ = fitted("mixed linear")
    row = X.iloc[0]
    for options, message in [
        ({"norm": "l7"}, "norm"),
        ({"sparse": 0}, "sparse"),
        ({"immutable": ["nope"]}, "nope"),
        ({"increase_only": ["colour"]}, "category"),
        ({"ranges": {"alcohol": 3}}, "two numbers"),
        ({"ranges": {"alcohol": (9.0, 8.0)}}, "no value"),
        ({"scale": {"alcohol": 0}}, "positive"),
        ({"ranges": {"colour": ["blue"]}}, "no known level"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.counterfactual(row, "barbera", **options)
    with pytest.raises(ValueError, match="port"):
        model.counterfactual(row, "port")
    fourier, X, _ = fitted("fourier")
    with pytest.raises(NoShapes):
        fourier.counterfactual(X[0])


def test_it_is_told_as_frame_json_html_and_text():
    model, X, _ = fitted("mixed linear")
    found = model.counterfactual(X.iloc[0], "barbera")
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == len(found.changes)
    assert "red <b>" not in found._repr_html_()
    assert "barbera" in str(found)
    none = model.counterfactual(X.iloc[0], "barbera", immutable=list(model.columns))
    json.dumps(none.to_dict(), allow_nan=False)
    assert "cannot" in str(none)


# --- steps, exact search, costs, probabilities, several answers ---


def all_combinations(seed=0):
    """Every combination of four categories, with labels that mix them."""
    levels = [["a", "b", "c"], ["p", "q"], ["u", "v", "w", "x"], ["k", "l", "m"]]
    X = pd.MultiIndex.from_product(levels, names=list("ABCD")).to_frame(index=False)
    X = pd.concat([X] * 3, ignore_index=True)
    score = (X["A"] == "a") * 1.5 + (X["C"] == "u") * 2.0 - (X["D"] == "m") + (X["B"] == "p")
    noise = np.random.default_rng(seed).normal(scale=0.3, size=len(X))
    return X, np.array(["low", "mid", "high"])[np.digitize(score + noise, [0.8, 2.2])]


def integer_table():
    """Ages, hours and a continuous column; only whole years and hours occur."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 400).astype(float),
            "hours": rng.integers(0, 60, 400).astype(float),
            "job": rng.choice(["x", "y", "z"], 400),
        }
    )
    score = 0.06 * (X["age"] - 45) + 0.05 * (X["hours"] - 30) + (X["job"] == "x")
    return X, np.where(score + rng.normal(scale=0.4, size=400) > 0.3, "yes", "no")


def fit(X, y, **settings):
    common = {"l2": 1e-3, "n_planes": 1, "random_state": 0}
    return GeometricMixtureClassifier(**(common | settings)).fit(X, y).model_


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
@pytest.mark.parametrize("n_planes", [1, 3])
def test_among_categories_the_answer_is_the_nearest_of_all_combinations(lift, n_planes):
    X, y = all_combinations()
    model = fit(X, y, lift=lift, n_planes=n_planes)
    every = X.drop_duplicates()
    predicted = model.predict(every)
    for i in range(0, len(every), 7):
        for target in set(model.classes) - {predicted[i]}:
            found = model.counterfactual(every.iloc[i], target)
            cells = every[predicted == target].to_numpy()
            if not len(cells):
                assert found.status == "infeasible"
                continue
            least = (cells != every.iloc[i].to_numpy()).sum(axis=1).min()
            assert found.status == "found"
            assert len(found.changes) == least
            assert found.is_nearest
            assert model.predict(found.after)[0] == target


def test_integers_stay_integers_and_the_answer_is_the_nearest_of_them():
    X, y = integer_table()
    model = fit(X, y, lift="spline")
    ages, hours = np.arange(18, 80.0), np.arange(0, 60.0)
    grid = pd.MultiIndex.from_product([ages, hours, ["x", "y", "z"]], names=X.columns)
    grid = grid.to_frame(index=False)
    predicted = model.predict(grid)
    unit = {shape.name: shape.scale for shape in additive(model).shapes}
    for i in range(0, 60, 5):
        row = X.iloc[i]
        found = model.counterfactual(row, sparse=None)
        assert found.status == "found"
        for name in ("age", "hours"):
            assert isinstance(found.after[name], int)
        other = grid[predicted == found.target]
        squares = (other["job"] != row["job"]) * 1.0
        for name in ("age", "hours"):
            squares += ((other[name] - row[name]) / unit[name]) ** 2
        assert found.distance == pytest.approx(np.sqrt(squares.min()), rel=1e-9)
        assert found.is_nearest


def test_steps_are_learnt_from_rows_and_can_be_overridden():
    X, y = integer_table()
    model = fit(X, y, lift="linear")
    fixed = {"immutable": ["job"], "sparse": 1}
    row = X.iloc[3]
    free = model.counterfactual(row, **fixed)
    assert not all(float(after).is_integer() for _, after in free.changes.values())
    learnt = model.counterfactual(row, X=X, **fixed)
    assert all(isinstance(after, int) for _, after in learnt.changes.values())
    tens = model.counterfactual(row, X=X, steps={"age": 10, "hours": 10}, **fixed)
    assert all((after - before) % 10 == 0 for before, after in tens.changes.values())
    assert free.distance <= learnt.distance <= tens.distance
    again = model.counterfactual(row, X=X, steps={"age": None, "hours": None}, **fixed)
    assert again.distance == pytest.approx(free.distance, rel=1e-6)
    with pytest.raises(ValueError, match="step"):
        model.counterfactual(row, steps={"age": -1})


@pytest.mark.parametrize("name", ["several", "spline", "committee", "mixed spline"])
def test_a_wanted_probability_is_reached(name):
    model, X, _ = fitted(name)
    for i in range(0, 60, 20):
        plain = model.counterfactual(raw_row(X, i), sparse=None)
        sure = model.counterfactual(raw_row(X, i), plain.target, probability=0.9, sparse=None)
        assert sure.status == "found"
        assert sure.probability >= 0.9
        assert sure.distance >= plain.lower_bound
        assert sure.lower_bound <= sure.distance


def test_expensive_columns_change_less():
    X, y = integer_table()
    model = fit(X, y, lift="spline")
    row = X[(X["job"] == "y") & (X["age"] < 45) & (y == "no")].iloc[0]
    cheap = model.counterfactual(row, "yes", costs={"age": 0.1}, sparse=None)
    dear = model.counterfactual(row, "yes", costs={"age": 1e3}, sparse=None)
    assert "age" in cheap.changes
    assert "age" not in dear.changes
    levels = model.counterfactual(row, "yes", costs={"job": 1e-3}, sparse=None)
    assert "job" in levels.changes
    with pytest.raises(ValueError, match="cost"):
        model.counterfactual(row, "yes", costs={"age": 0.0})


def test_several_answers_change_different_columns():
    X, y = integer_table()
    model = fit(X, y, lift="spline")
    found = model.counterfactuals(X.iloc[3], n=3)
    assert len(found) == 3
    changed = [frozenset(one.changes) for one in found]
    assert len(set(changed)) == 3
    assert [one.distance for one in found] == sorted(one.distance for one in found)
    assert all(model.predict(one.after)[0] == one.target for one in found)
    json.dumps(found.to_dict(), allow_nan=False)
    assert set(found.to_frame()["answer"]) == {0, 1, 2}
    assert "becomes" in str(found)


def test_few_columns_change_by_default():
    model, X, _ = fitted("rotated")
    nearest = model.counterfactual(X[0], sparse=None)
    few = model.counterfactual(X[0])
    assert len(nearest.changes) > 3
    assert len(few.changes) <= 3 or few.distance == nearest.distance
    assert few.distance <= 4.0 * nearest.distance


@pytest.fixture(scope="module")
def correlated():
    """A model of curves over 30 correlated columns, of which each alone can do little."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    settings = {"lift": "spline", "l2": 1e-3, "max_iter": 60, "random_state": 0}
    return classifier(n_planes=1, max_interactions=0, **settings).fit(X, y).model_, X


def test_of_thirty_correlated_curves_few_columns_change_by_default(correlated):
    model, X = correlated
    counts, dense = [], []
    for i in range(0, len(X), 40):
        nearest = model.counterfactual(X.iloc[i], sparse=None)
        few = model.counterfactual(X.iloc[i])
        assert few.status == nearest.status == "found"
        assert model.predict(few.after)[0] == few.target != few.label
        assert few.distance <= 4.0 * nearest.distance * (1.0 + 1e-9)
        assert few.lower_bound == pytest.approx(nearest.lower_bound)
        assert f"by {len(few.changes)} of 30 columns" in str(few)
        counts.append(len(few.changes))
        dense.append(len(nearest.changes))
    assert np.median(dense) > 15
    assert max(counts) <= 8


def test_the_nearest_row_of_curves_is_close_to_its_proved_bound(correlated):
    model, X = correlated
    rows = [model.counterfactual(X.iloc[i], sparse=None) for i in range(0, len(X), 40)]
    assert np.median([row.distance / row.lower_bound for row in rows]) < 1.03


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_no_row_of_n_changed_columns_is_nearer_than_the_bound_for_n_columns(correlated, norm):
    model, X = correlated
    form = additive(model)
    for i in range(0, len(X), 80):
        row = encoded_rows(model, X.iloc[[i]])[0]
        target = 1 - int(model.class_scores(row[None, :])[0].argmax())
        free = read_constraints(model, unit_sizes(model, form, None), row)
        ranks = ranking(moves_of(form, row, free, norm), Aim(target, 0.0), norm)
        for n in (2, 4, 8):
            found = model.counterfactual(
                X.iloc[i],
                sparse=n,
                norm=f"l{norm:g}",
                steps=dict.fromkeys(X.columns),
            )
            assert found.status == "not found" or len(found.changes) <= n
            assert found.distance >= ranks.distance[n - 1] * (1.0 - 1e-9)


def test_points_made_once_per_model_are_those_of_a_single_row(correlated):
    model, X = correlated
    models = [(model, encoded_rows(model, X)), *((m, encoded_rows(m, T)) for m, T in tables())]
    for model, encoded in models:
        form = additive(model)
        points = _free_points(form)
        row = encoded[7]
        free = read_constraints(model, unit_sizes(model, form, None), row)
        for shape in form.shapes:
            j = shape.column
            if shape.kind != "number" or np.isnan(row[j]):
                continue
            ours = _free_column(points[j], row[j], free.scale[j])
            theirs = _column(shape, row, free, 2.0, form.grids.cells.get(j))
            for name, values in theirs.items():
                np.testing.assert_allclose(ours[name], values, rtol=1e-12, atol=1e-12)


def tables():
    for name in ("linear", "mixed spline"):
        yield fitted(name)[:2]
    for name in PAIRED:
        yield paired(name)[:2]


def test_integers_of_a_frame_stay_integers_where_the_lift_stores_no_values():
    X, y = integer_table()
    X = X.astype({"age": int, "hours": int}).assign(children=(X["age"] > 40).astype(int))
    model = fit(X, y, lift="linear")
    for i in range(0, 400, 40):
        row = X.iloc[[i]]
        found = model.counterfactual(row)
        after = pd.DataFrame([found.after]).astype(X.dtypes)
        assert model.predict(after)[0] == found.target
    by_name = model.counterfactual({"age": 30, "hours": 20, "job": "y", "children": 0}, "yes")
    assert float(by_name.after["age"]).is_integer()


def test_a_missing_category_costs_nothing_and_the_answer_is_the_nearest():
    X, y = integer_table()
    X.loc[::5, "job"] = None
    model = fit(X, y, lift="spline")
    scale = np.array([shape.scale for shape in additive(model).shapes[:2]])
    age, hours = (one.ravel() for one in np.meshgrid(np.arange(18, 80), np.arange(60)))
    every = pd.DataFrame({"age": age, "hours": hours, "job": None}).astype(X.dtypes)
    predicted = model.predict(every)
    for i in range(0, 100, 5):
        found = model.counterfactual(
            X.iloc[i], sparse=None, ranges={"age": (18, 79), "hours": (0, 59)}
        )
        change = (every[["age", "hours"]] - X.iloc[i][["age", "hours"]]).to_numpy(dtype=float)
        far = np.linalg.norm(change / scale, axis=1)
        assert found.distance == pytest.approx(far[predicted != found.label].min())
        assert found.is_nearest


def test_steps_larger_than_a_unit_are_not_rounded_but_chosen():
    rng = np.random.default_rng(1)
    X, _ = integer_table()
    X = X.astype({"age": int, "hours": int}).drop(columns="job")
    X["children"] = rng.choice(3, 400, p=[0.9, 0.08, 0.02])
    X["cars"] = rng.choice(3, 400, p=[0.85, 0.1, 0.05])
    score = (
        0.08 * (X["age"] - 45) + 0.03 * (X["hours"] - 30) + 0.6 * X["children"] - 0.5 * X["cars"]
    )
    model = fit(X, score > 0.3, lift="linear")
    limits = {"age": (18, 79), "hours": (0, 59), "children": (0, 2), "cars": (0, 2)}
    scale = np.array([shape.scale for shape in additive(model).shapes])
    axes = np.meshgrid(*(np.arange(low, high + 1) for low, high in limits.values()))
    every = pd.DataFrame({name: axis.ravel() for name, axis in zip(limits, axes, strict=True)})
    predicted = model.predict(every)
    for i in range(0, 400, 40):
        found = model.counterfactual(X.iloc[[i]], sparse=None, ranges=limits)
        far = np.linalg.norm((every - X.iloc[i]) / scale, axis=1)
        assert found.distance == pytest.approx(far[predicted != found.label].min())


def test_that_none_exists_is_proved_among_levels_and_integers():
    X, y = integer_table()
    model = fit(X, y, lift="spline")
    row = X[(X["age"] < 25) & (X["hours"] < 20)].iloc[0]
    found = model.counterfactual(
        row, "yes", ranges={"age": (18, 25), "hours": (0, 20), "job": ["y", "z"]}
    )
    assert found.status == "infeasible"
    assert "proved" in str(found)


def test_settings_of_a_search_that_make_no_sense_are_refused():
    model, X, _ = fitted("linear")
    for options in ({"sparse": "few"}, {"probability": 1.0}):
        with pytest.raises(ValueError, match="expected"):
            model.counterfactual(X[0], 1, **options)
    with pytest.raises(ValueError, match="expected"):
        model.counterfactuals(X[0], 1, n=0)


@pytest.mark.parametrize("lift", ["linear", "spline"])
def test_a_cell_whose_square_overflows_is_named(rng, lift):
    X = rng.standard_normal((80, 2))
    clf = classifier(n_planes=2, lift=lift, l2=1e-3).fit(X, X[:, 0] > 0.0)
    with pytest.raises(ValueError, match="Column 'x0' is 1e\\+308"):
        clf.model_.counterfactual([1e308, 0.0])


# --- few changes, missing levels and booleans ---


def changes_to(every, row, rows):
    """(n,) how many cells of some rows differ from one row; missing cells agree."""
    cells, other = every[rows].fillna("").to_numpy(), row.fillna("").to_numpy()
    return (cells != other).sum(axis=1)


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
@pytest.mark.parametrize("n_planes", [1, 3])
@pytest.mark.parametrize("sparse", [1, 2])
def test_the_bound_holds_for_rows_that_change_more_columns_than_wanted(lift, n_planes, sparse):
    X, y = all_combinations()
    model = fit(X, y, lift=lift, n_planes=n_planes)
    every = X.drop_duplicates()
    predicted = model.predict(every)
    statuses = set()
    for i in range(0, len(every), 5):
        row, now = every.iloc[i], predicted[i]
        for target in (None, *sorted(set(model.classes) - {now})):
            found = model.counterfactual(row, target, sparse=sparse)
            is_target = predicted != now if target is None else predicted == target
            least = changes_to(every, row, is_target).min()
            assert (found.status == "found") == (least <= sparse)
            assert found.lower_bound <= np.sqrt(least) * (1.0 + 1e-9)
            assert not found.is_nearest or found.distance == pytest.approx(np.sqrt(least))
            statuses.add(found.status)
    assert statuses == {"found", "infeasible"}


def test_a_level_that_is_far_with_one_change_is_not_called_the_nearest():
    X, y = all_combinations()
    model = fit(X, y, lift="fourier")
    costs = {"C": 5.0}
    for i in range(0, 216, 7):
        free = model.counterfactual(X.iloc[i], sparse=None, costs=costs)
        one = model.counterfactual(X.iloc[i], free.target, sparse=1, costs=costs)
        assert one.lower_bound == pytest.approx(free.distance)
        assert one.is_nearest == (one.distance <= free.distance)


@pytest.fixture(scope="module")
def gaps():
    """A Fourier model of categories with missing cells, of which one decides."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"A": rng.choice([None, "p", "q"], 300), "B": rng.choice(list("xyz"), 300)})
    X["C"] = rng.choice(list("uv"), 300)
    y = np.where(rng.random(300) < 0.9, X["B"] == "x", X["C"] == "u")
    return fit(X, y, lift="fourier"), X


def test_a_missing_cell_is_no_change_of_a_fourier_models_row(gaps):
    model, X = gaps
    row = X[X["A"].isna() & (X["B"] == "x")].iloc[[0]]
    for sparse in (None, 1, 2, "auto"):
        found = model.counterfactual(row, sparse=sparse)
        assert found.status == "found"
        assert set(found.changes) == {"B"}
        assert found.is_nearest


@pytest.mark.parametrize("lift", ["spline", "fourier"])
@pytest.mark.parametrize("sparse", ["auto", None, 1])
def test_a_row_of_which_no_cell_may_change_is_infeasible(gaps, lift, sparse):
    _, X = gaps
    model = fit(X, X["B"] == "x", lift=lift)
    empty = dict.fromkeys(X.columns)
    rest = {"A": None, "B": "x", "C": "u"}
    for row, immutable in [(X.iloc[1], list(X)), (empty, []), (rest, ["B", "C"])]:
        found = model.counterfactual(row, immutable=immutable, sparse=sparse)
        assert (found.status, found.after, found.lower_bound) == ("infeasible", None, np.inf)
        same = model.counterfactual(row, found.label, immutable=immutable, sparse=sparse)
        assert (same.status, same.distance) == ("found", 0.0)


def members(is_continuous):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.integers(0, 5, 600), "member": rng.random(600) < 0.5})
    y = X["n"] + 4 * X["member"] + rng.normal(size=600) > 4
    return (X.astype({"n": float}) if is_continuous else X), y


ROWS = {
    "frame": lambda X, i: X.iloc[[i]],
    "nullable": lambda X, i: X.astype({"member": "boolean"}).iloc[[i]],
    "Series": lambda X, i: X.astype(object).iloc[i],
    "dict": lambda X, i: X.iloc[i].to_dict(),
    "list": lambda X, i: [X["n"][i], bool(X["member"][i])],
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("is_continuous", [False, True])
def test_a_boolean_stays_one_of_two_values(kind, is_continuous):
    X, y = members(is_continuous)
    model = fit(X, y, lift="linear")
    changed = 0
    for i in range(0, 600, 30):
        row = ROWS[kind](X, i)
        for options in ({}, {"immutable": ["n"]}, {"ranges": {"n": (0, 4)}, "sparse": None}):
            found = model.counterfactual(row, **options)
            if found.status == "infeasible":
                continue
            assert found.after["member"] in (0, 1)
            assert model.predict(found.after)[0] == found.target
            changed += "member" in found.changes
    assert changed


def test_a_range_or_a_step_of_ones_own_counts_for_a_boolean_too():
    X, y = members(is_continuous=True)
    model = fit(X, y, lift="linear")
    row = {"n": 1.0, "member": False}
    alone = {"immutable": ["n"]}
    assert model.counterfactual(row, **alone).after["member"] == 1
    held = model.counterfactual(row, ranges={"member": (0, 0)}, **alone)
    assert held.status == "infeasible"
    free = model.counterfactual(row, steps={"member": None}, **alone)
    assert 0 < free.after["member"] < 1


# --- several classes ---


@pytest.mark.parametrize("name", ["linear", "spline"])
def test_classes_that_are_skipped_have_no_nearer_row(name):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 600)
    X = (3.0 * rng.standard_normal((6, 4)))[codes] + rng.standard_normal((600, 4))
    X[:, 2:] = X[:, 2:].round()
    model = classifier(2, lift=name, random_state=0, max_iter=30).fit(X, codes).model_
    for row in X[:6]:
        found = model.counterfactual(row, X=X)
        each = [
            model.counterfactual(row, target=code, X=X) for code in set(range(6)) - {found.label}
        ]
        assert found.distance == min(one.distance for one in each)
        assert found.lower_bound >= min(one.lower_bound for one in each) - 1e-9


@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_smallest_few_are_the_first_of_a_stable_sort(n):
    values = np.random.default_rng(n).integers(0, 9, 40) / 1.0
    np.testing.assert_array_equal(_smallest(values, n), np.argsort(values, kind="stable")[:n])
