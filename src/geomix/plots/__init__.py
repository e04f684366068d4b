"""Plots of a trained model: each Display holds facts, and draws them when asked.

    RegionDisplay.from_model(clf.model_, X, y).plot().figure_.savefig("regions.png")

``from_...`` computes, ``plot(ax=None)`` only draws. A Display is frozen: ``plot`` answers with
the same facts plus ``ax_`` and ``figure_``. Without ``ax`` it draws on a figure of its own,
which a notebook shows as the value of the cell; pyplot and its global state are never touched.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "geomix.plots draws with matplotlib, which is not installed: pip install 'geomix[plots]'"
    ) from error

from geomix.plots.history import HistoryDisplay
from geomix.plots.regions import RegionDisplay
from geomix.plots.reliability import ReliabilityDisplay
from geomix.plots.responsibility import ResponsibilityDisplay
from geomix.plots.usage import UsageDisplay

__all__ = [
    "HistoryDisplay",
    "RegionDisplay",
    "ReliabilityDisplay",
    "ResponsibilityDisplay",
    "UsageDisplay",
]
