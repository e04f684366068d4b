"""The one door to fast code: the same functions as the reference, native or NumPy.

``is_native`` says which. The native ones are C++ (``native/``), held to the NumPy ones by the
tests; the environment variable ``GEOMIX_KERNEL=numpy`` switches to NumPy, and a build without
a compiler, or an x86 without fused multiply-adds (before 2013), has nothing else. Either way a
row's answer depends on that row alone, to the last bit: NumPy walks rows in blocks of one size,
the native code orders every sum by itself.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geomix import calibration, clustering, lbfgs
from geomix.adam import AdamState
from geomix.arrays import CenteredSparse, FloatArray, IntArray, Matrix
from geomix.lift import Lift, Standardize
from geomix.objective import BatchTerms, penalised
from geomix.objective import batch_terms as numpy_batch_terms
from geomix.objective import cross_entropy as numpy_cross_entropy
from geomix.picked import blocks, is_dense
from geomix.planes import Planes
from geomix.pooling import pool, softmax
from geomix.scoring import NumpyPredictor, NumpyScorer, Predictor, RowExplanation, Scorer
from geomix.spline import Binned, Curve, Levels, SplineLift
from geomix.sums import Sums

try:
    if os.environ.get("GEOMIX_KERNEL", "").lower() == "numpy":
        raise ImportError("GEOMIX_KERNEL=numpy")
    from geomix import _native

    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    if _native.simd() == "scalar" and is_x86 and "GEOMIX_SIMD" not in os.environ:
        raise ImportError("no fused multiply-adds on this CPU: NumPy is faster")
except ImportError:
    _native = None  # type: ignore[assignment]

__all__ = [
    "Descended",
    "Descent",
    "TrainingRows",
    "adam_epoch",
    "batch_terms",
    "binned",
    "calibrate",
    "compressed",
    "cross_entropy",
    "in_basis",
    "is_native",
    "kmeans",
    "lifted",
    "minimize",
    "nearest",
    "one_thread",
    "plain",
    "pool",
    "predictor",
    "scorer",
    "silhouettes",
    "simd",
    "softmax",
    "sparse_predictor",
    "training_rows",
]

# A span is sought among this many rows, and used from this share of the features down; what
# lies outside it has at most this squared length (Fourier features have length one).
ROWS_FOR_SPAN = 512
SPAN_WORTH_IT = 0.5
LARGEST_SPAN = 192  # finding it takes time with the square of its dimensions
LEFT_OUTSIDE_SPAN = 1e-7

is_native = _native is not None
# The CPU level in use: "scalar", "avx2", "avx512", or "" with NumPy.
simd: str = _native.simd() if is_native else ""


@contextmanager
def one_thread() -> Iterator[None]:
    """Native calls from this thread use no other: for work that is one of many side by side."""
    if not is_native:
        yield
        return
    before = _native.limit_threads(1)
    try:
        yield
    finally:
        _native.limit_threads(before)


# --- training rows: prepared once, asked as often as a solver likes ---


class NumpyRows:
    """Rows with codes and weights, by the reference functions; dense ones block by block, so that
    the scores of all rows by all planes are never in memory at once."""

    def __init__(self, X: Matrix, y: IntArray, weight: FloatArray) -> None:
        self._rows = X, y, weight

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        first, *rest = (
            numpy_batch_terms(planes, sharpness, *block, label_smoothing)
            for block in self._blocks()
        )
        return sum(rest, first)

    def cross_entropy(self, planes: Planes, sharpness: float) -> float:
        found = [
            (numpy_cross_entropy(planes, sharpness, *block), block[2].sum())
            for block in self._blocks()
        ]
        losses, masses = np.transpose(found)
        return float(np.average(losses, weights=masses))

    def class_scores(self, planes: Planes, sharpness: float) -> FloatArray:
        """s_c before calibration, (n_rows, n_classes)."""
        return np.concatenate(
            [pool(planes.scores(X), planes.class_start, sharpness)[0] for X, _, _ in self._blocks()]
        )

    def _blocks(self) -> Iterator[tuple[Matrix, IntArray, FloatArray]]:
        X, y, weight = self._rows
        if isinstance(X, (CenteredSparse, Binned)) or len(X) == 0:
            yield X, y, weight
            return
        for rows, block in blocks(X):
            yield block, y[rows], weight[rows]


class NativeRows:
    """The same rows packed for the native kernel.

    Dense rows are computed with in float64 or float32 as they are, sparse ones in float64,
    binned ones in float32.
    """

    def __init__(self, X: Matrix, y: IntArray, weight: FloatArray) -> None:
        labels = _codes(y), _doubles(weight)
        if isinstance(X, CenteredSparse):
            self.packed = _native.SparseRows(*_csr(X.csr), _doubles(X.shift), *labels)
            self._solver = _native.SparseMinimizer
        elif isinstance(X, Binned):
            self.packed = _native.BinnedRows(plain(X.codes), _spline_parts(X.lift), *labels)
            self._solver = _native.BinnedMinimizer
        elif X.dtype == np.float32:
            self.packed, self._solver = _native.Rows32(plain(X), *labels), _native.Minimizer32
        else:
            self.packed, self._solver = _native.Rows64(plain(X), *labels), _native.Minimizer64
        self._total_weight = float(np.sum(weight))

    def terms(self, planes: Planes, sharpness: float, label_smoothing: float) -> BatchTerms:
        return BatchTerms(*self.packed.terms(*_numbers(planes), sharpness, label_smoothing))

    def cross_entropy(self, planes: Planes, sharpness: float) -> float:
        return self.packed.cross_entropy(*_numbers(planes), sharpness) / self._total_weight

    def class_scores(self, planes: Planes, sharpness: float) -> FloatArray:
        """s_c before calibration, (n_rows, n_classes)."""
        return self.packed.class_scores(*_numbers(planes), sharpness)

    def minimizer(self, descent: Descent) -> Any:
        """The native L-BFGS over these rows, before its first step."""
        problem = descent.sharpness, descent.label_smoothing, descent.coefficients, descent.relief
        ends = descent.tol, descent.value_tol
        return self._solver(self.packed, *_numbers(descent.planes), *problem, *ends)


TrainingRows: TypeAlias = "NumpyRows | NativeRows"


def training_rows(X: Matrix, y: IntArray, weight: FloatArray) -> TrainingRows:
    """Lifted rows with class codes and weights, ready for many passes."""
    return NativeRows(X, y, weight) if is_native else NumpyRows(X, y, weight)


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


@dataclass(frozen=True, eq=False)
class Descent:
    """One minimisation of the penalised objective by L-BFGS: from where, of what, how far.

    It ends when no entry of the gradient is above ``tol``, an iteration gains less than
    ``value_tol`` relatively, or after ``max_iter``. ``on_iterate`` sees the planes and the
    objective of every iteration, and may raise ``lbfgs.Enough`` to end there; without it the
    native solver goes all the way in one call.
    """

    planes: Planes
    sharpness: float
    label_smoothing: float
    coefficients: FloatArray
    max_iter: int
    tol: float
    value_tol: float
    on_iterate: Callable[[Planes, float], None] | None = None
    relief: float = 0.0


class Descended(NamedTuple):
    """The last planes of a descent, whether it converged, the objective at every iteration."""

    planes: Planes
    converged: bool
    values: list[float]


def minimize(rows: Sums, descent: Descent) -> Descended:
    """Go down from the descent's planes: native L-BFGS over native rows, SciPy's over others."""
    if not isinstance(rows, NativeRows):
        return _minimize_with_scipy(rows, descent)
    solver = rows.minimizer(descent)
    if descent.on_iterate is not None:
        return _by_steps(solver, descent)
    status, values = solver.run(descent.max_iter)
    planes = descent.planes.with_vector(solver.vector) if values else descent.planes
    return Descended(planes, status in ("optimal", "converged"), values)


def _minimize_with_scipy(rows: Sums, descent: Descent) -> Descended:
    start, value = descent.planes, np.inf
    values: list[float] = []

    def objective(vector: FloatArray) -> tuple[float, FloatArray]:
        nonlocal value
        at = start.with_vector(vector)
        terms = rows.terms(at, descent.sharpness, descent.label_smoothing)
        value, gradient = penalised(terms, at, descent.coefficients, descent.relief)
        return value, gradient

    def on_iterate(vector: FloatArray) -> None:
        values.append(value)
        if descent.on_iterate is not None:
            descent.on_iterate(start.with_vector(vector), value)

    vector, converged = lbfgs.minimize(
        objective,
        start.as_vector(),
        max_iter=descent.max_iter,
        tol=descent.tol,
        value_tol=descent.value_tol,
        on_iterate=on_iterate,
    )
    return Descended(start.with_vector(vector), converged, values)


def _by_steps(solver: Any, descent: Descent) -> Descended:
    planes, values = descent.planes, list[float]()
    for _ in range(descent.max_iter):
        status = solver.step()
        if status in ("optimal", "stuck"):
            return Descended(planes, status == "optimal", values)
        planes = planes.with_vector(solver.vector)
        values.append(float(solver.value))
        try:
            if descent.on_iterate is not None:
                descent.on_iterate(planes, values[-1])
        except lbfgs.Enough:
            break
        if status == "converged":
            return Descended(planes, True, values)
    return Descended(planes, False, values)


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

    ``prepared`` are the same rows if they are at hand: sparse rows would be prepared for
    each epoch anew. settings : sharpness, label_smoothing, batch_size, learning_rate, l2,
    usage_beta, usage_delta, usage_decay (0: the batch's own), clip_norm and max_weight_norm
    (0: none).
    """
    vector, mean, square = planes.as_vector(), state.mean.copy(), state.square.copy()
    usage = usage.copy()
    adam = _native.Adam(planes.class_start, vector, mean, square, usage, state.n_steps, **settings)
    if isinstance(X, CenteredSparse):
        rows: Any = prepared or training_rows(X, y, weight)
        loss, n_steps = adam.epoch(rows.packed, _codes(order))
    else:
        loss, n_steps = adam.epoch(plain(X), _codes(y), _doubles(weight), _codes(order))
    return planes.with_vector(vector), AdamState(mean, square, n_steps), usage, loss


