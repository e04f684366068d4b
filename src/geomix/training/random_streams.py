"""Random streams by name: every step of a fit draws from its own, keyed by the fit's seed.

So that switching one step on or off (PCA, budgeting, another lift) leaves the draws of all
other steps as they were.
"""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, name: str, *keys: int) -> np.random.Generator:
    """The generator that belongs to (seed, name, keys): same arguments, same draws."""
    entropy = [seed, zlib.crc32(name.encode()), *keys]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))
