"""Installed versions and the kernel in use, for bug reports and CI."""

from __future__ import annotations

import importlib.metadata
import platform

from geomix.core import kernel

REQUIRED = ("geomix", "numpy", "scipy", "scikit-learn", "tqdm")


def show_versions() -> None:
    """Print the kernel in use and the versions of geomix and its dependencies."""
    for name, version in versions().items():
        print(f"{name:>14}: {version}")


def versions() -> dict[str, str]:
    """The kernel ("native, avx512" or "NumPy"), Python, the platform, and the packages."""
    found = {
        "kernel": f"native, {kernel.simd}" if kernel.is_native else "NumPy",
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in REQUIRED:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
