"""GeometricMixtureClassifier: the scikit-learn face of the model. It checks, and it forwards."""

from __future__ import annotations

import copy
import difflib
import functools
import inspect
import numbers
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from geomix.arrays import FloatArray, IntArray
from geomix.core import array_api, kernel
from geomix.core.blas_threads import blas_threads
from geomix.errors import InvalidParameterError
from geomix.explain.coefficients import coefficients
from geomix.explain.importances import training_importances
from geomix.model import GeometricMixture
from geomix.search.assembly import FitResult
from geomix.search.fit import fit_model, watch_until
from geomix.search.fitted import Snapshot
from geomix.search.parallel import n_threads
from geomix.search.warm_start import next_batch, warm_start
from geomix.table.reader import needs_dense, read_rows
from geomix.table.schema import Schema
from geomix.training.callbacks import CallbackSupportMixin, callback_watch, with_callbacks
from geomix.training.deadline import Deadline
from geomix.training.history import History, training_facts, warn_if_cut_short
from geomix.training.labelled_rows import (
    check_two_classes,
    class_weights,
    first_rows,
    known_labels,
    later_rows,
    validation_rows,
)
from geomix.training.monotone import is_about_two_classes
from geomix.training.progress import ProgressLine
from geomix.training.recipe import RECIPE_NAMES, Auto, Recipe
from geomix.training.rows import class_weighted
from geomix.training.settings import PAPER, Settings
from geomix.training.state import TrainingState

if TYPE_CHECKING:
    from typing_extensions import Self

    from geomix.search.preset_comparison import PresetComparison

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


