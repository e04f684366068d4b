"""Drawn facts as a pandas frame, where pandas is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def frame(columns: Mapping[str, Any]) -> Any:
    """A frame of columns of equal length, in their order."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "frame() makes a pandas frame, and pandas is not installed: pip install pandas"
        ) from error
    return pandas.DataFrame(dict(columns))
