"""The regions of planes as rules: inequalities between columns (linear), or proved boxes (spline).

The hard region of plane m of class c is the polyhedron where it beats every plane of another
class,

    R_cm = {x : z_cm(x) >= z_q(x) for every plane q of a class other than c}

with one inequality per q. Under a linear lift these are inequalities between the user's columns (a
level of a category is a 0/1 term). Inequalities that follow from the others are left out, each by
a linear program (HiGHS) within the range of the rows given. Weights are rounded to ``digits``, and
all but ``max_terms`` terms are replaced by their means over the rows. Coverage and purity are
those of the rounded and shortened rule as printed; ``misplaced`` is the share of rows for which it
differs from the region itself.

Curves have no such inequalities; their rule is a box (``boxes.py``), which is sufficient and
proved. Shorter rules, which cover more rows, are in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.cells import class_code, class_codes, encoded_rows
from geomix.explain.local_explanation import plane_places
from geomix.explain.plane_names import counted_from_one
from geomix.explain.shapes import NumberShape
from geomix.geometry.bounds import straight_slopes
from geomix.geometry.boxes import proved_boxes
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain

REDUNDANT = 1e-9


@dataclass(frozen=True)
class Inequality:
    """sum of weight * term >= threshold; a term is a column, or "column=level"."""

    terms: tuple[tuple[str, float], ...]
    threshold: float

    def __str__(self) -> str:
        parts: list[str] = []
        for name, weight in self.terms:
            sign = "-" if weight < 0 else "+" if parts else ""
            size = "" if abs(weight) == 1.0 else f"{abs(weight):.15g} "
            parts.append(f"{sign} {size}{name}".strip())
        return f"{' '.join(parts) or '0'} >= {self.threshold:.15g}"


@dataclass(frozen=True)
class Region:
    """One region.

    label, plane, member : whose region it is
    kind : "polyhedron", the hard region before rounding; "box", a proved part of the soft region;
        "part of a box", the strongest conditions of one, which prove nothing
    conditions : texts that hold together;  inequalities : the same as numbers (polyhedra)
    coverage : share of the rows for which the printed conditions hold;  purity : share of those
        that belong to the class
    largest_error : of a rounded inequality's left side over the rows, in scores
    misplaced : share of the rows for which the printed rule differs from the region
    """

    label: Any
    plane: int
    member: int
    kind: str
    conditions: tuple[str, ...]
    inequalities: tuple[Inequality, ...] = ()
    coverage: float | None = None
    purity: float | None = None
    largest_error: float | None = None
    misplaced: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row can lie in it (polyhedra: within the range of the rows)."""
        return self.conditions == ("never",)


