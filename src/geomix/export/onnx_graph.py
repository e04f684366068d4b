"""The nodes of a model's ONNX graph.

    raw columns  ->  sums  ->  (cos, sin)  ->  plane scores  ->  soft-OR  ->  softmax

Intermediate values are float64, also for float32 inputs and outputs: float32 cannot tell apart
knots that are close to each other and far from zero, such as years. Nothing here imports onnx.
Nodes and constants go to a ``Graph`` by name, so the same code serves our own export and skl2onnx.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.lifts import LARGEST_STANDARDIZED
from geomix.explain.column_terms import CurveTerm, LevelTerm, LineTerm, PairTerm
from geomix.export.tables import ModelTables
from geomix.table.schema import Column

OPSET, ML_OPSET = 18, 3
MISSING_INTEGER = -(2**63)
DOUBLE, INT64, FLOAT = 11, 7, 1  # numbers of ONNX's element types


class Graph(Protocol):
    """Collects nodes and constants."""

    def constant(self, value: Any) -> str:
        """The name of a constant array."""

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The name of the output of a new node."""


class Answers(NamedTuple):
    """Names of what a graph computes: position of the class (n,), class scores and probabilities
    (n, C) in float64, responsible plane (n,)."""

    best: str
    scores: str
    probabilities: str
    plane: str


@dataclass(frozen=True)
class Inputs:
    """Names of the tensors with the raw cells.

    numbers : name of (n, k) float64 numbers, NaN where missing;  place : position of a column in
    it;  categories : name of the (n, 1) cells of each category;  missing_text : what stands for a
    missing cell in a column of text. In a column of integers MISSING_INTEGER does. rounded :
    categories whose cells come as float32, in which 0.1 is another number than in float64.
    """

    numbers: str | None
    place: Mapping[int, int]
    categories: Mapping[int, str]
    missing_text: str = ""
    rounded: frozenset[int] = frozenset()


def category_kind(column: Column) -> str:
    """ "text", "integers" or "floats": which tensor holds a category's cells."""
    kinds = {
        "text" if isinstance(level, str) else "integers" if isinstance(level, int) else "floats"
        for level in column.levels
    }
    if "text" in kinds and len(kinds) > 1:
        raise ValueError(
            f"The levels of column {column.name!r} are text and numbers; a tensor is one or the "
            "other."
        )
    if "floats" in kinds:
        return "floats"
    if kinds == {"integers"} and not all(abs(level) < 2**63 for level in column.levels):
        raise ValueError(f"Column {column.name!r} has levels beyond 64 bits.")
    return kinds.pop() if kinds else "text"


def answers(graph: Graph, model: ModelTables, inputs: Inputs) -> Answers:
    """Add the whole model to a graph."""
    z = _sums(graph, model, inputs)
    if model.fourier is not None:
        phi = graph.add("Concat", graph.add("Cos", z), graph.add("Sin", z), axis=1)
        weights = graph.constant(model.fourier.weights.T.copy())
        z = graph.add("MatMul", phi, weights)
        z = graph.add("Add", z, graph.constant(model.fourier.biases))
    scores, own = _pooled(graph, model, z)
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    probabilities = graph.add("Softmax", scores, axis=1)
    return Answers(best, scores, probabilities, _chosen(graph, best, own))


# --- sums over columns ---


def _sums(graph: Graph, model: ModelTables, inputs: Inputs) -> str:
    lines = [term for term in model.terms if isinstance(term, LineTerm)]
    curves = [term for term in model.terms if isinstance(term, CurveTerm)]
    bias = model.bias + sum((term.values[0] for term in curves), np.zeros(model.n_outputs))
    parts = []
    if lines:
        parts += _lines(graph, lines, inputs)
    if curves:
        parts += _curves(graph, curves, inputs)
    for term in model.terms:
        if isinstance(term, LevelTerm):
            parts.append(_levels(graph, term, model.columns[term.column], inputs))
        elif isinstance(term, PairTerm):
            parts.append(_grid(graph, term, model.columns, inputs))
    if not parts:
        return _constant_rows(graph, bias, inputs)
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("Add", total, part)
    return graph.add("Add", total, graph.constant(bias))


def _constant_rows(graph: Graph, bias: FloatArray, inputs: Inputs) -> str:
    """The bias for every row, if no column has any effect."""
    if inputs.numbers is None:
        raise ValueError(
            "No column of this model has any effect, and without numbers the graph cannot count "
            "rows."
        )
    zeros = graph.constant(np.zeros((len(inputs.place), len(bias))))
    numbers = graph.add(
        "Where", graph.add("IsNaN", inputs.numbers), _scalar(graph, 0.0), inputs.numbers
    )
    small = graph.add("Clip", numbers, _scalar(graph, -1.0), _scalar(graph, 1.0))
    return graph.add("Add", graph.add("MatMul", small, zeros), graph.constant(bias))


