"""A model as one SQL query, for linear and spline lifts.

    cells     x_j   = the columns, numbers as doubles, NaN as NULL
    planes    z_p   = bias + sum over columns of CASE ... END
    tops      t_g   = greatest z of each group of planes (a class, or a member of it)
    scores    s_c   = mean over groups of (t_g + ln(sum exp(k (z_p - t_g))) / k) / T
    odds      o_c   = exp(s_c - greatest s)
    answer    label, responsible plane, p_c = o_c / sum o

NULL and NaN are missing. Names are quoted identifiers, qualified by the table's alias: SQLite would
read an unknown quoted name as text. Levels are literals. So neither can become code. Every number
has an exponent, which makes it a double and not a decimal. Sums are bracketed as a balanced tree,
since databases limit the depth of an expression. Unlike in the other exports, numbers are not
clipped to 1e150 standard deviations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.column_terms import CurveTerm, LevelTerm, LineTerm, PairTerm
from geomix.export.tables import ModelTables, model_tables
from geomix.model import GeometricMixture
from geomix.table.schema import Column
from geomix.table.sql_text import literal, number, quoted

# For each database: its function for the greatest of several values of a row, and how a step of
# the query is computed before the next. SQLite and PostgreSQL would otherwise insert the text of
# each step into the next, which grows with the cube of the planes.
DIALECTS = {
    "duckdb": ("GREATEST", "AS"),
    "postgres": ("GREATEST", "AS MATERIALIZED"),
    "sqlite": ("MAX", "AS MATERIALIZED"),
}
OWN = "_geomix_"  # prefix of the query's own names
NAN = "CAST('NaN' AS DOUBLE PRECISION)"  # equal to itself in DuckDB and PostgreSQL
MOST_IN_SQLITE = 2_000  # columns of a result
CASE_SENSITIVE = ("postgres",)  # elsewhere "a" and "A" are one column


def to_sql(
    model: GeometricMixture,
    source: str,
    *,
    keep: Sequence[str] = (),
    dialect: str = "duckdb",
) -> str:
    """A query that predicts every row of the table ``source``.

    Its columns are those of ``keep`` (an identifier, for example), ``prediction``, ``plane`` (the
    responsible one, counted within its class) and ``p_<label>`` for each class. ``dialect`` is
    "duckdb", "sqlite" (3.35 or later, with its mathematical functions) or "postgres" (12 or later).

    Examples
    --------
    >>> import geomix
    >>> from sklearn.datasets import load_iris
    >>> clf = geomix.GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3, random_state=0)
    >>> query = to_sql(clf.fit(*load_iris(return_X_y=True)).model_, "flowers", keep=["id"])
    >>> query.splitlines()[-2:]
    ['  exp("_geomix_s2" - "_geomix_top") / "_geomix_total" AS "p_2"', 'FROM "_geomix_odds"']
    """
    if dialect not in DIALECTS:
        raise ValueError(f"Got dialect={dialect!r}; expected one of {', '.join(DIALECTS)}.")
    facts = model_tables(model)
    _check_exportable(facts, keep, dialect)
    kept = [quoted(name) for name in keep]
    cells = {f"x{j}": _cell(facts.columns[j], dialect) for j in _used_columns(facts)}
    function, computed_first = DIALECTS[dialect]
    greatest = _greatest(function)
    grids = {"grids": (_pair_cells(facts), _own("cells"))} if _pairs(facts) else {}
    stages = {
        "cells": (cells, f"{quoted(source)} AS {_own('rows')}"),
        **grids,
        "planes": (_plane_columns(facts), _own("grids" if grids else "cells")),
        "tops": (_top_columns(facts, greatest), _own("planes")),
        "scores": (_score_columns(facts), _own("tops")),
        "best": (_best_columns(facts, greatest), _own("scores")),
        "odds": (_odds_columns(facts), _own("best")),
    }
    carried = [f"{_own('rows')}.{name} AS {name}" for name in kept]
    steps = []
    for name, (made, origin) in stages.items():
        listed = carried + [f"{text} AS {_own(one)}" for one, text in made.items()]
        body = ",\n    ".join(listed or ["1 AS one"])
        steps.append(f"{_own(name)} {computed_first} (\n  SELECT\n    {body}\n  FROM {origin}\n)")
        _check_width(len(listed), dialect)
        # The planes alone read the cells, and the scores the planes.
        if name in ("cells", "grids"):
            carried = kept
        elif name == "scores":
            carried = kept + [_own(one) for one in made]
        else:
            carried = carried + [_own(one) for one in made]
    _check_width(len(kept) + 2 + len(facts.classes), dialect)
    answers = ",\n  ".join([*kept, *_answers(facts)])
    return "WITH " + ",\n".join(steps) + f"\nSELECT\n  {answers}\nFROM {_own('odds')}\n"


def _check_exportable(facts: ModelTables, keep: Sequence[str], dialect: str) -> None:
    if facts.fourier is not None:
        raise ValueError(
            "A Fourier lift has no SQL form; export it to ONNX, C or JSON, or fit with "
            "lift='linear' or lift='spline'."
        )
    for term in facts.terms:
        for j in _columns_of(term):
            _check_one_kind(facts.columns[j])
    for name in [*keep, *(column.name for column in facts.columns)]:
        if name.startswith(OWN):
            raise ValueError(
                f"The column {name!r} begins with {OWN!r}, the prefix of the query's own names; "
                "rename it before fit."
            )
    if dialect not in CASE_SENSITIVE:
        _check_names_differ(facts.columns, dialect)


def _check_width(n_columns: int, dialect: str) -> None:
    if dialect == "sqlite" and n_columns > MOST_IN_SQLITE:
        raise ValueError(
            f"A step of the query needs {n_columns:,} columns for the model's classes and planes, "
            f"and SQLite has at most {MOST_IN_SQLITE:,}; use dialect='duckdb', or export to C or "
            "JSON."
        )


def _check_names_differ(columns: Sequence[Column], dialect: str) -> None:
    """SQLite and DuckDB ignore case in names, so two such columns would be read as one."""
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.casefold(), column.name)
        if other != column.name:
            raise ValueError(
                f"The columns {other!r} and {column.name!r} are one name in {dialect}, which "
                "ignores case; rename one of them before fit, or use dialect='postgres'."
            )


def _check_one_kind(column: Column) -> None:
    kinds = {"text" if isinstance(level, str) else "numbers" for level in column.levels}
    if len(kinds) > 1:
        raise ValueError(
            f"The levels of column {column.name!r} are text and numbers; a column of a database "
            "is one or the other."
        )


# --- texts ---


def _own(name: str) -> str:
    return f'"{OWN}{name}"'


def _sum(texts: list[str]) -> str:
    """A sum as a balanced tree."""
    if len(texts) <= 4:
        return " + ".join(texts) if texts else number(0.0)
    middle = len(texts) // 2
    return f"({_sum(texts[:middle])}) + ({_sum(texts[middle:])})"


def _greatest(function: str) -> Callable[[list[str]], str]:
    """The greatest of some expressions; one alone is itself, since MAX(x) aggregates in SQLite."""
    most = 64  # arguments of a function; SQLite accepts 127

    def greatest(texts: list[str]) -> str:
        if len(texts) == 1:
            return texts[0]
        if len(texts) <= most:
            return f"{function}({', '.join(texts)})"
        parts = [greatest(texts[at : at + most]) for at in range(0, len(texts), most)]
        return greatest(parts)

    return greatest


# --- stages ---


def _used_columns(facts: ModelTables) -> list[int]:
    return sorted({j for term in facts.terms for j in _columns_of(term)})


def _columns_of(term: Any) -> tuple[int, ...]:
    return term.columns if isinstance(term, PairTerm) else (term.column,)


def _pair_cells(facts: ModelTables) -> dict[str, str]:
    """The cell of each pair's grid, counted row by row, beside the cells of the columns."""
    made = {f"x{j}": _own(f"x{j}") for j in _used_columns(facts)}
    for k, term in enumerate(_pairs(facts)):
        first, second = (
            _side(facts.columns[j], _own(f"x{j}"), cut, n)
            for j, cut, n in zip(term.columns, term.cuts, term.shape, strict=True)
        )
        made[f"g{k}"] = f"({first}) * {term.shape[1]} + ({second})"
    return made


