"""History: what happened during a fit, for people to read and for tests to check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """One epoch of Adam or one iteration of L-BFGS.

    ``loss`` is the penalised training objective. ``valid_loss`` is the cross-entropy of the
    held-out rows at the final sharpness, after temperature scaling unless
    ``early_stopping="plain"``; None where they were not asked.
    """

    phase: str
    iteration: int
    sharpness: float
    loss: float
    valid_loss: float | None = None
    learning_rate: float | None = None


@dataclass(frozen=True)
class Trial:
    """One candidate that was measured on held-out rows, and how it did.

    ``valid_loss`` is the negative log-likelihood after temperature scaling.
    """

    lift: str
    n_planes: int
    gamma_factor: float | None
    l2: float
    relief: float
    valid_loss: float
    temperature: float
    n_iter: int
    chosen: bool = False


@dataclass
class History:
    """Steps of the final training, candidates tried before it, and notes on every fallback.

    l2, relief : the penalty of the final training.
    """

    records: list[Record] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""
    init: str = ""
    l2: float = 0.0
    relief: float = 0.0

    @property
    def n_iter(self) -> int:
        return len(self.records)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON or ``pandas.DataFrame``."""
        return asdict(self)
