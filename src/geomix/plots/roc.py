"""RocDisplay: how well the classes are separated, each from the rest, and all together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import auc, roc_curve

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of, predictions

MICRO = "micro mean"
MOST_CURVES = 10


@dataclass(frozen=True, eq=False, repr=False)
class RocDisplay:
    """Share of a class found against share of the others taken for it.

    Attributes
    ----------
    classes : labels of the classes
    curves : (2, n) false and true positive rates by name: each class with rows of it and without,
        then ``micro mean``, every row once for every class
    areas : under the curves
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    classes: tuple[Any, ...]
    curves: Mapping[str, FloatArray]
    areas: Mapping[str, float]
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(cls, model: GeometricMixture, X: Any, y: Any) -> RocDisplay:
        """From the predictions of ``model`` for labelled rows."""
        check_model(model)
        X, codes = labelled_rows(model, X, y)
        return cls._of(tuple(model.classes.tolist()), codes, model.predict_proba(X))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> RocDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y)

    @classmethod
    def from_predictions(cls, y: Any, P: Any, *, classes: Any = None) -> RocDisplay:
        """From labels and probabilities P (n_rows, n_classes) of any classifier.

        classes : in the order of P's columns; None: the sorted labels in ``y``.
        """
        return cls._of(*predictions(y, P, classes))

    @classmethod
    def _of(cls, classes: tuple[Any, ...], codes: IntArray, P: FloatArray) -> RocDisplay:
        hits = codes[:, None] == np.arange(len(classes))
        curves = {
            str(label): _curve(hits[:, c], P[:, c])
            for c, label in enumerate(classes)
            if 0 < hits[:, c].sum() < len(codes)
        }
        curves[MICRO] = _curve(hits.ravel(), P.ravel())
        areas = {name: float(auc(*curve)) for name, curve in curves.items()}
        return cls(classes, curves, areas)

    def frame(self) -> Any:
        """A line for each point of each curve."""
        n_points = [one.shape[1] for one in self.curves.values()]
        rates = np.concatenate(list(self.curves.values()), axis=1)
        names = np.repeat(list(self.curves), n_points)
        return frame({"curve": names, "false_positive": rates[0], "true_positive": rates[1]})

    def plot(self, ax: Any = None) -> RocDisplay:
        """Draw the curves; of many classes those with the smallest areas."""
        ax = look.own_axes(4.6, 4.6) if ax is None else ax
        ax.plot([0.0, 1.0], [0.0, 1.0], color=look.QUIET, linewidth=0.9, linestyle=(0, (4, 3)))
        codes = {str(label): code for code, label in enumerate(self.classes)}
        single = sorted((name for name in self.curves if name != MICRO), key=self.areas.__getitem__)
        for name in sorted(single[:MOST_CURVES], key=codes.__getitem__):
            code = codes[name]
            style = {"color": look.class_color(code), "linestyle": look.class_dash(code)}
            label = look.plain(f"{name}: {self.areas[name]:.3f}")
            ax.plot(*self.curves[name], linewidth=1.5, label=label, **style)
        label = f"{MICRO}: {self.areas[MICRO]:.3f}"
        ax.plot(*self.curves[MICRO], color=look.INK, linewidth=2.2, alpha=0.75, label=label)
        ax.set(xlim=(-0.01, 1.0), ylim=(0.0, 1.01), aspect="equal")
        ax.set(xlabel="share of the others taken for it", ylabel="share of the class found")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(look.percent)
        look.quiet_frame(ax)
        ax.legend(loc="lower right", frameon=False, fontsize=8, labelcolor=look.INK, title="area")
        ax.get_legend().get_title().set_fontsize(8)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png


def _curve(hit: Any, score: FloatArray) -> FloatArray:
    return np.stack(roc_curve(hit, score)[:2])
