"""Counterfactuals: the nearest row for which the model predicts another class.

"Found" means that ``model.predict`` itself predicts the target for the row. ``distance`` is in
standard deviations of the training rows, a changed level counts one, and ``costs`` multiply both.
``lower_bound`` is proved: no row of the target class is nearer, however many columns change.
"infeasible" is proved too; a search that finds nothing without a proof returns "not found".

How each is found: ``nearest.py``. Integer columns stay integers: steps are learnt from the lift,
from rows or from the type of a cell (``steps.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.errors import NoShapes
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import (
    class_code,
    encoded_row,
    given_rows,
    model_schema,
    raw_row,
    readable_twice,
)
from geomix.geometry.answers import Counterfactual, Counterfactuals
from geomix.geometry.constraints import read_constraints, unit_sizes
from geomix.geometry.several import Question, diverse
from geomix.geometry.steps import boolean_columns, column_steps, whole_columns
from geomix.geometry.task import Task
from geomix.model import GeometricMixture

NORMS = {"l1": 1.0, "l2": 2.0}
LARGEST = 1e150  # the square of a larger cell overflows


def counterfactual(
    model: GeometricMixture,
    x: Any,
    target: Any = None,
    *,
    immutable: Any = (),
    increase_only: Any = (),
    decrease_only: Any = (),
    ranges: Mapping[Any, Any] | None = None,
    norm: str = "l2",
    sparse: int | str | None = "auto",
    scale: Mapping[Any, float] | None = None,
    costs: Mapping[Any, float] | None = None,
    steps: Mapping[Any, float | None] | None = None,
    probability: float | None = None,
    X: Any = None,
) -> Counterfactual:
    """The row nearest to ``x`` for which the model predicts ``target`` (None: any other class).

    immutable, increase_only, decrease_only : columns by name or position
    ranges : (lowest, highest) of a number, or the allowed levels of a category, by column
    norm : "l2" or "l1"
    sparse : most columns that change; None: any number, for the nearest row. "auto": at most three
        columns, or else the fewest, whose row is at most 4 times as far as the nearest one
    scale : the change of a number that counts as one unit; its standard deviation otherwise
    costs : factors of the cost of a change, by column
    steps : by column, the step of a number's changes, or None for a continuous column. Otherwise
        learnt from rows ``X``, from a spline lift's knots or from the type of the row's own cell:
        integers stay integers. A column whose cell is a boolean stays within 0 and 1
    probability : least probability of the target

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> found = counterfactual(model, X[0], target=1)
    >>> found.status, bool(found.lower_bound <= found.distance)
    ('found', True)
    """
    limits = _Limits(immutable, increase_only, decrease_only, ranges, scale, costs, steps, X)
    return _asked(model, x, target, norm, sparse, probability, limits).best()


def counterfactuals(
    model: GeometricMixture,
    x: Any,
    target: Any = None,
    *,
    n: int = 3,
    immutable: Any = (),
    increase_only: Any = (),
    decrease_only: Any = (),
    ranges: Mapping[Any, Any] | None = None,
    norm: str = "l2",
    sparse: int | str | None = "auto",
    scale: Mapping[Any, float] | None = None,
    costs: Mapping[Any, float] | None = None,
    steps: Mapping[Any, float | None] | None = None,
    probability: float | None = None,
    X: Any = None,
) -> Counterfactuals:
    """Up to ``n`` counterfactuals that change different sets of columns, nearest first.

    The other parameters are those of ``counterfactual``. The ``lower_bound`` of each is that of
    the nearest row.
    """
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"Got n={n!r}; expected an integer of at least 1.")
    limits = _Limits(immutable, increase_only, decrease_only, ranges, scale, costs, steps, X)
    question = _asked(model, x, target, norm, sparse, probability, limits)
    return Counterfactuals(diverse(question, question.best(), n))


@dataclass(frozen=True, eq=False)
class _Limits:
    """The user's constraints, as given."""

    immutable: Any
    increase_only: Any
    decrease_only: Any
    ranges: Mapping[Any, Any] | None
    scale: Mapping[Any, float] | None
    costs: Mapping[Any, float] | None
    steps: Mapping[Any, float | None] | None
    X: Any


class OutOfRange(ValueError):
    """A cell is so large that distances to it overflow."""


def _refuse_overflow(model: GeometricMixture, row: FloatArray) -> None:
    for column in np.flatnonzero(np.abs(row) > LARGEST):
        raise OutOfRange(
            f"Column {model.columns[column]!r} is {row[column]:g}, and distances to it overflow; "
            f"expected at most {LARGEST:g}."
        )


def _asked(
    model: GeometricMixture,
    x: Any,
    target: Any,
    norm: str,
    sparse: int | str | None,
    probability: float | None,
    limits: _Limits,
) -> Question:
    _check_settings(norm, sparse, probability)
    form = _form(model)
    x = readable_twice(x)
    row, raw = encoded_row(model, x), raw_row(model, x)
    _refuse_overflow(model, row)
    unit = unit_sizes(model, form, limits.scale)
    given = given_rows(model, raw, row[None, :])[0]
    booleans = boolean_columns(model, raw)
    whole = whole_columns(x, dict(zip(model.columns, unit.tolist(), strict=True)))
    free = read_constraints(
        model,
        unit,
        row,
        immutable=limits.immutable,
        increase_only=limits.increase_only,
        decrease_only=limits.decrease_only,
        ranges=dict.fromkeys(booleans, (0.0, 1.0)) | dict(limits.ranges or {}),
        costs=limits.costs,
        steps=column_steps(model, row, limits.X, limits.steps, whole | booleans),
        given=given,
    )
    now = int(model.answer("class_scores", row[None, :])[0].argmax())
    wanted = [class_code(model, target)] if target is not None else None
    targets = wanted or [code for code in range(len(model.classes)) if code != now]
    task = Task(model, form, row, given, free, NORMS[norm], sparse, probability)
    return Question(task, targets, norm, now, target)


def _check_settings(norm: str, sparse: Any, probability: Any) -> None:
    if norm not in NORMS:
        raise ValueError(f"Got norm={norm!r}; expected one of {list(NORMS)}.")
    is_count = isinstance(sparse, (int, np.integer)) and sparse >= 1
    if sparse is not None and sparse != "auto" and not is_count:
        raise ValueError(
            f"Got sparse={sparse!r}; expected 'auto', None or an integer of at least 1."
        )
    if probability is not None and not 0.0 < probability < 1.0:
        raise ValueError(f"Got probability={probability!r}; expected one between 0 and 1.")


def _form(model: GeometricMixture) -> Additive | None:
    """The additive form; None for a model without one whose columns are all categories."""
    try:
        return additive(model)
    except NoShapes:
        if model_schema(model).is_category.all():
            return None
        raise
