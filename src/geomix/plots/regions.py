"""RegionDisplay: the classes as regions on a map of two columns, the others held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.pooling import softmax
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.facets import Facet, facets_between, slice_of
from geomix.plots.frames import frame
from geomix.plots.grid import Grid
from geomix.plots.inputs import model_of
from geomix.plots.maps import draw_name, draw_points, draw_shades, frame_map, lead_over_next
from geomix.plots.window import window_on


@dataclass(frozen=True, eq=False, repr=False)
class RegionDisplay:
    """Where each class rules, how surely, and which plane is responsible.

    Attributes
    ----------
    classes, columns : labels of the classes, names of the two columns
    plane_class : (n_planes,) the class code of each plane
    grid : the points that were predicted
    class_scores : (n_y, n_x, n_classes) s_c / T on the grid
    responsibility : (n_y, n_x, n_planes) a_cm on the grid
    facets : lines along which planes of two classes meet; empty unless the lift is linear
    points, codes : the rows to draw, (n_rows, 2), and the codes of their classes
    is_slice : whether other columns are held, so that rows lie before or behind the map
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
    is_slice: bool = False
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        X: Any,
        y: Any,
        *,
        columns: Any = None,
        hold: Any = None,
        resolution: int = 240,
    ) -> RegionDisplay:
        """Predict ``resolution`` x ``resolution`` points around the rows of ``X``.

        columns : two numbers, by name or place, of a model of more columns
        hold : a row that the other columns are held at; None: medians, most frequent levels
        """
        window = window_on(model, X, y, columns, hold, resolution, cls.__name__)
        grid, rows = window.grid, window.rows
        facets: tuple[Facet, ...] = ()
        if model.lift.kind == "linear":
            flat = slice_of(model, window.places, window.held)
            facets = facets_between(flat, grid.low, grid.high)
        return cls(
            classes=tuple(model.classes.tolist()),
            columns=window.columns,
            plane_class=model.planes.class_of,
            grid=grid,
            class_scores=grid.as_map(model.answer("class_scores", rows)),
            responsibility=grid.as_map(model.answer("responsibilities", rows)),
            facets=facets,
            points=window.points,
            codes=window.codes,
            is_slice=model.n_features > 2,
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> RegionDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, **options)

    def frame(self) -> Any:
        """A line for each point of the grid: columns, answer, its probability and its plane."""
        P, A = self.posterior.reshape(-1, len(self.classes)), self.own_responsibility
        code = self.class_scores.reshape(P.shape).argmax(axis=1)
        first_of_class = np.searchsorted(self.plane_class, self.plane_class)
        plane = A.reshape(len(P), -1).argmax(axis=1)
        return frame(
            {
                self.columns[0]: self.grid.points[:, 0],
                self.columns[1]: self.grid.points[:, 1],
                "label": [self.classes[c] for c in code],
                "probability": P[np.arange(len(P)), code],
                "plane": plane - first_of_class[plane],
            }
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
            name = plane_name(p - first_of_class[p])
            draw_name(ax, self.grid, plane == p, name, self.plane_class[p])

    def _draw_points(self, ax: Any) -> None:
        for code in np.unique(self.codes):
            points = self.points[self.codes == code]
            draw_points(ax, points, code, str(self.classes[code]), faint=self.is_slice)

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
