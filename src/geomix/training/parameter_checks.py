"""What each parameter of a fit may be: a table of kinds by name.

``checked`` returns every value as the plain Python number, bool, text or tuple that the rest of
the code counts on, or raises ``InvalidParameterError`` with one sentence: the name, the value, and
what was expected. Contradictions between parameters are found in ``settings``.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from geomix.core.spline import MOST_KNOTS
from geomix.errors import InvalidParameterError

PRESETS = ("readable", "accurate", "fast")
LIFTS = ("linear", "spline", "fourier")
SHARPNESS_RANGE = (1e-6, 1e6)
REFUSED = object()  # what ``Kind.plain`` makes of a value that is not of the kind


@dataclass(frozen=True)
class Kind:
    """A kind of value: how a message describes it, and how a value becomes plain.

    plain : value -> the plain value, or ``REFUSED``
    """

    expected: str
    plain: Callable[[Any], Any]


def refuse(name: str, value: object, expected: str) -> NoReturn:
    """Raise the one sentence about a value that a parameter cannot have."""
    raise InvalidParameterError(f"Got {name}={reprlib.repr(value)}; expected {expected}.")


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name as plain values; raises for the first that cannot be used."""
    return {name: _checked(name, value) for name, value in values.items()}


def _checked(name: str, value: Any) -> Any:
    kind = KINDS[name]
    plain = kind.plain(value)
    if plain is REFUSED:
        refuse(name, value, kind.expected)
    return plain


def is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def is_sign(value: object) -> bool:
    """Whether a value is -1 (falls), 0 (free) or 1 (rises)."""
    return _is_int(value) and value in (-1, 0, 1)


def _is_int(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _choice(*choices: str) -> Kind:
    return Kind(
        "one of " + ", ".join(map(repr, choices)),
        lambda value: value if isinstance(value, str) and value in choices else REFUSED,
    )


def _count(least: int = 1, most: int | None = None) -> Kind:
    expected = f"of at least {least}" if most is None else f"between {least} and {most}"

    def plain(value: Any) -> Any:
        is_one = _is_int(value) and value >= least and (most is None or value <= most)
        return int(value) if is_one else REFUSED

    return Kind(f"an integer {expected}", plain)


def _number(low: float, high: float) -> Kind:
    def plain(value: Any) -> Any:
        # As a float first: comparing a float32 with 1e300 overflows.
        return float(value) if _is_real(value) and low <= float(value) <= high else REFUSED

    ends = (str(int(end) if end in (0.0, 1.0) else end) for end in (low, high))
    return Kind("a number between {} and {}".format(*ends), plain)


def _auto_or(kind: Kind) -> Kind:
    return Kind(
        f'"auto" or {kind.expected}',
        lambda value: "auto" if is_auto(value) else kind.plain(value),
    )


def _none_or(kind: Kind) -> Kind:
    return Kind(
        f"None or {kind.expected}", lambda value: None if value is None else kind.plain(value)
    )


def _plain_switch(value: Any) -> Any:
    return bool(value) if isinstance(value, (bool, np.bool_)) else REFUSED


def _plain_planes(value: Any) -> Any:
    if isinstance(value, str):
        return value if value in ("auto", "silhouette") else REFUSED
    counts = list(value.values()) if isinstance(value, Mapping) else [value]
    are_counts = counts and all(_is_int(count) and count >= 1 for count in counts)
    return value if are_counts else REFUSED


def _plain_lift(value: Any) -> Any:
    """One name, or the names of a tuple with simple lifts first."""
    if isinstance(value, str):
        return value if value in ("auto", *LIFTS) else REFUSED
    if not isinstance(value, tuple) or not value:
        return REFUSED
    are_lifts = all(isinstance(one, str) and one in LIFTS for one in value)
    return tuple(one for one in LIFTS if one in value) if are_lifts else REFUSED


def _plain_axes(value: Any) -> Any:
    if value is None or is_auto(value):
        return value
    if _is_int(value):
        return int(value) if value >= 1 else REFUSED
    return float(value) if _is_real(value) and 1e-6 <= float(value) <= 1.0 else REFUSED


def _plain_directions(value: Any) -> Any:
    """None, a dict that is not empty, or one sign for each column as a tuple."""
    if value is None or (isinstance(value, Mapping) and value):
        return value
    signs = value.tolist() if isinstance(value, np.ndarray) else value
    are_signs = isinstance(signs, (list, tuple)) and signs and all(map(is_sign, signs))
    return tuple(int(sign) for sign in signs) if are_signs else REFUSED


def _plain_jobs(value: Any) -> Any:
    return int(value) if _is_int(value) and value != 0 else REFUSED


SWITCH = Kind("True or False", _plain_switch)
PLANES = Kind(
    '"auto", "silhouette", an integer of at least 1, or a dict of class label to such an integer',
    _plain_planes,
)
LIFT = Kind(
    f"one of {', '.join(map(repr, ('auto', *LIFTS)))}, or a tuple of some of the last three, "
    "such as ('linear', 'spline')",
    _plain_lift,
)
AXES = Kind('"auto", None, a share of variance up to 1.0, or an integer of at least 1', _plain_axes)
DIRECTIONS = Kind(
    "None, a dict such as {'dose': {'toxic': 1}}, or a list of -1, 0 and 1, one for each column",
    _plain_directions,
)
JOBS = Kind("an integer other than 0", _plain_jobs)

KINDS: Mapping[str, Kind] = {
    "n_planes": PLANES,
    "preset": _choice(*PRESETS),
    "max_planes": _auto_or(_count()),
    "lift": LIFT,
    "max_interactions": _auto_or(_count(0)),
    "l2": _auto_or(_number(0.0, 1e6)),
    "shrink_to_mean": _auto_or(_number(0.0, 0.999)),
    "adaptive_penalty": Kind('"auto", True or False', _auto_or(SWITCH).plain),
    "n_members": _auto_or(_count()),
    "correct_prior": SWITCH,
    "monotonic_cst": DIRECTIONS,
    "max_iter": _count(),
    "early_stopping": _choice("auto", "calibrated", "plain", "off"),
    "n_iter_no_change": _count(),
    "validation_fraction": _number(0.01, 0.9),
    "time_limit": _none_or(_number(1e-3, 1e9)),
    "n_jobs": _none_or(JOBS),
    "n_knots": _auto_or(_count(2, MOST_KNOTS)),
    "n_frequencies": _auto_or(_count()),
    "gamma": _auto_or(_number(1e-300, 1e300)),
    "orthogonal": SWITCH,
    "learn_lift": _choice("auto", "off", "scales", "frequencies"),
    "standardize": SWITCH,
    "pca": AXES,
    "sharpness": _number(*SHARPNESS_RANGE),
    "sharpness_start": _number(*SHARPNESS_RANGE),
    "usage_beta": _number(0.0, 1e6),
    "usage_delta": _number(1e-12, 1e6),
    "usage_average": _choice("batch", "running"),
    "label_smoothing": _number(0.0, 0.9),
    "init": _choice("auto", "kmeans", "logistic", "random"),
    "solver": _choice("auto", "adam", "lbfgs"),
    "learning_rate": _number(1e-12, 1e6),
    "schedule": _choice("cosine", "exponential", "constant"),
    "batch_size": _count(),
    "tol": _number(0.0, 1.0),
    "clip_norm": _none_or(_number(1e-12, 1e100)),
    "max_weight_norm": _none_or(_number(1e-12, 1e100)),
    "calibrate": SWITCH,
    "refit": SWITCH,
}
