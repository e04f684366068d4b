"""L-BFGS on full batches: sharpness is raised in stages, the usage penalty frozen within each.

A penalty that changed with the parameters would give L-BFGS a gradient that is not that of its
values. Early stages only bring the planes near their final place. At the final sharpness the stage
is repeated with the new usage.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.core import kernel
from geomix.core.descent import Stage, StagePlan
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
    plan = _plan(planes, run)
    # Whatever follows the iterations sees them one by one; a cap holds between stages.
    if not run.is_followed and run.order is None and run.settings.max_weight_norm is None:
        found = kernel.minimize_by_stages(run.sums(), planes, plan)
        if found is not None:
            return _trained_at_once(*found, run)
    for sharpness in plan.sharpness[:-1]:
        planes, _ = _stage(planes, float(sharpness), plan.early_limit, run, validate=False)
    stopped = "max_iter"
    for _ in range(plan.rounds):
        limit = run.max_iter - run.n_done
        n_before, run.n_since_best = run.n_done, 0
        planes, converged = _stage(planes, float(plan.sharpness[-1]), limit, run, validate=True)
        stopped = run.why_stopped("converged" if converged else "max_iter")
        # Another round only updates the usage in the penalty.
        if not converged or run.n_done - n_before <= 1:
            break
    return run.finish(planes, stopped)


def _plan(planes: Planes, run: Run) -> StagePlan:
    settings = run.settings
    # With one plane per class the sharpness has no effect; trained planes need no annealing.
    is_alone = planes.n_planes == planes.n_classes
    sharpness = np.array([settings.sharpness], dtype=np.float64)
    if not is_alone and not run.n_before:
        sharpness = np.linspace(settings.sharpness_start, settings.sharpness, SHARPNESS_STAGES)
    return StagePlan(
        sharpness,
        settings.label_smoothing,
        run.shrink_to_mean,
        run.l2,
        settings.usage_beta,
        settings.usage_delta,
        # However short the run, it ends with the sharpness of the model.
        early_limit=min(ITERATIONS_PER_EARLY_STAGE, run.max_iter // SHARPNESS_STAGES),
        max_iter=run.max_iter - run.n_done,
        rounds=1 if is_alone or settings.usage_beta == 0.0 else ROUNDS_AT_FINAL_SHARPNESS,
        tol=settings.tol,
        early_value_tol=VALUE_TOL_OF_EARLY_STAGES,
        value_tol=run.value_tol,
    )


def _trained_at_once(planes: Planes, converged: bool, stages: list[Stage], run: Run) -> Trained:
    for stage in stages:
        run.usage = tuple(stage.usage.tolist())
        run.steps_done(stage.sharpness, stage.values)
    return run.finish(planes, "converged" if converged else "max_iter")


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
