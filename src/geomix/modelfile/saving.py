"""Model files: save a model, load it bit for bit, look into a file without trusting it.

    model  ->  manifest (JSON), tensors  ->  bytes  ->  atomic write
    file   ->  size  ->  header  ->  checksum  ->  manifest  ->  parts  ->  model

Loading never runs code from a file, never opens another file, never makes room before the sizes
add up, and either gives the exact model that was saved or raises ``ModelFileError`` (or
``OSError``, where the system does not let us read). No class or module is named in a file: models
are built from constants in our own code. ``tensorfile`` has the bytes, ``manifest`` and
``modelparts`` the content, ``atomic`` the writing.
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
    """Write a model to ``path``: whole or not at all, whatever happens on the way.

    The bytes are read back before they are written. The same model gives the same bytes.

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
        raise ModelFileError("This model cannot be saved: it does not come back as it was.")
    atomic.write_bytes(path, content)


def load(
    path: Any, *, max_bytes: int = LARGEST_FILE, max_columns: int | None = None
) -> GeometricMixture:
    """The model in the file ``path``, exactly as it was saved.

    max_bytes : a larger file is refused unread;  max_columns : so many columns are trusted (each
    takes some hundred bytes of memory, however little of the file stands for it); None: 20,000 and
    one for every 32 bytes of the file.
    """
    try:
        with _open_regular(path) as file:
            return _read_model(file, _checked_size(file, max_bytes), max_columns)
    except ModelFileError as error:
        raise type(error)(f"{_shown(path)}: {error}.") from None


def from_bytes(content: bytes, *, max_columns: int | None = None) -> GeometricMixture:
    """The model whose file has this content."""
    return _read_model(*tensor_file.opened(content), max_columns)


def to_bytes(model: GeometricMixture) -> bytes:
    """The content of a model's file, unchecked."""
    tensors = {
        **model_tensors.planes_tensors(model.planes),
        **model_tensors.standardize_tensors(model.standardize),
        **model_tensors.lift_tensors(model.lift),
        **model_tensors.expand_tensors(model.expand),
    }
    about = described(model)
    try:
        text = canonical_json.canonical(about)
    except ValueError as error:  # NaN or infinity
        raise ModelFileError(f"sharpness, temperature, training or edits: {error}") from None
    return tensor_file.pack(text, tensors)


def described(model: GeometricMixture) -> dict[str, Any]:
    """The manifest of a model: plain values, ready for JSON."""
    from geomix import __version__  # the package is whole by the time a model is saved

    schema = model_schema(model)
    lift: dict[str, Any] = {"kind": model.lift.kind}
    if isinstance(model.lift, FourierLift):
        lift["gamma"] = float(model.lift.gamma)
    return {
        "format": manifest.FORMAT,
        "format_version": list(manifest.VERSION),
        "requires": _required(model),
        "written_by": f"geomix {__version__}",
        "classes": manifest.described_classes(model.classes),
        "n_columns": len(schema),
        "columns": manifest.described_columns(schema),
        "lift": lift,
        "standardize": not model.standardize.passes,
        "expand": model.expand is not None,
        "n_members": int(model.planes.n_members),
        "sharpness": float(model.sharpness),
        "temperature": float(model.temperature),
        "training": manifest.plain_facts(model.training, "training"),
        "edits": manifest.plain_facts(model.edits, "edits"),
    }


def _required(model: GeometricMixture) -> list[str]:
    """What a reader has to know, so that an older one can say what it lacks."""
    needed = {
        "core": True,
        "spline": model.lift.kind == "spline",
        "fourier": model.lift.kind == "fourier",
        "expand": model.expand is not None,
        "committee": model.planes.n_members > 1,
    }
    return [feature for feature in manifest.FEATURES if needed[feature]]


# --- reading ---


def _read_model(stream: BinaryIO, size: int, max_columns: int | None) -> GeometricMixture:
    header = _read_header(stream, size)
    arrays = tensor_file.read_tensors(stream, header)
    most = manifest.most_values(size)
    about = manifest.read(header.manifest, max(most, 2 * (max_columns or 0)))
    return build(about, arrays, most if max_columns is None else max_columns)


def _read_header(stream: BinaryIO, size: int) -> tensor_file.Header:
    try:
        return tensor_file.read_header(stream, size, model_tensors.RANKS)
    except ModelFileError:
        # Tensors that we do not know may be those of a later version, and then that is to be said.
        stream.seek(0)
        _refuse_newer(stream, size)
        raise


