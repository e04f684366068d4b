"""Limits together: every answer keeps all of them, and bounds hold against all rows that do."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from making import classifier

from geomix.explain.additive_form import additive

MODELS = {
    "linear": {"lift": "linear"},
    "several planes": {"lift": "linear", "n_planes": 3},
    "curves": {"lift": "spline", "max_interactions": 0},
    "pairs": {"lift": "spline", "max_interactions": 5},
}
LEVELS = {"c": ["p", "q", "r"], "k": ["s", "t", "u", "v"]}
NUMBERS = {"a": 1.0, "h": 0.5, "f": 1.0}


@cache
def table():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.integers(0, 10, 500) / 1.0, "h": rng.integers(-6, 7, 500) * 0.5})
    X["f"] = 10.0 + 3.0 * rng.normal(size=500)
    for name, levels in LEVELS.items():
        X[name] = rng.choice(levels, 500)
    score = (X["a"] - 4.5) / 2 * np.where(X["c"] == "p", 1, -1) + (X["k"] == "t") * 2
    score = score + X["h"].abs() * np.where(X["k"] == "u", 1, -1) + np.sin(X["f"] / 2) * 2
    names = np.array(["low", "middle", "high"])
    return X, names[np.digitize(score + rng.normal(scale=0.3, size=500), [-1.5, 1.0])]


@cache
def fitted(name):
    X, y = table()
    settings = {"n_planes": 1, "l2": 1e-3, "max_iter": 60, "random_state": 0} | MODELS[name]
    model = classifier(**settings).fit(X, y).model_
    assert name != "pairs" or model.lift.n_pairs
    return model


def allowed_values(row, options):
    """By column, the values that the options allow, of numbers up to 30 steps away."""
    every = {}
    for name, cell in row.items():
        if name in LEVELS:
            known = options["ranges"].get(name, {cell, *LEVELS[name]})
            values = sorted(set(known) & ({cell} | set(LEVELS[name])))
        else:
            low, high = options["ranges"].get(name, (-np.inf, np.inf))
            values = cell + np.arange(-30, 31) * options["steps"][name]
            values = values[(values >= low) & (values <= high)]
        is_held = name in options["immutable"]
        every[name] = [one for one in values if one == cell or not is_held]
    return every


def all_rows(model, row, options):
    """(changed rows that the options allow, their distances, numbers of changes, predictions)."""
    every = allowed_values(row, options)
    rows = pd.DataFrame(list(product(*every.values())), columns=list(every))
    scale = dict(zip(model.columns, (one.scale for one in additive(model).shapes), strict=True))
    costs = np.column_stack(
        [
            (rows[name] != cell) if name in LEVELS else (rows[name] - cell).abs() / scale[name]
            for name, cell in row.items()
        ]
    ).astype(float)
    far = np.linalg.norm(costs, 1 if options["norm"] == "l1" else 2, axis=1)
    return rows, far, (costs > 0).sum(axis=1), model.predict(rows)


def random_limits(rng):
    """A row, often outside its ranges, and limits that leave it at most three free columns."""
    X, _ = table()
    row = X.iloc[int(rng.integers(len(X)))].to_dict()
    free = rng.choice(list(row), 3, replace=False).tolist()
    ranges = {}
    for name in free:
        if name in LEVELS and rng.random() < 0.5:
            ranges[name] = rng.choice(LEVELS[name], rng.integers(1, 3), replace=False).tolist()
        elif name in NUMBERS and rng.random() < 0.5:
            low = row[name] + NUMBERS[name] * int(rng.integers(-4, 4))
            ranges[name] = (low, low + NUMBERS[name] * int(rng.integers(2, 6)))
    steps = {name: step * int(rng.choice([1, 2])) for name, step in NUMBERS.items()}
    immutable = [name for name in row if name not in free]
    return row, {"ranges": ranges, "steps": steps, "immutable": immutable}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_answers_keep_all_limits_and_bounds_hold_for_every_row_that_does(name, norm):
    model, rng, statuses = fitted(name), np.random.default_rng(0), []
    for i in range(60):
        row, options = random_limits(rng)
        options |= {"norm": norm, "sparse": [None, 1, 2, "auto"][i % 4]}
        target = None if i % 3 else "high"
        every = allowed_values(row, options)
        found = model.counterfactual(row, target, **options)
        statuses.append(found.status)
        if not all(map(len, every.values())):
            assert found.status == "infeasible"
            continue
        _, far, counts, predicted = all_rows(model, row, options)
        reached = predicted == target if target else predicted != found.label
        assert found.lower_bound <= far[reached].min(initial=np.inf) * (1 + 1e-9) + 1e-9
        most = options["sparse"] if isinstance(options["sparse"], int) else len(row)
        if found.status == "infeasible":
            assert not (reached & (counts <= most)).any()
        if found.status != "found":
            continue
        assert model.predict(found.after)[0] == found.target
        assert len(found.changes) <= most
        for column, cell in found.after.items():
            if column in LEVELS:
                assert cell in every[column]
            else:  # on the grid, however far
                low, high = options["ranges"].get(column, (-np.inf, np.inf))
                moved = (cell - row[column]) / options["steps"][column]
                assert low <= cell <= high
                assert moved == pytest.approx(round(moved), abs=1e-6)
    assert statuses.count("found") > 20
    assert "infeasible" in statuses


@pytest.mark.parametrize("name", MODELS)
def test_each_of_several_answers_keeps_the_ranges_and_tells_a_bound_that_holds(name):
    model, rng, n_answers = fitted(name), np.random.default_rng(1), 0
    for _ in range(25):
        row, options = random_limits(rng)
        options |= {"norm": "l2"}
        answers = model.counterfactuals(row, n=3, **options)
        distances = [one.distance for one in answers]
        assert distances == sorted(distances)
        if answers[0].status != "found":
            continue
        n_answers += len(answers)
        assert len({frozenset(one.changes) for one in answers}) == len(answers)
        _, far, _, predicted = all_rows(model, row, options)
        nearest = far[predicted != answers[0].label].min(initial=np.inf)
        for one in answers:
            assert one.lower_bound <= min(nearest, distances[0]) * (1 + 1e-9) + 1e-9
            for column, allowed in options["ranges"].items():
                is_level = column in LEVELS
                cell = one.after[column]
                assert cell in allowed if is_level else allowed[0] <= cell <= allowed[1]
    assert n_answers > 25


@pytest.mark.parametrize("name", ["curves", "pairs"])
def test_continuous_columns_stay_within_ranges_that_the_row_is_outside_of(name):
    model, rng = fitted(name), np.random.default_rng(2)
    ranges = {"f": (9.5, 11.5), "a": (-np.inf, 4.0), "k": ["s", "t"]}
    for _ in range(25):
        row = table()[0].iloc[int(rng.integers(500))].to_dict()
        steps = {"a": 2.0, "h": None, "f": None}
        for one in model.counterfactuals(row, n=3, ranges=ranges, steps=steps, norm="l1"):
            assert one.status == "found"
            assert 9.5 <= one.after["f"] <= 11.5
            assert one.after["a"] <= 4.0
            assert one.after["k"] in ("s", "t")


@pytest.mark.parametrize("name", MODELS)
def test_a_column_that_may_neither_change_nor_stay_is_refused(name):
    row = table()[0].iloc[0].to_dict()
    other = next(level for level in LEVELS["c"] if level != row["c"])
    for ranges in ({"f": (100.0, 200.0)}, {"c": [other]}):
        with pytest.raises(ValueError, match="immutable"):
            fitted(name).counterfactual(row, ranges=ranges, immutable=list(ranges))


def test_a_level_that_the_model_does_not_know_may_stay_if_the_ranges_name_it():
    model = fitted("curves")
    row = table()[0].iloc[0].to_dict() | {"c": "new"}
    kept = model.counterfactual(row, ranges={"c": ["new", "p"]}, immutable=["k"])
    assert kept.after["c"] in ("new", "p")
    assert kept.distance == model.counterfactual(row, ranges={"c": ["p", "new"]}).distance
    alone = model.counterfactual(row, ranges={"c": ["new"]})
    assert alone.after["c"] == "new"
    with pytest.raises(ValueError, match="no known level"):
        model.counterfactual(row, ranges={"c": ["other"]})


def test_ranges_that_name_an_unknown_level_allow_no_other_one():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "shop": rng.choice(["p", "q"], 600)})
    X.loc[:2, "shop"] = ["x", "y", "z"]  # rare ones are pooled as "(other)"
    model = classifier(1, lift="spline", random_state=0).fit(X, (X["a"] > 0) ^ (X["shop"] == "p"))
    assert model.model_.schema.columns[1].has_other
    for a in np.linspace(-1, 1, 9):
        row = {"a": a, "shop": "p"}
        found = model.model_.counterfactual(row, ranges={"shop": ["p", "x"]})
        assert found.after["shop"] == "p"


def test_a_step_may_go_beyond_the_last_knot_of_a_curve():
    model = fitted("curves")
    form = additive(model)
    last = form.shapes[0].knots[-1]
    X, _ = table()
    rows = X[X["a"] == last - 1.0].head(25)
    assert len(rows) > 10
    others = [name for name in X if name != "a"]
    for row in rows.to_dict("records"):
        options = {"ranges": {"a": (row["a"], np.inf)}, "steps": NUMBERS | {"a": 2.0}}
        options |= {"immutable": others, "norm": "l2"}
        found = model.counterfactual(row, **options)
        _, far, _, predicted = all_rows(model, row, options)
        nearest = far[predicted != found.label].min(initial=np.inf)
        assert found.distance == pytest.approx(nearest)


def test_limits_far_beyond_the_data_are_searched_before_none_is_said_to_exist():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    model = classifier(1, lift="linear", l2=1e-3, random_state=0).fit(X, X.sum(axis=1) > 0.0).model_
    row = {"a": 0.0, "b": -60.0}
    scale = additive(model).shapes[0].scale
    for end, step in product((90.0, 100.0, 1000.0), (0.05, 1.0)):
        options = {"ranges": {"a": (-end, end)}, "immutable": ["b"], "steps": {"a": step}}
        assert model.predict(row | {"a": 80.0})[0]
        found = model.counterfactual(row, **options)
        assert found.status != "infeasible"
        assert found.lower_bound <= 80.0 / scale
        assert found.after is None or found.after["a"] <= end


@pytest.mark.parametrize("sparse", [1, 2, 3])
def test_with_pairs_few_changes_are_found_where_the_other_column_of_a_pair_is_held(sparse):
    model, (X, _) = fitted("pairs"), table()
    n_found = 0
    for row in X[:20].to_dict("records"):
        for free in (["h", "k"], ["a", "k"], ["h", "a"]):
            options = {"ranges": {}, "steps": NUMBERS, "norm": "l1", "sparse": sparse}
            options |= {"immutable": [name for name in row if name not in free]}
            found = model.counterfactual(row, **options)
            _, far, counts, predicted = all_rows(model, row, options)
            reached = (predicted != found.label) & (counts <= sparse)
            assert (found.status == "found") == reached.any()
            assert found.distance == pytest.approx(far[reached].min(initial=np.inf))
            n_found += found.status == "found"
    assert n_found > 10


@pytest.mark.parametrize("costs", [{}, {"k": 0.3}, {"c": 1e-4, "k": 0.7}])
@pytest.mark.parametrize("sparse", [None, 2])
def test_with_pairs_levels_that_have_to_change_are_an_answer_by_themselves(costs, sparse):
    model, (X, _) = fitted("pairs"), table()
    for row in X[:40].to_dict("records"):
        after = {name: next(one for one in LEVELS[name] if one != row[name]) for name in LEVELS}
        label = model.predict(row | after)[0]
        ranges = {name: [level] for name, level in after.items()}
        for free in ([], ["f"], ["a", "h", "f"]):
            found = model.counterfactual(
                row,
                label,
                ranges=ranges,
                costs=costs,
                sparse=sparse,
                steps={"f": None, "h": None},
                immutable=[name for name in NUMBERS if name not in free],
            )
            assert found.status == "found"
            assert found.after == row | after
            assert found.distance == pytest.approx(np.hypot(*({"c": 1, "k": 1} | costs).values()))


def test_the_nearest_row_is_close_to_its_bound_or_no_farther_than_one_changed_column():
    model, (X, _) = fitted("linear"), table()
    for row in X[:60].to_dict("records"):
        for target in set(model.classes) - {model.predict(row)[0]}:
            options = {"steps": {"h": 0.25, "f": None}, "immutable": ["a", "k"]}
            one = model.counterfactual(row, target, sparse=1, **options)
            nearest = model.counterfactual(row, target, sparse=None, **options)
            assert nearest.distance <= max(1.5 * nearest.lower_bound, one.distance * (1 + 1e-6))


def test_any_number_of_changes_is_no_farther_than_three(rng):
    X = pd.DataFrame(rng.normal(size=(400, 6)), columns=[f"n{j}" for j in range(6)])
    for j in range(5):
        X[f"c{j}"] = rng.choice(list("pqr"), 400)
    score = X.n0 * X.n1 + (X.c0 == "p") + 0.5 * (X.c1 == "q") + 0.3 * rng.normal(size=400)
    y = np.digitize(score, [0.2, 0.9])
    model = classifier(3, lift="linear", l2=1e-3, random_state=0, max_iter=60).fit(X, y).model_
    farther = []
    for row, target in product(range(12), range(3)):
        asked = X.iloc[[row]]
        if model.predict(asked)[0] != target:
            free, few = (model.counterfactual(asked, target=target, sparse=n) for n in (None, 3))
            farther.append(free.distance > few.distance * (1.0 + 1e-9))
    assert len(farther) == 24
    assert sum(farther) <= 1  # neither search is exact
