"""Save, load, inspect and verify model files.

    model  ->  manifest (JSON), tensors  ->  bytes  ->  atomic write
    file   ->  size  ->  header  ->  checksum  ->  manifest  ->  parts  ->  model

Loading never runs code from a file, opens no other file, and allocates nothing before the sizes are
checked. It returns the exact model that was saved or raises ``ModelFileError`` (``OSError`` if the
file cannot be read). Files name no classes or modules. ``tensor_file`` has the bytes, ``manifest``
and ``model_tensors`` the content, ``atomic`` the writing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import FourierLift
from geomix.errors import ModelFileError, ModelVersionError
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture
from geomix.modelfile import atomic, canonical_json, manifest, model_tensors, tensor_file
from geomix.modelfile.tensor_reader import TensorReader
from geomix.table.schema import Schema

LARGEST_FILE = 4 * 2**30


def save(model: GeometricMixture, path: Any) -> None:
    """Write a model to ``path``, atomically.

    The bytes are loaded and compared before they are written. The same model gives the same bytes.

    Examples
    --------
    >>> import tempfile, geomix
    >>> from sklearn.datasets import load_iris
    >>> clf = geomix.GeometricMixtureClassifier(lift="linear", l2=1e-3, random_state=0)
    >>> model = clf.fit(*load_iris(return_X_y=True)).model_
    >>> path = tempfile.mkdtemp() + "/iris.geomix"
    >>> save(model, path)
    >>> same = geomix.load(path)
    >>> rows = load_iris().data
    >>> bool((same.predict_proba(rows) == model.predict_proba(rows)).all())
    True
    """
    try:
        content = to_bytes(model)
        again = to_bytes(from_bytes(content, max_columns=model.n_features))
    except ModelFileError as error:
        raise ModelFileError(f"This model cannot be saved: {error}.") from error
    if again != content:
        raise ModelFileError("This model cannot be saved: loading it gives a different model.")
    atomic.write_bytes(path, content)


def load(
    path: Any, *, max_bytes: int = LARGEST_FILE, max_columns: int | None = None
) -> GeometricMixture:
    """The model in the file ``path``, exactly as it was saved.

    max_bytes : a larger file is refused without reading it
    max_columns : largest number of columns, since each takes some hundred bytes of memory however
        few bytes of the file it takes; None: 20,000 and one for every 32 bytes of the file
    """
    try:
        with _open_regular(path) as file:
            return _read_model(file, _checked_size(file, max_bytes), max_columns)
    except ModelFileError as error:
        raise type(error)(f"{_display_path(path)}: {error}.") from None


def from_bytes(content: bytes, *, max_columns: int | None = None) -> GeometricMixture:
    """The model whose file has this content."""
    return _read_model(*tensor_file.as_stream(content), max_columns)


def to_bytes(model: GeometricMixture) -> bytes:
    """The content of a model's file."""
    tensors = {
        **model_tensors.planes_tensors(model.planes),
        **model_tensors.standardize_tensors(model.standardize),
        **model_tensors.lift_tensors(model.lift),
        **model_tensors.expand_tensors(model.expand),
    }
    about = manifest_of(model)
    try:
        text = canonical_json.canonical(about)
    except ValueError as error:  # NaN or infinity
        raise ModelFileError(f"sharpness, temperature, training or edits: {error}") from None
    return tensor_file.pack(text, tensors)


def manifest_of(model: GeometricMixture) -> dict[str, Any]:
    """The manifest of a model, as JSON values."""
    from geomix import __version__  # avoids a circular import

    schema = model_schema(model)
    lift: dict[str, Any] = {"kind": model.lift.kind}
    if isinstance(model.lift, FourierLift):
        lift["gamma"] = float(model.lift.gamma)
        if model.lift.precision != "float64":
            lift["precision"] = model.lift.precision
    return {
        "format": manifest.FORMAT,
        "format_version": list(manifest.VERSION),
        "requires": _required_features(model),
        "written_by": f"geomix {__version__}",
        "classes": manifest.classes_as_json(model.classes),
        "n_columns": len(schema),
        "columns": manifest.columns_as_json(schema),
        "lift": lift,
        "standardize": not model.standardize.passes,
        "expand": model.expand is not None,
        "n_members": int(model.planes.n_members),
        "sharpness": float(model.sharpness),
        "temperature": float(model.temperature),
        "training": manifest.facts_as_json(model.training, "training"),
        "edits": manifest.facts_as_json(model.edits, "edits"),
    }


def _required_features(model: GeometricMixture) -> list[str]:
    """The features that a reader needs, so that an older release can name what it lacks."""
    needed = {
        "core": True,
        "spline": model.lift.kind == "spline",
        "fourier": model.lift.kind == "fourier",
        "expand": model.expand is not None,
        "committee": model.planes.n_members > 1,
        "float32": getattr(model.lift, "precision", "float64") == "float32",
    }
    return [feature for feature in manifest.FEATURES if needed[feature]]


# --- reading ---


def _read_model(stream: BinaryIO, size: int, max_columns: int | None) -> GeometricMixture:
    header = _read_header(stream, size)
    arrays = tensor_file.read_tensors(stream, header)
    most = manifest.most_values(size)
    about = manifest.read(header.manifest, max(most, 2 * (max_columns or 0)))
    return build_model(about, arrays, most if max_columns is None else max_columns)


def _read_header(stream: BinaryIO, size: int) -> tensor_file.Header:
    try:
        return tensor_file.read_header(stream, size, model_tensors.RANKS)
    except ModelFileError:
        # An unknown tensor may belong to a later version; then the error is about the version.
        stream.seek(0)
        _check_for_newer_version(stream, size)
        raise


