"""GeometricMixture: the trained model, a small frozen value with its own lean path.

    x  ->  standardise (and rotate)  ->  lift phi  ->  plane scores z  ->  soft-OR s  ->  p

The estimator learns, the model answers: nothing here validates beyond shape, nothing here
imports scikit-learn, and everything that reads a model (explanations, plots, exports) takes
this object alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix import kernel
from geomix.arrays import FloatArray, Matrix
from geomix.lift import Lift, Standardize, short
from geomix.planes import Planes
from geomix.scoring import Predictor, Scorer


@dataclass(frozen=True, eq=False)
class GeometricMixture:
    """Every class a soft union of regions, each region owned by one plane.

    Attributes
    ----------
    classes : (n_classes,) labels, in the order of the probability columns
    columns : names of the input columns
    standardize, lift : the way from a raw row to the working features
    planes : scores over the working features
    sharpness : k of the soft-OR;  temperature : T of the calibrated posterior
    """

    classes: Any
    columns: tuple[str, ...]
    standardize: Standardize
    lift: Lift
    planes: Planes
    sharpness: float
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.lift.kind == "fourier":  # its frequencies are short since they were drawn
            planes = replace(self.planes, weights=short(self.planes.weights))
            object.__setattr__(self, "planes", planes)

    @property
    def n_features(self) -> int:
        return self.standardize.n_columns

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated class probabilities, (n_rows, n_classes)."""
        return self._answering(X).predict_proba(self._rows(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, as a label."""
        return self.classes[self.class_scores(X).argmax(axis=1)]

    def class_scores(self, X: Any) -> FloatArray:
        """s_c / T, whose softmax is the posterior, (n_rows, n_classes)."""
        return self._answering(X).class_scores(self._rows(X))

    def plane_scores(self, X: Any) -> FloatArray:
        """z_cm, columns grouped by class, (n_rows, n_planes)."""
        return self._answering(X).plane_scores(self._rows(X))

    def responsibilities(self, X: Any) -> FloatArray:
        """a_cm: how far each plane carries its class's score; one per class in sum."""
        return self._answering(X).responsibilities(self._rows(X))

    def scorer(self) -> Scorer:
        """A callable for one row at a time: ``score(row)`` gives its probabilities.

        The row is a 1-d array, a list or a tuple; ``score(row, out=p)`` allocates nothing,
        ``score.predict(row)`` gives the label and ``score.explain(row)`` the reasons. It never
        changes, so threads may share it, and it equals ``predict_proba`` bit for bit.
        """
        return kernel.scorer(
            self._predictor, self.classes, self.standardize, self.lift, self.planes
        )

    def lifted(self, X: Any) -> Matrix:
        """Working features phi(x), (n_rows, n_lifted)."""
        return self.lift(self.standardize(X))

    @property
    def folded(self) -> Planes:
        """The planes over the raw columns in the user's own units (linear lift only).

        Standardising and rotating are affine, so they fold into the planes exactly.
        """
        if self.lift.kind != "linear":
            raise AttributeError(
                f"The planes of a {self.lift.kind} lift do not fold into planes over the input "
                "columns; only lift='linear' does."
            )
        return self.planes.through(*self.standardize.as_affine())

    def with_temperature(self, temperature: float) -> GeometricMixture:
        """The same model with another calibration temperature."""
        return replace(self, temperature=float(temperature))

    def _rows(self, X: Any) -> Any:
        if getattr(X, "format", None) is not None and not isinstance(X, np.ndarray):
            X = X.tocsr()
        else:
            X = kernel.plain(np.asarray(X, dtype=np.float64))
        if len(X.shape) != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"Got X of shape {X.shape}; expected (n_rows, {self.n_features}), "
                "one column for each column of the training data."
            )
        return X

    @cached_property
    def _predictor(self) -> Predictor:
        return kernel.predictor(*self._parts)

    @property
    def _parts(self) -> tuple[Standardize, Lift, Planes, float, float]:
        return self.standardize, self.lift, self.planes, self.sharpness, self.temperature

    def _answering(self, X: Any) -> Predictor:
        dense = isinstance(X, np.ndarray) or getattr(X, "format", None) is None
        return self._predictor if dense else kernel.sparse_predictor(self._predictor, *self._parts)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_predictor"}
