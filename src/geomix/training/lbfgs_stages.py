"""L-BFGS on full batches: sharpness is raised in stages, the usage penalty frozen within each.

A penalty that changed with the parameters would give L-BFGS a gradient that is not that of its
values. Early stages only bring the planes near their final place. At the final sharpness the stage
is repeated with the new usage.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core import kernel
from geomix.core.lbfgs import Enough
from geomix.core.planes import Planes
from geomix.training.monotone import minimize as ordered_minimize
from geomix.training.run import Run, Trained

SHARPNESS_STAGES = 4
ITERATIONS_PER_EARLY_STAGE = 25
ROUNDS_AT_FINAL_SHARPNESS = 3
VALUE_TOL_OF_EARLY_STAGES = 1e-4  # these only bring the planes near their final place


def train_by_stages(planes: Planes, run: Run) -> Trained:
    """Planes trained by L-BFGS, from stage to stage."""
    settings = run.settings
    # With one plane per class the sharpness has no effect; trained planes need no annealing.
    alone = planes.n_planes == planes.n_classes
    if alone or run.n_before:
        stages = np.array([settings.sharpness])
    else:
        stages = np.linspace(settings.sharpness_start, settings.sharpness, SHARPNESS_STAGES)
    stopped = "max_iter"
    for sharpness in stages[:-1]:
        # However short the run, it ends with the sharpness of the model.
        limit = min(ITERATIONS_PER_EARLY_STAGE, run.max_iter // SHARPNESS_STAGES)
        planes, _ = _stage(planes, float(sharpness), limit, run, validate=False)
    for _ in range(ROUNDS_AT_FINAL_SHARPNESS):
        limit = run.max_iter - run.n_done
        n_before, run.n_since_best = run.n_done, 0
        planes, converged = _stage(planes, float(stages[-1]), limit, run, validate=True)
        stopped = run.why_stopped("converged" if converged else "max_iter")
        # Another round only updates the usage in the penalty.
        if not converged or run.n_done - n_before <= 1 or alone or settings.usage_beta == 0.0:
            break
    return run.finish(planes, stopped)


def _stage(
    planes: Planes, sharpness: float, limit: int, run: Run, *, validate: bool
) -> tuple[Planes, bool]:
    if limit <= 0 or run.stop_requested:
        return planes, False
    settings, rows = run.settings, run.sums()
    usage = _usage(planes, sharpness, run)
    run.usage = tuple(usage.tolist())
    followed = run.watch is not None or (validate and run.has_valid_loss)

    def on_iterate(at: Planes, value: float) -> None:
        run.step_done(at, sharpness, value, validate=validate)
        if run.must_stop:
            raise Enough

    descent = kernel.Descent(
        planes,
        sharpness,
        settings.label_smoothing,
        run.penalty(usage),
        max_iter=limit,
        tol=settings.tol,
        value_tol=run.value_tol if validate else VALUE_TOL_OF_EARLY_STAGES,
        on_iterate=on_iterate if followed else None,
        shrink_to_mean=run.shrink_to_mean,
    )
    if run.order is None or not len(run.order.features):
        planes, converged, losses = kernel.minimize(rows, descent)
    else:
        planes, converged, losses = ordered_minimize(rows, descent, run.order)
    if not followed:
        run.steps_done(sharpness, losses)
    return planes.capped(settings.max_weight_norm), converged


def _usage(planes: Planes, sharpness: float, run: Run) -> FloatArray:
    """Mean responsibility of each plane; the only plane of a class answers for all of its score."""
    if planes.n_planes == planes.n_classes:
        return np.ones(planes.n_planes)
    return run.sums().terms(planes, sharpness, run.settings.label_smoothing).mean_usage
