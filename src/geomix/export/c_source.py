"""A model as one C99 file: static tables, no allocation, only ``math.h``.

The file holds the same tables as the JSON form and the loops that read them. Only what the model
needs is written, so it compiles without warnings under ``-Wall -Wextra -pedantic``.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from geomix.explain.column_terms import PairTerm
from geomix.export.c_code import (
    ADD,
    ANGLES,
    DIRECT,
    GRID_CELL,
    LEVEL_CODE,
    LOOPS,
    POOLING,
    PUBLIC,
)
from geomix.export.tables import ModelTables, model_tables
from geomix.model import GeometricMixture

NUMBERS_PER_LINE = 4
PLAIN_BYTES = (string.ascii_letters + string.digits + " _-.,:;=+()/<>").encode()
LONGEST_TEXT = 4000  # C99 guarantees 4095 characters in a string
# For each kind of term: the name of its count, and the fields that become arrays.
TABLES = {
    "line": ("N_LINES", "column", "mean", "scale", "weights", "missing"),
    "curve": ("N_CURVES", "column", "start", "knots", "values", "missing"),
    "levels": ("N_LEVELS", "column", "start", "values", "missing"),
}


def to_c(model: GeometricMixture, prefix: str = "") -> str:
    """The model as the text of a C file.

    It defines ``int predict(const double *row, double *probabilities)``, which returns the
    position of the most probable class, and ``int responsible_plane(const double *row)``, the
    plane that carries that class. A row has one double per column: a number or the code of a
    level; NAN is missing, -1 a level never seen. Every public name of the file starts with
    ``prefix``.

    Examples
    --------
    >>> import geomix
    >>> from sklearn.datasets import load_iris
    >>> clf = geomix.GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3, random_state=0)
    >>> text = to_c(clf.fit(*load_iris(return_X_y=True)).model_, prefix="iris_")
    >>> "int iris_predict(const double *row, double *probabilities)" in text
    True
    """
    if not re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*)?", prefix):
        raise ValueError(
            f"Got prefix={prefix!r}; expected letters, digits and _, starting with a letter."
        )
    facts = model_tables(model)
    parts = [
        _opening(facts, prefix),
        _names(facts, prefix),
        _tables(facts),
        _sums(facts),
        _plane_scores(facts),
        POOLING,
        _public(prefix),
    ]
    return "\n".join(part for part in parts if part)


# --- literals ---


def _number(value: float) -> str:
    return repr(float(value))


def _array(kind: str, name: str, values: Iterable[Any]) -> str:
    """A static array; an empty text for no values, since C has no empty arrays."""
    texts = [_number(one) if kind == "double" else str(int(one)) for one in values]
    if not texts:
        return ""
    lines = [
        "    " + ", ".join(texts[at : at + NUMBERS_PER_LINE])
        for at in range(0, len(texts), NUMBERS_PER_LINE)
    ]
    return f"static const {kind} {name}[{len(texts)}] = {{\n" + ",\n".join(lines) + "\n};\n"


def _text(value: Any) -> str:
    """A string literal of plain ASCII: every other byte, quotes and ? (trigraphs) in octal."""
    encoded = str(value).encode("utf-8", "surrogatepass")
    if len(encoded) > LONGEST_TEXT:
        raise ValueError(
            f"The name {str(value)[:40]!r}... has {len(encoded)} bytes; C guarantees no more than "
            f"{LONGEST_TEXT} in a string. Shorten it before fit."
        )
    safe = (chr(byte) if byte in PLAIN_BYTES else f"\\{byte:03o}" for byte in encoded)
    return '"' + "".join(safe) + '"'


def _text_array(name: str, values: Iterable[Any]) -> str:
    texts = [_text(value) for value in values]
    return f"const char *const {name}[{len(texts)}] = {{\n    " + ",\n    ".join(texts) + "\n};\n"


# --- the parts of the file ---


def _opening(facts: ModelTables, prefix: str) -> str:
    n_classes = len(facts.classes)
    return f"""\
/* A geomix model: {len(facts.columns)} columns, {n_classes} classes, {facts.n_planes} planes.

   int {prefix}predict(const double *row, double *probabilities);
   int {prefix}responsible_plane(const double *row);

   row: {len(facts.columns)} doubles, a number or the code of a level each; NAN is missing. A level
   never seen is "(other)" where the column has that, else -1. probabilities: {n_classes} doubles,
   written. predict returns the position of the most probable class in {prefix}class_names;
   responsible_plane the plane that carries it, counted within the class. Both may be called from
   several threads. {prefix}column_names names the columns. The level of column j with code k is
   called {prefix}level_names[{prefix}first_level[j] + k]. */

#include <math.h>

