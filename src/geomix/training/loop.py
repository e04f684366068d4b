"""The loop: rows -> kernel -> solver, while the pooling sharpens.

``train_planes`` improves given planes on lifted rows (``rows.X`` holds phi), by L-BFGS
(``training/lbfgs_stages.py``), by Adam (``training/adam_epochs.py``), or by both on very many
binned rows (``training/many_rows.py``). All report every iteration to a ``Run``
(``training/run.py``), which keeps the records and the best planes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from geomix.core.ordered_weights import Order
from geomix.core.planes import Planes
from geomix.core.row_sums import Sums
from geomix.core.spline import Binned
from geomix.table.row_views import PickedRows, numbers
from geomix.training.adam_epochs import train_by_epochs
from geomix.training.lbfgs_stages import train_by_stages
from geomix.training.many_rows import is_for_many_rows, train_on_many_rows
from geomix.training.rows import Rows
from geomix.training.run import OnIteration, Run, Trained
from geomix.training.settings import Settings

# ``solver="auto"``: full batches pay off up to this many multiply-adds per pass.
LARGEST_FULL_BATCH = 3e8


def train_planes(
    planes: Planes,
    train: Rows,
    valid: Rows | None,
    settings: Settings,
    l2: float,
    shrink_to_mean: float,
    draws: Callable[[], np.random.Generator],
    watch: OnIteration | None,
    phase: str = "fit",
    max_iter: int | None = None,
    n_before: int = 0,
    order: Order | None = None,
) -> Trained:
    """Train by the settings' solver; ``solver="auto"`` picks by the size of the work.

    ``n_before`` counts the iterations that the given planes have had already: with any, the
    pooling starts at its final sharpness. ``order`` is the order of the weights under
    monotone constraints, which only L-BFGS keeps. ``draws`` makes the random numbers of the
    batches: L-BFGS needs none, and making a generator takes as long as some iterations.
    """
    most = max_iter or settings.max_iter
    run = Run(
        lambda: train.prepared,
        valid,
        settings,
        l2,
        shrink_to_mean,
        watch,
        phase,
        most,
        n_before,
        order=order,
    )
    if order is not None:
        return train_by_stages(order.feasible(planes), run)
    if settings.solver == "auto" and is_for_many_rows(planes, train, run):
        return train_on_many_rows(planes, run, train, draws())
    if uses_lbfgs(settings, train, planes.n_planes):
        return train_by_stages(planes, run)
    if isinstance(train.X, PickedRows):
        train = replace(train, X=numbers(train.X))
    return train_by_epochs(planes, run, train, draws())


def uses_lbfgs(settings: Settings, train: Rows, n_planes: int) -> bool:
    """Whether that many planes are trained by L-BFGS on full batches, and not by Adam."""
    n_inputs = train.X.shape[1]
    if n_inputs == 0:  # only biases: they start at their optimum, which Adam would leave
        return True
    if settings.solver != "auto":
        return settings.solver == "lbfgs"
    # Binned rows are looked up, not multiplied: their passes are cheap.
    is_small = len(train) * n_planes * n_inputs <= LARGEST_FULL_BATCH
    return is_small or isinstance(train.X, Binned)


def train_on_sums(
    planes: Planes,
    sums: Sums,
    settings: Settings,
    l2: float,
    shrink_to_mean: float,
    watch: OnIteration | None,
    max_iter: int | None = None,
    n_before: int = 0,
) -> Trained:
    """Train by L-BFGS on rows that only return sums, such as rows out of core.

    A pass is expensive, so training ends when an iteration gains less than ``VALUE_TOL_PER_TOL``
    times ``tol``.
    """
    most = max_iter or settings.max_iter
    run = Run(
        lambda: sums,
        None,
        settings,
        l2,
        shrink_to_mean,
        watch,
        "fit",
        most,
        n_before,
        out_of_core=True,
    )
    return train_by_stages(planes, run)
