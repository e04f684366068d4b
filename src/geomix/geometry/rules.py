"""Rules that cover: few short conditions that most rows of a class satisfy (``rules``).

Rules are found greedily. Each next rule covers the most rows that no earlier rule covers, subject
to two shares on all rows given: ``purity``, the share of its rows that belong to its class, and
``fidelity``, the share of its rows for which the model predicts its class. Both are at least the
wanted purity. Purity is measured against ``y`` if given, else against the predictions, so that the
two are equal. Cut points of numbers are quantiles of the rows and the values at which the model's
curves change sign, rounded before they are evaluated. Every figure is that of the rule as printed.

Rules apply to every model, since they need its predictions only. The search is in
``rule_search.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import additive
from geomix.explain.cells import class_code, class_codes, encoded_rows, model_schema
from geomix.explain.shapes import NumberShape
from geomix.geometry.conditions import Condition, Interval, OneOf
from geomix.geometry.rule_search import Draft, RuleColumn, best_draft
from geomix.model import GeometricMixture
from geomix.table.printing import SmallTable, frame_of, html_of, plain
from geomix.table.schema import Column
from geomix.table.sql_text import literal

MOST_CUTS = 20  # cut points of a number: all runs of bins are tried, so time grows with the square
SEARCH_ROWS = 20_000  # rows that the search uses at most; figures are those of all rows
Z_95 = 1.959963984540054  # quantile of the normal distribution, for 95 % intervals


@dataclass(frozen=True)
class Rule:
    """conditions : all of them hold for a row that the rule covers
    n_rows, coverage : number and share of all rows that the rule covers
    purity : share of those that belong to the class;  purity_low, purity_high : 95 % interval
        (Wilson);  fidelity : share of those for which the model predicts the class
    n_new : rows that no earlier rule covers;  new_purity : share of those that belong to the class
    """

    label: Any
    conditions: tuple[Condition, ...]
    n_rows: int
    coverage: float
    purity: float
    purity_low: float
    purity_high: float
    fidelity: float
    n_new: int
    new_purity: float

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True)
class Rules:
    """A list of rules: the first one that covers a row decides.

    rules : in order;  n_rows : rows given;  coverage : share of them that some rule covers;
    purity : share of the covered rows that belong to the class of the first rule that covers them
    default : class of the rows that no rule covers (their most frequent one), or None if a single
        class was asked for;  default_purity : its share among them
    is_labelled : whether purity is measured against labels, else against predictions
    """

    rules: tuple[Rule, ...]
    n_rows: int
    coverage: float
    purity: float | None
    default: Any
    default_purity: float | None
    is_labelled: bool

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __getitem__(self, i: int) -> Rule:
        return self.rules[i]

    def of_class(self, label: Any) -> tuple[Rule, ...]:
        """The rules of one class."""
        return tuple(rule for rule in self.rules if rule.label == label)

    def to_text(self) -> str:
        """The list as "if ... then ... else if ..."."""
        lines = [
            f"{'else if' if i else 'if'} {rule}: {rule.label}" for i, rule in enumerate(self.rules)
        ]
        if self.default is not None:
            lines.append(f"else: {self.default}")
        return "\n".join(lines)

    def to_sql(self) -> str:
        """The list as a CASE expression over the columns; NULL where no rule applies."""
        lines = [
            f"  WHEN {' AND '.join(one.to_sql() for one in rule.conditions) or 'TRUE'} "
            f"THEN {literal(plain(rule.label))}"
            for rule in self.rules
        ]
        default = "NULL" if self.default is None else literal(plain(self.default))
        return "\n".join(
            ["CASE", *(lines or ["  WHEN FALSE THEN NULL"]), f"  ELSE {default}", "END"]
        )

    def to_python(self, name: str = "predict") -> str:
        """The list as the source of a function of one row, a dict by column name; a missing cell
        is None."""
        lines = [f"def {name}(row):"]
        for rule in self.rules:
            test = " and ".join(one.to_python() for one in rule.conditions) or "True"
            lines += [f"    if {test}:", f"        return {plain(rule.label)!r}"]
        return "\n".join([*lines, f"    return {plain(self.default)!r}"]) + "\n"

    def to_frame(self) -> Any:
        return frame_of([self._record(one) for one in self.rules], HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        facts: dict[str, Any] = plain(asdict(self))
        for record, rule in zip(facts["rules"], self.rules, strict=True):
            record["conditions"] = [str(one) for one in rule.conditions]
        return facts | {"text": self.to_text()}

    def to_html(self) -> str:
        return html_of("rules", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _record(self, rule: Rule) -> dict[str, Any]:
        return {name: getattr(rule, name) for name in HEADINGS[:-1]} | {"rule": str(rule)}

    def _table(self) -> SmallTable:
        rows = tuple(tuple(self._record(one).values()) for one in self.rules)
        against = "labels" if self.is_labelled else "predictions"
        title = f"{len(self.rules)} rules cover {self.coverage:.1%} of {self.n_rows} rows" + (
            "" if self.purity is None else f", {self.purity:.1%} correct against {against}"
        )
        if self.default is not None and self.coverage < 1.0:
            title += (
                f"; the other {1.0 - self.coverage:.1%} are mostly {self.default} "
                f"({self.default_purity:.1%})"
            )
        return SmallTable(title, HEADINGS, rows)


HEADINGS = ("label", "coverage", "purity", "purity_low", "purity_high", "fidelity", "n_new", "rule")


def rules(
    model: GeometricMixture,
    X: Any = None,
    y: Any = None,
    *,
    class_: Any = None,
    purity: float = 0.9,
    max_terms: int = 3,
    max_rules: int = 12,
    min_coverage: float = 0.01,
    digits: int = 3,
) -> Rules:
    """Few short rules that cover most rows at a stated purity: one list, or those of ``class_``.

    X : rows to find rules in and to compute their figures from;  y : their labels (None: purity
        is measured against the model's predictions)
    purity : least share of a rule's rows that belong to its class;  max_terms : most conditions
        of a rule;  max_rules : most rules;  min_coverage : least share of the rows that a rule
        adds to those before it;  digits : significant digits of the limits of numbers

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> found = rules(model, X, y, max_terms=2)
    >>> found.coverage > 0.9, min(rule.purity for rule in found) >= 0.9
    (True, True)
    """
    if X is None:
        raise ValueError("Rules are found in rows: pass X.")
    _check_settings(purity, max_terms, max_rules, min_coverage, digits)
    encoded = encoded_rows(model, X)
    if not len(encoded):
        raise ValueError("X has no rows.")
    predicted = model.answer("class_scores", encoded).argmax(axis=1)
    target = predicted if y is None else class_codes(model, y, len(encoded))
    wanted = range(len(model.classes)) if class_ is None else [class_code(model, class_)]
    finder = _Finder(model, encoded, target, predicted, purity, max_terms, min_coverage, digits)
    found = finder.find(list(wanted), max_rules)
    return finder.result(found, class_ is None, y is not None)


def _check_settings(
    purity: float, max_terms: int, max_rules: int, min_coverage: float, digits: int
) -> None:
    for name, share in (("purity", purity), ("min_coverage", min_coverage)):
        if not 0.0 < share <= 1.0:
            raise ValueError(f"Got {name}={share!r}; expected a share above 0 and up to 1.")
    for name, count in (("max_terms", max_terms), ("max_rules", max_rules), ("digits", digits)):
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"Got {name}={count!r}; expected an integer of at least 1.")


@dataclass(frozen=True, eq=False)
class _Found:
    """code : the class;  inside : (n_rows,) which rows the conditions hold for."""

    code: int
    conditions: tuple[Condition, ...]
    inside: BoolArray


class _Finder:
    def __init__(
        self,
        model: GeometricMixture,
        encoded: FloatArray,
        target: IntArray,
        predicted: IntArray,
        purity: float,
        max_terms: int,
        min_coverage: float,
        digits: int,
    ) -> None:
        self.model, self.encoded = model, encoded
        self.target, self.predicted = target, predicted
        self.purity, self.max_terms = purity, max_terms
        self.sample = _sample(len(encoded))
        self.min_new = max(int(np.ceil(min_coverage * len(self.sample))), 2)
        rows = encoded[self.sample]
        turns = _turning_points(model)
        columns = model_schema(model).columns
        self.binned = [
            _binned(column, rows[:, j], turns.get(j, ()), digits)
            for j, column in enumerate(columns)
        ]
        self.columns = [one.column for one in self.binned]

    def find(self, classes: list[int], max_rules: int) -> list[_Found]:
        """Rules in order: always the one that adds most, over all classes."""
        covered = np.zeros(len(self.sample), dtype=bool)
        offers = {code: self._search(code, covered) for code in classes}
        found: list[_Found] = []
        while len(found) < max_rules:
            open_offers = {code: one for code, one in offers.items() if one is not None}
            if not open_offers:
                break
            code = max(open_offers, key=lambda c: open_offers[c].score)
            rule = self._as_printed(code, open_offers[code])
            before = covered
            covered = covered | open_offers[code].inside
            if rule is not None:
                found.append(rule)
                covered = covered | rule.inside[self.sample]  # with fewer conditions, it has more
            for other, offer in open_offers.items():
                if other == code or (offer.inside & covered & ~before).any():
                    offers[other] = self._search(other, covered)
        return self._without_redundant(found)

    def _search(self, code: int, covered: BoolArray) -> Draft | None:
        is_hit = (self.target == code) & (self.predicted == code)
        hits = is_hit[self.sample]
        return best_draft(self.columns, hits, ~covered, self.purity, self.max_terms, self.min_new)

    def _as_printed(self, code: int, draft: Draft) -> _Found | None:
        """The rule with as few conditions as it needs; None if it is not pure on all rows."""
        terms = [self.binned[j].condition(bins) for j, bins in sorted(draft.bins.items())]
        conditions = [one for one in terms if one is not None]
        inside = self._inside(conditions)
        for one in list(conditions):
            fewer = [other for other in conditions if other != one]
            wider = self._inside(fewer)
            if fewer and self._is_pure(code, wider) and self._worth(code, wider, inside):
                conditions, inside = fewer, wider
        if not inside.any() or not self._is_pure(code, inside):
            return None
        return _Found(code, tuple(conditions), inside)

    def _inside(self, conditions: list[Condition]) -> BoolArray:
        inside = np.ones(len(self.encoded), dtype=bool)
        schema = model_schema(self.model)
        for one in conditions:
            j = schema.names.index(one.column)
            inside &= one.holds(self.encoded[:, j], schema.columns[j])
        return inside

    def _is_pure(self, code: int, inside: BoolArray) -> bool:
        return bool(
            inside.any()
            and (self.target[inside] == code).mean() >= self.purity
            and (self.predicted[inside] == code).mean() >= self.purity
        )

    def _worth(self, code: int, wider: BoolArray, inside: BoolArray) -> bool:
        """Whether the rows that a dropped condition adds are as pure as asked for."""
        added = wider & ~inside
        return not added.any() or bool((self.target[added] == code).mean() >= self.purity)

    def _without_redundant(self, found: list[_Found]) -> list[_Found]:
        """Without rules whose rows are all covered by other rules of the same class."""
        kept = list(found)
        for rule in sorted(found, key=lambda one: int(one.inside.sum())):
            others = [one.inside for one in kept if one is not rule and one.code == rule.code]
            if others and not (rule.inside & ~np.any(others, axis=0)).any():
                kept = [one for one in kept if one is not rule]
        return kept

    def result(self, found: list[_Found], has_default: bool, is_labelled: bool) -> Rules:
        labels = self.model.classes.tolist()
        covered = np.zeros(len(self.encoded), dtype=bool)
        n_correct, made = 0, []
        for one in found:
            new = one.inside & ~covered
            covered = covered | one.inside
            n_correct += int((self.target[new] == one.code).sum())
            made.append(self._rule(labels[one.code], one, new))
        default, default_purity = None, None
        if has_default:
            rest = self.target if covered.all() else self.target[~covered]
            code = int(np.bincount(rest).argmax())
            default, default_purity = labels[code], float((rest == code).mean())
        n_covered = int(covered.sum())
        return Rules(
            tuple(made),
            len(covered),
            n_covered / len(covered),
            n_correct / n_covered if n_covered else None,
            default,
            default_purity,
            is_labelled,
        )

    def _rule(self, label: Any, one: _Found, new: BoolArray) -> Rule:
        hits = self.target[one.inside] == one.code
        low, high = wilson_interval(int(hits.sum()), len(hits))
        return Rule(
            label,
            one.conditions,
            len(hits),
            float(one.inside.mean()),
            float(hits.mean()),
            low,
            high,
            float((self.predicted[one.inside] == one.code).mean()),
            int(new.sum()),
            float((self.target[new] == one.code).mean()) if new.any() else float(hits.mean()),
        )


def wilson_interval(n_hits: int, n_rows: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson_interval(9, 10)]
    [0.596, 0.982]
    """
    share, z2 = n_hits / n_rows, Z_95**2
    centre = (share + z2 / (2.0 * n_rows)) / (1.0 + z2 / n_rows)
    half = Z_95 * np.sqrt(share * (1.0 - share) / n_rows + z2 / (4.0 * n_rows**2))
    half /= 1.0 + z2 / n_rows
    # The ends of an interval for 0 or 1 are exact but for rounding.
    return max(min(float(centre - half), share), 0.0), min(max(float(centre + half), share), 1.0)


def _sample(n_rows: int) -> IntArray:
    """Evenly spaced rows, at most SEARCH_ROWS of them."""
    if n_rows <= SEARCH_ROWS:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, SEARCH_ROWS).astype(np.intp)


