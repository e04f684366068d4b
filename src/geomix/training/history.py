"""History: what happened during a fit, for people to read and for tests to check.

A ``Log`` collects it while the fit runs; a ``History`` is the finished, frozen record.
``training_facts`` are the few facts that a model keeps.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from geomix.table.printing import Facts, shortened, some
from geomix.training.choice import Choice
from geomix.training.settings import Settings


@dataclass(frozen=True)
class Record:
    """One epoch of Adam or one iteration of L-BFGS.

    ``loss`` is the penalised training objective. ``valid_loss`` is the cross-entropy of the
    held-out rows at the final sharpness, after temperature scaling unless
    ``early_stopping="plain"``; None where it was not computed. ``usage`` of each plane is the one
    in the penalty: of the epoch, or of the start of the stage. ``task`` is what a record of the
    choice belongs to: the family of models, and the share of the race that is done.
    """

    phase: str
    iteration: int
    sharpness: float
    loss: float
    valid_loss: float | None = None
    learning_rate: float | None = None
    usage: tuple[float, ...] | None = None
    task: str = ""


@dataclass(frozen=True)
class Trial:
    """One candidate that was measured on validation rows, in the order of the race.

    rung : of the race, from 0;  valid_loss : negative log-likelihood after temperature scaling;
    n_numbers : weights and biases;  n_rows : that it was trained on;  verdict : of its family,
    on its best candidate.
    """

    family: str
    rung: int
    lift: str
    n_planes: int
    n_pairs: int
    pair_penalty: float
    gamma_factor: float | None
    l2: float
    shrink_to_mean: float
    adaptive: bool
    learn_lift: str
    n_knots: int | None
    valid_loss: float
    valid_accuracy: float
    temperature: float
    n_numbers: int
    n_rows: int
    n_iter: int
    verdict: str = ""
    chosen: bool = False


CHOICE = 300  # characters of the choice, and of the first note, that a history shows of itself


@dataclass
class Log:
    """What a running fit has recorded so far; see ``History``."""

    trials: list[Trial] = field(default_factory=list)
    choice: Choice = field(default_factory=Choice)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class History:
    """Steps of the final training, candidates tried before it, the choice as a table, and notes on
    every fallback.

    l2, shrink_to_mean : the penalty of the final training.
    """

    records: tuple[Record, ...] = ()
    trials: tuple[Trial, ...] = ()
    choice: Choice = field(default_factory=Choice)
    notes: tuple[str, ...] = ()
    stopped: str = ""
    init: str = ""
    l2: float = 0.0
    shrink_to_mean: float = 0.0

    @property
    def n_iter(self) -> int:
        return len(self.records)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON or ``pandas.DataFrame``."""
        return asdict(self)

    def __repr__(self) -> str:
        return str(self._facts())

    def _repr_html_(self) -> str:
        return self._facts().to_html()

    def _facts(self) -> Facts:
        end = f", stopped by {self.stopped}" if self.stopped else ""
        facts = [("final training", f"{self.n_iter} iterations{end}")]
        facts += [("penalty", f"l2={self.l2:.4g}, shrink_to_mean={self.shrink_to_mean:.4g}")]
        facts += [("candidates tried", str(len(self.trials)))] if self.trials else []
        facts += [("choice", shortened(self.choice.sentence, CHOICE))] if self.choice else []
        facts += [("notes", shortened(some(self.notes, 1), CHOICE))] if self.notes else []
        return Facts("History", tuple(facts))


def warn_if_cut_short(history: History, max_iter: int) -> None:
    """Warn that L-BFGS ended at ``max_iter`` before it converged. Epochs of Adam are a schedule,
    and a model that won a race with the default limit was validated with that limit."""
    is_adam = any(record.learning_rate is not None for record in history.records[-1:])
    is_validated = len(history.trials) > 1 and max_iter >= Settings.max_iter
    is_cut_short = history.stopped == "max_iter" and history.n_iter >= max_iter
    if is_cut_short and not is_adam and not is_validated:
        warnings.warn(
            f"Training stopped at max_iter={max_iter} before it converged. Raise max_iter, or "
            "raise l2 if the classes can be separated.",
            ConvergenceWarning,
            stacklevel=4,
        )


def training_facts(
    history: History, n_rows: int, parameters: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """What a model remembers of its training: plain values, the same for the same fit.

    parameters : those that differ from ``defaults`` are kept.
    """
    set_by_hand = {
        name: _plain(value)
        for name, value in parameters.items()
        if not _is_default(value, defaults.get(name))
    }
    chosen = next((trial for trial in history.trials if trial.chosen), None)
    facts: dict[str, Any] = {
        "n_rows": n_rows,
        "n_iter": history.n_iter,
        "stopped": history.stopped,
        "init": history.init,
        "parameters": set_by_hand,
    }
    if chosen is not None:
        # The penalty of the final training: a trial on fewer rows has a larger one.
        facts["l2"], facts["valid_loss"] = _plain(history.l2), _plain(chosen.valid_loss)
    if history.choice:
        facts["choice"] = history.choice.as_lists()
    return facts


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _plain(value: Any) -> Any:
    """A parameter as a plain value; of an object its type, whose name does not change."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value) if abs(int(value)) <= 2**53 else str(int(value))
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return type(value).__name__
