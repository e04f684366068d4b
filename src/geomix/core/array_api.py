"""The objective and the answers as array-API functions: for torch, CuPy and JAX arrays.

These are the equations of ``pooling`` and ``objective`` in the operations of the array API
standard, so that they run on the device of the array. Rows are processed in blocks; parameters
come as NumPy arrays and are copied to the device. In float64 the results equal those of the native
kernel to 1e-12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import BoolArray, IntArray
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import LARGEST_STANDARDIZED, FourierLift, Standardize
from geomix.core.objective import BatchTerms
from geomix.core.planes import Planes, class_starts
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import CurvePart
from geomix.table.one_hot import MISSING, NUMBER, Expand

# Features of one block of rows.
CELLS_PER_BLOCK = 2**22
ANSWERS = ("predict_proba", "class_scores", "plane_scores", "responsibilities")


def is_foreign(X: Any) -> bool:
    """Whether X is an array of the standard that is not NumPy's (nor a frame, nor sparse)."""
    if isinstance(X, (np.ndarray, np.generic)):
        return False
    root = type(X).__module__.split(".")[0]
    return root == "torch" or hasattr(X, "__array_namespace__")


def _compat(X: Any) -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            f"Arrays of {type(X).__module__} need array-api-compat; "
            "install it with pip install 'geomix[array-api]', or pass a NumPy array."
        ) from error
    return array_api_compat


def namespace(X: Any) -> Any:
    return _compat(X).array_namespace(X)


def to_numpy(X: Any) -> Any:
    """A NumPy copy or view, from any device."""
    if isinstance(X, np.ndarray):
        return X
    compat = _compat(X)
    if compat.is_torch_array(X):
        X = X.detach()  # a tensor with a gradient is not exported
    if compat.is_torch_array(X) or compat.is_cupy_array(X):
        X = compat.to_device(X, "cpu")
    try:
        return np.from_dlpack(X)
    except (AttributeError, BufferError, RuntimeError, TypeError):  # no DLPack for this type
        return np.asarray(X)


def to_numpy_if_foreign(X: Any) -> Any:
    return to_numpy(X) if is_foreign(X) else X


class Like:
    """Makes arrays of the namespace, type and device of X from NumPy arrays."""

    def __init__(self, X: Any) -> None:
        self.xp, self.device = namespace(X), _compat(X).device(X)
        if self.xp.isdtype(X.dtype, "complex floating"):
            raise ValueError(f"Complex data not supported: got an array of {X.dtype}.")
        is_float = self.xp.isdtype(X.dtype, "real floating")
        self.dtype = X.dtype if is_float else self._widest_float()

    def _widest_float(self) -> Any:
        info = self.xp.__array_namespace_info__()
        there = info.dtypes(device=self.device, kind="real floating")
        return there.get("float64", self.xp.float32)

    def floats(self, values: Any) -> Any:
        # A copy: some libraries would share memory with, and warn about, read-only arrays.
        values = np.array(values, dtype=np.float64)
        return self.xp.asarray(values, dtype=self.dtype, device=self.device)

    def integers(self, values: Any) -> Any:
        return self.xp.asarray(np.array(values, dtype=np.int64), device=self.device)

    def take(self, X: Any, columns: Any) -> Any:
        return self.xp.take(X, self.integers(columns), axis=1)


# --- features ---


def features(X: Any, feature_map: FeatureMap) -> Any:
    """Working features phi of rows of numbers, (n_rows, n_lifted)."""
    like = Like(X)
    X = like.xp.astype(X, like.dtype)
    standardize, lift = feature_map.standardize, feature_map.lift
    if feature_map.expand is not None:
        X = _expanded(X, feature_map.expand, like)
    if not standardize.passes:
        X = _standardized(X, standardize, like)
    if isinstance(lift, SplineLift):
        return _splines(X, lift, like)
    return _fourier(X, lift, like) if isinstance(lift, FourierLift) else X


