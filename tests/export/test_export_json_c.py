"""Models as JSON and as C: other languages answer as the library does."""

import ctypes
import json
import math
import shutil
import subprocess
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from making import classifier
from saved_models import MAKERS, case, exported_rows, numbers

from geomix import GeometricMixtureClassifier
from geomix.export.c_source import to_c
from geomix.export.json_model import schema, to_json

NAMES = list(MAKERS)


# --- a second implementation of docs/reference/json-format.md: plain Python, from the JSON ---


def code_of(column, cell):
    """Code of a level; None for missing, -1 for never seen."""
    if cell is None or cell != cell:
        return None
    if cell in column["levels"]:
        return column["levels"].index(cell)
    return len(column["levels"]) if column["other"] else -1


def encoded(columns, row):
    cells = []
    for column, cell in zip(columns, row, strict=True):
        if column["kind"] == "category":
            cells.append(code_of(column, cell))
        else:
            cells.append(None if cell is None or cell != cell else float(cell))
    return cells


def interpolated(term, x):
    knots, values = term["knots"], term["values"]
    x = min(max(x, knots[0]), knots[-1])
    k = next(k for k in range(len(knots) - 1) if x <= knots[k + 1])
    part = (x - knots[k]) / (knots[k + 1] - knots[k])
    return [a + part * (b - a) for a, b in zip(values[k], values[k + 1], strict=True)]


def cell_of(cuts, size, cell):
    if cell is None or (cuts is None and not 0 <= cell < size - 1):
        return size - 1
    return cell if cuts is None else sum(cell >= cut for cut in cuts)


def added(term, cells, zero):
    if term["kind"] == "grid":
        first, second = (
            cell_of(cuts, size, cells[j])
            for cuts, size, j in zip(term["cuts"], term["shape"], term["columns"], strict=True)
        )
        return term["values"][first * term["shape"][1] + second]
    cell = cells[term["column"]]
    if cell is None:
        return term.get("missing", zero)
    if term["kind"] == "curve":
        return interpolated(term, cell)
    if term["kind"] == "levels":
        return term["values"][cell] if cell >= 0 else zero
    u = min(max((cell - term["mean"]) / term["scale"], -1e150), 1e150)
    return [weight * u for weight in term["weights"]]


def answer(document, row):
    """Probabilities, label and responsible plane of one raw row."""
    cells = encoded(document["columns"], row)
    zero = [0.0] * len(document["bias"])
    z = list(document["bias"])
    for term in document["terms"]:
        z = [a + b for a, b in zip(z, added(term, cells, zero), strict=True)]
    if "fourier" in document:
        phi = [math.cos(a) for a in z] + [math.sin(a) for a in z]
        fourier = document["fourier"]
        z = [
            bias + sum(w * f for w, f in zip(weights, phi, strict=True))
            for weights, bias in zip(fourier["weights"], fourier["biases"], strict=True)
        ]
    k, start, scores, shares = document["sharpness"], document["class_start"], [], []
    for c in range(len(document["classes"])):
        own, size = z[start[c] : start[c + 1]], (start[c + 1] - start[c]) // document["members"]
        pooled, share = 0.0, []
        for at in range(0, len(own), size):
            top = max(own[at : at + size])
            each = [math.exp(k * (one - top)) for one in own[at : at + size]]
            pooled += top + math.log(sum(each)) / k
            share += [one / sum(each) for one in each]
        scores.append(pooled / document["members"] / document["temperature"])
        shares.append(share)
    odds = [math.exp(score - max(scores)) for score in scores]
    best = scores.index(max(scores))
    plane = shares[best].index(max(shares[best]))
    return [one / sum(odds) for one in odds], document["classes"][best], plane


@pytest.mark.parametrize("name", NAMES)
def test_json_is_enough_to_answer_in_plain_python(name):
    model, rows = case(name).model, exported_rows(name)
    document = json.loads(to_json(model))
    jsonschema.validate(document, schema())
    score = model.scorer()
    for row, p in zip(rows, model.predict_proba(rows), strict=True):
        found, label, plane = answer(document, row.tolist())
        np.testing.assert_allclose(found, p, rtol=0.0, atol=1e-12)
        told = score.explain(row.tolist())
        assert (label, plane) == (told.label, told.plane)


def test_a_column_far_from_zero_with_holes_keeps_its_digits():
    X, y = numbers()
    X[:, 0] += 1e9  # a mean of a billion deviations, which must not be taken off by rounding
    X[::7, 0] = np.nan
    settings = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "max_iter": 20, "random_state": 0}
    model = GeometricMixtureClassifier(**settings).fit(X, y).model_
    document = json.loads(to_json(model))
    found = [answer(document, row.tolist())[0] for row in X[:30]]
    np.testing.assert_allclose(found, model.predict_proba(X[:30]), rtol=0.0, atol=1e-12)


