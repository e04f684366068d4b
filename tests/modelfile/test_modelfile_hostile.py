"""Damaged, hostile, foreign and newer model files: one clear error each, and nothing else.

``make fuzz`` runs the mutations here for longer, and more of them.
"""

import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings

import forgery
import numpy as np
import pytest
from places import TESTS
from saved_models import MAKERS, case

import geomix
from geomix import ModelFileError, ModelVersionError
from geomix.modelfile import canonical_json, manifest, saving

N_MUTATIONS = int(os.environ.get("GEOMIX_MUTATIONS", "2000"))
SEED = int(os.environ.get("GEOMIX_MUTATION_SEED", "0"))
# Objects of the interpreter: as large for the smallest file. 20,000 values are always allowed.
ROOM_FOR_OBJECTS = 8 * 2**20


@pytest.fixture(scope="module")
def content():
    return saving.to_bytes(case("linear").model)


def refused(content, match=""):
    with pytest.raises(ModelFileError, match=match) as caught:
        saving.from_bytes(content)
    assert len(str(caught.value)) < 400
    return caught.value


def peak_of(action):
    """Most bytes in use at once while ``action`` ran, above those before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        action()
    except ModelFileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak - before


def check_answers(model, rows):
    """Whatever a loader lets pass answers every row with probabilities."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        P = model.predict_proba(rows)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)


# --- damage ---


def test_a_file_cut_short_anywhere_is_refused(content):
    for end in range(len(content)):
        refused(content[:end], "truncated|empty|" + ("header" if end < 8 else "truncated"))


