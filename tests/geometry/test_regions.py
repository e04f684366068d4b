"""Regions: their conditions against the rows, and against plane scores."""

import json
import re

import numpy as np
import pytest
from reading_models import ADDITIVE, fitted

from geomix import GeometricMixture
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.core.planes import Planes
from geomix.explain.additive_form import additive
from geomix.explain.cells import encoded_rows

LINEAR = ["linear", "several", "rotated", "mixed linear"]
CURVED = [name for name in ADDITIVE if name not in LINEAR]


def two_columns(weights, biases, start):
    standardize = Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2)
    planes = Planes(np.array(weights, dtype=float), np.array(biases, dtype=float), np.array(start))
    labels = np.array(list("abcdef"))[: len(start) - 1]
    return GeometricMixture(
        labels, ("u", "v"), FeatureMap(standardize, IdentityLift(2)), planes, 6.0
    )


def printed(rule, model, X):
    """(n,) rows that satisfy the printed inequalities."""
    place = {name: j for j, name in enumerate(model.columns)}
    inside = np.full(len(X), not rule.is_empty)
    for one in rule.inequalities:
        inside &= sum(w * X[:, place[name]] for name, w in one.terms) >= one.threshold
    return inside


@pytest.mark.parametrize("name", ["linear", "several"])
@pytest.mark.parametrize("max_terms", [None, 1, 3])
def test_figures_of_a_region_are_those_of_the_printed_rule(name, max_terms):
    model, X, y = fitted(name)
    for rule in model.regions(X, y, max_terms=max_terms, digits=2):
        inside = printed(rule, model, X)
        assert rule.coverage == pytest.approx(inside.mean())
        if inside.any():
            assert rule.purity == pytest.approx((y[inside] == rule.label).mean())


@pytest.mark.parametrize("name", ["linear", "several", "rotated"])
def test_a_region_is_where_its_plane_beats_every_rival(name):
    model, X, y = fitted(name)
    told = model.regions(X, y, digits=12)
    Z = model.plane_scores(X)
    planes = model.planes
    assert len(told) == planes.n_planes
    for p, rule in enumerate(told):
        rivals = planes.class_of != planes.class_of[p]
        inside = (Z[:, p, None] >= Z[:, rivals]).all(axis=1)
        assert rule.coverage == pytest.approx(inside.mean())
        if inside.any():
            assert rule.purity == pytest.approx((y[inside] == rule.label).mean())


def test_a_box_has_no_more_conditions_than_asked_for_and_no_box_twice():
    for name in CURVED:
        model, X, y = fitted(name)
        every, short = model.regions(X, y), model.regions(X, y, max_terms=2)
        assert max(len(rule.conditions) for rule in short) <= 2
        for found in (every, short):
            assert len({(rule.label, rule.conditions) for rule in found}) == len(found)


@pytest.mark.parametrize("digits", [2, 6])
def test_a_rounded_rule_says_how_wrong_it_is(digits):
    model, X, y = fitted("several")
    place = {name: j for j, name in enumerate(model.columns)}
    Z = model.plane_scores(X)
    for p, rule in enumerate(model.regions(X, y, digits=digits)):
        rivals = model.planes.class_of != model.planes.class_of[p]
        inside = (Z[:, p, None] >= Z[:, rivals]).all(axis=1)
        told = np.full(len(X), not rule.is_empty)
        for one in rule.inequalities:
            left = sum(w * X[:, place[name]] for name, w in one.terms)
            told &= left >= one.threshold
            for _, w in one.terms:
                assert float(f"{w:.{digits}g}") == w
        assert rule.misplaced == pytest.approx((told != inside).mean())
        assert rule.largest_error < 10.0 ** (2 - digits)
    if digits == 6:
        assert max(rule.misplaced for rule in model.regions(X, y, digits=6)) < 0.01


def test_inequalities_that_follow_from_others_are_left_out():
    """Three classes along u: for the rightmost, to beat the middle is to beat the left too."""
    model = two_columns([[-2, 0], [0, 0], [2, 0]], [0, 0.5, 0], [0, 1, 2, 3])
    left, middle, right = model.regions()
    assert [len(rule.inequalities) for rule in (left, middle, right)] == [1, 2, 1]
    assert right.conditions == ("2 u >= 0.5",)
    assert left.conditions == ("- 2 u >= 0.5",)


def test_within_the_rows_range_more_follows():
    model = two_columns([[-2, 0], [0, 0], [2, 0]], [0, 0.5, 0], [0, 1, 2, 3])
    X = np.column_stack([np.linspace(1.0, 2.0, 20), np.zeros(20)])
    left, middle, right = model.regions(X)
    assert right.conditions == ("always",)
    assert left.is_empty
    assert middle.is_empty
    assert right.coverage == 1.0


