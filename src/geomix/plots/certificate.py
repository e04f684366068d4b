"""CertificateDisplay: how far rows may move before the prediction can change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray
from geomix.geometry.certificate import certify
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of

BINS = 24


@dataclass(frozen=True, eq=False, repr=False)
class CertificateDisplay:
    """Certified radii of rows, correct and wrong predictions apart.

    Attributes
    ----------
    radius : (n_rows,) within which no change of the numbers alters the prediction
    is_right : (n_rows,) whether the prediction is correct
    norm, unit : what the radius is measured in
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    radius: FloatArray
    is_right: BoolArray
    norm: float
    unit: str
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls, model: GeometricMixture, X: Any, y: Any, norm: Any = 2, **options: Any
    ) -> CertificateDisplay:
        """Certify the predictions for rows ``X``; ``options`` as in ``model.certify``."""
        check_model(model)
        X, codes = labelled_rows(model, X, y)
        found = certify(model, X, norm, **options)
        return cls(found.radius, found.labels == model.classes[codes], found.norm, found.unit)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, norm: Any = 2, **options: Any
    ) -> CertificateDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, norm, **options)

    @property
    def edges(self) -> FloatArray:
        """Of the bins: up to the radius that 99 % of the rows stay below; rows with an infinite
        radius are in the last bin."""
        finite = self.radius[np.isfinite(self.radius)]
        most = float(np.quantile(finite, 0.99)) if len(finite) else 1.0
        return np.linspace(0.0, most if most > 0.0 else 1.0, BINS + 1)

    def frame(self) -> Any:
        """A line for each row."""
        return frame({"radius": self.radius, "is_right": self.is_right})

    def plot(self, ax: Any = None) -> CertificateDisplay:
        """Draw a histogram, wrong predictions hatched on top of correct ones; the last bin holds
        the rest."""
        ax = look.own_axes(5.2, 3.4) if ax is None else ax
        edges = self.edges
        inside = np.minimum(self.radius, edges[-1])
        right = np.histogram(inside[self.is_right], edges)[0]
        wrong = np.histogram(inside[~self.is_right], edges)[0]
        place = {"x": edges[:-1], "width": np.diff(edges), "align": "edge"}
        ax.bar(height=right, color=look.HUES[0], edgecolor="white", label="right", **place)
        style = {"color": look.HUES[1], "edgecolor": "white", "hatch": "///"}
        ax.bar(height=wrong, bottom=right, label="wrong", **style, **place)
        median = float(np.median(self.radius))
        line = {"color": look.INK, "linewidth": 1.1, "linestyle": (0, (4, 3))}
        if np.isfinite(median):
            ax.axvline(median, label=f"median {median:.3g}", **line)
        n_free = int((~np.isfinite(self.radius)).sum())
        if n_free:  # they stand in the last bar, which has no such radius
            ax.plot([], [], " ", label=f"last bar: {n_free} without any limit")
        ax.set(xlim=(0.0, edges[-1]), ylabel="rows")
        ax.set_xlabel(f"certified radius ({self.unit}, norm {self.norm:g})")
        look.quiet_frame(ax)
        look.legend_above(ax)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png
