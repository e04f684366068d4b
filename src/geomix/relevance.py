"""How much each column says, and a penalty that follows it.

A penalty that is the same for all columns holds back those that tell the classes apart as much as
those that tell nothing. One spline plane per class, trained first, says how far each column moves
the class scores; the features of a column are then measured in units of that:

    strength_j = root mean square over rows and classes of what column j adds, less its mean
                 over the classes
    unit_j     = max(strength_j, 1 / 20 of the typical one), with a mean square of one

Features times a unit under the same penalty are the features themselves under a penalty divided
by its square. Under a Fourier lift it is the kernel that becomes narrower along such a column.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.planes import Planes
from geomix.rows import Rows
from geomix.spline import Binned

# A column that says nothing by itself may still say something beside another.
SMALLEST_STRENGTH = 0.05


def part_strengths(planes: Planes, rows: Rows) -> FloatArray:
    """(n_parts,) from one plane per class over binned rows without units."""
    X = rows.X
    assert isinstance(X, Binned)
    strengths = np.zeros(len(X.lift.parts))
    for j, (part, steps, codes) in enumerate(X.by_part()):
        mass = np.bincount(codes, rows.weight, part.n_bins)
        added = part.bin_phi() @ planes.weights[:, steps].T
        added -= added.mean(axis=1, keepdims=True)
        strengths[j] = np.sqrt(mass @ (added**2).mean(axis=1) / mass.sum())
    return strengths


def units_of(strengths: FloatArray) -> FloatArray:
    """Units in proportion to the strengths, floored; all one where nothing says anything."""
    if not (strengths > 0.0).any():
        return np.ones_like(strengths)
    typical = np.sqrt(np.mean(strengths**2))
    units = np.maximum(strengths, SMALLEST_STRENGTH * typical)
    return units / np.sqrt(np.mean(units**2))
