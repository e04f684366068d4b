"""geomix with the preset "accurate", on the raw frame."""

from __future__ import annotations

from typing import Any

NAME = "geomix, accurate"
NEEDS = ("geomix", "sklearn")
EXPENSIVE = True


def fit(X: Any, y: Any, seed: int) -> tuple[Any, str]:
    from peers._geomix import fit_preset

    return fit_preset(X, y, seed, "accurate")
