"""What a person sees while a fit runs: one line, rewritten in place.

geomix choosing: several spline planes, 60% of the choice done: 412it [loss=0.31, ...]
geomix training: 873it [loss=0.29, ...]
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from geomix.training.history import Record


class ProgressLine:
    """A tqdm line with loss, validation loss and sharpness; silent unless ``verbose``."""

    def __init__(self, verbose: int) -> None:
        self._bar = _bar() if verbose >= 1 else None

    @property
    def is_shown(self) -> bool:
        return self._bar is not None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, record: Record, snapshot: Callable[[], Any]) -> None:
        if self._bar is None:
            return
        shown = {"loss": f"{record.loss:.4f}"}
        if record.valid_loss is not None:
            shown["valid"] = f"{record.valid_loss:.4f}"
        shown["sharpness"] = f"{record.sharpness:.2f}"
        before, doing = self._bar.desc, f"geomix {_doing(record)}"
        self._bar.set_description_str(doing, refresh=False)
        # A step that is done within tqdm's interval would never be shown.
        self._bar.set_postfix(shown, refresh=self._bar.desc != before)
        self._bar.update()


def _bar() -> Any:
    # Only where it is shown: its import takes 1 MB, and a disabled bar would start its thread.
    from tqdm import tqdm

    return tqdm(desc="geomix", unit="it", leave=True)


def _doing(record: Record) -> str:
    if record.phase == "choose":
        return f"choosing: {record.task}" if record.task else "choosing"
    return "training" if record.phase == "fit" else record.phase
