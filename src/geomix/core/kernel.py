"""The one place that chooses between native code and NumPy: the same functions in both.

``is_native`` is true where the compiled functions (``native/``, through ``core/native.py``) are in
use. Tests compare them with the NumPy ones. NumPy is used under ``GEOMIX_KERNEL=numpy``, in a
build without a compiler, and on an x86 without fused multiply-adds (before 2013).
Either way a prediction depends on its row alone, to the last bit: NumPy works on blocks of one
size, and the native code fixes the order of every sum.
"""

from __future__ import annotations

import os
import platform
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geomix.arrays import CenteredSparse, FloatArray, IntArray, Matrix, plain
from geomix.core import calibration, calm, clustering, row_span
from geomix.core.adam import AdamState
from geomix.core.descent import Descended, Descent, Stage, StagePlan, descend
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import FourierLift, Lift
from geomix.core.lifts import fourier_features as numpy_fourier_features
from geomix.core.objective import BatchTerms
from geomix.core.ordered_weights import OrderedWeights
from geomix.core.pair_gains import pair_gains as numpy_pair_gains
from geomix.core.planes import Planes
from geomix.core.pooling import pool, softmax
from geomix.core.predictors import (
    CellReader,
    NumpyPredictor,
    NumpyScorer,
    Predictor,
    Scorer,
    TableScorer,
)
from geomix.core.row_sums import NumpyRows, Sums
from geomix.core.spline import Binned, SplineLift
from geomix.table.row_views import blocks, is_dense, made_whole
from geomix.table.schema import Fill, Schema

if TYPE_CHECKING:
    from geomix.core.native import NativeRows

try:
    if os.environ.get("GEOMIX_KERNEL", "").lower() == "numpy":
        raise ImportError("GEOMIX_KERNEL=numpy")
    from geomix.core import native

    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    if native.simd == "scalar" and is_x86 and "GEOMIX_SIMD" not in os.environ:
        raise ImportError("no fused multiply-adds on this CPU: NumPy is faster")
except ImportError as error:
    native = None  # type: ignore[assignment]
    if error.name == "geomix._native" or "_native" in str(error):
        warnings.warn(
            "geomix was installed without its compiled core and runs on NumPy: the same "
            "predictions, more slowly. Install a wheel, or GCC 12 or Clang 14 and then geomix "
            "again. GEOMIX_KERNEL=numpy hides this warning.",
            RuntimeWarning,
            stacklevel=2,
        )

__all__ = [
    "AdamState",
    "Descended",
    "Descent",
    "NumpyRows",
    "TrainingRows",
    "adam_epoch",
    "at_most_threads",
    "batch_terms",
    "binned",
    "calibrate",
    "calm_steps",
    "compressed",
    "cross_entropy",
    "fill",
    "give_back_memory",
    "in_basis",
    "is_native",
    "keeping_buffers",
    "kmeans",
    "lifted",
    "minimize",
    "minimize_within",
    "nearest",
    "one_thread",
    "pair_gains",
    "plain",
    "pool",
    "predictor",
    "scorer",
    "silhouettes",
    "simd",
    "softmax",
    "sparse_predictor",
    "thread_limit",
    "training_rows",
]

# A span is sought among this many rows, and used from this share of the features down; what
# lies outside it has at most this squared length (Fourier features have length one).
ROWS_FOR_SPAN = 512
SPAN_WORTH_IT = 0.5
LARGEST_SPAN = 192  # finding it takes time with the square of its dimensions
LEFT_OUTSIDE_SPAN = 1e-7

is_native = native is not None
# The CPU level in use: "scalar", "avx2", "avx512", or "" with NumPy.
simd: str = native.simd if is_native else ""


def one_thread() -> AbstractContextManager[None]:
    """Native calls from this thread start no other: for work that runs in parallel already."""
    return at_most_threads(1)


def thread_limit() -> int:
    """The most threads that native calls from this thread use; 0: no limit."""
    return native.thread_limit() if is_native else 0


def at_most_threads(most: int) -> AbstractContextManager[None]:
    """Native calls from this thread use at most this many threads."""
    return native.at_most_threads(most) if is_native else nullcontext()


def keeping_buffers() -> AbstractContextManager[None]:
    """Native code keeps the buffers of a solver for the next one."""
    return native.keeping_buffers() if is_native else nullcontext()