def test_any_bit_that_flips_is_noticed():
    small = saving.to_bytes(case("constant").model)
    for at in range(8 * len(small)):
        damaged = bytearray(small)
        damaged[at // 8] ^= 1 << at % 8
        with pytest.raises(ModelFileError):
            saving.from_bytes(bytes(damaged))


@pytest.mark.parametrize("name", ["linear mixed", "spline pairs", "fourier mixed"])
def test_flipped_bits_in_larger_files_are_noticed(name):
    whole = saving.to_bytes(case(name).model)
    rng = np.random.default_rng(0)
    for at in rng.choice(8 * len(whole), 500, replace=False):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << int(at % 8)
        with pytest.raises(ModelFileError):
            saving.from_bytes(bytes(damaged))


def test_bytes_after_the_end_are_refused(content):
    refused(content + b"\0", "1 bytes after its end")
    refused(content + content, "bytes after its end")


@pytest.mark.parametrize("chunk", range(4))
def test_mutated_files_are_refused_or_harmless(chunk):
    files = {name: saving.to_bytes(case(name).model) for name in MAKERS}
    names = list(files)
    rng = np.random.default_rng([SEED, chunk])
    outcomes = {"refused": 0, "loaded": 0}
    for _ in range(N_MUTATIONS // 4):
        name = names[rng.integers(len(names))]
        hostile = forgery.mutated(files[name], rng)
        try:
            model = saving.from_bytes(hostile)
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        if hostile != files[name] and len(model.columns) == case(name).rows.shape[1]:
            check_answers(model, harmless_rows(model))
    # A fuzzer that is always stopped at the door tests the door alone.
    assert outcomes["loaded"] > N_MUTATIONS // 200, outcomes
    assert outcomes["refused"] > N_MUTATIONS // 8, outcomes


def harmless_rows(model):
    """Encoded rows would do for splines too, but raw ones walk the whole way."""
    columns = model.schema.columns
    level = [column.levels[0] if column.levels else None for column in columns]
    return np.array(
        [
            [
                0.5 if column.kind == "number" else one
                for column, one in zip(columns, level, strict=True)
            ],
            [None if column.kind == "category" else -1e300 for column in columns],
            [None if column.kind == "category" else np.nan for column in columns],
        ],
        dtype=object if model.schema.has_categories else float,
    )


def test_mutated_files_take_no_more_memory_than_their_size_allows():
    files = {name: saving.to_bytes(case(name).model) for name in MAKERS}
    names = list(files)
    rng = np.random.default_rng(SEED + 1)
    for _ in range(max(N_MUTATIONS // 20, 200)):
        hostile = forgery.mutated(files[names[rng.integers(len(names))]], rng)
        assert peak_of(lambda: saving.from_bytes(hostile)) < 3 * len(hostile) + 2**20  # noqa: B023


# --- hostile, with the right checksum ---


def test_the_forger_writes_as_we_do(content):
    assert forgery.forged(*forgery.parts_of(content)) == content


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 16 * 2**20 + 1, 2**40])
def test_a_header_longer_than_allowed_is_refused_unread(content, length):
    refused(length.to_bytes(8, "little") + content[8:], "header|not a geomix model")


def test_a_file_cut_while_it_is_being_read_is_refused(content):
    length = int.from_bytes(content[:8], "little")
    for end in (100, 8 + length, len(content) - 1):
        stream = io.BytesIO(content[:end])
        with pytest.raises(ModelFileError, match=r"truncated: expected \d+ bytes, read"):
            saving._read_model(stream, len(content), None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"},"', b'","zeal":"1"},"'),
        (b'"sha256":"', b'"sha256":"A'),
        (b'"sha256":"', b'"sha256":"g'),
        (b'"sha256":"', b'"sha256":"00'),
    ],
)
def test_other_metadata_than_ours_are_refused(content, old, new):
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip(b" ").replace(old, new, 1)
    if b"zeal" not in new:  # the digits that are there make room for the new ones
        at = header.index(new) + len(new)
        header = header[:at] + header[at + 1 :]
    header += b" " * (-len(header) % 8)
    refused(len(header).to_bytes(8, "little") + header + content[8 + length :], "SHA-256")


@pytest.mark.parametrize(
    "level",
    [
        {"int": "x" * 17},
        {"int": 5},
        {"int": "12"},
        {"int": " " + "9" * 17},
        {"int": "9" * 1001},
        {"int": "9" * 17, "more": 1},
        {"other": "9" * 17},
        {},
        [],
        None,
    ],
)
def test_levels_that_are_no_levels_are_refused(level):
    whole = saving.to_bytes(case("linear mixed").model)
    columns = json.loads(forgery.parts_of(whole)[0])["columns"]
    columns[3]["levels"][0] = level
    refused(forgery.with_manifest(whole, columns=columns), "level")


def test_a_header_of_16_mib_is_the_longest(content):
    text, tensors, data = forgery.parts_of(content)
    room = 16 * 2**20 - int.from_bytes(content[:8], "little")
    for extra, match in {room - 8: "", room + 8: "at most 16777216"}.items():
        # A text in place of nothing, in a key that readers ignore.
        about = {**json.loads(text), "x_long": ""}
        grown = int.from_bytes(forgery.forged(about, tensors, data)[:8], "little")
        about["x_long"] = "a" * (extra + int.from_bytes(content[:8], "little") - grown)
        whole = forgery.forged(about, tensors, data)
        if match:
            refused(whole, match)
        else:
            assert saving.from_bytes(whole).n_features == 3


def test_a_header_of_no_length_or_beyond_the_file_is_refused(content):
    refused(bytes(8) + content[8:], "not a geomix model")
    refused((len(content) - 7).to_bytes(8, "little") + content[8:], "truncated")


def hostile_json(text):
    return forgery.sealed(text, "", b"")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[" * 9 + "]" * 9, "levels deep"),
        ("[" * 100_000, "values|deep"),
        ('{"a":' * 50 + "1" + "}" * 50, "levels deep"),
        ("9" * 5000, "beyond 2"),
        ("[9007199254740993]", "beyond 2"),
        ("[-9007199254740993]", "beyond 2"),
        ("[NaN]", "NaN"),
        ("[-Infinity]", "Infinity"),
        ("[1e999]", "too large for a float"),
        ("[1." + "0" * 100 + "]", "too large for a float"),
        ('{"a":1,"a":2}', "repeats the key 'a'"),
        ('{"b":1,"a":2}', "canonical"),
        ('{"a": 1}', "canonical"),
        ("[1.50]", "canonical"),
        ('["\\u0041"]', "canonical"),
        ("{}", "not of the format"),
        ("[]", "not of the format"),
        ('"a', "cannot be read"),
        ('["\x01"]', "cannot be read|canonical"),
        ("", "cannot be read"),
        ('"' + '\\"' * 1000, "cannot be read"),
        ("[" + ",".join(["[]"] * 30_000) + "]", "more than"),
        ("[" + ",".join(['""'] * 60_000) + "]", "more than"),
    ],
)
def test_a_manifest_of_hostile_json_is_refused(text, match):
    refused(hostile_json(text), match)


