"""The facts of ``effects``: curves, interactions and importances, before any rendering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.table.printing import SmallTable, frame_of, html_of, plain

COLUMNS_SHOWN = 24  # in a terminal; a notebook shows all
MOST_MARKS = 6  # along an axis of few values
EXACT, AVERAGE, PLAIN_MEAN = "exact", "partial dependence", "mean of the planes"


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one column: a curve over ``x``, or a bar for each level.

    kind : "number" or "category";  x : (K,) values, None for a category;  levels : names, or None
    values, lower, upper : (n_curves, K) effects in log-odds, and their band
    missing, missing_lower, missing_upper : (n_curves,) of a missing cell; None if none was missing
    planes_low, planes_high : (n_curves, K) least and largest effect of single planes; None if every
        class has one plane
    shares : (K,) share of the rows at each value (between two values a row counts for both) or
        level;  missing_share : of the missing cells
    density, density_edges : (B,), (B + 1,) histogram of a number
    has_few_values : whether ``x`` are all values that a number has in the rows
    importance, importance_lower, importance_upper : (n_curves,) mean absolute effect over the rows

    What needs rows is None without them. Spline models and levels know their shares without rows.
    """

    column: str
    kind: str
    x: FloatArray | None
    levels: tuple[str, ...] | None
    values: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    missing: FloatArray | None = None
    missing_lower: FloatArray | None = None
    missing_upper: FloatArray | None = None
    planes_low: FloatArray | None = None
    planes_high: FloatArray | None = None
    shares: FloatArray | None = None
    missing_share: float | None = None
    density: FloatArray | None = None
    density_edges: FloatArray | None = None
    has_few_values: bool = False
    importance: FloatArray | None = None
    importance_lower: FloatArray | None = None
    importance_upper: FloatArray | None = None

    @property
    def marks(self) -> list[float] | None:
        """Where the axis of few values has its ticks: at some of them; None for many values."""
        if self.x is None or not self.has_few_values:
            return None
        some: list[float] = self.x[:: -(-len(self.x) // MOST_MARKS)].tolist()
        return some

    @property
    def size(self) -> float:
        """Mean importance over the curves. A line without rows is drawn over four deviations, and
        its mean absolute effect is then a fifth of its range."""
        if self.importance is not None:
            return float(self.importance.mean())
        return float(np.ptp(self.values, axis=1).mean() / 5.0) if self.values.size else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Interaction:
    """What two columns add together, beyond their two effects.

    columns : their names;  x_edges, y_edges : of the cells of a number, None for a category
    x_levels, y_levels : of a category, None for a number
    values : (n_curves, K, L) in log-odds, zero on average along both sides
    shares : (K, L) share of the training rows in each cell, or None
    strength : root mean square of ``values``, in log-odds
    h : Friedman's H, the share of the two columns' joint effect that is interaction (0 to 1)
    missing_first : (n_curves, L) in log-odds, where the cell of the first column is missing or has
        a level that training never saw;  missing_second : (n_curves, K), that of the second one
    missing_both : (n_curves,)

    The three of missing cells are those of a model's own tables, and None otherwise. They are not
    zero on average: with them, effects and interactions add up for every row.
    """

    columns: tuple[str, str]
    x_edges: FloatArray | None
    y_edges: FloatArray | None
    x_levels: tuple[str, ...] | None
    y_levels: tuple[str, ...] | None
    values: FloatArray
    strength: float
    h: float
    shares: FloatArray | None = None
    missing_first: FloatArray | None = None
    missing_second: FloatArray | None = None
    missing_both: FloatArray | None = None

    @property
    def name(self) -> str:
        return " & ".join(self.columns)

    def to_dict(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Effects:
    """All effects of a model.

    classes : of the model;  labels : the class of each curve (the second of two)
    columns : names;  effects : one for each column, in the order of the columns
    interactions : strongest first
    intercept : (n_curves,) log-odds of the average row
    method : "exact", "partial dependence" or "mean of the planes"
    confidence : of the bands;  bands : how they were made, or why there are none
    n_rows : rows given, or None
    """

    classes: tuple[Any, ...]
    labels: tuple[Any, ...]
    columns: tuple[str, ...]
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    intercept: FloatArray
    method: str
    confidence: float
    bands: str
    n_rows: int | None

    def __getitem__(self, column: str) -> Effect:
        for one in self.effects:
            if one.column == column:
                return one
        raise KeyError(f"No effect of {column!r}; there are those of {list(self.columns)}")

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def __len__(self) -> int:
        return len(self.effects)

    @property
    def is_exact(self) -> bool:
        return self.method == EXACT

    @property
    def has_bands(self) -> bool:
        return any(one.lower is not None for one in self.effects)

    def strongest(self, n: int | None = None) -> tuple[Effect, ...]:
        """The effects by falling importance."""
        order = sorted(range(len(self.effects)), key=lambda j: -self.effects[j].size)
        return tuple(self.effects[j] for j in order[:n])

    def unit(self, curve: int = 0) -> str:
        """What a value of a curve is, for the y axis."""
        if len(self.classes) == 2:
            return f"log-odds of {self.labels[curve]}"
        return f"log-odds of {self.labels[curve]} against the mean class"

    # --- InterpretML: ``interpret.show(effects)`` ---

    explanation_type = "global"
    name = "GeometricMixture"

    @property
    def feature_names(self) -> list[str]:
        return interpret_data().feature_names(self)

    @property
    def feature_types(self) -> list[str]:
        return interpret_data().feature_types(self)

    @property
    def selector(self) -> Any:
        return interpret_data().selector(self)

    def data(self, key: int | None = None) -> dict[str, Any]:
        """Names, scores, bounds and density as InterpretML has them: of all terms together (None),
        of one (its position in ``feature_names``), or everything (-1)."""
        return interpret_data().global_data(self, key)

    def visualize(self, key: int | None = None) -> Any:
        """A Plotly figure, drawn by InterpretML."""
        return interpret_data().global_figure(self, key)

    def to_frame(self) -> Any:
        """A pandas frame with a line for each column, class, and value or level."""
        return frame_of(list(self._records()), FRAME_HEADINGS)

    def importance_frame(self) -> Any:
        """A pandas frame with a line for each column and class: importance and its interval."""
        records = [
            {
                "column": one.column,
                "class": label,
                "importance": _at(one.importance, c),
                "lower": _at(one.importance_lower, c),
                "upper": _at(one.importance_upper, c),
            }
            for one in self.strongest()
            for c, label in enumerate(self.labels)
        ]
        return frame_of(records, ("column", "class", "importance", "lower", "upper"))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return {
            **{name: plain(getattr(self, name)) for name in PLAIN},
            "effects": [one.to_dict() for one in self.effects],
            "interactions": [one.to_dict() for one in self.interactions],
        }

    def to_html(self) -> str:
        """Tables of importances and interactions, everything escaped."""
        return html_of("effects", self._tables(len(self.effects)))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables(COLUMNS_SHOWN)))

    def _records(self) -> Iterator[dict[str, Any]]:
        for one in self.effects:
            cells = list(one.levels) if one.x is None else one.x.tolist()  # type: ignore[arg-type]
            for c, label in enumerate(self.labels):
                for k, cell in enumerate(cells):
                    bounds = {
                        name: None if given is None else float(given[c, k])
                        for name, given in {"lower": one.lower, "upper": one.upper}.items()
                    }
                    share = None if one.shares is None else float(one.shares[k])
                    value = {"value": cell, "effect": float(one.values[c, k])}
                    yield {"column": one.column, "class": label, **value, **bounds, "share": share}
                if one.missing is not None:
                    yield {
                        "column": one.column,
                        "class": label,
                        "value": None,
                        "effect": float(one.missing[c]),
                        "lower": _at(one.missing_lower, c),
                        "upper": _at(one.missing_upper, c),
                        "share": one.missing_share,
                    }

    def _tables(self, most: int) -> list[SmallTable]:
        shown = self.strongest(most)
        hidden = len(self.effects) - len(shown)
        rest = f", {hidden} more not shown" if hidden else ""
        of_rows = "" if self.n_rows is None else f", on {self.n_rows} rows"
        unit = self.unit() if len(self.labels) == 1 else "log-odds of each class, mean of them"
        title = f"Effects of {len(self.effects)} columns{of_rows}{rest}: {unit} ({self.method})"
        lines = tuple((one.column, one.size, _interval(one), _range(one)) for one in shown)
        headings = (
            "column",
            "importance",
            f"{self.confidence:.0%} interval",
            "smallest to largest",
        )
        tables = [SmallTable(title, headings, lines)]
        if self.interactions:
            pairs = tuple((one.name, one.strength, one.h) for one in self.interactions)
            tables.append(SmallTable("Interactions", ("columns", "strength", "H"), pairs))
        return tables


FRAME_HEADINGS = ("column", "class", "value", "effect", "lower", "upper", "share")
PLAIN = (
    "classes",
    "labels",
    "columns",
    "intercept",
    "method",
    "is_exact",
    "confidence",
    "bands",
    "n_rows",
)


def edge_text(edge: float) -> str:
    """An edge of a cell of two columns: three digits, without an exponent below a billion.

    >>> edge_text(1_903.4), edge_text(-0.12345)
    ('1,900', '−0.123')
    """
    return f"{float(f'{edge:.3g}'):,.9g}".replace("-", "−", 1)


def interpret_data() -> Any:
    from geomix.explain import interpret_data  # which reads these facts

    return interpret_data


def _at(values: FloatArray | None, place: int) -> float | None:
    return None if values is None else float(values[place])


def _interval(one: Effect) -> str | None:
    if one.importance_lower is None or one.importance_upper is None:
        return None
    return f"{one.importance_lower.mean():.3g} to {one.importance_upper.mean():.3g}"


def _range(one: Effect) -> str | None:
    return f"{one.values.min():.3g} to {one.values.max():.3g}" if one.values.size else None
