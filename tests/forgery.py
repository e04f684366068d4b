"""Hostile model files: written by a second, lenient writer, whose checksum is always right.

A checksum hides the checks behind it from random damage, so what is forged here gets a fresh one.
"""

from __future__ import annotations

import copy
import hashlib
import json

import numpy as np

SIZES = {"F64": 8, "I64": 8, "F32": 4}


def parts_of(content):
    """Manifest (text), tensors {name: (dtype, shape, offsets)} in order, and data."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    tensors = {
        name: (one["dtype"], one["shape"], one["data_offsets"]) for name, one in header.items()
    }
    return metadata["geomix"], tensors, content[8 + length :]


def tensor_text(name, dtype, shape, offsets):
    sizes = ",".join(map(str, shape))
    begin, end = offsets
    return f'"{name}":{{"data_offsets":[{begin},{end}],"dtype":"{dtype}","shape":[{sizes}]}}'


def forged(manifest, tensors, data):
    """A file with this content and the right checksum, sound or not."""
    entries = ",".join(tensor_text(name, *one) for name, one in tensors.items())
    return sealed(manifest, entries, data)


def sealed(manifest, entries, data):
    text = manifest if isinstance(manifest, str) else dumped(manifest)
    digest = hashlib.sha256(b"\0".join([text.encode(), entries.encode(), data])).hexdigest()
    header = f'{{"__metadata__":{{"geomix":{json.dumps(text)},"sha256":"{digest}"}}'
    header += ("," + entries if entries else "") + "}"
    header += " " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header.encode() + data


def dumped(manifest):
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"))


def with_manifest(content, **changes):
    """The same file with other values in its manifest; ``...`` removes a key."""
    text, tensors, data = parts_of(content)
    manifest = {**json.loads(text), **changes}
    manifest = {key: value for key, value in manifest.items() if value is not ...}
    return forged(manifest, tensors, data)


def with_tensor(content, name, array):
    """The same file with another tensor (any shape and type), or None to take it out."""
    text, tensors, data = parts_of(content)
    arrays = {key: (dtype, shape, data[slice(*at)]) for key, (dtype, shape, at) in tensors.items()}
    if array is None:
        del arrays[name]
    else:
        dtype = {"f8": "F64", "i8": "I64", "f4": "F32"}[array.dtype.str[1:]]
        arrays[name] = dtype, list(array.shape), array.tobytes()
    order = sorted(arrays, key=lambda key: (-SIZES[arrays[key][0]], key))
    placed, end = {}, 0
    for key in order:
        dtype, shape, piece = arrays[key]
        placed[key] = dtype, shape, (end, end + len(piece))
        end += len(piece)
    return forged(text, placed, b"".join(arrays[key][2] for key in order))


def tensor(content, name):
    """A tensor of the file, as an array of its own."""
    _, tensors, data = parts_of(content)
    dtype, shape, at = tensors[name]
    code = {"F64": "<f8", "I64": "<i8", "F32": "<f4"}[dtype]
    return np.frombuffer(data[slice(*at)], dtype=code).reshape(shape).copy()


ODD_VALUES = (
    None, True, False, 0, 1, -1, 2, 3, 2**53, -(2**53), 0.0, 1.5, -2.5, 1e300, 5e-324, "", "x0",
    "linear", "fourier", "../../etc/passwd", "\x1b[2J", "\ud800", [], [[]], {}, {"int": "9"},
    {"int": "9" * 400}, ["a"] * 3, list(range(300)), {"name": "q", "levels": [1, 1], "other": True},
)  # fmt: skip
ODD_FLOATS = (
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e100, 1.1e100, -1e308, 5e-324, 1e-310, 1e17,
)  # fmt: skip
ODD_INTEGERS = (0, 1, -1, -2, -3, 2, 3, 7, 254, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63))


def mutated(content, rng):
    """Some damage to a file: to its bytes, or to its content, with the checksum made right."""
    kind = rng.integers(8)
    if kind == 0:
        return _flipped(content, rng)
    if kind == 1:
        return content[: rng.integers(len(content))]
    if kind == 2:
        at = rng.integers(len(content), size=2)
        return content[: at[0]] + content[at[1] :]
    if kind == 3:
        return _other_header_bytes(content, rng)
    if kind == 4:
        return _other_entries(content, rng)
    text, tensors, data = parts_of(content)
    if kind in (5, 6):
        manifest = json.loads(text)
        for _ in range(rng.integers(1, 3)):
            _change_somewhere(manifest, rng)
        return forged(dumped(manifest), tensors, data)
    name = list(tensors)[rng.integers(len(tensors))]
    return with_tensor(content, name, _other_array(tensor(content, name), rng))


def _flipped(content, rng):
    damaged = bytearray(content)
    for at in rng.integers(len(content), size=rng.integers(1, 6)):
        damaged[at] = rng.integers(256)
    return bytes(damaged)


def _other_header_bytes(content, rng):
    """A byte of the manifest or of the entries is another one, and the checksum fits."""
    text, tensors, data = parts_of(content)
    entries = ",".join(tensor_text(name, *one) for name, one in tensors.items())
    pieces = [bytearray(text.encode()), bytearray(entries.encode())]
    piece = pieces[rng.integers(2)]
    piece[rng.integers(len(piece))] = rng.choice(list(b'0123456789",:{}[]eE+-. aN\\'))
    return sealed(pieces[0].decode(), pieces[1].decode(), data)


def _other_entries(content, rng):
    """Shapes, offsets, types and names of tensors, in another order or number."""
    text, tensors, data = parts_of(content)
    names = list(tensors)
    name = names[rng.integers(len(names))]
    dtype, shape, at = copy.deepcopy(tensors[name])
    change = rng.integers(6)
    if change == 0:
        shape = shape[::-1] if len(shape) > 1 else [*shape, 1]
    elif change == 1:
        shape[rng.integers(len(shape))] = int(rng.choice(ODD_INTEGERS))
    elif change == 2:
        at = [int(rng.choice(ODD_INTEGERS)), at[1]]
    elif change == 3:
        dtype = rng.choice(["F64", "F32", "I64", "BF16", "U8", ""])
    elif change == 4:
        tensors = {key: tensors[key] for key in rng.permutation(names)}
    else:
        other = rng.choice([*names, "planes.weights", "standardize.rotation", "x", "spline.cuts"])
        tensors = {other if key == name else key: value for key, value in tensors.items()}
        return forged(text, tensors, data)
    if name in tensors:
        tensors[name] = dtype, shape, at
    return forged(text, tensors, data)


def _other_array(array, rng):
    array = array.reshape(-1) if rng.random() < 0.1 else array
    array = array[: rng.integers(1, len(array) + 1)] if rng.random() < 0.2 else array
    array = np.ascontiguousarray(array)
    odd = ODD_INTEGERS if array.dtype.kind == "i" else ODD_FLOATS
    flat = array.reshape(-1)
    with np.errstate(over="ignore"):
        for at in rng.integers(len(flat), size=rng.integers(0, 3)):
            flat[at] = odd[rng.integers(len(odd))]
    if rng.random() < 0.05:
        array = (
            array.astype("<f8" if array.dtype.kind == "i" else "<i8") if _is_tame(array) else array
        )
    return array


def _is_tame(array):
    return bool((np.abs(array) < 1e18).all())


def _change_somewhere(value, rng):
    """Replace, remove or add one value somewhere inside."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(value[key], (dict, list)) and value[key] and rng.random() < 0.6:
            value = value[key]
            continue
        if rng.random() < 0.1:
            del value[key]
        elif rng.random() < 0.1 and isinstance(value, dict):
            value[str(rng.choice(["x_more", "more", "kind"]))] = 1
        else:
            value[key] = copy.deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])
        return