def calibrate(
    S: FloatArray, y: IntArray, weight: FloatArray, prior_scale: float | None
) -> tuple[float, float]:
    """Temperature by likelihood and the loss with it: see ``calibration.calibrate``."""
    if not is_native or len(y) == 0:
        return calibration.calibrate(S, y, weight, prior_scale)
    share = weight / weight.sum()
    pull = calibration.prior_pull(share, prior_scale)
    return _native.calibrate(S, _codes(y), share, pull, *calibration.LOG_RANGE)


# --- clustering ---


def kmeans(
    X: FloatArray, weight: FloatArray, n_clusters: int, draws: FloatArray
) -> clustering.Clustering:
    """Weighted k-means from given random draws: see ``clustering.kmeans``."""
    if not is_native or not isinstance(X, np.ndarray):
        return clustering.kmeans(X, weight, n_clusters, draws)
    tol = clustering.shift_tol(X)
    found = _native.kmeans(
        _doubles(X), _doubles(weight), n_clusters, draws, clustering.MOST_ROUNDS, tol
    )
    return clustering.Clustering(*found)


def nearest(X: Any, centres: FloatArray) -> IntArray:
    """Index of the centre nearest to each row; the first of equals."""
    if not is_dense(X):
        return clustering.nearest(X, centres)[0]
    labels = np.empty(len(X), dtype=np.intp)
    for rows, block in blocks(X):
        labels[rows] = (
            _native.nearest(block, centres) if is_native else clustering.nearest(block, centres)[0]
        )
    return labels


