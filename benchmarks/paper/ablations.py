"""The paper's recipe with one thing changed, once as it is and once over the plain columns.

The recipe chooses its lift by held-out likelihood. Under a Fourier lift the planes have little
left to do, so every change is also tried with ``lift="linear"``, where they carry the model.
"""

from __future__ import annotations

from typing import Any

RECIPE = "the recipe"
CHANGES: dict[str, dict[str, Any]] = {
    RECIPE: {},
    "no annealing": {"sharpness_start": 6.0},
    "no usage-aware L2": {"usage_beta": 0.0},
    "one plane per class": {"n_planes": 1},
    "two planes per class": {"n_planes": 2},
    "four planes per class": {"n_planes": 4},
    "k-means start": {"init": "kmeans"},
    "logistic start": {"init": "logistic"},
    "random start": {"init": "random"},
    "no label smoothing": {"label_smoothing": 0.0},
}
EITHER, LINEAR, FOURIER = "either lift", "linear lift", "Fourier lift"
LIFTS: dict[str, dict[str, Any]] = {
    EITHER: {},
    LINEAR: {"lift": "linear"},
    FOURIER: {"lift": "fourier"},
}
# Fourier on is one more row of the table, Fourier off is the recipe over the plain columns.
SERIES = {EITHER: tuple(CHANGES), LINEAR: tuple(CHANGES), FOURIER: (RECIPE,)}


def key(change: str, lift: str) -> str:
    return f"{change}, {lift}"


VARIANTS = {
    key(change, lift): {**LIFTS[lift], **CHANGES[change]}
    for lift, changes in SERIES.items()
    for change in changes
}