def _expanded(X: Any, expand: Expand, like: Like) -> Any:
    if not np.isin(expand.shows, (NUMBER, MISSING)).all():
        raise TypeError("A model with categories needs a frame; got an array.")
    xp, out = like.xp, like.take(X, expand.column_of)
    is_missing = xp.astype(xp.isnan(out), like.dtype)
    shows = like.integers(expand.shows == MISSING)
    return xp.where(shows[None, :] == 1, is_missing, out)


def _standardized(X: Any, standardize: Standardize, like: Like) -> Any:
    xp = like.xp
    U = like.take(X, standardize.kept) - like.floats(standardize.mean)[None, :]
    U = U / like.floats(standardize.scale)[None, :]
    limit = min(LARGEST_STANDARDIZED, float(xp.finfo(like.dtype).max))
    U = xp.clip(U, -limit, limit)
    U = xp.where(xp.isnan(U), xp.zeros_like(U), U)
    if standardize.rotation is None:
        return U
    return U @ like.floats(standardize.rotation.T)


def _fourier(V: Any, lift: FourierLift, like: Like) -> Any:
    xp, n_frequencies = like.xp, lift.frequencies.shape[1]
    angles = V @ like.floats(lift.frequencies)
    return xp.concat([xp.cos(angles), xp.sin(angles)], axis=1) * float(np.sqrt(1.0 / n_frequencies))


def _splines(X: Any, lift: SplineLift, like: Like) -> Any:
    xp, made = like.xp, []
    for part in lift.parts:
        if not isinstance(part, CurvePart):
            raise TypeError("A model with categories needs a frame; got an array.")
        x = X[:, part.column]
        missing = xp.isnan(x)[:, None]
        x = xp.where(xp.isnan(x), xp.full_like(x, float(part.knots[0])), x)[:, None]
        left, right = like.floats(part.knots[:-1])[None, :], like.floats(part.knots[1:])[None, :]
        steps = xp.clip((x - left) / (right - left), 0.0, 1.0)
        n_knots = len(part.knots) - 1
        steps = steps - like.floats(part.mean[:n_knots])[None, :]
        made.append(xp.where(missing, xp.zeros_like(steps), steps))
        if part.has_missing:
            made.append(xp.astype(missing, like.dtype))
    return xp.concat(made, axis=1) if made else xp.reshape(X[:, :0], (X.shape[0], 0))


# --- pooling and the objective ---


def plane_slots(class_start: IntArray) -> tuple[IntArray, BoolArray]:
    """The planes of each class in one row of slots, (n_classes, most planes), and which slots
    hold a plane."""
    counts = np.diff(class_start)
    slot = np.arange(counts.max())
    is_plane = slot < counts[:, None]
    return np.where(is_plane, class_start[:-1, None] + slot, 0), is_plane


def pool_slots(Z: Any, top: Any, sharpness: Any, xp: Any) -> tuple[Any, Any]:
    """``pooling.pool`` of plane scores in slots, the last axis, with -inf in empty slots.

    top : the largest score of each class, on an axis of length one.
    """
    E = xp.exp(sharpness * (Z - top))
    total = xp.sum(E, axis=-1, keepdims=True)
    return top[..., 0] + xp.log(total[..., 0]) / sharpness, E / total