def _pairs(facts: ModelTables) -> list[PairTerm]:
    return [term for term in facts.terms if isinstance(term, PairTerm)]


def _side(column: Column, x: str, cut: FloatArray | None, n_cells: int) -> str:
    """The cell along one side of a grid; the last one is for missing and unseen values."""
    steps = [f"WHEN {x} IS NULL THEN {n_cells - 1}"]
    if cut is None:
        steps += [f"WHEN {x} = {literal(one)} THEN {i}" for i, one in enumerate(column.levels)]
        unseen = len(column.levels) if column.has_other else n_cells - 1
        return f"CASE {' '.join(steps)} ELSE {unseen} END"
    steps += [f"WHEN {x} < {number(one)} THEN {i}" for i, one in enumerate(cut)]
    return f"CASE {' '.join(steps)} ELSE {len(cut)} END"


def _pair_values(term: PairTerm, k: int, plane: int) -> str:
    values = term.values[:, plane]
    steps = [f"WHEN {i} THEN {number(values[i])}" for i in np.flatnonzero(values).tolist()]
    return f"CASE {_own(f'g{k}')} {' '.join(steps)} ELSE {number(0.0)} END" if steps else ""


def _cell(column: Column, dialect: str) -> str:
    """A column of the source: numbers as doubles, NaN as NULL."""
    cell = f"{_own('rows')}.{quoted(column.name)}"
    x = f"CAST({cell} AS DOUBLE PRECISION)"
    if dialect == "sqlite":  # which stores NaN as NULL
        return x if column.kind == "number" else cell
    if column.kind == "number":
        return f"NULLIF({x}, {NAN})"
    # Levels of 1.0 and 2.0 are integers; the column of the database may hold doubles all the same.
    if any(type(level) in (int, float) for level in column.levels):
        return f"CASE WHEN {x} = {NAN} THEN NULL ELSE {cell} END"
    return cell


