"""The native extension with our objects as arguments and results.

Each function computes the same as a NumPy one, from the same arguments. ``kernel`` chooses between
the two and is the only module that imports this one; only this one imports ``_native``. The
extension takes contiguous arrays of one type, and a spline lift part by part.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geomix import _native
from geomix.arrays import CenteredSparse, FloatArray, IntArray, Matrix, contiguous, plain
from geomix.core import calibration, clustering
from geomix.core.adam import AdamState
from geomix.core.calm import KnotMasses
from geomix.core.descent import Descended, Descent, Stage, StagePlan
from geomix.core.feature_map import FeatureMap
from geomix.core.lbfgs import Enough
from geomix.core.lifts import FourierLift
from geomix.core.objective import BatchTerms
from geomix.core.ordered_weights import OrderedWeights
from geomix.core.planes import Planes
from geomix.core.predictors import CellReader, Predictor, RowExplanation, Scorer
from geomix.core.spline import Binned, SplineLift
from geomix.core.spline_parts import CurvePart, LevelPart
from geomix.table.frames import kind_of
from geomix.table.row_views import DenseRows, PickedRows, blocks, few_at_once, numbers
from geomix.table.schema import Schema

# The CPU level in use: "scalar", "avx2" or "avx512".
simd: str = _native.simd()

# Buffers that a thread keeps during a fit: those of a solver over a million numbers are not.
MOST_BYTES_OF_BUFFERS = 2**25
# Packed rows lie in groups, whose length divides this.
ROWS_IN_GROUP = 64
# A row of a pandas frame costs 25 us, all columns of a frame cost 1,000.
FEW_PANDAS_ROWS = 16
# Kinds of columns that are not refused for numbers and for categories.
NUMBER_KINDS = ("numbers", "integers", "objects")
CATEGORY_KINDS = (*NUMBER_KINDS, "text", "categories")


def thread_limit() -> int:
    """The most threads that calls from this thread use; 0: no limit."""
    limit: int = _native.limit_threads(0)
    _native.limit_threads(limit)
    return limit


@contextmanager
def at_most_threads(most: int) -> Iterator[None]:
    """Calls from this thread use at most this many, or fewer where that was the limit before."""
    before = thread_limit()
    _native.limit_threads(min(most, before or most))
    try:
        yield
    finally:
        _native.limit_threads(before)


@contextmanager
def keeping_buffers() -> Iterator[None]:
    """Keep the buffers of a solver for the next one."""
    before = _native.keep_free_blocks(MOST_BYTES_OF_BUFFERS)
    try:
        yield
    finally:
        _native.keep_free_blocks(before)
        _native.clear_free_blocks()


def give_back_memory(*, heap: bool) -> None:
    _native.clear_free_blocks()
    if heap:
        _native.trim_heap()


# --- training rows ---


class NativeRows:
    """Training rows packed for the native kernel.

    Dense rows are computed with in float64, or in float32 where they are or ``is_single``, sparse
    ones in float64, binned ones in float32.
    """

    def __init__(self, X: Matrix, y: IntArray, weight: FloatArray, is_single: bool = False) -> None:
        labels = _codes(y), _doubles(weight)
        if isinstance(X, CenteredSparse):
            self.packed = _native.SparseRows(*_csr(X.csr), _doubles(X.shift), *labels)
            self._solver = _native.SparseMinimizer, _native.SparseOrderedMinimizer
        elif isinstance(X, Binned):
            parts = _spline_parts(X.lift)
            if X.units is not None:
                parts = parts.with_units(_doubles(X.units))
            self.packed = _native.BinnedRows(plain(X.codes), parts, *labels)
            self._solver = _native.BinnedMinimizer, _native.BinnedOrderedMinimizer
        elif is_single or X.dtype == np.float32:
            self.packed = _packed(_native.Rows32, X, *labels)
            self._solver = _native.Minimizer32, _native.OrderedMinimizer32
        else:
            self.packed = _packed(_native.Rows64, X, *labels)
            self._solver = _native.Minimizer64, _native.OrderedMinimizer64
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
        return self._solver[0](*self._problem(descent))

    def ordered_minimizer(self, descent: Descent, numbers: OrderedWeights) -> Any:
        """The same within the bounds of ``numbers``."""
        order = _codes(numbers.features), np.ascontiguousarray(numbers.sides)
        vectors = (_doubles(one) for one in (numbers.start, *numbers.bounds))
        return self._solver[1](*self._problem(descent), *order, *vectors)

    def _problem(self, descent: Descent) -> tuple[Any, ...]:
        return (
            self.packed,
            *_numbers(descent.planes),
            descent.sharpness,
            descent.label_smoothing,
            descent.coefficients,
            descent.shrink_to_mean,
            descent.tol,
            descent.value_tol,
        )


def _packed(kind: Any, X: DenseRows, y: IntArray, weight: FloatArray) -> Any:
    """Dense rows packed in the precision of ``kind``; picked ones without an array of all."""
    dtype = np.float32 if kind is _native.Rows32 else np.float64
    if not isinstance(X, PickedRows):
        return kind(plain(X.astype(dtype, copy=False) if X.dtype == np.float64 else X), y, weight)
    packed = kind(X.shape[1], y, weight)
    for rows in few_at_once(X.shape, ROWS_IN_GROUP):
        packed.fill(rows.start, contiguous(numbers(X[rows]), dtype))
    return packed


# --- solvers ---


def descend(rows: NativeRows, descent: Descent) -> Descended:
    """The native L-BFGS: in one call, or step by step where ``on_iterate`` is set."""
    return _descended(rows.minimizer(descent), descent, descent.planes.with_vector)


def descend_within(rows: NativeRows, descent: Descent, numbers: OrderedWeights) -> Descended:
    """The native L-BFGS within bounds."""
    solver = rows.ordered_minimizer(descent, numbers)
    return _descended(solver, descent, numbers.planes_at)


def descend_by_stages(
    rows: NativeRows, planes: Planes, plan: StagePlan
) -> tuple[Planes, bool, list[Stage]]:
    """All stages of a descent in one call: see ``kernel.minimize_by_stages``."""
    vector, converged, stages = rows.packed.descend_by_stages(
        *_numbers(planes),
        plan.label_smoothing,
        plan.shrink_to_mean,
        plan.sharpness,
        (plan.l2, plan.usage_beta, plan.usage_delta),
        (plan.early_limit, plan.max_iter, plan.rounds),
        (plan.tol, plan.early_value_tol, plan.value_tol),
    )
    return planes.with_vector(vector), converged, [Stage(*one) for one in stages]


def _descended(
    solver: Any, descent: Descent, planes_at: Callable[[FloatArray], Planes]
) -> Descended:
    if descent.on_iterate is not None:
        return _by_steps(solver, descent, planes_at)
    status, values = solver.run(descent.max_iter)
    planes = planes_at(solver.vector) if values else descent.planes
    return Descended(planes, status in ("optimal", "converged"), values)


def _by_steps(
    solver: Any, descent: Descent, planes_at: Callable[[FloatArray], Planes]
) -> Descended:
    planes, values = descent.planes, list[float]()
    for _ in range(descent.max_iter):
        status = solver.step()
        if status in ("optimal", "stuck"):
            return Descended(planes, status == "optimal", values)
        planes = planes_at(solver.vector)
        values.append(float(solver.value))
        try:
            if descent.on_iterate is not None:
                descent.on_iterate(planes, values[-1])
        except Enough:
            break
        if status == "converged":
            return Descended(planes, True, values)
    return Descended(planes, False, values)


def adam_epoch(
    rows: tuple[Matrix, IntArray, FloatArray],
    order: IntArray,
    planes: Planes,
    state: AdamState,
    usage: FloatArray,
    prepared: Any,
    settings: Mapping[str, float],
) -> tuple[Planes, AdamState, FloatArray, float]:
    """One epoch over ``rows``, which are X, y and weight: see ``kernel.adam_epoch``."""
    vector, mean, square = planes.as_vector(), state.mean.copy(), state.square.copy()
    usage = usage.copy()
    adam = _native.Adam(planes.class_start, vector, mean, square, usage, state.n_steps, **settings)
    X, y, weight = rows
    if isinstance(X, CenteredSparse):
        packed = (prepared or NativeRows(X, y, weight)).packed
        loss, n_steps = adam.epoch(packed, _codes(order))
    else:
        loss, n_steps = adam.epoch(plain(X), _codes(y), _doubles(weight), _codes(order))
    return planes.with_vector(vector), AdamState(mean, square, n_steps), usage, loss


def calibrate(
    S: FloatArray, y: IntArray, weight: FloatArray, prior_scale: float | None
) -> tuple[float, float]:
    share = weight / weight.sum()
    pull = calibration.prior_pull(share, prior_scale)
    return _native.calibrate(S, _codes(y), share, pull, *calibration.LOG_RANGE)


def calm_steps(weights: FloatArray, masses: KnotMasses, tolerance: float) -> FloatArray:
    of_curves = _codes(masses.first), _codes(masses.start), _doubles(masses.mass)
    return _native.calm_steps(_doubles(weights), *of_curves, tolerance)


# --- clustering ---


def kmeans(
    X: FloatArray, weight: FloatArray, n_clusters: int, draws: FloatArray
) -> clustering.Clustering:
    tol = clustering.shift_tol(X)
    found = _native.kmeans(
        _doubles(X), _doubles(weight), n_clusters, draws, clustering.MOST_ROUNDS, tol
    )
    return clustering.Clustering(*found)


def nearest(X: FloatArray, centres: FloatArray) -> IntArray:
    return _native.nearest(X, centres)


def silhouettes(X: FloatArray, labelings: list[IntArray]) -> FloatArray:
    return _native.silhouettes(_doubles(X), np.ascontiguousarray(labelings, dtype=np.int64))


def pair_gains(bins: IntArray, terms: FloatArray, n_bins: int) -> FloatArray:
    return _native.pair_gains(np.ascontiguousarray(bins, np.uint8), _doubles(terms), n_bins)


# --- features ---


def fourier(V: Any, frequencies: FloatArray) -> FloatArray:
    """[cos; sin] features of standardised rows, float32."""
    frequencies = _doubles(frequencies)
    if V.dtype == np.float64:
        return _native.fourier_f32(plain(V), frequencies)
    Phi = np.empty((len(V), 2 * frequencies.shape[1]), dtype=np.float32)
    for rows, block in blocks(V):
        Phi[rows] = _native.fourier_f32(block, frequencies)
    return Phi


def fourier_exact(V: FloatArray, frequencies: FloatArray) -> FloatArray:
    """The same in float64."""
    return _native.fourier_f64(_doubles(V), _doubles(frequencies))


def basis(Phi: FloatArray, n_rows: int, most: int, left_outside: float) -> FloatArray:
    """Orthonormal rows that span those of ``Phi``; none where more than ``most`` are needed."""
    return _native.basis(Phi, n_rows, most, left_outside)


def projected(Phi: Any, span: FloatArray) -> FloatArray:
    return _native.projected(Phi, span)


def binned(lift: SplineLift, X: Any) -> Binned:
    coder, wide = _spline_coder(lift), lift.code_type == np.uint16
    codes = np.empty((len(X), len(lift.parts)), dtype=lift.code_type)
    for rows, block in blocks(X):
        codes[rows] = coder.codes(block, wide)
    return Binned(codes, lift)


# --- frames ---


class FrameFill:
    """Reads the columns of frames that need no second look: a ``Fill`` of ``Schema.encode``.

    polars and Arrow share their buffers. Of pandas, whose columns cost more than their cells where
    rows are few, rows are read cell by cell.
    """

    def __init__(self, schema: Schema) -> None:
        self._all = range(len(schema))
        self._kinds = [CATEGORY_KINDS if yes else NUMBER_KINDS for yes in schema.is_category]
        self._of_rows = _row_reader(CellReader(schema, None))
        self._of_frames = _native.FrameReader(*_levels(schema))

    def __call__(self, X: Any, found: list[tuple[Any, Any]], rows: FloatArray) -> Iterable[int]:
        if len(rows) == 0:
            return self._all
        if hasattr(X, "iloc"):
            few = len(rows) <= FEW_PANDAS_ROWS
            return () if few and self._reads_cells(X, found, rows) else self._all
        if hasattr(X, "__arrow_c_stream__"):
            return self._of_frames.fill(X.__arrow_c_stream__(), rows)
        return self._all

    def _reads_cells(self, X: Any, found: list[tuple[Any, Any]], rows: FloatArray) -> bool:
        # The type of a column may be one to refuse whatever its cells are, such as missing dates.
        if any(
            kind_of(dtype) not in kinds
            for kinds, (_, dtype) in zip(self._kinds, found, strict=True)
        ):
            return False
        for i, to in enumerate(rows):
            cells = X.iloc[i]
            # Cells of one type have been converted to it, and may have lost digits.
            if cells.dtype != object or not self._of_rows.encode(cells.tolist(), to):
                return False
        return True


def _levels(schema: Schema) -> tuple[tuple[dict[Any, float] | None, ...], FloatArray]:
    """Of each column the codes by level, None for a number; and the code of unseen levels."""
    columns = schema.columns
    codes = tuple(column.code_of if column.kind == "category" else None for column in columns)
    return codes, np.array([column.unseen for column in columns])


# --- predictions ---


def predictor(
    feature_map: FeatureMap, planes: Planes, sharpness: float, temperature: float
) -> Predictor:
    standardize, lift = feature_map.standardize, feature_map.lift
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
        isinstance(lift, FourierLift) and lift.precision == "float32",
    )


def scorer(
    predictor: Any,
    labels: tuple[Any, ...],
    contributions: FloatArray | None,
    reader: CellReader | None,
) -> Scorer:
    """contributions : (n_planes, n_kept) as in ``predictors.NumpyScorer``."""
    weights = None if contributions is None else _doubles(contributions)
    if reader is None:
        return predictor.scorer(labels, weights, RowExplanation)
    return predictor.scorer(labels, weights, reader.explanation, _row_reader(reader))


def _row_reader(reader: CellReader) -> Any:
    """Plain cells in native code; ``reader`` itself reads all others, and raises the errors."""
    none = np.empty(0, dtype=np.int64)
    return _native.RowReader(
        tuple(map(sys.intern, reader.schema.names)),  # as the names in most dicts are
        *_levels(reader.schema),
        none if reader.expand is None else _codes(reader.expand.column_of),
        none if reader.expand is None else _codes(reader.expand.shows),
        reader,
    )


@dataclass(frozen=True, eq=False)
class NativeSparsePredictor:
    """Predictions for CSR rows from their entries alone. They equal those of dense rows up to
    rounding: the mean is subtracted from the scores, and not from each number of a row."""

    dense: Any

    def predict_proba(self, X: Any) -> FloatArray:
        return self.dense.predict_proba(*_csr(X))

    def class_scores(self, X: Any) -> FloatArray:
        return self.dense.class_scores(*_csr(X))

    def plane_scores(self, X: Any) -> FloatArray:
        return self.dense.plane_scores(*_csr(X))

    def responsibilities(self, X: Any) -> FloatArray:
        return self.dense.responsibilities(*_csr(X))


# --- a spline lift, part by part ---


@lru_cache(maxsize=2)
def _spline_coder(lift: SplineLift) -> Any:
    """Finds the bins of cells."""
    coder = _native.SplineCoder()
    for j, part in enumerate(lift.parts):
        if isinstance(part, CurvePart):
            coder.add_number(j, part.column, _doubles(part.edges), len(part.values), 1)
        elif isinstance(part, LevelPart):
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
    """Tables for prediction, from exact cells and not from bins."""
    tables = _native.SplineLift()
    for part in lift.parts:
        mean = _doubles(part.mean)
        if isinstance(part, CurvePart):
            tables.add_curve(part.column, _doubles(part.knots), part.has_missing, mean)
        elif isinstance(part, LevelPart):
            tables.add_levels(part.column, part.n_levels, part.has_missing, mean)
        else:
            cuts = [None if cut is None else _doubles(cut) for cut in (part.first, part.second)]
            tables.add_pair(*part.columns, *cuts, part.n_first, part.n_second, mean)
    return tables


@lru_cache(maxsize=4)
def _spline_parts(lift: SplineLift) -> Any:
    """The parts for training on bins: positions of the bins and means."""
    parts = _native.SplineParts()
    for part in lift.parts:
        mean = _doubles(part.mean)
        if isinstance(part, CurvePart):
            interval, fraction = part.bin_places
            parts.add_curve(_codes(interval), _doubles(fraction), part.has_missing, mean)
        elif isinstance(part, LevelPart):
            parts.add_levels(part.n_levels, part.has_missing, mean)
        else:
            ordered = part.first is not None, part.second is not None
            parts.add_pair(part.n_first, part.n_second, *ordered, mean)
    return parts


# --- arrays for the extension ---


def _doubles(X: Any) -> FloatArray:
    return contiguous(X, np.float64)


def _codes(y: IntArray) -> IntArray:
    return contiguous(y, np.int64)


def _csr(X: Any) -> tuple[Any, Any, IntArray]:
    """Data, indices and indptr of a CSR matrix; the native code checks them."""
    single = X.data.dtype == np.float32
    data = contiguous(X.data, np.float32 if single else np.float64)
    narrow = X.indices.dtype == np.int32
    indices = contiguous(X.indices, np.int32 if narrow else np.int64)
    return data, indices, _codes(X.indptr)


def _numbers(planes: Planes) -> tuple[FloatArray, FloatArray, IntArray]:
    return _doubles(planes.weights), _doubles(planes.biases), _codes(planes.class_start)
