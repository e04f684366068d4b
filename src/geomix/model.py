"""GeometricMixture: the trained model, a small frozen value with its own lean path.

    x  ->  encode, expand  ->  standardise (and rotate)  ->  lift phi  ->  plane scores z
                                                         ->  soft-OR s  ->  p

Only tables with categories are encoded, and only those and tables with missing values expanded.
The estimator learns, the model answers. Rows come in by ``table/known_rows.py``, which matches
columns by name. Nothing here imports scikit-learn, and everything that reads a model
(explanations, plots, exports) takes this object alone.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from geomix.arrays import FloatArray, Matrix, freeze
from geomix.core import array_api, kernel
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import PRECISIONS, FourierLift, Lift, Standardize, short
from geomix.core.planes import Planes
from geomix.core.predictors import CellReader, Predictor, Scorer
from geomix.table.known_rows import known_rows
from geomix.table.one_hot import Expand
from geomix.table.printing import Facts, shortened, some
from geomix.table.row_views import all_rows, blocks
from geomix.table.schema import Fill, Schema, numeric_schema

if TYPE_CHECKING:
    from geomix.explain.drift import Drift
    from geomix.explain.editing import Edit
    from geomix.explain.effect_facts import Effects
    from geomix.explain.global_explanation import GlobalExplanation
    from geomix.explain.local_explanation import LocalExplanation
    from geomix.geometry.answers import Counterfactual, Counterfactuals
    from geomix.geometry.certificate import Certificates
    from geomix.geometry.intervals import ProbabilityIntervals
    from geomix.geometry.monotone import MonotoneCheck
    from geomix.geometry.regions import Regions
    from geomix.geometry.rules import Rules
    from geomix.geometry.thresholds import Thresholds


@dataclass(frozen=True, eq=False, repr=False)
class GeometricMixture:
    """Every class a soft union of regions, each region owned by one plane.

    Attributes
    ----------
    classes : (n_classes,) labels, in the order of the probability columns
    columns : names of the input columns
    feature_map : from an encoded row to the working features: ``expand`` (None where no column
        has categories or missing cells), ``standardize`` and ``lift``
    planes : scores over the working features
    table : names, kinds and levels of the columns
    sharpness : k of the soft-OR;  temperature : T of the calibrated posterior
    training : what is known of the training, plain values by name;  edits : what was changed by
        hand since, in order. Neither changes an answer; both are kept in the model's file
    """

    classes: Any
    columns: tuple[str, ...]
    feature_map: FeatureMap
    planes: Planes
    sharpness: float
    temperature: float = 1.0
    schema: Schema | None = None
    training: Mapping[str, Any] | None = None
    edits: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.lift.kind == "fourier":  # its frequencies are short since they were drawn
            planes = replace(self.planes, weights=short(self.planes.weights))
            object.__setattr__(self, "planes", planes)
        # A change in place would not reach the predictor, which has its own copy.
        object.__setattr__(self, "classes", np.array(self.classes))
        freeze((self.classes, self.planes, self.feature_map))

    @property
    def standardize(self) -> Standardize:
        return self.feature_map.standardize

    @property
    def lift(self) -> Lift:
        return self.feature_map.lift

    @property
    def expand(self) -> Expand | None:
        return self.feature_map.expand

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def expanded_names(self) -> tuple[str, ...]:
        """Names of the columns that ``folded`` planes are over: the raw ones, with "age missing"
        and "colour=red" for the 0/1 columns made of them."""
        if self.expand is None or self.schema is None:
            return self.columns
        return self.expand.names(self.schema)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated class probabilities, (n_rows, n_classes).

        Like all answers, of an array of numbers, a frame whose columns have the names and order of
        the training data, or a dict by column name. An array of another library (torch, CuPy,
        JAX) is answered in kind, on its device.
        """
        return self._asked("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, as a label."""
        if array_api.is_foreign(X):
            return array_api.predict(self, X)
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
        if array_api.is_foreign(X):  # a torch, CuPy or JAX array is answered in kind
            return array_api.answer(self, what, X)
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
        parts = blocks(self.feature_map.expanded(all_rows(encoded)))
        return np.concatenate([answers_of(block) for _, block in parts])

    def scorer(self) -> Scorer:
        """A callable for one row at a time: ``score(row)`` gives its probabilities.

        The row is a 1-d array, a list or a tuple; ``score(row, out=p)`` allocates nothing,
        ``score.predict(row)`` gives the label and ``score.explain(row)`` the reasons. It never
        changes, so threads may share it, and it equals ``predict_proba`` bit for bit. NaN is a
        missing number. A table with categories or missing values takes raw cells, with None
        for missing ones, or a dict by column name.
        """
        reader = None
        if self.schema is not None and (self.expand is not None or self.schema.has_categories):
            reader = CellReader(self.schema, self.expand)
        parts = self._predictor, self.classes, self.feature_map, self.planes
        return kernel.scorer(*parts, reader)

    def lifted(self, X: Any) -> Matrix:
        """Working features phi(x), (n_rows, n_lifted)."""
        return self.feature_map(self._rows(X))

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
        """The same model with another calibration temperature, a positive number."""
        is_number = isinstance(temperature, (numbers.Real, np.floating))
        if not is_number or isinstance(temperature, bool) or not 0.0 < temperature < np.inf:
            raise ValueError(
                f"Got temperature={temperature!r}; expected a positive number, such as 1.0 for "
                "scores as they are."
            )
        return replace(self, temperature=float(temperature))

    def with_precision(self, precision: str) -> GeometricMixture:
        """The same model with its Fourier features computed in "float32" or "float64".

        float64 is the default. float32 predicts whole tables in about half the time, with
        probabilities that differ by about 1e-7. A row far outside the training data is computed in
        float64 either way. Only a Fourier lift has the choice. Certificates and exports are
        computed in float64.
        """
        if precision not in PRECISIONS:
            raise ValueError(f"Got precision={precision!r}; expected 'float32' or 'float64'.")
        if not isinstance(self.lift, FourierLift):
            if precision == "float64":
                return self
            raise ValueError(
                f"Got precision={precision!r} for a {self.lift.kind} lift; only a Fourier lift "
                "computes in float32. Keep 'float64'."
            )
        lift = replace(self.lift, precision=precision)
        return replace(self, feature_map=self.feature_map.with_lift(lift))

    @property
    def class_shares(self) -> tuple[float, ...] | None:
        """Of the training rows, in the order of ``classes``; None where that is not known."""
        shares = (self.training or {}).get("class_shares")
        return None if shares is None else tuple(shares)

    def with_edit(self, action: str, **facts: Any) -> GeometricMixture:
        """The same model with one more record in its edit log."""
        return replace(self, edits=(*self.edits, {"action": action, **facts}))

    def save(self, path: Any) -> None:
        """Write the model to a ``.geomix`` file, atomically; ``geomix.load`` reads it."""
        from geomix.modelfile.saving import save  # which makes models, and so imports this module

        save(self, path)

    def encoded(self, X: Any) -> Any:
        """Rows as the model reads them: numbers, codes of levels, NaN where missing."""
        return self._rows(X)

    # --- reading: each is a function of its own module, imported when it is called ---

    def explain_global(
        self,
        X: Any = None,
        y: Any = None,
        *,
        n_columns: int = 5,
        ignore: Iterable[str] = (),
    ) -> GlobalExplanation:
        """Explain the model as a whole: a card for every plane, curves, and findings.

        X, y : rows and their labels, for usage, importances and typical rows (``X``), purity,
            calibration and errors (``y``); None explains the model alone
        n_columns : strongest columns on each card
        ignore : numbers of findings to leave out
        """
        from geomix.explain.global_explanation import explain_global

        return explain_global(self, X, y, n_columns=n_columns, ignore=ignore)

    def effects(
        self, X: Any = None, *, confidence: float = 0.9, n_interactions: int = 10
    ) -> Effects:
        """Effects: one curve or bar for each column and class, in log-odds against the average row.

        X : rows, best those of the training, for bands, densities and importances
        confidence : of the bands and intervals
        n_interactions : most pairs of columns in ``interactions``
        """
        from geomix.explain.effects import effects

        return effects(self, X, confidence=confidence, n_interactions=n_interactions)

    def explain_local(
        self,
        X: Any,
        *,
        label: Any = None,
        against: Any = None,
        method: str = "auto",
        n_orders: int = 32,
        random_state: int = 0,
    ) -> LocalExplanation:
        """Explain the prediction of each row: what every column adds to the margin.

        label : the class to explain; None: the most probable one of each row
        against : the class to compare it with; None: the next most probable one
        method : "exact" for linear and spline models. For a Fourier model "shapley", with standard
            errors, or "gradient", the tangent; both are approximations. "auto" is "exact" where
            possible, else "shapley"
        n_orders, random_state : random orders of the columns for "shapley", and their seed
        """
        from geomix.explain.local_explanation import explain_local

        return explain_local(
            self,
            X,
            label=label,
            against=against,
            method=method,
            n_orders=n_orders,
            random_state=random_state,
        )

    def counterfactual(
        self,
        x: Any,
        target: Any = None,
        *,
        immutable: Any = (),
        increase_only: Any = (),
        decrease_only: Any = (),
        ranges: Mapping[Any, Any] | None = None,
        norm: str = "l2",
        sparse: int | str | None = "auto",
        scale: Mapping[Any, float] | None = None,
        costs: Mapping[Any, float] | None = None,
        steps: Mapping[Any, float | None] | None = None,
        probability: float | None = None,
        X: Any = None,
    ) -> Counterfactual:
        """A row near to ``x``, with few columns changed, that the model puts into another class.

        target : that class; None: any other
        immutable, increase_only, decrease_only : columns by name or position
        ranges : (lowest, highest) of a number, or the allowed levels of a category, by column
        norm : "l2" or "l1"
        sparse : most columns that change; None: any number, for the nearest row. "auto": at most
            three columns, or else the fewest, whose row is at most 4 times as far as the nearest
        scale : one unit of change of a number, by column; its standard deviation otherwise
        costs : factors of the cost of a change, by column
        steps : step of a number's changes, by column; None: continuous. Otherwise learnt from rows
            ``X``, from the knots of a spline lift or from the row's types: integers stay integers
        probability : least probability of the target
        """
        from geomix.geometry.counterfactual import counterfactual

        return counterfactual(
            self,
            x,
            target,
            immutable=immutable,
            increase_only=increase_only,
            decrease_only=decrease_only,
            ranges=ranges,
            norm=norm,
            sparse=sparse,
            scale=scale,
            costs=costs,
            steps=steps,
            probability=probability,
            X=X,
        )

    def counterfactuals(
        self,
        x: Any,
        target: Any = None,
        *,
        n: int = 3,
        immutable: Any = (),
        increase_only: Any = (),
        decrease_only: Any = (),
        ranges: Mapping[Any, Any] | None = None,
        norm: str = "l2",
        sparse: int | str | None = "auto",
        scale: Mapping[Any, float] | None = None,
        costs: Mapping[Any, float] | None = None,
        steps: Mapping[Any, float | None] | None = None,
        probability: float | None = None,
        X: Any = None,
    ) -> Counterfactuals:
        """Up to ``n`` counterfactuals of one row that change different sets of columns.

        The other parameters are those of ``counterfactual``.
        """
        from geomix.geometry.counterfactual import counterfactuals

        return counterfactuals(
            self,
            x,
            target,
            n=n,
            immutable=immutable,
            increase_only=increase_only,
            decrease_only=decrease_only,
            ranges=ranges,
            norm=norm,
            sparse=sparse,
            scale=scale,
            costs=costs,
            steps=steps,
            probability=probability,
            X=X,
        )

    def certify(
        self,
        X: Any,
        norm: Any = 2,
        *,
        method: str = "fast",
        scale: Mapping[Any, float] | None = None,
    ) -> Certificates:
        """Radii around rows within which no prediction changes: proved lower bounds.

        norm : 1, 2 or inf
        method : "fast", or "exact" (linear lift), which gives larger radii and is slower
        scale : one unit of change of a number, by column; its standard deviation otherwise
        """
        from geomix.geometry.certificate import certify

        return certify(self, X, norm, method=method, scale=scale)

    def probability_intervals(self, X: Any, errors: Mapping[Any, float]) -> ProbabilityIntervals:
        """Bounds of every probability when columns are measured with an error.

        errors : largest error of a column in its own units, by name or position
        """
        from geomix.geometry.intervals import probability_intervals

        return probability_intervals(self, X, errors)

    def thresholds(self, x: Any, column: Any) -> Thresholds:
        """Values of ``column`` at which the prediction changes while the rest of ``x`` is held."""
        from geomix.geometry.thresholds import thresholds

        return thresholds(self, x, column)

    def rules(
        self,
        X: Any = None,
        y: Any = None,
        *,
        class_: Any = None,
        purity: float = 0.9,
        max_terms: int = 3,
        max_rules: int = 12,
        min_coverage: float = 0.01,
        digits: int = 3,
    ) -> Rules:
        """Few short rules that cover most rows of ``X``: "if ... else if ... else ...".

        y : labels that purity is measured against; None: the predictions
        class_ : rules of this class only
        purity : least share of a rule's rows that belong to its class
        max_terms, max_rules : most conditions of a rule, and most rules
        min_coverage : least share of the rows that a rule adds to those before it
        digits : significant digits of the limits of numbers
        """
        from geomix.geometry.rules import rules

        return rules(
            self,
            X,
            y,
            class_=class_,
            purity=purity,
            max_terms=max_terms,
            max_rules=max_rules,
            min_coverage=min_coverage,
            digits=digits,
        )

    def regions(
        self,
        X: Any = None,
        y: Any = None,
        *,
        class_: Any = None,
        planes: Iterable[int] | None = None,
        max_terms: int | None = None,
        digits: int = 3,
    ) -> Regions:
        """The region of each plane: inequalities (linear lift) or boxes (spline, needs ``X``).

        X, y : rows and labels, for coverage, purity and errors
        class_ : regions of this class only;  planes : positions of the planes; None: all
        max_terms : most terms of an inequality, or most conditions of a box
        digits : significant digits of the numbers
        """
        from geomix.geometry.regions import regions

        return regions(self, X, y, class_=class_, planes=planes, max_terms=max_terms, digits=digits)

    def check_monotone(self, monotonic_cst: Any, X: Any = None) -> MonotoneCheck:
        """Whether probabilities only rise or only fall with columns: proved for every row.

        monotonic_cst : as of the estimator;  X : rows among which to look for violations
        """
        from geomix.geometry.monotone import check_monotone

        return check_monotone(self, monotonic_cst, X)

    def compare(self, X_reference: Any, X_new: Any) -> Drift:
        """Drift between two tables: shares of rows by plane and by column."""
        from geomix.explain.drift import compare

        return compare(self, X_reference, X_new)

    def report(
        self,
        X: Any,
        y: Any,
        path: Any,
        *,
        X_new: Any = None,
        title: str | None = None,
        n_rows: int = 48,
        n_counterfactuals: int = 24,
        ignore: Iterable[str] = (),
        n_total: int | None = None,
    ) -> None:
        """Write an interactive report to one HTML file, atomically.

        X, y : rows and labels that training has not seen
        X_new : later rows, for the drift between them and ``X``
        title : of the page
        n_rows : rows of ``X`` that the file contains, readable by whoever has it; 0: none
        n_counterfactuals : number of those rows that get a counterfactual
        ignore : numbers of findings to leave out
        n_total : rows of the table that ``X`` was drawn from, evenly; None: ``X`` is all of it
        """
        from geomix.report import report

        report(
            self,
            X,
            y,
            path,
            X_new=X_new,
            title=title,
            n_rows=n_rows,
            n_counterfactuals=n_counterfactuals,
            ignore=ignore,
            n_total=n_total,
        )

    # --- editing: a new model, with the exact change ---

    def without_plane(self, label: Any, plane: int) -> Edit:
        """The model without one plane of a class, counted from 0."""
        from geomix.explain.editing import without_plane

        return without_plane(self, label, plane)

    def merge_planes(self, label: Any, planes: Any, shares: Any = None) -> Edit:
        """The model with several planes of a class merged into one.

        shares : weights of the planes in the new one; None: equal
        """
        from geomix.explain.editing import merge_planes

        return merge_planes(self, label, planes, shares)

    def with_priors(self, priors: Any, before: Any = None) -> Edit:
        """The model for a population with other shares of the classes, by Bayes' rule.

        priors : the new share of every class, by label
        before : the shares in the training rows; None: those stored in the model
        """
        from geomix.explain.editing import with_priors

        return with_priors(self, priors, before)

    def __repr__(self) -> str:
        return str(self._facts())

    def _repr_html_(self) -> str:
        return self._facts().to_html()

    def _facts(self) -> Facts:
        planes, n_members = self.planes, self.planes.n_members
        counts = [
            f"{shortened(str(label), 20)}: {n // n_members}"
            for label, n in zip(self.classes.tolist(), planes.per_class.tolist(), strict=True)
        ]
        lift = f"{self.lift.kind}, {planes.weights.shape[1]} features"
        lift += f", ensemble of {n_members}" if n_members > 1 else ""
        lift += ", float32" if getattr(self.lift, "precision", None) == "float32" else ""
        facts: list[tuple[str, Any]] = [
            ("planes per class", some(counts)),
            ("lift", lift),
            ("columns", some(self.columns)),
            ("temperature", f"{self.temperature:.4g}, sharpness {self.sharpness:.4g}"),
        ]
        n_rows = (self.training or {}).get("n_rows")
        facts += [] if n_rows is None else [("training rows", str(n_rows))]
        title = f"GeometricMixture of {len(self.classes)} classes and {self.n_features} columns"
        return Facts(title, tuple(facts))

    def _rows(self, X: Any) -> Any:
        return known_rows(self._schema, X, self.fill)

    @cached_property
    def fill(self) -> Fill | None:
        """Reads frames in native code: see ``Schema.encode``; None with the NumPy kernel."""
        return kernel.fill(self._schema)

    @cached_property
    def _schema(self) -> Schema:
        return numeric_schema(self.columns) if self.schema is None else self.schema

    @cached_property
    def _predictor(self) -> Predictor:
        return kernel.predictor(*self._parts)

    @property
    def _parts(self) -> tuple[FeatureMap, Planes, float, float]:
        return self.feature_map, self.planes, self.sharpness, self.temperature

    def __getstate__(self) -> dict[str, Any]:
        cached = ("_predictor", "_schema", "fill")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freeze((self.classes, self.planes, self.feature_map))  # pickle makes arrays writable