def test_a_header_of_hostile_json_is_refused(content):
    text, tensors, data = forgery.parts_of(content)
    good = ",".join(forgery.tensor_text(name, *one) for name, one in tensors.items())
    for entries, match in {
        good.replace('"shape"', ' "shape"'): "canonical",
        good + "," + good: "repeat",
        good.replace('"dtype"', '"dtype":"F64","dtype"', 1): "repeat",
        good.replace("[0,", "[00,"): "cannot be read",
        good.replace("[0,", "[-0,"): "canonical",
        good.replace("[0,", "[0.0,"): "data_offsets",
        good + ',"__metadata__":{}': "repeat",
        good + ',"x":[' + "[" * 20 + "]" * 21: "levels deep",
        good + "," + ",".join(f'"t{j}":{{}}' for j in range(40)): "tensors",
        good + "," + ",".join(f'"t{j}":0' for j in range(100_000)): "too many",
        "é": "ASCII|JSON",
        '"x":1': "does not know",
        '"planes.biases":1': "expected dtype",
        '"planes.biases":{"data_offsets":[0,8],"dtype":[],"shape":[1]}': "dtype",
        '"planes.biases":{"data_offsets":[0,8],"dtype":"F64","shape":1}': "shape",
        '"planes.biases":{"data_offsets":[0],"dtype":"F64","shape":[1]}': "data_offsets",
        '"planes.biases":{"data_offsets":[0,8],"dtype":"F64","shape":[true]}': "shape",
        '"planes.biases":{"data_offsets":[0,0],"dtype":"F64","shape":[0]}': "shape",
        forgery.tensor_text("planes.weights", "F64", [2**32, 2**32 + 1], [0, 8]): "fill",
        forgery.tensor_text("planes.biases", "F64", [2**50], [0, 2**53]): "truncated",
    }.items():  # fmt: skip
        refused(forgery.sealed(text, entries, data), match)


def test_tensors_that_overlap_leave_holes_or_stand_out_of_order_are_refused(content):
    text, tensors, data = forgery.parts_of(content)
    (first, one), (second, two), *rest = tensors.items()
    moved = {first: one, second: (two[0], two[1], [two[2][0] - 8, two[2][1] - 8]), **dict(rest)}
    refused(forgery.forged(text, moved, data), "gap or overlap")
    shifted = {
        name: (kind, shape, [a + 8, b + 8]) for name, (kind, shape, (a, b)) in tensors.items()
    }
    refused(forgery.forged(text, shifted, bytes(8) + data), "gap or overlap")
    refused(forgery.forged(text, dict(reversed(tensors.items())), data), "out of order")


@pytest.mark.parametrize(
    ("name", "at", "value", "match"),
    [
        ("planes.weights", (0, 0), np.nan, "planes.weights holds"),
        ("planes.weights", (0, 0), np.inf, "planes.weights holds"),
        ("planes.weights", (0, 0), 1.01e100, "planes.weights holds"),
        ("planes.biases", 0, -1.01e100, "planes.biases holds"),
        ("standardize.mean", 0, -np.inf, "standardize.mean holds"),
        ("standardize.scale", 0, 0.0, "standardize.scale holds"),
        ("standardize.scale", 0, -1.0, "standardize.scale holds"),
        ("planes.class_start", 0, 1, "class_start"),
        ("planes.class_start", 1, 0, "class_start"),
        ("planes.class_start", 1, 6, "class_start"),
        ("planes.class_start", 3, 7, "planes.biases"),
        ("planes.class_start", 3, 2**62, "planes.biases"),
        ("planes.class_start", slice(1, 3), (2**63 - 1, -2), "class_start"),
    ],
)
def test_numbers_out_of_range_are_refused_by_the_name_of_their_tensor(
    content, name, at, value, match
):
    array = forgery.tensor(content, name)
    array[at] = value
    refused(forgery.with_tensor(content, name, array), match)


