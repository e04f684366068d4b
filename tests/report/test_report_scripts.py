"""The page's JavaScript, run by Node, answers as the library does: every lift, every question."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from saved_models import MAKERS, case, exported_rows

from geomix.explain.cells import encoded_rows
from geomix.export.json_model import to_json
from geomix.geometry.certificate import certify
from geomix.geometry.thresholds import thresholds
from geomix.report.live import column_units
from geomix.report.page import SCRIPTS, text_of
from geomix.report.sample import missing_shares

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
NAMES = list(MAKERS)
FOURIER = [name for name in NAMES if "fourier" in name]
PAIRS = ["spline pairs", "fitted pairs"]
EXACT = [name for name in NAMES if name not in FOURIER and name != "constant"]

# For each row everything that the page could show.
HARNESS = """
const { model, units, shares, rows, raw, ranges } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const told = rows.map((cells) => {
  const found = answer(model, cells);
  const numbers = model.columns.flatMap((column, j) => (column.kind === "number" ? [j] : []));
  return {
    probabilities: found.probabilities,
    shares: found.shares,
    code: found.code,
    plane: found.plane,
    parts: contributions(model, cells, found, shares),
    radius: certifiedRadius(model, cells, found, units),
    thresholds: numbers.map((j) => [j, thresholds(model, cells, j, units[j], ranges[j])]),
  };
});
const fromRaw = raw.map((cells) => answer(model, encode(model, cells)).probabilities);
const named = raw.map((cells) => Object.fromEntries(cells.map((x, j) => [model.columns[j].name, x])));
const fromNames = named.map((cells) => answer(model, encode(model, cells)).probabilities);
console.log(JSON.stringify({ told, fromRaw, fromNames }));
"""  # noqa: E501


def run(model, X):
    """What the scripts compute for raw rows."""
    encoded = encoded_rows(model, X)
    raw = np.asarray(X, dtype=object).tolist()
    near = np.where(np.abs(encoded) < 1e6, encoded, 0.0)
    given = {
        "model": json.loads(to_json(model)),
        "units": column_units(model),
        "shares": missing_shares(model),
        "rows": [[None if np.isnan(x) else x for x in row] for row in encoded.tolist()],
        "raw": [[None if x is None or x != x else x for x in row] for row in raw],
        "ranges": np.column_stack([near.min(axis=0), near.max(axis=0)]).tolist(),
    }
    logic = [text_of(name) for name in SCRIPTS if name not in ("draw.js", "ui.js")]
    program = "\n".join(['"use strict";', *logic, HARNESS])
    done = subprocess.run(
        ["node", "-e", program], input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def answered(name):
    """(model, raw rows, what the scripts compute): 24 rows, the odd ones among them."""
    X = exported_rows(name)[-24:]
    return case(name).model, X, run(case(name).model, X)


def moderate(X):
    """Places of rows without numbers of billions, where a difference of parts means something."""
    sizes = [max((abs(x) for x in row if isinstance(x, float)), default=0.0) for row in X.tolist()]
    return np.flatnonzero(np.array(sizes) < 1e6)


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_and_responsibilities_are_the_models(name):
    model, X, said = answered(name)
    P, A = model.predict_proba(X), model.responsibilities(X)
    np.testing.assert_allclose([one["probabilities"] for one in said["told"]], P, atol=1e-9)
    np.testing.assert_allclose([one["shares"] for one in said["told"]], A, atol=1e-9)
    codes = model.class_scores(X).argmax(axis=1)
    own = np.where(model.planes.class_of == codes[:, None], A, -1.0)
    assert [one["code"] for one in said["told"]] == codes.tolist()
    assert [one["plane"] for one in said["told"]] == own.argmax(axis=1).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_raw_cells_are_encoded_as_python_does(name):
    model, X, said = answered(name)
    np.testing.assert_allclose(said["fromRaw"], model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(said["fromNames"], model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_those_of_explain_local(name):
    model, X, said = answered(name)
    rows = moderate(X)
    method = "gradient" if name in FOURIER else "exact"
    expected = model.explain_local(X[rows], method=method)
    parts = [said["told"][i]["parts"] for i in rows]
    got = np.array([one["byColumn"] for one in parts])
    np.testing.assert_allclose(got, expected.contributions, atol=1e-9, rtol=1e-9)
    for key, value in {"bias": expected.bias, "pooling": expected.pooling}.items():
        np.testing.assert_allclose([one[key] for one in parts], value, atol=1e-9, rtol=1e-9)
    sums = got.sum(axis=1) + [one["bias"] + one["pooling"] for one in parts]
    np.testing.assert_allclose(sums, [one["margin"] for one in parts], atol=1e-9, rtol=1e-9)
    assert all(one["isExact"] == (name not in FOURIER) for one in parts)


@pytest.mark.parametrize("name", [name for name in EXACT if name not in PAIRS])
def test_certified_radii_are_those_of_certify(name):
    model, X, said = answered(name)
    rows = moderate(X)
    expected = np.minimum(certify(model, X[rows]).radius, 1e6)  # the page writes 1e6 for no limit
    got = [said["told"][i]["radius"] for i in rows]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-12)
    assert expected.max() > 0.0


@pytest.mark.parametrize("name", EXACT)
def test_thresholds_are_those_of_the_geometry(name):
    model, X, said = answered(name)
    labels, n_flips = model.classes.tolist(), 0
    for i in moderate(X)[::2]:
        for j, along in said["told"][i]["thresholds"]:
            expected = thresholds(model, X[i], int(j))
            np.testing.assert_allclose(along["flips"], expected.flips, rtol=1e-7, atol=1e-9)
            answers = [labels[code] for code in along["codes"]]
            assert answers == [one.label for one in expected.stretches]
            assert along["isExact"]
            n_flips += len(expected.flips)
    assert n_flips > 0


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_have_no_certificate_on_the_page(name):
    _, _, said = answered(name)
    assert all(one["radius"] is None for one in said["told"])


@pytest.mark.parametrize("name", FOURIER)
def test_what_has_no_pieces_is_scanned_and_has_no_certificate(name):
    model, X, said = answered(name)
    encoded, n_flips = encoded_rows(model, X), 0
    for row, one in zip(encoded, said["told"], strict=True):
        assert one["radius"] is None
        for j, along in one["thresholds"]:
            assert not along["isExact"]
            between = zip(along["flips"], along["codes"][:-1], along["codes"][1:], strict=True)
            for flip, before, after in between:
                sides = np.repeat(row[None, :], 2, axis=0)
                sides[:, j] = flip - 1e-9 * abs(flip) - 1e-12, flip + 1e-9 * abs(flip) + 1e-12
                codes = model.answer("class_scores", sides).argmax(axis=1)
                assert codes.tolist() == [before, after]
                n_flips += 1
    assert n_flips > 0


def test_a_number_on_a_cut_lies_in_the_cell_above_it():
    model, X, _ = answered("spline pairs")
    cuts = next(part.first for part in model.lift.parts if getattr(part, "first", None) is not None)
    rows = np.repeat(X[:1], len(cuts), axis=0)
    rows[:, 0] = cuts.tolist()
    said = run(model, rows)
    np.testing.assert_allclose(said["fromRaw"], model.predict_proba(rows), atol=1e-9)
    below = rows.copy()
    below[:, 0] = (cuts - 1e-9).tolist()
    assert np.abs(model.predict_proba(below) - model.predict_proba(rows)).max() > 1e-3
