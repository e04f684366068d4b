"""``coef_`` and ``intercept_``: the log-odds of a model as linear functions of the raw columns.

With one linear plane per class, (W, b) over the raw columns and temperature T,

    two classes     log(p_1 / p_0) = x (w_1 - w_0)' / T + (b_1 - b_0) / T     one line of numbers
    more            s_c / T        = x w_c' / T         + b_c / T             one line per class

so that ``X @ coef_.T + intercept_`` is the decision function, as in scikit-learn.
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray
from geomix.model import GeometricMixture


def coefficients(model: GeometricMixture) -> tuple[FloatArray, FloatArray]:
    """``coef_`` and ``intercept_``, read-only; AttributeError where the model is not linear.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = GeometricMixtureClassifier(1, lift="linear", random_state=0).fit(X, y)
    >>> coef, intercept = coefficients(clf.model_)
    >>> coef.shape, intercept.shape
    ((1, 30), (1,))
    """
    _check(model)
    folded, n_members = model.folded, model.planes.n_members
    shape = len(model.classes), n_members
    weights = folded.weights.reshape(*shape, -1).mean(axis=1) / model.temperature
    biases = folded.biases.reshape(shape).mean(axis=1) / model.temperature
    if len(model.classes) == 2:
        weights, biases = weights[1:] - weights[:1], biases[1:] - biases[:1]
    for array in (weights, biases):
        array.flags.writeable = False
    return weights, biases


def _check(model: GeometricMixture) -> None:
    if model.lift.kind != "linear":
        raise AttributeError(
            f"A model with a {model.lift.kind} lift has no coef_; use feature_importances_, or "
            "fit with lift='linear', n_planes=1."
        )
    if (most := int(np.max(model.planes.planes_per_member))) > 1:
        raise AttributeError(
            f"A class has {most} planes, so there is no one coef_ for each class; "
            "model_.folded.weights has the planes, feature_importances_ one number for each "
            "column. n_planes=1 gives a coef_."
        )
    if model.expand is not None:
        raise AttributeError(
            "Columns with categories or missing cells have several coefficients each, so there is "
            "no coef_ of one number for each column; model_.folded.weights has them, named by "
            "model_.expanded_names, and feature_importances_ one number for each column."
        )
