"""How much each column, and each step of a curve, says; and a penalty that follows it.

A penalty that is the same for all holds back what tells the classes apart as much as what tells
nothing. So a model that is trained with columns alike tells first, and features are then measured
in units of what it says: features times a unit under the same penalty are the features themselves
under a penalty divided by its square.

Under a spline lift the same planes tell, of every step k of their curves:

    spread_k = mean over planes p of (w_pk - mean of w_k)^2, smoothed over neighbours
    unit_k^2 = 0.03 + 0.97 spread_k / mean spread

A curve is then free to be steep where it was steep, and flat elsewhere: nearer to the steps of a
tree. The levels of a category, which have no order, share one unit.

Under the other lifts one spline plane per class tells how far each column moves the class scores:

    strength_j = root mean square over rows and classes of what column j adds, less its mean
                 over the classes
    unit_j     = max(strength_j, 1 / 20 of the typical one), with a mean square of one

A kernel becomes narrower along a column that says much.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.core.spline import Binned, SplineLift
from geomix.core.spline_parts import Curve
from geomix.training.rows import Rows

# A column that says nothing by itself may still say something beside another.
SMALLEST_STRENGTH = 0.05
SMALLEST_SPREAD = 0.03
NEIGHBOURS = np.array([0.25, 0.5, 0.25])


def step_units(planes: Planes, lift: SplineLift) -> FloatArray:
    """(n_steps,) from planes over the lift's own features."""
    spread = planes.weights.var(axis=0)
    for part, steps in lift.by_part():
        if isinstance(part, Curve):
            along = slice(steps.start, steps.stop - part.has_missing)
            padded = np.pad(spread[along], 1, mode="edge")
            spread[along] = np.convolve(padded, NEIGHBOURS, mode="valid")
        else:
            spread[steps] = spread[steps].mean()
    typical = spread.mean()
    if not typical > 0.0:
        return np.ones_like(spread)
    return np.sqrt(SMALLEST_SPREAD + (1.0 - SMALLEST_SPREAD) * spread / typical)


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
