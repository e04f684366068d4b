"""Monotone probabilities by an order of the planes' weights, kept while training.

``monotonic_cst={"dose": {"toxic": +1}}`` requires that p(toxic) never falls as dose rises, for any
values of the other columns. With f'_p the slope of plane p along the column,

    d log p_c / dx = (1/T) sum_k p_k (r_c - r_k),     r_c = sum_p a_cp f'_p,

a mean of differences of means; so it is enough that, between any two knots,

    f'_p >= f'_q     for every plane p of class c and every plane q of another class.       (*)

Slopes are weights, up to a positive factor that all planes share: those of the standardised
column (linear), or of each step between knots (spline). So (*) is an order of the entries of
one column of the weight matrix: classes that rise above all others, classes that fall below. It is
kept by bounds on the numbers that ``core/ordered_weights.py`` writes them as. Where two classes are
both to rise, (*) asks their planes to be equal there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import BoolArray
from geomix.core import kernel
from geomix.core.descent import Descended, Descent
from geomix.core.feature_map import FeatureMap
from geomix.core.ordered_weights import Order, OrderedWeights
from geomix.core.row_sums import Sums
from geomix.errors import InvalidParameterError
from geomix.table.schema import Schema
from geomix.training.parameter_checks import checked, is_sign


@dataclass(frozen=True)
class Direction:
    """The probability of class ``code`` only rises (sign 1) or falls (-1) with a column."""

    column: int
    code: int
    sign: int


def read_directions(monotonic_cst: Any, schema: Schema, classes: Any) -> tuple[Direction, ...]:
    """The parameter ``monotonic_cst`` in positions and codes.

    monotonic_cst : None; {column: {label: sign}}; with two classes also {column: sign} or one sign
        for each column, about the second class. A sign is 1 (rises), -1 (falls) or 0 (free).
    """
    labels = classes.tolist()
    made: dict[tuple[int, int], Direction] = {}
    for column, wanted in _by_column(monotonic_cst, schema).items():
        j = _column(column, schema)
        for label, sign in _by_label(column, wanted, labels).items():
            one = Direction(j, _code(label, labels), _sign(column, label, sign))
            if (one.column, one.code) in made:
                raise InvalidParameterError(
                    f"monotonic_cst names the column {column!r} twice, by name and by position."
                )
            made[one.column, one.code] = one
    bound = tuple(one for one in made.values() if one.sign != 0)
    for one in bound:
        _refuse_category(one.column, schema)
    return bound


def is_about_two_classes(monotonic_cst: Any) -> bool:
    """Whether the parameter has signs without a class, which only two classes allow."""
    if monotonic_cst is None or isinstance(monotonic_cst, str):
        return False
    is_mapping = isinstance(monotonic_cst, Mapping)
    signs = monotonic_cst.values() if is_mapping else np.ravel(np.asarray(monotonic_cst, object))
    return any(is_sign(sign) and sign != 0 for sign in signs)


def _refuse_category(column: int, schema: Schema) -> None:
    if schema.is_category[column]:
        raise InvalidParameterError(
            f"monotonic_cst names the column {schema.names[column]!r}, which is a category; its "
            "levels have no order."
        )


def _by_column(monotonic_cst: Any, schema: Schema) -> Mapping[Any, Any]:
    wanted = checked({"monotonic_cst": monotonic_cst})["monotonic_cst"]
    if wanted is None or isinstance(wanted, Mapping):
        return wanted or {}
    if len(wanted) != len(schema):
        raise InvalidParameterError(
            f"Got monotonic_cst with {len(wanted)} entries; expected {len(schema)}, one for each "
            "column of X."
        )
    return {j: sign for j, sign in enumerate(wanted) if sign != 0}


def _by_label(column: Any, wanted: Any, labels: list[Any]) -> Mapping[Any, Any]:
    """The signs of a column by class; a plain sign is about the second of two classes."""
    if isinstance(wanted, Mapping):
        return wanted
    if not is_sign(wanted):
        raise InvalidParameterError(
            f"Got monotonic_cst[{column!r}]={wanted!r}; expected 1, -1 or 0, or a dict by class, "
            f"such as {{{labels[-1]!r}: 1}}."
        )
    if wanted == 0:
        return {}
    if len(labels) != 2:
        raise InvalidParameterError(
            f"Only binary classification is supported by monotonic_cst[{column!r}]={wanted!r}, "
            f"which names no class; got {len(labels)} classes. Pass a dict by class, such as "
            f"{{{column!r}: {{{labels[-1]!r}: 1}}}}."
        )
    return {max(labels): wanted}  # training has an order of classes of its own


def _code(label: Any, labels: list[Any]) -> int:
    if label not in labels:
        raise InvalidParameterError(
            f"monotonic_cst names the class {label!r}, which is not among {labels!r}."
        )
    return labels.index(label)


def _sign(column: Any, label: Any, sign: Any) -> int:
    if not is_sign(sign):
        raise InvalidParameterError(
            f"Got monotonic_cst[{column!r}][{label!r}]={sign!r}; expected 1, -1 or 0."
        )
    return int(sign)


def _column(column: Any, schema: Schema) -> int:
    is_place = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if isinstance(column, str) and column in schema.names:
        j = schema.names.index(column)
    elif is_place and 0 <= column < len(schema):
        j = int(column)
    else:
        raise InvalidParameterError(
            f"monotonic_cst names the column {column!r}, which X does not have: "
            f"{list(schema.names)!r}."
        )
    return j


def order_of(
    directions: tuple[Direction, ...], feature_map: FeatureMap, n_classes: int
) -> Order | None:
    """The order of the weights that the directions require; None without directions."""
    if not directions:
        return None
    places: dict[int, tuple[BoolArray, BoolArray]] = {}
    for one in directions:
        for feature in feature_map.slopes_along(one.column):
            none = np.zeros(n_classes, dtype=bool)
            up, down = places.setdefault(int(feature), (none, none.copy()))
            (up if one.sign > 0 else down)[one.code] = True
    features = np.array(sorted(places), dtype=np.intp)
    shape = len(features), n_classes
    up = np.array([places[f][0] for f in features.tolist()], dtype=bool).reshape(shape)
    down = np.array([places[f][1] for f in features.tolist()], dtype=bool).reshape(shape)
    return Order(features, up, down)


def minimize(rows: Sums, descent: Descent, order: Order) -> Descended:
    """``kernel.minimize`` under an order of the weights."""
    return kernel.minimize_within(rows, descent, OrderedWeights(order, descent.planes))
