"""Recipe: the settings of a fit that few people change, in one frozen, checked value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from geomix.training.parameter_checks import checked

Auto = Literal["auto"]


@dataclass(frozen=True, repr=False)
class Recipe:
    """The settings of a fit that few people change, for ``advanced`` of the estimator.

    Parameters
    ----------
    n_knots : "auto" or int, default="auto"
        Most knots of a column's curve (spline lift). "auto" starts at 64, or 32 where classes
        have several planes, and tries half and twice as many. From 2,000 rows on it adds knots
        beside values at which the classes change at once.
    n_frequencies : "auto" or int, default="auto"
        Random frequencies D of the Fourier lift, which makes 2 D features. "auto" takes 16 per
        input, at least 128 and at most 512.
    gamma : "auto" or float, default="auto"
        Kernel width exp(-gamma ||x - y||^2) over standardised columns (Fourier lift). "auto"
        tries multiples of 1 / (median squared distance).
    orthogonal : bool, default=True
        Draw orthogonal frequencies, which estimate the kernel with less noise.
    learn_lift : {"auto", "off", "scales", "frequencies"}, default="auto"
        Learn the Fourier lift with its planes, from the random draw on: a scale for each column,
        or all frequencies. Part of the training rows stop it. "auto" tries learnt frequencies
        with ``preset="accurate"``.
    standardize : bool, default=True
        Centre and scale the columns by their weighted mean and standard deviation.
    pca : "auto", None, float or int, default="auto"
        Rotate onto principal axes: a share of the variance to keep, or a number of axes. "auto"
        keeps 95 % of the variance of more than 50 columns of numbers, where a kernel may be chosen
        or the table has more than two million cells.
    sharpness, sharpness_start : float, default=6.0 and 3.0
        Sharpness of the soft-OR at the end and at the start of training.
    usage_beta, usage_delta : float, default=0.5 and 0.01
        Usage-aware L2: the penalty of plane p is l2 (1 + beta / (usage_p + delta)).
    usage_average : {"batch", "running"}, default="batch"
        Usage of the current batch, or its running average over batches (Adam only).
    label_smoothing : float, default=0.005
        Share of each target that is spread evenly over the classes. Where a class is rarer than
        this share, its log-odds are pulled up.
    init : {"auto", "kmeans", "logistic", "random"}, default="auto"
        Where the planes start. "auto" is k-means, or logistic where k-means is not stable. One
        plane per class starts flat: it has one optimum.
    solver : {"auto", "adam", "lbfgs"}, default="auto"
        Mini-batch Adam, or L-BFGS on all rows in stages of rising sharpness. "auto" decides by
        the size of the table.
    learning_rate, schedule, batch_size : default=0.01, "cosine" and 256
        Adam's step size, how it falls ("cosine", "exponential", "constant"), and rows per batch.
    tol : float, default=1e-5
        L-BFGS stops when no entry of the gradient is larger.
    clip_norm, max_weight_norm : float or None, default=5.0 and None
        Largest norm of Adam's gradient, and of the weights of any plane.
    calibrate : bool, default=True
        Fit one temperature on held-out rows.
    refit : bool, default=True
        Train on all rows once lift, penalty and temperature are chosen. Above 50,000 rows, 5 %
        of them (at most 10,000) are held out to fit the temperature.

    Examples
    --------
    >>> from geomix import GeometricMixtureClassifier, Recipe
    >>> Recipe(sharpness=8)
    Recipe(sharpness=8.0)
    >>> GeometricMixtureClassifier(3, advanced=Recipe(sharpness=8, refit=False))
    GeometricMixtureClassifier(advanced=Recipe(sharpness=8.0, refit=False),
                               n_planes=3)
    """

    n_knots: int | Auto = "auto"
    n_frequencies: int | Auto = "auto"
    gamma: float | Auto = "auto"
    orthogonal: bool = True
    learn_lift: Literal["auto", "off", "scales", "frequencies"] = "auto"
    standardize: bool = True
    pca: float | Auto | None = "auto"
    sharpness: float = 6.0
    sharpness_start: float = 3.0
    usage_beta: float = 0.5
    usage_delta: float = 0.01
    usage_average: Literal["batch", "running"] = "batch"
    label_smoothing: float = 0.005
    init: Literal["auto", "kmeans", "logistic", "random"] = "auto"
    solver: Literal["auto", "adam", "lbfgs"] = "auto"
    learning_rate: float = 0.01
    schedule: Literal["cosine", "exponential", "constant"] = "cosine"
    batch_size: int = 256
    tol: float = 1e-5
    clip_norm: float | None = 5.0
    max_weight_norm: float | None = None
    calibrate: bool = True
    refit: bool = True

    def __post_init__(self) -> None:
        # The one moment at which a recipe changes: values become plain Python numbers.
        for name, value in checked(vars(self)).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """The settings that differ from their defaults."""
        changed = (one for one in fields(self) if getattr(self, one.name) != one.default)
        return f"Recipe({', '.join(f'{one.name}={getattr(self, one.name)!r}' for one in changed)})"


RECIPE_NAMES = tuple(field.name for field in fields(Recipe))