# --- columns in bins ---


@dataclass(frozen=True, eq=False)
class _BinnedNumber:
    """Bin b holds edges[b] <= x < edges[b + 1]; the outer bins have no limit. Of integers with
    few values the edges are those values, and limits are inclusive."""

    column: RuleColumn
    name: str
    edges: FloatArray
    is_integer: bool

    def condition(self, bins: tuple[int, ...]) -> Condition | None:
        first, last = bins[0], bins[-1]
        n_bins = self.column.n_bins
        low = None if first == 0 else float(self.edges[first])
        if last == n_bins - 1:
            return Interval(self.name, low, None)
        if self.is_integer:
            return Interval(self.name, low, float(np.ceil(self.edges[last + 1]) - 1.0))
        return Interval(self.name, low, float(self.edges[last + 1]), is_open=True)


@dataclass(frozen=True, eq=False)
class _BinnedCategory:
    """Bins are the codes of the levels, then missing, then never seen."""

    column: RuleColumn
    schema: Column

    def condition(self, bins: tuple[int, ...]) -> Condition | None:
        known, n_levels = len(self.schema.levels), self.schema.n_levels
        or_missing = n_levels in bins
        inside = [code for code in range(known) if code in bins]
        outside = [code for code in range(known) if code not in bins]
        takes_other = (self.schema.has_other and known in bins) or n_levels + 1 in bins
        # "(other)" stands for levels without a name, which only a negated condition can include.
        is_negated = takes_other or (not self.schema.has_other and len(outside) < len(inside))
        codes = outside if is_negated else inside
        levels = tuple(self.schema.levels[code] for code in codes)
        if is_negated and not levels and or_missing:
            return None  # every cell
        return OneOf(self.schema.name, levels, is_negated, or_missing)


