"""GeometricMixtureClassifier: the scikit-learn face of the model. It checks, and it forwards."""

from __future__ import annotations

import copy
import inspect
import numbers
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from geomix.arrays import FloatArray
from geomix.core import array_api
from geomix.core.blas_threads import blas_threads
from geomix.errors import InvalidParameterError
from geomix.model import GeometricMixture
from geomix.out_of_core.devices import ArraySource
from geomix.out_of_core.fit import fit_estimator
from geomix.search.fit import fit_model, watch_until
from geomix.search.folds import Snapshot
from geomix.search.warm_start import next_batch, warm_start
from geomix.table.reader import read_rows
from geomix.training.callbacks import CallbackSupportMixin, callback_watch, with_callbacks
from geomix.training.deadline import Deadline
from geomix.training.history import training_facts
from geomix.training.labelled_rows import class_weights, first_rows, later_rows, validation_rows
from geomix.training.progress import ProgressLine
from geomix.training.rows import class_weighted
from geomix.training.settings import PAPER, Settings


class GeometricMixtureClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify with a few planes per class: soft unions of readable regions.

    Every class is a mixture of planes; plane scores are pooled by a soft-OR, classes compete
    in a softmax, and the probabilities are calibrated on held-out rows. The defaults choose
    the lift and the penalty by held-out likelihood.

    Parameters
    ----------
    n_planes : "auto", "silhouette", int or dict, default="auto"
        Planes per class: as many as the silhouette proposes, up to ``max_planes``
        ("silhouette"); that, one, or, for spline planes, 4 or 12, whichever has the best
        held-out likelihood ("auto"); one number for all classes; or a number for each label.
    max_planes : int, default=32
        Most planes of a class. Paper: 4.
    lift : {"auto", "linear", "spline", "fourier"} or tuple of such, default="auto"
        Working features: the columns themselves, a curve over every column, random Fourier
        features of a Gaussian kernel; or whichever of all ("auto") or of some (a tuple) has the
        best held-out likelihood.
    n_knots : "auto" or int, default="auto"
        Most knots of a column's curve (spline lift). "auto" starts at 64, or 32 where classes
        have several planes, and tries half and twice as many.
    n_frequencies : "auto" or int, default="auto"
        Random frequencies D of the Fourier lift, which makes 2 D features. "auto" takes 16 for
        each input, at least 128 and at most 512.
    gamma : "auto" or float, default="auto"
        Kernel width exp(-gamma ||x - y||^2) over standardised columns. "auto" tries multiples
        of one over the median squared distance.
    orthogonal : bool, default=True
        Draw orthogonal frequencies, which estimate the kernel with less noise.
    standardize : bool, default=True
        Centre and scale the columns by their weighted mean and standard deviation.
    categorical_features : None, or list of str, int or bool, default=None
        Which columns are categories: by their type (None: categories, text), or besides those
        the columns with these names or positions, or marked in this mask. Integer codes, for
        example, are numbers unless named here.
    missing : {"learn", "error"}, default="learn"
        Missing values teach: a number that is missing counts as the column's mean, with a
        column of its own that says so; a missing category is a level. "error" refuses them.
    pca : "auto", None, float or int, default="auto"
        Rotate onto principal axes: a share of variance to keep, or a number of axes. "auto"
        keeps 95 % of the variance when there are more than 50 columns.
    sharpness, sharpness_start : float, default=6.0 and 3.0
        Sharpness of the soft-OR at the end and at the start of training.
    l2 : "auto" or float, default="auto"
        Penalty on squared weights; "auto" chooses by held-out likelihood. Paper: 1e-4.
    shrink_to_mean : "auto" or float, default="auto"
        Share of the penalty that the mean plane of a class is spared, so that planes shrink
        towards it rather than towards zero. Paper: 0. "auto" tries 0 and 0.9 for spline planes.
    adaptive_penalty : "auto" or bool, default="auto"
        Penalise a step of a curve less the more it says, as the planes alike tell first; a
        Fourier lift becomes finer along columns that say more, as one spline plane per class
        tells. "auto" tries both, where ``l2`` is chosen. Paper: False.
    usage_beta, usage_delta : float, default=0.5 and 0.01
        Usage-aware L2: plane p is penalised by l2 (1 + beta / (usage_p + delta)).
    usage_average : {"batch", "running"}, default="batch"
        Usage of the current batch, or a running average over batches (Adam only).
    label_smoothing : float, default=0.02
        Share of each target that is spread evenly over the classes.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. Reweighting distorts probabilities: see ``correct_prior``.
    correct_prior : bool, default=False
        Take the effect of ``class_weight`` on the class shares out of the probabilities.
    init : {"auto", "kmeans", "logistic", "random"}, default="auto"
        First planes. "auto" is k-means, or logistic where k-means does not repeat itself.
    solver : {"auto", "adam", "lbfgs"}, default="auto"
        Mini-batch Adam, or L-BFGS on full batches in stages of sharpness; "auto" by size.
    learning_rate, schedule, batch_size : default=0.01, "cosine" and 256
        Adam's step, how it falls ("cosine", "exponential", "constant"), and rows per batch.
    max_iter : int, default=300
        Most epochs of Adam or iterations of L-BFGS.
    tol : float, default=1e-5
        L-BFGS ends when no entry of the gradient is larger.
    clip_norm, max_weight_norm : float or None, default=5.0 and None
        Largest norm of Adam's gradient, and of any plane's weights.
    validation_fraction : float, default=0.2
        Rows of each class to hold out. Under 1000 distinct rows five folds take their place,
        under 300 ten, and under 50 nothing is held out.
    early_stopping : {"auto", "calibrated", "plain", "off"}, default="auto"
        Stop by the held-out loss after temperature scaling, by the plain one, or not at all.
        "auto" is "off" for L-BFGS with ``refit``, where the chosen penalty does that work, and
        "calibrated" otherwise.
    n_iter_no_change : int, default=12
        Iterations without a gain on held-out rows before training stops.
    calibrate : bool, default=True
        Fit one temperature on held-out rows.
    refit : bool, default=True
        Train on all rows once lift, penalty and temperature have been chosen. Above 50,000 rows
        some are spared (5 %, at most 10,000), whose probabilities set the temperature.
    n_members : "auto" or int, default="auto"
        Spline models with several planes are trained so many times, each time without another
        part of the rows, and asked together. "auto": 8, or 1 above 20,000 rows. Paper: 1.
    monotonic_cst : dict or None, default=None
        Probabilities that only rise (1) or only fall (-1) with a number, by column and class:
        ``{"dose": {"toxic": 1}}``; with two classes ``{"dose": 1}`` speaks of the second. Kept in
        training, for every row; Fourier lifts, PCA and Adam are then out.
    time_limit : float or None, default=None
        Seconds that ``fit`` may take. Half of them may go into the choice: candidates that
        would start later are not tried; the final training stops where the rest ends, and so
        does the number of members. With a limit the result depends on the machine's speed.
    warm_start : bool, default=False
        Later calls of ``fit`` go on from the model that is there: its columns, lift, planes and
        penalty stay, and its planes are trained further. One member.
    random_state : int, RandomState instance or None, default=None
        Same seed, same rows, same model, to the last bit.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    classes_ : the class labels
    model_ : GeometricMixture, the trained model with its own lean methods
    history_ : History, iterations, candidates tried, and notes
    n_iter_ : int, iterations of the final training
    n_planes_ : (n_classes,) planes per class
    coef_, intercept_ : planes over the raw columns (linear lift only)
    n_features_in_, feature_names_in_ : columns seen in fit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        n_planes: Any = "auto",
        *,
        max_planes: int = 32,
        lift: Any = "auto",
        n_knots: Any = "auto",
        n_frequencies: Any = "auto",
        gamma: Any = "auto",
        orthogonal: bool = True,
        standardize: bool = True,
        categorical_features: Any = None,
        missing: str = "learn",
        pca: Any = "auto",
        sharpness: float = 6.0,
        sharpness_start: float = 3.0,
        l2: Any = "auto",
        shrink_to_mean: Any = "auto",
        adaptive_penalty: Any = "auto",
        usage_beta: float = 0.5,
        usage_delta: float = 0.01,
        usage_average: str = "batch",
        label_smoothing: float = 0.02,
        class_weight: Any = None,
        correct_prior: bool = False,
        init: str = "auto",
        solver: str = "auto",
        learning_rate: float = 0.01,
        schedule: str = "cosine",
        batch_size: int = 256,
        max_iter: int = 300,
        tol: float = 1e-5,
        clip_norm: float | None = 5.0,
        max_weight_norm: float | None = None,
        validation_fraction: float = 0.2,
        early_stopping: str = "auto",
        n_iter_no_change: int = 12,
        calibrate: bool = True,
        refit: bool = True,
        n_members: Any = "auto",
        monotonic_cst: Any = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_planes = n_planes
        self.max_planes = max_planes
        self.lift = lift
        self.n_knots = n_knots
        self.n_frequencies = n_frequencies
        self.gamma = gamma
        self.orthogonal = orthogonal
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.missing = missing
        self.pca = pca
        self.sharpness = sharpness
        self.sharpness_start = sharpness_start
        self.l2 = l2
        self.shrink_to_mean = shrink_to_mean
        self.adaptive_penalty = adaptive_penalty
        self.usage_beta = usage_beta
        self.usage_delta = usage_delta
        self.usage_average = usage_average
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight
        self.correct_prior = correct_prior
        self.init = init
        self.solver = solver
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.clip_norm = clip_norm
        self.max_weight_norm = max_weight_norm
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.calibrate = calibrate
        self.refit = refit
        self.n_members = n_members
        self.monotonic_cst = monotonic_cst
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, **parameters: Any) -> GeometricMixtureClassifier:
        """The paper's recipe to the letter; ``parameters`` override parts of it."""
        return cls(**{**PAPER, **parameters})

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> GeometricMixtureClassifier:
        """Learn from rows ``X`` with labels ``y``.

        With ``X_val`` and ``y_val`` those rows choose, stop and calibrate, and no row of ``X``
        is held out. An error or Ctrl-C leaves the estimator as it was before the call.
        """
        settings = self.settings()
        deadline = None if settings.time_limit is None else Deadline.after(settings.time_limit)
        if _stays_on_device(X) and not self.warm_start:
            if X_val is not None or y_val is not None:
                raise ValueError("X_val and y_val need rows in the host's memory.")
            labels, weight = map(array_api.to_numpy_if_foreign, (y, sample_weight))
            return fit_estimator(self, ArraySource(X, labels, weight))
        # The new state grows on a shadow and is taken over in one step at the end, so that a
        # failed fit, or a predict in another thread, never meets half a model.
        shadow = copy.copy(self)
        goes_on = bool(self.warm_start) and hasattr(self, "model_")
        if goes_on:
            schema, classes = self.model_.schema, self.classes_
            rows = later_rows(shadow, X, y, sample_weight)
        else:
            rows, schema, classes = first_rows(shadow, X, y, sample_weight)
        valid = validation_rows(shadow, schema, classes, X_val, y_val, sample_weight_val)
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
        with blas_threads(n_cells), ProgressLine(self.verbose) as line:

            def watch(record: Any, snapshot: Any) -> bool:
                line(record, snapshot)
                return notify is not None and notify(record, snapshot)

            told = watch if line.is_shown or notify is not None else None
            if goes_on:
                rows = rows if class_weight is None else class_weighted(rows, class_weight)
                until = watch_until(deadline, told)
                model, history = warm_start(
                    self.model_, self.history_, rows, valid, settings, seed, until
                )
            else:
                model, history = fit_model(
                    rows,
                    classes,
                    schema,
                    settings,
                    seed,
                    valid=valid,
                    class_weight=class_weight,
                    watch=told,
                    deadline=deadline,
                )
        return self.take_over(shadow, model, history, len(rows))

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> GeometricMixtureClassifier:
        """Learn from one batch of a stream.

        The first batch is fitted as a table, and decides columns, scale, lift, number of planes,
        penalty and temperature: make it a large and mixed one. ``classes`` names every label
        that will ever come and is needed with it. Each later batch is walked through once by
        Adam. Rows that come sorted by class teach the last class: see ``geomix.fit_files``.
        """
        settings = replace(self.settings(), n_members=1)
        shadow = copy.copy(self)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if not hasattr(self, "model_"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            rows, schema, labels = first_rows(shadow, X, y, sample_weight, classes)
            shadow.check_planes_of_labels(labels)
            weights = class_weights(self.class_weight, rows, labels)
            model, history = fit_model(rows, labels, schema, settings, seed, class_weight=weights)
            return self.take_over(shadow, model, history, len(rows))
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not what it was on the first call to partial_fit: "
                f"{self.classes_.tolist()!r}."
            )
        rows = later_rows(shadow, X, y, sample_weight)
        weights = class_weights(self.class_weight, rows, self.classes_)
        rows = rows if weights is None else class_weighted(rows, weights)
        walk = getattr(self, "_walk", None)
        model, walk = next_batch(self.model_, self.history_, walk, rows, settings, seed)
        self.take_over(shadow, model, self.history_)
        self._walk = walk
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
        """How far each plane carries its class, (n_rows, n_planes); one per class in sum."""
        return self._answer("responsibilities", X)

    @property
    def coef_(self) -> FloatArray:
        """Weights of every plane over the raw columns, (n_planes, n_columns); linear lift only."""
        return self._fitted_model("coef_").folded.weights

    @property
    def intercept_(self) -> FloatArray:
        """Bias of every plane over the raw columns, (n_planes,); linear lift only."""
        return self._fitted_model("intercept_").folded.biases

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "learn"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def settings(self) -> Settings:
        """The parameters as a checked ``Settings``."""
        settings = Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})
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
        return replace(settings, n_members=1) if self.warm_start else settings

    def take_over(
        self, shadow: Any, model: GeometricMixture, history: Any, n_rows: int | None = None
    ) -> GeometricMixtureClassifier:
        """Become fitted, in one step: with a model, and with the columns that a copy has read.

        n_rows : of a fit, which the model then remembers; None where it goes on as it is.
        """
        if n_rows is not None:
            facts = training_facts(history, n_rows, self.get_params(deep=False), _defaults())
            model = replace(model, training={**(model.training or {}), **facts})
        state = shadow._fitted_attributes(model)
        state |= {"history_": history, "n_iter_": max(history.n_iter, 1), "_walk": None}
        if hasattr(self, "feature_names_in_") and "feature_names_in_" not in state:
            del self.feature_names_in_
        self.__dict__.update(state)
        return self

    def _answer(self, what: str, X: Any) -> FloatArray:
        check_is_fitted(self)
        model = self.model_
        if _stays_on_device(X):
            return array_api.answer(model, what, X)
        return model.answer(what, read_rows(self, X, reset=False, schema=model.schema))

    def _fitted_model(self, attribute: str) -> GeometricMixture:
        if not hasattr(self, "model_"):
            raise AttributeError(f"{attribute} is there after fit, with lift='linear'.")
        return self.model_

    def _fitted_attributes(self, model: GeometricMixture) -> dict[str, Any]:
        state = {"model_": model, "classes_": model.classes, "n_planes_": model.planes.per_class}
        for name in ("n_features_in_", "feature_names_in_"):
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
    signature = inspect.signature(GeometricMixtureClassifier.__init__)
    return {name: one.default for name, one in signature.parameters.items()}


def _stays_on_device(X: Any) -> bool:
    """Whether X is another library's array, and scikit-learn was told to leave such in place."""
    return array_api.is_foreign(X) and bool(get_config().get("array_api_dispatch"))
