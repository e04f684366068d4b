"""ResponsibilityDisplay: which plane of one class answers where, on a map of two columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.grid import Grid
from geomix.plots.inputs import model_of
from geomix.plots.maps import draw_name, draw_points, draw_shades, frame_map, lead_over_next
from geomix.plots.window import window_on
from geomix.table.labels import codes_of


@dataclass(frozen=True, eq=False, repr=False)
class ResponsibilityDisplay:
    """The planes of one class share the map among them.

    Attributes
    ----------
    label, code : the class and its place among the model's classes
    columns : names of the two columns
    grid : the points that were predicted
    responsibility : (n_y, n_x, n_planes) a_cm of the class's planes on the grid; they sum to one
    points : (n_rows, 2) the rows of the class
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    label: Any
    code: int
    columns: tuple[str, ...]
    grid: Grid
    responsibility: FloatArray
    points: FloatArray
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        X: Any,
        y: Any,
        label: Any,
        *,
        columns: Any = None,
        hold: Any = None,
        resolution: int = 240,
    ) -> ResponsibilityDisplay:
        """Responsibilities of the planes of class ``label`` in a window around the rows of ``X``.

        columns, hold : as in ``RegionDisplay``
        """
        window = window_on(model, X, y, columns, hold, resolution, cls.__name__)
        code = int(codes_of([label], model.classes, "label")[0])
        A = model.answer("responsibilities", window.rows)
        own = model.planes.class_of == code
        return cls(
            label=model.classes.tolist()[code],
            code=code,
            columns=window.columns,
            grid=window.grid,
            responsibility=window.grid.as_map(A[:, own]),
            points=window.points[window.codes == code],
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, label: Any, **options: Any
    ) -> ResponsibilityDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, label, **options)

    def frame(self) -> Any:
        """A line for each point of the grid, with the responsibility of each plane of the class."""
        A = self.responsibility.reshape(-1, self.responsibility.shape[2])
        points = dict(zip(self.columns, self.grid.points.T, strict=True))
        return frame(points | {plane_name(m): A[:, m] for m in range(A.shape[1])})

    def plot(self, ax: Any = None, *, points: bool = True) -> ResponsibilityDisplay:
        """Draw a shade per plane, white where two planes share; ``points``: the class's rows."""
        ax = look.own_axes(5.2, 4.2) if ax is None else ax
        plane = self.responsibility.argmax(axis=2)
        shades = look.plane_shades(self.code, self.responsibility.shape[2])
        draw_shades(ax, self.grid, shades[plane], lead_over_next(self.responsibility))
        if points and len(self.points):
            draw_points(ax, self.points, self.code, f"rows of {self.label}")
            look.legend_above(ax)
        for m in np.unique(plane):
            draw_name(ax, self.grid, plane == m, plane_name(m), self.code)
        frame_map(ax, self.grid, self.columns)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png