def silhouettes(X: FloatArray, labelings: list[IntArray]) -> FloatArray:
    """Mean silhouette of the rows under each labeling."""
    if not is_native or not isinstance(X, np.ndarray):
        return clustering.silhouettes(X, labelings)
    return _native.silhouettes(_doubles(X), np.ascontiguousarray(labelings, dtype=np.int64))


# --- prediction ---


def lifted(lift: Lift, V: Any) -> Any:
    """Working features for training: codes under a spline lift. Native Fourier features are
    float32: they are bounded by one, so nothing is lost that training could learn, and they
    take half the time and room."""
    if isinstance(lift, SplineLift):
        return binned(lift, V)
    frequencies = getattr(lift, "frequencies", None)
    if not is_native or frequencies is None or isinstance(V, CenteredSparse):
        return lift(V)
    frequencies = _doubles(frequencies)
    if V.dtype == np.float64:
        return _native.fourier_f32(plain(V), frequencies)
    Phi = np.empty((len(V), lift.n_outputs), dtype=np.float32)
    for rows, block in blocks(V):
        Phi[rows] = _native.fourier_f32(block, frequencies)
    return Phi


def compressed(Phi: Matrix) -> FloatArray | None:
    """Orthonormal rows (rank, n_features) that span the rows of ``Phi``, or None.

    Planes under an L2 penalty lie in the span of their rows. None where that span is no
    smaller than half the features, or the features are not float32 (see ``lifted``).
    """
    if not is_native or not isinstance(Phi, np.ndarray) or Phi.dtype != np.float32:
        return None
    most = min(int(SPAN_WORTH_IT * Phi.shape[1]), LARGEST_SPAN)
    basis: FloatArray = _native.basis(Phi, ROWS_FOR_SPAN, most, LEFT_OUTSIDE_SPAN)
    return basis if len(basis) else None


