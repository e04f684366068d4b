"""Training that goes on from a model: a warm start on new rows, or one batch of a stream.

What the first fit decided stays: columns and levels, mean and scale, lift and knots, the number
of planes, the penalty. The planes move. A warm start trains until it converges. A batch of a
stream is one epoch of Adam, whose moments are kept for the next batch.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from geomix.arrays import FloatArray
from geomix.core import kernel
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.planes import Planes
from geomix.errors import DataQualityWarning, InvalidParameterError
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture
from geomix.search.assembly import FitResult, Target, assemble
from geomix.search.fitted import Snapshot, Watch
from geomix.search.splits import canonical_rows
from geomix.training.adam_epochs import StreamState, adam_batch
from geomix.training.features import Features
from geomix.training.history import Log, Record
from geomix.training.loop import train_planes
from geomix.training.random_streams import stream
from geomix.training.rows import Rows, class_weighted
from geomix.training.settings import Settings
from geomix.training.state import TrainingState


def working_features(
    model: GeometricMixture, before: TrainingState, rows: Rows, valid: Rows | None = None
) -> Features:
    """Encoded rows as the features that the model was trained on."""

    def lifted(rows: Rows) -> Rows:
        V = model.feature_map.standardized(rows.X)
        return Rows(kernel.lifted(model.lift, V), rows.y, rows.weight)

    held_out = None if valid is None else lifted(valid)
    features = Features(model.feature_map, lifted(rows), held_out, None)
    return features if before.units is None else features.with_units(before.units)


def warm_start(
    model: GeometricMixture,
    before: TrainingState,
    rows: Rows,
    valid: Rows | None,
    settings: Settings,
    seed: int,
    *,
    class_weight: FloatArray | None = None,
    watch: Watch | None = None,
) -> FitResult:
    """Train the planes of a model further on other rows (a warm start).

    The penalty is the settings', or the one that was chosen before. Validation rows give a new
    temperature; without them the old one stays.
    """
    _check_alike(model, settings)
    if class_weight is not None:
        rows = class_weighted(rows, class_weight)
        valid = None if valid is None else class_weighted(valid, class_weight)
    rows = canonical_rows(rows, model_schema(model).is_category)
    if settings.early_stopping == "auto":
        settings = replace(settings, early_stopping="off" if valid is None else "calibrated")
    l2, shrink_to_mean = before.penalty(settings)

    def watch_planes(record: Record, planes: Planes) -> bool | None:
        assert watch is not None
        now = Snapshot(model.feature_map, features.expanded(planes))
        return watch(record, lambda: now)

    features = working_features(model, before, rows, valid)
    held_out = features.held_out
    trained = train_planes(
        features.working(before.uncorrected(model.planes)),
        features.rows,
        held_out,
        settings,
        l2,
        shrink_to_mean,
        lambda: stream(seed, "batches"),
        None if watch is None else watch_planes,
        n_before=max(before.n_iter, 1),
    )
    temperature = model.temperature
    if held_out is not None and settings.calibrate:
        scores = held_out.prepared.class_scores(trained.planes, settings.sharpness)
        temperature = fit_temperature(scores, held_out.y, held_out.weight, PRIOR_SCALE)
    mass = np.bincount(rows.y, rows.weight, len(model.classes)) * 1.0
    target = Target(model.classes, model_schema(model), settings, mass, class_weight)
    result = assemble(
        target,
        model.feature_map,
        features.expanded(trained.planes),
        temperature,
        trained,
        replace(before, l2=l2, shrink_to_mean=shrink_to_mean),
        Log(notes=["A warm start."]),
    )
    # The race of the first fit is still why this model is of its family.
    facts = {**(model.training or {}), **(result.model.training or {})}
    return result._replace(model=replace(result.model, training=facts))


def _check_alike(model: GeometricMixture, settings: Settings) -> None:
    if settings.is_monotone:
        raise InvalidParameterError(
            f"Got monotonic_cst={settings.monotonic_cst!r}; expected None where a model is trained "
            "further."
        )
    if model.planes.n_members > 1:
        raise InvalidParameterError(
            f"The model is an ensemble of {model.planes.n_members} members and cannot be trained "
            "further; fit it with n_members=1."
        )
    if model.lift.kind not in settings.lifts:
        raise InvalidParameterError(
            f"Got lift={settings.lift!r}, but the fitted model has a {model.lift.kind} lift; set "
            f"lift={model.lift.kind!r} to go on, or fit a new estimator."
        )


def next_batch(
    model: GeometricMixture,
    before: TrainingState,
    adam: StreamState | None,
    rows: Rows,
    settings: Settings,
    seed: int,
) -> tuple[GeometricMixture, StreamState | None]:
    """One batch of a stream: the model after it, and Adam's moments to carry on with."""
    _check_alike(model, settings)
    present = np.unique(rows.y)
    if len(present) == 1:
        warnings.warn(
            f"This batch holds one class only, {_label(model, present[0])!r}: learning from it "
            "moves every row towards that class. Mix the rows of the stream, or use "
            "geomix.fit_files, which does not depend on their order.",
            DataQualityWarning,
            stacklevel=3,
        )
    l2, shrink_to_mean = before.penalty(settings)
    n_steps = 0 if adam is None else adam.state.n_steps
    order = stream(seed, "stream", n_steps).permutation(len(rows))
    features = working_features(model, before, rows)
    planes, after, loss = adam_batch(
        features.working(before.uncorrected(model.planes)),
        adam,
        features.rows,
        settings,
        l2,
        shrink_to_mean,
        order,
    )
    if not (np.isfinite(loss) and np.isfinite(planes.as_vector()).all()):
        warnings.warn(
            f"This batch made the planes diverge at learning_rate={settings.learning_rate!r}; it "
            "was skipped. Use a smaller learning_rate.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return model, adam
    moved = before.corrected(features.expanded(planes))
    return replace(model, planes=moved, sharpness=float(settings.sharpness)), after


def _label(model: GeometricMixture, code: Any) -> Any:
    return model.classes.tolist()[int(code)]
