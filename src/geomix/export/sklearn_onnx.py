"""Conversion with skl2onnx: after ``register()`` it converts Pipelines that end in our estimator.

    from geomix.export.sklearn_onnx import register
    register()
    skl2onnx.to_onnx(pipeline, X[:1].astype("float32"))

Outputs are label, probabilities and the responsible plane, as plain arrays (``zipmap`` is off, and
cannot be on). With the option ``raw_scores``, which ``CalibratedClassifierCV`` sets, the second one
is ``decision_function``. Needs ``skl2onnx`` (``pip install 'geomix[onnx]'``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.estimator import GeometricMixtureClassifier
from geomix.export.onnx import joined, label_array
from geomix.export.onnx_graph import DOUBLE, FLOAT, ML_OPSET, OPSET, Inputs, answers, category_kind
from geomix.export.tables import model_tables
from geomix.table.printing import shortened

try:
    import skl2onnx
    from onnx import TensorProto, numpy_helper
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )
except ImportError as error:
    raise ImportError(
        "geomix.export.sklearn_onnx needs skl2onnx, which is not installed: "
        "pip install 'geomix[onnx]'"
    ) from error

ALIAS = "GeomixGeometricMixtureClassifier"
# What the cells of a category have to come as; numbers and levels of floats are cast.
TENSORS = {"text": StringTensorType, "integers": Int64TensorType}


def register(missing_text: str = "") -> None:
    """Register the estimator with skl2onnx. A later call replaces an earlier one.

    missing_text : the text that stands for a missing category, since ONNX has none
    """

    def convert(scope: Any, operator: Any, container: Any) -> None:
        _convert(scope, operator, container, missing_text)

    skl2onnx.update_registered_converter(
        GeometricMixtureClassifier,
        ALIAS,
        _shapes,
        convert,
        parser=_parse,
        options={"zipmap": [False], "raw_scores": [True, False]},
    )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    operator = scope.declare_local_operator(ALIAS, model)
    operator.inputs = inputs
    for name, kind in {
        "label": _label_type(model),
        "probabilities": FloatTensorType(),
        "plane": Int64TensorType(),
    }.items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _label_type(model: Any) -> Any:
    is_text = all(isinstance(label, str) for label in model.classes_.tolist())
    return StringTensorType() if is_text else Int64TensorType()


def _shapes(operator: Any) -> None:
    model = operator.raw_operator
    double = any(isinstance(one.type, DoubleTensorType) for one in operator.inputs)
    kinds = [
        _label_type(model),
        (DoubleTensorType if double else FloatTensorType)(),
        Int64TensorType(),
    ]
    shapes: list[list[int | None]] = [[None], [None, len(model.classes_)], [None]]
    # Meta-estimators of scikit-learn declare label and probabilities only.
    for output, kind, shape in zip(operator.outputs, kinds, shapes, strict=False):
        kind.shape = shape
        output.type = kind


@dataclass
class _Container:
    """A Graph that passes everything on to skl2onnx."""

    scope: Any
    container: Any

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        name = str(self.scope.get_unique_variable_name("geomix_constant"))
        if array.dtype.kind == "O":
            texts = [text.encode() for text in array.tolist()]
            self.container.add_initializer(name, TensorProto.STRING, list(array.shape), texts)
        else:
            self.container.add_initializer(name, None, None, numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        output = str(self.scope.get_unique_variable_name("geomix"))
        self.container.add_node(
            op,
            list(inputs),
            [output],
            op_domain=domain,
            op_version=ML_OPSET if domain else OPSET,
            name=self.scope.get_unique_operator_name("geomix"),
            **attributes,
        )
        return output


def _convert(scope: Any, operator: Any, container: Any, missing_text: str) -> None:
    if container.target_opset < OPSET:
        raise ValueError(
            f"Got target_opset={container.target_opset}; geomix needs at least {OPSET}."
        )
    estimator = operator.raw_operator
    facts = model_tables(estimator.model_)
    graph = _Container(scope, container)
    found = answers(graph, facts, _inputs(graph, facts, operator.inputs, missing_text))
    labels = graph.constant(_labels(facts.classes))
    is_raw = container.get_options(estimator, {"raw_scores": False})["raw_scores"]
    shown = _decision(graph, found.scores, len(facts.classes)) if is_raw else found.probabilities
    double = isinstance(operator.outputs[1].type, DoubleTensorType)
    results = [
        graph.add("Gather", labels, found.best, axis=0),
        shown if double else graph.add("Cast", shown, to=FLOAT),
        found.plane,
    ]
    for output, result in zip(operator.outputs, results, strict=False):
        name = scope.get_unique_operator_name("geomix")
        container.add_node("Identity", [result], [output.full_name], name=name, op_version=OPSET)


def _labels(classes: list[Any]) -> Any:
    labels = label_array(classes)
    if labels.dtype.kind == "O":
        return labels
    if labels.dtype == np.uint64:
        raise ValueError(
            f"The labels {shortened(str(classes), 60)} are not whole numbers of 64 bits with a "
            "sign, which skl2onnx needs; use geomix.export.onnx, or fit with other labels."
        )
    return labels.astype(np.int64)


def _decision(graph: _Container, scores: str, n_classes: int) -> str:
    """``decision_function``; of two classes, that of either."""
    if n_classes > 2:
        return scores
    return graph.add("MatMul", scores, graph.constant(np.array([[1.0, -1.0], [-1.0, 1.0]])))


def _inputs(graph: _Container, facts: Any, variables: Any, missing_text: str) -> Inputs:
    """One tensor of numbers, or one for each column."""
    names = [one.full_name for one in variables]
    n_columns = len(facts.columns)
    if len(names) == 1 and all(column.kind == "number" for column in facts.columns):
        place = {j: j for j in range(n_columns)}
        return Inputs(graph.add("Cast", names[0], to=DOUBLE), place, {}, missing_text)
    if len(names) != n_columns:
        raise ValueError(
            f"The classifier was fitted to {n_columns} columns, of which some are categories, and "
            f"its inputs are {len(names)} tensors; declare one (n, 1) input for each column."
        )
    numbers: dict[int, str] = {}
    categories: dict[int, str] = {}
    rounded: set[int] = set()
    for j, (column, name) in enumerate(zip(facts.columns, names, strict=True)):
        kind = "number" if column.kind == "number" else category_kind(column)
        given = variables[j].type
        if kind in TENSORS and not isinstance(given, TENSORS[kind]):
            raise ValueError(
                f"Column {column.name!r} has levels of {kind}, and its input is of type "
                f"{type(given).__name__}; declare {TENSORS[kind].__name__}."
            )
        if kind not in TENSORS:
            name = graph.add("Cast", name, to=DOUBLE)
        if kind == "floats" and isinstance(given, FloatTensorType):
            rounded.add(j)
        (numbers if kind == "number" else categories)[j] = name
    return joined(graph, numbers, categories, missing_text, rounded)
