"""The model as a whole: ``explain_global``.

Plane cards, the curve of every column in every plane, findings and, with rows, how much each column
matters. A model stores no training rows, so whatever needs rows is computed from the rows given and
is None without them. With rows that training has not seen, purity, calibration and errors are those
to expect on new data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.errors import NoShapes
from geomix.explain import findings
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import class_codes, encoded_rows
from geomix.explain.effect_facts import Effects
from geomix.explain.effects import effects
from geomix.explain.importances import importances
from geomix.explain.plane_cards import PlaneCard, answered_rows, plane_cards
from geomix.explain.plane_names import counted_from_one
from geomix.explain.shapes import NumberShape, Shape
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

# A terminal shows this many planes and columns; a notebook shows all of them.
CARDS_SHOWN, COLUMNS_SHOWN = 24, 24
LINE_REACH = 2.0  # a straight line is drawn from mean - 2 to mean + 2 standard deviations


@dataclass(frozen=True, eq=False)
class ColumnCurves:
    """The shape of one column in every plane, in the column's own units.

    kind : "number" or "category";  x : (K,) knots, or two points of a straight line, or None
    levels : names of a category's levels, or None
    values : (P, K) or (P, L) what the column adds to each plane's score, less the classes' mean
    missing : (P,) what a missing cell adds
    by_class : (C, K) or (C, L) and missing_by_class : (C,) the mean over a class's planes, weighted
        by their usage where rows were given; zero in sum over the classes
    log_odds : (K,) or (L,) and missing_log_odds : for two classes, what the column adds to
        log(p_second / p_first); exact if each class has one plane. None for more classes
    is_straight : whether the line continues beyond ``x``; otherwise the curve is constant there
    """

    column: str
    kind: str
    x: FloatArray | None
    levels: tuple[str, ...] | None
    values: FloatArray
    missing: FloatArray
    by_class: FloatArray
    missing_by_class: FloatArray
    is_straight: bool
    log_odds: FloatArray | None = None
    missing_log_odds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "kind": self.kind,
            "x": plain(self.x),
            "levels": plain(self.levels),
            "values": plain(self.values),
            "missing": plain(self.missing),
            "by_class": plain(self.by_class),
            "missing_by_class": plain(self.missing_by_class),
            "is_straight": self.is_straight,
            "log_odds": plain(self.log_odds),
            "missing_log_odds": self.missing_log_odds,
        }


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """A model as plane cards, curves and findings.

    lift, n_members, sharpness, temperature : of the model
    is_exact : False for a Fourier model, whose cards are approximations and which has no curves
    n_rows : rows given, or None;  accuracy : on them, if labelled
    cards : one for each plane, in plane order;  curves : one for each column
    importances : (n_columns,) mean size of a column's contribution to the margin between winner and
        runner-up, over the rows; None without rows or for a Fourier model
    findings : see docs/guide/findings.md
    effects : as ``model.effects(X)`` returns them; None for a Fourier model without rows
    """

    classes: tuple[Any, ...]
    columns: tuple[str, ...]
    lift: str
    n_members: int
    sharpness: float
    temperature: float
    is_exact: bool
    n_rows: int | None
    accuracy: float | None
    cards: tuple[PlaneCard, ...]
    curves: tuple[ColumnCurves, ...]
    importances: FloatArray | None
    findings: tuple[findings.Finding, ...]
    effects: Effects | None = None

    # --- InterpretML: ``interpret.show(explanation)`` ---

    explanation_type = "global"
    name = "GeometricMixture"

    @property
    def feature_names(self) -> list[str]:
        return self._known_effects().feature_names

    @property
    def feature_types(self) -> list[str]:
        return self._known_effects().feature_types

    @property
    def selector(self) -> Any:
        return self._known_effects().selector

    def data(self, key: int | None = None) -> dict[str, Any]:
        """Names, scores, bounds and density as InterpretML has them: of all terms together (None),
        of one (its position in ``feature_names``), or everything (-1)."""
        return self._known_effects().data(key)

    def visualize(self, key: int | None = None) -> Any:
        """A Plotly figure, drawn by InterpretML."""
        return self._known_effects().visualize(key)

    def _known_effects(self) -> Effects:
        if self.effects is None:
            raise NoShapes("A Fourier model has effects with rows alone; pass X to explain_global.")
        return self.effects

    def curve(self, column: str) -> ColumnCurves:
        """The curves of one column, by its name."""
        for one in self.curves:
            if one.column == column:
                return one
        raise KeyError(
            f"No curves of {column!r}; there are those of {[c.column for c in self.curves]}"
        )

    def to_frame(self) -> Any:
        """A pandas frame with a line for each plane."""
        return frame_of([self._record(card) for card in self.cards], CARD_HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        importances = None
        if self.importances is not None:
            importances = dict(zip(self.columns, self.importances.tolist(), strict=True))
        return {
            "classes": plain(list(self.classes)),
            "columns": list(self.columns),
            "lift": self.lift,
            "n_members": self.n_members,
            "sharpness": self.sharpness,
            "temperature": self.temperature,
            "is_exact": self.is_exact,
            "n_rows": self.n_rows,
            "accuracy": self.accuracy,
            "cards": [card.to_dict() for card in self.cards],
            "curves": [one.to_dict() for one in self.curves],
            "importances": importances,
            "findings": [one.to_dict() for one in self.findings],
        }

    def to_html(self) -> str:
        """Tables of cards, columns and findings, everything escaped."""
        return html_of("global", self._tables(len(self.cards), len(self.columns)))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables(CARDS_SHOWN, COLUMNS_SHOWN)))

    def _record(self, card: PlaneCard) -> dict[str, Any]:
        record = {name: getattr(card, name, None) for name in CARD_HEADINGS}
        strongest = [f"{one.column} ({one.direction})" for one in card.columns]
        return record | {"columns": ", ".join(strongest)}

    def _tables(self, most_cards: int, most_columns: int) -> list[SmallTable]:
        cards = self.cards[:most_cards]
        left_out = len(self.cards) - len(cards)
        rest = f", {left_out} more not shown" if left_out else ""
        of_rows = "" if self.n_rows is None else f", on {self.n_rows} rows"
        about = "" if self.is_exact else "; strengths are local approximations"
        title = f"{len(self.cards)} planes of a {self.lift} model{of_rows}{rest}{about}"
        lines = tuple(tuple(counted_from_one(self._record(card)).values()) for card in cards)
        tables = [SmallTable(title, CARD_HEADINGS, lines)]
        if self.importances is not None:
            order = np.argsort(-self.importances, kind="stable")[:most_columns]
            strongest = tuple((self.columns[j], float(self.importances[j])) for j in order)
            hidden = len(self.columns) - len(order)
            title = f"{len(self.columns)} columns" + (
                f", {hidden} more not shown" if hidden else ""
            )
            tables.append(SmallTable(title, ("column", "mean contribution"), strongest))
        if self.findings:
            found = tuple((one.code, one.message) for one in self.findings)
            tables.append(SmallTable("Findings", ("code", "finding"), found))
        return tables


CARD_HEADINGS = (
    "label",
    "plane",
    "member",
    "usage",
    "own_usage",
    "n_rows",
    "purity",
    "confidence",
    "calibration_error",
    "error_share",
    "columns",
)


def explain_global(
    model: GeometricMixture,
    X: Any = None,
    y: Any = None,
    *,
    n_columns: int = 5,
    ignore: Iterable[str] = (),
) -> GlobalExplanation:
    """Explain the model: from itself, from rows ``X`` (usage, typical rows, importances) and from
    their labels ``y`` (purity, calibration, errors).

    n_columns : strongest columns on each card;  ignore : codes of findings not to report.
    """
    if X is None and y is not None:
        raise ValueError("y was given without X; pass both, X alone, or neither.")
    rows = None
    if X is not None:
        encoded = encoded_rows(model, X)
        codes = None if y is None else class_codes(model, y, len(encoded))
        rows = answered_rows(model, encoded, codes)
    cards = plane_cards(model, rows, n_columns)
    form = None if not model.lift.is_additive else additive(model)
    accuracy = None
    if rows is not None and rows.y is not None:
        accuracy = float((rows.predicted == rows.y).mean())
    return GlobalExplanation(
        tuple(model.classes.tolist()),
        model.columns,
        model.lift.kind,
        model.planes.n_members,
        model.sharpness,
        model.temperature,
        form is not None,
        None if rows is None else len(rows.encoded),
        accuracy,
        cards,
        () if form is None else _curves(form.centred(), cards),
        None if form is None or rows is None else importances(model, rows.encoded, rows.P),
        findings.find(model, cards, rows, ignore),
        None if form is None and X is None else effects(model, X),
    )


def _curves(form: Additive, cards: tuple[PlaneCard, ...]) -> tuple[ColumnCurves, ...]:
    share = _plane_shares(form, cards)
    # One function subtracted from all classes changes no probability.
    share = share - share.mean(axis=0)
    return tuple(_curve(shape, share, form.temperature) for shape in form.shapes)


def _plane_shares(form: Additive, cards: tuple[PlaneCard, ...]) -> FloatArray:
    """(C, P) weights of a class's planes in its mean curve; one in sum."""
    used = np.array([1.0 if card.usage is None else card.usage for card in cards])
    own = form.planes.class_of == np.arange(form.planes.n_classes)[:, None]
    weight = own * used
    empty = weight.sum(axis=1) == 0.0
    weight[empty] = own[empty]
    shares: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return shares


def _curve(shape: Shape, share: FloatArray, temperature: float) -> ColumnCurves:
    if isinstance(shape, NumberShape):
        x, is_straight = shape.knots, bool(shape.outer.any())
        if len(x) == 1:
            x = x[0] + LINE_REACH * shape.scale * np.array([-1.0, 1.0])
        values, levels = shape(x).T, None
    else:
        x, levels, values, is_straight = None, shape.levels, shape.values, False
    by_class, missing_by_class = share @ values, share @ shape.missing
    log_odds, missing_log_odds = None, None
    if len(share) == 2:
        log_odds = (by_class[1] - by_class[0]) / temperature
        missing_log_odds = float(missing_by_class[1] - missing_by_class[0]) / temperature
    return ColumnCurves(
        shape.name,
        shape.kind,
        x,
        levels,
        values,
        shape.missing,
        by_class,
        missing_by_class,
        is_straight,
        log_odds,
        missing_log_odds,
    )