@dataclass(frozen=True)
class Regions:
    """Regions in plane order, without repeated ones."""

    regions: tuple[Region, ...]

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Any:
        return iter(self.regions)

    def __getitem__(self, i: int) -> Region:
        return self.regions[i]

    def to_frame(self) -> Any:
        return frame_of([self._record(one) for one in self.regions], HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        return {"regions": plain([asdict(one) for one in self.regions])}

    def to_html(self) -> str:
        return html_of("regions", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _record(self, rule: Region) -> dict[str, Any]:
        record = {name: getattr(rule, name) for name in HEADINGS[:-1]}
        return record | {"rule": " and ".join(rule.conditions)}

    def _table(self) -> SmallTable:
        rows = tuple(tuple(counted_from_one(self._record(one)).values()) for one in self.regions)
        return SmallTable(f"{len(self.regions)} regions", HEADINGS, rows)


HEADINGS = (
    "label",
    "plane",
    "member",
    "kind",
    "coverage",
    "purity",
    "largest_error",
    "misplaced",
    "rule",
)


def regions(
    model: GeometricMixture,
    X: Any = None,
    y: Any = None,
    *,
    class_: Any = None,
    planes: Iterable[int] | None = None,
    max_terms: int | None = None,
    digits: int = 3,
) -> Regions:
    """The regions of the model's planes: of all classes, or of ``class_``.

    planes : positions of the planes; None: all of them
    X, y : rows for coverage, purity and errors; boxes of spline models need ``X``
    max_terms : most terms of an inequality, or most conditions of a box;  digits : significant
        digits of the numbers
    """
    if max_terms is not None and max_terms < 1:
        raise ValueError(f"Got max_terms={max_terms!r}; expected None or at least 1.")
    if digits < 1:
        raise ValueError(f"Got digits={digits!r}; expected at least 1.")
    form = additive(model)
    encoded = None if X is None else encoded_rows(model, X)
    codes = None if y is None or encoded is None else class_codes(model, y, len(encoded))
    wanted = range(len(model.classes)) if class_ is None else [class_code(model, class_)]
    chosen = None if planes is None else set(planes)
    plane_of, member_of = plane_places(model)
    labels, made = model.classes.tolist(), []
    straight = straight_slopes(form) is not None and form.planes.n_members == 1
    if not straight and encoded is None:
        raise ValueError("The regions of curves are boxes around rows: pass X.")
    for c in wanted:
        for p in range(*form.planes.class_start[c : c + 2]):
            if chosen is not None and p not in chosen:
                continue
            whose = labels[c], int(plane_of[p]), int(member_of[p])
            if straight:
                made.append(_polyhedron(form, p, c, whose, encoded, codes, max_terms, digits))
            else:
                assert encoded is not None
                found = proved_boxes(model, form, p, c, encoded, digits)
                if found is not None:
                    shown = found if max_terms is None else found.shortened(max_terms)
                    kind = "box" if shown.n_conditions == found.n_conditions else "part of a box"
                    facts = _facts(shown.inside, codes, c)
                    made.append(Region(*whose, kind, shown.texts, **facts))
    return Regions(_distinct(made))


def _distinct(found: list[Region]) -> tuple[Region, ...]:
    """The first of several boxes with the same conditions; a polyhedron belongs to its plane."""
    kept: dict[Any, Region] = {}
    for one in found:
        own = (one.plane, one.member) if one.kind == "polyhedron" else one.conditions
        kept.setdefault((one.label, own), one)
    return tuple(kept.values())


def _facts(inside: BoolArray, codes: Any, code: int) -> dict[str, Any]:
    purity = None
    if codes is not None and inside.any():
        purity = float((codes[inside] == code).mean())
    return {"coverage": float(inside.mean()) if len(inside) else None, "purity": purity}


# --- polyhedra ---


@dataclass(frozen=True, eq=False)
class _Terms:
    """Columns and levels side by side, (n_terms,).

    names, scale : of the terms;  W : (P, n_terms) weights;  b : (P,) what is there without them
    groups : terms of each category, of which a row has one
    low, high : ranges of the terms
    """

    names: list[str]
    scale: FloatArray
    W: FloatArray
    b: FloatArray
    groups: list[IntArray]
    low: FloatArray
    high: FloatArray
    values: FloatArray | None


def _terms(form: Additive, encoded: FloatArray | None) -> _Terms:
    names: list[str] = []
    weights: list[FloatArray] = []
    scale: list[float] = []
    groups: list[IntArray] = []
    columns: list[Any] = []
    b = form.planes.biases.copy()
    for shape in form.shapes:
        x = None if encoded is None else encoded[:, shape.column]
        if isinstance(shape, NumberShape):
            slope = shape.outer[:, 1]
            b = b + shape.values[:, 0] - slope * shape.knots[0]
            names.append(shape.name)
            weights.append(slope)
            scale.append(shape.scale)
            columns.append(x)
        else:
            groups.append(np.arange(len(names), len(names) + len(shape.levels)))
            names += [f"[{shape.name}={level}]" for level in shape.levels]
            weights += list(shape.values.T)
            scale += [1.0] * len(shape.levels)
            columns += [
                None if x is None else (x == code) * 1.0 for code in range(len(shape.levels))
            ]
    n = len(names)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    for group in groups:
        low[group], high[group] = 0.0, 1.0
    values = None
    if encoded is not None and len(encoded):
        values = np.column_stack(columns)
        complete = ~np.isnan(values)
        low = np.where(complete, values, np.inf).min(axis=0)
        high = np.where(complete, values, -np.inf).max(axis=0)
        low, high = np.where(low > high, -np.inf, low), np.where(low > high, np.inf, high)
        for group in groups:
            low[group], high[group] = 0.0, 1.0
    return _Terms(names, np.array(scale), np.column_stack(weights), b, groups, low, high, values)


def _polyhedron(
    form: Additive,
    p: int,
    code: int,
    whose: tuple[Any, int, int],
    encoded: FloatArray | None,
    codes: Any,
    max_terms: int | None,
    digits: int,
) -> Region:
    terms = _terms(form, encoded)
    rivals = np.flatnonzero(form.planes.class_of != code)
    G, h = terms.W[p] - terms.W[rivals], terms.b[rivals] - terms.b[p]
    kept = _needed(terms, G, h)
    facts: dict[str, Any]
    if kept is None:
        nothing = None if encoded is None else 0.0
        facts = {"coverage": nothing, "largest_error": nothing, "misplaced": nothing}
        return Region(*whose, "polyhedron", ("never",), **facts)
    mean = np.zeros(len(terms.names)) if terms.values is None else np.nanmean(terms.values, axis=0)
    mean = np.nan_to_num(mean)
    made = [_rounded(terms, G[i], h[i], mean, max_terms, digits) for i in kept]
    inequalities = tuple(made)
    texts = tuple(str(one) for one in inequalities) or ("always",)
    facts = {}
    if encoded is not None and terms.values is not None:
        Z = form.scores(encoded)
        exact = Z[:, p, None] - Z[:, rivals]
        region: BoolArray = np.asarray((exact >= 0.0).all(axis=1))
        lead = _printed_lead(terms, inequalities)
        printed: BoolArray = np.asarray((lead >= 0.0).all(axis=1))
        facts = _facts(printed, codes, code)
        facts |= _rounding(lead, exact[:, kept], printed, region)
    return Region(*whose, "polyhedron", texts, inequalities, **facts)


def _needed(terms: _Terms, G: FloatArray, h: FloatArray) -> list[int] | None:
    """Inequalities that do not follow from the others; None where they cannot all hold."""
    sums = np.zeros((len(terms.groups), len(terms.names)))
    for i, group in enumerate(terms.groups):
        sums[i, group] = 1.0
    equal = {"A_eq": sums, "b_eq": np.ones(len(sums))} if len(sums) else {}
    bounds = np.column_stack([terms.low, terms.high])
    # In deviations: columns of very different units would upset the solver's tolerances.
    unit = terms.scale
    bounds = bounds / unit[:, None]
    G = G * unit
    if equal:
        equal["A_eq"] = sums * unit
    anything = linprog(np.zeros(len(unit)), -G, -h, bounds=bounds, **equal)
    if anything.status == 2:
        return None
    kept = list(range(len(h)))
    for i in range(len(h)):
        rest = [k for k in kept if k != i]
        found = linprog(
            G[i], -G[rest] if rest else None, -h[rest] if rest else None, bounds=bounds, **equal
        )
        if found.status == 0 and found.fun >= h[i] - REDUNDANT * (1.0 + abs(h[i])):
            kept = rest
    return kept


def _rounded(
    terms: _Terms, g: FloatArray, h: float, mean: FloatArray, max_terms: int | None, digits: int
) -> Inequality:
    order = np.argsort(-np.abs(g) * terms.scale, kind="stable")
    order = order[np.abs(g[order]) > 0.0]
    shown, left_out = order[:max_terms], order[len(order) if max_terms is None else max_terms :]
    threshold = float(h - g[left_out] @ mean[left_out])
    pairs = tuple((terms.names[j], float(f"{g[j]:.{digits}g}")) for j in shown)
    return Inequality(pairs, _round_threshold(terms, threshold, g, shown, digits))


def _round_threshold(
    terms: _Terms, threshold: float, g: FloatArray, shown: Any, digits: int
) -> float:
    """To as many decimals as a digit of the strongest term is worth per deviation."""
    largest = float((np.abs(g[shown]) * terms.scale[shown]).max(initial=0.0))
    if largest == 0.0:
        return float(f"{threshold:.{digits}g}")
    decimals = digits - 1 - int(np.floor(np.log10(largest)))
    return float(np.round(threshold, decimals))


def _printed_lead(terms: _Terms, inequalities: tuple[Inequality, ...]) -> FloatArray:
    """Left side less threshold of the printed inequalities, (n, m); NaN, and so not satisfied,
    where a cell that they use is missing."""
    assert terms.values is not None
    place = {name: j for j, name in enumerate(terms.names)}
    lead = np.empty((len(terms.values), len(inequalities)))
    for i, one in enumerate(inequalities):
        left = np.zeros(len(lead))
        for name, weight in one.terms:
            left = left + weight * terms.values[:, place[name]]
        lead[:, i] = left - one.threshold
    return lead


def _rounding(
    lead: FloatArray, exact: FloatArray, printed: BoolArray, region: BoolArray
) -> dict[str, float]:
    """Largest error over complete rows, and the share of rows that the printed rule misplaces."""
    complete = ~np.isnan(lead).any(axis=1)
    error = np.abs(lead[complete] - exact[complete])
    return {
        "largest_error": float(error.max(initial=0.0)),
        "misplaced": float((printed != region)[complete].mean()) if complete.any() else 0.0,
    }
