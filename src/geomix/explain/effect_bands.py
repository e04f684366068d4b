"""How sure a curve is: a Laplace approximation of the penalised fit.

The weights w_p of plane p, of class c, minimise n (loss + lambda_p ||w_p / units||^2). Around the
minimum their posterior is close to a normal distribution with the precision

    H_p = sum_i a_ip^2 p_ic (1 - p_ic) psi_i psi_i'  +  2 n lambda_p (1 - 1/C) / units^2

with psi the features less their weighted mean, because the bias is free, and with the second term
on the diagonal. n is the number of training rows; the rows given stand for them. An effect that is
c'w has the variance c' H^-1 c; for a partial dependence, c is its gradient. For two classes with
one plane each this is exact: their difference is what is estimated, and H is its precision. More
classes are treated as one against the rest, and the planes of a class as independent. The bands
include the bias of the penalty on average over a curve (Nychka 1988), not at each point, and not
the choice of the lift and the penalty.

The scale of a curve is uncertain too: noise flattens curves by about its share in the log-odds, the
penalty shrinks them, and the temperature T rescales all columns together although they differ. So
the variance of an effect e is

    c' H^-1 c / T^2 + (r e)^2,      r^2 = (share of the noise)^2 + (1 - T)^2

The features of all columns form one block up to ``MOST_IN_BLOCK``. Wider models have one block for
each column: the correlation between columns is then left out, and so are pairs of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.objective import usage_penalty
from geomix.core.pooling import softmax
from geomix.core.spline import SplineLift
from geomix.core.spline_parts import PairPart, SplinePart
from geomix.explain.contributions import raw_column_of
from geomix.explain.pair_tables import margin_weights
from geomix.explain.partial_dependence import evenly
from geomix.model import GeometricMixture

MOST_IN_BLOCK = 1500  # features: inverting a matrix of this size takes 0.2 s
MOST_WORK = 2e10  # multiplications to invert the matrices of all planes
# A partial dependence: features in memory at once, and background rows for its bands.
MOST_NUMBERS, DESIGN_ROWS = 2**22, (16, 256)
# Where classes are separated perfectly, the scale of log-odds is not determined by the rows.
LARGEST_ERROR = 0.3
SMALLEST_PRECISION = 1e-9  # relative; keeps a feature without rows and penalty from dividing by 0


@dataclass(frozen=True, eq=False)
class Block:
    """features : (q,);  covariance : (P, q, q), or its diagonal (P, q)."""

    features: IntArray
    covariance: FloatArray

    def variances(self, places: IntArray, design: FloatArray) -> FloatArray:
        """(P, n): variance of design_p @ w_p for each row of a design (P, n, len(places))."""
        if self.covariance.ndim == 2:
            return np.einsum("pq,pnq->pn", self.covariance[:, places], design**2)
        out = np.empty(design.shape[:2])
        for plane, (whole, rows) in enumerate(zip(self.covariance, design, strict=True)):
            # Places ascend, so that as many as there are features are all of them: no copy.
            some = whole if len(places) == len(whole) else whole[np.ix_(places, places)]
            np.einsum("nq,nq->n", rows @ some, rows, out=out[plane])
        return out


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariances of the planes' weights, block by block.

    is_joint : whether all columns are in one block. It then has the bias too, as its last feature,
    numbered n_inputs.
    """

    blocks: tuple[Block, ...]
    n_planes: int
    is_joint: bool

    @property
    def features(self) -> IntArray:
        """Numbers of all features, block by block."""
        return np.concatenate([block.features for block in self.blocks])

    def variances(self, features: IntArray, design: FloatArray) -> FloatArray:
        """(P, n): variance of design_p @ w_p, for designs (P or 1, n, len(features))."""
        out = np.zeros((self.n_planes, design.shape[1]))
        block_of, place_of = (known[np.minimum(features, len(known) - 1)] for known in self._where)
        order = np.lexsort((place_of, block_of))
        begin = np.searchsorted(block_of[order], np.unique(block_of))
        for own in np.split(order, begin)[1:]:
            if block_of[own[0]] < 0:
                continue
            is_all = np.array_equal(own, np.arange(len(features)))
            some = design if is_all else design[:, :, own]
            some = np.broadcast_to(some, (self.n_planes, *some.shape[1:]))
            out += self.blocks[block_of[own[0]]].variances(place_of[own], some)
        return out

    @cached_property
    def _where(self) -> tuple[IntArray, IntArray]:
        """The block of each feature, and its place there. The last block is -1, of features that
        are in none, whatever their number."""
        size = max((int(block.features.max()) for block in self.blocks), default=-1) + 2
        block_of, place_of = np.full(size, -1), np.zeros(size, dtype=np.intp)
        for j, block in enumerate(self.blocks):
            block_of[block.features] = j
            place_of[block.features] = np.arange(len(block.features))
        return block_of, place_of


