"""ClassReliabilityDisplay: observed frequency against predicted probability, for every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of, predictions

MOST_CLASSES = 12
PANEL_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class ClassBins:
    """Rows by the probability of one class, in bins of equal width; NaN where there are none.

    probability, frequency, share : (n_bins,) mean probability, share of rows of the class, and
    share of all rows.
    """

    probability: FloatArray
    frequency: FloatArray
    share: FloatArray

    @property
    def error(self) -> float:
        """Mean gap between probability and frequency."""
        filled = self.share > 0.0
        gap = np.abs(self.probability[filled] - self.frequency[filled])
        return float(self.share[filled] @ gap)


@dataclass(frozen=True, eq=False, repr=False)
class ClassReliabilityDisplay:
    """A panel for each class: its frequency among rows of similar predicted probability.

    Attributes
    ----------
    classes : labels of the classes
    curves : for each name, such as before and after scaling, the bins of every class
    ax_, figure_ : where it was drawn; None before ``plot``;  panels_ : the axes of the classes
    """

    classes: tuple[Any, ...]
    curves: Mapping[str, tuple[ClassBins, ...]]
    ax_: Any = None
    figure_: Any = None
    panels_: tuple[Any, ...] = ()

    @classmethod
    def from_model(
        cls, model: GeometricMixture, X: Any, y: Any, *, before: bool = True, n_bins: int = 10
    ) -> ClassReliabilityDisplay:
        """Measure ``model`` on rows it has not seen; ``before``: also without its temperature."""
        check_model(model)
        X, codes = labelled_rows(model, X, y)
        models = {"before scaling": model.with_temperature(1.0)} if before else {}
        models[f"after, T = {model.temperature:.2f}" if before else "calibrated"] = model
        curves = {
            name: class_bins(one.predict_proba(X), codes, n_bins) for name, one in models.items()
        }
        return cls(tuple(model.classes.tolist()), curves)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, **options: Any
    ) -> ClassReliabilityDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, **options)

    @classmethod
    def from_predictions(
        cls, y: Any, P: Any, *, classes: Any = None, name: str = "predictions", n_bins: int = 10
    ) -> ClassReliabilityDisplay:
        """From labels and probabilities of any classifier; ``classes`` as in ``RocDisplay``."""
        labels, codes, P = predictions(y, P, classes)
        return cls(labels, {name: class_bins(P, codes, n_bins)})

    def frame(self) -> Any:
        """A line for each bin of each class and curve."""
        each = [
            (name, self.classes[c], bins, i)
            for name, curve in self.curves.items()
            for c, bins in enumerate(curve)
            for i in range(len(bins.share))
        ]
        columns = {"curve": [one[0] for one in each], "label": [one[1] for one in each]}
        for key in ("probability", "frequency", "share"):
            columns[key] = [getattr(bins, key)[i] for _, _, bins, i in each]
        return frame(columns)

    def plot(self, ax: Any = None) -> ClassReliabilityDisplay:
        """Draw a panel for each class, up to twelve."""
        n_panels = min(len(self.classes), MOST_CLASSES)
        n_columns = min(PANEL_COLUMNS, n_panels)
        n_rows = -(-n_panels // n_columns)
        ax = look.own_axes(0.6 + 2.0 * n_columns, 0.8 + 2.1 * n_rows) if ax is None else ax
        panels = look.panels(ax, n_panels, n_columns, (0.16, 0.22 if n_rows > 1 else 0.0))
        for c, panel in enumerate(panels):
            self._draw_class(panel, c)
            if c % n_columns == 0:
                look.axis_label(panel.set_ylabel, "share of the class")
            if c + n_columns >= n_panels:
                look.axis_label(panel.set_xlabel, "predicted probability")
        for place, name in enumerate(self.curves):
            ax.plot([], [], label=look.plain(name), **self._style(place))
        look.legend_above(ax)
        ax.get_legend().set_bbox_to_anchor((0.0, 1.12 if n_rows == 1 else 1.06))
        return replace(self, ax_=ax, figure_=ax.figure, panels_=tuple(panels))

    _repr_png_ = look.notebook_png

    def _style(self, place: int) -> dict[str, Any]:
        last = place == len(self.curves) - 1
        dash, marker = ("-", "o") if last else ((0, (3, 2)), "^")
        color = look.HUES[0] if last else look.HUES[1]
        line = {"color": color, "linestyle": dash, "marker": marker}
        return line | {"markersize": 4, "linewidth": 1.3}

    def _draw_class(self, ax: Any, c: int) -> None:
        ax.plot([0.0, 1.0], [0.0, 1.0], color=look.QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
        for place, curve in enumerate(self.curves.values()):
            filled = curve[c].share > 0.0
            x, y = curve[c].probability[filled], curve[c].frequency[filled]
            ax.plot(x, y, clip_on=False, zorder=3, **self._style(place))
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
        ax.set_xticks([0.0, 0.5, 1.0])
        ax.set_yticks([0.0, 0.5, 1.0])
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(look.percent)
        title = look.plain(self.classes[c])
        ax.set_title(title, fontsize=8.5, color=look.class_color(c), loc="left")
        look.quiet_frame(ax)
        ax.tick_params(labelsize=7)


def class_bins(P: FloatArray, codes: IntArray, n_bins: int) -> tuple[ClassBins, ...]:
    """The bins of every class: (a, b], the first [0, b]."""
    made = []
    for c in range(P.shape[1]):
        bins = np.clip(np.ceil(P[:, c] * n_bins).astype(int) - 1, 0, n_bins - 1)
        n_rows = np.bincount(bins, minlength=n_bins)
        with np.errstate(invalid="ignore"):
            probability = np.bincount(bins, P[:, c], n_bins) / n_rows
            frequency = np.bincount(bins, codes == c, n_bins) / n_rows
        made.append(ClassBins(probability, frequency, n_rows / len(P)))
    return tuple(made)