def _check_for_newer_version(stream: BinaryIO, size: int) -> None:
    """Raise ModelVersionError if the manifest is readable and of an unknown version."""
    try:
        about = _any_manifest(tensor_file.read_manifest(stream, size), size)
        if about.get("format") == manifest.FORMAT:
            manifest.check_version(about)
    except ModelVersionError:
        raise
    except ModelFileError:
        return


def build_model(
    about: dict[str, Any], arrays: dict[str, Any], max_columns: int
) -> GeometricMixture:
    """The model of a manifest and tensors, with all checks."""
    reader = TensorReader(arrays)
    classes = manifest.read_classes(about["classes"])
    n_columns = manifest.count(about, "n_columns")
    schema = manifest.read_columns(about["columns"], n_columns, max_columns)
    has_expand = manifest.field(about, "expand", bool, "true or false")
    expand = model_tensors.read_expand(reader, schema) if has_expand else None
    standardize = model_tensors.read_standardize(
        reader,
        n_columns if expand is None else expand.n_outputs,
        passes=not manifest.field(about, "standardize", bool, "true or false"),
    )
    lift = model_tensors.read_lift(reader, about["lift"], standardize.n_outputs, schema)
    feature_map = FeatureMap(standardize, lift, expand)
    _check_feature_map(feature_map, schema)
    planes = model_tensors.read_planes(
        reader, lift.n_outputs, len(classes), manifest.count(about, "n_members")
    )
    reader.check_empty()
    model = GeometricMixture(
        classes,
        schema.names,
        feature_map,
        planes,
        manifest.number(about, "sharpness"),
        manifest.number(about, "temperature"),
        schema,
        training=manifest.read_training(about["training"]),
        edits=manifest.read_edits(about["edits"]),
    )
    if about["requires"] != _required_features(model):
        raise ModelFileError("requires is not the list of features that this model needs")
    return model


def _check_feature_map(feature_map: FeatureMap, schema: Schema) -> None:
    """A spline lift reads raw cells; the other lifts read standardised numbers."""
    lift, expand = feature_map.lift, feature_map.expand
    passes = feature_map.standardize.passes
    if lift.reads_cells and not (passes and expand is None):
        raise ModelFileError(
            "a spline lift reads columns as they are, not standardised or expanded"
        )
    if not lift.reads_cells and passes:
        raise ModelFileError(f"a {lift.kind} lift reads standardised columns")
    if not lift.reads_cells and expand is None and schema.has_categories:
        raise ModelFileError("its categories are not expanded, but the lift reads numbers")


def _open_regular(path: Any) -> BinaryIO:
    """Open a regular file; raises for pipes and devices without blocking on them."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not on every system
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise ModelFileError(f"it is {_kind_of_file(mode)}, not a regular file")
    return os.fdopen(descriptor, "rb")


def _kind_of_file(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _checked_size(file: BinaryIO, max_bytes: int) -> int:
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise ModelFileError(f"it has {size} bytes, more than max_bytes={max_bytes}")
    return size


def _display_path(path: Any) -> str:
    """A path for messages, with control characters escaped."""
    return ascii(os.fsdecode(path))[1:-1]


# --- inspecting a file ---


@dataclass(frozen=True)
class FileFacts:
    """Facts about a file, valid or not.

    problem : why it cannot be loaded, or None;  sha256 : of the whole file, as ``sha256sum`` prints
    it;  manifest : unchecked, {} if it cannot be read
    """

    path: str
    n_bytes: int
    problem: str | None
    sha256: str | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    tensors: tuple[tensor_file.Tensor, ...] = ()


def info(path: Any, *, max_bytes: int = LARGEST_FILE) -> FileFacts:
    """Facts about a model file, valid or not; raises only ``OSError``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "no-model.geomix"
    >>> _ = path.write_bytes(b"PK\\x03\\x04 and so on")
    >>> info(path).problem
    'not a geomix model: this is a zip archive (npz, skops, torch or a spreadsheet)'
    """
    found: dict[str, Any] = {"n_bytes": os.stat(path).st_size}
    problem = None
    try:
        with _open_regular(path) as file:
            size = _checked_size(file, max_bytes)
            found["n_bytes"] = size
            found["sha256"] = _digest(file)
            header = _read_header(file, size)
            found["tensors"] = header.tensors
            found["manifest"] = _any_manifest(header.manifest, size)
            file.seek(0)
            _read_model(file, size, manifest.most_values(LARGEST_FILE))
    except ModelFileError as error:
        problem = str(error)
    return FileFacts(path=os.fsdecode(path), problem=problem, **found)


def verify(path: Any, sha256: str, *, max_bytes: int = LARGEST_FILE) -> None:
    """Raise ModelFileError unless ``path`` is a valid model file with this SHA-256.

    The checksum inside a file detects damage, not forgery: whoever changes the content can change
    the checksum too. Store the SHA-256 of the whole file elsewhere and compare with it.
    """
    facts = info(path, max_bytes=max_bytes)
    problem = facts.problem
    if problem is None and facts.sha256 != sha256.strip().lower():
        problem = f"its SHA-256 is {facts.sha256}, expected {ascii(sha256)[:80]}"
    if problem is not None:
        raise ModelFileError(f"{_display_path(path)}: {problem}.")


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(2**20):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def _any_manifest(text: str, size: int) -> dict[str, Any]:
    """A manifest of any version, unchecked."""
    value = canonical_json.read(text, manifest.most_values(size))
    return value if isinstance(value, dict) else {}