SPLINE_ROWS = [
    (0, 0, 3, "unknown kind"),
    (0, 1, 99, "unknown kind or column"),
    (0, 1, -1, "unknown kind or column"),
    (0, 1, 2, "does not fit"),  # a curve over a category
    (0, 2, 0, "does not fit"),
    (0, 3, 1, "does not fit"),
    (0, 3, 10**9, "does not fit"),
    (0, 4, 0, "does not fit"),
    (0, 5, 2, "does not fit"),
    (0, 3, 7, "spline.knots has shape"),
    (2, 3, 4, "does not fit"),  # levels that the table does not have
    (4, 2, 77, "unknown kind or column"),
    (4, 3, 2**40, "does not fit"),
    (4, 5, 2, "does not fit"),
    (4, 5, 7, "does not fit"),
]


@pytest.mark.parametrize(("row", "at", "value", "match"), SPLINE_ROWS)
def test_parts_of_a_spline_that_do_not_fit_are_refused(row, at, value, match):
    whole = saving.to_bytes(case("spline pairs").model)
    rows = forgery.tensor(whole, "spline.parts")
    rows[row, at] = value
    refused(forgery.with_tensor(whole, "spline.parts", rows), match)


@pytest.mark.parametrize("name", ["spline.knots", "spline.values", "spline.cuts"])
def test_knots_that_do_not_ascend_are_refused(name):
    whole = saving.to_bytes(case("spline pairs").model)
    numbers = forgery.tensor(whole, name)
    numbers[1] = numbers[0]
    refused(forgery.with_tensor(whole, name, numbers), f"{name}: expected ascending")


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("expand.column_of", 0, 4),
        ("expand.column_of", 0, -1),
        ("expand.column_of", 0, 2),
        ("expand.shows", 0, 0),
        ("expand.shows", 0, -3),
        ("expand.shows", -1, 99),
    ],
)
def test_expanded_columns_that_do_not_fit_the_table_are_refused(name, at, value):
    whole = saving.to_bytes(case("linear mixed").model)
    numbers = forgery.tensor(whole, name)
    numbers[at] = value
    refused(forgery.with_tensor(whole, name, numbers), "expand")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sharpness": 0.0}, "sharpness is 0.0"),
        ({"sharpness": 1e7}, "sharpness"),
        ({"sharpness": 6}, "sharpness"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"n_members": 0}, "n_members"),
        ({"n_members": 3}, "class_start"),
        ({"n_members": True}, "n_members"),
        ({"n_columns": 4}, "standardize"),
        ({"n_columns": 2}, "standardize"),
        ({"n_columns": 2**53}, "max_columns"),
        ({"columns": ["a", "b"]}, "columns: expected a list of n_columns=3"),
        ({"columns": ["a", "b", "b"]}, "repeat"),
        ({"columns": ["a", "b", 3]}, "columns: expected a name"),
        ({"columns": ["a", "b", {"name": "c", "levels": ["p"], "other": False}]}, "not expanded"),
        ({"columns": ["a", "b", {"name": "c", "levels": ["p", "p"], "other": False}]}, "repeat"),
        ({"columns": ["a", "b", {"name": "c", "levels": [None], "other": False}]}, "level"),
        ({"columns": ["a", "b", {"name": "c", "levels": [{"int": "12"}], "other": True}]}, "level"),
        ({"columns": ["a", "b", {"name": 1, "levels": [], "other": False}]}, "expected text"),
        ({"classes": []}, "classes"),
        ({"classes": {"dtype": "str", "values": "abc"}}, "list of at least two"),
        ({"classes": {"dtype": "int64", "values": [1]}}, "list of at least two"),
        ({"classes": {"dtype": "int64", "values": [1, 2]}}, "class_start"),
        ({"classes": {"dtype": "int64", "values": [1, 2, 2]}}, "repeat"),
        ({"classes": {"dtype": "int8", "values": [1, 2, 300]}}, "out of the range"),
        ({"classes": {"dtype": "int64", "values": [1, 2, "3"]}}, "expected values"),
        ({"classes": {"dtype": "bool", "values": [0, 1, 2]}}, "expected values"),
        ({"classes": {"dtype": "float32", "values": [0.1, 1.0, 2.0]}}, "not of type float32"),
        ({"classes": {"dtype": "complex128", "values": [0.1, 1.0, 2.0]}}, "unknown"),
        ({"classes": {"dtype": "str", "values": ["a", "b", "b\0"]}}, "expected text"),
        ({"classes": {"dtype": "str", "values": ["a", "b", "c" * 400_000]}}, "expected text"),
        ({"classes": {"dtype": ["O"], "values": ["a", "b", "c"]}}, "unknown|level"),
        ({"lift": "linear"}, "lift"),
        ({"lift": {"kind": "os.system"}}, "lift"),
        ({"lift": {"kind": "linear", "gamma": 1.0}}, "lift"),
        ({"lift": {"kind": "spline"}}, "as they are"),
        ({"lift": {"kind": "fourier", "gamma": 1.0}}, "fourier.frequencies is missing"),
        ({"lift": {"kind": "fourier", "gamma": 0.0}}, "gamma"),
        ({"lift": {"kind": "fourier", "gamma": 1.0, "precision": "float64"}}, "precision"),
        ({"lift": {"kind": "linear", "precision": "float32"}}, "lift"),
        ({"standardize": False}, "standardised"),
        ({"standardize": 1}, "standardize"),
        ({"expand": True}, "expand|standardize|categories"),
        ({"training": []}, "training"),
        ({"edits": {}}, "edits"),
        ({"edits": [1]}, "edits"),
        ({"more": 1}, "unknown key 'more'"),
        ({"edits": ...}, "lacks the key 'edits'"),
        ({"format": "gmc"}, "format"),
        ({"format_version": [1]}, "format_version"),
        ({"format_version": [True, 0]}, "format_version"),
        ({"format_version": 1}, "format_version"),
        ({"requires": "core"}, "requires"),
        ({"requires": [1]}, "requires"),
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit_is_refused(content, changes, match):
    refused(forgery.with_manifest(content, **changes), match)


