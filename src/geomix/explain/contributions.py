"""Contributions: the part of a margin between two classes that each column adds.

The margin of class c over class r is log(p_c / p_r) = (s_c - s_r) / T. A soft-OR is the mean of its
planes' scores, weighted by responsibility, plus their entropy divided by the sharpness,

    s_c = sum_m a_cm z_cm + H(a_c) / k,      H(a) = - sum_m a_m log a_m

because k z_m - log a_m = log sum_j exp(k z_j) for every m. The score of an ensemble is the mean of
its n members' soft-ORs; with A = a / n

    s_c = sum_p A_cp z_cp + sum_p - A_cp log(n A_cp) / k.

Planes are sums over columns (``explain/additive_form.py``). Hence, with D = A_c / T on the planes
of c, - A_r / T on those of r and 0 elsewhere,

    margin = sum_j (sum_p D_p f_pj(x_j))  +  sum_p D_p b_p  +  (entropies of c less of r) / (k T)
             contribution of column j        bias              pooling

exactly: nothing is sampled and the parts add up to the margin. Shapes are zero on average over the
training rows; that of a number under a spline lift is so over its present cells. So a contribution
is the change of the margin against an average cell, and the bias is the margin of a row of such
cells. Pooling is the gain of several planes over their weighted mean.
Fourier planes are not such sums: ``tangent`` below and ``explain/shapley.py`` approximate them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core.lifts import FourierLift
from geomix.core.planes import Planes
from geomix.explain.additive_form import Additive
from geomix.model import GeometricMixture


@dataclass(frozen=True, eq=False)
class Contributions:
    """Margins in parts: ``by_column`` (n, n_columns), ``bias`` and ``pooling`` (n,).

    error : (n, n_columns) standard errors where the parts were sampled, else None.
    """

    by_column: FloatArray
    bias: FloatArray
    pooling: FloatArray
    error: FloatArray | None = None

    @property
    def total(self) -> FloatArray:
        return self.by_column.sum(axis=1) + self.bias + self.pooling


def exact(
    form: Additive,
    encoded: FloatArray,
    of: IntArray,
    against: IntArray,
    Z: FloatArray | None = None,
) -> Contributions:
    """Parts of the margin of class ``of`` over class ``against``, both (n,) codes. Z : (n, P)
    plane scores, where they are known."""
    planes = form.planes
    _, A = planes.pooled(form.scores(encoded) if Z is None else Z, form.sharpness)
    D = signed(planes, A, of, against) / form.temperature
    surprise = -np.log(np.maximum(planes.n_members * A, np.finfo(float).tiny)) / form.sharpness
    pooling = (D * np.where(A > 0.0, surprise, 0.0)).sum(axis=1)
    return Contributions(form.by_column(encoded, D), D @ planes.biases, pooling)


def signed(planes: Planes, A: FloatArray, of: IntArray, against: IntArray) -> FloatArray:
    """A on the planes of each row's class ``of``, -A on those of ``against``, 0 elsewhere."""
    own = planes.class_of == of[:, None]
    rival = planes.class_of == against[:, None]
    return A * own - A * rival


def tangent(
    model: GeometricMixture, encoded: FloatArray, of: IntArray, against: IntArray
) -> Contributions:
    """Parts of the margin by its tangent at each row (linear and Fourier models).

    A part is the gradient times the standardised cell. The gradient is exact; the parts of a
    Fourier model approximate the margin near the row only. The bias is the tangent's value at the
    mean row.
    """
    U = standardised(model, encoded)
    D, margin = _margin_weights(model, U, of, against)
    slope = plane_gradients(model, U, D)
    parts = by_raw_column(model, slope * U)
    return Contributions(parts, margin - parts.sum(axis=1), np.zeros(len(U)))


def standardised(model: GeometricMixture, encoded: FloatArray) -> FloatArray:
    """Expanded and standardised rows before any rotation, (n, n_kept); zero is the mean."""
    X = encoded if model.expand is None else model.expand(encoded)
    return model.standardize.scaled(X[:, model.standardize.kept])


def plane_scores(model: GeometricMixture, U: FloatArray) -> FloatArray:
    """z of standardised rows, (n, P)."""
    return model.planes.scores(model.lift(model.standardize.rotated(U)))


def _margin_weights(
    model: GeometricMixture, U: FloatArray, of: IntArray, against: IntArray
) -> tuple[FloatArray, FloatArray]:
    """D of every plane, (n, P), and the margins, (n,)."""
    S, A = model.planes.pooled(plane_scores(model, U), model.sharpness)
    rows = np.arange(len(U))
    margin = (S[rows, of] - S[rows, against]) / model.temperature
    return signed(model.planes, A, of, against) / model.temperature, margin


def plane_gradients(model: GeometricMixture, U: FloatArray, D: FloatArray) -> FloatArray:
    """sum_p D_p dz_p/du, (n, n_kept), of a linear or Fourier model.

    The gradient of a soft-OR is the mean of its planes' gradients, weighted by responsibility, so
    with D as above this is the exact gradient of the margin.
    """
    lift = model.lift
    if lift.kind == "linear":
        return model.standardize.unrotated(D @ model.planes.weights)
    assert isinstance(lift, FourierLift)
    angles = model.standardize.rotated(U) @ lift.frequencies
    n_frequencies = angles.shape[1]
    mixed = D @ model.planes.weights
    inner = np.cos(angles) * mixed[:, n_frequencies:] - np.sin(angles) * mixed[:, :n_frequencies]
    slope = np.sqrt(1.0 / n_frequencies) * inner @ lift.frequencies.T
    return model.standardize.unrotated(slope)


def raw_column_of(model: GeometricMixture) -> IntArray:
    """The raw column that each standardised one comes from, (n_kept,)."""
    kept = model.standardize.kept
    return kept if model.expand is None else model.expand.column_of[kept]


def by_raw_column(model: GeometricMixture, parts: FloatArray) -> FloatArray:
    """(n, n_kept) -> (n, n_columns): sums over what each raw column was expanded to."""
    out = np.zeros((len(parts), model.n_features))
    if model.expand is None:
        out[:, model.standardize.kept] += parts  # no column stands twice
    else:
        np.add.at(out.T, raw_column_of(model), parts.T)
    return out
