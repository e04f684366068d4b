"""Everything that a report says, as plain values: for the template, and for the page's JavaScript.

``facts`` asks the model; nothing after it does. Measures are over all rows given; what needs every
plane for every row (cards, curves, rules) is over at most ``MOST_ROWS`` of them, drawn at random
from one fixed stream, and the page says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from geomix import __version__
from geomix.additive import NoShapes, additive
from geomix.arrays import FloatArray, IntArray
from geomix.cells import class_codes, encoded_rows, table_of
from geomix.contributions import raw_column_of
from geomix.export.additive import additive as exported
from geomix.export.json_model import json_facts
from geomix.findings import CODES
from geomix.geometry.counterfactual import counterfactual
from geomix.geometry.regions import rules
from geomix.global_explanation import GlobalExplanation, explain_global
from geomix.model import GeometricMixture
from geomix.plane_cards import PlaneCard
from geomix.report import pictures
from geomix.report.metrics import Evaluation, evaluate
from geomix.report.sample import (
    SampledRow,
    control_facts,
    missing_shares,
    sampled_rows,
    taken,
)
from geomix.report.words import summary
from geomix.small_tables import plain, printable

MOST_ROWS = 4000
MOST_CARDS = 24
MOST_CARDS_OF_A_CLASS = 4
MOST_CURVES = 12
MOST_CLASSES_IN_A_CURVE = 8
MOST_CLASSES_IN_A_MATRIX = 16
MOST_CONFUSIONS = 12
MOST_RULES = 12
TERMS_OF_A_RULE = 4


@dataclass(frozen=True, eq=False)
class _Asked:
    """The rows as the model answered them. some : places of those for cards, curves and rules."""

    model: GeometricMixture
    X: Any
    encoded: FloatArray
    y: IntArray
    P: FloatArray
    predicted: IntArray
    some: IntArray


def facts(
    model: GeometricMixture,
    X: Any,
    y: Any,
    *,
    X_new: Any,
    title: str,
    n_rows: int,
    n_counterfactuals: int,
    ignore: Any,
) -> dict[str, Any]:
    """The whole report as plain values; ``live`` is what the page's JavaScript works with."""
    asked = _ask(model, X, y)
    told = _explained(asked, ignore)
    quality = evaluate(asked.P, asked.predicted, asked.y)
    reach = _reach(asked)
    return {
        "title": title,
        "version": __version__,
        "n_rows": len(asked.y),
        "n_some": len(asked.some),
        "lift": model.lift.kind,
        "summary": summary(model, told, quality, float(asked.P.max(axis=1).mean())),
        "was_trained_on_as_many": (model.training or {}).get("n_rows") == len(asked.y),
        "about": _about(model),
        "classes": [str(label) for label in model.classes.tolist()],
        "metrics": [asdict(metric) for metric in quality.metrics],
        "reliability": pictures.reliability_picture(quality.reliability),
        "confusion": _confusion(model, quality),
        "importances": _importances(told),
        "curves": _curves(told, reach, quality),
        "cards": _cards(model, told, reach),
        "rules": _rules(asked, told),
        "findings": [asdict(one) | {"kind": CODES[one.code]} for one in told.findings],
        "drift": None if X_new is None else plain(asdict(model.compare(X, X_new))),
        "live": live_facts(asked, told, n_rows, n_counterfactuals),
    }


def _ask(model: GeometricMixture, X: Any, y: Any) -> _Asked:
    encoded = encoded_rows(model, X)
    codes = class_codes(model, y, len(encoded))
    P = model.answer("predict_proba", encoded)
    predicted = model.answer("class_scores", encoded).argmax(axis=1)
    some = np.arange(len(codes))
    if len(some) > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(some), MOST_ROWS, replace=False))
    return _Asked(model, X, encoded, codes, P, predicted, some)


def _explained(asked: _Asked, ignore: Any) -> GlobalExplanation:
    return explain_global(asked.model, *_some_rows(asked), n_columns=5, ignore=ignore)


def _some_rows(asked: _Asked) -> tuple[Any, Any]:
    """Raw rows and labels for what is not made from all rows."""
    return taken(asked.X, asked.some), asked.model.classes[asked.y[asked.some]]


def _reach(asked: _Asked) -> list[tuple[float, float]]:
    """Range of each number over the rows, (0, 1) of each category."""
    controls = control_facts(asked.model, asked.encoded)
    return [(one.get("low", 0.0), one.get("high", 1.0)) for one in controls]


