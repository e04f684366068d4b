"""L-BFGS on one flat array: SciPy's, which a callback can end.

``scipy.optimize`` is imported by ``minimize``: a process that only answers does not need it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomix.arrays import FloatArray


class Enough(Exception):
    """Raised by ``on_iterate`` to end the minimisation at the current point."""


def default_value_tol(tol: float) -> float:
    """Relative decrease of one iteration below which a gradient tolerance counts as reached."""
    return min(1e-4 * tol, 1e-9)


def minimize(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    max_iter: int,
    tol: float,
    on_iterate: Callable[[FloatArray], None],
    value_tol: float | None = None,
    bounds: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, bool]:
    """Minimise ``objective`` (value and gradient); the last point, and whether it converged.

    ``tol`` bounds the largest gradient entry, ``value_tol`` the relative decrease of one
    iteration. ``on_iterate`` sees every accepted point and may raise ``Enough``. ``bounds`` are the
    lowest and highest values of every number, or None.
    """
    from scipy.optimize import Bounds
    from scipy.optimize import minimize as scipy_minimize

    last = start

    def remember(vector: FloatArray) -> None:
        nonlocal last
        last = vector.copy()
        on_iterate(last)

    options: dict[str, float] = {"maxiter": max_iter, "maxfun": 4 * max_iter + 20, "maxcor": 10}
    options |= {"gtol": tol, "ftol": default_value_tol(tol) if value_tol is None else value_tol}
    try:
        result = scipy_minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=None if bounds is None else Bounds(*bounds),
            callback=remember,
            options=options,
        )
    except Enough:
        return last, False
    return np.asarray(result.x), bool(result.success)
