"""Adam on one flat array, with clipping of the gradient's norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class AdamState:
    """First and second moment of the gradient, and how many steps made them."""

    mean: FloatArray
    square: FloatArray
    n_steps: int


def adam_start(n_numbers: int) -> AdamState:
    return AdamState(np.zeros(n_numbers), np.zeros(n_numbers), 0)


def adam_step(
    state: AdamState,
    vector: FloatArray,
    gradient: FloatArray,
    learning_rate: float | FloatArray,
    mean_decay: float = 0.9,
    square_decay: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[AdamState, FloatArray]:
    """One step of Adam (Kingma and Ba, 2015): the new state and the new vector."""
    n_steps = state.n_steps + 1
    mean = mean_decay * state.mean + (1.0 - mean_decay) * gradient
    square = square_decay * state.square + (1.0 - square_decay) * gradient**2
    unbiased_mean = mean / (1.0 - mean_decay**n_steps)
    unbiased_square = square / (1.0 - square_decay**n_steps)
    moved = vector - learning_rate * unbiased_mean / (np.sqrt(unbiased_square) + epsilon)
    return AdamState(mean, square, n_steps), moved


def clip_norm(gradient: FloatArray, largest: float | None) -> FloatArray:
    """Scale the gradient down so that its Euclidean norm is at most ``largest``."""
    if largest is None:
        return gradient
    norm = float(np.linalg.norm(gradient))
    return gradient * (largest / norm) if norm > largest else gradient
