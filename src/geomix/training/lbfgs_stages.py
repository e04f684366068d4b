"""L-BFGS on full batches: sharpness is raised in stages, the usage penalty frozen within each.

A penalty that moved with the parameters would give L-BFGS a gradient that does not belong to its
values. Early stages only bring the planes near where they will end; at the final sharpness the
stage is repeated, with the usage measured anew.
"""

from __future__ import annotations

import numpy as np

from geomix.core import kernel
from geomix.core.lbfgs import Enough
from geomix.core.planes import Planes
from geomix.training.monotone import minimize as ordered_minimize
from geomix.training.run import Run, Trained

SHARPNESS_STAGES = 4
ITERATIONS_PER_EARLY_STAGE = 25
ROUNDS_AT_FINAL_SHARPNESS = 3
VALUE_TOL_OF_EARLY_STAGES = 1e-4  # these only bring the planes near where they will end


def train_by_stages(planes: Planes, run: Run) -> Trained:
    """Planes trained by L-BFGS, from stage to stage."""
    settings = run.settings
    # One plane per class: sharpness has no effect. Trained before: it has had its effect.
    alone = planes.n_planes == planes.n_classes
    if alone or run.n_before:
        stages = np.array([settings.sharpness])
    else:
        stages = np.linspace(settings.sharpness_start, settings.sharpness, SHARPNESS_STAGES)
    stopped = "max_iter"
    for sharpness in stages[:-1]:
        # However short the run, its last part has the sharpness that the model will have.
        limit = min(ITERATIONS_PER_EARLY_STAGE, run.max_iter // SHARPNESS_STAGES)
        planes, _ = _stage(planes, float(sharpness), limit, run, judge=False)
    for _ in range(ROUNDS_AT_FINAL_SHARPNESS):
        limit = run.max_iter - run.n_done
        n_before, run.n_since_best = run.n_done, 0
        planes, converged = _stage(planes, float(stages[-1]), limit, run, judge=True)
        stopped = run.why_stopped("converged" if converged else "max_iter")
        # Another round only refreshes the usage that the penalty was frozen at.
        if not converged or run.n_done - n_before <= 1 or alone or settings.usage_beta == 0.0:
            break
    return run.finish(planes, stopped)


def _stage(
    planes: Planes, sharpness: float, limit: int, run: Run, *, judge: bool
) -> tuple[Planes, bool]:
    if limit <= 0 or run.asked_to_stop:
        return planes, False
    settings, rows = run.settings, run.sums()
    usage = rows.terms(planes, sharpness, settings.label_smoothing).mean_usage
    run.usage = tuple(usage.tolist())
    followed = run.watch is not None or (judge and run.is_judged)

    def on_iterate(at: Planes, value: float) -> None:
        run.step_done(at, sharpness, value, judge=judge)
        if run.must_stop:
            raise Enough

    descent = kernel.Descent(
        planes,
        sharpness,
        settings.label_smoothing,
        run.penalty(usage),
        max_iter=limit,
        tol=settings.tol,
        value_tol=run.value_tol if judge else VALUE_TOL_OF_EARLY_STAGES,
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
