"""Everything that a report shows, as plain values for the template; ``live`` is for the JavaScript.

``facts`` asks the model; nothing after it does. Measures are over all rows given; what needs every
plane for every row (cards, curves, rules) is over at most ``asked.MOST_ROWS`` of them, drawn at
random from one fixed stream, which the page states.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from geomix import __version__
from geomix.explain.cells import model_schema
from geomix.explain.drift import Drift
from geomix.explain.effect_facts import Effect, Effects
from geomix.explain.findings import CODES
from geomix.explain.global_explanation import GlobalExplanation, explain_global
from geomix.explain.plane_cards import PlaneCard
from geomix.geometry.rules import rules
from geomix.model import GeometricMixture
from geomix.report import pictures
from geomix.report.asked import Asked, ask
from geomix.report.effect_pictures import (
    drawn_pairs,
    effect_panels,
    heat_map,
    importance_bars,
)
from geomix.report.live import live_facts
from geomix.report.metrics import Evaluation, evaluate
from geomix.report.sample import control_facts
from geomix.report.words import summary
from geomix.table.check import check_table
from geomix.table.printing import plain
from geomix.training.choice import HEADINGS, is_chosen

MOST_CARDS = 24
MOST_CARDS_OF_A_CLASS = 4
MOST_PANELS = 12
MOST_IMPORTANCES = 24
MOST_HEAT_MAPS = 4
MOST_CLASSES_IN_A_PANEL = 6
N_COLOURS = 8  # of the page; further classes repeat them
BANDS_UP_TO = 3  # curves in a panel; bands of more hide each other
MOST_CLASSES_IN_A_MATRIX = 16
MOST_CONFUSIONS = 12
MOST_RULES = 12
TERMS_OF_A_RULE = 3
PLANES = HEADINGS.index("planes")


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
    n_total: int | None,
) -> dict[str, Any]:
    """The whole report as plain values; ``live`` is what the page's JavaScript works with."""
    asked = ask(model, X, y)
    explanation = _explained(asked, ignore)
    found = explanation.effects
    assert found is not None  # there are rows
    quality = evaluate(asked.P, asked.predicted, asked.y)
    reach = _reach(asked)
    n_total = len(asked.y) if n_total is None else n_total
    return {
        "title": title,
        "version": __version__,
        "n_rows": len(asked.y),
        "n_total": n_total,
        "n_some": len(asked.some),
        "lift": model.lift.kind,
        "summary": summary(model, found, explanation, quality, float(asked.P.max(axis=1).mean())),
        "check": check_table(X, model.classes[asked.y], _categories(model)),
        "was_trained_on_as_many": (model.training or {}).get("n_rows") == n_total,
        "about": _about(model),
        "choice": [{"cells": row, "is_chosen": is_chosen(row[-1])} for row in _choice(model)],
        "choice_note": _planes_removed(model),
        "choice_headings": HEADINGS,
        "classes": [str(label) for label in model.classes.tolist()],
        "metrics": [asdict(metric) for metric in quality.metrics],
        "reliability": pictures.reliability_picture(quality.reliability),
        "confusion": _confusion(model, quality),
        "effects": _effects(found, quality),
        "sure": _sure(found),
        "cards": _cards(model, explanation, reach) if _has_several_planes(model) else None,
        "rules": _rules(asked),
        "findings": [asdict(one) | {"kind": CODES[one.code]} for one in explanation.findings],
        "drift": None if X_new is None else _drift(model.compare(X, X_new)),
        "live": live_facts(asked, explanation, found, n_rows, n_counterfactuals),
    }


def _explained(asked: Asked, ignore: Any) -> GlobalExplanation:
    return explain_global(asked.model, *asked.some_rows, n_columns=5, ignore=ignore)


def _reach(asked: Asked) -> list[tuple[float, float]]:
    """Range of each number over the rows, (0, 1) of each category."""
    controls = control_facts(asked.model, asked.encoded)
    return [(one.get("low", 0.0), one.get("high", 1.0)) for one in controls]


def _choice(model: GeometricMixture) -> list[list[Any]]:
    """The table of the choice, with ``HEADINGS``; empty where nothing was compared. A model file
    may hold anything here: what is no row of such a table is left out."""
    rows = (model.training or {}).get("choice")
    return [row for row in rows if _is_result(row)] if isinstance(rows, list) else []


def _is_result(row: Any) -> bool:
    is_row = isinstance(row, list) and len(row) == len(HEADINGS)
    return is_row and isinstance(row[-1], str) and isinstance(row[PLANES], int)


def _planes_removed(model: GeometricMixture) -> str:
    """Why a single model has fewer planes than the family that was chosen."""
    chosen = sum(row[PLANES] for row in _choice(model) if is_chosen(row[-1]))
    n_removed = chosen - model.planes.n_planes
    if n_removed <= 0 or model.planes.n_members > 1:
        return ""
    if n_removed == 1:
        return "One of the chosen planes was removed after training: its class does not need it."
    return f"{n_removed} of the chosen planes were removed: their classes do not need them."


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


def _categories(model: GeometricMixture) -> list[int] | None:
    return np.flatnonzero(model_schema(model).is_category).tolist() or None