def _plane_columns(facts: ModelTables) -> dict[str, str]:
    made = {}
    for plane in range(facts.n_planes):
        alone = [term for term in facts.terms if not isinstance(term, PairTerm)]
        terms = [_term(term, facts.columns[term.column], plane) for term in alone]
        terms += [_pair_values(term, k, plane) for k, term in enumerate(_pairs(facts))]
        made[f"z{plane}"] = _sum([number(facts.bias[plane]), *(text for text in terms if text)])
    return made


def _term(term: Any, column: Column, plane: int) -> str:
    """What a column adds to a plane; "" where that is zero for every cell."""
    missing = float(term.missing[plane])
    x = _own(f"x{term.column}")
    if isinstance(term, LevelTerm):
        return _levels(term.values[:, plane], missing, x, column)
    if isinstance(term, LineTerm):
        weight = float(term.weights[plane])
        if weight == 0.0 and missing == 0.0:
            return ""
        line = f"{number(weight)} * (({x} - {number(term.mean)}) / {number(term.scale)})"
        return f"COALESCE({line}, {number(missing)})"
    return _curve(term, x, plane, missing)


def _curve(term: CurveTerm, x: str, plane: int, missing: float) -> str:
    values, knots = term.values[:, plane], term.knots
    if not values.any() and missing == 0.0:
        return ""
    steps = [f"WHEN {x} IS NULL THEN {number(missing)}"]
    steps.append(f"WHEN {x} <= {number(knots[0])} THEN {number(values[0])}")
    for left, right, low, high in zip(knots, knots[1:], values, values[1:], strict=False):
        rise = f"{number(high - low)} * (({x} - {number(left)}) / {number(right - left)})"
        steps.append(f"WHEN {x} < {number(right)} THEN {number(low)} + {rise}")
    return f"CASE {' '.join(steps)} ELSE {number(values[-1])} END"