def give_back_memory(*, heap: bool) -> None:
    """Give the buffers that native code keeps back to the system, and what arrays have left in the
    heap. The heap takes a millisecond, and the next arrays some more."""
    if is_native:
        native.give_back_memory(heap=heap)


# --- training rows, prepared once for many passes ---

TrainingRows: TypeAlias = "NumpyRows | NativeRows"


def training_rows(
    X: Matrix, y: IntArray, weight: FloatArray, *, is_single: bool = False
) -> TrainingRows:
    """Lifted rows with class codes and weights, ready for many passes.

    is_single : the native kernel computes with dense rows in float32.
    """
    if is_native:
        return native.NativeRows(X, y, weight, is_single)
    return NumpyRows(made_whole(X), y, weight)


def batch_terms(
    planes: Planes,
    sharpness: float,
    Phi: Matrix,
    y: IntArray,
    row_weight: FloatArray,
    label_smoothing: float,
) -> BatchTerms:
    """Loss, gradients and usage of the rows ``Phi`` with class codes ``y``, as weighted sums."""
    return training_rows(Phi, y, row_weight).terms(planes, sharpness, label_smoothing)


def cross_entropy(
    planes: Planes, sharpness: float, Phi: Matrix, y: IntArray, row_weight: FloatArray
) -> float:
    """Weighted mean cross-entropy against the plain labels: what validation measures."""
    return training_rows(Phi, y, row_weight).cross_entropy(planes, sharpness)


# --- solvers ---


def minimize(rows: Sums, descent: Descent) -> Descended:
    """Minimise from the descent's planes: in native code for native rows, otherwise in NumPy."""
    if native is not None and isinstance(rows, native.NativeRows):
        return native.descend(rows, descent)
    return descend(rows, descent)


def minimize_by_stages(
    rows: Sums, planes: Planes, plan: StagePlan
) -> tuple[Planes, bool, list[Stage]] | None:
    """All stages of a descent in one native call: the last planes, whether the last stage
    converged, and what each did. None for rows that are not native."""
    if native is not None and isinstance(rows, native.NativeRows):
        return native.descend_by_stages(rows, planes, plan)
    return None


def minimize_within(rows: Sums, descent: Descent, numbers: OrderedWeights) -> Descended:
    """``minimize`` over planes whose weights keep an order: within the bounds of ``numbers``."""
    if native is not None and isinstance(rows, native.NativeRows):
        return native.descend_within(rows, descent, numbers)
    return descend(rows, descent, numbers)


def adam_epoch(
    X: Matrix,
    y: IntArray,
    weight: FloatArray,
    order: IntArray,
    planes: Planes,
    state: AdamState,
    usage: FloatArray,
    prepared: TrainingRows | None = None,
    **settings: float,
) -> tuple[Planes, AdamState, FloatArray, float]:
    """One native epoch over the rows in ``order``: planes, state, usage, and mean objective.

    ``prepared`` : the same rows, if they have been prepared; otherwise sparse rows are prepared
    again in every epoch. settings : sharpness, label_smoothing, batch_size, learning_rate, l2,
    usage_beta, usage_delta, usage_decay (0: the batch's own), clip_norm and max_weight_norm
    (0: none).
    """
    rows = X, y, weight
    return native.adam_epoch(rows, order, planes, state, usage, prepared, settings)


def calibrate(
    S: FloatArray, y: IntArray, weight: FloatArray, prior_scale: float | None
) -> tuple[float, float]:
    """Temperature by likelihood and the loss with it: see ``calibration.calibrate``."""
    if is_native and len(y):
        return native.calibrate(S, y, weight, prior_scale)
    return calibration.calibrate(S, y, weight, prior_scale)


def calm_steps(weights: FloatArray, masses: calm.KnotMasses, tolerance: float) -> FloatArray:
    """Curves without small changes of direction: see ``calm.calm_steps``."""
    make = native.calm_steps if is_native else calm.calm_steps
    return make(weights, masses, tolerance)


# --- clustering ---


def kmeans(
    X: FloatArray, weight: FloatArray, n_clusters: int, draws: FloatArray
) -> clustering.Clustering:
    """Weighted k-means from given random draws: see ``clustering.kmeans``."""
    if is_native and isinstance(X, np.ndarray):
        return native.kmeans(X, weight, n_clusters, draws)
    return clustering.kmeans(X, weight, n_clusters, draws)