def _pooled(Z: Any, planes: Planes, sharpness: float, like: Like) -> tuple[Any, Any]:
    """Class scores and responsibilities."""
    xp, members = like.xp, planes.n_members
    per_group = np.repeat(planes.per_class // members, members)
    slots, is_plane = plane_slots(class_starts(per_group))
    by_group = xp.reshape(like.take(Z, slots.ravel()), (Z.shape[0], *slots.shape))
    filled = like.integers(is_plane)[None, :, :] == 1
    by_group = xp.where(filled, by_group, xp.full_like(by_group, -float("inf")))
    S, A = pool_slots(by_group, xp.max(by_group, axis=-1, keepdims=True), sharpness, xp)
    A = like.take(xp.reshape(A, (Z.shape[0], -1)), np.flatnonzero(is_plane.ravel()))
    if members > 1:
        S = xp.mean(xp.reshape(S, (Z.shape[0], planes.n_classes, members)), axis=2)
    return S, A / members


def _softmax(S: Any, xp: Any) -> tuple[Any, Any]:
    """Probabilities and their logarithms."""
    shifted = S - xp.max(S, axis=1, keepdims=True)
    P = xp.exp(shifted)
    total = xp.sum(P, axis=1, keepdims=True)
    return P / total, shifted - xp.log(total)


def terms(
    planes: Planes, sharpness: float, Phi: Any, y: Any, row_weight: Any, label_smoothing: float
) -> BatchTerms:
    """``objective.batch_terms`` on the device of ``Phi``; the sums are NumPy arrays."""
    like = Like(Phi)
    xp = like.xp
    Z = Phi @ like.floats(planes.weights.T) + like.floats(planes.biases)[None, :]
    S, A = _pooled(Z, planes, sharpness, like)
    P, log_p = _softmax(S, xp)
    codes = like.integers(np.arange(planes.n_classes))
    T = xp.astype(y[:, None] == codes[None, :], like.dtype)
    T = (1.0 - label_smoothing) * T + label_smoothing / planes.n_classes
    loss = -xp.sum(row_weight * xp.sum(T * log_p, axis=1))
    G = like.take((P - T) * row_weight[:, None], planes.class_of) * A
    return BatchTerms(
        float(to_numpy(xp.sum(row_weight))),
        float(to_numpy(loss)),
        to_numpy(xp.matrix_transpose(G) @ Phi).astype(np.float64),
        to_numpy(xp.sum(G, axis=0)).astype(np.float64),
        to_numpy(xp.sum(A * row_weight[:, None], axis=0)).astype(np.float64),
    )


def slices(n_rows: int, size: int) -> list[slice]:
    """Slices of at most ``size`` consecutive rows, none beyond the end; at least one slice."""
    starts = range(0, max(n_rows, 1), size)
    return [slice(start, min(start + size, n_rows)) for start in starts]


def predict(model: Any, X: Any) -> Any:
    """Labels: an array like X where they are numbers, else a NumPy array."""
    like, labels = Like(X), model.classes
    best = like.xp.argmax(answer(model, "class_scores", X), axis=1)
    if labels.dtype.kind not in "iufb":
        return labels[to_numpy(best)]
    return like.xp.take(like.xp.asarray(np.array(labels), device=like.device), best, axis=0)


def answer(model: Any, what: str, X: Any) -> Any:
    """One of ``ANSWERS`` of a ``GeometricMixture``, or "predict_log_proba", as an array like X and
    on its device."""
    if X.ndim != 2 or X.shape[1] != model.n_features:
        raise ValueError(
            f"Got X of shape {tuple(X.shape)}; expected (n_rows, {model.n_features}), one column "
            "for each column of the training data."
        )
    size = max(CELLS_PER_BLOCK // max(model.feature_map.n_outputs, 1), 1)
    found = [_answer(model, what, X[rows, :]) for rows in slices(X.shape[0], size)]
    return found[0] if len(found) == 1 else namespace(X).concat(found, axis=0)


def _answer(model: Any, what: str, X: Any) -> Any:
    Phi = features(X, model.feature_map)
    like, planes = Like(Phi), model.planes
    Z = Phi @ like.floats(planes.weights.T) + like.floats(planes.biases)[None, :]
    if what == "plane_scores":
        return Z
    S, A = _pooled(Z, planes, model.sharpness, like)
    if what == "responsibilities":
        return A
    S = S / model.temperature
    if what == "class_scores":
        return S
    P, log_p = _softmax(S, like.xp)
    return log_p if what == "predict_log_proba" else P
