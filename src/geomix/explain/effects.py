"""Effects: one curve for each column and class, in log-odds against the average row.

    log-odds(x) = intercept + sum_j effect_j(x_j) + sum over pairs (x_j, x_k) of interactions

With two classes there is one curve, the log-odds log(p_second / p_first). With more there is one
for each class c: log p_c less the mean of the classes' log p. If each class has one plane, the sum
above is exact. If a class has several, an effect is a partial dependence, which is a mean over
responsibilities (``explain/partial_dependence.py``), and ``planes_low`` and ``planes_high`` show
how far single planes differ. An effect is zero on average over the training rows. Two cases of an
exact effect differ: the curve of a number under a spline lift is zero on average over its present
cells, and with pairs the average is only nearly zero. A missing cell has an effect of its own; in a
pair it counts in the interaction too (``Interaction.missing_first``).

Bands come from a Laplace approximation (``explain/effect_bands.py``). They need rows, as densities
and importances do; a model stores none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.explain.effect_facts import Effects
from geomix.explain.effect_reader import reader_of
from geomix.explain.interactions import interactions
from geomix.model import GeometricMixture


def effects(
    model: GeometricMixture,
    X: Any = None,
    *,
    confidence: float = 0.9,
    n_interactions: int = 10,
) -> Effects:
    """Effects of every column of a model, from rows ``X`` with bands, densities and importances.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = GeometricMixtureClassifier(1, lift="linear", l2=0.01, random_state=0).fit(X, y)
    >>> found = clf.effects(X)
    >>> found.strongest()[0].column
    'petal width (cm)'
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"Got confidence={confidence!r}; expected a number between 0 and 1.")
    reader = reader_of(model, X, confidence)
    found = tuple(reader.effect(j) for j in range(model.n_features))
    sizes = np.array([one.size for one in found])
    return Effects(
        tuple(model.classes.tolist()),
        reader.labels,
        model.columns,
        found,
        interactions(reader, n_interactions, sizes) if n_interactions else (),
        reader.intercept,
        reader.method,
        float(confidence),
        reader.bands,
        None if X is None else reader.n_rows,
    )
