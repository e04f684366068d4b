"""The bytes of a model file: a strict subset of the safetensors format.

    8 bytes   length N of the header, little-endian, at most 16 MiB
    N bytes   JSON: {"__metadata__": {"geomix": manifest, "sha256": 64 hex digits},
                     name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...}
              padded with spaces to a multiple of 8
    the rest  the tensors, little-endian, C order, without gaps: F64 and I64, then F32, each
              sorted by name, so that numbers are aligned. Floats are F32 if that is exact

    sha256 = SHA-256(manifest, 0, header of the tensors, 0, data)

Any safetensors tool can open such a file. This reader accepts only this form, so a model has
exactly one sequence of bytes. Sizes are compared with the file before memory is allocated. Every
fault is a ``ModelFileError``. The checksum detects damage, not forgery.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from geomix.errors import ModelFileError
from geomix.modelfile import canonical_json

LARGEST_HEADER = 16 * 2**20
MOST_TENSORS = 32
BLOCK = 2**16  # numbers that are compared at a time
MOST_DIMENSIONS = 2
DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4"}
# Longest part of a header after the manifest: names, shapes and offsets of the tensors.
LONGEST_TENSOR_HEADER = 256 * MOST_TENSORS

BEGINNING = b'{"__metadata__":{"geomix":"'
MIDDLE = b'","sha256":"'

# Other formats that are passed by mistake, by their first bytes.
FOREIGN = {
    b"\x80\x02": "a pickle (0x80 0x02), which could run code; geomix never unpickles",
    b"\x80\x03": "a pickle (0x80 0x03), which could run code; geomix never unpickles",
    b"\x80\x04": "a pickle (0x80 0x04), which could run code; geomix never unpickles",
    b"\x80\x05": "a pickle (0x80 0x05), which could run code; geomix never unpickles",
    b"PK\x03\x04": "a zip archive (npz, skops, torch or a spreadsheet)",
    b"\x1f\x8b": "gzip; uncompress it first",
    b"\x78\x9c": "zlib, as joblib writes it; geomix never unpickles",
    b"(\xb5/\xfd": "zstd; uncompress it first",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"\x08\x07": "an ONNX model, which cannot be turned back",
    b"\x08\x08": "an ONNX model, which cannot be turned back",
    b"\x08\x09": "an ONNX model, which cannot be turned back",
    b"\x08\x0a": "an ONNX model, which cannot be turned back",
    b"<": "HTML or XML, perhaps an error page that was saved instead of the file",
    b"{": "JSON; an exported model cannot be turned back",
    b"tree\n": "a LightGBM model",
}


@dataclass(frozen=True)
class Tensor:
    """A tensor and its bytes in the data, from ``begin`` to ``end``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    manifest: str
    sha256: str
    tensors: tuple[Tensor, ...]


# --- writing ---


def pack(manifest: str, arrays: Mapping[str, Any]) -> bytes:
    """The bytes of a file; empty arrays are omitted.

    Floats are F32 if that is exact, else F64; integers are I64.
    """
    stored = {name: _storable(array) for name, array in arrays.items() if array.size}
    tensors, end = [], 0
    for name in sorted(stored, key=lambda name: (-stored[name].itemsize, name)):
        kind = next(kind for kind, dtype in DTYPES.items() if stored[name].dtype == dtype)
        begin, end = end, end + stored[name].nbytes
        tensors.append(Tensor(name, kind, stored[name].shape, begin, end))
    data = b"".join(stored[tensor.name].tobytes() for tensor in tensors)
    digest = _digest_before_data(manifest, tuple(tensors))
    digest.update(data)
    header = _header_bytes(Header(manifest, digest.hexdigest(), tuple(tensors)))
    return len(header).to_bytes(8, "little") + header + data


def _storable(array: Any) -> Any:
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=DTYPES["I64"])
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(array, dtype=DTYPES["F32" if _fits_f32(array) else "F64"])


