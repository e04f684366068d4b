"""Findings: facts about a model that its owner should check. See docs/guide/findings.md.

Each finding has a permanent code, a sentence with the figures, and the plane, class or columns that
it is about. ``ignore=("GMX001",)`` silences a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.additive_form import Additive, additive
from geomix.explain.plane_cards import AnsweredRows, PlaneCard
from geomix.model import GeometricMixture
from geomix.table.printing import plain

CODES = {
    "GMX001": "idle plane",
    "GMX002": "near-duplicate planes",
    "GMX003": "impure plane",
    "GMX004": "miscalibrated plane",
    "GMX005": "plane with more than its share of errors",
    "GMX006": "class that is never predicted",
    "GMX007": "unused columns",
}
IDLE = 0.01  # share of its class's rows below which a plane is idle
SIMILAR = 0.02  # distance of two planes, relative to the median distance, that makes duplicates
IMPURE = 0.5  # below this most of a plane's rows belong to other classes
MISCALIBRATED = 0.1  # difference of confidence and purity that matters in practice
ERRORS_BEYOND_SHARE = 2.0  # a plane's share of the errors relative to its share of the rows
FEWEST_ROWS = 10  # below this, shares are too uncertain to report
SIGNIFICANT = 3.0  # standard errors by which a share must be off
NO_EFFECT = 1e-9  # a column or a pair that changes scores by less does not count


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
    """All findings but the ignored kinds, in the order of their codes."""
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    if unknown := ignored - CODES.keys():
        raise ValueError(f"Got ignore={sorted(unknown)!r}; expected some of {list(CODES)}.")
    found = [*_duplicates(model, cards), *_unused_columns(model)]
    if rows is not None:
        found += [*_idle(model, cards, rows), *_impure(cards), *_miscalibrated(cards)]
        found += [*_errors(cards, rows), *_never_predicted(model, rows)]
    kept = [one for one in found if one.code not in ignored]
    return tuple(sorted(kept, key=lambda one: one.code))


def _remedy(model: GeometricMixture, edit: str) -> str:
    """Advice that this model accepts: single planes of an ensemble cannot be edited."""
    if model.planes.n_members > 1:
        return "Fit with fewer planes (n_planes)."
    return f"Use {edit}, or fit with fewer planes (n_planes)."


def _idle(
    model: GeometricMixture, cards: Sequence[PlaneCard], rows: AnsweredRows
) -> Iterator[Finding]:
    several = dict(zip(model.classes.tolist(), model.planes.per_class, strict=True))
    answered = np.bincount(rows.predicted, minlength=len(model.classes)).tolist()
    answered_as = dict(zip(model.classes.tolist(), answered, strict=True))
    for card in cards:
        share, of = card.own_usage, "its class's rows"
        if share is None:
            share = _answered_share(card, answered_as[card.label])
            of = "the rows predicted as its class"
        if several[card.label] > model.planes.n_members and share is not None and share < IDLE:
            text = (
                f"Plane {card.name} is the strongest on {share:.2%} of {of}: it is "
                f"idle. {_remedy(model, f'model.without_plane({card.label!r}, {card.plane})')}"
            )
            yield Finding("GMX001", card.name, text)


def _answered_share(card: PlaneCard, n_answered: int) -> float | None:
    """Share of the rows predicted as the plane's class that it answers; None of few rows."""
    if card.n_rows is None or n_answered < FEWEST_ROWS:
        return None
    return card.n_rows / n_answered