def nearest(X: Any, centres: FloatArray) -> IntArray:
    """Index of the centre nearest to each row; the first of equals."""
    if not is_dense(X):
        return clustering.nearest(X, centres)[0]
    labels = np.empty(len(X), dtype=np.intp)
    for rows, block in blocks(X):
        labels[rows] = (
            native.nearest(block, centres) if is_native else clustering.nearest(block, centres)[0]
        )
    return labels


def silhouettes(X: FloatArray, labelings: list[IntArray]) -> FloatArray:
    """Mean silhouette of the rows under each labeling."""
    if is_native and isinstance(X, np.ndarray):
        return native.silhouettes(X, labelings)
    return clustering.silhouettes(X, labelings)


def pair_gains(bins: IntArray, terms: FloatArray, n_bins: int) -> FloatArray:
    """What a table over each pair of columns would add: see ``core/pair_gains.py``."""
    if is_native:
        return native.pair_gains(bins, terms, n_bins)
    return numpy_pair_gains(bins, terms, n_bins)


# --- features ---


def lifted(lift: Lift, V: Any) -> Any:
    """Working features for training: codes under a spline lift. Fourier features are float32: they
    are at most one, so training loses nothing, and they take half the time and memory."""
    if isinstance(lift, SplineLift):
        return binned(lift, V)
    if not isinstance(lift, FourierLift) or isinstance(V, CenteredSparse):
        return lift(V)
    return native.fourier(V, lift.frequencies) if is_native else lift(V).astype(np.float32)


def fourier_features(V: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Features of a Fourier lift with these frequencies, in float64: where they are learnt, their
    gradient is taken from them."""
    if is_native:
        return native.fourier_exact(V, frequencies)
    return numpy_fourier_features(V, frequencies)


def binned(lift: SplineLift, X: Any) -> Binned:
    """Rows as codes: see ``SplineLift.binned``."""
    return native.binned(lift, X) if is_native and lift.parts else lift.binned(X)


def compressed(Phi: Matrix) -> FloatArray | None:
    """Orthonormal rows (rank, n_features) that span the rows of ``Phi``, or None.

    Planes under an L2 penalty lie in the span of their rows. None where that span is no
    smaller than half the features, or the features are not float32 (see ``lifted``).
    """
    if not isinstance(Phi, np.ndarray) or Phi.dtype != np.float32:
        return None
    most = min(int(SPAN_WORTH_IT * Phi.shape[1]), LARGEST_SPAN)
    basis_of = native.basis if is_native else row_span.row_basis
    basis = basis_of(Phi, ROWS_FOR_SPAN, most, LEFT_OUTSIDE_SPAN)
    return basis if len(basis) else None


def in_basis(Phi: Any, basis: FloatArray) -> FloatArray:
    """Rows of float32 features in the coordinates of ``basis``, (n_rows, rank)."""
    return native.projected(Phi, basis) if is_native else row_span.projected(Phi, basis)


# --- frames ---


def fill(schema: Schema) -> Fill | None:
    """Reads frames by a schema: see ``Schema.encode``."""
    return native.FrameFill(schema) if is_native else None


# --- predictions ---


def predictor(
    feature_map: FeatureMap, planes: Planes, sharpness: float, temperature: float
) -> Predictor:
    """Predictions for whole tables of dense rows, expanded by ``feature_map``."""
    make = native.predictor if is_native else NumpyPredictor
    return make(feature_map, planes, sharpness, temperature)


def sparse_predictor(
    dense: Predictor,
    feature_map: FeatureMap,
    planes: Planes,
    sharpness: float,
    temperature: float,
) -> Predictor:
    """Predictions for CSR rows, given the predictor for dense ones."""
    if not (is_native and feature_map.keeps_sparse):
        # The NumPy predictor raises an error that names what cannot stay sparse.
        return NumpyPredictor(feature_map, planes, sharpness, temperature)
    return native.NativeSparsePredictor(dense)


def scorer(
    predictor: Predictor,
    labels: Any,
    feature_map: FeatureMap,
    planes: Planes,
    reader: CellReader | None = None,
) -> Scorer:
    """Predictions for one row at a time: of numbers, or of the raw cells that ``reader`` reads."""
    contributions = feature_map.column_weights(planes.weights)
    if isinstance(predictor, NumpyPredictor):
        of_numbers = NumpyScorer(predictor, tuple(labels), contributions)
        return of_numbers if reader is None else TableScorer(reader, of_numbers)
    return native.scorer(predictor, tuple(labels), contributions, reader)
