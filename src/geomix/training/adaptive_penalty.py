"""Adaptive penalty: features with a larger importance get a smaller penalty.

A uniform penalty shrinks informative and uninformative features equally. So a model is trained with
the uniform penalty first, its weights give the importance of each feature, and training goes on
with each feature multiplied by a unit. A feature times unit u under penalty l2 is the feature
itself under penalty l2 / u^2.

Spline lift: a unit for each step k of the curves, from the weights w_pk of the same planes,

    spread_k = mean over planes p of (w_pk - mean of w_k)^2, smoothed over neighbours
    unit_k^2 = 0.03 + 0.97 spread_k / mean spread

Curves can then be steep in few places and flat elsewhere, as the steps of a tree are. The levels
of a category have no order and share one unit.

Other lifts: a unit for each column j, from a spline model with one plane per class. With a_icj
what column j adds to the score of class c in row i, and a_i.j its mean over the classes,

    strength_j = sqrt(mean over i and c of (a_icj - a_i.j)^2)
    unit_j     = max(strength_j, strength / 20), divided so that the mean square is one

where strength is the root mean square of all strengths. A kernel becomes narrower along a column
with a large unit.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.core.spline import Binned, SplineLift
from geomix.core.spline_parts import PairPart
from geomix.training.rows import Rows

# The importance is measured column by column; a column may matter only beside another one. So no
# unit falls below this share of the typical one (columns), or its square below this (steps).
SMALLEST_STRENGTH = 0.05
UNIT_FLOOR = 0.03


def step_units(planes: Planes, lift: SplineLift) -> FloatArray:
    """Unit of each step, (n_steps,), from planes over the lift's own features."""
    of_step = planes.weights.var(axis=0)
    low, high = lift.neighbours
    spread = 0.25 * of_step[low] + 0.5 * of_step + 0.25 * of_step[high]
    for part, steps in lift.by_part():
        if not part.n_ordered:
            spread[steps] = of_step[steps].mean()
    typical = spread.mean()
    if not typical > 0.0:
        return np.ones_like(spread)
    return np.sqrt(UNIT_FLOOR + (1.0 - UNIT_FLOOR) * spread / typical)


def pair_units(lift: SplineLift, penalty: float) -> FloatArray:
    """Unit of each step, (n_steps,), under which tables over pairs have ``penalty`` times the
    penalty of the curves."""
    units = np.ones(lift.n_outputs)
    for part, steps in lift.by_part():
        if isinstance(part, PairPart):
            units[steps] = penalty**-0.5
    return units


def part_strengths(planes: Planes, rows: Rows) -> FloatArray:
    """Importance of each part, (n_parts,), from one plane per class over binned rows."""
    X = rows.X
    assert isinstance(X, Binned)
    strengths = np.zeros(len(X.lift.parts))
    for j, (part, steps, codes) in enumerate(X.by_part()):
        mass = np.bincount(codes, rows.weight, part.n_bins)
        added = part.values_of_bins(planes.weights[:, steps].T)
        added -= added.mean(axis=1, keepdims=True)
        strengths[j] = np.sqrt(mass @ (added**2).mean(axis=1) / mass.sum())
    return strengths


def units_of(strengths: FloatArray) -> FloatArray:
    """Units in proportion to the strengths, with a floor; all one where all strengths are 0."""
    if not (strengths > 0.0).any():
        return np.ones_like(strengths)
    typical = np.sqrt(np.mean(strengths**2))
    units = np.maximum(strengths, SMALLEST_STRENGTH * typical)
    return units / np.sqrt(np.mean(units**2))