def in_basis(Phi: Any, basis: FloatArray) -> FloatArray:
    """Rows of float32 features in the coordinates of ``basis``, (n_rows, rank)."""
    return _native.projected(Phi, basis)


def predictor(
    standardize: Standardize, lift: Lift, planes: Planes, sharpness: float, temperature: float
) -> Predictor:
    """What answers whole tables of dense rows."""
    if not is_native:
        return NumpyPredictor(standardize, lift, planes, sharpness, temperature)
    rest = *_numbers(planes), planes.n_members, standardize.n_columns, sharpness, temperature
    if isinstance(lift, SplineLift):
        return _native.Predictor(_spline_tables(lift), *rest)
    none = np.empty((0, 0))
    return _native.Predictor(
        standardize.kept.astype(np.int64),
        _doubles(standardize.mean),
        _doubles(standardize.scale),
        none if standardize.rotation is None else _doubles(standardize.rotation),
        _doubles(getattr(lift, "frequencies", none)),
        *rest,
    )


@dataclass(frozen=True, eq=False)
class NativeSparsePredictor:
    """Answers CSR rows from their entries alone. Equal to a dense row's answer but for rounding:
    the mean is taken off every plane's score at once, and not from each number of the row."""

    dense: Any

    def predict_proba(self, X: Any) -> FloatArray:
        return self.dense.predict_proba(*_csr(X))

    def class_scores(self, X: Any) -> FloatArray:
        return self.dense.class_scores(*_csr(X))

    def plane_scores(self, X: Any) -> FloatArray:
        return self.dense.plane_scores(*_csr(X))

    def responsibilities(self, X: Any) -> FloatArray:
        return self.dense.responsibilities(*_csr(X))


def sparse_predictor(
    dense: Predictor,
    standardize: Standardize,
    lift: Lift,
    planes: Planes,
    sharpness: float,
    temperature: float,
) -> Predictor:
    """What answers CSR rows, given what answers dense ones."""
    if not is_native or lift.kind != "linear" or standardize.rotation is not None:
        # NumPy's way says why such rows cannot stay sparse.
        return NumpyPredictor(standardize, lift, planes, sharpness, temperature)
    return NativeSparsePredictor(dense)


def scorer(
    predictor: Predictor, labels: Any, standardize: Standardize, lift: Lift, planes: Planes
) -> Scorer:
    """What answers one row at a time."""
    contributions = None
    if lift.kind == "linear":
        rotation = standardize.rotation
        weights = planes.weights if rotation is None else planes.weights @ rotation
        contributions = _doubles(weights)
    if isinstance(predictor, NumpyPredictor):
        return NumpyScorer(predictor, tuple(labels), contributions)
    native: Any = predictor
    return native.scorer(tuple(labels), contributions, RowExplanation)


