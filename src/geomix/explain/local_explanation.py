"""Explanations of single predictions: ``explain_local``.

For each row: the probabilities, the runner-up, the planes that carry the answer, the joint
posterior p(c, m | x) = p_c a_cm over (class, plane), and the contribution of each column to the
margin log(p_label / p_against). Contributions, bias and pooling add up to the margin
(``explain/contributions.py`` has the formula).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.explain import contributions, interpret_data, shapley
from geomix.explain.additive_form import additive
from geomix.explain.cells import class_code, encoded_rows, given_rows, readable_twice
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

METHODS = ("auto", "exact", "shapley", "gradient")
APPROXIMATION = "local approximation"
# Planes with at least this share of their class's score are named as responsible.
RESPONSIBLE = 0.1
LINES_SHOWN = 12
PER_ROW = (
    "cells",
    "labels",
    "against",
    "probabilities",
    "responsibilities",
    "contributions",
    "bias",
    "pooling",
    "margin",
    "error",
)


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """Explanations of n rows, as arrays; ``explanation[i]`` is that of one row.

    cells : the rows as raw cells by column name, None where missing
    labels, against : (n,) codes of the class explained and of the class it is compared with
    probabilities : (n, C);  responsibilities : (n, P), columns grouped by class
    contributions : (n, n_columns);  bias, pooling, margin : (n,), with
        contributions.sum(axis=1) + bias + pooling = margin = log(p_label / p_against)
    method : "exact", or "shapley" or "gradient", which are local approximations
    error : (n, n_columns) standard errors of sampled contributions, else None
    class_of, plane_of, member_of : (P,) class of each plane, its position in it, its member
    """

    columns: tuple[str, ...]
    classes: tuple[Any, ...]
    cells: tuple[dict[str, Any], ...]
    labels: IntArray
    against: IntArray
    probabilities: FloatArray
    responsibilities: FloatArray
    contributions: FloatArray
    bias: FloatArray
    pooling: FloatArray
    margin: FloatArray
    method: str
    error: FloatArray | None
    class_of: IntArray
    plane_of: IntArray
    member_of: IntArray

    @property
    def is_exact(self) -> bool:
        """Whether contributions are exact rather than approximations."""
        return self.method == "exact"

    @property
    def joint(self) -> FloatArray:
        """p(c, m | x) = p_c a_cm, (n, P): sums to one over all planes of all classes."""
        return self.probabilities[:, self.class_of] * self.responsibilities

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> LocalExplanation:
        """The explanation of row ``i`` alone."""
        at = range(len(self))[i]
        parts = {name: getattr(self, name) for name in PER_ROW}
        one = {name: part[at : at + 1] for name, part in parts.items() if part is not None}
        return replace(self, **one)

    def responsible(self, i: int = 0) -> list[dict[str, Any]]:
        """The planes that carry the explained class of row ``i``, strongest first: those with a
        responsibility of at least 0.1 in their member, or else the strongest one."""
        own = np.flatnonzero(self.class_of == self.labels[i])
        n_members = int(self.member_of.max(initial=0)) + 1
        share = self.responsibilities[i, own] * n_members
        order = own[np.argsort(-share, kind="stable")]
        n_named = max(int((share >= RESPONSIBLE).sum()), 1)
        return [
            {
                "plane": int(self.plane_of[p]),
                "member": int(self.member_of[p]),
                "responsibility": float(self.responsibilities[i, p]),
                "joint": float(self.probabilities[i, self.labels[i]] * self.responsibilities[i, p]),
            }
            for p in order[:n_named]
        ]

    # --- InterpretML: ``interpret.show(explanation)`` ---

    explanation_type = "local"
    name = "GeometricMixture"

    @property
    def feature_names(self) -> list[str]:
        return list(self.columns)

    @property
    def selector(self) -> Any:
        return interpret_data.local_selector(self)

    def data(self, key: int | None = None) -> dict[str, Any] | None:
        """Names, values and scores of one row as InterpretML has them; of all rows for -1."""
        return interpret_data.local_data(self, key)

    def visualize(self, key: int | None = None) -> Any:
        """A Plotly figure of one row, drawn by InterpretML."""
        return interpret_data.local_figure(self, key)

    def to_frame(self) -> Any:
        """A pandas frame with a line for each row's column, bias and pooling."""
        return frame_of(self._records(), self._headings())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON: one entry of ``rows`` for each row."""
        rows = [self._row_dict(i) for i in range(len(self))]
        return {"method": self.method, "is_exact": self.is_exact, "rows": plain(rows)}

    def to_html(self) -> str:
        """One table for each row, everything escaped."""
        return html_of("local", self._tables())

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    def _row_dict(self, i: int) -> dict[str, Any]:
        names = [str(label) for label in self.classes]
        facts = {
            "label": self.classes[self.labels[i]],
            "against": self.classes[self.against[i]],
            "probabilities": dict(zip(names, self.probabilities[i].tolist(), strict=True)),
            "margin": self.margin[i],
            "bias": self.bias[i],
            "pooling": self.pooling[i],
            "contributions": dict(zip(self.columns, self.contributions[i].tolist(), strict=True)),
            "planes": self.responsible(i),
            "cells": self.cells[i],
        }
        if self.error is not None:
            facts["errors"] = dict(zip(self.columns, self.error[i].tolist(), strict=True))
        return facts

    def _headings(self) -> list[str]:
        extra = [] if self.error is None else ["error"]
        return ["row", "label", "against", "column", "value", "contribution", *extra]

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for i in range(len(self)):
            label, against = self.classes[self.labels[i]], self.classes[self.against[i]]
            whose = {"row": i, "label": label, "against": against}
            for j, name in enumerate(self.columns):
                given = {"column": name, "value": self.cells[i][name]}
                part = {"contribution": float(self.contributions[i, j])}
                if self.error is not None:
                    part["error"] = float(self.error[i, j])
                records.append(whose | given | part)
            for name, line in {"(bias)": self.bias, "(pooling)": self.pooling}.items():
                records.append(whose | {"column": name, "contribution": float(line[i])})
        return records

    def _tables(self) -> list[SmallTable]:
        return [self._table(i) for i in range(len(self))]

    def _table(self, i: int) -> SmallTable:
        order = np.argsort(-np.abs(self.contributions[i]), kind="stable")
        lines = [self._line(i, int(j)) for j in order[:LINES_SHOWN]]
        rest = order[LINES_SHOWN:]
        blank = () if self.error is None else (None,)
        if len(rest):
            others = f"({len(rest)} other columns)"
            lines.append((others, None, float(self.contributions[i, rest].sum()), *blank))
        lines.append(("(bias)", None, float(self.bias[i]), *blank))
        lines.append(("(pooling)", None, float(self.pooling[i]), *blank))
        lines.append(("margin", None, float(self.margin[i]), *blank))
        extra = () if self.error is None else ("error",)
        return SmallTable(self._title(i), ("column", "value", "contribution", *extra), tuple(lines))

    def _line(self, i: int, j: int) -> tuple[Any, ...]:
        name = self.columns[j]
        value = self.cells[i][name]
        extra = () if self.error is None else (float(self.error[i, j]),)
        return (
            name,
            float("nan") if value is None else value,
            float(self.contributions[i, j]),
            *extra,
        )

    def _title(self, i: int) -> str:
        label, against = self.labels[i], self.against[i]
        P = self.probabilities[i]
        planes = ", ".join(
            plane_name(one["plane"])
            + (f" of member {one['member'] + 1}" if self.member_of.any() else "")
            for one in self.responsible(i)[:3]
        )
        kind = "" if self.is_exact else f"; {self.method}: {APPROXIMATION}"
        return (
            f"{self.classes[label]} {P[label]:.1%} against {self.classes[against]} "
            f"{P[against]:.1%}, by {planes}{kind}"
        )


def explain_local(
    model: GeometricMixture,
    X: Any,
    *,
    label: Any = None,
    against: Any = None,
    method: str = "auto",
    n_orders: int = shapley.N_ORDERS,
    random_state: int = 0,
) -> LocalExplanation:
    """Explain rows ``X``: the most probable class of each, or ``label``, compared with the
    runner-up, or ``against``.

    method : "auto" is "exact" for linear and spline models. A Fourier model is not a sum over
        columns. For it, "auto" is "shapley": sampled over ``n_orders`` random orders of the
        columns, with standard errors. "gradient" is the tangent. Both are local approximations.
    """
    if method not in METHODS:
        raise ValueError(f"Got method={method!r}; expected one of {METHODS}.")
    is_fourier = not model.lift.is_additive
    if method == "auto":
        method = "shapley" if is_fourier else "exact"
    X = readable_twice(X)
    encoded = encoded_rows(model, X)
    P = model.answer("predict_proba", encoded)
    S = model.answer("class_scores", encoded)
    of, rival = _two_classes(model, S, label, against)
    if method == "exact":
        parts = contributions.exact(additive(model), encoded, of, rival)
    elif not is_fourier:
        raise ValueError(
            f"Got method={method!r} for a {model.lift.kind} model, whose contributions are exact; "
            "use method='exact' or 'auto'."
        )
    elif method == "gradient":
        parts = contributions.tangent(model, encoded, of, rival)
    else:
        parts = shapley.sampled(model, encoded, of, rival, n_orders, random_state)
    rows = np.arange(len(encoded))
    plane_of, member_of = plane_places(model)
    return LocalExplanation(
        model.columns,
        tuple(model.classes.tolist()),
        given_rows(model, X, encoded),
        of,
        rival,
        P,
        model.answer("responsibilities", encoded),
        parts.by_column,
        parts.bias,
        parts.pooling,
        S[rows, of] - S[rows, rival],
        method,
        parts.error,
        model.planes.class_of,
        plane_of,
        member_of,
    )


def plane_places(model: GeometricMixture) -> tuple[IntArray, IntArray]:
    """Position of each plane within its class and member, and its member, both (P,)."""
    planes = model.planes
    within = np.arange(planes.n_planes) - planes.class_start[planes.class_of]
    each = planes.planes_per_member[planes.class_of]
    return within % each, within // each


def _two_classes(
    model: GeometricMixture, S: FloatArray, label: Any, against: Any
) -> tuple[IntArray, IntArray]:
    """Codes of the class to explain and of the class to compare it with, for each row."""
    n_rows = len(S)
    if against is not None:
        rival = np.full(n_rows, class_code(model, against))
    if label is not None:
        of = np.full(n_rows, class_code(model, label))
    else:
        others = S.copy()
        if against is not None:
            others[np.arange(n_rows), rival] = -np.inf
        of = others.argmax(axis=1)
    if against is None:
        others = S.copy()
        others[np.arange(n_rows), of] = -np.inf
        rival = others.argmax(axis=1)
    if label is not None and against is not None and (of == rival).any():
        raise ValueError(f"Got label and against both {label!r}; expected two classes.")
    return of, rival
