"""The native extension (``native/bind*.cpp``); only ``geomix.native`` imports it."""

from typing import Any

def __getattr__(name: str) -> Any: ...