# --- spline lifts ---


def binned(lift: SplineLift, X: Any) -> Binned:
    """Rows as codes: see ``SplineLift.binned``."""
    if not is_native or not lift.parts:
        return lift.binned(X)
    coder, wide = _spline_coder(lift), lift.code_type == np.uint16
    codes = np.empty((len(X), len(lift.parts)), dtype=lift.code_type)
    for rows, block in blocks(X):
        codes[rows] = coder.codes(block, wide)
    return Binned(codes, lift)


@lru_cache(maxsize=2)
def _spline_coder(lift: SplineLift) -> Any:
    """What the native code needs to know to find the bins of cells."""
    coder = _native.SplineCoder()
    for j, part in enumerate(lift.parts):
        if isinstance(part, Curve):
            coder.add_number(j, part.column, _doubles(part.edges), len(part.values), 1)
        elif isinstance(part, Levels):
            n_levels = part.n_levels
            coder.add_category(j, part.column, n_levels, n_levels, n_levels + 1, 1)
        else:
            cuts, counts = (part.first, part.second), (part.n_first, part.n_second)
            factors = part.n_second, 1
            for column, cut, n, factor in zip(part.columns, cuts, counts, factors, strict=True):
                if cut is None:
                    coder.add_category(j, column, n - 1, n - 1, n - 1, factor)
                else:
                    coder.add_number(j, column, _doubles(cut), n - 1, factor)
    return coder


def _spline_tables(lift: SplineLift) -> Any:
    """What the native code needs to know to answer exact cells, and not their bins."""
    tables = _native.SplineLift()
    for part in lift.parts:
        mean = _doubles(part.mean)
        if isinstance(part, Curve):
            tables.add_curve(part.column, _doubles(part.knots), part.has_missing, mean)
        elif isinstance(part, Levels):
            tables.add_levels(part.column, part.n_levels, part.has_missing, mean)
        else:
            cuts = [None if cut is None else _doubles(cut) for cut in (part.first, part.second)]
            tables.add_pair(*part.columns, *cuts, part.n_first, part.n_second, mean)
    return tables


@lru_cache(maxsize=2)
def _spline_parts(lift: SplineLift) -> Any:
    """What the native code needs to know of the parts: where each bin lies, and the means."""
    parts = _native.SplineParts()
    for part in lift.parts:
        mean = _doubles(part.mean)
        if isinstance(part, Curve):
            interval, fraction = part.place(part.values)
            parts.add_curve(_codes(interval), _doubles(fraction), part.has_missing, mean)
        elif isinstance(part, Levels):
            parts.add_levels(part.n_levels, part.has_missing, mean)
        else:
            ordered = part.first is not None, part.second is not None
            parts.add_pair(part.n_first, part.n_second, *ordered, mean)
    return parts


# --- arrays as the native code wants them ---


def plain(X: Any) -> Any:
    """X with whole-number strides, aligned; a copy only where it is not."""
    odd = not X.flags.aligned or any(step % X.itemsize for step in X.strides)
    return X.copy() if odd else X


def _doubles(X: Any) -> FloatArray:
    return np.ascontiguousarray(X, dtype=np.float64)


def _codes(y: IntArray) -> IntArray:
    return np.ascontiguousarray(y, dtype=np.int64)


def _csr(X: Any) -> tuple[Any, Any, IntArray]:
    """Data, indices and indptr of a CSR matrix; the native code checks them."""
    single = X.data.dtype == np.float32
    data: FloatArray = np.ascontiguousarray(X.data, dtype=np.float32 if single else np.float64)
    narrow = X.indices.dtype == np.int32
    indices: IntArray = np.ascontiguousarray(X.indices, dtype=np.int32 if narrow else np.int64)
    return data, indices, _codes(X.indptr)


def _numbers(planes: Planes) -> tuple[FloatArray, FloatArray, IntArray]:
    return _doubles(planes.weights), _doubles(planes.biases), _codes(planes.class_start)