#define N_COLUMNS {len(facts.columns)}
#define N_CLASSES {n_classes}
#define N_PLANES {facts.n_planes}
#define N_SUMS {facts.n_outputs}
#define N_MEMBERS {facts.n_members}

static const double SHARPNESS = {_number(facts.sharpness)};
static const double TEMPERATURE = {_number(facts.temperature)};
"""


def _names(facts: ModelTables, prefix: str) -> str:
    """Names of classes, columns and levels are data, never part of the code or of a comment."""
    levels = [name for column in facts.columns for name in column.level_names]
    first = np.cumsum([0, *(column.n_levels for column in facts.columns)]).tolist()
    declared = [
        f"extern const char *const {prefix}class_names[N_CLASSES];",
        f"extern const char *const {prefix}column_names[N_COLUMNS];",
        _text_array(f"{prefix}class_names", facts.classes),
        _text_array(f"{prefix}column_names", [column.name for column in facts.columns]),
    ]
    if levels:
        numbers = ", ".join(map(str, first))
        declared += [
            f"extern const char *const {prefix}level_names[{len(levels)}];",
            f"extern const int {prefix}first_level[N_COLUMNS + 1];",
            _text_array(f"{prefix}level_names", levels),
            f"const int {prefix}first_level[N_COLUMNS + 1] = {{{numbers}}};\n",
        ]
    return "\n".join(declared)


def _tables(facts: ModelTables) -> str:
    made = [
        _array("double", "bias", facts.bias),
        _array("int", "class_start", facts.class_start),
        *(table for kind in TABLES for table in _term_tables(kind, facts)),
        *_grid_tables([term for term in facts.terms if isinstance(term, PairTerm)]),
    ]
    if facts.fourier is not None:
        made += [
            _array("double", "fourier_weights", facts.fourier.weights.ravel()),
            _array("double", "fourier_biases", facts.fourier.biases),
        ]
    return "\n".join(piece for piece in made if piece)


def _term_tables(kind: str, facts: ModelTables) -> list[str]:
    """The count of a kind of terms and their fields, term after term; ``start`` holds the offset
    of each term's values."""
    count, *names = TABLES[kind]
    terms: list[Any] = [term for term in facts.terms if term.kind == kind]
    made = [_count(count, terms)]
    for name in names:
        if name == "start":
            made.append(_array("int", f"{kind}_start", _starts(len(one.values) for one in terms)))
        else:
            held = "int" if name == "column" else "double"
            made.append(_array(held, f"{kind}_{name}", _flat(getattr(one, name) for one in terms)))
    return made


def _grid_tables(grids: list[PairTerm]) -> list[str]:
    cuts = [cut for term in grids for cut in term.cuts]
    if not grids:
        return []
    return [
        _count("N_GRIDS", grids),
        _array("int", "grid_column", [one for term in grids for one in term.columns]),
        _array("int", "grid_shape", [one for term in grids for one in term.shape]),
        _array("int", "grid_is_cut", [cut is not None for cut in cuts]),
        _array("int", "grid_cut_start", _starts(0 if cut is None else len(cut) for cut in cuts)),
        # One extra element, since C has no empty arrays.
        _array("double", "grid_cuts", [*_flat(cut for cut in cuts if cut is not None), 0.0]),
        _array("int", "grid_start", _starts(len(term.values) for term in grids)),
        _array("double", "grid_values", _flat(term.values for term in grids)),
    ]


def _flat(arrays: Iterable[Any]) -> list[float]:
    return [float(one) for array in arrays for one in np.ravel(array)]


def _starts(sizes: Iterable[int]) -> list[int]:
    """Offsets of concatenated arrays with the total at the end; empty for none."""
    each = list(sizes)
    return [0, *np.cumsum(each).tolist()] if each else []


def _count(name: str, terms: Sequence[Any]) -> str:
    return f"#define {name} {len(terms)}\n" if terms else ""


def _sums(facts: ModelTables) -> str:
    kinds = {term.kind for term in facts.terms}
    needs_code = bool(kinds & {"levels", "grid"})
    body = "\n".join(LOOPS[kind] for kind in LOOPS if kind in kinds)
    unused = "" if kinds else "    (void)row;\n"
    return (
        (ADD if kinds else "")
        + (LEVEL_CODE if needs_code else "")
        + (GRID_CELL if "grid" in kinds else "")
        + "static void sums(const double *row, double *sum)\n{\n    int i;\n"
        + unused
        + "    for (i = 0; i < N_SUMS; i++)\n        sum[i] = bias[i];\n"
        + body
        + "}\n"
    )


def _plane_scores(facts: ModelTables) -> str:
    return DIRECT if facts.fourier is None else ANGLES


def _public(prefix: str) -> str:
    return PUBLIC.replace("@", prefix)
