"""From clean columns to the working features phi(x): standardise, rotate, lift.

    u      = clip((x - mean) / scale)                     Standardize; 0 where x is missing
    v      = u R'                                         ... with an optional PCA rotation R
    phi(v) = v                                            IdentityLift
    phi(v) = sqrt(1/D) [cos(v Omega); sin(v Omega)]       FourierLift, Omega ~ N(0, 2 gamma I)

The paper scales Fourier features by sqrt(2/D) and adds a random phase; with both cosine and
sine present that makes phi(x).phi(x) = 2 and the phase redundant. Ours is sqrt(1/D) without
phase, so that phi(x).phi(y) estimates exp(-gamma ||x - y||^2) and phi(x).phi(x) = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from geomix.arrays import BoolArray, CenteredSparse, FloatArray, IntArray, Matrix
from geomix.core.moments import (
    column_scale,
    columns_of,
    sparse_moments,
    two_pass_moments,
    with_data,
    zero_if_missing,
)
from geomix.core.spline import SplineLift
from geomix.table.row_views import DenseRows, PickedRows, blocks, is_dense

# Standardised values are kept within this bound: with weights up to 1e100 no score can then
# overflow, so every finite row has finite probabilities. The softmax saturates long before.
LARGEST_STANDARDIZED = 1e150
# Training rows of a float32 table stay float32 from this many cells on, to save memory. Smaller
# tables are float64, so that their type changes no result. Standardised values beyond the bound
# (columns that are not scaled) could overflow float32 in sums: such tables are float64 too.
CELLS_FOR_SINGLE = 2**22
LARGEST_SINGLE = 1e6
# Angles of Fourier features up to this are computed in float32 where that is wanted: such floats
# lie at most 3e-5 apart.
SINGLE_ANGLE = 512.0
Precision: TypeAlias = Literal["float32", "float64"]
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Standardize:
    """Drop constant columns, centre, scale, and optionally rotate onto principal axes.

    A missing cell (NaN) counts as the column's mean, so it adds nothing.
    kept : (k,) indices of the columns that vary;  mean, scale : (k,);
    rotation : (r, k) orthonormal rows, or None;  n_columns : width of the raw input;
    passes : rows are returned as they are (``pass_through``).
    """

    kept: IntArray
    mean: FloatArray
    scale: FloatArray
    rotation: FloatArray | None
    n_columns: int
    passes: bool = False

    @property
    def n_outputs(self) -> int:
        return len(self.kept) if self.rotation is None else len(self.rotation)

    def __call__(self, X: Any) -> Matrix:
        """Standardise (n_rows, n_columns) rows; SciPy sparse rows stay sparse.

        Picked rows are gathered block by block, straight into the one array that is returned.
        """
        if self.passes:
            return X
        if isinstance(X, PickedRows):
            V = np.empty((len(X), self.n_outputs), dtype=self._dtype_for(X))
            for rows, block in blocks(X, self.kept):
                V[rows] = self.rotated(self.scaled(block))
            return V
        if not isinstance(X, np.ndarray):
            return self._sparse(X)
        if len(self.kept) < self.n_columns:
            X = np.take(X, self.kept, axis=1)  # C order, which X[:, kept] is not
        return self.rotated(self.scaled(X))

    def scaled(self, X: FloatArray) -> FloatArray:
        """u of rows of the kept columns, (n_rows, k): zero is the mean, and a missing cell."""
        with np.errstate(over="ignore"):  # an overflow becomes inf, and the clip takes it back
            U: FloatArray = X - self.mean
            U /= self.scale
        np.clip(U, -LARGEST_STANDARDIZED, LARGEST_STANDARDIZED, out=U)
        return zero_if_missing(U)

    def rotated(self, U: FloatArray) -> FloatArray:
        """v of scaled rows, (n_rows, r): on principal axes, or U itself where there are none."""
        return U if self.rotation is None else U @ self.rotation.T

    def unrotated(self, weights: FloatArray) -> FloatArray:
        """The same sums over scaled columns: w . v = (w R) . u, for weights (m, r) -> (m, k)."""
        return weights if self.rotation is None else weights @ self.rotation

    def _dtype_for(self, X: PickedRows) -> Any:
        if X.dtype != np.float32 or len(X) * self.n_outputs < CELLS_FOR_SINGLE:
            return np.float64
        return np.float32 if self.fits_single(X.limits) else np.float64

    def fits_single(self, limits: FloatArray) -> bool:
        """Whether float32 has room for sums of rows within ``limits``, (2, n_columns)."""
        if self.passes:  # a spline lift has knots in float64
            return False
        return bool(np.abs(self.scaled(limits[:, self.kept])).max(initial=0.0) <= LARGEST_SINGLE)

    def _sparse(self, X: Any) -> CenteredSparse:
        if self.rotation is not None:
            raise TypeError("Sparse rows cannot be rotated (pca) and stay so; pass dense rows.")
        X = columns_of(X, self.kept)
        with np.errstate(over="ignore"):
            data = X.data / self.scale[X.indices]
        np.clip(data, -LARGEST_STANDARDIZED, LARGEST_STANDARDIZED, out=data)
        return CenteredSparse(with_data(X, data), self.mean / self.scale)

    def as_affine(self) -> tuple[FloatArray, FloatArray]:
        """The same map over the raw columns as u = M x + o, without the clip: (M, o)."""
        rotation = np.eye(len(self.kept)) if self.rotation is None else self.rotation
        matrix = np.zeros((len(rotation), self.n_columns))
        matrix[:, self.kept] = rotation / self.scale
        return matrix, -(rotation @ (self.mean / self.scale))


def pass_through(n_columns: int) -> Standardize:
    """Columns as they are, missing cells included: a spline lift has knots in the user's units."""
    zero, one = np.zeros(n_columns), np.ones(n_columns)
    return Standardize(np.arange(n_columns), zero, one, None, n_columns, passes=True)


