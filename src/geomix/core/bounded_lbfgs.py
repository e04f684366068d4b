"""L-BFGS on one flat array within bounds: SciPy's, which a callback can end.

``scipy.optimize`` is imported by ``minimize``: a process that only answers does not need it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.lbfgs import Enough, Objective, default_value_tol


def minimize(
    objective: Objective,
    start: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    max_iter: int,
    tol: float,
    on_iterate: Callable[[FloatArray, float], None],
    value_tol: float | None = None,
) -> tuple[FloatArray, bool]:
    """``lbfgs.minimize`` between the lowest and highest values of every number."""
    from scipy.optimize import Bounds
    from scipy.optimize import minimize as scipy_minimize

    last, value = start, np.inf

    def watched(vector: FloatArray) -> tuple[float, FloatArray]:
        nonlocal value
        value, gradient = objective(vector)
        return value, gradient

    def remember(vector: FloatArray) -> None:
        nonlocal last
        last = vector.copy()
        on_iterate(last, value)

    options: dict[str, float] = {"maxiter": max_iter, "maxfun": 4 * max_iter + 20, "maxcor": 10}
    options |= {"gtol": tol, "ftol": default_value_tol(tol) if value_tol is None else value_tol}
    try:
        result = scipy_minimize(
            watched,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(*bounds),
            callback=remember,
            options=options,
        )
    except Enough:
        return last, False
    return np.asarray(result.x), bool(result.success)
