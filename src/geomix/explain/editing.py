"""Edits of a model, each with the exact change of the class scores.

    without_plane(c, m)      s_c changes by log(1 - a_cm(x)) / k
    merge_planes(c, {m})     the planes m become one, z = sum_m q_m z_m + H(q) / k with shares q.
                             Their soft-OR falls by KL(q || a(x)) / k, where a are their
                             responsibilities: zero where a(x) = q, never a rise
    with_priors(...)         s_c / T rises by log(new share of c / old share of c)
    merge([a, b], weights)   s_c = log(sum_i w_i exp(k s_c^i)) / k: the soft-OR of models is a model

An ``Edit`` holds the new model, whose ``edits`` list the edit. ``change(X)`` computes the change of
the calibrated class scores s_c / T of rows, by these formulas, from the old model alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize, pass_through
from geomix.core.planes import Planes, class_starts
from geomix.core.pooling import soft_or
from geomix.core.spline import SplineLift
from geomix.errors import DataQualityWarning
from geomix.explain.cells import class_code, encoded_rows
from geomix.explain.plane_names import plane_name
from geomix.model import GeometricMixture
from geomix.table.labels import plain_value
from geomix.table.one_hot import MISSING, NUMBER

# A share beside which a smaller one has no logarithm.
SMALLEST_PART = 1e-300


@dataclass(frozen=True, eq=False)
class Edit:
    """before, model : the old and the new model;  what : the edit in words
    change(X) : (n, C) rise of s_c / T, by the edit's formula"""

    before: GeometricMixture
    model: GeometricMixture
    what: str
    formula: Callable[[Any], FloatArray]

    def change(self, X: Any) -> FloatArray:
        return self.formula(encoded_rows(self.before, X))

    def __str__(self) -> str:
        return self.what


def without_plane(model: GeometricMixture, label: Any, plane: int) -> Edit:
    """The model without one plane of a class that has several."""
    code, index = _plane_index(model, label, plane)
    planes = model.planes
    if planes.per_class[code] == 1:
        raise ValueError(f"Class {label!r} has one plane only; a class needs at least one.")
    kept = np.delete(np.arange(planes.n_planes), index)
    edited = _with_planes(model, planes.weights[kept], planes.biases[kept], _fewer(planes, code, 1))

    def formula(encoded: FloatArray) -> FloatArray:
        # log(1 - a) as a difference of soft-ORs: 1 - a would lose its digits where a is near 1.
        Z = model.answer("plane_scores", encoded)
        own = np.flatnonzero(planes.class_of == code)
        fall = _soft_or(model, Z[:, own[own != index]]) - _soft_or(model, Z[:, own])
        return _of_class(model, code, fall)

    logged = edited.with_edit("without_plane", label=plain_value(label), plane=int(plane))
    return Edit(model, logged, f"without {plane_name(plane)} of {label}", formula)


def merge_planes(
    model: GeometricMixture, label: Any, planes: Sequence[int], shares: Any = None
) -> Edit:
    """The model with several planes of a class merged into one.

    shares : weights of the planes in the new one (None: equal), for example their usage as
        reported by ``explain_global``.
    """
    if isinstance(planes, str) or not isinstance(planes, Iterable):
        raise TypeError(f"Got planes={planes!r}; expected a list of planes, such as [0, 1].")
    planes = list(planes)
    indices = [_plane_index(model, label, plane)[1] for plane in planes]
    code = class_code(model, label)
    if len(set(indices)) < 2 or len(set(indices)) < len(indices):
        raise ValueError(f"Got planes={planes!r}; expected at least two different ones.")
    q = _parts_of_one("shares", shares, len(indices))
    old, k = model.planes, model.sharpness
    entropy = -float(q @ np.log(q)) / k
    weights, biases = old.weights.copy(), old.biases.copy()
    weights[indices[0]] = q @ old.weights[indices]
    biases[indices[0]] = q @ old.biases[indices] + entropy
    kept = np.delete(np.arange(old.n_planes), indices[1:])
    fewer = _fewer(old, code, len(indices) - 1)
    edited = _with_planes(model, weights[kept], biases[kept], fewer)

    def formula(encoded: FloatArray) -> FloatArray:
        Z = model.answer("plane_scores", encoded)
        own = np.flatnonzero(old.class_of == code)
        one = Z[:, indices] @ q + entropy  # their soft-OR less KL(q || a) / k
        after = np.column_stack([one, Z[:, np.setdiff1d(own, indices)]])
        return _of_class(model, code, _soft_or(model, after) - _soft_or(model, Z[:, own]))

    names = ", ".join(map(plane_name, planes))
    logged = edited.with_edit(
        "merge_planes", label=plain_value(label), planes=[*map(int, planes)], shares=q.tolist()
    )
    return Edit(model, logged, f"{names} of {label} merged into one", formula)


