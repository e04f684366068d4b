"""``LinearChain``: transitions between the classes of neighbouring positions of a sequence.

    score(y) = sum_t s_t[y_t] + sum_t A[y_(t-1), y_t] + first[y_1]
    loss     = log sum over all y' of exp(score(y')) - score(y)

s are the class scores of any head, such as ``GeometricMixtureHead``: (n_sequences, length,
n_classes). The sum over all sequences is the forward algorithm, the best one is Viterbi's, both in
length x n_classes^2 steps. With A = 0 the loss is the cross-entropy of each position.
"""

from __future__ import annotations

from typing import Any

import torch


class LinearChain(torch.nn.Module):
    """Transition scores A and scores of the first class, over the class scores of a head.

    Parameters
    ----------
    n_classes : number of classes
    device, dtype : of the parameters

    Examples
    --------
    >>> chain = LinearChain(n_classes=3)
    >>> scores = torch.zeros(2, 7, 3)  # two sequences of seven positions
    >>> chain.predict(scores).shape
    torch.Size([2, 7])
    """

    def __init__(self, n_classes: int, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if not isinstance(n_classes, int) or n_classes < 2:
            raise ValueError(f"Got n_classes={n_classes!r}; expected an integer of at least 2.")
        self.n_classes = n_classes
        placed = {"device": device, "dtype": dtype}
        self.transitions = torch.nn.Parameter(torch.zeros(n_classes, n_classes, **placed))
        self.first = torch.nn.Parameter(torch.zeros(n_classes, **placed))

    def forward(self, scores: Any, y: Any, mask: Any = None) -> Any:
        """Mean negative log-likelihood of a position, for class codes y (n_sequences, length).

        mask : (n_sequences, length), False after the end of a shorter sequence; None: no such.
        """
        mask = self._checked(scores, mask, y)
        lengths = mask.sum()
        return (self._log_sum(scores, mask) - self._score(scores, y, mask)).sum() / lengths

    def predict(self, scores: Any, mask: Any = None) -> Any:
        """Class codes of the best sequence, (n_sequences, length); 0 after the end."""
        mask = self._checked(scores, mask)
        best, back = self.first + scores[:, 0], []
        stay = torch.arange(self.n_classes, device=scores.device).expand_as(best)
        for t in range(1, scores.shape[1]):
            top, came_from = (best[:, :, None] + self.transitions).max(dim=1)
            now = mask[:, t, None]
            best = torch.where(now, top + scores[:, t], best)
            back.append(torch.where(now, came_from, stay))
        path = [best.argmax(dim=1)]
        for came_from in reversed(back):
            path.append(came_from.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], dim=1) * mask

    def marginals(self, scores: Any, mask: Any = None) -> Any:
        """Probability of each class at each position given the whole sequence; sums to one.

        They are the gradient of the log of the sum over sequences by the scores.
        """
        mask = self._checked(scores, mask)
        with torch.enable_grad():
            free = scores.detach().requires_grad_()
            total = self._log_sum(free, mask).sum()
            (found,) = torch.autograd.grad(total, free)
        return found

    def _log_sum(self, scores: Any, mask: Any) -> Any:
        total = self.first + scores[:, 0]
        for t in range(1, scores.shape[1]):
            step = torch.logsumexp(total[:, :, None] + self.transitions, dim=1) + scores[:, t]
            total = torch.where(mask[:, t, None], step, total)
        return torch.logsumexp(total, dim=1)

    def _score(self, scores: Any, y: Any, mask: Any) -> Any:
        own = (scores.gather(2, y[:, :, None])[:, :, 0] * mask).sum(dim=1)
        moves = (self.transitions[y[:, :-1], y[:, 1:]] * mask[:, 1:]).sum(dim=1)
        return own + moves + self.first[y[:, 0]]

    def _checked(self, scores: Any, mask: Any, y: Any = None) -> Any:
        """The mask, made where there is none."""
        if scores.ndim != 3 or scores.shape[2] != self.n_classes or scores.shape[1] == 0:
            raise ValueError(
                f"Got scores of shape {tuple(scores.shape)}; expected (n_sequences, length, "
                f"{self.n_classes}) with at least one position."
            )
        for name, other in {"y": y, "mask": mask}.items():
            if other is not None and other.shape != scores.shape[:2]:
                raise ValueError(
                    f"Got {name} of shape {tuple(other.shape)}; expected {tuple(scores.shape[:2])}."
                )
        if y is not None and (y.min() < 0 or y.max() >= self.n_classes):
            raise ValueError(f"y has codes that are not from 0 to {self.n_classes - 1}.")
        if mask is None:
            return torch.ones(scores.shape[:2], dtype=torch.bool, device=scores.device)
        if (mask[:, 1:] & ~mask[:, :-1]).any() or not mask[:, 0].all():
            raise ValueError("mask has a gap; expected True up to the end of each sequence.")
        return mask