@dataclass(frozen=True, eq=False)
class IdentityLift:
    """phi(v) = v: planes in the standardised columns themselves."""

    n_outputs: int
    kind = "linear"
    reads_cells = False
    is_additive = True
    n_pairs = 0

    def __call__(self, V: Matrix) -> Matrix:
        return V


@dataclass(frozen=True, eq=False)
class FourierLift:
    """phi(v) = sqrt(1/D) [cos(v Omega); sin(v Omega)], with Omega of shape (r, D).

    precision : of v Omega, cos and sin in predictions. "float32" applies to rows whose angles are
    at most SINGLE_ANGLE; other rows have float64.
    """

    frequencies: FloatArray
    gamma: float
    precision: Precision = "float64"
    kind = "fourier"
    reads_cells = False
    is_additive = False
    n_pairs = 0

    @property
    def n_outputs(self) -> int:
        return 2 * int(self.frequencies.shape[1])

    def __call__(self, V: Any) -> FloatArray:
        if isinstance(V, CenteredSparse):
            raise TypeError("Sparse rows cannot have a Fourier lift and stay so; pass dense rows.")
        Phi = fourier_features(V, self.frequencies)
        if self.precision == "float32":
            near = (np.abs(V).max(axis=1, initial=0.0) <= self.reach)[:, None]
            single = np.where(near, V, 0.0).astype(np.float32)
            Phi = np.where(near, fourier_features(single, self.frequencies.astype(np.float32)), Phi)
        return Phi

    @property
    def reach(self) -> float:
        """Largest |v| of rows in float32: |v . omega| <= max |v| sum |omega| <= SINGLE_ANGLE."""
        return float(SINGLE_ANGLE / max(np.abs(self.frequencies).sum(axis=0).max(), 1.0))


def fourier_features(V: FloatArray, frequencies: FloatArray) -> FloatArray:
    """sqrt(1/D) [cos(V Omega); sin(V Omega)], (n_rows, 2 D), in the precision of V."""
    angles = V @ frequencies
    n_frequencies = angles.shape[1]
    Phi = np.empty((len(angles), 2 * n_frequencies), dtype=angles.dtype)
    np.cos(angles, out=Phi[:, :n_frequencies])
    np.sin(angles, out=Phi[:, n_frequencies:])
    Phi *= np.sqrt(1.0 / n_frequencies)
    return Phi


# Every lift has ``kind``, ``n_outputs``, a call V -> phi, and
#     reads_cells   whether it reads encoded cells as they are, and not standardised numbers
#     is_additive   whether a plane's score is a sum over columns (and pairs of columns)
#     n_pairs       pairs of columns with a table of their own
Lift: TypeAlias = "IdentityLift | FourierLift | SplineLift"


def fit_standardize(
    X: Any,
    row_weight: FloatArray,
    kept: IntArray,
    *,
    center_and_scale: bool = True,
    keep_unit: BoolArray | None = None,
) -> Standardize:
    """Weighted mean and standard deviation of the kept columns, over the cells not missing.

    keep_unit : (n_columns,) columns to centre only, or None.
    Every column is divided by a power of two near its largest value first (exact, so it
    costs no rounding), which keeps 1e300 from overflowing when squared.
    """
    n_columns = X.shape[1]
    if not center_and_scale:
        return Standardize(kept, np.zeros(len(kept)), np.ones(len(kept)), None, n_columns)
    share = row_weight / row_weight.sum()
    moments = two_pass_moments if is_dense(X) else sparse_moments
    mean, variance, half_spread, exponent = moments(X, share, kept)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    scale = np.ldexp(column_scale(deviation, half_spread), exponent)
    scale[half_spread == 0.0] = 1.0
    if keep_unit is not None:
        scale[keep_unit[kept]] = 1.0
    return Standardize(kept, np.ldexp(mean, exponent), scale, None, n_columns)


