"""A model as one C99 file: static tables, no allocation, nothing but ``math.h``.

The file holds the same tables as the JSON form and the few loops that read them; only what the
model needs is written, so that it compiles without a warning under ``-Wall -Wextra -pedantic``.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any

import numpy as np

from geomix.export.additive import AdditiveModel, Curve, Grid, Levels, Line, additive
from geomix.model import GeometricMixture

NUMBERS_PER_LINE = 4
PLAIN_BYTES = (string.ascii_letters + string.digits + " _-.,:;=+()/<>").encode()
LONGEST_TEXT = 4000  # C99 promises 4095 characters in a string


def to_c(model: GeometricMixture, prefix: str = "") -> str:
    """The model as the text of a C file.

    It defines ``int predict(const double *row, double *probabilities)``, which returns the
    position of the most probable class, and ``int responsible_plane(const double *row)``, the
    plane that carries that class. A row has one double per column: a number or the code of a
    level; NAN is missing, -1 a level never seen. ``prefix`` goes before every name that the file
    makes public.

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
        raise ValueError(f"Got prefix={prefix!r}; expected letters, digits and _ as C names have.")
    facts = additive(model)
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
    """A static array; of nothing, nothing (C has no empty arrays)."""
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
            f"The name {str(value)[:40]!r}... has {len(encoded)} bytes; C strings are promised no "
            f"more than {LONGEST_TEXT}. Shorten it before fit."
        )
    safe = (chr(byte) if byte in PLAIN_BYTES else f"\\{byte:03o}" for byte in encoded)
    return '"' + "".join(safe) + '"'


def _text_array(name: str, values: Iterable[Any]) -> str:
    texts = [_text(value) for value in values]
    return f"const char *const {name}[{len(texts)}] = {{\n    " + ",\n    ".join(texts) + "\n};\n"


# --- the parts of the file ---


