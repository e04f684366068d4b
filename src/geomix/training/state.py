"""TrainingState: what training needs to go on from a fitted model.

A warm start and ``partial_fit`` keep the penalty of the first fit and the units of its features.
They train the planes as they were before the correction for class weights. These travel beside the
model; ``History`` is for people to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geomix.arrays import FloatArray
from geomix.core.planes import Planes
from geomix.training.settings import Settings

DIGITS = 4  # of the units that a model keeps: bands need no more


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The penalty of the final training, its units, and how far it went.

    l2, shrink_to_mean : the penalty;  n_iter : iterations of the planes so far;
    init : method of the first planes;  units : (n_steps,) of a spline lift under an adaptive
    penalty, else None;  class_bias : (n_classes,) what ``correct_prior`` has added to the scores of
    each class, else None.
    """

    l2: float
    shrink_to_mean: float
    n_iter: int
    init: str
    units: FloatArray | None = None
    class_bias: FloatArray | None = None

    def penalty(self, settings: Settings) -> tuple[float, float]:
        """(l2, shrink_to_mean) of the settings, or of this state where they are "auto"."""
        l2, shrink_to_mean = settings.l2, settings.shrink_to_mean
        return (
            self.l2 if l2 == "auto" else float(l2),
            self.shrink_to_mean if shrink_to_mean == "auto" else float(shrink_to_mean),
        )

    def uncorrected(self, planes: Planes) -> Planes:
        """The planes of the model as they were trained, before ``correct_prior``."""
        return planes if self.class_bias is None else planes.with_class_bias(-self.class_bias)

    def corrected(self, planes: Planes) -> Planes:
        """Trained planes as those of the model."""
        return planes if self.class_bias is None else planes.with_class_bias(self.class_bias)

    def penalty_facts(self, settings: Settings) -> dict[str, Any]:
        """The penalty as plain values, which the model keeps for the bands of its effects."""
        units = None if self.units is None else [float(f"{one:.{DIGITS}g}") for one in self.units]
        return {
            "l2": float(self.l2),
            "shrink_to_mean": float(self.shrink_to_mean),
            "usage_beta": float(settings.usage_beta),
            "usage_delta": float(settings.usage_delta),
            "units": units,
        }