def with_rotation(
    standardize: Standardize, X: DenseRows, row_weight: FloatArray, keep: float | int
) -> Standardize:
    """Add a PCA rotation: ``keep`` is a share of the variance (float) or a number of axes.

    X : the raw rows that ``standardize`` (without a rotation) was fitted to.
    """
    share = row_weight / row_weight.sum()
    n_kept = len(standardize.kept)
    axes = _wide_axes if n_kept > 2 * len(X) else _axes
    values, vectors = axes(standardize, X, share)
    most = min(len(values), max(len(X) - 1, 1))
    if isinstance(keep, float):
        explained = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
        # 1e-12: a cumulative share that rounds just below the target is the target.
        n_axes = min(int(np.searchsorted(explained, keep - 1e-12)) + 1, most)
    else:
        n_axes = min(keep, most)
    rotation = vectors[:, :n_axes].T
    largest = np.abs(rotation).argmax(axis=1)
    signs = np.sign(rotation[np.arange(n_axes), largest])  # eigenvectors come with any sign
    return Standardize(
        standardize.kept,
        standardize.mean,
        standardize.scale,
        np.ascontiguousarray(rotation * signs[:, None]),
        standardize.n_columns,
    )


def _axes(
    standardize: Standardize, X: DenseRows, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Variances, largest first, and their axes in the columns of (n_kept, n_axes)."""
    n_kept = len(standardize.kept)
    covariance = np.zeros((n_kept, n_kept))
    for rows, block in blocks(X, standardize.kept):
        U = standardize.scaled(block)  # centred already
        covariance += (U * share[rows, None]).T @ U
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _wide_axes(
    standardize: Standardize, X: DenseRows, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for more columns than rows, from products of rows: U U' q = v q gives U' q.

    Axes without variance are left out.
    """
    U = np.concatenate([standardize.scaled(block) for _, block in blocks(X, standardize.kept)])
    U *= np.sqrt(share)[:, None]
    values, vectors = np.linalg.eigh(U @ U.T)
    there = values > values.max(initial=0.0) * len(U) * np.finfo(float).eps
    there[np.argmax(values)] = True
    values, vectors = np.maximum(values[there][::-1], 0.0), U.T @ vectors[:, there][:, ::-1]
    return values, vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(float).tiny)


def median_gamma(V: FloatArray, rng: np.random.Generator, n_rows: int = 500) -> float:
    """1 / median squared distance between rows: the kernel falls to 1/e at a typical distance."""
    if len(V) > n_rows:
        V = V[rng.choice(len(V), n_rows, replace=False)]
    V = np.asarray(V, dtype=np.float64)
    squared_norms = (V**2).sum(axis=1)
    squared = squared_norms[:, None] + squared_norms - 2.0 * (V @ V.T)
    above_diagonal = squared[np.triu_indices(len(V), 1)]
    typical = float(np.median(above_diagonal)) if len(above_diagonal) else 0.0
    return 1.0 / typical if typical > 1e-12 else 1.0


def short(numbers: FloatArray) -> FloatArray:
    """Numbers rounded to 21 significant bits: the lower half of each float64 becomes zero.

    A Fourier model holds nothing but such numbers. Its frequencies are random and its planes
    approximate a kernel and were trained on float32 features, so further digits carry no
    information. Reading the numbers is most of the cost of one row, and half the bytes halve it.
    All arithmetic with them is float64, in every path.
    """
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    # A carry out of the kept half raises the exponent, as rounding up should.
    rounded = (bits + np.uint64(0x80000000)) & np.uint64(0xFFFFFFFF00000000)
    return rounded.view(np.float64)


def draw_fourier(
    n_inputs: int, n_frequencies: int, gamma: float, orthogonal: bool, rng: np.random.Generator
) -> FourierLift:
    """Random frequencies for the kernel exp(-gamma ||x - y||^2).

    Orthogonal draws (blocks of orthogonal directions with the lengths that independent ones
    would have) estimate the same kernel with less variance.
    """
    frequencies = rng.standard_normal((n_inputs, n_frequencies))
    if orthogonal:
        lengths = np.linalg.norm(frequencies, axis=0)
        n_blocks = -(-n_frequencies // n_inputs)
        Q, R = np.linalg.qr(rng.standard_normal((n_blocks, n_inputs, n_inputs)))
        Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
        frequencies = np.hstack(list(Q))[:, :n_frequencies] * lengths
    return FourierLift(short(np.sqrt(2.0 * gamma) * frequencies), float(gamma))
