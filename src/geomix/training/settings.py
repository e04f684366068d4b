"""Settings: every knob of training in one frozen, checked value.

``Settings()`` is our default; ``Settings(**PAPER)`` is the paper's recipe (appendix,
"Training hyperparameters"). The estimator's parameters carry the same names and meanings.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomix.errors import InvalidParameterError

SHARPNESS_RANGE = (1e-6, 1e6)
LIFTS = ("linear", "spline", "fourier")
MOST_KNOTS = 248  # a column has at most 256 bins, and needs some between its knots

# The paper's recipe. What it leaves open is settled here: learning rate 0.01, usage
# floor 0.01, gradient norm clipped at 5, at most 200 epochs, 256 frequencies.
PAPER: Mapping[str, Any] = {
    "n_planes": "silhouette",
    "max_planes": 4,
    "lift": ("linear", "fourier"),
    "n_knots": 64,
    "n_frequencies": 256,
    "gamma": "auto",
    "orthogonal": False,
    "standardize": True,
    "pca": "auto",
    "sharpness": 6.0,
    "sharpness_start": 3.0,
    "l2": 1e-4,
    "shrink_to_mean": 0.0,
    "adaptive_penalty": False,
    "usage_beta": 0.5,
    "usage_delta": 0.01,
    "usage_average": "batch",
    "label_smoothing": 0.02,
    "correct_prior": False,
    "init": "auto",
    "solver": "adam",
    "learning_rate": 0.01,
    "schedule": "cosine",
    "batch_size": 256,
    "max_iter": 200,
    "tol": 1e-5,
    "clip_norm": 5.0,
    "max_weight_norm": None,
    "validation_fraction": 0.2,
    "early_stopping": "plain",
    "n_iter_no_change": 12,
    "calibrate": True,
    "refit": False,
    "n_members": 1,
    "time_limit": None,
    "monotonic_cst": None,
}


def _refuse(name: str, value: object, expected: str) -> None:
    raise InvalidParameterError(f"Got {name}={reprlib.repr(value)}; expected {expected}.")


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def _is_int(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


@dataclass(frozen=True)
class Settings:
    """How a model is trained. See ``GeometricMixtureClassifier`` for what each knob does."""

    n_planes: Any = "auto"
    max_planes: int = 32
    lift: Any = "auto"
    n_knots: Any = "auto"
    n_frequencies: Any = "auto"
    gamma: Any = "auto"
    orthogonal: bool = True
    standardize: bool = True
    pca: Any = "auto"
    sharpness: float = 6.0
    sharpness_start: float = 3.0
    l2: Any = "auto"
    shrink_to_mean: Any = "auto"
    adaptive_penalty: Any = "auto"
    usage_beta: float = 0.5
    usage_delta: float = 0.01
    usage_average: str = "batch"
    label_smoothing: float = 0.02
    correct_prior: bool = False
    init: str = "auto"
    solver: str = "auto"
    learning_rate: float = 0.01
    schedule: str = "cosine"
    batch_size: int = 256
    max_iter: int = 300
    tol: float = 1e-5
    clip_norm: float | None = 5.0
    max_weight_norm: float | None = None
    validation_fraction: float = 0.2
    early_stopping: str = "auto"
    n_iter_no_change: int = 12
    calibrate: bool = True
    refit: bool = True
    n_members: Any = "auto"
    time_limit: float | None = None
    monotonic_cst: Any = None

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_monotone()
        self._check_planes()
        self._check_counts()
        self._check_numbers()
        self._check_axes()
        self._check_switches()

    @property
    def lifts(self) -> tuple[str, ...]:
        """The lifts to choose from, simple ones first."""
        lift: tuple[str, ...] = (self.lift,) if isinstance(self.lift, str) else self.lift
        lift = LIFTS if lift == ("auto",) else lift
        # Fourier planes have no slope along a column that could be kept.
        return (
            lift if self.monotonic_cst is None else tuple(one for one in lift if one != "fourier")
        )

    def _check_choices(self) -> None:
        lift = self.lift
        several = isinstance(lift, (tuple, list)) and all(isinstance(one, str) for one in lift)
        if not (_is_auto(lift) or (isinstance(lift, str) and lift in LIFTS)) and not (
            several and lift and set(lift) <= set(LIFTS)
        ):
            names = ", ".join(map(repr, ("auto", *LIFTS)))
            _refuse("lift", lift, f"one of {names}, or a tuple of some of the last three")
        if several:
            self._set("lift", tuple(one for one in LIFTS if one in lift))
        for name, choices in {
            "usage_average": ("batch", "running"),
            "init": ("auto", "kmeans", "logistic", "random"),
            "solver": ("auto", "adam", "lbfgs"),
            "early_stopping": ("auto", "calibrated", "plain", "off"),
            "schedule": ("cosine", "exponential", "constant"),
        }.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                _refuse(name, value, "one of " + ", ".join(map(repr, choices)))

    def _check_monotone(self) -> None:
        if self.monotonic_cst is None:
            return
        if not isinstance(self.monotonic_cst, Mapping) or not self.monotonic_cst:
            expected = "None, or a dict such as {'dose': {'toxic': 1}}"
            _refuse("monotonic_cst", self.monotonic_cst, expected)
        for name, choices, remedy in (
            ("lift", ("fourier", ("fourier",)), "lift='linear', 'spline' or 'auto'"),
            ("solver", ("adam",), "solver='lbfgs' or 'auto'"),
        ):
            if getattr(self, name) in choices:
                _refuse(name, getattr(self, name), f"{remedy} with monotone columns")
        if self.pca is not None and not _is_auto(self.pca):
            _refuse("pca", self.pca, "None or 'auto' with monotone columns, which are not rotated")
        if self.max_weight_norm is not None:
            expected = "None with monotone columns, whose order it would break"
            _refuse("max_weight_norm", self.max_weight_norm, expected)

    def _check_planes(self) -> None:
        value = self.n_planes
        counts = list(value.values()) if isinstance(value, Mapping) else [value]
        if isinstance(value, str) and value in ("auto", "silhouette"):
            return
        if not counts or not all(_is_int(count) and count >= 1 for count in counts):
            expected = "an integer of at least 1, or a dict of class label to such an integer"
            _refuse("n_planes", value, f'"auto", "silhouette", {expected}')

    def _check_counts(self) -> None:
        may_be_auto = ("n_frequencies", "n_members")
        for name in ("max_planes", "batch_size", "max_iter", "n_iter_no_change", *may_be_auto):
            value = getattr(self, name)
            if name in may_be_auto and _is_auto(value):
                continue
            if not _is_int(value) or value < 1:
                auto = '"auto" or ' if name in may_be_auto else ""
                _refuse(name, value, auto + "an integer of at least 1")
            self._set(name, int(value))
        if _is_auto(self.n_knots):
            return
        if not _is_int(self.n_knots) or not 2 <= self.n_knots <= MOST_KNOTS:
            _refuse("n_knots", self.n_knots, f'"auto" or an integer between 2 and {MOST_KNOTS}')
        self._set("n_knots", int(self.n_knots))

    def _check_numbers(self) -> None:
        between = "a number between {} and {}"
        for name in ("sharpness", "sharpness_start"):
            self._check_real(name, *SHARPNESS_RANGE, between.format(*SHARPNESS_RANGE))
        if not _is_auto(self.l2):
            self._check_real("l2", 0.0, 1e6, '"auto" or ' + between.format(0, 1e6))
        if not _is_auto(self.shrink_to_mean):
            self._check_real("shrink_to_mean", 0.0, 0.999, '"auto" or ' + between.format(0, 0.999))
        if not _is_auto(self.gamma):
            self._check_real("gamma", 1e-300, 1e300, '"auto" or ' + between.format(1e-300, 1e300))
        self._check_real("usage_beta", 0.0, 1e6, between.format(0, 1e6))
        self._check_real("usage_delta", 1e-12, 1e6, between.format(1e-12, 1e6))
        self._check_real("label_smoothing", 0.0, 0.9, between.format(0, 0.9))
        self._check_real("learning_rate", 1e-12, 1e6, between.format(1e-12, 1e6))
        self._check_real("tol", 0.0, 1.0, between.format(0, 1))
        self._check_real("validation_fraction", 0.01, 0.9, between.format(0.01, 0.9))
        if self.time_limit is not None:
            self._check_real("time_limit", 1e-3, 1e9, "None or " + between.format(0.001, 1e9))
        for name in ("clip_norm", "max_weight_norm"):
            if getattr(self, name) is not None:
                self._check_real(name, 1e-12, 1e100, "None or " + between.format(1e-12, 1e100))

    def _check_axes(self) -> None:
        if self.pca is None or _is_auto(self.pca):
            return
        expected = '"auto", None, a share of variance up to 1.0, or an integer of at least 1'
        if not _is_int(self.pca):
            self._check_real("pca", 1e-6, 1.0, expected)
        elif self.pca < 1:
            _refuse("pca", self.pca, expected)
        else:
            self._set("pca", int(self.pca))

    def _check_real(self, name: str, low: float, high: float, expected: str) -> None:
        value = getattr(self, name)
        # As a float first: comparing a float32 with 1e300 overflows.
        if not _is_real(value) or not low <= float(value) <= high:
            _refuse(name, value, expected)
        self._set(name, float(value))

    def _check_switches(self) -> None:
        for name in ("orthogonal", "standardize", "correct_prior", "calibrate", "refit"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                _refuse(name, value, "True or False")
            self._set(name, bool(value))
        if not _is_auto(self.adaptive_penalty):
            if not isinstance(self.adaptive_penalty, (bool, np.bool_)):
                _refuse("adaptive_penalty", self.adaptive_penalty, '"auto", True or False')
            self._set("adaptive_penalty", bool(self.adaptive_penalty))

    def _set(self, name: str, value: object) -> None:
        # The one moment at which settings change: a float32, a NumPy integer or a fraction
        # becomes the plain number that the rest of the code counts on.
        object.__setattr__(self, name, value)
