"""Everything that a report says, as plain values for the template; ``live`` is for the JavaScript.

``facts`` asks the model; nothing after it does. Measures are over all rows given; what needs every
plane for every row (cards, curves, rules) is over at most ``asked.MOST_ROWS`` of them, drawn at
random from one fixed stream, and the page says so.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from geomix import __version__
from geomix.explain.drift import Drift
from geomix.explain.findings import CODES
from geomix.explain.global_explanation import GlobalExplanation, explain_global
from geomix.explain.plane_cards import PlaneCard
from geomix.geometry.rules import rules
from geomix.model import GeometricMixture
from geomix.report import pictures
from geomix.report.asked import Asked, ask
from geomix.report.live import live_facts
from geomix.report.metrics import Evaluation, evaluate
from geomix.report.sample import control_facts
from geomix.report.words import summary
from geomix.table.printing import plain
from geomix.training.choice import HEADINGS

MOST_CARDS = 24
MOST_CARDS_OF_A_CLASS = 4
MOST_CURVES = 12
MOST_CLASSES_IN_A_CURVE = 8
MOST_CLASSES_IN_A_MATRIX = 16
MOST_CONFUSIONS = 12
MOST_RULES = 12
TERMS_OF_A_RULE = 3


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
    asked = ask(model, X, y)
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
        "choice": (model.training or {}).get("choice"),
        "choice_headings": HEADINGS,
        "classes": [str(label) for label in model.classes.tolist()],
        "metrics": [asdict(metric) for metric in quality.metrics],
        "reliability": pictures.reliability_picture(quality.reliability),
        "confusion": _confusion(model, quality),
        "importances": _importances(told),
        "curves": _curves(told, reach, quality),
        "cards": _cards(model, told, reach),
        "rules": _rules(asked),
        "findings": [asdict(one) | {"kind": CODES[one.code]} for one in told.findings],
        "drift": None if X_new is None else _drift(model.compare(X, X_new)),
        "live": live_facts(asked, told, _order(told), n_rows, n_counterfactuals),
    }


def _explained(asked: Asked, ignore: Any) -> GlobalExplanation:
    return explain_global(asked.model, *asked.some_rows, n_columns=5, ignore=ignore)


def _reach(asked: Asked) -> list[tuple[float, float]]:
    """Range of each number over the rows, (0, 1) of each category."""
    controls = control_facts(asked.model, asked.encoded)
    return [(one.get("low", 0.0), one.get("high", 1.0)) for one in controls]


def _about(model: GeometricMixture) -> list[tuple[str, Any]]:
    planes = model.planes
    lines: list[tuple[str, Any]] = [
        ("lift", model.lift.kind),
        ("planes per class", ", ".join(map(str, planes.planes_per_member.tolist()))),
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


def _rules(asked: Asked) -> dict[str, Any]:
    """Few short rules that cover most rows."""
    found = rules(asked.model, *asked.some_rows, max_terms=TERMS_OF_A_RULE, max_rules=MOST_RULES)
    made = [
        {
            "label": str(one.label),
            "conditions": [str(condition) for condition in one.conditions],
            "coverage": one.coverage,
            "purity": one.purity,
        }
        for one in found
    ]
    return {"rules": made, "coverage": found.coverage, "purity": found.purity}


def _drift(found: Drift) -> dict[str, Any]:
    """The drift as plain values, with a name for each plane."""
    planes = [plain(asdict(one)) | {"name": one.name} for one in found.planes]
    return plain(asdict(found)) | {"planes": planes}
