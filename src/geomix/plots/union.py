"""UnionDisplay: a class as the union of its planes' regions, on a map of two columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.patches import Patch

from geomix.arrays import FloatArray
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.grid import Grid
from geomix.plots.inputs import model_of
from geomix.plots.maps import draw_points, frame_map
from geomix.plots.window import window_on
from geomix.table.labels import codes_of


@dataclass(frozen=True, eq=False, repr=False)
class UnionDisplay:
    """Each plane's region: where its score is above that of every plane of another class.

    Attributes
    ----------
    label, code : the class and its place among the model's classes
    columns : names of the two columns;  grid : the points that were predicted
    lead : (n_y, n_x, n_planes) each plane's score less the highest of the other classes
    margin : (n_y, n_x) score of the class less the highest of the others: the soft union
    points : (n_rows, 2) the rows of the class
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    label: Any
    code: int
    columns: tuple[str, ...]
    grid: Grid
    lead: FloatArray
    margin: FloatArray
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
    ) -> UnionDisplay:
        """Scores of all planes around ``X``; ``columns``, ``hold`` as in RegionDisplay."""
        window = window_on(model, X, y, columns, hold, resolution, cls.__name__)
        code = int(codes_of([label], model.classes, "label")[0])
        grid = window.grid
        Z, S = (model.answer(what, window.rows) for what in ("plane_scores", "class_scores"))
        own = model.planes.class_of == code
        lead = Z[:, own] - Z[:, ~own].max(axis=1, keepdims=True)
        return cls(
            label=model.classes.tolist()[code],
            code=code,
            columns=window.columns,
            grid=grid,
            lead=grid.as_map(lead),
            margin=grid.as_map(S[:, code] - np.delete(S, code, axis=1).max(axis=1)),
            points=window.points[window.codes == code],
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, label: Any, **options: Any
    ) -> UnionDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, label, **options)

    def frame(self) -> Any:
        """A line for each point of the grid, with the lead of each plane and of the class."""
        points = dict(zip(self.columns, self.grid.points.T, strict=True))
        n_planes = self.lead.shape[2]
        leads = {plane_name(m): self.lead[..., m].ravel() for m in range(n_planes)}
        return frame(points | leads | {"class": self.margin.ravel()})

    def plot(self, ax: Any = None, *, points: bool = True) -> UnionDisplay:
        """Draw a shade and a hatch per plane, and the boundary of the soft union."""
        ax = look.own_axes(5.2, 4.4) if ax is None else ax
        n_planes = self.lead.shape[2]
        shades, patches = look.plane_shades(self.code, n_planes), []
        for m in range(n_planes):
            if self.lead[..., m].max() <= 0.0:
                continue
            hatch = look.HATCHES[m % len(look.HATCHES)]
            drawn = ax.contourf(
                self.grid.xs,
                self.grid.ys,
                self.lead[..., m],
                [0.0, np.inf],
                colors=[shades[m]],
                alpha=0.55,
                hatches=[hatch],
                extend="neither",
            )
            drawn.set_edgecolor(look.class_color(self.code))
            patches.append(Patch(facecolor=shades[m], hatch=hatch, label=plane_name(m)))
        if self.margin.min() < 0.0 < self.margin.max():
            ax.contour(
                self.grid.xs, self.grid.ys, self.margin, [0.0], colors=look.INK, linewidths=1.5
            )
        if points and len(self.points):
            draw_points(ax, self.points, self.code, f"rows of {self.label}")
        ax.plot(
            [], [], color=look.INK, linewidth=1.5, label=look.plain(f"soft union: {self.label}")
        )
        frame_map(ax, self.grid, self.columns)
        look.legend_above(ax, handles=patches)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png
