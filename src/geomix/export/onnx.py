"""A model as one ONNX graph, from raw columns to label, probabilities and responsible plane.

Writing needs ``onnx`` (``pip install 'geomix[onnx]'``); running the graph needs an ONNX runtime
only.

A table of numbers is one input ``X`` (n, columns). A table with categories is one input (n, 1) for
each column, under the column's name: floats for numbers, strings for text, int64 for integer
levels. A missing number is NaN, a missing text ``missing_text``, a missing integer -2**63.
Outputs: ``label`` (n,), ``probabilities`` (n, classes), ``plane`` (n,), counted within the class.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomix.export.onnx_graph import (
    DOUBLE,
    FLOAT,
    ML_OPSET,
    OPSET,
    Inputs,
    answers,
    category_kind,
)
from geomix.export.tables import ModelTables, model_tables
from geomix.model import GeometricMixture

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise ImportError(
        "geomix.export.onnx needs onnx, which is not installed: pip install 'geomix[onnx]'"
    ) from error

IR_VERSION = 9  # the version that came with opset 18; older runtimes refuse newer ones


@dataclass
class Collected:
    """Nodes and constants of a graph, each constant once."""

    nodes: list[Any] = field(default_factory=list)
    constants: dict[bytes, Any] = field(default_factory=dict)
    names: Any = field(default_factory=itertools.count)

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        key = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
        if key not in self.constants:
            tensor = numpy_helper.from_array(array, f"geomix_c{len(self.constants)}")
            self.constants[key] = tensor
        return str(self.constants[key].name)

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        output = f"geomix_{next(self.names)}"
        self.nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output


def to_onnx(model: GeometricMixture, *, double: bool = False, missing_text: str = "") -> Any:
    """The model as an ``onnx.ModelProto``: numbers and probabilities float32, or ``double``.

    missing_text : the text that stands for a missing category, since ONNX has none

    Examples
    --------
    >>> import geomix, onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = geomix.GeometricMixtureClassifier(lift="linear", l2=1e-3, random_state=0).fit(X, y)
    >>> graph = to_onnx(clf.model_).SerializeToString()
    >>> session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    >>> label, p, plane = session.run(None, {"X": X.astype("float32")})
    >>> bool(abs(p - clf.predict_proba(X)).max() < 1e-6)
    True
    """
    facts = model_tables(model)
    graph = Collected()
    number = TensorProto.DOUBLE if double else TensorProto.FLOAT
    declared, inputs = _inputs(graph, facts, number, missing_text)
    found = answers(graph, facts, inputs)
    labels = label_array(facts.classes)
    outputs = {
        "label": graph.add("Gather", graph.constant(labels), found.best, axis=0),
        "probabilities": found.probabilities
        if double
        else graph.add("Cast", found.probabilities, to=FLOAT),
        "plane": found.plane,
    }
    for name, origin in outputs.items():
        graph.nodes.append(helper.make_node("Identity", [origin], [name]))
    made = helper.make_graph(
        graph.nodes,
        "geomix",
        declared,
        [
            helper.make_tensor_value_info("label", _element_type(labels), [None]),
            helper.make_tensor_value_info("probabilities", number, [None, len(facts.classes)]),
            helper.make_tensor_value_info("plane", TensorProto.INT64, [None]),
        ],
        list(graph.constants.values()),
    )
    return _model(made, facts)


def label_array(classes: list[Any]) -> Any:
    """Labels as a tensor: integers, text (as objects), booleans or floats."""
    if all(isinstance(label, str) for label in classes):
        for label in classes:
            _check_text(label)
        return np.array(classes, dtype=object)
    # NumPy makes floats of a list with integers on both sides of 2^63.
    are_large = any(isinstance(label, int) and label >= 2**63 for label in classes)
    return np.array(classes, dtype=np.uint64 if are_large else None)


def _model(graph: Any, facts: ModelTables) -> Any:
    from geomix import __version__

    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="geomix",
        producer_version=__version__,
    )
    about = {"classes": facts.classes, "columns": [column.name for column in facts.columns]}
    helper.set_model_props(made, {name: json.dumps(value) for name, value in about.items()})
    onnx.checker.check_model(made)
    return made


def _inputs(
    graph: Collected, facts: ModelTables, number: int, missing_text: str
) -> tuple[list[Any], Inputs]:
    """The declared inputs, and the names of the cells after numbers are cast to float64."""
    n_columns = len(facts.columns)
    if all(column.kind == "number" for column in facts.columns):
        declared = [helper.make_tensor_value_info("X", number, [None, n_columns])]
        place = {j: j for j in range(n_columns)}
        return declared, Inputs(graph.add("Cast", "X", to=DOUBLE), place, {}, missing_text)
    declared = []
    numbers: dict[int, str] = {}
    categories: dict[int, str] = {}
    rounded: set[int] = set()
    types = {"text": TensorProto.STRING, "integers": TensorProto.INT64, "floats": number}
    for j, column in enumerate(facts.columns):
        is_number = column.kind == "number"
        kind = number if is_number else types[category_kind(column)]
        _check_name(column.name)
        declared.append(helper.make_tensor_value_info(column.name, kind, [None, 1]))
        for level in column.levels:
            _check_text(level)
        cell = column.name
        if kind == number:
            cell = graph.add("Cast", column.name, to=DOUBLE)
            if not is_number and number == FLOAT:
                rounded.add(j)
        (numbers if is_number else categories)[j] = cell
    return declared, joined(graph, numbers, categories, missing_text, rounded)


def joined(
    graph: Any,
    numbers: dict[int, str],
    categories: dict[int, str],
    missing_text: str,
    rounded: Iterable[int],
) -> Inputs:
    """Columns of float64 numbers (n, 1) side by side, and categories as they are."""
    place = {j: at for at, j in enumerate(numbers)}
    together = graph.add("Concat", *numbers.values(), axis=1) if numbers else None
    return Inputs(together, place, categories, missing_text, frozenset(rounded))


def _check_name(name: str) -> None:
    _check_text(name)
    if not name or name.startswith("geomix_") or name in ("label", "probabilities", "plane"):
        raise ValueError(
            f"The column {name!r} cannot be an input of the graph, which uses the names label, "
            "probabilities, plane and geomix_... itself. Rename it before fit."
        )


def _check_text(value: Any) -> None:
    if isinstance(value, str) and not value.isprintable():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"ONNX holds text as UTF-8, which {value!r} is not.") from None


def _element_type(labels: Any) -> int:
    return int(numpy_helper.from_array(labels).data_type)