def test_tensors_missing_or_too_many_are_refused(content):
    for name in ("planes.weights", "planes.biases", "planes.class_start", "standardize.scale"):
        refused(forgery.with_tensor(content, name, None), name)
    refused(forgery.with_tensor(content, "spline.cuts", np.full(2, 0.1)), "does not belong")
    refused(
        forgery.with_tensor(content, "fourier.frequencies", np.full((3, 2), 0.1)), "does not belong"
    )
    weights = forgery.tensor(content, "planes.weights")
    refused(forgery.with_tensor(content, "planes.weights", weights.T.copy()), "has shape")
    refused(forgery.with_tensor(content, "planes.weights", weights.astype("<i8")), "holds integers")
    start = forgery.tensor(content, "planes.class_start") + 0.1  # not exact in F32
    refused(forgery.with_tensor(content, "planes.class_start", start), "holds floats")


def test_a_signalling_nan_of_four_bytes_is_refused_like_any_other():
    whole = saving.to_bytes(case("fourier").model)
    frequencies = forgery.tensor(whole, "fourier.frequencies")
    assert frequencies.dtype == np.float32
    frequencies.view(np.uint32)[0, 0] = 0x7F800001
    refused(forgery.with_tensor(whole, "fourier.frequencies", frequencies), "fourier.frequencies")


def test_optional_keys_of_later_versions_are_ignored(content):
    model = saving.from_bytes(forgery.with_manifest(content, x_colour="blue"))
    rows = case("linear").rows
    assert np.array_equal(model.predict_proba(rows), case("linear").model.predict_proba(rows))


