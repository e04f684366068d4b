"""What the page's JavaScript works with: the exported model, and what it takes to read it.

The page answers from the document that ``geomix.export.to_json`` writes; beside it there are only
texts, ranges, units and the rows that it shows, as encoded cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.errors import NoShapes
from geomix.explain.additive_form import additive
from geomix.explain.cells import model_schema
from geomix.explain.contributions import raw_column_of
from geomix.explain.effect_facts import Effect, Effects
from geomix.explain.global_explanation import GlobalExplanation
from geomix.export.json_model import json_facts
from geomix.export.tables import model_tables
from geomix.geometry.counterfactual import OutOfRange, counterfactual
from geomix.model import GeometricMixture
from geomix.report.asked import Asked
from geomix.report.sample import (
    SampledRow,
    cell_oddness,
    control_facts,
    missing_shares,
    sampled_rows,
)
from geomix.table.frames import taken
from geomix.table.printing import plain, printable

MOST_POINTS = 100  # of a curve
# Nearest rows of another class are searched for each other class; 72 searches take some seconds.
# With pairs of columns the time of a search grows with the planes: 2,000 take some ten seconds.
MOST_SEARCHES, MOST_PLANES_SEARCHED = 72, 2000


def live_facts(
    asked: Asked,
    explanation: GlobalExplanation,
    found: Effects,
    n_rows: int,
    n_counterfactuals: int,
) -> dict[str, Any]:
    """``model`` as ``geomix.export.to_json`` has it; ``reading``: texts, ranges, units and rows;
    ``effects`` by name of the column, for what a pointer shows."""
    model = asked.model
    order = [model.columns.index(one.column) for one in found.strongest()]
    oddness = cell_oddness(asked.encoded, model_schema(model).is_category.tolist(), asked.y)
    rows = sampled_rows(asked.P, asked.predicted, asked.y, n_rows, oddness)
    n_counterfactuals = min(n_counterfactuals, _most_counterfactuals(model))
    reading = {
        "classes": [printable(str(label)) for label in model.classes.tolist()],
        "columns": _live_columns(asked),
        "order": order,
        "planes": [printable(card.name) for card in explanation.cards],
        "rows": [
            _live_row(asked, row, with_counterfactual=i < n_counterfactuals)
            for i, row in enumerate(rows)
        ],
    }
    effects = {printable(one.column): _live_effect(one) for one in found}
    return {"model": json_facts(model_tables(model)), "reading": reading, "effects": effects}


def _most_counterfactuals(model: GeometricMixture) -> int:
    n_targets = len(model.classes) - 1
    most = MOST_SEARCHES // n_targets
    if model.lift.is_additive and additive(model).pairs:
        most = min(most, MOST_PLANES_SEARCHED // (n_targets * model.planes.n_planes))
    return max(most, 1)


def _live_effect(one: Effect) -> dict[str, Any] | None:
    """The points of a number's curves, rounded; the levels of a category stand in the page."""
    if one.x is None:
        return None
    kept = np.unique(np.linspace(0, len(one.x) - 1, MOST_POINTS).astype(np.intp))
    arrays = {"values": one.values, "lower": one.lower, "upper": one.upper}
    rounded = {
        name: None if given is None else np.round(given[:, kept].astype(float), 3)
        for name, given in arrays.items()
    }
    x = [float(f"{value:.6g}") for value in one.x[kept]]
    return plain({"x": x, **rounded})


def _live_columns(asked: Asked) -> list[dict[str, Any]]:
    model = asked.model
    units = column_units(model)
    shares = missing_shares(model)
    made = []
    for j, control in enumerate(control_facts(model, asked.encoded)):
        column = model_schema(model).columns[j]
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


def column_units(model: GeometricMixture) -> list[float]:
    """One standard deviation of each number, by which distances count."""
    if model.lift.is_additive:
        return [float(shape.scale) for shape in additive(model).shapes]
    units = np.ones(model.n_features)
    units[raw_column_of(model)] = model.standardize.scale
    return units.tolist()


def _live_row(asked: Asked, row: SampledRow, *, with_counterfactual: bool) -> dict[str, Any]:
    cells = [None if np.isnan(cell) else cell for cell in asked.encoded[row.place].tolist()]
    shown = {"place": row.place, "kind": row.kind, "cells": cells, "true": int(asked.y[row.place])}
    if with_counterfactual:
        shown["counterfactual"] = _counterfactual(asked, row.place)
    return shown


def _counterfactual(asked: Asked, place: int) -> dict[str, Any] | None:
    """The nearest row of another class, as changes of encoded cells; None for a model without."""
    model = asked.model
    try:
        found = counterfactual(model, taken(asked.X, np.array([place])))
    except (NoShapes, OutOfRange):
        return None
    columns = model_schema(model).columns
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