def _effects(found: Effects, quality: Evaluation) -> dict[str, Any]:
    """Panels of the strongest columns, importances, and heat maps of the strongest pairs."""
    curves = [0]
    if len(found.labels) > 1:
        frequent = np.argsort(-quality.confusion.sum(axis=1), kind="stable")
        curves = sorted(frequent[:MOST_CLASSES_IN_A_PANEL].tolist())
    strong = [one for one in found.strongest() if _varies(one)]
    shown = strong[:MOST_PANELS]
    drawn = drawn_pairs(found, MOST_HEAT_MAPS)
    return {
        "unit": found.unit() if len(found.labels) == 1 else "log-odds against the mean class",
        "panels": effect_panels(found, shown, curves) if shown else [],
        "rest": [one.column for one in strong[MOST_PANELS:]],
        "unused": [one.column for one in found if not _varies(one)],
        "tints": _tints(curves, len(found.labels)),
        "legend": [{"code": code, "label": str(found.labels[code])} for code in curves],
        "n_left_out": len(found.labels) - len(curves),
        "with_bands": found.has_bands and len(curves) <= BANDS_UP_TO,
        "with_planes": any(one.planes_low is not None for one in found) and len(curves) == 1,
        "importances": importance_bars(found, MOST_IMPORTANCES),
        "heat_maps": [heat_map(one, found.labels) for one in drawn],
        "has_pairs": bool(found.interactions),
        "pairs": [(one.name, one.strength) for one in found.interactions if one not in drawn],
    }


def _tints(curves: list[int], n_labels: int) -> dict[int, int]:
    """Colours of the curves: those of their classes, or of many classes one after another."""
    if n_labels == 1:
        return {0: 1}  # of two classes the curve is that of the second
    return {code: code if n_labels <= N_COLOURS else i for i, code in enumerate(curves)}


def _varies(one: Effect) -> bool:
    missing = 0.0 if one.missing is None else float(np.abs(one.missing).max(initial=0.0))
    return bool(np.abs(one.values).max(initial=0.0) > 1e-9 or missing > 1e-9)


def _sure(found: Effects) -> dict[str, Any]:
    """What a reader has to know of the pictures: how they were made, and which are empty."""
    unclear = [
        one.column
        for one in found.strongest()
        if _varies(one)
        and one.lower is not None
        and one.upper is not None
        and bool(((one.lower <= 0.0) & (one.upper >= 0.0)).all())
    ]
    return {
        "method": found.method,
        "bands": found.bands,
        "has_bands": found.has_bands,
        "confidence": found.confidence,
        "unclear": unclear,
    }


def _has_several_planes(model: GeometricMixture) -> bool:
    return bool((model.planes.planes_per_member > 1).any())


# --- planes ---


def _cards(
    model: GeometricMixture, explanation: GlobalExplanation, reach: list[tuple[float, float]]
) -> dict[str, Any]:
    """Cards of the planes that answer most, and one line for each of the others."""
    order = sorted(
        range(len(explanation.cards)), key=lambda p: -(explanation.cards[p].usage or 0.0)
    )
    shown: list[int] = []
    for p in order:
        of_class = sum(explanation.cards[q].label == explanation.cards[p].label for q in shown)
        if len(shown) < MOST_CARDS and of_class < MOST_CARDS_OF_A_CLASS:
            shown.append(p)
    class_of = model.planes.class_of.tolist()
    shown.sort(key=lambda p: (class_of[p], -(explanation.cards[p].usage or 0.0)))
    strongest = max(
        (one.strength for card in explanation.cards for one in card.columns), default=1.0
    )
    others = [_card(explanation.cards[p], class_of[p]) for p in order if p not in set(shown)]
    cards = [
        _card(explanation.cards[p], class_of[p])
        | {"columns": _card_columns(explanation, p, reach, strongest)}
        for p in shown
    ]
    return {"cards": cards, "others": others}


def _card(card: PlaneCard, code: int) -> dict[str, Any]:
    names = ("n_rows", "usage", "own_usage", "purity", "confidence", "error_share")
    figures = {name: getattr(card, name) for name in names}
    return figures | {"name": card.name, "label": str(card.label), "code": code}


def _card_columns(
    explanation: GlobalExplanation, plane: int, reach: list[tuple[float, float]], strongest: float
) -> list[dict[str, Any]]:
    card = explanation.cards[plane]
    places = [explanation.columns.index(one.column) for one in card.columns]
    most = pictures.largest_size(
        [explanation.curves[j].values[plane] for j in places if explanation.curves]
    )
    made = []
    for one, j in zip(card.columns, places, strict=True):
        sign = {"falls": -1, "rises": 1}.get(one.direction, 0)
        spark = None
        if explanation.curves and explanation.lift == "spline":
            spark = pictures.spark_picture(explanation.curves[j], plane, reach[j], 1.05 * most)
        typical = None if card.typical is None else card.typical[one.column]
        # Nearly every curve bends, and its picture shows that.
        direction = "" if "bends" in one.direction else one.direction
        line = {"name": one.column, "direction": direction, "sign": sign, "spark": spark}
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
            "low": one.purity_low,
            "high": one.purity_high,
        }
        for one in found
    ]
    return {
        "rules": made,
        "coverage": found.coverage,
        "purity": found.purity,
        "default": str(found.default),
        "default_purity": found.default_purity,
    }


def _drift(found: Drift) -> dict[str, Any]:
    """The drift as plain values, with a name for each plane."""
    planes = [plain(asdict(one)) | {"name": one.name} for one in found.planes]
    return plain(asdict(found)) | {"planes": planes}