def _duplicates(model: GeometricMixture, cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    """Planes of a class and member whose distance is small against the median distance."""
    gaps = _shape_gaps(model)
    if gaps is None:
        return
    typical = float(np.median(gaps[gaps > 0.0])) if (gaps > 0.0).any() else 0.0
    for a, b in combinations(range(len(cards)), 2):
        same = cards[a].label == cards[b].label and cards[a].member == cards[b].member
        if same and gaps[a, b] <= SIMILAR * typical:
            about = f"{cards[a].name}, {cards[b].name}"
            pair = [cards[a].plane, cards[b].plane]
            edit = f"model.merge_planes({cards[a].label!r}, {pair})"
            text = (
                f"Planes {cards[a].name} and {cards[b].name} are nearly the same: they differ by "
                f"{gaps[a, b]:.2g}, planes typically by {typical:.2g}. {_remedy(model, edit)}"
            )
            yield Finding("GMX002", about, text)


def _shape_gaps(model: GeometricMixture) -> FloatArray | None:
    """(P, P) distances between planes: of weights per deviation, or of values at knots, levels,
    missing cells and cells of pairs."""
    if not model.lift.is_additive:
        V = model.planes.weights
    else:
        form = additive(model)
        of_pairs = [pair.values.T / np.sqrt(len(pair.values)) for pair in form.pairs]
        V = np.hstack([*(_profile(shape) for shape in form.shapes), *of_pairs])
    V = np.column_stack([V, model.planes.biases])
    squared = (V**2).sum(axis=1)
    gaps: FloatArray = np.sqrt(np.maximum(squared[:, None] + squared - 2.0 * V @ V.T, 0.0))
    # Differences of large numbers are rounding errors below this.
    gaps[gaps < 1e-7 * np.sqrt(squared.max(initial=0.0))] = 0.0
    return gaps


def _profile(shape: Any) -> FloatArray:
    values = shape.values / np.sqrt(max(shape.values.shape[1], 1))
    if shape.kind == "category":
        return np.column_stack([values, shape.missing])
    return np.column_stack([values, shape.outer[:, 1] * shape.scale, shape.missing])


def _impure(cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    for card in cards:
        if card.purity is not None and (card.n_rows or 0) >= FEWEST_ROWS and card.purity < IMPURE:
            text = (
                f"Plane {card.name} answers {card.n_rows} rows, and {card.purity:.0%} of them "
                "belong to its class."
            )
            yield Finding("GMX003", card.name, text)


def _miscalibrated(cards: Sequence[PlaneCard]) -> Iterator[Finding]:
    for card in cards:
        off, n_rows = card.calibration_error, card.n_rows or 0
        if off is None or card.confidence is None or card.purity is None or n_rows < FEWEST_ROWS:
            continue
        error = np.sqrt(max(card.confidence * (1.0 - card.confidence), 1e-4) / n_rows)
        if abs(off) > MISCALIBRATED and abs(off) > SIGNIFICANT * error:
            text = (
                f"Plane {card.name} has a mean confidence of {card.confidence:.0%}, and "
                f"{card.purity:.0%} of its {n_rows} rows are correct."
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
        if share > ERRORS_BEYOND_SHARE * usage and share - usage > SIGNIFICANT * error:
            text = (
                f"Plane {card.name} answers {usage:.0%} of the rows and makes {share:.0%} of the "
                f"{n_errors} errors."
            )
            yield Finding("GMX005", card.name, text)


def _never_predicted(model: GeometricMixture, rows: AnsweredRows) -> Iterator[Finding]:
    answered = np.bincount(rows.predicted, minlength=len(model.classes))
    there = answered + 1 if rows.y is None else np.bincount(rows.y, minlength=len(model.classes))
    for label, n_answered, n_there in zip(model.classes.tolist(), answered, there, strict=True):
        if n_answered == 0 and n_there > 0:
            yield Finding("GMX006", str(label), f"Class {label} is never predicted.")


def _unused_columns(model: GeometricMixture) -> Iterator[Finding]:
    if not model.lift.is_additive:
        return
    form = additive(model).centred()
    paired = _paired_columns(form)
    unused = [
        shape.name
        for shape in form.shapes
        if shape.column not in paired and shape.spread.max(initial=0.0) < NO_EFFECT
    ]
    if unused:
        some = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
        count = "1 column changes" if len(unused) == 1 else f"{len(unused)} columns change"
        text = f"{count} no plane's score: {some}."
        yield Finding("GMX007", some, text)


def _paired_columns(form: Additive) -> set[int]:
    """Columns that change a score together with another one."""
    found: set[int] = set()
    for pair in form.pairs:
        if np.abs(pair.values).max(initial=0.0) >= NO_EFFECT:
            found.update(pair.columns)
    return found
