"""Sums over rows of phi for all curves of a spline lift at once.

A lift of thirty columns has thirty parts, and NumPy takes longer to begin than to add up a few
hundred rows. So the bins of all curves lie side by side, each curve with room for the most bins:

    mass (n_groups, n_curves, room)  ->  mass @ phi of all curves (n_groups, n_steps of the curves)

The sums are those of ``CurvePart.sums_of_bins``, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.spline_parts import CurvePart


@dataclass(frozen=True, eq=False)
class CurveSums:
    """The curves of a lift; their steps in the result lie side by side."""

    curves: Sequence[CurvePart]

    @cached_property
    def room(self) -> int:
        """Bins of each curve, and at least one behind them where nothing is."""
        return max(part.n_bins for part in self.curves) + 1

    @cached_property
    def _offset(self) -> IntArray:
        return np.arange(len(self.curves)) * self.room

    @cached_property
    def _positions(self) -> FloatArray:
        """(n_curves * room,) position of each bin in its interval."""
        at = np.zeros((len(self.curves), self.room))
        for row, part in zip(at, self.curves, strict=True):
            row[: part.n_bins] = part.bins_of_steps[2]
        return at.ravel()

    @cached_property
    def _missing(self) -> IntArray:
        """(n_curves,) the bin of missing cells of each curve."""
        return self._offset + np.array([part.n_bins - 1 for part in self.curves])

    @cached_property
    def _steps(self) -> tuple[IntArray, IntArray, IntArray]:
        """Of each step along a number: its place among all steps, the first bin in its interval,
        and the first bin above it."""
        start, places, first, above = 0, [], [], []
        for offset, part in zip(self._offset, self.curves, strict=True):
            places.append(start + np.arange(part.n_ordered))
            first.append(part.bins_of_steps[0] + offset)
            above.append(part.bins_of_steps[1] + offset)
            start += part.n_steps
        return np.concatenate(places), np.concatenate(first), np.concatenate(above)

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        """Where ``_within`` begins to add up: every step, and behind every curve; and which of
        those are steps."""
        counts = [part.n_ordered for part in self.curves]
        behind = np.cumsum(counts)
        begin = np.insert(self._steps[1], behind, self._missing + 1)
        return begin, np.delete(np.arange(len(begin)), behind + np.arange(len(counts)))

    @cached_property
    def _mean(self) -> tuple[FloatArray, IntArray]:
        """The mean of each step, and its curve."""
        counts = [part.n_steps for part in self.curves]
        return np.concatenate([part.mean for part in self.curves]), np.repeat(
            np.arange(len(counts)), counts
        )

    @cached_property
    def _steps_of_missing(self) -> tuple[IntArray, IntArray]:
        """The steps for missing cells, and the curves that have one."""
        ends = np.cumsum([part.n_steps for part in self.curves]) - 1
        curves = np.flatnonzero([part.has_missing for part in self.curves])
        return ends[curves], curves

    def bins(self, codes: IntArray, group: IntArray) -> IntArray:
        """The place of each cell in ``mass``; codes : (n_rows, n_curves)."""
        return (group * len(self.curves) * self.room)[:, None] + self._offset + codes

    def __call__(self, mass: FloatArray) -> FloatArray:
        """mass : (n_groups, n_curves * room)."""
        n = len(mass)
        places, first, above = self._steps
        begin, is_step = self._ends
        within = np.add.reduceat(mass * self._positions, begin, axis=1)[:, is_step]
        of_missing = mass[:, self._missing]
        mass[:, self._missing] = 0.0
        by_curve = mass.reshape(n, len(self.curves), self.room)
        beyond = np.cumsum(by_curve[:, :, ::-1], axis=2)[:, :, ::-1]
        mean, curve = self._mean
        out = np.zeros((n, len(mean)))
        out[:, places] = beyond.reshape(n, -1)[:, above] + np.where(first < above, within, 0.0)
        steps, curves = self._steps_of_missing
        out[:, steps] = of_missing[:, curves]
        return out - mean * beyond[:, :, 0][:, curve]
