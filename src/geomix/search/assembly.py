"""The end of every fit: trained planes become a model, its history and its training state.

Rows in memory, rows out of core and a warm start differ in how they train planes. Class weights are
corrected for, class shares are stored and the history is closed here alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.model import GeometricMixture
from geomix.table.schema import Schema
from geomix.training.history import History, Log
from geomix.training.run import Trained
from geomix.training.settings import Settings
from geomix.training.state import TrainingState


class FitResult(NamedTuple):
    """What a fit returns: the model, the record for people, and what a later fit goes on from."""

    model: GeometricMixture
    history: History
    state: TrainingState


@dataclass(frozen=True, eq=False)
class Target:
    """What a model predicts, from which columns, and how the classes are weighted.

    mass : (n_classes,) weight of the rows of each class, with its factor;
    class_weight : (n_classes,) those factors, or None.
    """

    classes: Any
    schema: Schema
    settings: Settings
    mass: FloatArray
    class_weight: FloatArray | None

    @property
    def factors(self) -> FloatArray | None:
        """(n_classes,) class weights to correct for, or None."""
        return self.class_weight if self.settings.correct_prior else None

    @property
    def class_shares(self) -> list[float]:
        """Class shares under which the probabilities hold."""
        mass = self.mass if self.factors is None else self.mass / self.factors
        return (mass / mass.sum()).tolist()

    def class_bias(self, temperature: float) -> FloatArray | None:
        """What is added to the class scores to correct for class weights, or None.

        Weighting by w_c multiplies the posterior by w_c; subtracting log w_c from the calibrated
        score s_c / T reverses it exactly.
        """
        return None if self.factors is None else -temperature * np.log(self.factors)


def assemble(
    target: Target,
    feature_map: FeatureMap,
    planes: Planes,
    temperature: float,
    trained: Trained,
    state: TrainingState,
    log: Log,
) -> FitResult:
    """The result of a fit.

    planes : final ones over the lift's own features;  trained : the run that is recorded;
    state : penalty, init and units of the training.
    """
    history = closed(log, trained, state)
    state = replace(state, n_iter=history.n_iter, class_bias=target.class_bias(temperature))
    model = GeometricMixture(
        target.classes,
        target.schema.names,
        feature_map,
        state.corrected(planes),
        float(target.settings.sharpness),
        temperature,
        target.schema,
        training={"class_shares": target.class_shares},
    )
    return FitResult(model, history, state)


def closed(log: Log, trained: Trained, state: TrainingState) -> History:
    """The history of a fit that is over."""
    return History(
        tuple(trained.records),
        tuple(log.trials),
        log.choice,
        tuple(log.notes),
        trained.stopped,
        state.init,
        state.l2,
        state.shrink_to_mean,
    )