def covariance(model: GeometricMixture, encoded: FloatArray) -> Covariance | None:
    """Covariances from rows; None if the model does not know its penalty."""
    penalty = _penalties(model, encoded)
    if penalty is None or not len(encoded) or not model.lift.is_additive:
        return None
    information = _information_weights(model, encoded)
    groups, is_joint = _groups(model)
    gram = _spline_gram if isinstance(model.lift, SplineLift) else _linear_gram
    n_planes = model.planes.n_planes
    if n_planes == 2:  # one plane for each of two classes: the same matrix for both
        information, penalty = information[:, :1], penalty[:1]
    blocks = []
    for features in groups:
        sums = gram(model, encoded, features, information)
        inverse = _inverse(sums.centred, penalty[:, features])
        if is_joint:
            features = np.append(features, model.planes.n_inputs)
            inverse = _with_bias(inverse, sums)
        blocks.append(Block(features, np.broadcast_to(inverse, (n_planes, *inverse.shape[1:]))))
    return Covariance(tuple(blocks), n_planes, is_joint)


def column_design(
    model: GeometricMixture, column: int, cells: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Features of a column, and their values at cells of it: (q,) and (n_cells, q)."""
    rows = np.zeros((len(cells), model.n_features))
    rows[:, column] = cells
    lift = model.lift
    if isinstance(lift, SplineLift):
        own = lift.of_column(column)
        if not own:
            return np.empty(0, dtype=np.intp), np.empty((len(cells), 0))
        features = np.concatenate([np.arange(steps.start, steps.stop) for _, steps in own])
        return features, np.hstack([_part_design(part, column, rows) for part, _ in own])
    expanded = rows if model.expand is None else model.expand(rows)
    U = model.standardize.scaled(expanded[:, model.standardize.kept])
    own_columns = np.flatnonzero(raw_column_of(model) == column)
    if model.standardize.rotation is None:
        return own_columns, U[:, own_columns]
    rotation = model.standardize.rotation
    return np.arange(len(rotation)), U[:, own_columns] @ rotation[:, own_columns].T


def _part_design(part: SplinePart, column: int, rows: FloatArray) -> FloatArray:
    """phi of a column's curve; of a pair, its mean over the other column (``pair_tables.py``)."""
    if not isinstance(part, PairPart):
        return part.phi(rows)
    a, b = margin_weights(part)
    grid = part.bin_phi().reshape(part.n_first, part.n_second, -1)
    is_first = part.columns[0] == column
    side = np.einsum("t,stq->sq", b, grid) if is_first else np.einsum("s,stq->tq", a, grid)
    side -= (a if is_first else b) @ side
    side[-1] = 0.0
    codes = part.codes(rows)
    return np.asarray(side[codes // part.n_second if is_first else codes % part.n_second])


def average_design(
    model: GeometricMixture,
    background: FloatArray,
    column: int,
    cells: FloatArray,
    features: IntArray,
) -> FloatArray:
    """(P, n_cells, n_features): how a partial dependence moves with the weights of each plane.

    d s_c(v) / d w_p = mean over rows of a_p phi, with the column set to v; the feature numbered
    n_inputs is the 1 of the bias. Only the features that read the column depend on v.
    """
    n_inputs = model.planes.n_inputs
    room = MOST_NUMBERS // (max(len(cells), 1) * (n_inputs + 1))
    rows = background[evenly(len(background), int(np.clip(room, *DESIGN_ROWS)))]
    table = np.tile(rows, (len(cells), 1))
    table[:, column] = np.repeat(cells, len(rows))
    A = model.answer("responsibilities", table).reshape(len(cells), len(rows), -1)
    weights = A.transpose(2, 0, 1) / len(rows)
    Phi = np.column_stack([np.asarray(model.feature_map(rows)), np.ones(len(rows))])[:, features]
    if isinstance(model.lift, SplineLift):
        design = weights @ Phi
        place = np.full(n_inputs, -1)
        place[features[:-1]] = np.arange(len(features) - 1)
        for part, steps in model.lift.of_column(column):
            start = place[steps.start]
            if start >= 0:
                design[:, :, start : start + part.n_steps] = _part_average(part, table, weights)
        return design
    own, at_rows = column_design(model, column, rows[:, column])
    Phi[:, own] -= at_rows
    design = weights @ Phi
    design[:, :, own] += weights.sum(axis=2)[:, :, None] * column_design(model, column, cells)[1]
    return design


def _part_average(part: SplinePart, table: FloatArray, weights: FloatArray) -> FloatArray:
    """(P, n_cells, n_steps) sums of phi over the rows of a table, (n_cells * n_rows, n_columns),
    with weights (P, n_cells, n_rows)."""
    _, n_cells, n_rows = weights.shape
    if len(part.columns) == 1:  # the same phi for all rows of a cell
        return np.asarray(weights.sum(axis=2)[:, :, None] * part.phi(table[::n_rows]))
    Phi = part.phi(table).reshape(n_cells, n_rows, -1)
    return np.einsum("pkr,krf->pkf", weights, Phi, optimize=True)


def curve_deviations(model: GeometricMixture, variances: FloatArray) -> FloatArray:
    """(n, n_curves) standard deviations of effects, from variances (P, n) by planes."""
    planes = model.planes
    # The members of an ensemble are trained on nearly the same rows: deviations add, not variances.
    by_member = np.sqrt(np.add.reduceat(variances.T, planes.pool_starts[:-1], axis=1))
    by_class = by_member.reshape(-1, planes.n_classes, planes.n_members).sum(axis=2)
    by_class /= model.temperature
    if planes.n_classes == 2:
        return np.sqrt((by_class**2).mean(axis=1, keepdims=True))
    return by_class * (1.0 - 1.0 / planes.n_classes)


def curves(S: FloatArray) -> FloatArray:
    """Class scores over T, (n, C), as log-odds: (n, 1) for two classes, (n, C) for more."""
    if S.shape[1] == 2:
        return S[:, 1:] - S[:, :1]
    centred: FloatArray = S - S.mean(axis=1, keepdims=True)
    return centred


def scale_error(model: GeometricMixture, encoded: FloatArray, found: Covariance) -> FloatArray:
    """(n_curves,) r of the formula above. Rows count by p (1 - p): those decide the temperature."""
    features = found.features
    Phi = np.asarray(model.feature_map(encoded))
    Phi = np.column_stack([Phi, np.ones(len(Phi))])[:, features]
    A = model.answer("responsibilities", encoded)
    noise = curve_deviations(model, found.variances(features, Phi[None]) * A.T**2) ** 2
    log_odds = curves(model.answer("class_scores", encoded))
    P = model.answer("predict_proba", encoded)[:, -log_odds.shape[1] :]
    weight = P * (1.0 - P) + np.finfo(float).tiny
    weight = weight / weight.sum(axis=0)
    spread = (weight * (log_odds - (weight * log_odds).sum(axis=0)) ** 2).sum(axis=0)
    share = _ratio((weight * noise).sum(axis=0), spread, LARGEST_ERROR)
    undone = min(abs(1.0 - model.temperature), LARGEST_ERROR)
    return np.hypot(share, undone)


def _ratio(part: FloatArray, whole: FloatArray, most: float) -> FloatArray:
    """part / whole, at most ``most``; a whole of nearly nothing does not overflow."""
    is_less = part < most * whole
    return np.where(is_less, part / np.where(is_less, whole, 1.0), most)


def _penalties(model: GeometricMixture, encoded: FloatArray) -> FloatArray | None:
    """2 n lambda_p (1 - 1/C) / units^2, (P, n_features); None if they are not known."""
    known: Any = (model.training or {}).get("penalty")
    n_rows = (model.training or {}).get("n_rows")
    if not isinstance(known, dict) or n_rows is None or not len(encoded):
        return None
    planes = model.planes
    units = known.get("units")
    units = np.ones(planes.n_inputs) if units is None else np.asarray(units, dtype=np.float64)
    if len(units) != planes.n_inputs:
        return None
    usage = model.answer("responsibilities", encoded).mean(axis=0) * planes.n_members
    strength = usage_penalty(usage, known["l2"], known["usage_beta"], known["usage_delta"])
    strength = strength * (1.0 - known["shrink_to_mean"]) * (1.0 - 1.0 / planes.n_classes)
    return np.asarray(2.0 * n_rows * strength[:, None] / units**2)


def _information_weights(model: GeometricMixture, encoded: FloatArray) -> FloatArray:
    """a^2 p (1 - p) of each row and plane before calibration, (n, P); their sum is of all
    training rows."""
    planes = model.planes
    P = softmax(model.answer("class_scores", encoded) * model.temperature)
    A = model.answer("responsibilities", encoded) * planes.n_members
    n_rows = (model.training or {})["n_rows"]
    weights: FloatArray = A**2 * (P * (1.0 - P))[:, planes.class_of]
    return weights * (n_rows / len(encoded))


def _groups(model: GeometricMixture) -> tuple[list[IntArray], bool]:
    """Features of each block, and whether all columns are in one."""
    planes, lift = model.planes, model.lift
    most = min(MOST_IN_BLOCK, int(np.cbrt(MOST_WORK / planes.n_planes)))
    if planes.n_inputs <= most:
        return [np.arange(planes.n_inputs)], True
    if not isinstance(lift, SplineLift):
        if model.standardize.rotation is not None:
            return [np.arange(planes.n_inputs)], False
        column_of = raw_column_of(model)
        return [np.flatnonzero(column_of == j) for j in np.unique(column_of)], False
    by_part = [(part, np.arange(steps.start, steps.stop)) for part, steps in lift.by_part()]
    single = [features for part, features in by_part if len(part.columns) == 1]
    if single and sum(map(len, single)) <= most:
        return [np.concatenate(single)], True
    return single, False


@dataclass(frozen=True, eq=False)
class _Sums:
    """Weighted sums over rows, for each plane: ``centred`` (P, q, q) or (P, q) of psi psi' or its
    diagonal, ``phi`` (P, q) of the features, ``total`` (P,) of the weights."""

    centred: FloatArray
    phi: FloatArray
    total: FloatArray


def _spline_gram(
    model: GeometricMixture, encoded: FloatArray, features: IntArray, weights: FloatArray
) -> _Sums:
    """The sums from counts of the bins of each two parts."""
    assert isinstance(model.lift, SplineLift)
    inside = set(features.tolist())
    parts = [part for part, steps in model.lift.by_part() if steps.start in inside]
    codes = [part.codes(encoded) for part in parts]
    starts = np.concatenate([[0], np.cumsum([part.n_steps for part in parts])])
    places = [slice(a, b) for a, b in pairwise(starts)]
    tables = [part.bin_phi() for part in parts]
    total = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    if len(features) > MOST_IN_BLOCK:
        return _spline_diagonal(parts, codes, tables, weights, total)
    out = np.empty((weights.shape[1], len(features), len(features)))
    phi = np.empty((weights.shape[1], len(features)))
    for plane, weight in enumerate(weights.T):
        for a, part in enumerate(parts):
            mass = np.bincount(codes[a], weight, part.n_bins)
            phi[plane, places[a]] = mass @ tables[a]
            out[plane, places[a], places[a]] = (tables[a].T * mass) @ tables[a]
            for b in range(a):
                n_bins = parts[b].n_bins
                counts = np.bincount(codes[a] * n_bins + codes[b], weight, part.n_bins * n_bins)
                cross = tables[a].T @ counts.reshape(part.n_bins, n_bins) @ tables[b]
                out[plane, places[a], places[b]] = cross
                out[plane, places[b], places[a]] = cross.T
        out[plane] -= np.outer(phi[plane], phi[plane]) / total[plane]
    return _Sums(out, phi, total)


def _spline_diagonal(
    parts: Sequence[SplinePart],
    codes: Sequence[IntArray],
    tables: Sequence[FloatArray],
    weights: FloatArray,
    total: FloatArray,
) -> _Sums:
    squares, sums = [], []
    for part, code, table in zip(parts, codes, tables, strict=True):
        mass = np.stack([np.bincount(code, one, part.n_bins) for one in weights.T])
        squares.append(mass @ table**2)
        sums.append(mass @ table)
    phi = np.hstack(sums)
    return _Sums(np.hstack(squares) - phi**2 / total[:, None], phi, total)


def _linear_gram(
    model: GeometricMixture, encoded: FloatArray, features: IntArray, weights: FloatArray
) -> _Sums:
    Phi = np.asarray(model.feature_map(encoded))[:, features]
    total = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    phi = weights.T @ Phi
    if len(features) > MOST_IN_BLOCK:
        return _Sums(weights.T @ Phi**2 - phi**2 / total[:, None], phi, total)
    out = np.empty((weights.shape[1], len(features), len(features)))
    for plane, weight in enumerate(weights.T):
        out[plane] = (Phi.T * weight) @ Phi - np.outer(phi[plane], phi[plane]) / total[plane]
    return _Sums(out, phi, total)


def _with_bias(inverse: FloatArray, sums: _Sums) -> FloatArray:
    """(P, q + 1, q + 1) covariances of weights and bias, from those of the weights.

    The bias is free: b = - w' m + noise of variance 1 / total, with m the weighted mean of phi.
    """
    if inverse.ndim == 2:
        return np.column_stack([inverse, 1.0 / sums.total])
    mean = sums.phi / sums.total[:, None]
    cross = -(inverse @ mean[:, :, None])[:, :, 0]
    own = 1.0 / sums.total - np.einsum("pq,pq->p", cross, mean)
    n_planes, q, _ = inverse.shape
    out = np.empty((n_planes, q + 1, q + 1))
    out[:, :q, :q], out[:, q, q] = inverse, own
    out[:, :q, q] = out[:, q, :q] = cross
    return out


def _inverse(gram: FloatArray, penalty: FloatArray) -> FloatArray:
    """(P, q, q) inverses of the precisions, or (P, q) of their diagonals.

    The matrices of many planes take hundreds of megabytes, so ``gram`` is overwritten.
    """
    if gram.ndim == 2:
        precision = np.maximum(gram, 0.0) + penalty
        floor = SMALLEST_PRECISION * np.maximum(precision.max(axis=1, keepdims=True), 1.0)
        return np.asarray(1.0 / np.maximum(precision, floor))
    for plane, precision in enumerate(gram):
        diagonal = np.einsum("qq->q", precision)
        diagonal += penalty[plane]
        diagonal += SMALLEST_PRECISION * max(float(diagonal.sum()) / max(len(precision), 1), 1.0)
        gram[plane] = np.linalg.inv(precision)
    return gram
