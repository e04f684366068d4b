"""HistoryDisplay: losses, usage of the planes and sharpness over the iterations of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.training.history import History


@dataclass(frozen=True, eq=False, repr=False)
class HistoryDisplay:
    """How training went.

    Attributes
    ----------
    iteration : (n,) epochs of Adam or iterations of L-BFGS, from 1
    loss : (n,) training loss with its penalty
    valid_loss : (n,) loss of the held-out rows; NaN where it was not computed
    sharpness : (n,) sharpness of the soft-OR
    usage : (n, n_planes) usage of each plane in the penalty; None where none was recorded
    ax_, figure_ : where it was drawn, with ``usage_ax_`` and ``sharpness_ax_`` below it; None
        before ``plot``
    """

    iteration: IntArray
    loss: FloatArray
    valid_loss: FloatArray
    sharpness: FloatArray
    usage: FloatArray | None = None
    ax_: Any = None
    usage_ax_: Any = None
    sharpness_ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_history(cls, history: History) -> HistoryDisplay:
        """Read the ``history_`` of a fitted estimator.

        After a refit on all rows there is no held-out loss to show: fit with ``refit=False``
        or your own ``X_val`` to see one.
        """
        if not history.records:
            raise ValueError("The history has no records; expected that of a finished fit.")
        return cls(
            iteration=np.array([one.iteration for one in history.records]),
            loss=np.array([one.loss for one in history.records]),
            valid_loss=np.array([one.valid_loss for one in history.records], dtype=float),
            sharpness=np.array([one.sharpness for one in history.records]),
            usage=_usage(history),
        )

    @classmethod
    def from_estimator(cls, estimator: Any) -> HistoryDisplay:
        """Read the history of a fitted estimator."""
        history = getattr(estimator, "history_", None)
        if history is None:
            raise TypeError(
                f"Got a {type(estimator).__name__} without a training history; expected an "
                "estimator fitted in memory, since a model or a file keeps no history."
            )
        return cls.from_history(history)

    def frame(self) -> Any:
        """A line for each iteration, with a column for the usage of each plane."""
        names = ("iteration", "loss", "valid_loss", "sharpness")
        columns = {name: getattr(self, name) for name in names}
        if self.usage is not None:
            columns |= {f"usage_{p}": usage for p, usage in enumerate(self.usage.T)}
        return frame(columns)

    @property
    def best_iteration(self) -> int | None:
        """The iteration with the lowest held-out loss, or None without held-out rows."""
        if np.isnan(self.valid_loss).all():
            return None
        return int(self.iteration[np.nanargmin(self.valid_loss)])

    def plot(self, ax: Any = None) -> HistoryDisplay:
        """Draw the losses, and usage and sharpness in strips below."""
        ax = look.own_axes(5.2, 3.8) if ax is None else ax
        label = "training loss with penalty"
        ax.plot(self.iteration, self.loss, color=look.HUES[0], linewidth=1.6, label=label)
        if self.best_iteration is not None:
            self._draw_valid_loss(ax)
        ax.set_ylabel("loss")
        look.quiet_frame(ax)
        look.legend_above(ax)
        *used, strip = look.strips_below(
            ax, ["sharpness"] if self.usage is None else ["usage", "sharpness"]
        )
        strip.step(self.iteration, self.sharpness, color=look.INK, linewidth=1.2, where="mid")
        strip.set_ylim(0.0, 1.15 * self.sharpness.max())
        strip.set_xlabel("iteration")
        for usage_strip in used:
            self._draw_usage(usage_strip)
        return replace(
            self,
            ax_=ax,
            usage_ax_=used[0] if used else None,
            sharpness_ax_=strip,
            figure_=ax.figure,
        )

    _repr_png_ = look.notebook_png

    def _draw_usage(self, strip: Any) -> None:
        style = {"color": look.INK, "linewidth": 0.9, "alpha": 0.6}
        strip.step(self.iteration, self.usage, where="mid", **style)
        strip.set_ylim(0.0, 1.08)

    def _draw_valid_loss(self, ax: Any) -> None:
        color, best = look.HUES[1], self.best_iteration
        style = {"color": color, "linewidth": 1.6, "linestyle": look.DASHES[1]}
        ax.plot(self.iteration, self.valid_loss, label="held-out loss", **style)
        ax.plot(
            best,
            self.valid_loss[self.iteration == best],
            color=color,
            marker="o",
            markersize=5,
            linestyle="none",
            label=f"lowest at {best}",
        )


def _usage(history: History) -> FloatArray | None:
    usages = [one.usage for one in history.records]
    if any(usage is None for usage in usages):
        return None
    return np.array(usages, dtype=float)