def test_leaving_out_the_weaker_terms_is_counted():
    model, X, y = fitted("several")
    short, full = model.regions(X, y, max_terms=3), model.regions(X, y)
    assert max(len(one.terms) for rule in short for one in rule.inequalities) == 3
    assert sum(r.largest_error for r in short) > sum(r.largest_error for r in full)
    one_class = model.regions(X, y, class_=1)
    assert {rule.label for rule in one_class} == {1}
    assert len(one_class) == 3


@pytest.mark.parametrize("name", CURVED)
def test_every_row_in_a_box_is_of_the_class(name):
    """The written conditions are read back and rows drawn that fulfil them."""
    model, X, y = fitted(name)
    rules = model.regions(X, y, digits=4)
    assert len(rules) > 0
    form = additive(model)
    rng = np.random.default_rng(0)
    encoded = encoded_rows(model, X)
    for rule in rules:
        assert rule.kind == "box"
        assert rule.purity is None or rule.coverage > 0.0
        rows = encoded[rng.integers(0, len(encoded), 800)].copy()
        keep = np.ones(len(rows), dtype=bool)
        for j, shape in enumerate(form.shapes):
            if shape.kind == "number":
                spread = np.ptp(shape.knots)
                far = rng.uniform(shape.knots[0] - spread, shape.knots[-1] + spread, len(rows))
                rows[:, j] = np.where(np.isnan(rows[:, j]), np.nan, far)
        for text in rule.conditions:
            keep &= _push_inside(text, form, rows, rng)
        assert keep.any()
        answers = model.answer("class_scores", rows[keep]).argmax(axis=1)
        assert (model.classes[answers] == rule.label).all()


def _push_inside(text, form, rows, rng):
    """Move the rows' cells so that a condition holds; for which rows that was possible."""
    if text == "always":
        return np.ones(len(rows), dtype=bool)
    if " is not missing" in text:
        name = text.removesuffix(" is not missing")
        j = [shape.name for shape in form.shapes].index(name)
        return ~np.isnan(rows[:, j])
    if " is known" in text:
        name, _, others = text.partition(" is known")
        j = [shape.name for shape in form.shapes].index(name)
        left_out = others.removeprefix(" and not ").split(" or ")
        codes = [k for k, one in enumerate(form.shapes[j].levels) if one not in left_out]
        rows[:, j] = rng.choice(codes, len(rows))
        return np.ones(len(rows), dtype=bool)
    if " is " in text:
        name, levels = text.split(" is ", 1)
        j = [shape.name for shape in form.shapes].index(name)
        allowed = levels.split(" or ")
        known = list(getattr(form.shapes[j], "levels", ()))
        codes = [np.nan if one == "missing" else known.index(one) for one in allowed]
        rows[:, j] = rng.choice(codes, len(rows))
        return np.ones(len(rows), dtype=bool)
    number = r"(-?[0-9.e+-]+)"
    both = re.fullmatch(rf"{number} <= (.+) <= {number}", text)
    low = re.fullmatch(rf"(.+) >= {number}", text)
    high = re.fullmatch(rf"(.+) <= {number}", text)
    if both:
        ends, name = (float(both[1]), float(both[3])), both[2]
    elif low:
        ends, name = (float(low[2]), float(low[2]) + 10.0), low[1]
    else:
        ends, name = (float(high[2]) - 10.0, float(high[2])), high[1]
    j = [shape.name for shape in form.shapes].index(name)
    rows[:, j] = rng.choice([*ends, rng.uniform(*ends)], len(rows))
    return np.ones(len(rows), dtype=bool)


def test_rules_of_curves_need_rows_and_nonsense_is_refused():
    model, X, _ = fitted("spline")
    with pytest.raises(ValueError, match="pass X"):
        model.regions()
    for options in ({"digits": 0}, {"max_terms": 0}, {"class_": "nope"}):
        with pytest.raises(ValueError, match=r"expected|at least"):
            model.regions(X, **options)


def test_rules_are_told_as_frame_json_html_and_text():
    model, X, y = fitted("mixed linear")
    told = model.regions(X, y)
    json.dumps(told.to_dict(), allow_nan=False)
    assert len(told.to_frame()) == len(told)
    assert "red <b>" not in told._repr_html_()
    assert ">=" in str(told)
    assert told[0].label == "barbera"


def test_rules_of_chosen_planes_are_those_of_all():
    model, X, y = fitted("committee")
    every = model.regions(X, y)
    ends = tuple(every)[:: max(len(every) - 1, 1)]
    n_members = model.planes.n_members
    per_member = model.planes.n_planes // (len(model.classes) * n_members)
    chosen = [(one.label * n_members + one.member) * per_member + one.plane for one in ends]
    some = model.regions(X, y, planes=chosen)
    owners = {(one.label, one.plane, one.member) for one in ends}
    assert {(one.label, one.plane, one.member) for one in some} == owners
    assert set(some) <= set(every)