def _levels(values: FloatArray, missing: float, cell: str, column: Column) -> str:
    unseen = float(values[-1]) if column.has_other else 0.0
    if not values.any() and missing == 0.0:
        return ""
    steps = [f"WHEN {cell} IS NULL THEN {number(missing)}"]
    for level, value in zip(column.levels, values, strict=False):
        steps.append(f"WHEN {cell} = {literal(level)} THEN {number(value)}")
    return f"CASE {' '.join(steps)} ELSE {number(unseen)} END"


def _top_columns(facts: ModelTables, greatest: Callable[[list[str]], str]) -> dict[str, str]:
    return {
        f"t{g}": greatest([_own(f"z{plane}") for plane in group])
        for g, group in enumerate(facts.groups)
    }


def _share(facts: ModelTables, plane: int, group: int) -> str:
    return f"exp({number(facts.sharpness)} * ({_own(f'z{plane}')} - {_own(f't{group}')}))"


def _score_columns(facts: ModelTables) -> dict[str, str]:
    """Calibrated scores of the classes, and the share of each plane in its group, where a class
    has several planes."""
    pooled, shares = [], {}
    several = _with_several_planes(facts)
    for g, group in enumerate(facts.groups):
        top = _own(f"t{g}")
        if len(group) == 1:
            pooled.append(top)
            if g // facts.n_members in several:
                shares[f"a{group[0]}"] = number(1.0)
            continue
        total = _sum([_share(facts, plane, g) for plane in group])
        pooled.append(f"({top} + ln({total}) / {number(facts.sharpness)})")
        shares |= {f"a{plane}": f"{_share(facts, plane, g)} / ({total})" for plane in group}
    scores = {}
    divisor = number(facts.n_members * facts.temperature)
    for c in range(len(facts.classes)):
        own = pooled[c * facts.n_members : (c + 1) * facts.n_members]
        scores[f"s{c}"] = f"({_sum(own)}) / {divisor}"
    return scores | shares


def _best_columns(facts: ModelTables, greatest: Callable[[list[str]], str]) -> dict[str, str]:
    """The greatest score, and the greatest share within each class of several planes."""
    starts = facts.class_start
    made = {"top": greatest([_own(f"s{c}") for c in range(len(facts.classes))])}
    for c in _with_several_planes(facts):
        first, end = starts[c : c + 2]
        made[f"b{c}"] = greatest([_own(f"a{plane}") for plane in range(first, end)])
    return made


def _with_several_planes(facts: ModelTables) -> list[int]:
    ends = enumerate(itertools.pairwise(facts.class_start))
    return [c for c, (first, end) in ends if end - first > 1]


def _odds_columns(facts: ModelTables) -> dict[str, str]:
    return {"total": _sum([_odds(c) for c in range(len(facts.classes))])}


def _odds(c: int) -> str:
    return f"exp({_own(f's{c}')} - {_own('top')})"


def _answers(facts: ModelTables) -> list[str]:
    """The first of equals wins, as in ``predict``."""
    is_best = [f"WHEN {_own(f's{c}')} = {_own('top')} THEN" for c in range(len(facts.classes))]
    labels = [f"{is_best[c]} {literal(label)}" for c, label in enumerate(facts.classes)]
    planes = [f"{when} {_responsible(facts, c)}" for c, when in enumerate(is_best)]
    return [
        f"CASE {' '.join(labels)} END AS {quoted('prediction')}",
        f"CASE {' '.join(planes)} END AS {quoted('plane')}",
        *(
            f"{_odds(c)} / {_own('total')} AS {quoted(f'p_{label}')}"
            for c, label in enumerate(facts.classes)
        ),
    ]


def _responsible(facts: ModelTables, c: int) -> str:
    first, end = facts.class_start[c : c + 2]
    if end - first == 1:
        return "0"
    steps = [
        f"WHEN {_own(f'a{plane}')} = {_own(f'b{c}')} THEN {plane - first}"
        for plane in range(first, end)
    ]
    return f"CASE {' '.join(steps)} END"
