"""Working features of rows under one lift.

    phi (n_rows, n_lifted)  ->  phi B' (n_rows, rank),   planes w = B' v   back

``basis`` B has orthonormal rows that span the rows of phi (``kernel.compressed``). An L2 penalty
keeps planes in that span, so training v is training w with fewer numbers. Spline features may
have ``units`` instead, a factor for each step: then w = units v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomix.arrays import FloatArray, IntArray, Matrix
from geomix.core import kernel
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.core.spline import Binned, SplineLift
from geomix.training.rows import Rows

# Features of up to this many bytes are kept: for the next candidate of their lift, and with a fit.
MOST_BYTES_TO_KEEP = 2**24
# Of those, features of up to this many bytes are kept packed for the native code, and with every
# fit: to make and pack them again would take as long as several iterations.
MOST_BYTES_TO_KEEP_PACKED = 2**16


@dataclass(frozen=True, eq=False)
class Features:
    """Lifted rows, in the coordinates of ``basis`` where there is one."""

    feature_map: FeatureMap
    rows: Rows
    held_out: Rows | None
    basis: FloatArray | None

    def expanded(self, planes: Planes) -> Planes:
        """Planes over the lift's own features, from planes over these."""
        if self.basis is not None:
            return replace(planes, weights=planes.weights @ self.basis)
        if self.units is not None:
            return replace(planes, weights=planes.weights * self.units)
        return planes

    def working(self, planes: Planes) -> Planes:
        """Planes over these features, from planes over the lift's own: not under a ``basis``."""
        if self.units is None:
            return planes
        return replace(planes, weights=planes.weights / self.units)

    @property
    def units(self) -> FloatArray | None:
        """The factor on each step of a spline lift, or None."""
        return self.rows.X.units if isinstance(self.rows.X, Binned) else None

    @property
    def n_bytes(self) -> int:
        """Memory of the rows."""
        X = self.rows.X
        stored, each = (X.codes, X.codes.itemsize) if isinstance(X, Binned) else (X, 8)
        return int(stored.shape[0] * stored.shape[1] * each)

    @property
    def is_small(self) -> bool:
        """Whether the rows take so little memory that they can be kept for later."""
        return self.n_bytes <= MOST_BYTES_TO_KEEP

    @property
    def is_tiny(self) -> bool:
        """Whether the rows take so little memory that they can be kept with every fit."""
        return self.n_bytes <= MOST_BYTES_TO_KEEP_PACKED

    def unpack(self) -> None:
        """Free the packed rows, unless they are few."""
        if self.is_tiny:
            return
        for rows in (self.rows, self.held_out):
            if rows is not None:
                rows.unpack()

    def without_rows(self) -> Features:
        """The way to the features alone."""
        none = self.rows.take(np.empty(0, dtype=np.intp))
        return replace(self, rows=none, held_out=None)

    def with_units(self, units: FloatArray) -> Features:
        """The same features of a spline lift, its steps in these units."""
        held_out = None if self.held_out is None else in_units(self.held_out, units)
        return replace(self, rows=in_units(self.rows, units), held_out=held_out)


def in_units(rows: Rows, units: FloatArray) -> Rows:
    """Binned rows with their steps in these units."""
    return Rows(replace(rows.X, units=units), rows.y, rows.weight)


def with_codes(curves: Rows, tables: Sequence[IntArray], both: SplineLift) -> Rows:
    """Rows binned by the curves of a spline lift, and behind them their bins in its tables.

    both : the lift with the parts of the curves and then of the tables.
    """
    X = curves.X
    assert isinstance(X, Binned)
    codes = np.hstack([X.codes, *tables])
    return replace(curves, X=Binned(codes.astype(both.code_type, copy=False), both))


def make_features(feature_map: FeatureMap, rows: Rows, held_out: Rows | None) -> Features:
    """Lift rows that have been expanded and standardised; compress them if their span is small."""
    lift = feature_map.lift
    Phi = kernel.lifted(lift, rows.X)
    basis = None if lift.is_additive else kernel.compressed(Phi)

    def coordinates(Phi: Matrix) -> Matrix:
        return Phi if basis is None else kernel.in_basis(Phi, basis)

    valid = None
    if held_out is not None:
        valid = Rows(coordinates(kernel.lifted(lift, held_out.X)), held_out.y, held_out.weight)
    ready = Rows(coordinates(Phi), rows.y, rows.weight)
    return Features(feature_map, ready, valid, basis)