# --- versions ---


def test_a_newer_minor_version_loads_if_its_features_are_known(content):
    later = forgery.with_manifest(content, format_version=[1, 7], written_by="geomix 9.0")
    assert saving.from_bytes(later).n_features == 3
    needs = forgery.with_manifest(
        content, format_version=[1, 7], requires=["core", "wavelets"], written_by="geomix 9.0"
    )
    error = refused(needs, r"geomix 9\.0.*1\.7.*wavelets.*upgrade")
    assert isinstance(error, ModelVersionError)


@pytest.mark.parametrize(("version", "advice"), [([2, 0], "upgrade"), ([0, 9], "no release")])
def test_another_major_version_is_refused_as_such(content, version, advice):
    # Its other keys are whatever that version wants.
    _, tensors, data = forgery.parts_of(content)
    about = {
        "format": manifest.FORMAT,
        "format_version": version,
        "requires": [],
        "written_by": "g",
    }
    assert isinstance(refused(forgery.forged(about, tensors, data), advice), ModelVersionError)


@pytest.mark.parametrize(
    "entry",
    [("wavelet.scales", "F64", [2], [0, 16]), ("planes.weights", "BF16", [2, 2, 2], [0, 16])],
)
@pytest.mark.parametrize(
    "changes", [{"format_version": [2, 0]}, {"format_version": [1, 7], "requires": ["wavelets"]}]
)
def test_a_later_version_is_told_as_such_even_if_its_tensors_are_unknown(content, entry, changes):
    about = {**json.loads(forgery.parts_of(content)[0]), **changes}
    later = forgery.sealed(about, forgery.tensor_text(*entry), bytes(16))
    assert isinstance(refused(later, "upgrade geomix"), ModelVersionError)
    same = {**about, "format_version": [1, 0], "requires": ["core"]}
    today = forgery.sealed(same, forgery.tensor_text(*entry), bytes(16))
    assert not isinstance(refused(today, "tensor"), ModelVersionError)


# --- what is no model file at all ---


@pytest.mark.parametrize(
    ("first", "match"),
    [
        (b"", "empty"),
        (pickle.dumps({"a": 1}), r"pickle.*never unpickles"),
        (pickle.dumps({"a": 1}, protocol=2), "pickle"),
        (b"PK\x03\x04" + bytes(100), "zip"),
        (b"\x1f\x8b" + bytes(range(100)), "gzip"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\n\n  <html>Not found</html>", "HTML"),
        (b'{"format": "geomix-json"}', "JSON"),
        (b"\x08\x08\x12\x04onnx" * 4, "ONNX"),
        (b"\x93NUMPY\x01\x00" + bytes(100), "NumPy"),
        (b"tree\nversion=v4\n", "LightGBM"),
        (b"sepal,petal\n1,2\n", "not a geomix model"),
        (bytes(1000), "not a geomix model"),
    ],
)
def test_foreign_files_are_told_by_their_first_bytes(first, match, tmp_path):
    path = tmp_path / "model.geomix"
    path.write_bytes(first)
    with pytest.raises(ModelFileError, match=match) as caught:
        geomix.load(path)
    assert str(path) in str(caught.value)
    assert saving.info(path).problem is not None


def test_another_safetensors_file_is_no_model(tmp_path):
    import safetensors.numpy

    path = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"w": np.zeros(3)}, path, metadata={"a": "b"})
    with pytest.raises(ModelFileError, match="not a geomix model"):
        geomix.load(path)


def test_only_regular_files_are_read(tmp_path, content):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, what in {pipe: "a pipe", tmp_path: "a directory", "/dev/zero": "a device"}.items():
        with pytest.raises(ModelFileError, match=what):
            geomix.load(path)
        assert what in saving.info(path).problem
    target = tmp_path / "target.geomix"
    target.write_bytes(content)
    link = tmp_path / "link.geomix"
    link.symlink_to(target)
    assert geomix.load(link).n_features == 3
    with pytest.raises(FileNotFoundError):
        geomix.load(tmp_path / "none.geomix")


