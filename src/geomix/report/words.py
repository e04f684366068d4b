"""The summary of a report: a few sentences in plain words, each from figures that follow below."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.explain.cells import model_schema
from geomix.explain.effect_facts import Effects
from geomix.explain.global_explanation import GlobalExplanation
from geomix.model import GeometricMixture
from geomix.report.metrics import Evaluation
from geomix.table.printing import printable

LIFTS = {
    "linear": "straight planes over the columns",
    "fourier": "planes over Fourier features, an approximated kernel",
}
NAMES_IN_A_LIST = 5
# A gap of confidence and accuracy that is worth a word.
OFF = 0.02


def summary(
    model: GeometricMixture,
    found: Effects,
    explanation: GlobalExplanation,
    quality: Evaluation,
    confidence: float,
) -> list[str]:
    """Sentences; ``confidence`` is the mean probability of the predicted classes."""
    sentences = [
        _what_it_is(model),
        _how_good(model, quality),
        _how_sure(quality, confidence),
        _confused(model, quality),
        _columns(found),
        _found(explanation),
    ]
    return [sentence for sentence in sentences if sentence]


def percent(share: float) -> str:
    """A share with one decimal, but never 100.0 of something less; no line ends before the sign."""
    number = f"{100.0 * share:.1f}"
    return "over 99.9\xa0%" if number == "100.0" and share < 1.0 else f"{number}\xa0%"


def listed(names: Any, most: int = NAMES_IN_A_LIST) -> str:
    """ "a, b and c", or "a, b, c and 4 more"."""
    shown = [printable(str(name)) for name in names]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _what_it_is(model: GeometricMixture) -> str:
    planes = model.planes
    members = f", in an ensemble of {planes.n_members} models" if planes.n_members > 1 else ""
    columns = "1 column" if model.n_features == 1 else f"{model.n_features} columns"
    opening = (
        f"The model predicts one of {planes.n_classes} classes ({listed(model.classes.tolist())}) "
        f"from {columns}."
    )
    parts = _parts(model)
    if (planes.planes_per_member == 1).all():
        one_plane = f"{opening} Each class has one plane ({parts}){members}"
        if not model.lift.is_additive:
            return f"{one_plane}."
        pairs = " and pairs of columns" if model.lift.n_pairs else ""
        return f"{one_plane}: its score is a sum over the columns{pairs}; the pictures show them."
    return (
        f"{opening} Each class is a soft union of regions, one for each of its planes. There are "
        f"{planes.n_planes} planes: {parts}{members}."
    )


def _parts(model: GeometricMixture) -> str:
    """What a plane is made of."""
    n_pairs = model.lift.n_pairs
    if model.lift.kind != "spline":
        return LIFTS[model.lift.kind]
    is_category = model_schema(model).is_category
    parts = [] if is_category.all() else ["a curve for each number"]
    parts += ["a value for each level"] if is_category.any() else []
    if n_pairs:
        pairs = "a pair" if n_pairs == 1 else f"each of {n_pairs} pairs"
        parts.append(f"a table for {pairs} of columns")
    return listed(parts)


def _how_good(model: GeometricMixture, quality: Evaluation) -> str:
    best = quality.accuracy
    usual = printable(str(model.classes.tolist()[quality.base_code]))
    return (
        f"Of {quality.n_rows:,} predictions {percent(best.value)} are correct (95 % interval "
        f"{percent(best.low)} to {percent(best.high)}). Always predicting {usual} would reach "
        f"{percent(quality.base_rate)}."
    )


def _how_sure(quality: Evaluation, confidence: float) -> str:
    gap = confidence - quality.accuracy.value
    verdict = "which agrees with the accuracy" if abs(gap) <= OFF else "which is too cautious"
    if gap > OFF:
        verdict = "which is too confident"
    text = f"The mean confidence is {percent(confidence)}, {verdict}."
    if quality.sure_right is None:
        return f"{text} No prediction has a confidence of 90 % or more."
    return (
        f"{text} It is at least 90 % for {percent(quality.sure_share)} of the rows, and "
        f"{percent(quality.sure_right)} of those predictions are correct."
    )


def _confused(model: GeometricMixture, quality: Evaluation) -> str:
    wrong = quality.confusion.copy()
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return "No prediction is wrong."
    true, given = np.unravel_index(int(wrong.argmax()), wrong.shape)
    n, total = int(wrong[true, given]), int(wrong.sum())
    labels = [printable(str(label)) for label in model.classes.tolist()]
    errors = "error" if total == 1 else "errors"
    return (
        f"The most frequent error: {labels[true]} predicted as {labels[given]}, {n:,} of "
        f"{total:,} {errors}."
    )


def _columns(found: Effects) -> str:
    strong = [one.column for one in found.strongest(3) if one.size > 0.0]
    return f"The columns with the largest effects: {listed(strong)}." if strong else ""


def _found(explanation: GlobalExplanation) -> str:
    n = len(explanation.findings)
    if n == 0:
        return "There are no findings about its planes."
    return f"{n} {'finding needs' if n == 1 else 'findings need'} a second look; see below."