def with_priors(
    model: GeometricMixture, priors: Mapping[Any, float], before: Mapping[Any, float] | None = None
) -> Edit:
    """The model for a population with other shares of the classes.

    priors : the new share of every class, by label;  before : the shares in the training rows
    (None: those stored in the model). Bayes' rule: p_c becomes proportional to
    p_c new_c / old_c.
    """
    new = _shares(model, priors, "priors")
    if before is None and model.class_shares is None:
        raise ValueError(
            "This model has no stored training shares; pass before={label: share, ...}."
        )
    old = _training_shares(model) if before is None else _shares(model, before, "before")
    rise = np.log(new) - np.log(old)
    planes = model.planes.with_class_bias(model.temperature * rise)
    shares = (new / new.sum()).tolist()
    edited = replace(model, planes=planes, training=_with_shares(model, shares))

    def formula(encoded: FloatArray) -> FloatArray:
        return np.repeat(rise[None, :], len(encoded), axis=0)

    logged = edited.with_edit("with_priors", shares=shares)
    return Edit(model, logged, f"with priors {dict(priors)}", formula)


def _training_shares(model: GeometricMixture) -> FloatArray:
    shares = np.asarray(model.class_shares)
    for code in np.flatnonzero(shares == 0.0):
        raise ValueError(
            f"Class {model.classes.tolist()[code]!r} had no weight in training, and a share of 0 "
            "has no prior to change; pass before={label: share, ...} with a positive share of it."
        )
    return shares


def merge(models: Sequence[GeometricMixture], weights: Any = None) -> GeometricMixture:
    """One model whose class scores are the soft-OR of several models'.

    weights : of the models (None: equal). They need the same classes and columns, one kind of
    lift (linear or spline) and no ensembles. The planes of every model are scaled to the first
    model's temperature T, which changes none of its probabilities: with f = T / T_i,
    z -> f z and k -> k / f. A merged model has one sharpness k. It is exact if those of the
    models with several planes per class agree; otherwise k is their weighted mean, and a
    ``DataQualityWarning`` states the largest change of a class score. Linear models count a cell
    that only rows to predict lack, and a level that training never saw, as their mean: the merged
    model takes the mean of the first model that keeps the column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GeometricMixtureClassifier(lift="linear", n_planes=1, random_state=0)
    >>> parts = [clf.fit(X[i::2], y[i::2]).model_ for i in (0, 1)]
    >>> merge(parts).planes.per_class.tolist() == [
    ...     a + b for a, b in zip(*(m.planes.per_class for m in parts))]
    True
    """
    models = _listed(models)
    w = _parts_of_one("weights", weights, len(models))
    _check_mergeable(models)
    models = [_at_temperature(one, models[0].temperature) for one in models]
    first = models[0]
    sharpness = _common_sharpness(models, w)
    shift = np.log(w) / sharpness
    joined = _joined_splines(models) if first.lift.reads_cells else _joined_lines(models)
    standardize, lift, parts = joined
    shifted = [replace(one, biases=one.biases + s) for one, s in zip(parts, shift, strict=True)]
    order = np.argsort(np.concatenate([one.class_of for one in shifted]), kind="stable")
    per_class: IntArray = np.sum([one.per_class for one in shifted], axis=0)
    planes = Planes(
        np.concatenate([one.weights for one in shifted])[order],
        np.concatenate([one.biases for one in shifted])[order],
        class_starts(per_class),
    )
    feature_map = FeatureMap(standardize, lift, first.expand)
    merged = replace(first, feature_map=feature_map, planes=planes, sharpness=sharpness)
    return replace(merged, training=_with_shares(first, None)).with_edit(
        "merge", weights=w.tolist()
    )


