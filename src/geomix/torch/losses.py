"""Losses that are aware of calibration, for networks with any head.

    focal         mean of -(1 - p_y)^g log p_y              g = 0 is the cross-entropy
    soft ECE      sum_b share_b |accuracy_b - confidence_b| over bins b of the top probability

A row belongs to every bin, by a softmax of its distance to the bin's centre. So the soft ECE has a
gradient, unlike the ECE with hard bins. Add a multiple of it to the cross-entropy; alone it is
zero for a model that predicts the class shares.
"""

from __future__ import annotations

from typing import Any

import torch

# Rows that lie this share of a bin's width beside its centre have a membership lower by a factor e.
SOFTNESS = 0.25


def focal_loss(scores: Any, y: Any, gamma: float = 2.0) -> Any:
    """Mean focal loss of class scores (n_rows, n_classes) and class codes (n_rows,)."""
    if not gamma >= 0.0:
        raise ValueError(f"Got gamma={gamma!r}; expected a number of at least 0.")
    log_p = torch.log_softmax(scores, dim=-1).gather(-1, y[:, None])[:, 0]
    return -((1.0 - log_p.exp()) ** gamma * log_p).mean()


def soft_calibration_error(scores: Any, y: Any, n_bins: int = 15) -> Any:
    """Soft ECE of class scores (n_rows, n_classes) and class codes (n_rows,), from 0 to 1.

    Bins lie between 1 / n_classes and 1, where the top probability can be.
    """
    if not isinstance(n_bins, int) or n_bins < 1:
        raise ValueError(f"Got n_bins={n_bins!r}; expected an integer of at least 1.")
    confidence, predicted = torch.softmax(scores, dim=-1).max(dim=-1)
    correct = (predicted == y).to(scores.dtype)
    lowest = 1.0 / scores.shape[-1]
    width = (1.0 - lowest) / n_bins
    steps = torch.arange(n_bins, dtype=scores.dtype, device=scores.device)
    centres = lowest + (steps + 0.5) * width
    apart = (confidence[:, None] - centres) / width
    member = torch.softmax(-(apart**2) / SOFTNESS, dim=-1)
    gaps = (member * (correct - confidence)[:, None]).mean(dim=0)
    return gaps.abs().sum()
