"""scikit-learn's callbacks, where the installed version has them (1.9 and later).

Every iteration of the final training is one subtask. A callback can use the model so far
(``ScoringMonitor``) or stop the training. Under older versions this module does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from geomix.training.history import Record

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def _with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "callback_watch", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """scikit-learn's decorator of ``fit``, with the type of what it decorates."""
    return cast(Method, _with_callbacks(method))


class CallbackWatch:
    """Forwards the final training to the callbacks of an estimator: the task "fit", which begins
    here and ends with ``end``, and one subtask for every iteration between.

    ``fitted_attributes`` turns a snapshot into the attributes of a fitted estimator.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, fitted_attributes: Callable[[Any], dict[str, Any]]
    ) -> None:
        self._task = {"estimator": estimator, "X": X, "y": y}
        self._fitted_attributes = fitted_attributes
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(**self._task)

    def __call__(self, record: Record, snapshot: Callable[[], Any]) -> bool:
        if record.phase != "fit":
            return False
        iteration = self._context.subcontext(task_name="iteration")
        iteration.call_on_fit_task_begin(**self._task)
        stop = iteration.call_on_fit_task_end(
            **self._task, reconstruction_attributes=lambda: self._fitted_attributes(snapshot())
        )
        return bool(stop)

    def end(self) -> None:
        self._context.call_on_fit_task_end(**self._task)


def callback_watch(
    estimator: Any, X: Any, y: Any, fitted_attributes: Callable[[Any], dict[str, Any]]
) -> CallbackWatch | None:
    """A watcher for the estimator's callbacks, or None where it has none."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    return CallbackWatch(estimator, X, y, fitted_attributes)