def _refuse_newer(stream: BinaryIO, size: int) -> None:
    """ModelVersionError if the manifest can be read and is of a version that we do not know."""
    try:
        about = _readable(tensor_file.read_manifest(stream, size), size)
        if about.get("format") == manifest.FORMAT:
            manifest.check_version(about)
    except ModelVersionError:
        raise
    except ModelFileError:
        return


def build(about: dict[str, Any], arrays: dict[str, Any], max_columns: int) -> GeometricMixture:
    """The model that a manifest and tensors describe, with everything checked."""
    shelf = TensorReader(arrays)
    classes = manifest.read_classes(about["classes"])
    n_columns = manifest.count(about, "n_columns")
    schema = manifest.read_columns(about["columns"], n_columns, max_columns)
    has_expand = manifest.field(about, "expand", bool, "true or false")
    expand = model_tensors.read_expand(shelf, schema) if has_expand else None
    standardize = model_tensors.read_standardize(
        shelf,
        n_columns if expand is None else expand.n_outputs,
        passes=not manifest.field(about, "standardize", bool, "true or false"),
    )
    lift = model_tensors.read_lift(shelf, about["lift"], standardize.n_outputs, schema)
    feature_map = FeatureMap(standardize, lift, expand)
    _check_feature_map(feature_map, schema)
    planes = model_tensors.read_planes(
        shelf, lift.n_outputs, len(classes), manifest.count(about, "n_members")
    )
    shelf.check_empty()
    return GeometricMixture(
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


def _check_feature_map(feature_map: FeatureMap, schema: Schema) -> None:
    """A spline reads the table's own cells; the other lifts read numbers alone."""
    lift, expand = feature_map.lift, feature_map.expand
    passes = feature_map.standardize.passes
    if lift.reads_cells and not (passes and expand is None):
        raise ModelFileError(
            "a spline lift reads columns as they are, not standardised or expanded"
        )
    if not lift.reads_cells and passes:
        raise ModelFileError(
            f"a {lift.kind} lift reads standardised columns, not these as they are"
        )
    if not lift.reads_cells and expand is None and schema.has_categories:
        raise ModelFileError("its categories are not expanded, and the lift reads numbers alone")


def _open_regular(path: Any) -> BinaryIO:
    """The file, opened so that neither a pipe nor a device can make us wait."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not on every system
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise ModelFileError(f"it is {_kind_of_file(mode)}, and no regular file")
    return os.fdopen(descriptor, "rb")


def _kind_of_file(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _checked_size(file: BinaryIO, max_bytes: int) -> int:
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise ModelFileError(f"it has {size} bytes, more than max_bytes={max_bytes}")
    return size


def _shown(path: Any) -> str:
    """A path for messages, without control characters."""
    return ascii(os.fsdecode(path))[1:-1]


# --- looking into a file ---


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file, whether it holds a model or not.

    problem : why it cannot be loaded, or None;  sha256 : of the whole file, as ``sha256sum`` has
    it;  manifest : as it stands in the file, {} if it cannot be read. With a problem its content
    is only what the file says.
    """

    path: str
    n_bytes: int
    problem: str | None
    sha256: str | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    tensors: tuple[tensor_file.Tensor, ...] = ()


def info(path: Any, *, max_bytes: int = LARGEST_FILE) -> FileFacts:
    """Facts about a model file, good or broken; only the system's own errors are raised.

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
            found["manifest"] = _readable(header.manifest, size)
            file.seek(0)
            _read_model(file, size, manifest.most_values(LARGEST_FILE))
    except ModelFileError as error:
        problem = str(error)
    return FileFacts(path=os.fsdecode(path), problem=problem, **found)


def verify(path: Any, sha256: str, *, max_bytes: int = LARGEST_FILE) -> None:
    """Raise ModelFileError unless ``path`` is a sound model file with this SHA-256.

    The checksum inside a file tells damage, not who wrote it: whoever changes the content can
    change the checksum too. Keep the SHA-256 of the whole file elsewhere and hold it against it.
    """
    facts = info(path, max_bytes=max_bytes)
    problem = facts.problem
    if problem is None and facts.sha256 != sha256.strip().lower():
        problem = f"its SHA-256 is {facts.sha256}, expected {ascii(sha256)[:80]}"
    if problem is not None:
        raise ModelFileError(f"{_shown(path)}: {problem}.")


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(2**20):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def _readable(text: str, size: int) -> dict[str, Any]:
    """A manifest as it stands, of whatever version."""
    value = canonical_json.read(text, manifest.most_values(size))
    return value if isinstance(value, dict) else {}
