"""Limits of a counterfactual may lie beyond the values of the training data."""

import numpy as np
import pandas as pd
import pytest
from making import classifier

ABOVE = {(10.0, 20.0): 10.0, (10.0, 10.0): 10.0, (10.5, np.inf): 10.5, (1e6, 2e6): 1e6}
BELOW = {(-high, -low): -nearest for (low, high), nearest in ABOVE.items()}


@pytest.fixture(scope="module", params=["spline", "linear"])
def model(request):
    """A continuous number, whole numbers and a category; all of them count."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "n": rng.integers(0, 6, 300)})
    X["c"] = rng.choice(["p", "q"], 300)
    y = np.where(X["a"] + X["n"] / 3 + (X["c"] == "p") > 1.3, "yes", "no")
    return classifier(1, lift=request.param, l2=1e-3, random_state=0).fit(X, y).model_


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(
    ("column", "limits", "nearest"),
    [(column, *one) for column in ("a", "n") for one in (ABOVE | BELOW).items()],
)
def test_limits_beyond_the_data_leave_the_nearest_value_that_they_allow(
    model, norm, column, limits, nearest
):
    row = {"a": 0.0, "n": 2, "c": "q"}
    if nearest < 0.0:
        row[column] = {"a": 9.5, "n": 9}[column]
    others = [name for name in row if name != column]
    found = model.counterfactual(row, ranges={column: limits}, immutable=others, norm=norm)
    assert found.status == "found"
    if column == "n":  # a whole number within the limits
        nearest = np.copysign(np.ceil(abs(nearest)), nearest)
    assert found.after[column] == nearest
    assert model.predict(found.after)[0] == ("no" if nearest < 0.0 else "yes")


@pytest.mark.parametrize("lift", ["spline", "linear"])
@pytest.mark.parametrize("limits", [(1.0, np.inf), (-np.inf, -0.5), (0.2, 0.4)])
def test_every_number_is_within_its_limits_where_the_rows_own_is_not(lift, limits, rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=300) > 0.0
    model = classifier(2, lift=lift, l2=1e-2, random_state=0).fit(X, y).model_
    ranges = {"x0": limits, "x2": (-1.0, 1.0)}
    answers = [model.counterfactual(row, ranges=ranges) for row in X[:20]]
    found = [one.after for one in answers if one.status == "found"]
    assert len(found) > 10
    for column, (low, high) in ranges.items():
        assert all(low <= row[column] <= high for row in found)