def _listed(models: Any) -> list[GeometricMixture]:
    if isinstance(models, GeometricMixture) or not isinstance(models, Iterable):
        raise TypeError(f"Got models of type {type(models).__name__}; expected a list of models.")
    listed = list(models)
    if len(listed) < 2:
        raise ValueError(f"Got {len(listed)} models; expected at least two.")
    for one in listed:
        if not isinstance(one, GeometricMixture):
            raise TypeError(
                f"Got a {type(one).__name__} among the models; expected a GeometricMixture, such "
                "as model_ of a fitted estimator."
            )
    return listed


def _at_temperature(model: GeometricMixture, temperature: float) -> GeometricMixture:
    """The same model, with the same probabilities, at another temperature."""
    factor = temperature / model.temperature
    if factor == 1.0:
        return model
    planes = model.planes
    scaled = replace(planes, weights=planes.weights * factor, biases=planes.biases * factor)
    sharpness = model.sharpness / factor
    return replace(model, planes=scaled, sharpness=sharpness, temperature=temperature)


def _common_sharpness(models: list[GeometricMixture], weights: FloatArray) -> float:
    """The sharpness of a merged model. It is irrelevant for one plane per class."""
    largest = np.array([int(one.planes.per_class.max()) for one in models])
    several = largest > 1
    if not several.any():
        return models[0].sharpness
    each = np.array([one.sharpness for one in models])
    common = float(np.average(each[several], weights=weights[several]))
    # (1 / k) log(sum exp(k z)) lies between max z and max z + log(M) / k.
    change = float((np.log(largest) * np.abs(1.0 / each - 1.0 / common)).max())
    if np.allclose(each[several], common, rtol=1e-12):
        return common
    warnings.warn(
        f"The models' temperatures differ and they have several planes per class, so one "
        f"sharpness cannot fit them all: class scores change by up to {change:.2g}. Predict with "
        "the models one by one, or fit them with n_planes=1 or calibrate=False, to avoid that.",
        DataQualityWarning,
        stacklevel=3,
    )
    return common


def _with_shares(model: GeometricMixture, shares: list[float] | None) -> dict[str, Any]:
    return {**(model.training or {}), "class_shares": shares}


def _joined_lines(models: list[GeometricMixture]) -> tuple[Any, Any, list[Planes]]:
    """Planes over the expanded columns, which all models share, standardised as in the first
    model that keeps a column."""
    first = models[0].standardize
    kept = np.unique(np.concatenate([one.standardize.kept for one in models]))
    mean, scale = np.zeros(first.n_columns), np.ones(first.n_columns)
    for one in reversed(models):
        known = one.standardize
        mean[known.kept], scale[known.kept] = known.mean, known.scale
    standardize = Standardize(kept, mean[kept], scale[kept], None, first.n_columns)
    parts = []
    for one in models:
        own = one.standardize
        W = own.unrotated(one.planes.weights)
        raw = np.zeros((len(W), first.n_columns))
        raw[:, own.kept] = W / own.scale
        # w (x - m) / s = w/s (x - m0) + w/s (m0 - m)
        centre = np.zeros(first.n_columns)
        centre[own.kept] = own.mean
        biases = one.planes.biases + raw @ (mean - centre)
        # A missing number counts as the mean: of the first model from now on, of its own before.
        number, missing = _indicators(one, kept)
        change = raw[:, number] * (centre - mean)[number]
        raw[:, missing] += change
        biases = biases + change @ mean[missing]
        parts.append(replace(one.planes, weights=raw[:, kept] * scale[kept], biases=biases))
    return standardize, IdentityLift(len(kept)), parts


def _indicators(model: GeometricMixture, kept: IntArray) -> tuple[IntArray, IntArray]:
    """Kept expanded columns of numbers, and those that indicate where each is missing."""
    if model.expand is None:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    column_of, shows = model.expand.column_of[kept], model.expand.shows[kept]
    numbers = {int(column_of[at]): kept[at] for at in np.flatnonzero(shows == NUMBER)}
    pairs = [
        (numbers[int(column_of[at])], kept[at])
        for at in np.flatnonzero(shows == MISSING)
        if int(column_of[at]) in numbers
    ]
    both = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _joined_splines(models: list[GeometricMixture]) -> tuple[Any, Any, list[Planes]]:
    """The parts of all lifts side by side; a plane has zero weights on the others' parts."""
    lifts = [one.lift for one in models]
    assert all(isinstance(one, SplineLift) for one in lifts)
    parts = tuple(part for lift in lifts for part in lift.parts)  # type: ignore[union-attr]
    lift = SplineLift(parts, len(models[0].columns))
    made, start = [], 0
    for one in models:
        weights = np.zeros((one.planes.n_planes, lift.n_outputs))
        weights[:, start : start + one.planes.n_inputs] = one.planes.weights
        start += one.planes.n_inputs
        made.append(replace(one.planes, weights=weights))
    return pass_through(len(models[0].columns)), lift, made


