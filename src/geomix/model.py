"""GeometricMixture: the trained model, a small frozen value with its own lean path.

    x  ->  encode, expand  ->  standardise (and rotate)  ->  lift phi  ->  plane scores z
                                                         ->  soft-OR s  ->  p

Only tables with categories are encoded, and only those and tables with missing values expanded.
The estimator learns, the model answers: nothing here validates beyond shape, nothing here
imports scikit-learn, and everything that reads a model (explanations, plots, exports) takes
this object alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from geomix import arrayapi, kernel
from geomix.arrays import FloatArray, Matrix
from geomix.expand import Expand, expanded
from geomix.lift import Lift, Standardize, short
from geomix.picked import all_rows, blocks
from geomix.planes import Planes
from geomix.schema import Table
from geomix.scoring import Predictor, Scorer, TableScorer


@dataclass(frozen=True, eq=False)
class GeometricMixture:
    """Every class a soft union of regions, each region owned by one plane.

    Attributes
    ----------
    classes : (n_classes,) labels, in the order of the probability columns
    columns : names of the input columns
    table, expand : what the columns are, and the 0/1 columns made of categories and of missing
        cells; ``expand`` is None where there were none
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
    table: Table | None = None
    expand: Expand | None = None

    def __post_init__(self) -> None:
        if self.lift.kind == "fourier":  # its frequencies are short since they were drawn
            planes = replace(self.planes, weights=short(self.planes.weights))
            object.__setattr__(self, "planes", planes)

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def expanded_names(self) -> tuple[str, ...]:
        """Names of the columns that ``folded`` planes are over: the raw ones, with "age missing"
        and "colour=red" for the 0/1 columns made of them."""
        if self.expand is None or self.table is None:
            return self.columns
        return self.expand.names(self.table)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated class probabilities, (n_rows, n_classes).

        Like all answers, of a float array, or of raw cells where the table has categories. An
        array of another library (torch, CuPy, JAX) is answered in kind, on its device.
        """
        return self._asked("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, as a label."""
        if arrayapi.is_foreign(X):
            return arrayapi.predict(self, X)
        return self.classes[self.class_scores(X).argmax(axis=1)]

    def class_scores(self, X: Any) -> FloatArray:
        """s_c / T, whose softmax is the posterior, (n_rows, n_classes)."""
        return self._asked("class_scores", X)

    def plane_scores(self, X: Any) -> FloatArray:
        """z_cm, columns grouped by class, (n_rows, n_planes)."""
        return self._asked("plane_scores", X)

    def responsibilities(self, X: Any) -> FloatArray:
        """a_cm: how far each plane carries its class's score; one per class in sum."""
        return self._asked("responsibilities", X)

    def _asked(self, what: str, X: Any) -> Any:
        if arrayapi.is_foreign(X):  # a torch, CuPy or JAX array is answered in kind
            return arrayapi.answer(self, what, X)
        return self.answer(what, self._rows(X))

    def answer(self, what: str, encoded: Any) -> FloatArray:
        """One of the answers above, of rows that are encoded already (or sparse)."""
        if getattr(encoded, "format", None) is not None:
            if self.expand is not None:
                raise TypeError(
                    "Got sparse rows for a table with categories or missing values; pass dense "
                    "rows or a frame."
                )
            sparse = kernel.sparse_predictor(self._predictor, *self._parts)
            answers: FloatArray = getattr(sparse, what)(encoded)
            return answers
        answers_of: Callable[[Any], FloatArray] = getattr(self._predictor, what)
        if self.expand is None:
            return answers_of(encoded)
        if len(encoded) == 0:
            return answers_of(self.expand(encoded))
        parts = blocks(expanded(all_rows(encoded), self.expand))
        return np.concatenate([answers_of(block) for _, block in parts])

    def scorer(self) -> Scorer:
        """A callable for one row at a time: ``score(row)`` gives its probabilities.

        The row is a 1-d array, a list or a tuple; ``score(row, out=p)`` allocates nothing,
        ``score.predict(row)`` gives the label and ``score.explain(row)`` the reasons. It never
        changes, so threads may share it, and it equals ``predict_proba`` bit for bit. NaN is a
        missing number. A table with categories or missing values takes raw cells, with None
        for missing ones, or a dict by column name.
        """
        score = kernel.scorer(
            self._predictor, self.classes, self.standardize, self.lift, self.planes
        )
        if self.table is None or (self.expand is None and not self.table.has_categories):
            return score
        return TableScorer(self.table, self.expand, score)

    def lifted(self, X: Any) -> Matrix:
        """Working features phi(x), (n_rows, n_lifted)."""
        rows = self._rows(X)
        return self.lift(self.standardize(rows if self.expand is None else self.expand(rows)))

    @property
    def folded(self) -> Planes:
        """The planes over the raw columns in the user's own units (linear lift only).

        Where there are categories or missing values, over the columns that ``expanded_names``
        names. Standardising and rotating are affine, so they fold into the planes exactly.
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
        elif self.table is not None and self.table.has_categories:
            return self.table.encode(X)
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

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_predictor"}
