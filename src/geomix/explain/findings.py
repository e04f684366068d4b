"""Findings: what a look at a model should make its owner look again. See docs/guide/findings.md.

Each has a number that stays the same for ever, a sentence with the figures, and the plane or class
that it is about; ``ignore=("GMX001",)`` silences a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import additive
from geomix.explain.plane_cards import AnsweredRows, PlaneCard
from geomix.model import GeometricMixture
from geomix.table.printing import plain

CODES = {
    "GMX001": "idle plane",
    "GMX002": "near-duplicate planes",
    "GMX003": "impure plane",
    "GMX004": "miscalibrated plane",
    "GMX005": "plane with more than its share of errors",
    "GMX006": "class that is never the answer",
    "GMX007": "unused columns",
}
IDLE = 0.01
ALIKE = 0.02  # of the spread of plane scores
IMPURE = 0.5
MISCALIBRATED = 0.1
ERRORS_BEYOND_SHARE = 2.0
FEWEST_ROWS = 10
ERRORS_TO_TELL = 3.0  # standard errors by which a share must be off


@dataclass(frozen=True)
class Finding:
    """code : "GMX001", ...;  about : the plane, class or columns;  message : with the figures."""

    code: str
    about: str
    message: str

    @property
    def title(self) -> str:
        return CODES[self.code]

    def to_dict(self) -> dict[str, Any]:
        return plain(asdict(self)) | {"title": self.title}

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


def find(
    model: GeometricMixture,
    cards: Sequence[PlaneCard],
    rows: AnsweredRows | None = None,
    ignore: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """All findings but the ignored kinds, in the order of their numbers."""
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := ignored - CODES.keys():
        raise ValueError(f"Got ignore={sorted(unknown)!r}; expected some of {list(CODES)}.")
    found = [*_alike(model, cards), *_unused_columns(model)]
    if rows is not None:
        found += [*_idle(model, cards), *_impure(cards), *_miscalibrated(cards)]
        found += [*_errors(cards, rows), *_never(model, rows)]
    kept = [one for one in found if one.code not in ignored]
    return tuple(sorted(kept, key=lambda one: one.code))


def _idle(model: GeometricMixture, cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    several = dict(zip(model.classes.tolist(), model.planes.per_class, strict=True))
    for card in cards:
        share = card.usage if card.own_usage is None else card.own_usage
        if several[card.label] > model.planes.n_members and share is not None and share < IDLE:
            text = f"Plane {card.name} leads on {share:.2%} of its class's rows: it is idle."
            yield Finding("GMX001", card.name, text)


def _alike(model: GeometricMixture, cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    """Planes of a class and member that differ by little against how all planes differ."""
    gaps = _shape_gaps(model)
    if gaps is None:
        return
    typical = float(np.median(gaps[gaps > 0.0])) if (gaps > 0.0).any() else 0.0
    for a, b in combinations(range(len(cards)), 2):
        same = cards[a].label == cards[b].label and cards[a].member == cards[b].member
        if same and gaps[a, b] <= ALIKE * typical:
            about = f"{cards[a].name}, {cards[b].name}"
            text = (
                f"Planes {cards[a].name} and {cards[b].name} are nearly the same: they differ by "
                f"{gaps[a, b]:.2g}, planes typically by {typical:.2g}."
            )
            yield Finding("GMX002", about, text)


def _shape_gaps(model: GeometricMixture) -> FloatArray | None:
    """(P, P) distance between planes: of weights per deviation, or of values at knots."""
    if not model.lift.is_additive:
        V = model.planes.weights
    else:
        V = np.hstack([_profile(shape) for shape in additive(model).shapes])
    V = np.column_stack([V, model.planes.biases])
    squared = (V**2).sum(axis=1)
    gaps: FloatArray = np.sqrt(np.maximum(squared[:, None] + squared - 2.0 * V @ V.T, 0.0))
    # A difference of large numbers rounds to no less than this.
    gaps[gaps < 1e-7 * np.sqrt(squared.max(initial=0.0))] = 0.0
    return gaps


def _profile(shape: Any) -> FloatArray:
    values = shape.values / np.sqrt(shape.values.shape[1])
    if shape.kind == "category":
        return values
    return np.column_stack([values, shape.outer[:, 1] * shape.scale])


def _impure(cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    for card in cards:
        if card.purity is not None and (card.n_rows or 0) >= FEWEST_ROWS and card.purity < IMPURE:
            text = (
                f"Of the {card.n_rows} rows that plane {card.name} answers for, {card.purity:.0%} "
                "are of its class."
            )
            yield Finding("GMX003", card.name, text)


def _miscalibrated(cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    for card in cards:
        off, n_rows = card.calibration_error, card.n_rows or 0
        if off is None or card.confidence is None or card.purity is None or n_rows < FEWEST_ROWS:
            continue
        error = np.sqrt(max(card.confidence * (1.0 - card.confidence), 1e-4) / n_rows)
        if abs(off) > MISCALIBRATED and abs(off) > ERRORS_TO_TELL * error:
            text = (
                f"Plane {card.name} gives its class {card.confidence:.0%} on average where "
                f"{card.purity:.0%} are right ({n_rows} rows)."
            )
            yield Finding("GMX004", card.name, text)


def _errors(cards: Sequence[PlaneCard], rows: AnsweredRows) -> Iterator[Finding]:
    if rows.y is None:
        return
    n_errors = int((rows.predicted != rows.y).sum())
    for card in cards:
        share, usage = card.error_share, card.usage
        if share is None or not usage or n_errors < FEWEST_ROWS:
            continue
        error = np.sqrt(usage * (1.0 - usage) / n_errors)
        if share > ERRORS_BEYOND_SHARE * usage and share - usage > ERRORS_TO_TELL * error:
            text = (
                f"Plane {card.name} answers for {usage:.0%} of the rows and for {share:.0%} of the "
                f"{n_errors} wrong answers."
            )
            yield Finding("GMX005", card.name, text)


def _never(model: GeometricMixture, rows: AnsweredRows) -> Iterator[Finding]:
    answered = np.bincount(rows.predicted, minlength=len(model.classes))
    there = answered + 1 if rows.y is None else np.bincount(rows.y, minlength=len(model.classes))
    for label, n_answered, n_there in zip(model.classes.tolist(), answered, there, strict=True):
        if n_answered == 0 and n_there > 0:
            yield Finding("GMX006", str(label), f"Class {label} is never the answer.")


def _unused_columns(model: GeometricMixture) -> Iterator[Finding]:
    if not model.lift.is_additive:
        return
    shapes = additive(model).centred().shapes
    unused = [shape.name for shape in shapes if shape.spread.max(initial=0.0) < 1e-9]
    if unused:
        some = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
        text = f"{len(unused)} columns move no plane: {some}."
        yield Finding("GMX007", some, text)
