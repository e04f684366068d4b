"""A model as JSON: enough to predict raw rows in any language.

The document follows ``geomix-json-1.0.schema.json`` beside this file;
``docs/reference/json-format.md`` has the scoring algorithm on one page. Numbers read back as the
same float64.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np

from geomix.explain.column_terms import CurveTerm, LineTerm, PairTerm, Term
from geomix.export.tables import ModelTables, model_tables
from geomix.model import GeometricMixture
from geomix.table.schema import Column

FORMAT, VERSION = "geomix-json", [1, 0]
SCHEMA = "geomix-json-1.0.schema.json"


def to_json(model: GeometricMixture) -> str:
    """The model as a JSON text, ASCII only, without spaces.

    Examples
    --------
    >>> import json, geomix
    >>> from sklearn.datasets import load_iris
    >>> clf = geomix.GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3, random_state=0)
    >>> document = json.loads(to_json(clf.fit(*load_iris(return_X_y=True)).model_))
    >>> document["format"], len(document["terms"]), document["class_start"]
    ('geomix-json', 4, [0, 1, 2, 3])
    """
    return json.dumps(json_facts(model_tables(model)), separators=(",", ":"), allow_nan=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    text = resources.files(__package__).joinpath(SCHEMA).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def json_facts(model: ModelTables) -> dict[str, Any]:
    """The document as plain values."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "classes": model.classes,
        "columns": [_column(column) for column in model.columns],
        "terms": [_term(term) for term in model.terms],
        "bias": model.bias.tolist(),
        "class_start": model.class_start,
        "members": model.n_members,
        "sharpness": model.sharpness,
        "temperature": model.temperature,
    }
    if model.fourier is not None:
        weights, biases = model.fourier.weights.tolist(), model.fourier.biases.tolist()
        document["fourier"] = {"weights": weights, "biases": biases}
    return document


def _column(column: Column) -> dict[str, Any]:
    if column.kind == "number":
        return {"name": column.name, "kind": "number"}
    levels = list(column.levels)
    return {"name": column.name, "kind": "category", "levels": levels, "other": column.has_other}


def _term(term: Term) -> dict[str, Any]:
    if isinstance(term, PairTerm):
        cuts = [None if cut is None else cut.tolist() for cut in term.cuts]
        sizes, columns = list(term.shape), list(term.columns)
        values = term.values.tolist()
        return {"kind": "grid", "columns": columns, "cuts": cuts, "shape": sizes, "values": values}
    made: dict[str, Any] = {"kind": term.kind, "column": term.column}
    if isinstance(term, LineTerm):
        made |= {"mean": term.mean, "scale": term.scale, "weights": term.weights.tolist()}
    else:
        if isinstance(term, CurveTerm):
            made["knots"] = term.knots.tolist()
        made["values"] = term.values.tolist()
    if np.any(term.missing):  # zero for most columns
        made["missing"] = term.missing.tolist()
    return made