def test_knots_further_apart_than_the_largest_float_are_answered(rng):
    X = np.column_stack([rng.choice([-1e308, 1e308], 200), rng.normal(size=200)])
    settings = {"lift": "spline", "n_planes": 1, "l2": 1e-3, "max_interactions": 0}
    model = classifier(**settings, random_state=0).fit(X, (X[:, 0] > 0) == (X[:, 1] > 0)).model_
    rows = np.array([[1e308, 0.0], [0.0, 0.0], [-1e307, 1.0], [7e307, -1.0]])
    document = json.loads(to_json(model))
    found = [answer(document, row.tolist())[0] for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_the_schema_is_a_schema_and_refuses_what_is_not_a_model():
    jsonschema.Draft202012Validator.check_schema(schema())
    document = json.loads(to_json(case("spline mixed").model))
    for key in document:
        lacking = {one: value for one, value in document.items() if one != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(lacking, schema())
    for path, value in {"terms": [{"kind": "line"}], "version": [2, 0], "sharpness": 0}.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, path: value}, schema())


# --- C ---

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-shared", "-fPIC"]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def compiled(text, folder, *flags):
    source, library = folder / "model.c", folder / "model.so"
    source.write_text(text, encoding="ascii")
    command = ["cc", *FLAGS, *flags, str(source), "-o", str(library), "-lm"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ctypes.CDLL(str(library))


def asked(library, rows, n_classes, prefix=""):
    predict, plane = library[f"{prefix}predict"], library[f"{prefix}responsible_plane"]
    P, best, planes = np.empty((len(rows), n_classes)), [], []
    for row, p in zip(rows, P, strict=True):
        cells = (ctypes.c_double * len(row))(*row)
        best.append(predict(cells, p.ctypes.data_as(ctypes.POINTER(ctypes.c_double))))
        planes.append(plane(cells))
    return P, best, planes


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_c_answers_as_the_model_does(name, tmp_path):
    model, rows = case(name).model, exported_rows(name)
    library = compiled(to_c(model), tmp_path)
    encoded_rows = model.schema.encode(rows)  # levels as codes, which is what C takes
    P, best, planes = asked(library, encoded_rows, len(model.classes))
    np.testing.assert_allclose(P, model.predict_proba(rows), rtol=0.0, atol=1e-12)
    assert model.classes[best].tolist() == model.predict(rows).tolist()
    score = model.scorer()
    assert planes == [score.explain(row.tolist()).plane for row in rows]


@needs_compiler
def test_names_in_c_are_data_whatever_they_hold(tmp_path):
    model = case("spline mixed").model
    library = compiled(to_c(model, prefix="m_"), tmp_path)
    names = (ctypes.c_char_p * 2).in_dll(library, "m_class_names")
    assert [name.decode() for name in names] == model.classes.tolist()
    first = (ctypes.c_int * 5).in_dll(library, "m_first_level")
    levels = (ctypes.c_char_p * first[4]).in_dll(library, "m_level_names")
    expected = [name for column in model.schema.columns for name in column.level_names]
    assert [name.decode() for name in levels] == expected
    assert 'it\'s "blue"\n' in expected


@needs_compiler
def test_hostile_names_do_not_reach_the_code(tmp_path):
    model = case("linear").model
    names = ("*/ int main(void) { return 1; } /*", "a\\", '??/"); system("true"); ("')
    columns = zip(model.schema.columns, names, strict=True)
    schema = type(model.schema)(tuple(replace(one, name=name) for one, name in columns))
    hostile = replace(model, columns=names, schema=schema, classes=np.array(["\n#error", "é", '"']))
    library = compiled(to_c(hostile), tmp_path)
    found = (ctypes.c_char_p * 3).in_dll(library, "column_names")
    assert [name.decode() for name in found] == list(names)


@needs_compiler
def test_two_models_live_in_one_program_and_nothing_is_allocated(tmp_path):
    model = case("fourier mixed").model
    library = compiled(to_c(model, prefix="one_"), tmp_path)
    rows = exported_rows("fourier mixed")
    P, _, _ = asked(library, model.schema.encode(rows), 2, "one_")
    np.testing.assert_allclose(P, model.predict_proba(rows), rtol=0.0, atol=1e-12)
    symbols = subprocess.run(
        ["nm", "-D", str(tmp_path / "model.so")], capture_output=True, text=True
    )
    assert "malloc" not in symbols.stdout
    defined = {line.split()[-1] for line in symbols.stdout.splitlines() if " T " in line}
    assert defined == {"one_predict", "one_responsible_plane"}


def test_a_prefix_that_is_no_c_name_is_refused():
    for prefix in ("1a", "a b", "a;", "*/", "é"):
        with pytest.raises(ValueError, match="prefix"):
            to_c(case("linear").model, prefix)
