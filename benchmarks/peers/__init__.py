"""The models of the suite, one small file each. To add one, add a file here that defines

    NAME = "My model"              what tables call it
    NEEDS = ("my_library",)        modules that it imports, for the versions and for a clear
                                   message where one is not installed
    EXPENSIVE = True               optional: runs after the cheap models of the same seed

    def fit(X, y, seed):           X: raw pandas frame (numbers, ``category``, NaN);
        ...                        y: codes 0 .. k - 1, each of them present
        return model, "depth 6"    the fitted model, and in a few words what it chose

``model.predict_proba(frame)`` takes the same raw form and has one column per code; the model
can be pickled; it works on one thread. Whatever ``fit`` does is timed: inner splits, search and
refit. The name of the file is the name for ``--models``. Files that start with an underscore
are shared parts: ``_columns`` has the preparations of columns, ``_search`` the inner splits,
``_platt`` the probabilities of support vector machines, ``_votes`` those of voters.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Peer:
    key: str
    name: str
    needs: tuple[str, ...]
    expensive: bool
    fit: Callable[[Any, Any, int], tuple[Any, str]]

    @property
    def lacks(self) -> list[str]:
        return [module for module in self.needs if importlib.util.find_spec(module) is None]

    def versions(self) -> str:
        """Imports what the model needs, so that no clock counts it later."""
        modules = [importlib.import_module(name) for name in ("numpy", "pandas", *self.needs)]
        found = [f"{m.__name__} {getattr(m, '__version__', '?')}" for m in modules]
        return ", ".join([f"Python {platform.python_version()}", *found])


def get(key: str) -> Peer:
    module = importlib.import_module(f"{__name__}.{key}")
    return Peer(key, module.NAME, module.NEEDS, getattr(module, "EXPENSIVE", False), module.fit)


def every() -> dict[str, Peer]:
    """All models by key, geomix first, then the cheap ones, then the expensive ones."""
    keys = [found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"]
    peers = sorted(
        map(get, keys), key=lambda peer: (peer.key != "geomix", peer.expensive, peer.key)
    )
    return {peer.key: peer for peer in peers}
