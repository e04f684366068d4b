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


def callback_watch(
    estimator: Any, X: Any, y: Any, fitted_attributes: Callable[[Any], dict[str, Any]]
) -> Callable[[Record, Callable[[], Any]], bool] | None:
    """A watcher that forwards the iterations of the final training to the estimator's callbacks,
    or None where it has none.

    ``fitted_attributes`` turns a snapshot into the attributes of a fitted estimator.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def watch(record: Record, snapshot: Callable[[], Any]) -> bool:
        if record.phase != "fit":
            return False
        task = context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        return bool(
            task.call_on_fit_task_end(
                estimator=estimator,
                X=X,
                y=y,
                reconstruction_attributes=lambda: fitted_attributes(snapshot()),
            )
        )

    return watch
