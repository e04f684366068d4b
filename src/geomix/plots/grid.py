"""A window on two columns, as a grid of points to predict.

points[i * len(xs) + j] = (xs[j], ys[i]),   so maps over the grid have shape (len(ys), len(xs))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt

from geomix.arrays import FloatArray

MARGIN = 0.06


@dataclass(frozen=True, eq=False)
class Grid:
    """Evenly spaced coordinates ``xs`` and ``ys``, the outermost ones on the window's edge."""

    xs: FloatArray
    ys: FloatArray

    @property
    def points(self) -> FloatArray:
        """Every grid point as a row, (len(ys) * len(xs), 2)."""
        return np.column_stack([axis.ravel() for axis in np.meshgrid(self.xs, self.ys)])

    @property
    def low(self) -> FloatArray:
        return np.array([self.xs[0], self.ys[0]])

    @property
    def high(self) -> FloatArray:
        return np.array([self.xs[-1], self.ys[-1]])

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top of an image with one pixel centred on each point."""
        (left, bottom), (right, top) = self.low, self.high
        dx, dy = (right - left) / (len(self.xs) - 1), (top - bottom) / (len(self.ys) - 1)
        return left - dx / 2, right + dx / 2, bottom - dy / 2, top + dy / 2

    def rows(self, places: tuple[int, int], held: FloatArray) -> FloatArray:
        """Every grid point as an encoded row: two columns from the grid, the others held."""
        rows = np.repeat(held[None, :], len(self.xs) * len(self.ys), axis=0)
        rows[:, list(places)] = self.points
        return rows

    def as_map(self, values: FloatArray) -> FloatArray:
        """Rows of values at ``points`` as a map, (len(ys), len(xs), ...)."""
        return values.reshape(len(self.ys), len(self.xs), *values.shape[1:])

    def deepest_point(self, region: FloatArray) -> tuple[float, float] | None:
        """The point farthest inside ``region`` (a map of booleans): where its name goes."""
        if not region.any():
            return None
        # A frame of zeros: the window's edge is an edge of the region too.
        depth = distance_transform_edt(np.pad(region, 1))[1:-1, 1:-1]
        i, j = np.unravel_index(int(depth.argmax()), depth.shape)
        return float(self.xs[j]), float(self.ys[i])


def grid_around(X: FloatArray, resolution: int) -> Grid:
    """A grid over the rows of ``X`` (n_rows, 2) with a margin around them."""
    if resolution < 2:
        raise ValueError(f"Got resolution={resolution!r}; expected an integer of at least 2.")
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    size = np.where(high > low, high - low, 1.0)
    low, high = low - MARGIN * size, high + MARGIN * size
    return Grid(*np.linspace(low, high, resolution).T)