def _scalar(graph: Graph, value: float) -> str:
    return graph.constant(np.array(value))


def _gathered(graph: Graph, inputs: Inputs, columns: list[int]) -> str:
    assert inputs.numbers is not None
    places = [inputs.place[column] for column in columns]
    if places == list(range(len(inputs.place))):
        return inputs.numbers
    return graph.add("Gather", inputs.numbers, graph.constant(np.array(places)), axis=1)


def _lines(graph: Graph, lines: list[LineTerm], inputs: Inputs) -> list[str]:
    x = _gathered(graph, inputs, [term.column for term in lines])
    limits = _scalar(graph, -LARGEST_STANDARDIZED), _scalar(graph, LARGEST_STANDARDIZED)
    u = _affine(graph, x, [term.mean for term in lines], [term.scale for term in lines])
    missing = graph.add("IsNaN", x)
    u = graph.add("Where", missing, _scalar(graph, 0.0), graph.add("Clip", u, *limits))
    made = [graph.add("MatMul", u, graph.constant(np.stack([term.weights for term in lines])))]
    return made + _missing(graph, missing, np.stack([term.missing for term in lines]))


def _curves(graph: Graph, curves: list[CurveTerm], inputs: Inputs) -> list[str]:
    """Every piece between two knots rises from 0 to 1, times the step between their values."""
    pieces = [term.column for term in curves for _ in term.knots[1:]]
    left = np.concatenate([term.knots[:-1] for term in curves])
    width = np.concatenate([np.diff(term.knots) for term in curves])
    steps = np.concatenate([np.diff(term.values, axis=0) for term in curves])
    x = _gathered(graph, inputs, pieces)
    part = _affine(graph, x, left, width)
    part = graph.add("Clip", part, _scalar(graph, 0.0), _scalar(graph, 1.0))
    part = graph.add("Where", graph.add("IsNaN", x), _scalar(graph, 0.0), part)
    missing = graph.add("IsNaN", _gathered(graph, inputs, [term.column for term in curves]))
    # The bias includes the values at the first knots, so subtract them for a missing cell.
    instead = np.stack([term.missing - term.values[0] for term in curves])
    return [
        graph.add("MatMul", part, graph.constant(steps)),
        *_missing(graph, missing, instead),
    ]


def _affine(graph: Graph, x: str, mean: Any, scale: Any) -> str:
    centred = graph.add("Sub", x, graph.constant(np.asarray(mean, dtype=np.float64)))
    return graph.add("Div", centred, graph.constant(np.asarray(scale, dtype=np.float64)))


def _missing(graph: Graph, missing: str, values: FloatArray) -> list[str]:
    if not values.any():
        return []
    shown = graph.add("Cast", missing, to=DOUBLE)
    return [graph.add("MatMul", shown, graph.constant(values))]


# --- categories ---


def _levels(graph: Graph, term: LevelTerm, column: Column, inputs: Inputs) -> str:
    table = np.vstack([term.values, term.missing, np.zeros_like(term.missing)])
    code = _code(graph, term.column, column, inputs)
    return graph.add("Gather", graph.constant(table), code, axis=0)


def _code(graph: Graph, j: int, column: Column, inputs: Inputs) -> str:
    """(n,) codes: levels, then missing, then never seen (``other`` is a level)."""
    cells, missing_text = inputs.categories[j], inputs.missing_text
    missing = column.n_levels
    unseen = missing - 1 if column.has_other else missing + 1
    if category_kind(column) == "text":
        if missing_text in column.levels:
            raise ValueError(
                f"Column {column.name!r} has the level {missing_text!r}, which also marks "
                "missing cells; pass another missing_text (--missing-text)."
            )
        code = graph.add(
            "LabelEncoder",
            cells,
            domain="ai.onnx.ml",
            keys_strings=[*column.levels, missing_text],
            values_int64s=[*range(len(column.levels)), missing],
            default_int64=unseen,
        )
        return graph.add("Reshape", code, graph.constant(np.array([-1])))
    is_integer = category_kind(column) == "integers"
    known = _known(column, is_integer=is_integer, is_rounded=j in inputs.rounded)
    equal = graph.add("Cast", graph.add("Equal", cells, graph.constant(known)), to=INT64)
    axis = graph.constant(np.array([1]))
    # 1 + code of the level that matches, or 0.
    found = graph.add("Mul", equal, graph.constant(1 + np.arange(known.size)))
    found = graph.add("ReduceSum", found, axis, keepdims=0)
    if is_integer:
        holes = graph.add("Equal", cells, graph.constant(np.array(MISSING_INTEGER)))
    else:
        holes = graph.add("IsNaN", cells)
    holes = graph.add("Reshape", holes, graph.constant(np.array([-1])))
    one = graph.constant(np.array(1))
    is_known = graph.add("Greater", found, graph.constant(np.array(0)))
    code = graph.add(
        "Where", is_known, graph.add("Sub", found, one), graph.constant(np.array(unseen))
    )
    return graph.add("Where", holes, graph.constant(np.array(missing)), code)


