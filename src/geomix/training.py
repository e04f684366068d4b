"""The loop: rows -> kernel -> solver, while the pooling sharpens.

``train_planes`` improves given planes on lifted rows (``rows.X`` holds phi). Validation loss
is always taken at the final sharpness, because that is the model that will answer; the best
planes by it are restored however training ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from geomix import kernel
from geomix.adam import AdamState, adam_start, adam_step, clip_norm
from geomix.anneal import learning_rate_at, sharpness_at
from geomix.arrays import CenteredSparse, FloatArray, IntArray
from geomix.calibration import PRIOR_SCALE
from geomix.history import Record
from geomix.lbfgs import Enough, default_value_tol
from geomix.objective import penalised, usage_penalty
from geomix.order import Order
from geomix.order import minimize as ordered_minimize
from geomix.planes import Planes
from geomix.recipe import Recipe
from geomix.rows import Rows
from geomix.spline import Binned
from geomix.sums import Sums

# ``solver="auto"``: full batches pay off up to this many multiply-adds per pass.
LARGEST_FULL_BATCH = 3e8
SHARPNESS_STAGES = 4
ITERATIONS_PER_EARLY_STAGE = 25
ROUNDS_AT_FINAL_SHARPNESS = 3
EPOCHS_TO_SHARPEN = 0.5
RUNNING_USAGE_DECAY = 0.9
SMALLEST_GAIN = 1e-4
MOST_STEP_HALVINGS = 10
VALUE_TOL_PER_TOL = 0.1
VALUE_TOL_OF_EARLY_STAGES = 1e-4  # these only bring the planes near where they will end

# Told of every iteration and its planes; answers True to end training there.
Watch = Callable[[Record, Planes], "bool | None"]


@dataclass(frozen=True, eq=False)
class Trained:
    """Planes after training.

    ``n_iter`` is the iteration they come from: the one that did best on held-out rows, or the
    last one when none were held out or early stopping is off; counted from the first planes.
    """

    planes: Planes
    records: list[Record]
    n_iter: int
    stopped: str


def train_planes(
    planes: Planes,
    train: Rows,
    valid: Rows | None,
    recipe: Recipe,
    l2: float,
    relief: float,
    rng: np.random.Generator,
    watch: Watch | None,
    phase: str = "fit",
    max_iter: int | None = None,
    n_before: int = 0,
    order: Order | None = None,
) -> Trained:
    """Train by the recipe's solver; ``solver="auto"`` picks by the size of the work.

    ``n_before`` counts the iterations that the given planes have had already: with any, the
    pooling starts at its final sharpness. ``order`` is what monotone columns ask of the weights,
    which only L-BFGS keeps.
    """
    most = max_iter or recipe.max_iter
    run = _Run(
        lambda: train.prepared, valid, recipe, l2, relief, watch, phase, most, n_before, order=order
    )
    solver = recipe.solver
    if order is not None:
        return _train_lbfgs(order.feasible(planes), run)
    if solver == "auto":
        # Codes are looked up, not multiplied: a pass over them is always worth it.
        is_small = len(train) * planes.weights.size <= LARGEST_FULL_BATCH
        solver = "lbfgs" if is_small or isinstance(train.X, Binned) else "adam"
    if planes.n_inputs == 0:  # only biases: they start at their optimum, and Adam would wander
        solver = "lbfgs"
    if solver == "lbfgs":
        return _train_lbfgs(planes, run)
    return _train_adam(planes, run, train, rng)


def train_on_sums(
    planes: Planes,
    sums: Sums,
    recipe: Recipe,
    l2: float,
    relief: float,
    watch: Watch | None,
    max_iter: int | None = None,
    n_before: int = 0,
) -> Trained:
    """Train by L-BFGS on rows that are asked for nothing but their sums, wherever they are.

    A pass over them is dear, so an iteration has to gain ``VALUE_TOL_PER_TOL`` times ``tol``.
    """
    most = max_iter or recipe.max_iter
    run = _Run(lambda: sums, None, recipe, l2, relief, watch, "fit", most, n_before, far=True)
    return _train_lbfgs(planes, run)


@dataclass(eq=False)
class _Run:
    """What both solvers share: data, records, and the best planes so far."""

    sums: Callable[[], Sums]
    valid: Rows | None
    recipe: Recipe
    l2: float
    relief: float
    watch: Watch | None
    phase: str
    max_iter: int
    n_before: int
    order: Order | None = None
    far: bool = False
    records: list[Record] = field(default_factory=list)  # of the final training alone
    usage: tuple[float, ...] | None = None
    n_done: int = 0
    best_planes: Planes | None = None
    best_loss: float = np.inf
    n_best: int = 0
    n_since_best: int = 0
    asked_to_stop: bool = False

    @property
    def has_valid(self) -> bool:
        return self.valid is not None and len(self.valid) > 0

    @property
    def value_tol(self) -> float:
        """A trial is over when an iteration gains less than ``tol``: candidates differ by more."""
        tol = self.recipe.tol
        if self.far:
            return VALUE_TOL_PER_TOL * tol
        return tol if self.phase == "choose" else default_value_tol(tol)

    @cached_property
    def is_judged(self) -> bool:
        """Whether iterations are held against held-out rows: to stop by them, or to show."""
        return self.has_valid and (self.phase == "fit" or self.recipe.early_stopping != "off")

    def penalty(self, usage: FloatArray) -> FloatArray:
        return _penalty(usage, self.l2, self.recipe)

    def step_done(
        self,
        planes: Planes,
        sharpness: float,
        loss: float,
        *,
        learning_rate: float | None = None,
        judge: bool = True,
    ) -> None:
        """Record an iteration, tell the watcher, and remember the planes if they are best.

        ``judge=False`` leaves the held-out rows unasked: these planes are not for keeping.
        """
        iteration = self.n_done = self.n_done + 1
        valid_loss = self.valid_loss(planes) if self.is_judged and judge else None
        record = Record(
            self.phase, iteration, sharpness, loss, valid_loss, learning_rate, self.usage
        )
        if self.phase == "fit":
            self.records.append(record)
        if valid_loss is not None:
            # Waiting ends only with a gain that matters; any gain is worth remembering.
            gain = self.best_loss - valid_loss
            self.n_since_best = 0 if gain > SMALLEST_GAIN * valid_loss else self.n_since_best + 1
            if gain > 0:
                self.best_planes, self.best_loss, self.n_best = planes, valid_loss, iteration
        self.asked_to_stop = self.watch is not None and bool(self.watch(record, planes))

    def steps_done(self, sharpness: float, losses: list[float]) -> None:
        """Record iterations that nobody judged or watched."""
        if self.phase == "fit":
            for iteration, loss in enumerate(losses, self.n_done + 1):
                record = Record(self.phase, iteration, sharpness, loss, usage=self.usage)
                self.records.append(record)
        self.n_done += len(losses)

    def valid_loss(self, planes: Planes) -> float:
        """Held-out loss at the final sharpness: of the calibrated probabilities, or plain."""
        valid, sharpness = self.valid, self.recipe.sharpness
        assert valid is not None
        if self.recipe.early_stopping == "plain":
            return valid.prepared.cross_entropy(planes, sharpness)
        S = valid.prepared.class_scores(planes, sharpness)
        return kernel.calibrate(S, valid.y, valid.weight, PRIOR_SCALE)[1]

    @property
    def out_of_patience(self) -> bool:
        return self.n_since_best >= self.recipe.patience and self.recipe.early_stopping != "off"

    @property
    def must_stop(self) -> bool:
        return self.asked_to_stop or self.out_of_patience

    def why_stopped(self, otherwise: str) -> str:
        if self.asked_to_stop:
            return "asked"
        return "patience" if self.out_of_patience else otherwise

    def finish(self, planes: Planes, stopped: str) -> Trained:
        if self.best_planes is None or self.recipe.early_stopping == "off":
            n_iter = max(self.n_done, 1)
        else:
            n_iter, planes = self.n_best, self.best_planes
        return Trained(planes, self.records, self.n_before + n_iter, stopped)


# --- L-BFGS: full batches, sharpness raised in stages, the usage penalty frozen within each ---


def _train_lbfgs(planes: Planes, run: _Run) -> Trained:
    recipe = run.recipe
    # One plane per class: sharpness has no effect. Trained before: it has had its effect.
    alone = planes.n_planes == planes.n_classes
    if alone or run.n_before:
        stages = np.array([recipe.sharpness])
    else:
        stages = np.linspace(recipe.sharpness_start, recipe.sharpness, SHARPNESS_STAGES)
    stopped = "max_iter"
    for sharpness in stages[:-1]:
        # However short the run, its last part has the sharpness that the model will have.
        limit = min(ITERATIONS_PER_EARLY_STAGE, run.max_iter // SHARPNESS_STAGES)
        planes, _ = _lbfgs_stage(planes, float(sharpness), limit, run, judge=False)
    for _ in range(ROUNDS_AT_FINAL_SHARPNESS):
        limit = run.max_iter - run.n_done
        n_before, run.n_since_best = run.n_done, 0
        planes, converged = _lbfgs_stage(planes, float(stages[-1]), limit, run, judge=True)
        stopped = run.why_stopped("converged" if converged else "max_iter")
        # Another round only refreshes the usage that the penalty was frozen at.
        if not converged or run.n_done - n_before <= 1 or alone or recipe.usage_beta == 0.0:
            break
    return run.finish(planes, stopped)


def _lbfgs_stage(
    planes: Planes, sharpness: float, limit: int, run: _Run, *, judge: bool
) -> tuple[Planes, bool]:
    if limit <= 0 or run.asked_to_stop:
        return planes, False
    recipe, rows = run.recipe, run.sums()
    usage = rows.terms(planes, sharpness, recipe.label_smoothing).mean_usage
    run.usage = tuple(usage.tolist())
    followed = run.watch is not None or (judge and run.is_judged)

    def on_iterate(at: Planes, value: float) -> None:
        run.step_done(at, sharpness, value, judge=judge)
        if run.must_stop:
            raise Enough

    descent = kernel.Descent(
        planes,
        sharpness,
        recipe.label_smoothing,
        run.penalty(usage),
        max_iter=limit,
        tol=recipe.tol,
        value_tol=run.value_tol if judge else VALUE_TOL_OF_EARLY_STAGES,
        on_iterate=on_iterate if followed else None,
        relief=run.relief,
    )
    if run.order is None or not len(run.order.features):
        planes, converged, losses = kernel.minimize(rows, descent)
    else:
        planes, converged, losses = ordered_minimize(rows, descent, run.order)
    if not followed:
        run.steps_done(sharpness, losses)
    return _cap_norms(planes, recipe.max_weight_norm), converged


# --- Adam: mini-batches, sharpness raised along the first half of the epochs ---


def _train_adam(planes: Planes, run: _Run, train: Rows, rng: np.random.Generator) -> Trained:
    recipe = run.recipe
    state = adam_start(planes.weights.size + planes.biases.size)
    usage: FloatArray = np.repeat(1.0 / planes.per_class, planes.per_class)
    epoch_of = _epoch_over(train)
    slowdown, halvings, epoch = 1.0, 0, 0
    while epoch < run.max_iter and not run.must_stop:
        progress = epoch / run.max_iter
        sharpness = sharpness_at(
            progress / EPOCHS_TO_SHARPEN, recipe.sharpness_start, recipe.sharpness
        )
        rate = slowdown * learning_rate_at(progress, recipe.learning_rate, recipe.schedule)
        order = rng.permutation(len(train))
        step = _Epoch(train, recipe, run.l2, run.relief, sharpness, rate, order)
        moved, now, used, loss = epoch_of(planes, state, usage, step)
        if not (np.isfinite(loss) and np.isfinite(moved.as_vector()).all()):
            slowdown, halvings = slowdown / 2.0, halvings + 1
            if halvings > MOST_STEP_HALVINGS:
                _warn_diverged(recipe)
                return run.finish(planes, "diverged")
            continue
        planes, state, usage = moved, now, used
        run.usage = tuple(usage.tolist())
        epoch += 1
        run.step_done(planes, sharpness, loss, learning_rate=rate)
    return run.finish(planes, run.why_stopped("max_iter"))


def _warn_diverged(recipe: Recipe) -> None:
    warnings.warn(
        f"Training diverged at learning_rate={recipe.learning_rate!r} and still did "
        f"after halving it {MOST_STEP_HALVINGS} times; the best planes so far are "
        "kept. Use a smaller learning_rate, or standardised columns.",
        ConvergenceWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, eq=False)
class _Epoch:
    """All rows once: in which order, how sharp the pooling, how long the steps."""

    train: Rows
    recipe: Recipe
    l2: float
    relief: float
    sharpness: float
    rate: float
    order: IntArray


@dataclass(frozen=True, eq=False)
class Walk:
    """Adam between two batches of rows: its moments, and the usage that it penalises by."""

    state: AdamState
    usage: FloatArray


def adam_batch(
    planes: Planes,
    walk: Walk | None,
    train: Rows,
    recipe: Recipe,
    l2: float,
    relief: float,
    order: IntArray,
) -> tuple[Planes, Walk, float]:
    """One epoch of Adam over a batch, at the final sharpness and the full learning rate."""
    if walk is None:
        n_numbers = planes.weights.size + planes.biases.size
        walk = Walk(adam_start(n_numbers), np.repeat(1.0 / planes.per_class, planes.per_class))
    step = _Epoch(train, recipe, l2, relief, recipe.sharpness, recipe.learning_rate, order)
    moved, state, usage, loss = _epoch_over(train)(planes, walk.state, walk.usage, step)
    return moved, Walk(state, usage), loss


def _epoch_over(train: Rows) -> Callable[..., tuple[Planes, AdamState, FloatArray, float]]:
    in_one_call = kernel.is_native and not isinstance(train.X, Binned)
    return _native_epoch if in_one_call else _epoch_by_batches


def _native_epoch(
    planes: Planes, state: AdamState, usage: FloatArray, step: _Epoch
) -> tuple[Planes, AdamState, FloatArray, float]:
    recipe, train = step.recipe, step.train
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
        label_smoothing=recipe.label_smoothing,
        batch_size=recipe.batch_size,
        learning_rate=step.rate,
        l2=step.l2,
        usage_beta=recipe.usage_beta,
        usage_delta=recipe.usage_delta,
        usage_decay=0.0 if recipe.usage_average == "batch" else RUNNING_USAGE_DECAY,
        clip_norm=recipe.clip_norm or 0.0,
        max_weight_norm=recipe.max_weight_norm or 0.0,
        relief=step.relief,
    )


def _epoch_by_batches(
    planes: Planes, state: AdamState, usage: FloatArray, step: _Epoch
) -> tuple[Planes, AdamState, FloatArray, float]:
    recipe, train = step.recipe, step.train
    loss = 0.0
    for batch in _batches(step.order, recipe.batch_size):
        rows = train.take(batch)
        terms = kernel.batch_terms(
            planes, step.sharpness, rows.X, rows.y, rows.weight, recipe.label_smoothing
        )
        usage = _next_usage(usage, terms.mean_usage, recipe.usage_average)
        coefficients = _penalty(usage, step.l2, recipe)
        value, gradient = penalised(terms, planes, coefficients, step.relief)
        loss += value * len(batch) / len(train)
        gradient = clip_norm(gradient, recipe.clip_norm)
        state, vector = adam_step(state, planes.as_vector(), gradient, step.rate)
        planes = _cap_norms(planes.with_vector(vector), recipe.max_weight_norm)
    return planes, state, usage, loss


def _penalty(usage: FloatArray, l2: float, recipe: Recipe) -> FloatArray:
    return usage_penalty(usage, l2, recipe.usage_beta, recipe.usage_delta)


def _batches(order: IntArray, size: int) -> list[IntArray]:
    """All rows once in the given order, in nearly equal batches of about ``size``."""
    return np.array_split(order, max(round(len(order) / size), 1))


def _next_usage(running: FloatArray, batch: FloatArray, average: str) -> FloatArray:
    if average == "batch":
        return batch
    return RUNNING_USAGE_DECAY * running + (1.0 - RUNNING_USAGE_DECAY) * batch


def _cap_norms(planes: Planes, largest: float | None) -> Planes:
    """Scale down every weight vector that is longer than ``largest``."""
    if largest is None:
        return planes
    norms = np.linalg.norm(planes.weights, axis=1, keepdims=True)
    shrink = np.minimum(1.0, largest / np.maximum(norms, np.finfo(float).tiny))
    return replace(planes, weights=planes.weights * shrink)