def test_a_file_above_the_limit_is_refused_unread(tmp_path):
    path = tmp_path / "large.geomix"
    with open(path, "wb") as file:
        file.truncate(5 * 2**30)  # a hole, which takes no room
    assert peak_of(lambda: geomix.load(path)) < 2**20
    with pytest.raises(ModelFileError, match="max_bytes=100"):
        geomix.load(path, max_bytes=100)


def test_control_characters_of_a_path_are_not_printed(tmp_path):
    path = tmp_path / "a\x1b[2Jb.geomix"
    path.write_bytes(b"x")
    with pytest.raises(ModelFileError) as caught:
        geomix.load(path)
    assert "\x1b" not in str(caught.value)


# --- memory ---


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * (5 * 2**20) + "[]]",
        "[" + '"",' * (5 * 2**20) + '""]',
        '"' + "\\u0041" * (2 * 2**20) + '"',
        '"' + "a" * (15 * 2**20) + '"',
        "[" * (15 * 2**20),
        '{"' + '":{"' * (3 * 2**20),
    ],
    ids=["lists", "texts", "escapes", "one text", "deep", "objects"],
)
def test_a_hostile_header_takes_at_most_three_times_its_size(text):
    hostile = hostile_json(text)
    if len(hostile) - 8 > 16 * 2**20:  # escaped quotes: just below the limit of a header
        hostile = hostile_json(text[: 2 * len(text) - len(hostile) + 2**20])
    assert peak_of(lambda: saving.from_bytes(hostile)) < 3 * len(hostile) + ROOM_FOR_OBJECTS


@pytest.mark.parametrize("lift", ["linear", "fourier"])
def test_loading_a_large_model_takes_at_most_three_times_its_size(lift, tmp_path):
    rng = np.random.default_rng(0)
    n_columns, n_planes = 500, 3000
    like = case("linear").model
    standardize = geomix.core.lifts.Standardize(
        np.arange(n_columns), rng.normal(size=n_columns), np.ones(n_columns), None, n_columns
    )
    fourier = geomix.core.lifts.draw_fourier(n_columns, 2000, 0.1, False, rng)
    n_inputs = n_columns if lift == "linear" else fourier.n_outputs
    n_planes = n_planes if lift == "linear" else 300
    model = geomix.GeometricMixture(
        like.classes,
        tuple(f"x{j}" for j in range(n_columns)),
        geomix.core.feature_map.FeatureMap(
            standardize,
            geomix.core.lifts.IdentityLift(n_columns) if lift == "linear" else fourier,
        ),
        geomix.core.planes.Planes(
            rng.normal(size=(n_planes, n_inputs)), rng.normal(size=n_planes),
            np.array([0, 1, 2, n_planes]),
        ),
        6.0,
    )  # fmt: skip
    path = tmp_path / "large.geomix"
    model.save(path)
    size = path.stat().st_size
    assert size > 8 * 2**20
    assert peak_of(lambda: geomix.load(path)) < 3 * size + 2**20


# --- nothing runs, nothing is opened ---

AUDITED = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import geomix
from geomix import ModelFileError
files = sorted(pathlib.Path(sys.argv[2]).iterdir())
for path in files:  # what is imported or made on first use
    try:
        geomix.load(path).predict_proba
    except ModelFileError:
        pass
events = []
recording = False
def hook(event, arguments):
    if recording and (event in ("open", "exec", "import", "compile", "marshal.loads")
                      or event.split(".")[0] in ("os", "subprocess", "socket", "pickle", "ctypes",
                                                 "shutil", "glob", "urllib")):
        events.append((event, str(arguments[0])))
sys.addaudithook(hook)
for path in files:
    recording = True
    try:
        geomix.load(path)
    except ModelFileError:
        pass
    recording = False