def _about(model: GeometricMixture) -> list[tuple[str, Any]]:
    planes = model.planes
    lines: list[tuple[str, Any]] = [
        ("lift", model.lift.kind),
        ("planes per class", ", ".join(map(str, (planes.per_class // planes.n_members).tolist()))),
        ("members", planes.n_members),
        ("sharpness", f"{model.sharpness:.4g}"),
        ("temperature", f"{model.temperature:.4g}"),
    ]
    trained = model.training or {}
    if "n_rows" in trained:
        lines.append(("training rows", f"{trained['n_rows']:,}"))
    lines += [("edit", edit["action"]) for edit in model.edits]
    return lines


def _confusion(model: GeometricMixture, quality: Evaluation) -> dict[str, Any]:
    """The matrix, or for many classes the pairs most often confused."""
    counts, labels = quality.confusion, [str(label) for label in model.classes.tolist()]
    wrong = counts - np.diag(np.diag(counts))
    pairs = [
        {"true": labels[i], "given": labels[j], "n": int(wrong[i, j])}
        for i, j in zip(*np.unravel_index(np.argsort(-wrong, axis=None), wrong.shape), strict=True)
        if wrong[i, j] > 0
    ]
    if len(labels) > MOST_CLASSES_IN_A_MATRIX:
        return {"rows": None, "pairs": pairs[:MOST_CONFUSIONS]}
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = [
        {
            "label": label,
            "cells": [
                {"n": int(n), "share": float(part), "is_right": i == j}
                for j, (n, part) in enumerate(zip(counts[i], share[i], strict=True))
            ],
        }
        for i, label in enumerate(labels)
    ]
    return {"rows": rows, "labels": labels, "pairs": pairs[:MOST_CONFUSIONS]}


# --- columns ---


def _order(told: GlobalExplanation) -> list[int]:
    """Columns, those that matter most first."""
    if told.importances is not None:
        return np.argsort(-told.importances, kind="stable").tolist()
    strength = np.zeros(len(told.columns))
    for card in told.cards:
        for one in card.columns:
            strength[told.columns.index(one.column)] += one.strength * (card.usage or 0.0)
    return np.argsort(-strength, kind="stable").tolist()


def _importances(told: GlobalExplanation) -> list[dict[str, Any]]:
    if told.importances is None:
        return []
    most = max(float(told.importances.max(initial=0.0)), 1e-12)
    return [
        {
            "name": told.columns[j],
            "value": float(told.importances[j]),
            "part": float(told.importances[j]) / most,
        }
        for j in _order(told)[: 2 * MOST_CURVES]
    ]


def _curves(
    told: GlobalExplanation, reach: list[tuple[float, float]], quality: Evaluation
) -> dict[str, Any] | None:
    """Pictures of what the strongest columns add for each class, on one scale."""
    if not told.curves:
        return None
    frequent = np.argsort(-quality.confusion.sum(axis=1), kind="stable")
    classes = sorted(frequent[:MOST_CLASSES_IN_A_CURVE].tolist())
    chosen = [j for j in _order(told) if np.ptp(told.curves[j].values, axis=1).max() > 1e-9]
    chosen = chosen[:MOST_CURVES]
    most = pictures.largest_size([told.curves[j].by_class[classes] for j in chosen])
    made = [
        {"name": told.columns[j]}
        | pictures.curve_picture(told.curves[j], classes, reach[j], 1.05 * most)
        for j in chosen
    ]
    legend = [{"code": code, "label": str(told.classes[code])} for code in classes]
    return {"pictures": made, "legend": legend, "n_left_out": len(told.classes) - len(classes)}


# --- planes ---


def _cards(
    model: GeometricMixture, told: GlobalExplanation, reach: list[tuple[float, float]]
) -> dict[str, Any]:
    """Cards of the planes that answer most, and one line for each of the others."""
    order = sorted(range(len(told.cards)), key=lambda p: -(told.cards[p].usage or 0.0))
    shown: list[int] = []
    for p in order:
        of_class = sum(told.cards[q].label == told.cards[p].label for q in shown)
        if len(shown) < MOST_CARDS and of_class < MOST_CARDS_OF_A_CLASS:
            shown.append(p)
    class_of = model.planes.class_of.tolist()
    shown.sort(key=lambda p: (class_of[p], -(told.cards[p].usage or 0.0)))
    strongest = max((one.strength for card in told.cards for one in card.columns), default=1.0)
    others = [_card(told.cards[p], class_of[p]) for p in order if p not in set(shown)]
    cards = [
        _card(told.cards[p], class_of[p]) | {"columns": _card_columns(told, p, reach, strongest)}
        for p in shown
    ]
    return {"cards": cards, "others": others}


def _card(card: PlaneCard, code: int) -> dict[str, Any]:
    names = ("n_rows", "usage", "own_usage", "purity", "confidence", "error_share")
    told = {name: getattr(card, name) for name in names}
    return told | {"name": card.name, "label": str(card.label), "code": code}


def _card_columns(
    told: GlobalExplanation, plane: int, reach: list[tuple[float, float]], strongest: float
) -> list[dict[str, Any]]:
    card = told.cards[plane]
    places = [told.columns.index(one.column) for one in card.columns]
    most = pictures.largest_size([told.curves[j].values[plane] for j in places if told.curves])
    made = []
    for one, j in zip(card.columns, places, strict=True):
        sign = {"falls": -1, "rises": 1}.get(one.direction, 0)
        spark = None
        if told.curves and told.lift == "spline":
            spark = pictures.spark_picture(told.curves[j], plane, reach[j], 1.05 * most)
        typical = None if card.typical is None else card.typical[one.column]
        line = {"name": one.column, "direction": one.direction, "sign": sign, "spark": spark}
        made.append(line | {"part": one.strength / strongest, "typical": typical})
    return made


def _rules(asked: _Asked, told: GlobalExplanation) -> dict[str, Any]:
    """The regions of the planes that answer most, as rules; or why there are none."""
    order = sorted(range(len(told.cards)), key=lambda p: -(told.cards[p].usage or 0.0))
    n_used = sum(bool(card.n_rows) for card in told.cards)
    try:
        found = rules(
            asked.model,
            *_some_rows(asked),
            planes=order[: min(MOST_RULES, n_used)],
            max_terms=TERMS_OF_A_RULE,
        )
    except NoShapes as error:
        return {"rules": [], "n_left_out": 0, "reason": str(error)}
    used = sorted((one for one in found if one.coverage), key=lambda one: -(one.coverage or 0.0))
    names = ("conditions", "coverage", "purity", "largest_error", "misplaced", "kind")
    made = [
        {name: getattr(one, name) for name in names}
        | {"label": str(one.label), "name": f"{one.label}/{one.plane}"}
        for one in used
    ]
    return {"rules": made, "n_left_out": max(n_used - MOST_RULES, 0), "reason": None}


# --- the living part ---


def live_facts(
    asked: _Asked, told: GlobalExplanation, n_rows: int, n_counterfactuals: int
) -> dict[str, Any]:
    """``model`` as ``geomix.export.to_json`` has it; ``reading``: texts, ranges, units and rows."""
    model = asked.model
    rows = sampled_rows(asked.P, asked.predicted, asked.y, n_rows)
    reading = {
        "classes": [printable(str(label)) for label in model.classes.tolist()],
        "columns": _live_columns(asked),
        "order": _order(told),
        "planes": [printable(card.name) for card in told.cards],
        "rows": [
            _live_row(asked, row, with_counterfactual=i < n_counterfactuals)
            for i, row in enumerate(rows)
        ],
    }
    return {"model": json_facts(exported(model)), "reading": reading}


def _live_columns(asked: _Asked) -> list[dict[str, Any]]:
    model = asked.model
    units = _units(model)
    shares = missing_shares(model)
    made = []
    for j, control in enumerate(control_facts(model, asked.encoded)):
        column = table_of(model).columns[j]
        made.append(
            control
            | {
                "name": printable(column.name),
                "levels": [printable(name) for name in column.level_names],
                "unit": units[j],
                "missing_share": shares[j],
                "can_be_missing": bool(np.isnan(asked.encoded[:, j]).any()),
            }
        )
    return made


def _units(model: GeometricMixture) -> list[float]:
    """One standard deviation of each number, by which distances count."""
    if model.lift.kind != "fourier":
        return [float(shape.scale) for shape in additive(model).shapes]
    units = np.ones(model.n_features)
    units[raw_column_of(model)] = model.standardize.scale
    return units.tolist()


def _live_row(asked: _Asked, row: SampledRow, *, with_counterfactual: bool) -> dict[str, Any]:
    cells = [None if np.isnan(cell) else cell for cell in asked.encoded[row.place].tolist()]
    told = {"place": row.place, "kind": row.kind, "cells": cells, "true": int(asked.y[row.place])}
    if with_counterfactual:
        told["counterfactual"] = _counterfactual(asked, row.place)
    return told


def _counterfactual(asked: _Asked, place: int) -> dict[str, Any] | None:
    """The nearest row of another class, as changes of encoded cells; None for a model without."""
    model = asked.model
    try:
        found = counterfactual(model, taken(asked.X, np.array([place])))
    except NoShapes:
        return None
    columns = table_of(model).columns
    changes = []
    for name, (_, after) in found.changes.items():
        j = model.columns.index(name)
        is_number = columns[j].kind == "number"
        changes.append([j, float(after) if is_number else columns[j].code(after)])
    return plain(
        {
            "status": found.status,
            "distance": found.distance,
            "lower_bound": found.lower_bound,
            "is_nearest": found.is_nearest,
            "changes": changes,
        }
    )