def _forwarded(
    method: Callable[Concatenate[GeometricMixture, Arguments], Result],
) -> Callable[Concatenate[GeometricMixtureClassifier, Arguments], Result]:
    """A method of the model as a method of the fitted estimator."""

    @functools.wraps(method)
    def forward(
        self: GeometricMixtureClassifier, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        check_is_fitted(self)
        return method(self.model_, *args, **kwargs)

    return forward


def _available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """scikit-learn's decorator, with the type of what it decorates."""
    return cast("Callable[[Method], Method]", available_if(check))


def _streams(estimator: GeometricMixtureClassifier) -> bool:
    if estimator.monotonic_cst is not None and estimator.settings().is_monotone:
        raise AttributeError("partial_fit does not keep monotonic_cst; use fit with all rows.")
    return True


class GeometricMixtureClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify with a few planes per class: every class is a soft union of regions.

    A plane scores a row by a weighted sum of its features. The planes of a class are pooled by
    a soft-OR, the classes compete in a softmax, and the probabilities are calibrated on held-out
    rows. Features, number of planes and penalty are chosen by held-out log-loss unless they are
    set here. Columns may be numbers or categories, with missing values.

    Parameters
    ----------
    n_planes : "auto", "silhouette", int or dict, default="auto"
        Planes per class: a number for all classes, or a dict of class label to number.
        "silhouette" takes the number of clusters with the best silhouette, or one where one
        Gaussian would reach it too. "auto" tries one plane and several, up to ``max_planes``, on
        held-out rows.
    preset : {"readable", "accurate", "fast"}, default="readable"
        What the choice aims at: "readable", the simplest model within the noise, of linear or
        spline planes; "accurate", the lowest log-loss, with many planes, kernels and ensembles;
        "fast", no search, one spline plane per class. Other parameters override their part.
    max_planes : "auto" or int, default="auto"
        Largest number of planes per class that is tried. "auto" is 12 for linear planes, and
        for spline planes 4 ("readable") or 32 ("accurate"); 1 with "fast".
    lift : {"auto", "linear", "spline", "fourier"} or tuple of them, default="auto"
        Features of the planes: the columns themselves, a curve over each column, or random
        Fourier features of a Gaussian kernel. "auto" and a tuple choose on held-out rows.
    max_interactions : "auto" or int, default="auto"
        Largest number of named pairs of columns with a joint effect (spline lift). "auto" is
        10; 0 leaves pairs out. A column in ``monotonic_cst`` is in no pair.
    l2 : "auto" or float, default="auto"
        Penalty on squared weights. "auto" chooses it on held-out rows.
    shrink_to_mean : "auto" or float, default="auto"
        From 0 to 0.999: how far the planes of a class shrink towards their mean rather than
        towards zero. "auto" tries 0 and 0.9 for spline planes.
    adaptive_penalty : "auto" or bool, default="auto"
        Divide the penalty of each step of a curve, and the width of a Fourier kernel along each
        column, by its importance. "auto" tries both where ``l2`` is "auto".
    n_members : "auto" or int, default="auto"
        Size of the ensemble: models trained on different parts of the rows, whose scores are
        averaged. "auto" is up to 8, as the budget allows, for several spline planes up to
        20,000 rows with ``preset="accurate"``, otherwise 1.
    categorical_features : None, or list of str, int or bool, default=None
        Columns of categories besides those of a categorical or text type: names, positions or a
        mask. Name integer codes here, which are numbers otherwise.
    missing : {"learn", "error"}, default="learn"
        "learn" gives each column with missing values an indicator of its own; a missing category
        is a level. "error" refuses missing values.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They shift the probabilities; see ``correct_prior``.
    correct_prior : bool, default=False
        Remove the effect of ``class_weight`` on the class shares from the probabilities.
    monotonic_cst : dict, list or None, default=None
        Probabilities that only rise (1) or only fall (-1) with a column; 0 is free. By column
        and class, ``{"dose": {"toxic": 1}}``; for two classes also ``{"dose": 1}`` or a list
        with one entry for each column, about the second class. Holds for every row. Excludes
        Fourier lifts, PCA and Adam.
    max_iter : int, default=300
        Most iterations of L-BFGS, or epochs of Adam. A ConvergenceWarning names a training that
        needs more, unless it was validated with the default.
    early_stopping : {"auto", "calibrated", "plain", "off"}, default="auto"
        Stop by the held-out log-loss, after temperature scaling ("calibrated") or before
        ("plain"). "auto" is "off" where the final training has no held-out rows.
    n_iter_no_change : int, default=12
        Iterations without a lower held-out loss before training stops.
    validation_fraction : float, default=0.2
        Share of each class to hold out. Under 2,000 distinct rows five-fold cross-validation
        takes its place, under 300 ten-fold, and under 50 nothing is held out.
    time_limit : float or None, default=None
        Seconds that ``fit`` may take; half of them for the choice. The result then depends on
        the speed of the machine.
    n_jobs : int or None, default=None
        Threads to use; None and -1 take all processors, -2 all but one. Folds, random starts and
        members of an ensemble are trained side by side, large passes over rows are shared. The
        model is the same for any number, bit for bit.
    warm_start : bool, default=False
        Later calls of ``fit`` continue from the present model: its columns, lift and number of
        planes stay.
    random_state : int, RandomState instance or None, default=None
        The same seed and rows give the same model, bit for bit.
    verbose : int, default=0
        1 shows a progress line.
    advanced : Recipe or None, default=None
        Settings that few people change: sharpness, solver, knots and others. See ``Recipe``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of ``predict_proba``.
    model_ : GeometricMixture
        The trained model, which predicts, explains, saves and exports without scikit-learn.
    history_ : History
        Iterations, candidates that were tried, why the chosen one won, and notes.
    n_iter_ : int
        Iterations of the final training.
    n_planes_ : ndarray of shape (n_classes,)
        Planes per class.
    table_check_ : TableCheck
        What ``geomix.check_table`` finds in the training table.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean absolute contribution of each column to the log-odds of the predicted class against
        the next one, over training rows.
    coef_, intercept_ : ndarrays of shape (n_lines, n_features_in_) and (n_lines,)
        ``X @ coef_.T + intercept_`` is the decision function: one line for two classes, else one
        for each. Only with one linear plane per class, without categories and missing cells.
    n_features_in_ : int
        Number of columns in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where ``X`` had names that are all text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.counterfactual(X.iloc[0], target=1).status
    'found'
    """

    classes_: NDArray[Any]
    model_: GeometricMixture
    history_: History
    n_iter_: int
    n_planes_: IntArray
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        n_planes: int | Literal["auto", "silhouette"] | Mapping[Any, int] = "auto",
        *,
        preset: Literal["readable", "accurate", "fast"] = "readable",
        max_planes: int | Auto = "auto",
        lift: str | tuple[str, ...] = "auto",
        max_interactions: int | Auto = "auto",
        l2: float | Auto = "auto",
        shrink_to_mean: float | Auto = "auto",
        adaptive_penalty: bool | Auto = "auto",
        n_members: int | Auto = "auto",
        categorical_features: Any = None,
        missing: Literal["learn", "error"] = "learn",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        correct_prior: bool = False,
        monotonic_cst: Any = None,
        max_iter: int = 300,
        early_stopping: Literal["auto", "calibrated", "plain", "off"] = "auto",
        n_iter_no_change: int = 12,
        validation_fraction: float = 0.2,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        advanced: Recipe | None = None,
    ) -> None:
        self.n_planes = n_planes
        self.preset = preset
        self.max_planes = max_planes
        self.lift = lift
        self.max_interactions = max_interactions
        self.l2 = l2
        self.shrink_to_mean = shrink_to_mean
        self.adaptive_penalty = adaptive_penalty
        self.n_members = n_members
        self.categorical_features = categorical_features
        self.missing = missing
        self.class_weight = class_weight
        self.correct_prior = correct_prior
        self.monotonic_cst = monotonic_cst
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.advanced = advanced

    def compare_presets(self, X: Any, y: Any, cv: Any = 5) -> PresetComparison:
        """The price of readability: every preset cross-validated on the same folds.

        ``cv`` is a number of folds or a splitter, as in ``cross_val_score``. The other parameters
        stay as they are. The answer prints as a table, and
        ``geomix.plots.PresetDisplay.from_comparison`` draws it.
        """
        from geomix.search.preset_comparison import compare_presets

        return compare_presets(self, X, y, cv)

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The paper's recipe; ``parameters``, those of ``Recipe`` included, override parts of it.

        What the paper leaves open, and the three things in which the recipe departs from it, are
        listed in the documentation of the paper's experiments.
        """
        return cls(**routed({**PAPER, **parameters}))

    @classmethod
    def from_model(cls, model: GeometricMixture) -> Self:
        """A fitted estimator around a model, such as ``geomix.load`` returns.

        It answers as the model does, in scorers, ``FrozenEstimator`` and other tools that take an
        estimator. Parameters are the defaults, which ``fit`` would use; training cannot go on.
        """
        if not isinstance(model, GeometricMixture):
            raise TypeError(
                f"Got a model of type {type(model).__name__}; expected a GeometricMixture, such as "
                "geomix.load(path) returns."
            )
        estimator = cls()
        estimator.n_features_in_ = model.n_features
        if model.columns != tuple(f"x{j}" for j in range(model.n_features)):
            estimator.feature_names_in_ = np.array(model.columns, dtype=object)
        note = "Made from a model; model_.training has what is known of its training."
        state = estimator._fitted_attributes(model)
        state |= {"history_": History(notes=(note,)), "_training_state": None, "_adam": None}
        state |= {"n_iter_": max(int((model.training or {}).get("n_iter", 1)), 1)}
        estimator.__dict__.update(state, _importances=None)
        return estimator

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as every scikit-learn estimator does."""
        for given in params:
            name = given.removeprefix("advanced__")
            if name in RECIPE_NAMES:
                raise InvalidParameterError(
                    f"{name} is a field of Recipe; set advanced=Recipe({name}=...) instead."
                )
        super().set_params(**params)
        return self

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Learn from rows ``X`` with labels ``y``.

        With ``X_val`` and ``y_val`` those rows choose, stop and calibrate, and no row of ``X``
        is held out. ``sample_weight`` and ``sample_weight_val`` are weights of the rows: a row of
        weight two counts as the row given twice. An error or Ctrl-C leaves the estimator as it was
        before the call.
        """
        settings = self.settings()
        deadline = None if settings.time_limit is None else Deadline.after(settings.time_limit)
        if _stays_on_device(X):
            if not self.warm_start:
                return self._fit_on_device(X, y, sample_weight, X_val, y_val)
            X, y, sample_weight, X_val, y_val, sample_weight_val = map(
                array_api.to_numpy_if_foreign,
                (X, y, sample_weight, X_val, y_val, sample_weight_val),
            )
        # The new state grows on a shadow and is taken over in one step at the end, so that a
        # failed fit, or a predict in another thread, never meets half a model.
        shadow = copy.copy(self)
        goes_on = bool(self.warm_start) and hasattr(self, "model_")
        if goes_on:
            schema, classes = cast(Schema, self.model_.schema), self.classes_
            rows = later_rows(shadow, X, y, sample_weight)
            check_two_classes(shadow, classes[np.unique(rows.y)])
        else:
            rows, schema, classes = first_rows(shadow, X, y, sample_weight)
        given = X_val, y_val, sample_weight_val
        valid = validation_rows(shadow, schema, classes, rows, *given)
        shadow.check_planes_of_labels(classes)
        class_weight = class_weights(self.class_weight, rows, classes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        def attributes(snapshot: Snapshot) -> dict[str, Any]:
            return shadow._fitted_attributes(
                GeometricMixture(
                    classes,
                    schema.names,
                    snapshot.feature_map,
                    snapshot.planes,
                    float(settings.sharpness),
                    schema=schema,
                )
            )

        notify = callback_watch(self, X, y, attributes)
        n_cells = rows.X.shape[0] * rows.X.shape[1]
        threads = kernel.at_most_threads(n_threads(settings.n_jobs))
        with threads, blas_threads(n_cells), ProgressLine(self.verbose) as line:

            def watch(record: Any, snapshot: Any) -> bool:
                line(record, snapshot)
                return notify is not None and notify(record, snapshot)

            watched = watch if line.is_shown or notify is not None else None
            if goes_on:
                result = warm_start(
                    self.model_,
                    self._known_state(),
                    rows,
                    valid,
                    settings,
                    seed,
                    class_weight=class_weight,
                    watch=watch_until(deadline, watched),
                )
            else:
                result = fit_model(
                    rows,
                    classes,
                    schema,
                    settings,
                    seed,
                    valid=valid,
                    class_weight=class_weight,
                    watch=watched,
                    deadline=deadline,
                )
        self.take_over(shadow, result, rows.X)
        if notify is not None:
            notify.end()
        return self

    @_available_if(_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of a stream.

        The first batch is fitted as a table, and decides columns, scale, lift, number of planes,
        penalty and temperature: make it a large and mixed one. ``classes`` names every label
        that will ever come and is needed with it. Each later batch is one epoch of Adam.
        A stream that is sorted by class ends up predicting the last one: use ``geomix.fit_files``.
        """
        settings = replace(self.settings(), n_members=1)
        if _stays_on_device(X):
            X, y, sample_weight = map(array_api.to_numpy_if_foreign, (X, y, sample_weight))
        shadow = copy.copy(self)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if not hasattr(self, "model_"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            rows, schema, labels = first_rows(shadow, X, y, sample_weight, classes)
            shadow.check_planes_of_labels(labels)
            weights = class_weights(self.class_weight, rows, labels)
            fitted = fit_model(rows, labels, schema, settings, seed, class_weight=weights)
            return self.take_over(shadow, fitted, rows.X)
        if classes is not None and not np.array_equal(known_labels(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not what it was on the first call to partial_fit: "
                f"{self.classes_.tolist()!r}."
            )
        rows = later_rows(shadow, X, y, sample_weight)
        weights = class_weights(self.class_weight, rows, self.classes_)
        rows = rows if weights is None else class_weighted(rows, weights)
        state, adam = self._known_state(), getattr(self, "_adam", None)
        model, adam = next_batch(self.model_, state, adam, rows, settings, seed)
        self.take_over(shadow, FitResult(model, self.history_, state))
        self._adam = adam
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        if _stays_on_device(X):
            check_is_fitted(self)
            return self.model_.predict(X)
        scores = self._answer("class_scores", X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities, one column per class in the order of ``classes_``."""
        return self._answer("predict_proba", X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of ``predict_proba``."""
        if _stays_on_device(X):
            return self._answer("predict_log_proba", X)
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class (two classes), or calibrated class scores (more)."""
        scores = self._answer("class_scores", X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def plane_scores(self, X: Any) -> FloatArray:
        """Score of every plane, (n_rows, n_planes), columns grouped by class."""
        return self._answer("plane_scores", X)

    def responsibilities(self, X: Any) -> FloatArray:
        """Share of each plane in the score of its class, (n_rows, n_planes).

        The shares of a class add up to one.
        """
        return self._answer("responsibilities", X)

    effects = _forwarded(GeometricMixture.effects)
    explain_global = _forwarded(GeometricMixture.explain_global)
    explain_local = _forwarded(GeometricMixture.explain_local)
    counterfactual = _forwarded(GeometricMixture.counterfactual)
    rules = _forwarded(GeometricMixture.rules)
    certify = _forwarded(GeometricMixture.certify)
    report = _forwarded(GeometricMixture.report)
    save = _forwarded(GeometricMixture.save)

    @property
    def coef_(self) -> FloatArray:
        """Log-odds of one unit of each column: (1, n_columns) for two classes, else one line for
        each class. Only with one linear plane per class."""
        return coefficients(self._fitted_model("coef_"))[0]

    @property
    def intercept_(self) -> FloatArray:
        """Log-odds where every column is zero, (1,) for two classes, else one for each."""
        return coefficients(self._fitted_model("intercept_"))[1]

    @property
    def feature_importances_(self) -> FloatArray:
        """Mean absolute contribution of each column to the log-odds of the predicted class against
        the next one, over at most 2,000 training rows, (n_columns,)."""
        if not hasattr(self, "model_"):
            raise AttributeError("feature_importances_ is there after fit.")
        found: FloatArray | None = self._importances
        if found is None:
            raise AttributeError(
                "feature_importances_ comes from training rows, which a model does not hold; use "
                "model_.explain_global(X).importances."
            )
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = needs_dense(self) is None
        tags.classifier_tags.multi_class = not is_about_two_classes(self.monotonic_cst)
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "learn"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def settings(self) -> Settings:
        """The parameters as checked ``Settings``."""
        if not isinstance(self.missing, str) or self.missing not in ("learn", "error"):
            raise InvalidParameterError(
                f"Got missing={self.missing!r}; expected one of 'learn', 'error'."
            )
        if not isinstance(self.verbose, (bool, numbers.Integral)):
            raise InvalidParameterError(f"Got verbose={self.verbose!r}; expected 0 or 1.")
        if not isinstance(self.warm_start, (bool, np.bool_)):
            raise InvalidParameterError(
                f"Got warm_start={self.warm_start!r}; expected True or False."
            )
        given = flat(self.get_params(deep=False))
        settings = Settings(**{field.name: given[field.name] for field in fields(Settings)})
        return replace(settings, n_members=1) if self.warm_start else settings

    def take_over(
        self, shadow: Any, result: FitResult, rows: Any = None, n_rows: int | None = None
    ) -> Self:
        """Become fitted, in one step: with a model, and with the columns that a copy has read.

        rows : encoded training rows of a fit, for importances; None where it goes on as it is
        n_rows : how many there are, where ``rows`` are a sample of them
        """
        model, history, training_state = result
        importances = getattr(shadow, "_importances", None)
        if rows is not None:
            n_rows = rows.shape[0] if n_rows is None else n_rows
            facts = training_facts(
                history, n_rows, flat(self.get_params(deep=False)), flat(_defaults())
            )
            facts["penalty"] = training_state.penalty_facts(self.settings())
            model = replace(model, training={**(model.training or {}), **facts})
            importances = training_importances(model, rows)
            warn_if_cut_short(history, int(self.max_iter))
        state = shadow._fitted_attributes(model)
        state |= {"history_": history, "n_iter_": max(history.n_iter, 1)}
        state |= {"_training_state": training_state, "_adam": None, "_importances": importances}
        if hasattr(self, "feature_names_in_") and "feature_names_in_" not in state:
            del self.feature_names_in_
        self.__dict__.update(state)
        return self

    def _answer(self, what: str, X: Any) -> FloatArray:
        check_is_fitted(self)
        model = self.model_
        if _stays_on_device(X):
            return array_api.answer(model, what, X)
        rows = read_rows(self, X, reset=False, schema=model.schema, fill=model.fill)
        return model.answer(what, rows)

    def _fitted_model(self, attribute: str) -> GeometricMixture:
        if not hasattr(self, "model_"):
            raise AttributeError(f"{attribute} is there after fit, with lift='linear'.")
        return self.model_

    def _fit_on_device(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Self:
        """Train on rows that stay in the memory of their device."""
        if X_val is not None or y_val is not None:
            raise ValueError("X_val and y_val need rows in the host's memory.")
        from geomix.out_of_core.devices import ArraySource
        from geomix.out_of_core.fit import fit_estimator

        y, sample_weight = map(array_api.to_numpy_if_foreign, (y, sample_weight))
        fit_estimator(self, ArraySource(X, y, sample_weight))
        return self

    def _known_state(self) -> TrainingState:
        state: TrainingState | None = self._training_state
        if state is None:
            raise ValueError(
                "This estimator was made from a model, which does not hold the state of its "
                "training, so training cannot go on; fit a new GeometricMixtureClassifier."
            )
        return state

    def _fitted_attributes(self, model: GeometricMixture) -> dict[str, Any]:
        state = {"model_": model, "classes_": model.classes, "n_planes_": model.planes.per_class}
        for name in ("n_features_in_", "feature_names_in_", "table_check_"):
            if hasattr(self, name):
                state[name] = getattr(self, name)
        return state

    def check_planes_of_labels(self, classes: Any) -> None:
        """Refuse an ``n_planes`` by label that does not name every class, or names another."""
        if not isinstance(self.n_planes, Mapping):
            return
        labels = set(classes.tolist())
        for problem, odd in {
            "names the class {!r}, which is not in y": set(self.n_planes) - labels,
            "has no entry for the class {!r}": labels - set(self.n_planes),
        }.items():
            if odd:
                raise InvalidParameterError(
                    f"n_planes {problem.format(next(iter(odd)))}; expected one entry for each "
                    f"of {sorted(labels)!r}."
                )


def _defaults() -> dict[str, Any]:
    signature = inspect.signature(GeometricMixtureClassifier)
    return {name: one.default for name, one in signature.parameters.items()}


def flat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator with the fields of ``advanced`` in its place."""
    own = {name: value for name, value in parameters.items() if name != "advanced"}
    return own | vars(_recipe(parameters["advanced"]))


def _recipe(advanced: Any) -> Recipe:
    if not isinstance(advanced, (Recipe, NoneType)):
        raise InvalidParameterError(
            f"Got advanced={reprlib.repr(advanced)}; expected None or a geomix.Recipe, such as "
            "Recipe(sharpness=8)."
        )
    return Recipe() if advanced is None else advanced


def routed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator, where fields of ``Recipe`` may stand among them.

    An unknown name is refused with the nearest that there is.
    """
    own = list(_defaults())
    for name in parameters:
        if name not in own and name not in RECIPE_NAMES:
            close = difflib.get_close_matches(name, [*own, *RECIPE_NAMES], n=1, cutoff=0.6)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise InvalidParameterError(f"There is no parameter {name!r}{hint}")
    sorted_out = {name: value for name, value in parameters.items() if name in own}
    deep = {name: value for name, value in parameters.items() if name in RECIPE_NAMES}
    if deep:
        sorted_out["advanced"] = replace(_recipe(sorted_out.get("advanced")), **deep)
    return sorted_out


def _stays_on_device(X: Any) -> bool:
    """Whether X is another library's array, and scikit-learn is configured to leave it in place."""
    return array_api.is_foreign(X) and bool(get_config().get("array_api_dispatch"))
