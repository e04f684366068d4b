"""Settings: every parameter of a fit in one frozen, checked value.

The estimator makes it of its own parameters and of the ``Recipe`` in ``advanced``; the code that
trains reads nothing else. ``Settings(**PAPER)`` is the paper's recipe (appendix, "Training
hyperparameters").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.training.parameter_checks import LIFTS, checked, is_auto, refuse
from geomix.training.recipe import Recipe

# ``max_planes="auto"``: what a person reads, and what accuracy gains from, by preset and lift.
MOST_PLANES = {
    "readable": {"linear": 12, "spline": 4, "fourier": 4},
    "accurate": {"linear": 12, "spline": 32, "fourier": 4},
    "fast": {"linear": 1, "spline": 1, "fourier": 1},
}
# ``max_interactions="auto"``: more pairs than this nobody reads.
MOST_PAIRS = 10

# The paper's recipe. What it leaves open is fixed here: learning rate 0.01, usage floor 0.01,
# gradient norm clipped at 5, at most 200 epochs, 256 frequencies, gamma a multiple of one over the
# median squared distance, a Gaussian as the null of the silhouette (``one_cluster``), the scale of
# k-means planes by the smoothed loss of the training rows (``initial_planes``).
# It departs from the paper in three things (docs/benchmarks/paper.md): the normal prior on log T
# (``calibration.PRIOR_SCALE``), Fourier features in the coordinates of a basis where their rows
# span less than all of them (``features``), and features scaled by sqrt(1 / D) without a phase.
PAPER: Mapping[str, Any] = {
    "n_planes": "silhouette",
    "preset": "accurate",
    "max_planes": 4,
    "lift": ("linear", "fourier"),
    "max_interactions": 0,
    "l2": 1e-4,
    "shrink_to_mean": 0.0,
    "adaptive_penalty": False,
    "n_members": 1,
    "correct_prior": False,
    "monotonic_cst": None,
    "max_iter": 200,
    "early_stopping": "plain",
    "n_iter_no_change": 12,
    "validation_fraction": 0.2,
    "time_limit": None,
    "n_jobs": None,
    "n_knots": 64,
    "n_frequencies": 256,
    "gamma": "auto",
    "orthogonal": False,
    "learn_lift": "off",
    "standardize": True,
    "pca": "auto",
    "sharpness": 6.0,
    "sharpness_start": 3.0,
    "usage_beta": 0.5,
    "usage_delta": 0.01,
    "usage_average": "batch",
    "label_smoothing": 0.02,
    "init": "auto",
    "solver": "adam",
    "learning_rate": 0.01,
    "schedule": "cosine",
    "batch_size": 256,
    "tol": 1e-5,
    "clip_norm": 5.0,
    "max_weight_norm": None,
    "calibrate": True,
    "refit": False,
}


@dataclass(frozen=True)
class Settings:
    """How a model is trained: the estimator's parameters, then those of ``Recipe``."""

    n_planes: Any = "auto"
    preset: str = "readable"
    max_planes: Any = "auto"
    lift: Any = "auto"
    max_interactions: Any = "auto"
    l2: Any = "auto"
    shrink_to_mean: Any = "auto"
    adaptive_penalty: Any = "auto"
    n_members: Any = "auto"
    correct_prior: bool = False
    monotonic_cst: Any = None
    max_iter: int = 300
    early_stopping: str = "auto"
    n_iter_no_change: int = 12
    validation_fraction: float = 0.2
    time_limit: float | None = None
    n_jobs: int | None = None

    n_knots: Any = Recipe.n_knots
    n_frequencies: Any = Recipe.n_frequencies
    gamma: Any = Recipe.gamma
    orthogonal: bool = Recipe.orthogonal
    learn_lift: str = Recipe.learn_lift
    standardize: bool = Recipe.standardize
    pca: Any = Recipe.pca
    sharpness: float = Recipe.sharpness
    sharpness_start: float = Recipe.sharpness_start
    usage_beta: float = Recipe.usage_beta
    usage_delta: float = Recipe.usage_delta
    usage_average: str = Recipe.usage_average
    label_smoothing: float = Recipe.label_smoothing
    init: str = Recipe.init
    solver: str = Recipe.solver
    learning_rate: float = Recipe.learning_rate
    schedule: str = Recipe.schedule
    batch_size: int = Recipe.batch_size
    tol: float = Recipe.tol
    clip_norm: float | None = Recipe.clip_norm
    max_weight_norm: float | None = Recipe.max_weight_norm
    calibrate: bool = Recipe.calibrate
    refit: bool = Recipe.refit

    def __post_init__(self) -> None:
        # The one moment at which settings change: values become plain Python numbers.
        for name, value in checked(vars(self)).items():
            object.__setattr__(self, name, value)
        self._check_preset()
        if self.is_monotone:
            self._check_monotone()

    def most_planes(self, lift: str) -> int:
        """Most planes of a class under a lift."""
        if self.max_planes != "auto":
            return int(self.max_planes)
        return MOST_PLANES[self.preset].get(lift, 1)

    @property
    def most_pairs(self) -> int:
        """Most pairs of columns with a table of their own."""
        return MOST_PAIRS if self.max_interactions == "auto" else int(self.max_interactions)

    @property
    def lifts(self) -> tuple[str, ...]:
        """The lifts to choose from, simple ones first."""
        lift: tuple[str, ...] = (self.lift,) if isinstance(self.lift, str) else self.lift
        lift = LIFTS if lift == ("auto",) else lift
        # Fourier planes have no slope along a column that could be kept.
        return tuple(one for one in lift if one != "fourier") if self.is_monotone else lift

    @property
    def is_monotone(self) -> bool:
        """Whether any column has a direction; 0 is none."""
        wanted = self.monotonic_cst
        if wanted is None:
            return False
        each = wanted.values() if isinstance(wanted, Mapping) else wanted
        signs = (
            list(one.values()) if isinstance(one, Mapping) else np.ravel(one).tolist()
            for one in each
        )
        return any(sign != 0 for some in signs for sign in some)

    def _check_preset(self) -> None:
        if self.preset != "accurate" and not is_auto(self.n_members) and self.n_members > 1:
            expected = f'"auto" or 1 with preset={self.preset!r}, or preset="accurate"'
            refuse("n_members", self.n_members, expected)

    def _check_monotone(self) -> None:
        for name, choices, remedy in (
            ("lift", ("fourier", ("fourier",)), "lift='linear', 'spline' or 'auto'"),
            ("solver", ("adam",), "solver='lbfgs' or 'auto'"),
        ):
            if getattr(self, name) in choices:
                refuse(name, getattr(self, name), f"{remedy} with monotone columns")
        if self.pca is not None and not is_auto(self.pca):
            refuse("pca", self.pca, "None or 'auto' with monotone columns, which are not rotated")
        if self.max_weight_norm is not None:
            expected = "None with monotone columns, whose order it would break"
            refuse("max_weight_norm", self.max_weight_norm, expected)