def _opening(facts: AdditiveModel, prefix: str) -> str:
    n_classes = len(facts.classes)
    return f"""\
/* A geomix model: {len(facts.columns)} columns, {n_classes} classes, {facts.n_planes} planes.

   int {prefix}predict(const double *row, double *probabilities);
   int {prefix}responsible_plane(const double *row);

   row: {len(facts.columns)} doubles, a number or the code of a level each; NAN is missing, and -1 a
   level never seen where the column has no level "(other)". probabilities: {n_classes} doubles,
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


def _names(facts: AdditiveModel, prefix: str) -> str:
    """Names are for the caller: they are data, and never part of the code or of a comment."""
    levels = [name for column in facts.columns for name in column.level_names if column.n_levels]
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


def _tables(facts: AdditiveModel) -> str:
    lines = [term for term in facts.terms if isinstance(term, Line)]
    curves = [term for term in facts.terms if isinstance(term, Curve)]
    levels = [term for term in facts.terms if isinstance(term, Levels)]
    grids = [term for term in facts.terms if isinstance(term, Grid)]
    made = [
        _array("double", "bias", facts.bias),
        _array("int", "class_start", facts.class_start),
    ]
    if lines:
        made += [
            f"#define N_LINES {len(lines)}\n",
            _array("int", "line_column", [term.column for term in lines]),
            _array("double", "line_mean", [term.mean for term in lines]),
            _array("double", "line_scale", [term.scale for term in lines]),
            _array("double", "line_weights", _flat(term.weights for term in lines)),
            _array("double", "line_missing", _flat(term.missing for term in lines)),
        ]
    if curves:
        made += [
            f"#define N_CURVES {len(curves)}\n",
            _array("int", "curve_column", [term.column for term in curves]),
            _array("int", "curve_start", _starts(len(term.knots) for term in curves)),
            _array("double", "curve_knots", _flat(term.knots for term in curves)),
            _array("double", "curve_values", _flat(term.values for term in curves)),
            _array("double", "curve_missing", _flat(term.missing for term in curves)),
        ]
    if levels:
        made += [
            f"#define N_LEVELS {len(levels)}\n",
            _array("int", "levels_column", [term.column for term in levels]),
            _array("int", "levels_start", _starts(len(term.values) for term in levels)),
            _array("double", "levels_values", _flat(term.values for term in levels)),
            _array("double", "levels_missing", _flat(term.missing for term in levels)),
        ]
    if grids:
        made += _grid_tables(grids)
    if facts.fourier is not None:
        made += [
            _array("double", "fourier_weights", facts.fourier.weights.ravel()),
            _array("double", "fourier_biases", facts.fourier.biases),
        ]
    return "\n".join(piece for piece in made if piece)


def _grid_tables(grids: list[Grid]) -> list[str]:
    cuts = [cut for term in grids for cut in term.cuts]
    return [
        f"#define N_GRIDS {len(grids)}\n",
        _array("int", "grid_column", [one for term in grids for one in term.columns]),
        _array("int", "grid_shape", [one for term in grids for one in term.shape]),
        _array("int", "grid_is_cut", [cut is not None for cut in cuts]),
        _array("int", "grid_cut_start", _starts(0 if cut is None else len(cut) for cut in cuts)),
        # One more, so that an array of no cuts is none of no elements.
        _array("double", "grid_cuts", [*_flat(cut for cut in cuts if cut is not None), 0.0]),
        _array("int", "grid_start", _starts(len(term.values) for term in grids)),
        _array("double", "grid_values", _flat(term.values for term in grids)),
    ]


def _flat(arrays: Iterable[Any]) -> list[float]:
    return [float(one) for array in arrays for one in np.ravel(array)]


def _starts(sizes: Iterable[int]) -> list[int]:
    return [0, *np.cumsum(list(sizes)).tolist()]


def _sums(facts: AdditiveModel) -> str:
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


def _plane_scores(facts: AdditiveModel) -> str:
    return DIRECT if facts.fourier is None else ANGLES


def _public(prefix: str) -> str:
    return PUBLIC.replace("@", prefix)


ADD = """\
static void add(double *sum, const double *values, double factor)
{
    int i;
    for (i = 0; i < N_SUMS; i++)
        sum[i] += factor * values[i];
}

"""

LEVEL_CODE = """\
/* The code of a cell of so many levels, or -1 if it is none of them. */
static int level_code(double cell, int n_levels)
{
    return cell >= 0.0 && cell < (double)n_levels ? (int)cell : -1;
}

"""

GRID_CELL = """\
/* The cell of one side of a grid; the last one is for missing. */
static int grid_cell(double cell, int side)
{
    int n = grid_shape[side], i = grid_cut_start[side], count = 0;
    if (!grid_is_cut[side]) {
        int code = level_code(cell, n - 1);
        return code < 0 ? n - 1 : code;
    }
    if (isnan(cell))
        return n - 1;
    for (; i < grid_cut_start[side + 1]; i++)
        count += cell >= grid_cuts[i];
    return count;
}

"""

LOOPS = {
    "line": """\
    for (i = 0; i < N_LINES; i++) {
        double x = row[line_column[i]], u = (x - line_mean[i]) / line_scale[i];
        if (isnan(x)) {
            add(sum, line_missing + i * N_SUMS, 1.0);
            continue;
        }
        u = u > 1e150 ? 1e150 : u < -1e150 ? -1e150 : u;
        add(sum, line_weights + i * N_SUMS, u);
    }
""",
    "curve": """\
    for (i = 0; i < N_CURVES; i++) {
        double x = row[curve_column[i]], part;
        int low = curve_start[i], high = curve_start[i + 1] - 1;
        if (isnan(x)) {
            add(sum, curve_missing + i * N_SUMS, 1.0);
            continue;
        }
        x = x < curve_knots[low] ? curve_knots[low] : x > curve_knots[high] ? curve_knots[high] : x;
        while (high - low > 1) {
            int middle = low + (high - low) / 2;
            if (x >= curve_knots[middle])
                low = middle;
            else
                high = middle;
        }
        part = (x - curve_knots[low]) / (curve_knots[high] - curve_knots[low]);
        add(sum, curve_values + low * N_SUMS, 1.0 - part);
        add(sum, curve_values + high * N_SUMS, part);
    }
