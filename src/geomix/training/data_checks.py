"""Warnings about the columns and classes of a training table.

The serious findings of ``table/check.py``, and what concerns training alone: columns that are
dropped, and classes with fewer rows than planes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from geomix.arrays import IntArray
from geomix.errors import DataQualityWarning
from geomix.table.check import TableCheck
from geomix.table.schema import Schema
from geomix.training.many_classes import MANY_CLASSES
from geomix.training.rows import ColumnRange


def warn_about(
    check: TableCheck,
    columns: ColumnRange,
    schema: Schema,
    classes: Any,
    codes: IntArray,
    n_planes: Any,
) -> None:
    """One ``DataQualityWarning`` for each concern about the columns and classes of a table."""
    counts = np.bincount(codes, minlength=len(classes))
    found = [finding.sentence for finding in check.serious]
    named = {name for finding in check.serious for name in finding.columns}
    few_are_named = any(finding.kind == "few rows" for finding in check.serious)
    for concern in [
        *found,
        *_about_columns(columns, schema, named),
        *_about_classes(classes.tolist(), counts, n_planes, few_are_named),
    ]:
        warnings.warn(concern, DataQualityWarning, stacklevel=5)


def _about_columns(columns: ColumnRange, schema: Schema, named: set[str]) -> list[str]:
    """Concerns about columns; ``named`` are those that a finding names already."""
    names = schema.names
    concerns = [
        f"Column {names[j]!r} is 100 % missing and is dropped." for j in columns.all_missing
    ]
    concerns += [
        f"Column {column.name!r} has no level that occurs twice and is of no use. If it is an "
        "identifier, drop it."
        for column in schema.columns
        if column.has_other and not column.levels and column.name not in named
    ]
    concerns += [
        f"Column {names[j]!r} varies by less than 1e-300 and is taken as constant."
        for j in columns.nearly_constant
    ]
    if len(columns.varying) == 0:
        concerns.append("Every column is constant: the model can only give class shares.")
    return concerns


def _about_classes(
    labels: list[Any], counts: IntArray, n_planes: Any, few_are_named: bool
) -> list[str]:
    n_rows = int(counts.sum())
    concerns = []
    if len(labels) > MANY_CLASSES:
        concerns.append(
            f"y has {len(labels)} classes: training takes fewer iterations than usual. If y is a "
            "quantity or an identifier, it is the wrong column."
        )
    for label, count in zip(labels, counts, strict=True):
        if count == 0:
            concerns.append(f"Class {label!r} has no row of positive weight.")
            continue
        if count == 1 and n_rows > len(labels) and not few_are_named:
            concerns.append(f"Class {label!r} has one row only.")
        wanted = n_planes.get(label) if isinstance(n_planes, Mapping) else n_planes
        if not isinstance(wanted, str) and wanted is not None and wanted > count:
            rows = "row" if count == 1 else "rows"
            concerns.append(
                f"Class {label!r} has {count} {rows} for {wanted} planes: it gets one plane for "
                "each distinct row."
            )
    if len(labels) > 0.5 * n_rows:
        concerns.append(
            f"The number of classes ({len(labels)}) is greater than 50 % of the number of rows "
            f"({n_rows})."
        )
    return concerns
