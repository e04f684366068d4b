"""Working features of rows under one lift, and the way to them.

    phi (n_rows, n_lifted)  ->  phi B' (n_rows, rank),   planes w = B' v   back

``basis`` B spans the rows (``kernel.compressed``): an L2 penalty keeps planes in that span, and
its rows are orthonormal, so training v is training w with fewer numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from geomix import kernel
from geomix.arrays import FloatArray, Matrix
from geomix.expand import Expand
from geomix.lift import Lift, Standardize
from geomix.planes import Planes
from geomix.rows import Rows


@dataclass(frozen=True, eq=False)
class Features:
    """Lifted rows, in the coordinates of ``basis`` where there is one."""

    expand: Expand | None
    standardize: Standardize
    lift: Lift
    rows: Rows
    held_out: Rows | None
    basis: FloatArray | None

    def expanded(self, planes: Planes) -> Planes:
        """Planes over the lift's own features, from planes over these."""
        if self.basis is None:
            return planes
        return replace(planes, weights=planes.weights @ self.basis)


def make_features(
    expand: Expand | None,
    standardize: Standardize,
    lift: Lift,
    rows: Rows,
    held_out: Rows | None,
) -> Features:
    """Lift rows that have been expanded and standardised; compress them if their span is small."""
    Phi = kernel.lifted(lift, rows.X)
    basis = kernel.compressed(Phi) if lift.kind == "fourier" else None

    def coordinates(Phi: Matrix) -> Matrix:
        return Phi if basis is None else kernel.in_basis(Phi, basis)

    judges = None
    if held_out is not None:
        judges = Rows(coordinates(kernel.lifted(lift, held_out.X)), held_out.y, held_out.weight)
    ready = Rows(coordinates(Phi), rows.y, rows.weight)
    return Features(expand, standardize, lift, ready, judges, basis)
