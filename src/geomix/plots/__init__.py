"""Plots of a trained model: each Display holds facts, and ``plot`` draws them.

    RegionDisplay.from_estimator(clf, X, y).plot().figure_.savefig("regions.png")

``from_...`` computes, ``plot(ax=None)`` only draws, ``frame()`` has what is drawn as a table. A
Display is frozen: ``plot`` returns the same facts plus ``ax_`` and ``figure_``. Without ``ax``
it draws on a figure of its own, which a notebook shows as the value of the cell; pyplot and its
global state are never touched.

    regions, union, responsibility       maps over two columns, over maps, grid, facets, window
    plane_card, usage, projection        planes: what they stand for, and where rows lie
    reliability, class_reliability, roc  how far to trust the probabilities
    effects, importance, interactions    what each column does, and columns together
    waterfall                            why one row has its probabilities
    certificate, counterfactual          distances to another class
    history, presets                     a training run, and the presets compared
    inputs, frames, look                 checks, tables of facts, and colours
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "geomix.plots draws with matplotlib, which is not installed: pip install 'geomix[plots]'"
    ) from error

from geomix.plots.certificate import CertificateDisplay
from geomix.plots.class_reliability import ClassReliabilityDisplay
from geomix.plots.counterfactual import CounterfactualDisplay
from geomix.plots.effects import EffectDisplay
from geomix.plots.history import HistoryDisplay
from geomix.plots.importance import ImportanceDisplay
from geomix.plots.interactions import InteractionDisplay
from geomix.plots.plane_card import PlaneCardDisplay
from geomix.plots.presets import PresetDisplay
from geomix.plots.projection import ProjectionDisplay
from geomix.plots.regions import RegionDisplay
from geomix.plots.reliability import ReliabilityDisplay
from geomix.plots.responsibility import ResponsibilityDisplay
from geomix.plots.roc import RocDisplay
from geomix.plots.union import UnionDisplay
from geomix.plots.usage import UsageDisplay
from geomix.plots.waterfall import WaterfallDisplay

__all__ = [
    "CertificateDisplay",
    "ClassReliabilityDisplay",
    "CounterfactualDisplay",
    "EffectDisplay",
    "HistoryDisplay",
    "ImportanceDisplay",
    "InteractionDisplay",
    "PlaneCardDisplay",
    "PresetDisplay",
    "ProjectionDisplay",
    "RegionDisplay",
    "ReliabilityDisplay",
    "ResponsibilityDisplay",
    "RocDisplay",
    "UnionDisplay",
    "UsageDisplay",
    "WaterfallDisplay",
]
