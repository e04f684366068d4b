"""PresetDisplay: what each preset costs in reading, and what it gains in log-loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from geomix.plots import look
from geomix.plots.frames import frame
from geomix.search.preset_comparison import PresetComparison, PresetResult


@dataclass(frozen=True, eq=False, repr=False)
class PresetDisplay:
    """Log-loss of each preset against the numbers to read, with standard errors."""

    results: tuple[PresetResult, ...]
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_comparison(cls, comparison: PresetComparison) -> PresetDisplay:
        """From what ``GeometricMixtureClassifier.compare_presets`` returns."""
        return cls(comparison.results)

    def frame(self) -> Any:
        """What is drawn, as a table."""
        names = ("preset", "n_numbers", "log_loss", "log_loss_error")
        return frame({name: [getattr(one, name) for one in self.results] for name in names})

    def plot(self, ax: Any = None) -> PresetDisplay:
        """Draw onto ``ax``, or onto a figure of its own."""
        ax = look.own_axes(5.6, 3.8) if ax is None else ax
        look.quiet_frame(ax)
        sizes = [one.n_numbers for one in self.results]
        losses = [one.log_loss for one in self.results]
        errors = [one.log_loss_error for one in self.results]
        ax.errorbar(sizes, losses, yerr=errors, marker="o", capsize=3, color=look.class_color(0))
        for one in self.results:
            ax.annotate(
                one.preset, (one.n_numbers, one.log_loss), xytext=(6, 8),
                textcoords="offset points", fontsize=9,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set(
            title="The price of readability",
            xlabel="numbers to read",
            ylabel="log-loss on held-out rows",
        )
        ax.margins(x=0.25, y=0.25)
        return replace(self, ax_=ax, figure_=ax.figure)

    def _repr_png_(self) -> bytes | None:
        return look.notebook_png(self)
