"""Conversion with skl2onnx: after ``register()`` it converts Pipelines that end in our estimator.

    from geomix.export.sklearn_onnx import register
    register()
    skl2onnx.to_onnx(pipeline, X[:1].astype("float32"))

Outputs are label, probabilities and the responsible plane, as plain arrays (``zipmap`` is off, and
cannot be on). Needs ``skl2onnx`` (``pip install 'geomix[onnx]'``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.estimator import GeometricMixtureClassifier
from geomix.export.onnx import joined, label_array
from geomix.export.onnx_graph import DOUBLE, FLOAT, ML_OPSET, OPSET, Inputs, answers, category_kind
from geomix.export.tables import model_tables

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


def register() -> None:
    """Register the estimator with skl2onnx. Calling it again changes nothing."""
    skl2onnx.update_registered_converter(
        GeometricMixtureClassifier,
        ALIAS,
        _shapes,
        _convert,
        parser=_parse,
        options={"zipmap": [False]},
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


def _convert(scope: Any, operator: Any, container: Any) -> None:
    if container.target_opset < OPSET:
        raise ValueError(
            f"Got target_opset={container.target_opset}; geomix needs at least {OPSET}."
        )
    estimator = operator.raw_operator
    facts = model_tables(estimator.model_)
    graph = _Container(scope, container)
    found = answers(graph, facts, _inputs(graph, facts, operator.inputs))
    labels = label_array(facts.classes)
    if labels.dtype.kind != "O":
        labels = labels.astype(np.int64)
    double = isinstance(operator.outputs[1].type, DoubleTensorType)
    results = [
        graph.add("Gather", graph.constant(labels), found.best, axis=0),
        found.probabilities if double else graph.add("Cast", found.probabilities, to=FLOAT),
        found.plane,
    ]
    for output, result in zip(operator.outputs, results, strict=False):
        name = scope.get_unique_operator_name("geomix")
        container.add_node("Identity", [result], [output.full_name], name=name, op_version=OPSET)


def _inputs(graph: _Container, facts: Any, variables: Any) -> Inputs:
    """One tensor of numbers, or one for each column."""
    names = [one.full_name for one in variables]
    n_columns = len(facts.columns)
    if len(names) == 1 and all(column.kind == "number" for column in facts.columns):
        place = {j: j for j in range(n_columns)}
        return Inputs(graph.add("Cast", names[0], to=DOUBLE), place, {})
    if len(names) != n_columns:
        raise ValueError(
            f"The classifier was fitted to {n_columns} columns, of which some are categories, and "
            f"its inputs are {len(names)} tensors; declare one (n, 1) input for each column."
        )
    numbers: dict[int, str] = {}
    categories: dict[int, str] = {}
    for j, (column, name) in enumerate(zip(facts.columns, names, strict=True)):
        if column.kind == "number" or category_kind(column) == "floats":
            name = graph.add("Cast", name, to=DOUBLE)
        (numbers if column.kind == "number" else categories)[j] = name
    return joined(graph, numbers, categories, "")
