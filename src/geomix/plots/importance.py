"""ImportanceDisplay: how much each column, and each pair of columns, moves the log-odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.explain.effect_facts import Effects
from geomix.explain.effects import effects
from geomix.model import GeometricMixture
from geomix.plots import look
from geomix.plots.frames import frame
from geomix.plots.inputs import check_model, model_of

N_SHOWN = 15
NAME = 32


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceDisplay:
    """Mean absolute effect of each column in log-odds, with intervals, the largest on top.

    Interactions of two columns are hatched; their length is the root mean square of the heat map.

    Attributes
    ----------
    effects : what ``model.effects`` returned;  n_shown : bars drawn
    ax_, figure_ : where it was drawn; None before ``plot``
    """

    effects: Effects
    n_shown: int = N_SHOWN
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_effects(cls, found: Effects, *, n_shown: int = N_SHOWN) -> ImportanceDisplay:
        """Of effects that are computed already."""
        return cls(found, n_shown)

    @classmethod
    def from_model(
        cls, model: GeometricMixture, X: Any, *, n_shown: int = N_SHOWN, confidence: float = 0.9
    ) -> ImportanceDisplay:
        """Importances of a model's columns over rows ``X``."""
        check_model(model)
        return cls(effects(model, X, confidence=confidence), n_shown)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> ImportanceDisplay:
        """The same of a fitted estimator."""
        return cls.from_model(model_of(estimator), X, **options)

    def frame(self) -> Any:
        """A line for each column and each interaction, the largest first."""
        names = ("name", "importance", "lower", "upper", "is_interaction")
        bars = self._bars()
        return frame({name: [bar[at] for bar in bars] for at, name in enumerate(names)})

    def plot(self, ax: Any = None) -> ImportanceDisplay:
        """Draw the bars."""
        every = self._bars()
        bars = every[: self.n_shown]
        ax = look.own_axes(6.2, 1.0 + 0.27 * max(len(bars), 1)) if ax is None else ax
        places = np.arange(len(bars))
        sizes = [bar[1] for bar in bars]
        color = look.class_color(0)
        hatches = ["////" if bar[4] else "" for bar in bars]
        fill = [look.FAINT if bar[4] else color for bar in bars]
        ax.barh(places, sizes, 0.66, color=fill, hatch=hatches, edgecolor=color, linewidth=0.6)
        known = [(at, bar) for at, bar in enumerate(bars) if bar[2] is not None]
        if known:
            at = [one for one, _ in known]
            lower, upper = ([bar[k] for _, bar in known] for k in (2, 3))
            ax.hlines(at, lower, upper, color=look.INK, linewidth=1.1)
            ax.plot(lower, at, "|", upper, at, "|", color=look.INK, markersize=5)
        names = [look.cut(str(bar[0]), NAME) for bar in bars]
        ax.set_yticks(places, names, parse_math=False)
        ax.set(ylim=(len(bars) - 0.4, -0.6))
        ax.set_xlim(left=0.0)
        ax.set_xlabel(self._unit(), parse_math=False)
        look.quiet_frame(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_title(self._title(len(every) - len(bars)), **look.TITLE)
        return replace(self, ax_=ax, figure_=ax.figure)

    _repr_png_ = look.notebook_png

    def _bars(self) -> list[tuple[str, float, float | None, float | None, bool]]:
        bars: list[tuple[str, float, float | None, float | None, bool]] = []
        for one in self.effects:
            lower, upper = one.importance_lower, one.importance_upper
            ends = (None, None) if lower is None or upper is None else (lower.mean(), upper.mean())
            bars.append((one.column, one.size, *ends, False))
        bars += [(one.name, one.strength, None, None, True) for one in self.effects.interactions]
        return sorted(bars, key=lambda bar: -bar[1])

    def _unit(self) -> str:
        found = self.effects
        whose = found.unit() if len(found.labels) == 1 else "log-odds, mean over the classes"
        return f"mean absolute effect on the {whose}"

    def _title(self, n_hidden: int) -> str:
        found = self.effects
        intervals = f" with intervals of {found.confidence:.0%}" if found.has_bands else ""
        rest = f" ({n_hidden} more)" if n_hidden else ""
        return f"Importance{rest}{intervals}"