def _known(column: Column, *, is_integer: bool, is_rounded: bool) -> Any:
    """(1, n_levels) what the cells are compared with."""
    known = np.array([column.levels], dtype=np.int64 if is_integer else np.float64)
    if not is_rounded:
        return known
    cells = known.astype(np.float32).astype(np.float64)
    if len(np.unique(cells)) < known.size:
        raise ValueError(
            f"Levels of column {column.name!r} are one number in float32; export with double "
            "numbers."
        )
    return cells


def _grid(graph: Graph, term: PairTerm, columns: tuple[Column, ...], inputs: Inputs) -> str:
    first, second = (
        _side(graph, j, columns[j], cuts, size, inputs)
        for j, cuts, size in zip(term.columns, term.cuts, term.shape, strict=True)
    )
    row = graph.add("Mul", first, graph.constant(np.array(term.shape[1])))
    return graph.add("Gather", graph.constant(term.values), graph.add("Add", row, second), axis=0)


def _side(
    graph: Graph, j: int, column: Column, cuts: FloatArray | None, size: int, inputs: Inputs
) -> str:
    """(n,) cells along one side of a grid, the last for missing and never seen."""
    last = graph.constant(np.array(size - 1))
    if cuts is None:
        return graph.add("Min", _code(graph, j, column, inputs), last)
    x = _gathered(graph, inputs, [j])
    holes = graph.add("Reshape", graph.add("IsNaN", x), graph.constant(np.array([-1])))
    edges = graph.constant(np.append(cuts, np.inf)[None, :])  # never empty; inf is not reached
    beyond = graph.add("Cast", graph.add("GreaterOrEqual", x, edges), to=INT64)
    count = graph.add("ReduceSum", beyond, graph.constant(np.array([1])), keepdims=0)
    return graph.add("Where", holes, last, count)


# --- pooling ---


def _pooled(graph: Graph, model: ModelTables, z: str) -> tuple[str, str]:
    """Calibrated class scores (n, C), and of each class the plane that carries it, (n, C)."""
    groups, n_classes = model.groups, len(model.classes)
    widest = max(len(group) for group in groups)
    # Groups of planes become rows of equal length, padded with -inf.
    index = [plane for group in groups for plane in _filled(group, widest)]
    filler = [0.0 if i < len(group) else -np.inf for group in groups for i in range(widest)]
    if index != list(range(model.n_planes)):
        z = graph.add("Gather", z, graph.constant(np.array(index)), axis=1)
    if -np.inf in filler:
        z = graph.add("Add", z, graph.constant(np.array(filler)))
    z = graph.add("Reshape", z, graph.constant(np.array([-1, len(groups), widest])))
    axis, k = graph.constant(np.array([2])), _scalar(graph, model.sharpness)
    top = graph.add("ReduceMax", z, axis, keepdims=1)
    odds = graph.add("Exp", graph.add("Mul", graph.add("Sub", z, top), k))
    total = graph.add("ReduceSum", odds, axis, keepdims=1)
    pooled = graph.add("Add", top, graph.add("Div", graph.add("Log", total), k))
    shape = graph.constant(np.array([-1, n_classes, model.n_members]))
    scores = graph.add("ReduceSum", graph.add("Reshape", pooled, shape), axis, keepdims=0)
    scores = graph.add("Div", scores, _scalar(graph, model.n_members * model.temperature))
    shares = graph.add("Div", odds, total)
    by_class = graph.constant(np.array([-1, n_classes, model.n_members * widest]))
    strongest = graph.add("ArgMax", graph.add("Reshape", shares, by_class), axis=2, keepdims=0)
    return scores, _unfilled(graph, model, strongest, widest)


def _filled(group: range, widest: int) -> list[int]:
    return [*group, *[group[0]] * (widest - len(group))]


def _unfilled(graph: Graph, model: ModelTables, strongest: str, widest: int) -> str:
    """Positions among filled-up planes as positions within the class."""
    sizes = [len(model.groups[c * model.n_members]) for c in range(len(model.classes))]
    if min(sizes) == widest:
        return strongest
    width = graph.constant(np.array(widest))
    member = graph.add("Div", strongest, width)
    within = graph.add("Sub", strongest, graph.add("Mul", member, width))
    return graph.add("Add", graph.add("Mul", member, graph.constant(np.array(sizes))), within)


def _chosen(graph: Graph, best: str, own: str) -> str:
    """(n,) the column ``best`` of each row of ``own``."""
    column = graph.add("Reshape", best, graph.constant(np.array([-1, 1])))
    found = graph.add("GatherElements", own, column, axis=1)
    return graph.add("Reshape", found, graph.constant(np.array([-1])))
