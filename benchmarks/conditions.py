"""What a figure was measured with: the processor, the kernel of geomix, versions of libraries."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path

from geomix.core import kernel


def processor() -> str:
    """The processor's name and the number of cores."""
    name, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        name = next((x.split(":")[1].strip() for x in lines if "model name" in x), name)
    return f"{name}, {os.cpu_count()} cores"


def kernel_name() -> str:
    return f"native ({kernel.simd})" if kernel.is_native else "NumPy"


def versions(packages: Iterable[str]) -> str:
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)