allowed = {("open", str(path)) for path in files}
# Opened by name once, and a Python file made of the descriptor.
events = [(event, what) for event, what in events if not (event == "open" and what.isdigit())]
print(len(files), len(events), [event for event in events if event not in allowed])
"""


def test_loading_opens_the_file_and_does_nothing_else(tmp_path, content):
    rng = np.random.default_rng(7)
    for name in MAKERS:
        (tmp_path / f"{name}.geomix").write_bytes(saving.to_bytes(case(name).model))
    for j in range(60):
        (tmp_path / f"hostile{j}.geomix").write_bytes(forgery.mutated(content, rng))
    names = {
        "columns": ["../../x", "__import__('os')", "<script>"],
        "training": {"a": "/etc/passwd"},
    }
    (tmp_path / "names.geomix").write_bytes(forgery.with_manifest(content, **names))
    (tmp_path / "pickle.geomix").write_bytes(pickle.dumps(os.getcwd))
    here = str(TESTS)
    ran = subprocess.run(
        [sys.executable, "-c", AUDITED, here, str(tmp_path)], capture_output=True, text=True
    )
    n_files = len(MAKERS) + 62
    assert ran.stdout.strip() == f"{n_files} {n_files} []", ran.stdout + ran.stderr


def test_strict_json_gives_back_what_canonical_wrote():
    value = {"b": [1, -2.5, 1e300, True, None], "a": {'é\ud800\x00"\\': "\U0001f600"}}
    text = canonical_json.canonical(value)
    assert canonical_json.read(text, 100) == value == json.loads(text)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="JSON"):
        canonical_json.canonical(float("nan"))


# --- one content, one file ---


@pytest.mark.parametrize(
    "requires",
    [["core", "core"], [], ["expand", "core"], ["core", "spline"], ["core"] * 2 + ["expand"]],
    ids=["repeated", "empty", "out of order", "not needed", "repeated and more"],
)
def test_the_required_features_are_listed_in_one_way(requires, content):
    refused(forgery.with_manifest(content, requires=requires), "requires")
    mixed = saving.to_bytes(case("linear mixed").model)
    refused(forgery.with_manifest(mixed, requires=requires), "requires")


def test_floats_that_fit_into_f32_are_not_stored_as_f64():
    rows, labels = np.array([[0.0], [1.0], [2.0], [3.0]] * 5), ["a", "b", "b", "a"] * 5
    clf = geomix.GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3)
    whole = saving.to_bytes(clf.fit(rows, labels).model_)
    text, tensors, data = forgery.parts_of(whole)
    assert tensors["standardize.mean"][0] == "F32"  # 1.5
    arrays = {
        name: np.frombuffer(data[begin:end], {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[dtype])
        for name, (dtype, _, (begin, end)) in tensors.items()
    }
    arrays = {name: a.astype("<f8") if a.dtype == "<f4" else a for name, a in arrays.items()}
    wide, offset, content = {}, 0, b""
    for name in sorted(arrays):
        size = arrays[name].nbytes
        kind = "I64" if arrays[name].dtype == "<i8" else "F64"
        wide[name] = (kind, tensors[name][1], [offset, offset + size])
        offset, content = offset + size, content + arrays[name].tobytes()
    refused(forgery.forged(text, wide, content), "stored as F64, but F32 is exact")


def test_positions_of_kept_columns_are_stored_only_if_some_are_dropped(content):
    n_columns = json.loads(forgery.parts_of(content)[0])["n_columns"]
    forged = forgery.with_tensor(content, "standardize.kept", np.arange(n_columns))
    refused(forged, "not stored if all columns are kept")


def test_default_names_are_stored_as_null():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    clf = geomix.GeometricMixtureClassifier(lift="linear", n_planes=1, l2=1e-3)
    content = saving.to_bytes(clf.fit(X, X[:, 0] > 0).model_)
    assert json.loads(forgery.parts_of(content)[0])["columns"] is None
    refused(forgery.with_manifest(content, columns=["x0", "x1", "x2"]), "default names")


def test_a_long_text_in_a_manifest_takes_at_most_three_times_its_size(content):
    hostile = forgery.with_manifest(content, training={"note": "a" * 15_000_000})
    assert saving.from_bytes(hostile).training == {"note": "a" * 15_000_000}
    assert peak_of(lambda: saving.from_bytes(hostile)) < 3 * len(hostile) + ROOM_FOR_OBJECTS
