"""Geometry of models with pairs of columns, held against thousands of random rows."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from making import classifier
from pair_models import PAIRED, paired

from geomix.core.spline_parts import PairPart
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows
from geomix.geometry import elimination
from geomix.geometry.elimination import Table, added, smallest


def some_rows(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def scales(model):
    return np.array([shape.scale for shape in additive(model).shapes])


def is_number(model):
    return np.array([shape.kind == "number" for shape in additive(model).shapes])


def answers(model, encoded):
    return model.classes[model.answer("class_scores", encoded).argmax(axis=1)]


# --- cells and elimination ---


@pytest.mark.parametrize("name", PAIRED)
def test_grids_on_common_cells_add_what_the_pairs_add(name):
    model, X, _ = paired(name)
    form, encoded = additive(model), encoded_rows(model, X)
    cells = {j: one.of(encoded[:, j]) for j, one in form.grids.cells.items()}
    on_grids = sum(
        one.values[cells[one.columns[0]], cells[one.columns[1]]] for one in form.grids.grids
    )
    np.testing.assert_allclose(on_grids, sum(pair(encoded) for pair in form.pairs), atol=1e-12)
    np.testing.assert_allclose(form.scores(encoded), model.plane_scores(X), atol=1e-9)


@pytest.mark.parametrize("most", [40_000, 30])
def test_elimination_finds_the_minimum_or_says_that_it_is_a_bound(most, monkeypatch):
    monkeypatch.setattr(elimination, "MOST_ENTRIES", most)
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.integers(1, 5, 5)
        tables = [Table((j,), rng.standard_normal((3, sizes[j]))) for j in range(5)]
        for j in range(5):
            for k in range(j + 1, 5):
                if rng.random() < 0.6:
                    values = rng.standard_normal((3, sizes[j], sizes[k]))
                    tables.append(Table((j, k), values))
        every = added(tables).values.reshape(3, -1)
        found = smallest(tables)
        at = np.ravel_multi_index([found.cells[j] for j in range(5)], sizes)
        reached = every[np.arange(3), at]
        assert (found.value <= every.min(axis=1) + 1e-9).all()
        assert (reached >= every.min(axis=1) - 1e-9).all()
        if found.is_exact:
            np.testing.assert_allclose(found.value, every.min(axis=1))
            np.testing.assert_allclose(reached, found.value)
    assert found.is_exact or most == 30


# --- certificates and intervals ---


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_no_row_within_the_radius_has_another_prediction(name, norm):
    model, X, _ = paired(name)
    X = some_rows(X, slice(0, None, 40))
    encoded, scale = encoded_rows(model, X), scales(model)
    found = model.certify(X, norm)
    assert (found.radius > 0.0).all()
    rng = np.random.default_rng(0)
    for row, radius, label in zip(encoded, found.radius, found.labels, strict=True):
        free = is_number(model) & ~np.isnan(row)
        V = rng.standard_normal((3000, len(row))) * free
        V[rng.random(V.shape) < 0.5] = 0.0
        V /= np.maximum(np.linalg.norm(V, norm, axis=1, keepdims=True), 1e-12)
        reach = min(radius, 20.0) * (1 - 1e-12) * rng.uniform(0.5, 1.0, (3000, 1))
        near = np.where(free, row + V * reach * scale, row)
        assert (answers(model, near) == label).all()


def test_with_two_moving_columns_the_radius_is_close_to_what_a_grid_finds():
    model, X, _ = paired("numbers")
    scale, side = scales(model), np.linspace(-3.0, 3.0, 301)
    fixed = {model.columns[j]: 1e-9 for j in (2, 3)}  # a change of these costs a lot
    unit = np.where(np.arange(4) < 2, scale, 1e-9)
    grid = np.zeros((301 * 301, 4))
    grid[:, :2] = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    ratios = []
    for row in X[:12]:
        found = model.certify(row[None, :], np.inf, scale=fixed)
        changed = answers(model, row + grid * unit) != found.labels[0]
        distance = np.abs(grid[changed]).max(axis=1).min(initial=np.inf)
        assert found.radius[0] <= distance
        ratios.append(found.radius[0] / distance if np.isfinite(distance) else 1.0)
    assert np.median(ratios) > 0.9


@pytest.mark.parametrize("name", PAIRED)
def test_probabilities_within_the_errors_stay_in_their_intervals(name):
    model, X, _ = paired(name)
    numbers = np.flatnonzero(is_number(model))
    errors = {model.columns[j]: 0.3 * scales(model)[j] for j in numbers}
    X = some_rows(X, slice(0, None, 40))
    found = model.probability_intervals(X, errors)
    rng = np.random.default_rng(0)
    for i, row in enumerate(encoded_rows(model, X)):
        near = np.repeat(row[None, :], 2000, axis=0)
        part = rng.uniform(-1.0, 1.0, (2000, len(numbers)))
        part[:500] = np.sign(part[:500])
        near[:, numbers] += part * 0.3 * scales(model)[numbers]
        P = model.answer("predict_proba", near)
        assert (found.low[i] <= P.min(axis=0) + 1e-12).all()
        assert (P.max(axis=0) <= found.high[i] + 1e-12).all()


def test_the_interval_of_two_classes_with_one_plane_each_is_reached():
    """Every combination of cells and knots of the box is tried: the ends are among them."""
    model, X, _ = paired("numbers")
    form, row = additive(model), X[0]
    width = np.array([0.2, 0.2, 0.0, 0.0])
    found = model.probability_intervals(row[None, :], {"x0": 0.2, "x1": 0.2})
    values = []
    for j, shape in enumerate(form.shapes):
        cuts = form.grids.cells[j].cuts if j in form.grids.cells else np.empty(0)
        points = np.concatenate([shape.knots, cuts, np.nextafter(cuts, -np.inf)])
        low, high = row[j] - width[j], row[j] + width[j]
        values.append(np.append(points[(points > low) & (points < high)], [low, high]))
    P = model.predict_proba(np.array(list(product(*values))))
    np.testing.assert_allclose(found.low[0], P.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.high[0], P.max(axis=0), rtol=1e-6)


# --- one column ---


@pytest.mark.parametrize("name", PAIRED)
def test_thresholds_are_where_the_prediction_changes(name):
    model, X, _ = paired(name)
    encoded = encoded_rows(model, X)
    rng = np.random.default_rng(0)
    n_flips = 0
    for i in range(0, len(encoded), 80):
        for j in np.flatnonzero(is_number(model)):
            row = X.iloc[i].to_dict() if hasattr(X, "iloc") else X[i]
            found = model.thresholds(row, model.columns[j])
            n_flips += len(found.flips)
            rows = np.repeat(encoded[i][None, :], 2000, axis=0)
            spread = np.nanmax(encoded[:, j]) - np.nanmin(encoded[:, j])
            rows[:, j] = np.nanmin(encoded[:, j]) + spread * rng.uniform(-0.2, 1.2, 2000)
            labels = np.array([one.label for one in found.stretches])
            expected = labels[np.searchsorted(found.flips, rows[:, j], "right")]
            np.testing.assert_array_equal(answers(model, rows), expected)
    assert n_flips > 10


def test_a_threshold_of_a_pair_is_a_flip_that_includes_its_right_end():
    model, X, _ = paired("numbers")
    cuts = additive(model).grids.cells[0].cuts
    found = [model.thresholds(row, "x0") for row in X[:60]]
    pairs = [(row, flip) for row, one in zip(X, found, strict=False) for flip in one.flips]
    steps = [(row, flip) for row, flip in pairs if flip in cuts]
    assert steps
    for row, flip in steps:
        rows = np.repeat(row[None, :], 2, axis=0)
        rows[:, 0] = np.nextafter(flip, -np.inf), flip
        before, after = model.predict(rows)
        assert before != after


def test_a_pair_that_falls_somewhere_is_no_proof_of_a_rise():
    model, X, _ = paired("numbers")
    wanted = {name: {1: 1} for name in model.columns}
    check = model.check_monotone(wanted, X)
    by_name = {fact.column: fact for fact in check.facts}
    # x0 raises the score where x1 is positive and lowers it where x1 is negative.
    assert by_name["x0"].status == "violated"
    assert by_name["x0"].row is not None


@pytest.mark.parametrize("name", PAIRED)
def test_a_proved_direction_is_never_broken(name):
    """Directions are proved after the pairs were turned into rising steps."""
    model, X, _ = paired(name)
    lift, column = model.lift, model.columns.index("x1" if name != "mixed" else "age")
    weights = model.planes.weights.copy()
    for part, steps in lift.by_part():
        if column in part.columns:
            own = np.where(model.planes.class_of == 0, 1.0, -1.0)[:, None]
            weights[:, steps] = own * np.abs(weights[:, steps])
            if isinstance(part, PairPart) and (part.first is None or part.second is None):
                weights[:, steps] *= 0.0  # steps of levels are values, which cannot all rise
    model = replace(model, planes=replace(model.planes, weights=weights))
    target = model.classes.tolist()[0]
    assert model.check_monotone({model.columns[column]: {target: 1}})
    rng = np.random.default_rng(0)
    encoded = encoded_rows(model, X)
    encoded = encoded[~np.isnan(encoded[:, column])]
    rows = encoded[rng.integers(0, len(encoded), 4000)]
    higher = rows.copy()
    higher[:, column] += rng.exponential(scales(model)[column], 4000)
    rise = model.answer("predict_proba", higher) - model.answer("predict_proba", rows)
    assert (rise[:, 0] >= -1e-12).all()


# --- regions ---


@pytest.mark.parametrize("name", PAIRED)
def test_every_row_inside_a_box_has_the_prediction_of_its_class(name):
    model, X, y = paired(name)
    found = model.regions(X, y)
    assert len(found) >= 2
    boxes = [one for one in found if one.kind == "box"]
    assert boxes
    assert max(one.coverage for one in boxes) > 0.02
    rng = np.random.default_rng(0)
    encoded = encoded_rows(model, X)
    # Cells of different rows side by side: many more combinations than rows.
    rows = np.stack([rng.permutation(np.tile(column, 100)) for column in encoded.T], axis=1)
    for one in boxes:
        inside = np.ones(len(rows), dtype=bool)
        for condition in one.conditions:
            inside &= holds(model, condition, rows)
        assert (answers(model, rows[inside]) == one.label).all()


def holds(model, condition, rows):
    """Whether the text of a condition on a number holds; levels are read from their names."""
    name = next(name for name in model.columns if name in condition.split())
    j = model.columns.index(name)
    x = rows[:, j]
    if is_number(model)[j]:
        if "missing" in condition:
            return np.isnan(x) if condition == f"{name} is missing" else ~np.isnan(x)
        low, high = -np.inf, np.inf
        before, after = condition.split(name)
        if before:
            low = float(before.replace("<=", ""))
        if "<=" in after:
            high = float(after.replace("<=", ""))
        if ">=" in after:
            low = float(after.replace(">=", ""))
        return (x >= low) & (x <= high)
    levels = model.schema.columns[j].level_names
    said = condition.split(" is ", 1)[1]
    if said.startswith("known"):
        excluded = said.split("and not ")[1].split(" or ") if "and not" in said else []
        allowed = [code for code, level in enumerate(levels) if level not in excluded]
        return np.isin(x, allowed)
    names = said.split(" or ")
    allowed = [code for code, level in enumerate(levels) if level in names]
    return np.isin(x, allowed) | (np.isnan(x) & ("missing" in names))


# --- counterfactuals ---


def raw_row(X, i):
    return X.iloc[i].to_dict() if hasattr(X, "iloc") else X[i]


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_counterfactual_is_valid_and_no_random_row_is_nearer_than_its_bound(name, norm):
    model, X, _ = paired(name)
    encoded, scale = encoded_rows(model, X), scales(model)
    rng = np.random.default_rng(0)
    names = [name for name, number in zip(model.columns, is_number(model), strict=True) if number]
    for i in range(0, len(encoded), 80):
        found = model.counterfactual(raw_row(X, i), norm=norm, steps=dict.fromkeys(names))
        assert found.status == "found"
        assert model.predict(found.after)[0] == found.target
        assert 0.0 <= found.lower_bound <= found.distance + 1e-9
        row = encoded[i]
        free = is_number(model) & ~np.isnan(row)
        V = rng.standard_normal((3000, len(row))) * free
        V[rng.random(V.shape) < 0.5] = 0.0
        V /= np.maximum(np.linalg.norm(V, 1 if norm == "l1" else 2, axis=1, keepdims=True), 1e-12)
        near = np.where(free, row + V * found.lower_bound * (1 - 1e-9) * scale, row)
        assert (answers(model, near) == found.label).all()


@pytest.mark.parametrize("name", ["numbers", "two planes"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_on_a_small_grid_it_is_as_near_as_brute_force(name, norm):
    """Two columns move in steps of 0.1 within limits: every combination is tried."""
    model, X, _ = paired(name)
    scale = scales(model)
    n_found = 0
    for i in range(0, 400, 20):
        row = X[i]
        ranges = {f"x{j}": (row[j] - 1.5, row[j] + 1.5) for j in (0, 1)}
        found = model.counterfactual(
            row,
            immutable=["x2", "x3"],
            ranges=ranges,
            steps={"x0": 0.1, "x1": 0.1},
            sparse=None,
            norm=norm,
        )
        side = np.round(np.arange(-15, 16) * 0.1, 10)
        rows = np.repeat(row[None, :], 31 * 31, axis=0)
        rows[:, :2] += np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        rows = np.round(rows, 2)  # as the cells are written; a pair's threshold may be among them
        changed = answers(model, rows) != found.label
        change = np.abs(rows - row) / scale
        distance = np.linalg.norm(change, 1 if norm == "l1" else 2, axis=1)
        best = distance[changed].min(initial=np.inf)
        if np.isinf(best):
            assert found.status in ("infeasible", "not found")
            continue
        n_found += 1
        assert found.status == "found"
        assert found.distance == pytest.approx(best, rel=1e-6)
        assert found.is_nearest
    assert n_found > 5


def test_levels_in_pairs_are_as_near_as_brute_force():
    """Only the categories change: all combinations of levels are tried, for every target."""
    model, X, _ = paired("mixed")
    encoded = encoded_rows(model, X)
    n_levels = [len(model.schema.columns[j].levels) for j in (2, 3)]
    n_found = 0
    for i in range(0, 400, 20):
        for code, target in enumerate(model.classes.tolist()):
            found = model.counterfactual(
                raw_row(X, i), target, immutable=["age", "income"], sparse=None
            )
            rows, row = [], encoded[i]
            for levels in product(*map(range, n_levels)):
                moved = row.copy()
                moved[2:4] = np.where(np.isnan(row[2:4]), np.nan, levels)
                rows.append(moved)
            rows = np.array(rows)
            valid = model.answer("class_scores", rows).argmax(axis=1) == code
            changes = (np.nan_to_num(rows) != np.nan_to_num(row)).sum(axis=1)
            if not valid.any():
                assert found.status == "infeasible"
                continue
            n_found += 1
            assert found.distance == pytest.approx(np.sqrt(changes[valid].min()))
            assert found.is_nearest
    assert n_found > 10


def test_a_wanted_probability_and_several_answers_hold_with_pairs():
    model, X, _ = paired("numbers")
    for i in (3, 100, 200):
        found = model.counterfactual(X[i], probability=0.8)
        assert found.status == "found"
        assert found.probability >= 0.8
        several = model.counterfactuals(X[i])
        assert len({frozenset(one.changes) for one in several}) == len(several) >= 2
        for one in several:
            assert model.predict(one.after)[0] == one.target


def test_with_many_columns_in_pairs_few_change_and_the_nearest_row_is_close_to_its_bound():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 16))
    score = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] * X[:, 5] + 0.4 * X.sum(axis=1)
    settings = {"lift": "spline", "l2": 1e-3, "max_iter": 60, "random_state": 0}
    model = classifier(n_planes=1, max_interactions=4, **settings).fit(X, score > 0.0).model_
    assert additive(model).pairs
    gaps, counts = [], []
    for i in range(0, 500, 40):
        nearest, few = model.counterfactual(X[i], sparse=None), model.counterfactual(X[i])
        assert few.status == nearest.status == "found"
        assert model.predict([list(few.after.values())])[0] == few.target != few.label
        assert few.distance <= 4.0 * nearest.distance * (1.0 + 1e-9)
        gaps.append(nearest.distance / nearest.lower_bound)
        counts.append(len(few.changes))
    assert np.median(gaps) < 1.1
    assert np.median(counts) <= 4