def _fits_f32(array: Any) -> bool:
    """Whether F32 is exact, block by block so that no whole copy is in memory."""
    flat = array.reshape(-1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return all(
            np.array_equal(block.astype(np.float32).astype(np.float64), block)
            for block in (flat[i : i + BLOCK] for i in range(0, flat.size, BLOCK))
        )


def _header_bytes(header: Header) -> bytes:
    middle = json.dumps(header.manifest).encode()[1:-1]
    text = BEGINNING + middle + _header_end(header)
    return text + b" " * (-len(text) % 8)


def _header_end(header: Header) -> bytes:
    """The header after the manifest, without padding."""
    tensors = _tensors_text(header.tensors)
    return MIDDLE + header.sha256.encode() + b'"}' + (b"," + tensors if tensors else b"") + b"}"


def _tensors_text(tensors: tuple[Tensor, ...]) -> bytes:
    return ",".join(
        f'"{one.name}":'
        + canonical_json.canonical(
            {"dtype": one.dtype, "shape": list(one.shape), "data_offsets": [one.begin, one.end]}
        )
        for one in tensors
    ).encode()


def _digest_before_data(manifest: str, tensors: tuple[Tensor, ...]) -> Any:
    """The checksum of everything before the data."""
    digest = hashlib.sha256(manifest.encode())
    digest.update(b"\0" + _tensors_text(tensors) + b"\0")
    return digest


# --- reading ---


def read_header(stream: BinaryIO, size: int, ranks: Mapping[str, int]) -> Header:
    """The header of a file of ``size`` bytes. ``ranks`` : name -> number of dimensions of the known
    tensors, which must fill the file exactly. The data are not read."""
    manifest, ending, length = _split_header(stream, size)
    header = Header(manifest, *_parsed_ending(ending, ranks))
    expected = _header_end(header)
    if ending != expected + b" " * (-(length - len(ending) + len(expected)) % 8):
        raise ModelFileError("its header is not in canonical form")
    _check_cover(header.tensors, 8 + length, size)
    return header


def read_manifest(stream: BinaryIO, size: int) -> str:
    """The manifest alone, with unchecked tensors."""
    return _split_header(stream, size)[0]


def _split_header(stream: BinaryIO, size: int) -> tuple[str, bytes, int]:
    """The manifest, the rest of the header, and the length of the header."""
    length = _header_length(stream.read(8), size)
    text = _read(stream, length)
    if not text.startswith(BEGINNING):
        raise ModelFileError("not a geomix model: its header begins differently")
    middle = text.find(MIDDLE, len(BEGINNING))
    if middle < 0 or length - middle > LONGEST_TENSOR_HEADER:
        raise ModelFileError("its header has no checksum or too many tensors")
    ending = text[middle:]
    # A header may have 16 MiB, so few copies of it may exist at a time.
    quoted = _ascii(memoryview(text)[len(BEGINNING) - 1 : middle + 1])
    del text
    return _manifest(quoted), ending, length


def foreign_format(first: bytes) -> str | None:
    """The format of a file that is not a model, from its first bytes; None if unknown."""
    stripped = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    for magic, what in FOREIGN.items():
        if first.startswith(magic) or (magic in (b"<", b"{") and stripped.startswith(magic)):
            return what
    return None


def _header_length(first: bytes, size: int) -> int:
    if size == 0:
        raise ModelFileError("the file is empty")
    # A length of at most 16 MiB ends in four zero bytes; no text or archive begins like that.
    length = int.from_bytes(first, "little")
    what = foreign_format(first) if length > LARGEST_HEADER else None
    if what is not None:
        raise ModelFileError(f"not a geomix model: this is {what}")
    if len(first) < 8:
        raise ModelFileError(f"truncated: the file has {size} bytes, fewer than its first field")
    if length > LARGEST_HEADER:
        raise ModelFileError(
            f"not a geomix model: its header would have {length} bytes, and at most "
            f"{LARGEST_HEADER} are allowed"
        )
    if 8 + length > size:
        raise ModelFileError(f"truncated: header says {8 + length} bytes, file has {size}")
    return length


def _ascii(content: Any) -> str:
    try:
        return str(content, "ascii")
    except ValueError:
        raise ModelFileError("its header is not ASCII") from None


def _manifest(quoted: str) -> str:
    """The text of a JSON string, which must be in canonical form."""
    try:
        manifest = json.loads(quoted)
    except ValueError:
        raise ModelFileError("its manifest is not text in JSON form") from None
    if not isinstance(manifest, str) or not manifest.isascii():
        raise ModelFileError("its manifest is not ASCII")
    if json.dumps(manifest) != quoted:
        raise ModelFileError("its header is not in canonical form")
    return manifest


def _parsed_ending(ending: bytes, ranks: Mapping[str, int]) -> tuple[str, tuple[Tensor, ...]]:
    text = _ascii(BEGINNING + ending)
    canonical_json.check_structure(text, 8 * (MOST_TENSORS + 2))
    header = canonical_json.parse(text)
    metadata = header.pop("__metadata__")
    if set(metadata) != {"geomix", "sha256"} or not _is_hex(metadata["sha256"]):
        raise ModelFileError("its metadata is not a manifest and a SHA-256 of 64 hex digits")
    if len(header) > MOST_TENSORS:
        raise ModelFileError(f"it has {len(header)} tensors; at most {MOST_TENSORS} are allowed")
    tensors = tuple(_tensor(name, entry, ranks) for name, entry in header.items())
    return metadata["sha256"], tensors


def _is_hex(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def _tensor(name: str, entry: Any, ranks: Mapping[str, int]) -> Tensor:
    if name not in ranks:
        raise ModelFileError(f"it has a tensor {name[:80]!r}, which this version does not know")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"tensor {name}: expected dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFileError(f"tensor {name}: dtype {_shortened(dtype)} is not one of {[*DTYPES]}")
    if not _are_sizes(shape) or len(shape) != ranks[name] or 0 in shape:
        raise ModelFileError(
            f"tensor {name}: shape {_shortened(shape)}, expected {ranks[name]} positive sizes"
        )
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ModelFileError(
            f"tensor {name}: data_offsets {_shortened(offsets)}, expected begin and end"
        )
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != offsets[1] - offsets[0]:
        raise ModelFileError(f"tensor {name}: shape {shape} does not fill {offsets}")
    return Tensor(name, dtype, tuple(shape), *offsets)


def _shortened(value: Any) -> str:
    return ascii(value)[:80]


def _are_sizes(sizes: Any) -> bool:
    return (
        isinstance(sizes, list)
        and len(sizes) <= MOST_DIMENSIONS
        and all(type(one) is int and one >= 0 for one in sizes)
    )


def _check_cover(tensors: tuple[Tensor, ...], start: int, size: int) -> None:
    """Raise unless the tensors are in order, without gaps, up to the end of the file."""
    end, last = 0, (-math.inf, "")
    for one in tensors:
        place = (-np.dtype(DTYPES[one.dtype]).itemsize, one.name)
        if one.begin != end or place <= last:
            raise ModelFileError(f"tensor {one.name}: out of order, or a gap or overlap before it")
        end, last = one.end, place
    if start + end > size:
        raise ModelFileError(f"truncated: header says {start + end} bytes, file has {size}")
    if start + end < size:
        raise ModelFileError(f"{size - start - end} bytes after its end")


def read_tensors(stream: BinaryIO, header: Header) -> dict[str, Any]:
    """The arrays after the header, as float64 and int64; raises if the checksum is wrong."""
    digest = _digest_before_data(header.manifest, header.tensors)
    arrays = {}
    for one in header.tensors:
        array = np.empty(one.shape, dtype=DTYPES[one.dtype])
        content = array.data.cast("B")
        _fill(stream, content)
        digest.update(content)
        with np.errstate(invalid="ignore"):  # signalling NaN; NaN is refused later
            wide = np.int64 if one.dtype == "I64" else np.float64
            arrays[one.name] = array.astype(wide, copy=False)
    if digest.hexdigest() != header.sha256:
        raise ModelFileError("the checksum is wrong: the file is damaged")
    for one in header.tensors:
        if one.dtype == "F64" and _fits_f32(arrays[one.name]):
            raise ModelFileError(f"tensor {one.name}: stored as F64, but F32 is exact")
    return arrays


def _read(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) != length:
        raise ModelFileError(f"truncated: expected {length} bytes, read {len(content)}")
    return content


def _fill(stream: BinaryIO, content: memoryview) -> None:
    done = 0
    while done < len(content):
        # Files and BytesIO, the streams used here, have readinto.
        got = stream.readinto(content[done:])  # type: ignore[attr-defined]
        if not got:
            raise ModelFileError(f"truncated: expected {len(content)} bytes, read {done}")
        done += got


def as_stream(content: bytes) -> tuple[io.BytesIO, int]:
    """Bytes as a stream, and its size."""
    return io.BytesIO(content), len(content)
