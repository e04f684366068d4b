"""ReliabilityDisplay: does the model know how often it is right?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom

from geomix.arrays import FloatArray
from geomix.core.calibration import ReliabilityCurve, reliability_curve
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of, predictions
from geomix.table.labels import read_weights

# Marker area in points: a bin of few rows swings far by chance, so it shows as a small dot.
SMALLEST_DOT, LARGEST_DOT = 7.0, 60.0
CHANCE = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityDisplay:
    """Accuracy against confidence, on the diagonal for a calibrated model.

    Attributes
    ----------
    curves : reliability curves by name, in the order of drawing; the last one stands out
    n_rows : rows behind each curve, for the range of chance; None to leave that out
    ax_, figure_ : where it was drawn, and ``share_ax_`` below it; None before ``plot``

    Any classifier can be held beside this one::

        ReliabilityDisplay({"SVM": reliability_curve(P_svm, y), "geomix": reliability_curve(P, y)})
    """

    curves: Mapping[str, ReliabilityCurve]
    n_rows: float | None = None
    ax_: Any = None
    share_ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(
        cls,
        model: GeometricMixture,
        X: Any,
        y: Any,
        *,
        before: bool = False,
        n_bins: int = 15,
        sample_weight: Any = None,
    ) -> ReliabilityDisplay:
        """Measure ``model`` on rows it has not seen; ``before``: also without its temperature."""
        check_model(model)
        X, codes = labelled_rows(model, X, y)
        models = {"calibrated": model}
        if before:
            models = {
                "before scaling": model.with_temperature(1.0),
                f"after, T = {model.temperature:.2f}": model,
            }
        weight = read_weights(sample_weight, len(codes))
        curves = {
            name: reliability_curve(one.predict_proba(X), codes, n_bins, weight)
            for name, one in models.items()
        }
        # The effective number of rows: (sum w)^2 / sum w^2.
        return cls(curves, n_rows=float(weight.sum() ** 2 / (weight @ weight)))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> ReliabilityDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y, **options)

    @classmethod
    def from_predictions(
        cls, y: Any, P: Any, *, classes: Any = None, name: str = "predictions", n_bins: int = 15
    ) -> ReliabilityDisplay:
        """Measure probabilities P (n_rows, n_classes) of any classifier; ``classes`` as in
        ``RocDisplay``."""
        _, codes, P = predictions(y, P, classes)
        return cls({name: reliability_curve(P, codes, n_bins)}, n_rows=float(len(codes)))

    def frame(self) -> Any:
        """A line for each bin of each curve."""
        each = [(name, bin_) for name, one in self.curves.items() for bin_ in range(len(one.share))]
        columns = {
            key: [getattr(self.curves[name], key)[bin_] for name, bin_ in each]
            for key in ("edges", "confidence", "accuracy", "share")
        }
        columns["from"] = columns.pop("edges")
        return frame({"curve": [name for name, _ in each]} | columns)

    @property
    def chance(self) -> tuple[FloatArray, FloatArray] | None:
        """Per bin of the last curve, the accuracies that hold 90 % of a calibrated model's chances.

        A calibrated model is right in each of a bin's rows with the bin's confidence, so its
        number of right rows is binomial. NaN for empty bins.
        """
        if self.n_rows is None:
            return None
        curve = list(self.curves.values())[-1]
        rows = np.where(curve.share > 0.0, np.maximum(np.round(curve.share * self.n_rows), 1), 1)
        least = binom.ppf((1.0 - CHANCE) / 2.0, rows, curve.confidence) / rows
        return least, binom.ppf((1.0 + CHANCE) / 2.0, rows, curve.confidence) / rows

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw the curves, and the share of rows per bin in a strip below."""
        ax = look.own_axes(4.4, 5.0) if ax is None else ax
        (strip,) = look.strips_below(ax, ["rows"])
        ax.plot([0.0, 1.0], [0.0, 1.0], color=look.QUIET, linewidth=0.9, linestyle=(0, (4, 3)))
        for place, (name, curve) in enumerate(self.curves.items()):
            color = look.HUES[(len(self.curves) - 1 - place) % len(look.HUES)]
            dash = look.DASHES[0 if place == len(self.curves) - 1 else 1]
            _draw_curve(ax, curve, color, dash, f"{name}: ECE {curve.expected_error:.3f}")
            strip.stairs(curve.share, curve.edges, color=color, linewidth=1.1)
        if self.chance is not None:
            self._draw_chance(ax, *self.chance)
        low = self._lowest()
        ax.set(xlim=(low, 1.0), ylim=(low, 1.0), ylabel="accuracy")
        strip.set(ylim=(0.0, None), xlabel="confidence in the predicted class")
        strip.yaxis.set_major_formatter(look.percent)
        look.quiet_frame(ax)
        look.legend_above(ax, n_columns=1)
        return replace(self, ax_=ax, share_ax_=strip, figure_=ax.figure)

    _repr_png_ = look.notebook_png

    def _draw_chance(self, ax: Any, least: FloatArray, most: FloatArray) -> None:
        x = list(self.curves.values())[-1].confidence
        label = f"{CHANCE:.0%} range of a calibrated model"
        ax.vlines(x, least, most, color=look.FAINT, linewidth=6.0, zorder=0, label=label)

    def _lowest(self) -> float:
        """Both axes start here: the lowest point, down to a round number."""
        lowest = min(np.nanmin([one.confidence, one.accuracy]) for one in self.curves.values())
        return float(max(np.floor(lowest * 10.0 - 0.5) / 10.0, 0.0))


def _draw_curve(ax: Any, curve: ReliabilityCurve, color: str, dash: Any, label: str) -> None:
    filled = curve.share > 0.0
    x, y, share = curve.confidence[filled], curve.accuracy[filled], curve.share[filled]
    area = SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * share / share.max()
    line = {"color": color, "linewidth": 1.2, "linestyle": dash}
    ax.plot([], [], marker="o", markersize=5, label=label, **line)
    ax.plot(x, y, alpha=0.5, **line)
    ax.scatter(x, y, area, color=color, edgecolor="white", linewidth=0.6, zorder=3, clip_on=False)
