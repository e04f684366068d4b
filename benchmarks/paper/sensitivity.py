"""The paper's recipe with one number moved: the sweeps of its appendix.

Planes are moved around the automatic choice by the cap on it and by fixed numbers.
"""

from __future__ import annotations

from typing import Any

SWEEPS: dict[str, dict[str, dict[str, Any]]] = {
    "final sharpness": {f"{k:g}": {"sharpness": k} for k in (2.0, 4.0, 6.0, 8.0)},
    "lambda": {f"{l2:.0e}": {"l2": l2} for l2 in (1e-5, 1e-4, 1e-3)},
    "beta": {f"{beta:g}": {"usage_beta": beta} for beta in (0.0, 0.5, 1.0)},
    "planes": {
        "auto, at most 2": {"max_planes": 2},
        "auto, at most 4": {},
        "auto, at most 6": {"max_planes": 6},
        "3 each": {"n_planes": 3},
        "6 each": {"n_planes": 6, "max_planes": 6},
    },
}


def key(sweep: str, value: str) -> str:
    return f"{sweep} {value}"


VARIANTS = {
    key(sweep, value): changes
    for sweep, values in SWEEPS.items()
    for value, changes in values.items()
}
