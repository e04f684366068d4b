"""UsageDisplay: how the rows of each class divide among its planes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.diagnostics import plane_usage
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, labelled_rows, model_of

# Parts of a bar at least this wide have room for the text.
TEXT_BY_WIDTH = {
    0.26: "{plane}: {share:.0%}",
    0.14: "{plane}",
    0.05: "{number}",
    0.0: "",
}


@dataclass(frozen=True, eq=False, repr=False)
class UsageDisplay:
    """One bar per class, cut into the shares of its planes.

    Attributes
    ----------
    classes : labels of the classes
    shares : per class, the share of its rows that each plane answers for; NaN without rows
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    classes: tuple[Any, ...]
    shares: tuple[FloatArray, ...]
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_model(cls, model: GeometricMixture, X: Any, y: Any) -> UsageDisplay:
        """From the strongest plane of its own class for each row."""
        check_model(model)
        X, _ = labelled_rows(model, X, y)
        usage = plane_usage(model, X, y)
        shares = np.split(usage, model.planes.class_start[1:-1])
        return cls(tuple(model.classes.tolist()), tuple(shares))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> UsageDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, y)

    def frame(self) -> Any:
        """A line for each plane: its class, its place there and its share."""
        pairs = list(zip(self.classes, self.shares, strict=True))
        return frame(
            {
                "label": [label for label, shares in pairs for _ in shares],
                "plane": [m for _, shares in pairs for m in range(len(shares))],
                "share": np.concatenate(self.shares),
            }
        )

    def plot(self, ax: Any = None) -> UsageDisplay:
        """Draw the bars, the first class on top."""
        n_classes = len(self.classes)
        ax = look.own_axes(5.6, 0.8 + 0.42 * n_classes) if ax is None else ax
        for code, shares in enumerate(self.shares):
            _draw_bar(ax, code, shares)
        ax.set(xlim=(0.0, 1.0), ylim=(n_classes - 0.5, -0.5), xlabel="share of the class's rows")
        ax.set_yticks(range(n_classes), list(map(look.plain, self.classes)))
        ax.xaxis.set_major_formatter(look.percent)
        look.quiet_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png


def _draw_bar(ax: Any, code: int, shares: FloatArray) -> None:
    ends = np.cumsum(np.nan_to_num(shares))
    shades = look.plane_shades(code, len(shares))
    for plane, (share, end) in enumerate(zip(shares, ends, strict=True)):
        if not share > 0.0:
            continue
        ax.barh(code, share, 0.66, end - share, color=shades[plane], edgecolor="white")
        text = next(text for width, text in TEXT_BY_WIDTH.items() if share >= width)
        place = {"ha": "center", "va": "center", "fontsize": 8, "color": look.INK}
        ax.text(
            end - share / 2,
            code,
            text.format(plane=plane_name(plane), number=plane + 1, share=share),
            **place,
        )
    ax.text(1.01, code, _remark(shares), va="center", fontsize=8, color=look.QUIET)


def _remark(shares: FloatArray) -> str:
    if np.isnan(shares).any():
        return "no rows"
    n_unused = np.count_nonzero(shares == 0.0)
    return f"{n_unused} unused" if n_unused else ""