""",
    "levels": """\
    for (i = 0; i < N_LEVELS; i++) {
        double x = row[levels_column[i]];
        int code = level_code(x, levels_start[i + 1] - levels_start[i]);
        if (isnan(x))
            add(sum, levels_missing + i * N_SUMS, 1.0);
        else if (code >= 0)
            add(sum, levels_values + (levels_start[i] + code) * N_SUMS, 1.0);
    }
""",
    "grid": """\
    for (i = 0; i < N_GRIDS; i++) {
        int a = grid_cell(row[grid_column[2 * i]], 2 * i);
        int b = grid_cell(row[grid_column[2 * i + 1]], 2 * i + 1);
        int cell = grid_start[i] + a * grid_shape[2 * i + 1] + b;
        add(sum, grid_values + cell * N_SUMS, 1.0);
    }
""",
}

DIRECT = """\
static void plane_scores(const double *row, double *z)
{
    sums(row, z);
}
"""

ANGLES = """\
static void plane_scores(const double *row, double *z)
{
    double angle[N_SUMS];
    int p, i;
    sums(row, angle);
    for (p = 0; p < N_PLANES; p++)
        z[p] = fourier_biases[p];
    for (i = 0; i < N_SUMS; i++) {
        double c = cos(angle[i]), s = sin(angle[i]);
        for (p = 0; p < N_PLANES; p++) {
            z[p] += fourier_weights[2 * p * N_SUMS + i] * c;
            z[p] += fourier_weights[(2 * p + 1) * N_SUMS + i] * s;
        }
    }
}
"""

POOLING = """\
/* Soft-OR of each class, and the share of every plane in it, in the place of its score. */
static void pool(double *z, double *score)
{
    int c, m, p;
    for (c = 0; c < N_CLASSES; c++) {
        int size = (class_start[c + 1] - class_start[c]) / N_MEMBERS;
        score[c] = 0.0;
        for (m = 0; m < N_MEMBERS; m++) {
            double *own = z + class_start[c] + m * size;
            double top = own[0], total = 0.0;
            for (p = 1; p < size; p++)
                top = own[p] > top ? own[p] : top;
            for (p = 0; p < size; p++) {
                own[p] = exp(SHARPNESS * (own[p] - top));
                total += own[p];
            }
            for (p = 0; p < size; p++)
                own[p] /= total;
            score[c] += top + log(total) / SHARPNESS;
        }
        score[c] /= N_MEMBERS * TEMPERATURE;
    }
}

static int largest(const double *values, int n)
{
    int i, best = 0;
    for (i = 1; i < n; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}
"""

PUBLIC = """\
int @predict(const double *row, double *probabilities);
int @responsible_plane(const double *row);

int @predict(const double *row, double *probabilities)
{
    double z[N_PLANES], total = 0.0, top;
    int c, best;
    plane_scores(row, z);
    pool(z, probabilities);
    best = largest(probabilities, N_CLASSES);
    top = probabilities[best];
    for (c = 0; c < N_CLASSES; c++) {
        probabilities[c] = exp(probabilities[c] - top);
        total += probabilities[c];
    }
    for (c = 0; c < N_CLASSES; c++)
        probabilities[c] /= total;
    return best;
}

int @responsible_plane(const double *row)
{
    double z[N_PLANES], score[N_CLASSES];
    int c;
    plane_scores(row, z);
    pool(z, score);
    c = largest(score, N_CLASSES);
    return largest(z + class_start[c], class_start[c + 1] - class_start[c]);
}
"""
