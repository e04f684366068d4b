"""RegionDisplay: the classes of a two-column model as regions on a map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.facets import Facet, facets_of
from geomix.plots.grid import Grid, grid_around
from geomix.plots.inputs import check_model, check_two_columns, labelled_rows
from geomix.plots.maps import draw_name, draw_points, draw_shades, frame_map, lead_over_next
from geomix.pooling import softmax


@dataclass(frozen=True, eq=False, repr=False)
class RegionDisplay:
    """Where each class rules, how surely, and which plane is responsible.

    Attributes
    ----------
    classes, columns : labels of the classes, names of the two columns
    plane_class : (n_planes,) the class code of each plane
    grid : the points that the model was asked about
    class_scores : (n_y, n_x, n_classes) s_c / T on the grid
    responsibility : (n_y, n_x, n_planes) a_cm on the grid
    facets : lines along which planes of two classes meet; empty unless the lift is linear
    points, codes : the rows to draw, (n_rows, 2), and the codes of their classes
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    classes: tuple[Any, ...]
    columns: tuple[str, ...]
    plane_class: IntArray
    grid: Grid
    class_scores: FloatArray
    responsibility: FloatArray
    facets: tuple[Facet, ...]
    points: FloatArray
    codes: IntArray
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls, model: GeometricMixture, X: Any, y: Any, *, resolution: int = 240
    ) -> RegionDisplay:
        """Ask ``model`` about ``resolution`` x ``resolution`` points around the rows of ``X``."""
        check_model(model)
        check_two_columns(model, cls.__name__)
        X, codes = labelled_rows(model, X, y)
        grid = grid_around(X, resolution)
        return cls(
            classes=tuple(model.classes.tolist()),
            columns=model.columns,
            plane_class=model.planes.class_of,
            grid=grid,
            class_scores=grid.as_map(model.class_scores(grid.points)),
            responsibility=grid.as_map(model.responsibilities(grid.points)),
            facets=facets_of(model, grid.low, grid.high) if model.lift.kind == "linear" else (),
            points=X,
            codes=codes,
        )

    @property
    def posterior(self) -> FloatArray:
        """Class probabilities on the grid, (n_y, n_x, n_classes)."""
        return self.grid.as_map(softmax(self.class_scores.reshape(-1, len(self.classes))))

    @property
    def own_responsibility(self) -> FloatArray:
        """``responsibility``, with zero for the planes of every class but the winning one."""
        winner = self.class_scores.argmax(axis=2)
        return np.where(winner[..., None] == self.plane_class, self.responsibility, 0.0)

    def plot(
        self,
        ax: Any = None,
        *,
        by_plane: bool = False,
        points: bool = True,
        lines: bool | None = None,
    ) -> RegionDisplay:
        """Draw the regions, strong where the model is sure and white where it is torn.

        by_plane : give the region of each plane, not only of each class, its shade and name
        points : draw the rows
        lines : draw the lines along which planes of two classes meet; None: unless ``by_plane``
        """
        ax = look.own_axes(5.2, 4.2) if ax is None else ax
        if by_plane:
            self._draw_plane_regions(ax)
        else:
            self._draw_class_regions(ax)
        if points:
            self._draw_points(ax)
        self._draw_boundary(ax)
        if self.facets and (lines or (lines is None and not by_plane)):
            self._draw_lines(ax)
        frame_map(ax, self.grid, self.columns)
        look.legend_above(ax)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png

    def _draw_class_regions(self, ax: Any) -> None:
        shades = np.vstack([look.plane_shades(code, 1) for code in range(len(self.classes))])
        winner = self.class_scores.argmax(axis=2)
        draw_shades(ax, self.grid, shades[winner], lead_over_next(self.posterior))

    def _draw_plane_regions(self, ax: Any) -> None:
        planes_per_class = np.bincount(self.plane_class)
        shades = np.vstack([look.plane_shades(c, n) for c, n in enumerate(planes_per_class)])
        A = self.own_responsibility
        plane = A.argmax(axis=2)
        seams = lead_over_next(A)
        draw_shades(ax, self.grid, shades[plane], lead_over_next(self.posterior) * seams)
        first_of_class = np.searchsorted(self.plane_class, self.plane_class)
        for p in np.unique(plane):
            name = f"plane {p - first_of_class[p]}"
            draw_name(ax, self.grid, plane == p, name, self.plane_class[p])

    def _draw_points(self, ax: Any) -> None:
        for code in np.unique(self.codes):
            draw_points(ax, self.points[self.codes == code], code, str(self.classes[code]))

    def _draw_boundary(self, ax: Any) -> None:
        for code in range(len(self.classes)):
            rivals = np.delete(self.class_scores, code, axis=2).max(axis=2)
            lead = self.class_scores[..., code] - rivals
            if lead.min() < 0.0 < lead.max():
                ax.contour(self.grid.xs, self.grid.ys, lead, [0.0], colors=look.INK, linewidths=1.4)
        ax.plot([], [], color=look.INK, linewidth=1.4, label="boundary")

    def _draw_lines(self, ax: Any) -> None:
        style = {"color": look.INK, "linewidth": 0.7, "linestyle": (0, (4, 3)), "alpha": 0.6}
        for facet in self.facets:
            ax.plot(*facet.line.T, **style)
        ax.plot([], [], label="planes meet", **style)
