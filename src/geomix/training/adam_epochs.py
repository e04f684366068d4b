"""Adam on mini-batches: sharpness is raised along the first half of the epochs.

Only epochs at the final sharpness are validated: the best of them is kept, and
``n_iter_no_change`` counts from there. An epoch passes over all rows once: in one native call, or
batch by batch through the kernel, which is the reference. ``partial_fit`` trains one epoch on each
batch of a stream and carries the moments of Adam from batch to batch (``StreamState``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from geomix.arrays import CenteredSparse, FloatArray, IntArray
from geomix.core import kernel
from geomix.core.adam import AdamState, adam_start, adam_step, clip_norm
from geomix.core.objective import penalised, usage_penalty
from geomix.core.planes import Planes
from geomix.core.spline import Binned
from geomix.training.rows import Rows
from geomix.training.run import Run, Trained
from geomix.training.schedules import learning_rate_at, sharpness_at
from geomix.training.settings import Settings

EPOCHS_TO_SHARPEN = 0.5
RUNNING_USAGE_DECAY = 0.9
MOST_STEP_HALVINGS = 10


def train_by_epochs(planes: Planes, run: Run, train: Rows, rng: np.random.Generator) -> Trained:
    """Planes trained by Adam. An epoch that diverges is repeated with half the learning rate."""
    settings = run.settings
    start = _first_step(planes)
    state, usage = start.state, start.usage
    epoch_of = _epoch_over(train)
    n_soft = _soft_epochs(run)
    slowdown, halvings, epoch = 1.0, 0, 0
    while epoch < run.max_iter and not run.must_stop:
        is_final = epoch >= n_soft
        sharpness = settings.sharpness
        if not is_final:
            sharpness = sharpness_at(epoch / n_soft, settings.sharpness_start, sharpness)
        progress = epoch / run.max_iter
        rate = slowdown * learning_rate_at(progress, settings.learning_rate, settings.schedule)
        order = rng.permutation(len(train))
        step = _Epoch(train, settings, run.l2, run.shrink_to_mean, sharpness, rate, order)
        moved, now, used, loss = epoch_of(planes, state, usage, step)
        if not (np.isfinite(loss) and np.isfinite(moved.as_vector()).all()):
            slowdown, halvings = slowdown / 2.0, halvings + 1
            if halvings > MOST_STEP_HALVINGS:
                _warn_diverged(settings)
                return run.finish(planes, "diverged")
            continue
        planes, state, usage = moved, now, used
        run.usage = tuple(usage.tolist())
        epoch += 1
        run.step_done(planes, sharpness, loss, learning_rate=rate, validate=is_final)
    return run.finish(planes, run.why_stopped("max_iter"))


def _soft_epochs(run: Run) -> int:
    """Epochs before the final sharpness. However short the run, it ends with that; trained planes
    need no annealing."""
    settings = run.settings
    if run.n_before or settings.sharpness_start == settings.sharpness:
        return 0
    return int(EPOCHS_TO_SHARPEN * run.max_iter)


def _warn_diverged(settings: Settings) -> None:
    warnings.warn(
        f"Training diverged at learning_rate={settings.learning_rate!r} and still did "
        f"after halving it {MOST_STEP_HALVINGS} times; the best planes so far are "
        "kept. Use a smaller learning_rate, or standardised columns.",
        ConvergenceWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, eq=False)
class _Epoch:
    """One pass over all rows: their order, the sharpness and the learning rate."""

    train: Rows
    settings: Settings
    l2: float
    shrink_to_mean: float
    sharpness: float
    rate: float
    order: IntArray


@dataclass(frozen=True, eq=False)
class StreamState:
    """Adam between two batches: its moments, and the usage of each plane for the penalty."""

    state: AdamState
    usage: FloatArray


def _first_step(planes: Planes) -> StreamState:
    """Zero moments, and equal usage of the planes of a class."""
    n_numbers = planes.weights.size + planes.biases.size
    return StreamState(adam_start(n_numbers), np.repeat(1.0 / planes.per_class, planes.per_class))


def adam_batch(
    planes: Planes,
    before: StreamState | None,
    train: Rows,
    settings: Settings,
    l2: float,
    shrink_to_mean: float,
    order: IntArray,
) -> tuple[Planes, StreamState, float]:
    """One epoch of Adam over a batch, at the final sharpness and the full learning rate."""
    before = _first_step(planes) if before is None else before
    step = _Epoch(
        train, settings, l2, shrink_to_mean, settings.sharpness, settings.learning_rate, order
    )
    moved, state, usage, loss = _epoch_over(train)(planes, before.state, before.usage, step)
    return moved, StreamState(state, usage), loss


def _epoch_over(train: Rows) -> Callable[..., tuple[Planes, AdamState, FloatArray, float]]:
    in_one_call = kernel.is_native and not isinstance(train.X, Binned)
    return _native_epoch if in_one_call else _epoch_by_batches


def _native_epoch(
    planes: Planes, state: AdamState, usage: FloatArray, step: _Epoch
) -> tuple[Planes, AdamState, FloatArray, float]:
    settings, train = step.settings, step.train
    return kernel.adam_epoch(
        train.X,
        train.y,
        train.weight,
        step.order,
        planes,
        state,
        usage,
        train.prepared if isinstance(train.X, CenteredSparse) else None,
        sharpness=step.sharpness,
        label_smoothing=settings.label_smoothing,
        batch_size=settings.batch_size,
        learning_rate=step.rate,
        l2=step.l2,
        usage_beta=settings.usage_beta,
        usage_delta=settings.usage_delta,
        usage_decay=0.0 if settings.usage_average == "batch" else RUNNING_USAGE_DECAY,
        clip_norm=settings.clip_norm or 0.0,
        max_weight_norm=settings.max_weight_norm or 0.0,
        shrink_to_mean=step.shrink_to_mean,
    )


def _epoch_by_batches(
    planes: Planes, state: AdamState, usage: FloatArray, step: _Epoch
) -> tuple[Planes, AdamState, FloatArray, float]:
    settings, train = step.settings, step.train
    loss = 0.0
    for batch in _batches(step.order, settings.batch_size):
        rows = train.take(batch)
        terms = kernel.batch_terms(
            planes, step.sharpness, rows.X, rows.y, rows.weight, settings.label_smoothing
        )
        usage = _next_usage(usage, terms.mean_usage, settings.usage_average)
        coefficients = usage_penalty(usage, step.l2, settings.usage_beta, settings.usage_delta)
        value, gradient = penalised(terms, planes, coefficients, step.shrink_to_mean)
        loss += value * len(batch) / len(train)
        gradient = clip_norm(gradient, settings.clip_norm)
        state, vector = adam_step(state, planes.as_vector(), gradient, step.rate)
        planes = planes.with_vector(vector).capped(settings.max_weight_norm)
    return planes, state, usage, loss


def _batches(order: IntArray, size: int) -> list[IntArray]:
    """All rows once in the given order, in nearly equal batches of about ``size``."""
    return np.array_split(order, max(round(len(order) / size), 1))


def _next_usage(running: FloatArray, batch: FloatArray, average: str) -> FloatArray:
    if average == "batch":
        return batch
    return RUNNING_USAGE_DECAY * running + (1.0 - RUNNING_USAGE_DECAY) * batch