def _binned(
    column: Column, x: FloatArray, turns: Any, digits: int
) -> _BinnedNumber | _BinnedCategory:
    if column.kind == "category":
        n_levels = column.n_levels
        codes = np.where(np.isnan(x), n_levels, np.where(x < 0.0, n_levels + 1, x))
        return _BinnedCategory(RuleColumn(codes.astype(np.intp), n_levels + 2, False), column)
    present = np.unique(x[~np.isnan(x)])
    is_integer = bool(len(present)) and bool((present == np.round(present)).all())
    cuts = _cut_points(present, x[~np.isnan(x)], turns, digits, is_integer)
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    codes = np.searchsorted(cuts, x, "right")
    codes = np.where(np.isnan(x), len(cuts) + 1, codes)
    ordered = RuleColumn(codes.astype(np.intp), len(cuts) + 1, True)
    return _BinnedNumber(ordered, column.name, edges, is_integer)


def _cut_points(
    present: FloatArray, x: FloatArray, turns: Any, digits: int, is_integer: bool
) -> FloatArray:
    """Ascending cuts within the range of the rows: x < cut or x >= cut."""
    if len(present) < 2:
        return np.empty(0)
    if len(present) <= MOST_CUTS:
        cuts = present[1:]
        if not is_integer:  # halfway between neighbours, in few digits
            cuts = np.array([_short_between(a, b, digits) for a, b in pairwise(present)])
        return np.unique(cuts)
    quantiles = np.quantile(x, np.linspace(0.0, 1.0, MOST_CUTS + 2)[1:-1])
    wanted = np.concatenate([quantiles, np.asarray(turns, dtype=float)])
    rounded = [np.ceil(cut) if is_integer else float(f"{cut:.{digits}g}") for cut in wanted]
    if is_integer:
        rounded = [float(f"{cut:.{max(digits, 1)}g}") for cut in rounded]
    cuts = np.unique(rounded)
    return cuts[(cuts > present[0]) & (cuts <= present[-1])]


def _short_between(low: float, high: float, digits: int) -> float:
    """A cut in (low, high] with as few digits as possible, at least ``digits``."""
    middle = low / 2.0 + high / 2.0
    for more in range(digits, 18):
        cut = float(f"{middle:.{more}g}")
        if low < cut <= high:
            return cut
    return high


def _turning_points(model: GeometricMixture) -> dict[int, list[float]]:
    """By column, where a class's mean curve changes sign; none for a Fourier model."""
    if not model.lift.is_additive:
        return {}
    form = additive(model).centred()
    planes = form.planes
    mean = (planes.class_of == np.arange(planes.n_classes)[:, None]) / planes.per_class[:, None]
    points: dict[int, list[float]] = {}
    for j, shape in enumerate(form.shapes):
        if not isinstance(shape, NumberShape):
            continue
        knots, curves = shape.knots, mean @ shape.values
        if len(knots) == 1:
            points[j] = [float(knots[0])]
            continue
        crosses = (np.sign(curves[:, :-1]) != np.sign(curves[:, 1:])).any(axis=0)
        points[j] = knots[1:][crosses][:MOST_CUTS].tolist()
    return points