def _check_mergeable(models: list[GeometricMixture]) -> None:
    first = models[0]
    for one in models:
        if not one.lift.is_additive or one.lift.kind != first.lift.kind:
            raise ValueError("Models to merge need one kind of lift, linear or spline.")
        if one.planes.n_members > 1:
            raise ValueError("An ensemble (n_members > 1) cannot be merged; fit with n_members=1.")
        if one.columns != first.columns or one.schema != first.schema:
            raise ValueError("Models to merge need the same columns, with the same levels.")
        if one.classes.tolist() != first.classes.tolist():
            raise ValueError("Models to merge need the same classes.")
        expands = [
            None if m.expand is None else (m.expand.column_of.tolist(), m.expand.shows.tolist())
            for m in (one, first)
        ]
        if expands[0] != expands[1]:
            raise ValueError("Models to merge need missing cells in the same columns of training.")


def _plane_index(model: GeometricMixture, label: Any, plane: int) -> tuple[int, int]:
    code = class_code(model, label)
    if model.planes.n_members > 1:
        raise ValueError(
            "The members of an ensemble need equal numbers of planes, so single planes cannot be "
            "edited; fit with n_members=1."
        )
    n_planes = int(model.planes.per_class[code])
    is_place = isinstance(plane, (int, np.integer)) and not isinstance(plane, bool)
    if not is_place or not 0 <= plane < n_planes:
        raise ValueError(f"Got plane {plane!r} of {label!r}; expected one of 0 to {n_planes - 1}.")
    return code, int(model.planes.class_start[code] + plane)


def _soft_or(model: GeometricMixture, Z: FloatArray) -> FloatArray:
    """Of some planes' scores, (n, m) -> (n,)."""
    return soft_or(Z, class_starts([Z.shape[1]]), model.sharpness)[:, 0]


def _of_class(model: GeometricMixture, code: int, rise: FloatArray) -> FloatArray:
    """(n, C) changes of s / T where one class's score s rises by ``rise``, (n,)."""
    change = np.zeros((len(rise), model.planes.n_classes))
    change[:, code] = rise / model.temperature
    return change


def _fewer(planes: Planes, code: int, n: int) -> IntArray:
    per_class = planes.per_class.copy()
    per_class[code] -= n
    return class_starts(per_class)


def _with_planes(
    model: GeometricMixture, weights: FloatArray, biases: FloatArray, class_start: IntArray
) -> GeometricMixture:
    return replace(model, planes=Planes(weights, biases, class_start))


def _parts_of_one(name: str, given: Any, n: int) -> FloatArray:
    """n positive numbers that sum to one; None: equal ones."""
    if given is None:
        return np.full(n, 1.0) / n
    try:
        parts = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        parts = np.empty(0)
    is_positive = parts.shape == (n,) and (parts > 0.0).all() and np.isfinite(parts).all()
    if not is_positive or parts.min() / parts.max() < SMALLEST_PART:
        raise ValueError(
            f"Got {name}={given!r}; expected {n} positive numbers, within a factor of 1e300 of "
            "each other."
        )
    with np.errstate(over="ignore"):
        total = parts.sum()
    if np.isfinite(total):
        return np.asarray(parts / total)
    parts = parts / parts.max()
    return np.asarray(parts / parts.sum())


def _shares(model: GeometricMixture, given: Mapping[Any, float], name: str) -> FloatArray:
    labels = model.classes.tolist()
    if not isinstance(given, Mapping):
        raise TypeError(
            f"Got {name} of type {type(given).__name__}; expected a dict with the share of each "
            f"class, such as {{{labels[0]!r}: 0.2, ...}}."
        )
    shares: list[Any] = [None] * len(labels)
    for label, share in given.items():
        shares[class_code(model, label)] = share
    try:
        if None in shares:
            raise ValueError("a class has no share")
        return _parts_of_one(name, shares, len(labels))
    except ValueError:
        raise ValueError(
            f"Got {name}={dict(given)!r}; expected a positive share of each of {labels!r}."
        ) from None
