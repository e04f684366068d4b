"""Several planes on very many binned rows: few passes over all of them.

    L-BFGS on a sample        the planes come near their final place
    Adam on batches of rows   ``BATCHES`` steps in each of ``PASSES`` passes, learning rate falling
    L-BFGS on all rows        the last ``LAST_ITERATIONS``

L-BFGS alone makes one step in a pass, and needs hundreds of them for many planes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomix.core.adam import adam_start, adam_step
from geomix.core.objective import BatchTerms, penalised
from geomix.core.planes import Planes
from geomix.core.spline import Binned
from geomix.training.lbfgs_stages import train_by_stages
from geomix.training.rows import Rows, stratified_split
from geomix.training.run import Run, Trained

# Passes over fewer rows are cheap, and batches of them would be noisy.
FEWEST_ROWS = 100_000
# Twice the largest rung of the race.
ROWS_OF_SAMPLE = 40_000
ITERATIONS_ON_SAMPLE = 20
# Measured on covertype, 465,000 rows (decision 74).
BATCHES = 32
PASSES = 56
LAST_ITERATIONS = 8
# The learning rate falls from the first number to the second along half a cosine.
LEARNING_RATES = (0.04, 0.0004)
# Gradients of a thousand rows vary little from batch to batch: a short memory of their size.
SQUARE_DECAY = 0.99


def is_for_many_rows(planes: Planes, train: Rows, run: Run) -> bool:
    """Whether training goes by batches: where a run has room for all of its passes."""
    several = planes.n_planes > planes.n_classes  # one plane has one optimum, found in few passes
    has_room = run.phase != "fit" or run.max_iter >= PASSES + LAST_ITERATIONS
    is_large = len(train) >= FEWEST_ROWS and isinstance(train.X, Binned)
    return several and is_large and has_room


def train_on_many_rows(planes: Planes, run: Run, train: Rows, rng: np.random.Generator) -> Trained:
    """Planes trained on a sample, by batches, and on all rows; before the final training, where
    planes need not converge, on a sample alone."""
    if run.phase != "fit":
        return _train_on_sample(planes, run, train, rng, run.max_iter)
    before = _train_on_sample(planes, run, train, rng, ITERATIONS_ON_SAMPLE).planes
    after = _train_by_batches(before, run, train, rng)
    run.n_before = max(run.n_before, 1)  # at the final sharpness from here on
    if run.must_stop:
        return run.finish(after, run.why_stopped("max_iter"))
    is_better = _objective(after, run) < _objective(before, run)
    run.max_iter = run.n_done + LAST_ITERATIONS if is_better else run.max_iter
    return train_by_stages(after if is_better else before, run)


def _train_on_sample(
    planes: Planes, run: Run, train: Rows, rng: np.random.Generator, n_iter: int
) -> Trained:
    """By L-BFGS, under the same prior beside fewer rows."""
    sample = train.take(stratified_split(train.y, ROWS_OF_SAMPLE / len(train), rng)[1])
    on_sample = replace(
        run,
        sums=lambda: sample.prepared,
        l2=run.l2 * len(train) / len(sample),
        phase="adapt",
        max_iter=n_iter,
        records=[],
    )
    return train_by_stages(planes, on_sample)


def _train_by_batches(planes: Planes, run: Run, train: Rows, rng: np.random.Generator) -> Planes:
    order = rng.permutation(len(train))
    batches = [train.take(np.sort(order[first::BATCHES])) for first in range(BATCHES)]
    sharpness, vector = run.settings.sharpness, planes.as_vector()
    state, n_steps = adam_start(len(vector)), PASSES * BATCHES
    for _ in range(PASSES):
        loss = 0.0
        for batch in rng.permutation(BATCHES):
            at = planes.with_vector(vector)
            value, gradient = _penalised(_terms(at, batches[batch], run), at, run)
            rate = _learning_rate(state.n_steps / n_steps)
            state, vector = adam_step(state, vector, gradient, rate, square_decay=SQUARE_DECAY)
            loss += value / BATCHES
        now = planes.with_vector(vector)
        run.step_done(now, sharpness, loss, learning_rate=rate)
        if run.must_stop:
            break
    return planes.with_vector(vector).capped(run.settings.max_weight_norm)


def _learning_rate(done: float) -> float:
    high, low = LEARNING_RATES
    return float(low + (high - low) * 0.5 * (1.0 + np.cos(np.pi * done)))


def _terms(planes: Planes, rows: Rows, run: Run) -> BatchTerms:
    settings = run.settings
    return rows.prepared.terms(planes, settings.sharpness, settings.label_smoothing)


def _penalised(terms: BatchTerms, planes: Planes, run: Run) -> tuple[float, np.ndarray]:
    return penalised(terms, planes, run.penalty(terms.mean_usage), run.shrink_to_mean)


def _objective(planes: Planes, run: Run) -> float:
    settings = run.settings
    terms = run.sums().terms(planes, settings.sharpness, settings.label_smoothing)
    return _penalised(terms, planes, run)[0]
