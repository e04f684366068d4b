"""Model files: what is saved comes back bit for bit, from every release, and nothing else does."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import safetensors
import safetensors.numpy
import scipy.sparse
import skops.io
from kernels import fast_with_numpy
from making import classifier
from places import GOLDEN, TESTS
from saved_models import MAKERS, case, mixed, numbers, odd_rows

import geomix
from geomix import GeometricMixtureClassifier, ModelFileError
from geomix.core import kernel
from geomix.modelfile import manifest, saving

QUICK = {"lift": "linear", "n_planes": 1, "l2": 1e-3, "max_iter": 20, "random_state": 0}


def saved_then_loaded(model, tmp_path):
    path = tmp_path / "model.geomix"
    model.save(path)
    return geomix.load(path)


# --- what comes back ---


@pytest.mark.parametrize("name", MAKERS)
def test_saved_then_loaded_is_bit_equal(name, tmp_path):
    model, rows = case(name).model, case(name).rows
    same = saved_then_loaded(model, tmp_path)
    for answer in ("predict_proba", "class_scores", "plane_scores", "responsibilities"):
        assert np.array_equal(getattr(same, answer)(rows), getattr(model, answer)(rows)), answer
    assert np.array_equal(same.predict(rows), model.predict(rows))
    assert same.schema == model.schema
    assert same.columns == model.columns
    assert same.training == model.training
    assert same.standardize.passes == model.standardize.passes


@pytest.mark.kernel
@pytest.mark.parametrize("name", fast_with_numpy(MAKERS, ["linear"]))
def test_the_scorer_of_a_loaded_model_answers_alike(name, tmp_path):
    model, rows = case(name).model, case(name).rows
    ours, theirs = saved_then_loaded(model, tmp_path).scorer(), model.scorer()
    assert type(ours) is type(theirs)
    for row in rows[-6:]:
        cells = row.tolist()
        assert np.array_equal(ours(cells), theirs(cells))
        one, other = ours.explain(cells), theirs.explain(cells)
        assert (one.label, one.plane, one.score) == (other.label, other.plane, other.score)
        assert np.array_equal(one.contributions, other.contributions)


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_loaded_model_takes_the_same_frames(lift, make, tmp_path):
    X, y = mixed()
    columns = {name: X[:, j].tolist() for j, name in enumerate(["size", "other", "colour", "<b>"])}
    frame = make(columns)
    settings = {
        **QUICK,
        "lift": lift,
        "gamma": 0.1,
        "shrink_to_mean": 0.0,
        "categorical_features": ["<b>"],
    }
    clf = classifier(**settings)
    model = clf.fit(frame, y).model_
    same = saved_then_loaded(model, tmp_path)
    assert np.array_equal(same.predict_proba(frame), model.predict_proba(frame))
    assert np.array_equal(same.predict_proba(frame), clf.predict_proba(frame))
    row = {name: cells[3] for name, cells in columns.items()}
    assert np.array_equal(same.scorer()(row), model.scorer()(row))
    with pytest.raises(geomix.SchemaError, match="feature names"):
        same.predict_proba(frame[["size", "other", "<b>", "colour"]])


@pytest.mark.kernel
def test_a_loaded_model_takes_sparse_rows(tmp_path):
    model = case("linear").model
    rows = scipy.sparse.csr_array(numbers()[0])
    same = saved_then_loaded(model, tmp_path)
    assert np.array_equal(same.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-5, 7, 10**12]),
        np.array([0, 2**63 - 1, -(2**63)]),
        np.array([0, 2**64 - 1, 5], dtype=np.uint64),
        np.array([1, 2, 3], dtype=np.int8),
        np.array([1.0, 2.0, 3.0], dtype=np.float32),
        np.array(["", "NA", "\U0001f600 ü\n\x1b[2J"]),
        np.array(["a", "a\0", "../../x"], dtype=object),
        np.array(["a", "b", "<script>" + "x" * 200_000]),
    ],
    ids=lambda labels: labels.dtype.name[:7] + str(len(str(labels))),
)
def test_labels_keep_their_values_and_their_type(labels, tmp_path):
    X, _ = numbers()
    order = np.sort(labels)
    model = replace(case("linear").model, classes=order)
    same = saved_then_loaded(model, tmp_path)
    assert same.classes.tolist() == order.tolist()
    assert [type(one) for one in same.classes.tolist()] == [type(one) for one in order.tolist()]
    if len(str(labels[-1])) < 1000:  # very long text is kept as objects
        assert same.classes.dtype == order.dtype
    assert set(same.predict(X).tolist()) <= set(labels.tolist())


def test_two_booleans_are_labels(tmp_path):
    X, y = numbers()
    clf = classifier(**QUICK).fit(X, y > 0)
    same = saved_then_loaded(clf.model_, tmp_path)
    assert same.classes.dtype == bool
    assert np.array_equal(same.predict(X), clf.predict(X))


def test_labels_that_no_file_holds_are_refused_with_a_remedy(tmp_path):
    dates = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
    model = replace(case("linear").model, classes=dates)
    with pytest.raises(ModelFileError, match=r"datetime64.*astype\(str\)"):
        model.save(tmp_path / "m.geomix")
    assert not list(tmp_path.iterdir())


def test_levels_of_every_kind_come_back(tmp_path):
    levels = ("text", "", "\ud800 alone", 3, -(2**53), 2**53 + 1, 10**300, True, 2.5)
    column = geomix.table.schema.Column("c", "category", levels, False)
    described = manifest.columns_as_json(geomix.table.schema.Schema((column,)))
    text = geomix.modelfile.canonical_json.canonical(described)
    (again,) = manifest.read_columns(geomix.modelfile.canonical_json.read(text, 100), 1, 1).columns
    assert again.levels == levels
    assert [type(level) for level in again.levels] == [type(level) for level in levels]


@pytest.mark.parametrize("level", [float("nan"), float("inf"), None, (1,), b"x", 1j])
def test_levels_that_no_file_holds_are_refused(level, tmp_path):
    model = case("linear mixed").model
    *others, last = model.schema.columns
    column = replace(last, levels=(level, *last.levels[1:]))
    odd = replace(model, schema=replace(model.schema, columns=(*others, column)))
    with pytest.raises(ModelFileError, match=r"level .* cannot be saved"):
        odd.save(tmp_path / "m.geomix")
    assert not list(tmp_path.iterdir())


def test_a_wide_table_with_names_is_saved_whatever_its_size(tmp_path):
    model = case("constant").model
    names = tuple(f"c{j}" for j in range(50_000))
    standardize = replace(model.standardize, n_columns=len(names))
    feature_map = replace(model.feature_map, standardize=standardize)
    schema = geomix.table.schema.numeric_schema(names)
    wide = replace(model, columns=names, schema=schema, feature_map=feature_map)
    wide.save(tmp_path / "m.geomix")
    with pytest.raises(ModelFileError, match="more than"):
        geomix.load(tmp_path / "m.geomix")
    assert geomix.load(tmp_path / "m.geomix", max_columns=50_000).columns == names


def test_training_and_edits_are_kept(tmp_path):
    model = (
        case("spline").model.with_edit("clip", column="x0", low=-1.5).with_edit("note", text="é")
    )
    same = saved_then_loaded(model, tmp_path)
    assert same.training["n_rows"] == 160
    assert same.training["parameters"]["lift"] == "spline"
    assert same.edits == (
        {"action": "clip", "column": "x0", "low": -1.5},
        {"action": "note", "text": "é"},
    )
    assert np.array_equal(
        same.predict_proba(case("spline").rows), model.predict_proba(case("spline").rows)
    )


@pytest.mark.parametrize("bad", [np.zeros(3), float("nan"), 2**60, {1: 2}, b"x"])
def test_what_json_cannot_hold_is_refused_when_saving(bad, tmp_path):
    model = case("linear").model.with_edit("odd", value=[bad])
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "m.geomix")
    assert not list(tmp_path.iterdir())


def test_a_model_with_a_weight_that_is_not_finite_is_not_saved(tmp_path):
    model = case("linear").model
    weights = model.planes.weights.copy()
    weights[0, 0] = np.nan
    broken = replace(model, planes=replace(model.planes, weights=weights))
    with pytest.raises(ModelFileError, match=r"cannot be saved: tensor planes\.weights"):
        broken.save(tmp_path / "m.geomix")
    assert not list(tmp_path.iterdir())


def test_a_table_of_many_columns_without_names_needs_a_word_to_load(tmp_path):
    n_columns = 60_000
    X = scipy.sparse.random(40, n_columns, density=1e-5, random_state=0, format="lil")
    X[:20, 0] = 1.0
    X = X.tocsr()
    model = classifier(**QUICK).fit(X, np.arange(40) < 20).model_
    path = tmp_path / "wide.geomix"
    model.save(path)
    with pytest.raises(ModelFileError, match="max_columns=60000"):
        geomix.load(path)
    same = geomix.load(path, max_columns=n_columns)
    assert np.array_equal(same.predict_proba(X), model.predict_proba(X))


# --- same bytes ---


def test_the_same_seed_gives_the_same_bytes_in_any_process(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from saved_models import case;"
        "from geomix.modelfile import saving; import hashlib;"
        "print(hashlib.sha256(saving.to_bytes(case('spline mixed').model)).hexdigest())"
    )
    ours = hashlib.sha256(saving.to_bytes(MAKERS["spline mixed"]().model)).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    here = str(TESTS)
    ran = subprocess.run(
        [sys.executable, "-c", program, here], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.strip() == ours, ran.stderr


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_is_saved_with_the_same_bytes(name):
    content = saving.to_bytes(case(name).model)
    assert saving.to_bytes(saving.from_bytes(content)) == content


def test_a_random_state_leaves_no_address_in_the_file():
    X, y = numbers()
    models = [
        classifier(**{**QUICK, "random_state": np.random.RandomState(3)}).fit(X, y)
        for _ in range(2)
    ]
    first, second = (saving.to_bytes(clf.model_) for clf in models)
    assert first == second
    assert models[0].model_.training["parameters"]["random_state"] == "RandomState"


def test_a_linear_model_of_wdbc_takes_less_than_4_kb(wdbc, tmp_path):
    X, y = wdbc
    names = [f"mean concave points {j}" for j in range(30)]  # as long as the longest of them
    clf = GeometricMixtureClassifier(lift="linear", random_state=0).fit(
        pd.DataFrame(X, columns=names), y
    )
    clf.model_.save(tmp_path / "wdbc.geomix")
    assert (tmp_path / "wdbc.geomix").stat().st_size < 4096


# --- other people's tools ---


@pytest.mark.parametrize("name", ["linear mixed", "spline pairs", "fourier"])
def test_the_file_is_a_safetensors_file(name, tmp_path):
    path, model = tmp_path / "m.geomix", case(name).model
    model.save(path)
    theirs = safetensors.numpy.load_file(path)
    assert np.array_equal(theirs["planes.weights"], model.planes.weights)
    with safetensors.safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["geomix"])
    assert about["format_version"] == list(manifest.VERSION)
    assert about["lift"]["kind"] == model.lift.kind


def test_numbers_are_aligned_in_the_file():
    content = saving.to_bytes(case("fourier mixed").model)
    stream, size = io.BytesIO(content), len(content)
    header = geomix.modelfile.tensor_file.read_header(
        stream, size, geomix.modelfile.model_tensors.RANKS
    )
    assert stream.tell() % 8 == 0
    for one in header.tensors:
        assert one.begin % np.dtype(geomix.modelfile.tensor_file.DTYPES[one.dtype]).itemsize == 0
    assert {one.dtype for one in header.tensors} == {"F64", "I64", "F32"}


@pytest.mark.parametrize("name", ["linear", "spline mixed", "fourier"])
def test_a_model_pickles(name):
    model, rows = case(name).model, case(name).rows
    same = pickle.loads(pickle.dumps(model))
    assert np.array_equal(same.predict_proba(rows), model.predict_proba(rows))
    assert saving.to_bytes(same) == saving.to_bytes(model)


@pytest.mark.parametrize("lift", ["linear", "spline", "fourier"])
def test_skops_takes_the_estimator(lift):
    X, y = mixed()
    settings = {
        **QUICK,
        "lift": lift,
        "gamma": 0.1,
        "shrink_to_mean": 0.0,
        "n_planes": 2,
        "preset": "accurate",
        "n_members": 2,
    }
    settings["categorical_features"] = [3]
    clf = classifier(**settings).fit(X, y)
    content = skops.io.dumps(clf)
    unknown = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("geomix.") for name in unknown)
    same = skops.io.loads(content, trusted=unknown)
    rows = odd_rows(X)
    assert np.array_equal(same.predict_proba(rows), clf.predict_proba(rows))


# --- files of every version keep loading ---


def golden_files():
    return sorted(GOLDEN.glob("*/*.geomix"))


def test_there_are_golden_files_of_the_current_version_for_every_kind():
    found = {path.stem for path in golden_files() if path.parent.name == "1.0"}
    assert manifest.VERSION == (1, 0), "a new version of the format needs golden files"
    assert found == {name.replace(" ", "_") for name in MAKERS}


@pytest.mark.kernel
@pytest.mark.parametrize("path", golden_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_give_the_probabilities_of_their_day(path):
    model = geomix.load(path)
    known = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = np.array(known["rows"], dtype=object)
    if not model.schema.has_categories:
        rows = rows.astype(float)
    expected = np.array([[float.fromhex(p) for p in row] for row in known["probabilities"]])
    P = model.predict_proba(rows)
    if kernel.is_native:
        assert np.array_equal(P, expected)
    else:  # whose sums are the BLAS's; the cosine of a billion is another one after each bit
        sane = ~(np.abs(model.schema.encode(rows)) > 1e6).any(axis=1) | (
            model.lift.kind != "fourier"
        )
        np.testing.assert_allclose(P[sane], expected[sane], rtol=0.0, atol=1e-13)
    assert model.predict(rows).tolist() == known["labels"]


@pytest.mark.parametrize("path", golden_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_are_written_again_with_the_same_bytes(path, monkeypatch):
    if path.parent.name == ".".join(map(str, manifest.VERSION)):
        writer = saving.info(path).manifest["written_by"].removeprefix("geomix ")
        monkeypatch.setattr(geomix, "__version__", writer)
        assert saving.to_bytes(geomix.load(path)) == path.read_bytes()


# --- facts about a file ---


def test_info_tells_what_a_good_file_holds(tmp_path):
    path, model = tmp_path / "m.geomix", case("linear mixed").model
    model.save(path)
    facts = saving.info(path)
    assert facts.problem is None
    assert facts.n_bytes == path.stat().st_size
    assert facts.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert facts.manifest["classes"]["values"] == model.classes.tolist()
    assert {one.name for one in facts.tensors} >= {"planes.weights", "expand.shows"}


def test_info_tells_what_a_damaged_file_says_and_why_it_is_refused(tmp_path):
    path = tmp_path / "m.geomix"
    content = bytearray(saving.to_bytes(case("linear").model))
    content[-1] ^= 1
    path.write_bytes(content)
    facts = saving.info(path)
    assert "checksum" in facts.problem
    assert facts.manifest["lift"] == {"kind": "linear"}
    path.write_bytes(content[:100])
    assert "truncated" in saving.info(path).problem
    assert saving.info(path).manifest == {}
    with pytest.raises(FileNotFoundError):
        saving.info(tmp_path / "none.geomix")


def test_verify_holds_a_file_against_a_sha256_from_elsewhere(tmp_path):
    path = tmp_path / "m.geomix"
    case("linear").model.save(path)
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    saving.verify(path, right.upper())
    with pytest.raises(ModelFileError, match="SHA-256"):
        saving.verify(path, "0" * 64)
